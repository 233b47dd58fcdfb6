"""Aliases of right answers are right and no candidates, in random worlds and in small ones made by hand."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_relational import (
    RULES,
    SCHEMA,
    World,
    made_from,
    plain,
    rows_of,
    schema_of,
    stated_and_right,
    statement_of,
    write,
)

from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.engine.score_step import question_groups
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.metrics.text_overlap import normalised_words
from merkhet.questions.makers.candidate_sets import group_targets
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import Relation, Schema


def with_aliases(names: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Give two thirds of the names aliases: new ones, shared ones, and names of other entities in another spelling."""
    draw = random.Random(seed)
    labels = [row["label"] for row in names]
    rows = []
    for row in names:
        same_kind = [other["label"] for other in names if other["kind"] == row["kind"] and other is not row]
        aliases = [
            f"also-{row['label']}",
            f"nick{draw.randrange(20)}",
            draw.choice([str.upper, str.lower, "{}.".format, "The {}".format])(draw.choice(same_kind)),
            draw.choice(labels),
            f"The {row['label']}",
        ]
        chosen = draw.sample(aliases, draw.choice([0, 1, 3]))
        rows.append({**row, "aliases": [alias for alias in dict.fromkeys(chosen) if alias != row["label"]]})
    return rows


def key(text: str) -> tuple[str, ...]:
    return tuple(normalised_words(text))


