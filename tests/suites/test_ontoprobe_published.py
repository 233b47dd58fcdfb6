"""OntoProbe's own files: read from where a user put them, and the questions that the real ones give."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from merkhet.core.errors import InputError
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.published import read_published_statements
from merkhet.suites.ontoprobe.questions import OntologyOptions, make_ontology_questions


def lines(rows) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def written(folder: Path, **files) -> Path:
    for name, rows in files.items():
        path = folder / name.replace("__", "/").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows) if path.suffix == ".json" else lines(rows), encoding="utf-8")
    return folder


TYPES = [{"uuu": f"thing {number}", "xxx": ["dog", "animal"]} for number in range(22)]
CLASSES = [{"rdfs:label": name} for name in ("animal", "dog", "plant")]


def test_one_file_is_enough_and_may_stand_in_the_folder_itself(tmp_path: Path) -> None:
    folder = written(tmp_path, type_jsonl=TYPES, class_json=CLASSES)
    found = read_published_statements(folder)
    assert [one.split for one in found.statements] == ["train"] * 10 + ["dev"] * 10 + ["test"] * 2
    assert found.classes == ("animal", "dog", "plant")
    assert found.properties == ()
    made = make_ontology_questions(found)
    assert made.about["counts"]["TP"] == {"train": 40, "dev": 40, "test": 8}


def test_without_a_list_of_classes_those_of_the_rows_are_the_candidates(tmp_path: Path) -> None:
    found = read_published_statements(written(tmp_path, memorizing__type_jsonl=TYPES))
    assert found.classes == ("animal", "dog")
    assert any("no class.json" in remark for remark in found.remarks)


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    for row, message in (
        ("{", r"type\.jsonl, row 2: not valid JSON"),
        ("[]", r"type\.jsonl, row 2: a row must be a JSON object"),
        ({"uuu": "a"}, r"type\.jsonl, row 2: a row must have 'uuu' and 'xxx'"),
        ({"uuu": 3, "xxx": ["dog"]}, r"type\.jsonl, row 2: 'uuu' must be text, got 3"),
        ({"uuu": "a", "xxx": []}, r"type\.jsonl, row 2: 'xxx' is empty"),
        ({"uuu": "a", "xxx": "dog"}, r"type\.jsonl, row 2: 'xxx' must be a list, got 'dog'"),
    ):
        with pytest.raises(InputError, match=message):
            read_published_statements(written(tmp_path, type_jsonl=[TYPES[0], row]))


def test_broken_lists_and_patterns_are_named(tmp_path: Path) -> None:
    domain = [{"uuu": {"spouse": "[X] is married"}, "xxx": ["person"]}]
    with pytest.raises(InputError, match=r"domain\.jsonl, row 1: the pattern"):
        read_published_statements(written(tmp_path / "a", domain_jsonl=domain))
    with pytest.raises(InputError, match=r"class\.json, row 2: there is no text"):
        read_published_statements(written(tmp_path / "b", type_jsonl=TYPES, class_json=[CLASSES[0], {"id": 3}]))
    with pytest.raises(InputError, match=r"has none of type\.jsonl"):
        read_published_statements(tmp_path)
    (tmp_path / "type.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"type\.jsonl has no rows"):
        read_published_statements(tmp_path)


@pytest.fixture(scope="module")
def published(shared: Path):
    folder = shared / "data" / "ontoprobe"
    if not folder.is_dir():
        pytest.skip("OntoProbe's files are not in shared/")
    return read_published_statements(folder)


@pytest.fixture(scope="module")
def made(published):
    return make_ontology_questions(published)


@pytest.fixture(scope="module")
def rows(made):
    shown = {row["question_id"]: row["shown"] for row in made.premise_questions.to_pylist()}
    return [{**row, "shown": shown.get(row["question_id"])} for row in made.questions.to_pylist()]


def test_the_published_counts(published) -> None:
    counts = Counter((one.task, one.split) for one in published.statements)
    tested = {"TP": 8839, "SCO": 701, "SPO": 39, "DM": 30, "RG": 28}
    assert counts == {
        (task, s): 10 if s != "test" else n for task, n in tested.items() for s in ("train", "dev", "test")
    }
    assert (len(published.classes), len(published.properties), len(published.patterns)) == (783, 82, 82)
    said = " ".join(published.remarks)
    assert "70 rows of type.jsonl are repeated" in said
    assert "35 subjects of type.jsonl have two rows" in said
    assert "3 right answers of subClassOf.jsonl" in said
    assert "'home stadium' is called 'home venue'" in said
    assert "'contributor' is called 'contributor to the creative work or subject'" in said
    subjects = {one.subject for one in published.statements if one.task in ("SPO", "DM", "RG")}
    assert subjects <= set(published.properties)


@pytest.mark.slow
def test_every_statement_is_asked_in_every_form(made, rows) -> None:
    counts = made.about["counts"]
    # 8,839 rows of TP in test, 70 of them repeated; 4 templates.
    assert counts["TP"]["test"] == (8839 - 70) * 4
    assert counts["SCO"]["test"] == 701 * 4
    assert counts["SPO"] == {"train": 18, "dev": 20, "test": 78}
    for rule, task in RULES.items():
        number = {"SCO": 701, "SPO": 39, "DM": 30, "RG": 28}[task]
        by_form = Counter(
            (row["template"], row["shown"]) for row in rows if row["task"] == rule and row["split"] == "test"
        )
        assert set(by_form.values()) == {number}
        assert len(by_form) == 4 * 5
    assert counts["TP-choice"] == counts["SCO-choice"] == {"test": 500}


@pytest.mark.slow
def test_inputs_of_different_rules_differ(rows) -> None:
    """But for what shows no premise about the pseudoword, where two rules may ask for the same."""
    rules = defaultdict(set)
    for row in rows:
        if row["shown"] in ("both", "other"):
            rules[row["prompt"]].add(row["rule"])
    assert all(len(found) == 1 for found in rules.values())
    asked = {(row["rule"], row["template"]): row["prompt"] for row in rows if row["shown"] == "neither"}
    for form in ("manual-manual", "soft-soft"):
        assert asked["rdfs9", f"rdfs9/{form}"] != asked["rdfs11", f"rdfs11/{form}"]


@pytest.mark.slow
def test_nothing_of_test_is_trained_on(published, rows) -> None:
    subjects = {one.fact_id: one.subject for one in published.statements}
    for rule in RULES:
        asked = [row for row in rows if row["rule"] == rule]
        test = [row for row in asked if row["split"] == "test"]
        other = [row for row in asked if row["split"] != "test"]
        assert {row["shown"] for row in other} == {"both"}
        for key in (lambda row: row["qset"], lambda row: row["prompt"], lambda row: subjects[row["qset"]]):
            assert {key(row) for row in test}.isdisjoint({key(row) for row in other})
        assert 9 * 4 <= sum(row["split"] == "train" for row in other) <= 10 * 4
    prompts = defaultdict(set)
    for row in rows:
        if row["rule"] is None and "choice" not in row["task"]:
            prompts[row["task"], row["prompt"]].add(row["split"] == "test")
    assert all(len(found) == 1 for found in prompts.values())


@pytest.mark.slow
def test_the_control_says_nothing_that_is_right(published, rows) -> None:
    golds = defaultdict(set)
    for one in published.statements:
        golds[one.task, one.subject].update(one.golds)
    facts = {one.fact_id: one for one in published.statements}
    checked = 0
    for row in rows:
        if row["shown"] == "other" and row["rule"] != "rdfs7":
            own = facts[row["qset"]]
            kind = "SPO" if own.task == "SPO" else "SCO"
            right = set(own.golds)
            for gold in own.golds:
                right |= golds[kind, gold]
            assert right.isdisjoint(row["answers"])
            assert own.subject not in row["answers"] or own.task in ("DM", "RG")
            checked += 1
    assert checked > 5000


@pytest.mark.slow
def test_choices_are_twenty_with_one_right(rows) -> None:
    asked = [row for row in rows if row["task"].endswith("-choice")]
    assert len(asked) > 3000
    for row in asked:
        assert len(row["choices"]) == len(set(row["choices"])) == 20
        assert [one for one in row["choices"] if one in row["answers"]] == [row["target"]]


@pytest.mark.slow
def test_prompts_are_plain_english(rows) -> None:
    for row in rows:
        words = row["prompt"].split(" ")
        assert row["prompt"].endswith(" .")
        if row["task"] != "TP" and row["task"] != "TP-choice":
            assert "" not in words
            for article, word in itertools.pairwise(words):
                assert article != "a" or word[:1] not in "aeio", row["prompt"]


@pytest.mark.slow
def test_compat_gives_the_released_texts(published) -> None:
    options = OntologyOptions(compat="paper", templates=("manual",), conjunctions=("manual",), choice=False)
    found = make_ontology_questions(published, options)
    asked = found.questions.to_pylist()
    by_rule = defaultdict(set)
    controls = {row["question_id"] for row in found.premise_questions.to_pylist() if row["shown"] == "other"}
    for row in asked:
        if row["question_id"] not in controls:
            by_rule[row["task"]].add(row["prompt"])
    assert by_rule["rdfs9"] == by_rule["rdfs11"]
    assert "Bper banca is a [MASK] ." in by_rule["TP"] or not any("BPER" in text for text in by_rule["TP"])
    assert "One has to be a particular [MASK] if one died in a place ." in by_rule["DM"]
    train = {row["qset"] for row in asked if row["task"] == "rdfs9" and row["split"] == "train"}
    test = {row["qset"] for row in asked if row["task"] == "rdfs9" and row["split"] == "test"}
    assert len(train) == 10
    assert train < test
