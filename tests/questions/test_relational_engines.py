"""Questions of Spark are those of DuckDB; of very many facts some are asked about, and all say what is right."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import test_relational
from spark_sessions import LOCAL
from test_name_aliases import with_aliases
from test_relational import OPTIONS, RULES, World, made_from, rows_of, schema_of, write

from merkhet.api import build
from merkhet.core.errors import InputError
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers import distractors
from merkhet.questions.makers.make_questions import TASKS, make_benchmark
from merkhet.questions.makers.open_book import OPEN_BOOK
from merkhet.questions.makers.question_builder import MakerOptions

PARTS = ("questions", "candidates", "facts", "frequencies", "entities", "premises")
EVERY_TASK = (*TASKS, OPEN_BOOK)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    facts, names = World(1).rows()
    return write(folder / "kb", facts, with_aliases(names, 1), RULES), schema_of(folder)


@pytest.mark.cluster
@pytest.mark.parametrize("distinct_names", [False, True])
def test_questions_of_spark_are_those_of_duckdb(world, spark, monkeypatch, distinct_names):
    store, schema = world
    monkeypatch.setattr(distractors, "MAX_POOL_FACTS", 12)
    options = MakerOptions("kmir", seed=1, distinct_names=distinct_names, **OPTIONS)
    with KnowledgeBase.open(store) as knowledge:
        here = make_benchmark(DuckTables(knowledge.connection), schema, options, EVERY_TASK)
    with (
        KnowledgeBase.open(store) as knowledge,
        open_tables(knowledge.connection, LOCAL, ("facts", "names")) as tables,
    ):
        there = make_benchmark(tables, schema, options, EVERY_TASK)
    for part in PARTS:
        assert getattr(here, part).equals(getattr(there, part)), part
    assert here.about == there.about
    assert {row["task"] for row in here.questions.to_pylist()} == set(EVERY_TASK)


def test_some_facts_are_asked_about_and_all_say_what_is_right(world):
    store, schema = world
    every, some = made_from(store, schema, 1), made_from(store, schema, 1, asked=60)
    whole = {row["question_id"]: row for row in every.questions.to_pylist() if row["task"] == "completion"}
    drawn = [row for row in some.questions.to_pylist() if row["task"] == "completion"]
    assert 0 < len(drawn) < len(whole)
    by_prompt = {row["prompt"]: row for row in whole.values()}
    for row in drawn:
        # Candidates are fewer, and so the question has another id; what is right is what all facts say.
        assert row["answers"] == by_prompt[row["prompt"]]["answers"]
        assert row["facts"] == by_prompt[row["prompt"]]["facts"]
    assert any("sampled by id" in remark for remark in some.about["remarks"])
    candidates = {row["candidate_set"]: set(row["candidates"]) for row in some.candidates.to_pylist()}
    assert all(row["target"] in candidates[row["candidate_set"]] for row in drawn)


def test_of_large_relations_some_names_are_offered_as_wrong(world, monkeypatch):
    store, schema = world
    whole = made_from(store, schema, 1)
    monkeypatch.setattr(distractors, "MAX_POOL_FACTS", 6)
    some = made_from(store, schema, 1)
    assert rows_of(some, "completion") == rows_of(whole, "completion")
    said = [{row["prompt"] for row in rows_of(one, "checking") if row["target"] == "No"} for one in (whole, some)]
    assert said[0] != said[1]
    test_relational.test_checks_are_balanced_and_say_what_is_so((World(1), some, store))


def test_a_suite_that_no_engine_can_build_says_so(tmp_path):
    with pytest.raises(InputError, match="built in this process"):
        build("quickstart", out=tmp_path / "q", engine="spark")
    assert not (tmp_path / "q").exists()
    with pytest.raises(InputError, match="must be an amount such as 4GB"):
        build("kmir", out=tmp_path / "q", memory="much")
    with pytest.raises(InputError, match="ray asks questions, and this command builds; choose duckdb or spark"):
        build("kmir", out=tmp_path / "q", engine="ray")