class Names:
    """What each label is also called, by plain loops; in these worlds, no two entities share a label."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.aliases = defaultdict(list, {row["label"]: row["aliases"] for row in rows})

    def keys(self, label: str) -> set[tuple[str, ...]]:
        return {key(alias) for alias in self.aliases[label]}

    def are_alike(self, one: str, other: str) -> bool:
        return one != other and (key(one) in self.keys(other) or key(other) in self.keys(one))


@pytest.fixture(scope="module", params=[0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, QuestionSet, Names]:
    folder = tmp_path_factory.mktemp("aliases")
    one = World(request.param)
    facts, names = one.rows()
    names = with_aliases(names, request.param)
    store = write(folder / "kb", facts, names, RULES)
    return one, made_from(store, schema_of(folder), request.param), Names(names)


def is_number(row: dict[str, Any]) -> bool:
    return bool(row["task"] == "completion" and row["template"].startswith("weight/"))


def candidates_of(questions: QuestionSet, row: dict[str, Any]) -> list[str]:
    if row["choices"] is not None:
        return list(row["choices"])
    sets = {line["candidate_set"]: line["candidates"] for line in questions.candidates.to_pylist()}
    return list(sets[row["candidate_set"]])


def test_every_alias_of_a_right_answer_is_right_and_nothing_else(world: tuple[World, QuestionSet, Names]) -> None:
    one, questions, names = world
    also = 0
    for row in questions.questions.to_pylist():
        if row["task"] == "checking" or is_number(row):
            assert len(row["answers"]) == 1
            continue
        right = stated_and_right(one, row)[1] if row["task"] == "completion" else {plain(row["target"])}
        keys = set.union(*(names.keys(label) for label in right))
        assert {key(answer) for answer in row["answers"]} == {key(label) for label in right} | keys
        also += bool(keys)
    assert also > 100


def test_an_alias_fills_the_slot_as_the_answer_does(world: tuple[World, QuestionSet, Names]) -> None:
    _, questions, _ = world
    for row in rows_of(questions, "completion"):
        if row["template"].startswith("kind"):
            assert all(answer.startswith(("a ", "an ")) for answer in row["answers"])
        if row["prompt"].startswith("[MASK]"):
            assert all(answer[0] == answer[0].upper() for answer in row["answers"])


def test_no_candidate_is_what_a_right_answer_is_also_called(world: tuple[World, QuestionSet, Names]) -> None:
    one, questions, names = world
    left_out, colliding, smaller = 0, set(), set()
    for row in questions.questions.to_pylist():
        if row["task"] == "checking" or is_number(row):
            continue
        offered = candidates_of(questions, row)
        assert row["target"] in offered
        right = stated_and_right(one, row)[1] if row["task"] == "completion" else {plain(row["target"])}
        others = {plain(text) for text in offered} - {plain(row["target"])}
        assert not {(a, b) for a in right for b in others if names.are_alike(a, b)}, row
        assert {plain(text) for text in set(row["answers"]) & set(offered)} <= right
        if row["choices"] is None:
            relation = row["template"].partition("/")[0]
            target = plain(row["target"])
            place = 2 if statement_of(row, row["prompt"].replace("[MASK]", row["target"]))[2] == target else 0
            field = {fact[place] for fact in one.true if fact[1] == relation}
            alike = {name for name in field if any(names.are_alike(name, other) for other in field)}
            # Questions share sets, so that further names may be missing, but none that is like no other name.
            assert field - alike <= {plain(text) for text in offered} <= field, row
            left_out += len(offered) < len(field)
            if any(names.are_alike(name, label) for name in field - {target} for label in right):
                colliding.add(target)
            elif len(offered) < len(field):
                smaller.add(target)
    assert smaller <= colliding
    assert left_out > 5


def test_aliases_are_not_counted_as_further_right_answers(world: tuple[World, QuestionSet, Names]) -> None:
    one, questions, _ = world
    rows = questions.questions.to_pylist()
    counts = questions.right_counts()
    groups = question_groups(questions, ["conflict"])
    several = 0
    for row, count, question in zip(rows, counts, questions.as_questions(), strict=True):
        offered = [text for text in candidates_of(questions, row) if text in row["answers"]]
        assert count == len(offered) == len(question.right_candidates) >= 1
        assert groups[row["question_id"]]["conflict"] == ("yes" if count > 1 else "no")
        several += count > 1
        if row["task"] == "completion" and not is_number(row):
            assert count <= len(stated_and_right(one, row)[1])
    assert 0 < several < len(rows)


def test_few_candidate_sets_serve_many_answers() -> None:
    draw = random.Random(3)
    left_out: dict[str, set[str]] = defaultdict(set)
    for _ in range(600):
        one, other = draw.sample(range(800), 2)
        left_out[f"n{one}"].add(f"n{other}")
        left_out[f"n{other}"].add(f"n{one}")
    groups = group_targets(left_out)
    assert sorted(target for targets, _ in groups for target in targets) == sorted(left_out)
    for targets, names in groups:
        assert not targets & names
        assert names == set.union(*(left_out[target] for target in targets))
    assert len(groups) <= 6


def test_no_false_statement_is_true_by_another_name(world: tuple[World, QuestionSet, Names]) -> None:
    one, questions, names = world
    false = [row for row in rows_of(questions, "checking") if row["target"].lower() == "no"]
    assert len(false) >= 20
    for row in false:
        text = row["prompt"]
        inner = text.split('"')[1] if text.startswith("Is it true") else text.removesuffix(" The answer is [MASK].")
        subject, relation, obj = statement_of(row, inner)
        assert not [o for s, p, o in one.true if (s, p) == (subject, relation) and names.are_alike(o, obj)] or not [
            s for s, p, o in one.true if (p, o) == (relation, obj) and names.are_alike(s, subject)
        ]
        (fact,) = [fact for fact in questions.facts.to_pylist() if fact["fact_id"] == row["facts"][0]]
        changed = (fact["subject"], subject) if fact["object"] == obj else (fact["object"], obj)
        assert not names.are_alike(*changed)


KNOWS = Relation("knows", ("knows",), ("{subject} knows {object}.", "{the object} is known to {subject}."))


def made(triples: list[tuple[str, str, str]], names: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    facts = [{"subject": s, "predicate": p, "object": o} for s, p, o in triples]
    known = {row["entity"] for row in names}
    rows = [*names, *({"entity": e, "label": e} for s, _, o in triples for e in (s, o) if e not in known)]
    chunk = Chunk(make_table(FACTS, facts), make_table(NAMES, rows))
    with KnowledgeBase([chunk]) as knowledge:
        schema = Schema({}, {"knows": KNOWS})
        given = MakerOptions("s", **options)
        questions = make_benchmark(DuckTables(knowledge.connection), schema, given, ["completion"])
    return [
        {**row, "offered": candidates_of(questions, row)}
        for row in questions.questions.to_pylist()
        if row["template"] == "knows/1"
    ]


@pytest.mark.parametrize("choices", [None, 9])
def test_entities_that_share_a_label_share_their_aliases_within_a_field(choices: int | None) -> None:
    names = [
        {"entity": "GE", "label": "Georgia", "aliases": ["Sakartvelo"]},
        {"entity": "US-GA", "label": "Georgia", "aliases": ["GA"]},
        {"entity": "town", "label": "Georgia", "aliases": ["Georgiaville"]},
        {"entity": "mtskheta", "label": "Ann"},
    ]
    triples = [("mtskheta", "knows", "GE"), ("Bob", "knows", "US-GA"), ("Cid", "knows", "Oslo"), ("town", "sees", "x")]
    rows = {row["prompt"]: row for row in made(triples, names, choices=choices)}
    assert rows["Ann knows [MASK]."]["answers"] == ["Georgia", "GA", "Sakartvelo"]
    assert rows["Cid knows [MASK]."]["answers"] == ["Oslo"]


@pytest.mark.parametrize("choices", [None, 9])
def test_an_alias_that_is_another_label_is_right_and_no_candidate(choices: int | None) -> None:
    names = [
        {"entity": "dc", "label": "Washington, D.C.", "aliases": ["Washington", "DC", "  ", "a [MASK]", "D\x07C"]},
        {"entity": "wa", "label": "Washington", "aliases": ["WA", "dc"]},
    ]
    triples = [("Ann", "knows", "dc"), ("Bob", "knows", "wa"), ("Cid", "knows", "Oslo")]
    rows = {row["prompt"]: row for row in made(triples, names, choices=choices)}
    ann, bob, cid = (rows[f"{name} knows [MASK]."] for name in ("Ann", "Bob", "Cid"))
    assert ann["answers"] == ["Washington, D.C.", "D C", "DC", "Washington"]
    assert set(ann["offered"]) == {"Washington, D.C.", "Oslo"}
    assert bob["answers"] == ["Washington", "WA", "dc"]
    assert set(bob["offered"]) == {"Washington", "Oslo"}
    assert set(cid["offered"]) == {"Washington", "Washington, D.C.", "Oslo"}


def test_aliases_do_not_depend_on_the_order_of_rows_and_are_of_the_language() -> None:
    names = [
        {"entity": "fr", "label": "France", "aliases": ["Gaul", "Hexagon"]},
        {"entity": "fr", "label": "Frankreich", "language": "de", "aliases": ["Gallien"]},
    ]
    triples = [("Ann", "knows", "fr"), ("Bob", "knows", "Oslo")]
    rows = made(triples, names)
    assert [row["answers"] for row in rows if row["prompt"].startswith("Ann")] == [["France", "Gaul", "Hexagon"]]
    turned = [{**row, "aliases": row["aliases"][::-1]} for row in names[::-1]]
    assert made(triples[::-1], turned) == rows


def test_the_worlds_have_every_form_of_slot() -> None:
    templates = [text for body in SCHEMA["relations"].values() for text in body["templates"]]
    assert any("{a object}" in text for text in templates) and any(text.startswith("{object}") for text in templates)
