"""The relational makers against brute force over small random worlds."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from stated_losses import accounts_of, asked_facts, reasons

from merkhet.core import SLOT
from merkhet.core.schemas import FACTS, NAMES, make_table, question_id
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import Schema, read_schema
from merkhet.questions.splits import check_splits

SCHEMA: dict[str, Any] = {
    "domains": {"geography": "general", "biology": "domain-specific", "law": "domain-specific"},
    "relations": {
        "capital": {
            "functional": True,
            "domain": "geography",
            "ask": ["object", "subject"],
            "templates": ["The capital of {the subject} is {object}.", "{object} is where {subject} has its capital."],
        },
        "near": {
            "complete": "both",
            "domain": "geography",
            "ask": ["object"],
            "templates": ["{subject} lies near {object}."],
        },
        "kind": {
            "complete": "object",
            "domain": "biology",
            "templates": ["{a subject} is {a object}.", "Every {subject} is {a object}."],
        },
        "lives": {
            "complete": "object",
            "templates": ["{subject} lives in {object}.", "Since {start}, {subject} has lived in {object}."],
            "scopes": [{"kind": "country", "templates": ["The country in which {subject} lives is {object}."]}],
        },
        "home": {
            "complete": "object",
            "completion": False,
            "templates": ["The home of {subject} belongs to {object}."],
        },
        "weight": {"functional": True, "templates": ["The weight of {subject} is {object} kg."], "checking": False},
    },
    "hierarchies": {"kinds": {"predicate": "kind", "aspect": "kind", "domain": "biology", "form": "a"}},
    "comparisons": {
        "weight": {
            "most": ["Which is heaviest? {members}: [MASK]."],
            "least": ["Of {members}, the lightest is [MASK]."],
        }
    },
    "frames": {
        "checking": ['Is it true that "{statement}"? [MASK].', "{statement} The answer is [MASK]."],
        "choices": ["Choose from {choices}: {statement}", "{statement} ({choices})"],
        "distinction": ["Among {members}, [MASK] is the outlier by {aspect}."],
    },
}
RULES = {
    "symmetric": ["near"],
    "transitive": ["kind"],
    "chain": [{"if": ["lives", "near"], "then": "home"}],
}
OPTIONS = {"checks": 60, "rounds": 2, "shares": {"train": 0.5, "test": 0.5}}


class World:
    """A random world as rows, and what is true in it by brute force."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        draw = random.Random(seed)
        countries = [f"Land{n}" for n in range(9)]
        towns = [f"Town{n}" for n in range(14)]
        beasts = [f"beast{n}" for n in range(60)]
        groups = [f"group{n}" for n in range(6)]
        self.kinds = dict.fromkeys(countries, "country") | dict.fromkeys(towns, "town")
        self.kinds |= dict.fromkeys(beasts, "beast") | dict.fromkeys(groups, "group")
        facts: set[tuple[str, str, str, str | None]] = set()
        for number, country in enumerate(countries):
            facts.add((country, "capital", towns[number % 7], None))
        for one, other in combinations(towns, 2):
            if draw.random() < 0.15:
                facts.add((one, "near", other, None))
        for number, group in enumerate(groups[2:], 2):
            facts.add((group, "kind", groups[draw.randrange(number)], None))
        for beast in beasts:
            facts.add((beast, "kind", draw.choice(groups), None))
            for _ in range(draw.choice([1, 1, 2])):
                facts.add((beast, "lives", draw.choice(towns + countries), draw.choice([None, "1990", "2001"])))
        self.facts = sorted(facts, key=str)
        self.weights = {beast: float(draw.randrange(1, 4000)) for beast in beasts}
        self.true = {(s, p, o) for s, p, o, _ in self.facts}
        self.stated = set(self.true)
        grown = True
        while grown:
            near = {(o, "near", s) for s, p, o in self.true if p == "near"}
            kinds = {
                (a, "kind", d) for a, p, b in self.true if p == "kind" for c, q, d in self.true if q == p and b == c
            }
            homes = {
                (a, "home", d)
                for a, p, b in self.true
                if p == "lives"
                for c, q, d in self.true
                if q == "near" and b == c
            }
            more = {fact for fact in near | kinds | homes if fact[0] != fact[2]}
            grown = not more <= self.true
            self.true |= more

    def rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        facts: list[dict[str, Any]] = [
            {"subject": s, "predicate": p, "object": o, "start": start} for s, p, o, start in self.facts
        ]
        for number, (name, weight) in enumerate(self.weights.items()):
            domain = ("biology", "law")[number % 2]
            facts.append({"subject": name, "predicate": "weight", "value": weight, "unit": "kg", "domain": domain})
        return facts, [{"entity": name, "label": name, "kind": kind} for name, kind in self.kinds.items()]


