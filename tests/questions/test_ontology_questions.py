"""Questions about a small ontology: what is asked, what is right, and what may be learnt from what."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from merkhet.core.errors import InputError
from merkhet.questions.question_files import read_questions, write_questions
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.questions import OntologyOptions, make_ontology_questions
from merkhet.suites.ontoprobe.questions.memorizing import memorizing_questions
from merkhet.suites.ontoprobe.questions.multiple_choice import choice_questions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements, gather_statements
from merkhet.suites.ontoprobe.questions.property_patterns import make_pattern
from merkhet.suites.ontoprobe.questions.rule_reasoning import RuleQuestionMaker, draw_statements, reasoning_questions


@dataclass(frozen=True)
class World:
    """An ontology as it is read of a knowledge base."""

    classes: dict
    superclasses: dict
    instances: dict = field(default_factory=dict)
    instance_names: dict = field(default_factory=dict)
    properties: dict = field(default_factory=dict)
    superproperties: dict = field(default_factory=dict)
    domains: dict = field(default_factory=dict)
    ranges: dict = field(default_factory=dict)
    equivalents: dict = field(default_factory=dict)
    alternatives: frozenset = frozenset()
    ambiguous: frozenset = frozenset()
    remarks: tuple = ()

    @property
    def types(self) -> dict:
        """All types of each instance, its chains interleaved."""
        found = {}
        for instance, finest in self.instances.items():
            chains = [(one, *self.superclasses[one]) for one in finest]
            places = range(max(map(len, chains)))
            found[instance] = tuple(dict.fromkeys(some[at] for at in places for some in chains if at < len(some)))
        return found


def chain(*names: str) -> dict:
    return {name: names[at + 1 :] for at, name in enumerate(names)}


ANIMALS = World(
    classes={"c1": "dog", "c2": "mammal", "c3": "animal", "c4": "pet", "c5": "song", "c6": "work"},
    superclasses={**chain("c1", "c2", "c3"), "c4": ("c3",), **chain("c5", "c6")},
    instances={"i1": ("c1", "c4"), "i2": ("c1", "c2"), "i3": ("c5",), "i4": ("c4",)},
    instance_names={"i1": "BPER Lassie", "i2": "rex", "i3": "rex", "i4": "Odd [MASK]"},
    properties={"p1": "owner of", "p2": "composer", "p3": "relation"},
    superproperties={"p1": ("p3",), "p2": ("p3",), "p3": ()},
    domains={"p1": ("c1", "c2"), "p2": ("c6",)},
    ranges={"p2": ("c2",)},
    equivalents={"c3": ("c4",)},
)


def of(statements: Statements, task: str) -> dict[str, tuple[str, ...]]:
    return {one.subject: one.golds for one in statements.for_task(task)}


def test_an_ontology_becomes_statements_nearest_first() -> None:
    found = gather_statements(replace(ANIMALS, equivalents={}), seed=0)
    assert of(found, "TP") == {
        "BPER Lassie": ("dog", "pet", "mammal", "animal"),
        "rex": ("dog", "song", "mammal", "work", "animal"),
    }
    assert of(found, "SCO") == {
        "dog": ("mammal", "animal"),
        "mammal": ("animal",),
        "pet": ("animal",),
        "song": ("work",),
    }
    assert of(found, "SPO") == {"owner of": ("relation",), "composer": ("relation",)}
    assert of(found, "DM") == {"owner of": ("dog", "mammal"), "composer": ("work",)}
    assert of(found, "RG") == {"composer": ("mammal",)}
    assert any("share their name" in remark for remark in found.remarks)
    assert any("left out" in remark and "Odd [MASK]" in remark for remark in found.remarks)
    assert sum("a quarter each" in remark for remark in found.remarks) == 5


def test_properties_with_alternative_domains_are_not_asked_for_them() -> None:
    found = gather_statements(replace(ANIMALS, alternatives=frozenset([("domain", "p1"), ("domain", "p3")])), seed=0)
    assert of(found, "DM") == {"composer": ("work",)}
    assert "owner of" in of(found, "SPO")


def test_what_means_the_same_is_right_too_and_the_ambiguous_is_not_asked_about() -> None:
    found = gather_statements(replace(ANIMALS, ambiguous=frozenset(["c1", "p1"])), seed=0)
    assert of(found, "SCO") == {"mammal": ("animal", "pet"), "pet": ("animal",), "song": ("work",)}
    assert "owner of" not in of(found, "DM")
    assert of(found, "TP")["BPER Lassie"] == ("dog", "pet", "mammal", "animal")


def large(count: int) -> World:
    """Many instances of two classes."""
    names = {f"i{number}": f"thing {number}" for number in range(count)}
    types = {one: ("c1",) if number % 2 else ("c5",) for number, one in enumerate(names)}
    return replace(ANIMALS, instances=types, instance_names=names)


def test_instances_and_splits_are_drawn_by_the_seed_and_not_by_the_order() -> None:
    world = large(200)
    mixed = list(world.instances.items())
    random.Random(1).shuffle(mixed)
    found = gather_statements(world, seed=3, instances_per_class=30)
    assert found == gather_statements(replace(world, instances=dict(mixed)), seed=3, instances_per_class=30)
    assert found != gather_statements(world, seed=4, instances_per_class=30)
    splits = [one.split for one in found.for_task("TP")]
    assert [splits.count(name) for name in ("train", "dev", "test")] == [10, 10, 40]


def test_a_users_pattern_is_used_and_one_for_an_unknown_property_refused() -> None:
    given = {"composer": {"pattern": "[X] was composed by [Y] ."}}
    assert gather_statements(ANIMALS, seed=0, patterns=given).patterns["composer"].infix == " was composed by"
    with pytest.raises(InputError, match="'compser'; did you mean 'composer'"):
        gather_statements(ANIMALS, seed=0, patterns={"compser": {"pattern": "[X] is by [Y] ."}})


def small(split: str = "test") -> Statements:
    """One statement of each task, by hand."""
    return Statements(
        statements=(
            Statement("TP", "BPER Banca", ("bank", "company"), split),
            Statement("SCO", "card game", ("game", "activity"), split),
            Statement("SCO", "bank", ("company", "organisation"), split),
            Statement("SPO", "place of death", ("location",), split),
            Statement("SPO", "spouse", ("relative",), split),
            Statement("DM", "place of death", ("animal",), split),
            Statement("DM", "spouse", ("person",), split),
            Statement("RG", "spouse", ("person",), split),
            Statement("RG", "place of death", ("place",), split),
        ),
        classes=("bank", "company", "organisation", "card game", "game", "activity", "animal", "person", "place"),
        properties=("place of death", "location", "spouse", "relative"),
        patterns={
            "place of death": make_pattern("[X] died in [Y] ."),
            "location": make_pattern("[X] is located in [Y] ."),
            "spouse": make_pattern("[X]'s spouse is [Y] ."),
            "relative": make_pattern("[X]'s relative is [Y] ."),
        },
    )


def test_memorizing_prompts_read_as_designed() -> None:
    prompts = {
        row["template"]: row["prompt"]
        for row in memorizing_questions(small(), OntologyOptions())
        if "Card" not in row["prompt"]
    }
    asked = [
        row for row in memorizing_questions(small(), OntologyOptions()) if row["qset"] == small().statements[1].fact_id
    ]
    assert prompts["TP/1"] == "BPER Banca is a [MASK] ."
    assert prompts["TP/2"] == "BPER Banca has class [MASK] ."
    assert prompts["TP/3"] == "BPER Banca is a particular [MASK] ."
    assert prompts["TP/soft"] == "BPER Banca <TP1> <TP2> <TP3> [MASK] ."
    assert [row["prompt"] for row in asked] == [
        "Card game is a [MASK] .",
        "Card game has superclass [MASK] .",
        "Card game is a particular [MASK] .",
        "Card game <SCO1> <SCO2> <SCO3> [MASK] .",
    ]
    by_fact = {
        (row["qset"], row["template"]): row["prompt"] for row in memorizing_questions(small(), OntologyOptions())
    }
    said = [by_fact.get((one.fact_id, f"{one.task}/1")) for one in small().statements[3:]]
    assert said == [
        "Place of death implies [MASK] .",
        "Spouse implies [MASK] .",
        "One has to be a particular [MASK] to have died in something .",
        "One has to be a particular [MASK] to have a spouse .",
        "One has to be a particular [MASK] to be the spouse of something .",
        "One has to be a particular [MASK] for something to have died in one .",
    ]


def reasoned(statements: Statements, **given) -> dict[tuple[str, str], str]:
    """Prompts of the first statement of each rule by form and by what is shown."""
    options = OntologyOptions(**given)
    rows, premises = reasoning_questions(statements, memorizing_questions(statements, options), options)
    shown = {row["question_id"]: row["shown"] for row in premises}
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        found.setdefault((row["template"], shown.get(row["question_id"], row["task"])), row["prompt"])
    return found


def test_reasoning_prompts_read_as_designed() -> None:
    found = reasoned(small())
    both = {form: text for (form, shown), text in found.items() if shown == "both" and form.endswith("l-manual")}
    assert both == {
        "rdfs2/manual-manual": "One has to be a particular animal to have died in something . [X] died in [Y] . "
        "Therefore , [X] is a particular [MASK] .",
        "rdfs3/manual-manual": "One has to be a particular person to be the spouse of something . "
        "[X]'s spouse is [Y] . Therefore , [Y] is a particular [MASK] .",
        "rdfs5/manual-manual": "Place of death implies location . [X] implies place of death . "
        "Therefore , [X] implies [MASK] .",
        "rdfs7/manual-manual": "Place of death implies location . [X] died in [Y] . Therefore , [X][MASK] [Y] .",
        "rdfs9/manual-manual": "Every card game is a particular game . [X] is a particular card game . "
        "Therefore , [X] is a particular [MASK] .",
        "rdfs11/manual-manual": "Every card game is a particular game . Every [X] is a particular card game . "
        "Therefore , every [X] is a particular [MASK] .",
    }
    assert found["rdfs9/manual-manual", "first"] == (
        "Every card game is a particular game . Therefore , [X] is a particular [MASK] ."
    )
    assert found["rdfs9/manual-manual", "second"] == (
        "[X] is a particular card game . Therefore , [X] is a particular [MASK] ."
    )
    assert found["rdfs9/manual-manual", "neither"] == "Therefore , [X] is a particular [MASK] ."
    assert found["rdfs9/manual-manual", "other"] == (
        "Every bank is a particular company . [X] is a particular card game . Therefore , [X] is a particular [MASK] ."
    )
    assert found["rdfs11/soft-soft", "both"] == (
        "Card game <SCO1> <SCO2> <SCO3> game . <s4> [X] <SCO1> <SCO2> <SCO3> card game . <s5> "
        "[X] <SCO1> <SCO2> <SCO3> [MASK] ."
    )
    assert found["rdfs9/soft-soft", "both"].endswith(
        "<s4> [X] <TP1> <TP2> <TP3> card game . <s5> [X] <TP1> <TP2> <TP3> [MASK] ."
    )
    assert found["rdfs2/soft-manual", "both"] == (
        "Place of death <DM1> <DM2> <DM3> animal . [X] died in [Y] . Therefore , [X] <TP1> <TP2> <TP3> [MASK] ."
    )
    assert found["rdfs11/manual-soft", "first"] == (
        "Every card game is a particular game . <s5> every [X] is a particular [MASK] ."
    )
    assert found["rdfs2/manual-soft", "neither"] == "<s5> [X] is a particular [MASK] ."
    assert found["rdfs9/manual", "predisposition"] == "[X] is a particular [MASK] ."
    assert found["rdfs11/manual", "predisposition"] == "Every [X] is a particular [MASK] ."
    assert found["rdfs5/soft", "predisposition"] == "[X] <SPO1> <SPO2> <SPO3> [MASK] ."
    assert found["rdfs2/manual", "predisposition"] == "[X][MASK] [Y] ."


def test_premises_name_the_questions_that_decide_whether_they_are_known() -> None:
    statements = small()
    asked = memorizing_questions(statements, OntologyOptions())
    rows, premises = reasoning_questions(statements, asked, OntologyOptions())
    by_id = {row["question_id"]: row for row in (*asked, *rows)}
    assert len(by_id) == len(asked) + len(rows)
    for row in premises:
        question = by_id[row["question_id"]]
        form = question["template"].partition("/")[2].partition("-")[0]
        first = [by_id[one] for one in row["first"]]
        assert {one["qset"] for one in first} == {question["qset"]}
        assert {one["template"].endswith("/soft") for one in first} == {form == "soft"}
        task = RULES[question["task"]]
        assert len(first) == (3 if task == "SCO" and form == "manual" else 1)
        [second] = [by_id[one] for one in row["second"]]
        assert (second["task"], second["template"]) == ("predisposition", f"{question['rule']}/{form}")
        assert second["facts"] == question["facts"]
        held = {"rdfs2": " died in", "rdfs3": "'s spouse is", "rdfs5": "spouse", "rdfs9": "card game"}
        if question["rule"] in held and question["qset"] in {one.fact_id for one in statements.statements}:
            assert second["answers"] == [second["target"]]
    rdfs7 = [row for row in rows if row["task"] == "rdfs7" and row["template"] == "rdfs7/manual-manual"]
    assert [row["answers"] for row in rdfs7[:4]] == [[" is located in"]] * 4


def test_only_both_premises_are_shown_in_training() -> None:
    given = small()
    train = tuple(replace(one, split="train") for one in given.statements if one.subject in ("spouse", "bank"))
    test = tuple(one for one in given.statements if one.subject not in ("spouse", "bank"))
    rows, premises = reasoning_questions(replace(given, statements=(*train, *test)), [], OntologyOptions())
    split = {row["question_id"]: row["split"] for row in rows}
    shown = {(split[row["question_id"]], row["shown"]) for row in premises}
    assert {one for one in shown if one[0] == "train"} == {("train", "both")}
    assert {one for one in shown if one[0] == "test"} >= {("test", "both"), ("test", "neither")}


def test_a_subject_that_is_asked_is_not_trained_on() -> None:
    given = small()
    twice = Statement("SPO", "spouse", ("location",), "train")
    both = replace(given, statements=(*given.statements, twice))
    rows, _ = reasoning_questions(both, [], OntologyOptions())
    assert {row["split"] for row in rows} == {"test"}
    asked = memorizing_questions(both, OntologyOptions())
    assert {row["split"] for row in asked} == {"test"}
    released = memorizing_questions(both, OntologyOptions(compat="paper"))
    assert {row["split"] for row in released} == {"test", "train"}


def test_no_more_first_premises_than_wanted_and_a_larger_draw_holds_a_smaller() -> None:
    items = [Statement("SCO", f"class {number}", ("thing",), "test") for number in range(50)]
    few, more = draw_statements(items, 5, 1), draw_statements(items, 20, 1)
    assert (len(few), len(more)) == (5, 20)
    assert set(few) < set(more)
    assert set(few) == set(draw_statements(items[::-1], 5, 1))
    assert few != draw_statements(items, 5, 2)
    rows, _ = reasoning_questions(small(), [], OntologyOptions(premises=1))
    assert len({row["qset"] for row in rows if row["task"] == "rdfs9"}) == 1


def test_choices_do_not_depend_on_order_and_hold_one_right_answer() -> None:
    found = gather_statements(large(100), seed=0)
    names = tuple(f"class {number}" for number in range(40))
    statements = replace(found, classes=(*found.classes, *names))
    mixed = list(statements.statements)
    random.Random(2).shuffle(mixed)
    rows, premises = choice_questions(statements, OntologyOptions(seed=1))
    shuffled = replace(statements, statements=tuple(mixed), classes=statements.classes[::-1])
    again, _ = choice_questions(shuffled, OntologyOptions(seed=1))
    assert {row["question_id"]: row["choices"] for row in rows} == {row["question_id"]: row["choices"] for row in again}
    other, _ = choice_questions(statements, OntologyOptions(seed=2))
    assert {tuple(row["choices"]) for row in rows} != {tuple(row["choices"]) for row in other}
    for row in rows:
        if row["task"] in ("TP-choice", "SCO-choice", "DM-choice"):
            assert len(set(row["choices"])) == len(row["choices"]) == 20
        assert [one for one in row["choices"] if one in row["answers"]] == [row["target"]]
    by_id = {row["question_id"]: row for row in rows}
    assert premises
    for row in premises:
        assert (row["memory"], row["second"]) == ("right", [])
        [first] = row["first"]
        assert by_id[first]["qset"] == by_id[row["question_id"]]["qset"]
        assert row["shown"] in ("both", "second")


def test_the_control_is_never_about_what_follows() -> None:
    statements = Statements(
        statements=(
            Statement("SCO", "dog", ("mammal", "animal"), "test"),
            Statement("SCO", "mammal", ("animal",), "test"),
            Statement("SCO", "cat", ("mammal",), "test"),
            Statement("SCO", "song", ("work",), "test"),
            Statement("DM", "barks at", ("dog",), "test"),
            Statement("DM", "feeds", ("animal",), "test"),
            Statement("DM", "sung by", ("song",), "test"),
        ),
        classes=("dog", "mammal", "animal", "cat", "song", "work"),
        properties=("barks at", "feeds", "sung by"),
        patterns={one: make_pattern(f"[X] {one} [Y] .") for one in ("barks at", "feeds", "sung by")},
    )
    for seed in range(5):
        maker = RuleQuestionMaker(statements, OntologyOptions(seed=seed))
        test = maker.test_statements("rdfs9")
        chosen = maker.control_statements("rdfs9", test)
        about = {one.subject: chosen[one.fact_id].subject for one in test}
        assert about.items() >= {("dog", "song"), ("mammal", "song"), ("cat", "song")}
        test = maker.test_statements("rdfs2")
        chosen = maker.control_statements("rdfs2", test)
        assert chosen[test[0].fact_id].subject == "sung by"  # A dog is an animal, so "feeds" would be no control.


def test_a_question_set_is_whole_and_reads_back(tmp_path) -> None:
    given = small()
    trained = Statement("SCO", "chess", ("game", "activity"), "train")
    twice = replace(given, statements=(*given.statements, given.statements[0], trained), remarks=("Odd.",))
    made = make_ontology_questions(twice, OntologyOptions(source="by hand"))
    write_questions(made, tmp_path)
    found = read_questions(tmp_path)
    assert found.questions.equals(made.questions)
    assert made.about["remarks"][0] == "Odd."
    assert any("One statement of TP repeats the question of another row" in one for one in made.about["remarks"])
    assert made.about["counts"]["TP"] == {"test": 4}
    facts = {row["fact_id"]: row for row in made.facts.to_pylist()}
    bank = facts[given.statements[0].fact_id]
    assert (bank["subject"], bank["predicate"], bank["object"]) == ("BPER Banca", "type", "bank")
    assert bank["source"] == "by hand"
    frequencies = [(row["task"], row["relation"], row["answer"], row["count"]) for row in made.frequencies.to_pylist()]
    assert frequencies == [
        ("SCO", "SCO", "game", 1),
        ("SCO", "SCO", "activity", 1),
        ("SCO-choice", "SCO", "game", 1),
        ("SCO-choice", "SCO", "activity", 1),
    ]
    few = make_ontology_questions(given, OntologyOptions(tasks=("TP",), rules=("rdfs9",), choice=False))
    assert set(few.about["counts"]) == {"TP", "SCO", "rdfs9", "predisposition"}


def test_properties_that_are_said_alike_are_one_question_that_both_rely_on() -> None:
    given = small()
    alike = Statement("DM", "death", ("animal",), "test")
    patterns = {**given.patterns, "death": given.patterns["place of death"]}
    properties = (*given.properties, "death")
    both = replace(given, statements=(*given.statements, alike), patterns=patterns, properties=properties)
    made = make_ontology_questions(both, OntologyOptions(templates=("manual",), conjunctions=("manual",)))
    assert made.about["counts"]["DM"] == {"test": 2}
    ids = set(made.questions["question_id"].to_pylist())
    assert all(row["first"] and ids.issuperset(row["first"]) for row in made.premise_questions.to_pylist())
    assert not any("could not be asked" in remark for remark in made.about["remarks"])


@pytest.mark.parametrize("given", [{"rules": ["rdfs4"]}, {"templates": ["hard"]}, {"compat": "papers"}])
def test_unknown_names_are_refused(given) -> None:
    with pytest.raises(InputError, match=r"did you mean|there are"):
        OntologyOptions(**given)


def test_the_released_texts_come_back_only_when_asked_for() -> None:
    statements = make_ontology_questions(small(), OntologyOptions(compat="paper")).questions.to_pylist()
    prompts = {row["template"]: row["prompt"] for row in reversed(statements) if row["split"] == "test"}
    assert prompts["TP/1"] == "Bper banca is a [MASK] ."
    assert prompts["DM/1"] == "One has to be a particular [MASK] if one died in a place ."
    assert prompts["RG/1"] == "One has to be a particular [MASK] if one is a person's spouse ."
    first = "Card game is a game . [ X ] is a card game . Therefore, [ X ] is a particular [MASK] ."
    asked = {row["task"]: row["prompt"] for row in statements if row["prompt"] == first}
    assert set(asked) >= {"rdfs9", "rdfs11"}
    trained = {row["prompt"] for row in statements if row["task"] == "rdfs9" and row["split"] == "train"}
    tested = {row["prompt"] for row in statements if row["task"] == "rdfs9" and row["split"] == "test"}
    assert trained
    assert trained <= tested


def test_a_sentence_begins_with_a_capital_and_the_rest_of_a_name_stays() -> None:
    begins = {"patella": "Patella", "the Homestead Act": "The Homestead Act", "BPER Banca": "BPER Banca"}
    begins |= {"eBay": "eBay", ".gu": ".gu", "iPhone OS": "iPhone OS"}
    for name, shown in begins.items():
        statements = Statements((Statement("TP", name, ("thing",), "test"),), ("thing", "other"), (), {}, ())
        prompts = [row["prompt"] for row in memorizing_questions(statements, OntologyOptions(templates=("manual",)))]
        assert [prompt.startswith(f"{shown} ") for prompt in prompts] == [True] * 3
