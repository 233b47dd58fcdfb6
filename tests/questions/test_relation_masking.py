"""Questions with a masked relation: no phrase that is true in the full world is offered as wrong."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from spark_sessions import LOCAL
from stated_losses import accounts_of
from test_relational import made_from, schema_of, write

from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions

TEMPLATES = {
    "born": ["{subject} was born in {object}.", "{object} is where {subject} saw the light."],
    "died": ["{subject} died in {object}."],
    "city-in": ["{subject} is a city of {object}.", "{object} includes the city {subject}."],
    "capital": ["{subject} has its capital in {object}.", "{object} governs {the subject}."],
    "wrote": ["{subject} wrote {object}."],
    "sequel": ["{subject} continues {object}."],
    "border": ["{subject} borders {object}."],
    "motto": ["The motto of {subject} is {object}."],
    "founded": ["{subject} belongs to {object}."],
}
SCHEMA = {
    "relations": {name: {"templates": texts, "functional": True} for name, texts in TEMPLATES.items()}
    | {
        "wrote": {"templates": TEMPLATES["wrote"], "complete": "subject"},
        "border": {"templates": TEMPLATES["border"], "closed": True},
        "born": {"templates": TEMPLATES["born"], "functional": True, "ask": ["object", "subject"]},
    }
}


class World:
    """A full world with its facts, of which the knowledge base has most."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        countries, cities = [f"Land{n}" for n in range(10)], [f"Town{n}" for n in range(30)]
        people, books = [f"Person{n}" for n in range(30)], [f"Book{n}" for n in range(40)]
        facts = {(city, "city-in", countries[n % 10]) for n, city in enumerate(cities)}
        facts |= {(country, "capital", cities[n]) for n, country in enumerate(countries)}
        for person in people:
            facts |= {(person, "born", draw.choice(cities)), (person, "died", draw.choice(cities))}
        facts |= {(draw.choice(people), "wrote", book) for book in books}
        facts |= {(later, "sequel", draw.choice(books[:20])) for later in books[20:]}
        for one in countries:
            for other in draw.sample([country for country in countries if country != one], 2):
                facts |= {(one, "border", other), (other, "border", one)}
        facts |= {(country, "motto", f"Motto{n}") for n, country in enumerate(countries)}
        facts |= {(person, "founded", f"Club{n % 4}") for n, person in enumerate(people[:8])}
        self.facts = sorted(facts)
        self.known = [fact for fact in self.facts if draw.random() < 0.8]

    def write(self, folder: Path) -> Path:
        names = {name for s, _, o in self.known for name in (s, o)}
        rows = [{"subject": s, "predicate": p, "object": o} for s, p, o in self.known]
        return write(folder, rows, [{"entity": name, "label": name} for name in sorted(names)], {})


def phrases() -> list[tuple[str, str, bool]]:
    """The relation, the words, and whether the object stands first, of each template that is two names with words."""
    found = []
    for relation, texts in TEMPLATES.items():
        for text in texts:
            first, _, rest = text.replace("{the ", "{").partition("} ")
            words, _, last = rest.partition(" {")
            if first in ("{subject", "{object") and last in ("subject}.", "object}."):
                found.append((relation, words, first == "{object"))
    return found


def said(facts: list[tuple[str, str, str]]) -> dict[str, set[tuple[str, str]]]:
    """The pairs of names, in the order of the sentence, by words."""
    pairs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for relation, words, turned in phrases():
        pairs[words] |= {(o, s) if turned else (s, o) for s, p, o in facts if p == relation}
    return pairs


def evidence(world: World, asked: tuple[str, str, bool], other: tuple[str, str, bool], x: str, y: str) -> bool:
    """Whether the words of ``other`` are wrong between two names, by definition."""
    pairs = said(world.known)
    mine, theirs = pairs[asked[1]], pairs[other[1]]
    if (x, y) in theirs or asked[0] == other[0]:
        return False
    shares = [bool({pair[place] for pair in mine} & {pair[place] for pair in theirs}) for place in (0, 1)]
    if not any(shares):
        return other[0] != "founded"  # "belongs to" may be true of anything.
    for given, value in ((0, 1), (1, 0)):
        values: dict[str, set[str]] = defaultdict(set)
        for pair in theirs:
            values[pair[given]].add(pair[value])
        single = sum(len(names) == 1 for names in values.values())
        is_single = len(values) >= 5 and single >= 0.95 * len(values)
        if other[0] != "border" and is_single and len(values[(x, y)[given]]) == 1 and shares[value]:
            return True
    return False


@pytest.mark.parametrize("seed", range(3))
def test_wrong_phrases_are_wrong_in_the_full_world_and_have_evidence(tmp_path: Path, seed: int) -> None:
    world = World(seed)
    store, schema = world.write(tmp_path / "kb"), schema_of(tmp_path, SCHEMA)
    with KnowledgeBase.open(store) as knowledge, open_tables(knowledge.connection, None, ("facts", "names")) as tables:
        made = make_benchmark(tables, schema, MakerOptions("kmir", seed=seed), ("relation",))
    known, true = said(world.known), said(world.facts)
    by_words = {words: (relation, words, turned) for relation, words, turned in phrases()}
    rows = made.questions.to_pylist()
    prompts = set()
    for row in rows:
        x, y = row["prompt"].removesuffix(".").split(" [MASK] ")
        y = y.removeprefix("the ")
        prompts.add((x, row["target"], y))
        assert (x, y) in known[row["target"]] and len(row["choices"]) == 4 == len(set(row["choices"]))
        assert set(row["answers"]) == {words for words, pairs in known.items() if (x, y) in pairs}
        for words in set(row["choices"]) - {row["target"]}:
            assert (x, y) not in true[words], f"{x} {words} {y} is true"
            assert evidence(world, by_words[row["target"]], by_words[words], x, y), f"{x} {words} {y}"
    # A fact is asked with one of its phrases if that phrase has three wrong ones beside it.
    for relation, words, turned in phrases():
        for x, y in known[words]:
            wrong = {other[1] for other in phrases() if evidence(world, (relation, words, turned), other, x, y)}
            if len(wrong) < 3:
                assert (x, words, y) not in prompts
            elif sum(name == relation for name, _, _ in phrases()) == 1:
                assert (x, words, y) in prompts
    near = [row for row in rows if row["target"] == "is a city of" and "governs" in row["choices"]]
    assert near, "a city that is not the capital is asked with the phrase for capitals"
    account = accounts_of(made)["relation"]
    assert account.total == len(world.known) and account.askable == len({row["facts"][0] for row in rows})
    assert any(loss.relation == "motto" and "no template has words" in loss.reason for loss in account.losses)


def test_relations_are_asked_for_only_by_name(tmp_path: Path) -> None:
    store, schema = World(1).write(tmp_path / "kb"), schema_of(tmp_path, SCHEMA)
    assert "relation" not in set(made_from(store, schema).questions["task"].to_pylist())


@pytest.mark.cluster
def test_relation_questions_of_spark_are_those_of_duckdb(tmp_path: Path, spark: Any) -> None:
    store, schema = World(1).write(tmp_path / "kb"), schema_of(tmp_path, SCHEMA)
    made = []
    for engine in (None, LOCAL):
        with (
            KnowledgeBase.open(store) as knowledge,
            open_tables(knowledge.connection, engine, ("facts", "names")) as tables,
        ):
            made.append(make_benchmark(tables, schema, MakerOptions("kmir", seed=1), ("relation",)))
    here, there = made
    assert here.questions.num_rows and here.questions.equals(there.questions) and here.about == there.about
