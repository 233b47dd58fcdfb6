"""Closed relations list their choices; names that facts link to a sentence are distractors only where they fit."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stated_losses import accounts_of, asked_facts
from test_evidence import SCHEMA, IncompleteWorld, wrong_claims
from test_relational import schema_of, write

from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions

FRAMES = {"checking": ["{statement} True? [MASK]."], "choices": ["One of {choices}: {statement}"]}


@pytest.mark.parametrize("seed", range(3))
def test_completion_of_closed_relations_lists_four_choices_that_are_wrong_but_one(seed: int, tmp_path: Path) -> None:
    world = IncompleteWorld(seed)
    content = copy.deepcopy(SCHEMA)
    for name in ("born-in", "speaks"):
        content["relations"][name]["closed"] = True
    made = world.questions(tmp_path, content, seed=seed)
    candidates = {row["candidate_set"]: row["candidates"] for row in made.candidates.to_pylist()}
    rows = [row for row in made.questions.to_pylist() if row["task"] == "completion"]
    closed = [row for row in rows if row["template"].partition("/")[0] in ("born-in", "speaks")]
    others = [row for row in rows if row not in closed]
    assert closed and others
    assert all(row["choices"] is None for row in others)
    for row in closed:
        assert len(row["choices"]) == len(set(row["choices"])) == 4
        assert row["target"] in row["choices"]
        assert row["nearness"]
        assert all(choice.lower() in row["prompt"].lower() for choice in row["choices"])
        claims = wrong_claims(row, candidates)
        assert len(claims) == 3
        assert not set(claims) & world.full, row
    # Both fields are asked, and so are facts whose sentence has several right answers.
    assert {row["prompt"].rpartition(": ")[2].startswith("[MASK]") for row in closed} == {True, False}
    spoken = [s for s, p, _ in world.known if p == "speaks"]
    several = {subject for subject in spoken if spoken.count(subject) > 1}
    assert any(f"{subject.capitalize()} speaks [MASK]" in row["prompt"] for row in closed for subject in several)
    assert accounts_of(made)["completion"].askable == len(asked_facts(made, "completion"))


def make(folder: Path, facts: list[tuple[str, str, str]], kinds: dict[str, str], content: dict[str, Any]) -> list[Any]:
    """Questions about facts whose entities are called by their ids up to a hash sign."""
    rows = [{"subject": s, "predicate": p, "object": o} for s, p, o in facts]
    entities = sorted({entity for s, _, o in facts for entity in (s, o)})
    names = [{"entity": e, "label": e.partition("#")[0], "kind": kinds[e]} for e in entities]
    store = write(folder / "kb", rows, names, {})
    with KnowledgeBase.open(store) as knowledge:
        tables = DuckTables(knowledge.connection)
        made = make_benchmark(tables, schema_of(folder, content), MakerOptions("kmir", checks=1000))
    return made.questions.to_pylist()


def test_names_linked_to_a_sentence_are_no_distractors_of_transitive_relations(tmp_path: Path) -> None:
    classes = ("mammal", "bird", "fish", "reptile", "insect")
    animals = {f"{name}{n}": name for name in classes for n in range(6)}
    facts = [(animal, "is-a", name) for animal, name in animals.items()]
    # A male mammal is a kind of its species, which is none of the listed classes.
    facts += [(f"mammal{n}", "male-of", f"species{n}") for n in range(6)]
    facts += [(f"species{n}", "is-a", "mammal") for n in range(6)]
    kinds = {name: "animal" for fact in facts for name in (fact[0], fact[2])}
    relation = {"complete": "object", "templates": ["{subject} is a kind of {object}."]}
    content = {"relations": {"is-a": {**relation, "transitive": True}}, "frames": FRAMES}

    def false_kinds(rows: list[Any]) -> set[str]:
        rows = [row for row in rows if row["task"] == "checking" and row["target"] == "No"]
        assert len(rows) >= 12
        return {re.match(r"(\w+) is a kind of (\w+)\.", row["prompt"])[2] for row in rows}  # type: ignore[index]

    assert false_kinds(make(tmp_path, facts, kinds, content)) <= set(classes)


def test_names_of_several_kinds_bring_no_names_of_another_kind(tmp_path: Path) -> None:
    lands = [f"Land{n}" for n in range(12)]
    facts = [(lands[n], "borders", lands[n - 1]) for n in range(12)]
    facts += [(lands[n - 1], "borders", lands[n]) for n in range(12)]
    # Land0 is also a city of Land1, as Monaco is a country and a city.
    facts += [(f"{city}#city", "city-in", land) for land in lands for city in (f"{land}ville", f"{land}burg")]
    facts += [("Land0#city", "city-in", "Land0"), ("Land2#city", "city-in", "Land1")]
    kinds = {name: "city" if "#city" in name else "land" for fact in facts for name in (fact[0], fact[2])}
    borders = {"complete": "both", "templates": ["A country that borders {the subject} is {the object}."]}
    city = {"complete": "object", "templates": ["{subject} is a city of {the object}."]}
    content = {"relations": {"borders": borders, "city-in": city}, "frames": FRAMES}
    rows = [row for row in make(tmp_path, facts, kinds, content) if row["task"] == "checking"]
    assert len(rows) > 20
    for row in rows:
        if row["template"].startswith("borders"):
            match = re.match(r"A country that borders (Land\d+) is (Land\d+)\. True", row["prompt"])
            assert match, row["prompt"]
            assert row["target"] == ("Yes" if (match[1], "borders", match[2]) in facts else "No")