def write(folder: Path, facts: list[dict[str, Any]], names: list[dict[str, Any]], rules: dict[str, Any]) -> Path:
    import pyarrow.parquet as pq

    folder.mkdir()
    pq.write_table(make_table(FACTS, facts), folder / "facts.parquet")
    pq.write_table(make_table(NAMES, names), folder / "names.parquet")
    store = folder / "kb.duckdb"
    import_knowledge([str(folder)], store)
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    infer(store, declared=read_rules(folder / "rules.yaml"))
    return store


def schema_of(folder: Path, content: dict[str, Any] = SCHEMA) -> Schema:
    (folder / "schema.yaml").write_text(yaml.safe_dump(content))
    return read_schema(folder / "schema.yaml")


def made_from(store: Path, schema: Schema, seed: int = 0, **options: Any) -> QuestionSet:
    with KnowledgeBase.open(store) as knowledge:
        return make_benchmark(
            DuckTables(knowledge.connection), schema, MakerOptions("kmir", seed=seed, **{**OPTIONS, **options})
        )


@pytest.fixture(scope="module", params=[0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, QuestionSet, Path]:
    folder = tmp_path_factory.mktemp("world")
    one = World(request.param)
    store = write(folder / "kb", *one.rows(), RULES)
    return one, made_from(store, schema_of(folder), request.param), folder


def rows_of(questions: QuestionSet, task: str) -> list[dict[str, Any]]:
    return [row for row in questions.questions.to_pylist() if row["task"] == task]


def read_back(text: str, template: str) -> dict[str, str] | None:
    """The names in a sentence by trying all names in all places: slow, and obvious."""
    import re

    pattern = re.escape(template)
    for place in ("subject", "object", "start"):
        for form in ("a ", "the ", ""):
            pattern = pattern.replace(re.escape("{" + form + place + "}"), f"(?:an? |the )?(?P<{place}>\\S+?)")
    found = re.fullmatch(pattern, text, re.IGNORECASE)
    return found.groupdict() if found else None


def plain(text: str) -> str:
    """A name without its article, as the world spells it."""
    bare = text.rsplit(maxsplit=1)[-1]
    return bare[0].lower() + bare[1:] if bare.lower().startswith(("beast", "group")) else bare


def statement_of(row: dict[str, Any], text: str) -> tuple[str, str, str]:
    relation, _, number = row["template"].partition("/")
    body: dict[str, Any] = SCHEMA["relations"][relation]
    if "-" in number:
        template = body["scopes"][0]["templates"][0]
    else:
        template = body["templates"][int(number) - 1]
    found = read_back(text, template)
    assert found is not None, (text, template)
    return plain(found["subject"]), relation, plain(found["object"])


def test_ids_are_those_of_the_questions_content(world: tuple[World, QuestionSet, Path]) -> None:
    rows = world[1].questions.to_pylist()
    assert all(row["question_id"] == question_id(row) for row in rows)
    assert len({row["question_id"] for row in rows}) == len(rows)


def stated_and_right(one: World, row: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The answers of a completion that are stated, and all that are right, by a plain walk over the facts."""
    subject, relation, obj = statement_of(row, row["prompt"].replace(SLOT, row["target"]))
    assert (subject, relation, obj) in one.stated
    timed = "Since" in row["prompt"]
    start = row["prompt"].split(",")[0].split()[-1] if timed else None

    def fits(fact: tuple[str, str, str, str | None]) -> bool:
        return start is None or fact[3] == start

    if plain(row["target"]) == obj:
        stated = {f[2] for f in one.facts if f[:2] == (subject, relation) and fits(f)}
        right = {o for s, p, o in one.true if (s, p) == (subject, relation)}
    else:
        stated = {f[0] for f in one.facts if f[1:3] == (relation, obj) and fits(f)}
        right = {s for s, p, o in one.true if (p, o) == (relation, obj)}
    if row["template"].endswith("-country"):
        assert len(stated) > 1
        stated = {name for name in stated if one.kinds[name] == "country"}
        right = {name for name in right if one.kinds[name] == "country"}
    return stated, stated if timed else right


def test_completions_ask_for_the_only_stated_answer_and_take_all_that_follows(
    world: tuple[World, QuestionSet, Path],
) -> None:
    one, questions, _ = world
    rows = [row for row in rows_of(questions, "completion") if not row["template"].startswith("weight")]
    assert {row["template"].partition("/")[0] for row in rows} == {"capital", "near", "kind", "lives"}
    for row in rows:
        assert row["prompt"].count(SLOT) == 1
        stated, right = stated_and_right(one, row)
        assert len(stated) == 1
        assert {plain(answer) for answer in row["answers"]} == right


def test_every_unique_fact_is_asked_in_every_paraphrase(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    rows = rows_of(questions, "completion")
    for country, _, town in (fact for fact in one.stated if fact[1] == "capital"):
        shared = sum(1 for s, p, o in one.stated if p == "capital" and o == town)
        own = [
            row for row in rows if row["template"].startswith("capital") and country in row["prompt"] + row["target"]
        ]
        assert len([row for row in own if town in row["target"]]) == 2
        assert len([row for row in own if country in row["target"]]) == (2 if shared == 1 else 0)


def test_checks_are_balanced_and_say_what_is_so(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    rows = rows_of(questions, "checking")
    assert len(rows) >= 40
    assert sum(row["target"].lower() == "yes" for row in rows) * 2 == len(rows)
    for row in rows:
        text = row["prompt"]
        if text.startswith("Is it true"):
            inner = text.split('"')[1]
            assert row["choices"] == ["Yes", "No"]
        else:
            inner = text.removesuffix(f" The answer is {SLOT}.")
            assert row["choices"] == ["yes", "no"]
        assert (statement_of(row, inner) in one.true) == (row["target"].lower() == "yes")


def test_the_odd_one_is_the_only_reading_and_its_place_is_balanced(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    rows = rows_of(questions, "distinction")
    assert rows
    above: dict[str, set[str]] = {}
    for s, p, o in one.true:
        if p == "kind":
            above.setdefault(s, set()).add(o)
    for row in rows:
        names = [plain(name) for name in row["choices"]]
        odd = plain(row["target"])
        readings = {
            left for left in names if set.intersection(*(above[name] for name in names if name != left)) - above[left]
        }
        assert readings == {odd}
        assert all(name in row["prompt"] for name in row["choices"])
    places = [row["choices"].index(row["target"]) for row in rows]
    assert max(places.count(place) for place in range(4)) - min(places.count(place) for place in range(4)) <= 1


def test_reasoning_asks_what_follows_and_is_not_stated(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    rows = [row for row in rows_of(questions, "reasoning") if row["rule"] != "comparison"]
    facts = {row["fact_id"]: row for row in questions.facts.to_pylist()}
    assert {"SymmetricOP", "TransitiveOP", "SubOP(OPChain)"} <= {row["rule"] for row in rows}
    for row in rows:
        conclusion = facts[row["facts"][0]]
        found = (conclusion["subject"], conclusion["predicate"], conclusion["object"])
        assert found in one.true and found not in one.stated
        assert row["facts"][1:] == conclusion["premises"]
        assert all(premise in facts for premise in conclusion["premises"])
        right = {o for s, p, o in one.true if (s, p) == found[:2]}
        if row["choices"] is None:
            assert right == {plain(row["target"])}
        else:
            assert len(row["choices"]) == 4
            assert [plain(text) for text in row["choices"] if plain(text) in right] == [plain(row["target"])]
            assert all(text.lower() in row["prompt"].lower() for text in row["choices"])


def test_comparisons_have_a_clear_winner(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    rows = [row for row in rows_of(questions, "reasoning") if row["rule"] == "comparison"]
    assert {row["template"].split("/")[1].split("-")[0] for row in rows} == {"most", "least"}
    for row in rows:
        values = sorted((one.weights[name] for name in row["choices"]), reverse="most" in row["template"])
        assert one.weights[row["target"]] == values[0]
        assert abs(values[0] - values[1]) > 0.1 * max(values[:2])


def test_the_order_of_rows_changes_nothing_and_the_seed_does(
    world: tuple[World, QuestionSet, Path], tmp_path: Path
) -> None:
    one, questions, folder = world
    facts, names = one.rows()
    random.Random(9).shuffle(facts)
    random.Random(8).shuffle(names)
    store = write(tmp_path / "kb", facts, names, RULES)
    schema = schema_of(folder)
    again = made_from(store, schema, one.seed)
    assert again.questions.equals(questions.questions)
    assert again.candidates.equals(questions.candidates)
    assert not made_from(store, schema, one.seed + 100).questions.equals(questions.questions)


def test_no_fact_straddles_splits(world: tuple[World, QuestionSet, Path]) -> None:
    _, questions, _ = world
    assert {row["split"] for row in questions.questions.to_pylist()} == {"train", "test"}
    check_splits(questions.questions, questions.facts)


def test_every_fact_is_asked_or_counted_with_a_reason(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, _ = world
    accounts = accounts_of(questions)
    assert set(accounts) == {"completion", "distinction", "checking", "reasoning"}
    for task, account in accounts.items():
        assert account.askable == len(asked_facts(questions, task)) > 0, task
    stated = [fact for fact in one.facts if fact[1] != "home"]
    assert accounts["completion"].total == len(stated) + len(one.weights)
    assert accounts["checking"].total == len(stated)
    assert accounts["distinction"].total == sum(fact[1] == "kind" for fact in stated)
    assert reasons(accounts["completion"])["the sentence has several right answers"] > 0


def test_fewer_paraphrases_are_some_of_all(world: tuple[World, QuestionSet, Path]) -> None:
    one, questions, folder = world
    some = made_from(folder / "kb" / "kb.duckdb", schema_of(folder), one.seed, paraphrases=1)
    everything = {row["question_id"] for row in rows_of(questions, "completion")}
    few = {row["question_id"] for row in rows_of(some, "completion")}
    assert few < everything


def small(tmp_path: Path, facts: list[dict[str, Any]], schema: dict[str, Any], names: list[str]) -> QuestionSet:
    store = write(tmp_path / "kb", facts, [{"entity": name, "label": name} for name in names], {"symmetric": ["near"]})
    return made_from(store, schema_of(tmp_path, schema), shares={"test": 1.0})


def test_what_cannot_be_made_is_said(tmp_path: Path) -> None:
    facts = [{"subject": f"b{n}", "predicate": "kind", "object": "beast"} for n in range(5)]
    facts += [
        {"subject": "b0", "predicate": "near", "object": "b1"},
        {"subject": "b0", "predicate": "near", "object": "b2"},
    ]
    facts += [{"subject": "b0", "predicate": "eats", "object": "b1"}]
    facts += [{"subject": "b1", "predicate": "weight", "value": 3.0, "unit": "kg"}]
    schema = {
        **SCHEMA,
        "relations": {**SCHEMA["relations"], "near": {"ask": "subject", "templates": ["{subject} is by {object}."]}},
    }
    found = small(tmp_path, facts, schema, ["b0", "b1", "b2", "b3", "b4", "beast"])
    remarks = "\n".join(found.about["remarks"])
    assert "the hierarchy 'kinds' has only one category (beast)" in remarks
    assert "the predicate 'eats' has no templates: nothing is asked about its 1 fact" in remarks
    assert "'weight' has 1 subject with a number; a question needs four" in remarks
    assert "kind: 5 facts are not checked: no wrong name is available" in remarks
    assert found.about["empty_domains"] == ["geography", "law"]


def test_names_with_quotes_and_line_breaks_are_asked_about(tmp_path: Path) -> None:
    names = ["L'Aquila", 'The "Rock"', "A\nB", "Ça {x}", "Straße"]
    facts = [
        {"subject": name, "predicate": "capital", "object": names[(place + 1) % 5]} for place, name in enumerate(names)
    ]
    found = small(tmp_path, facts, SCHEMA, names)
    rows = rows_of(found, "completion")
    assert all(row["question_id"] == question_id(row) for row in found.questions.to_pylist())
    assert any("L'Aquila" in row["prompt"] for row in rows)
    assert not any("\n" in row["prompt"] + row["target"] for row in rows)
    assert len({answer for row in rows for answer in row["answers"]}) == 5
