"""Knowledge to make questions of: the embedded packs, and small worlds made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from spark_sessions import spark  # noqa: F401

import merkhet.suites.quickstart
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.schema import read_schema


@pytest.fixture(scope="session")
def packs():
    return KnowledgeBase.load(["elements", "countries", "offices", "taxonomy"])


@pytest.fixture(scope="session")
def schema():
    return read_schema(Path(merkhet.suites.quickstart.__file__).with_name("schema.yaml"))


@pytest.fixture
def world():
    """A knowledge base of (subject, predicate, object) triples; every entity is called by its id up to a hash sign."""

    def make(*triples, values=()):
        rows = [{"subject": s, "predicate": p, "object": o} for s, p, o in triples]
        rows += [{"subject": s, "predicate": p, "value": v} for s, p, v in values]
        entities = {row[place] for row in rows for place in ("subject", "object") if row.get(place)}
        names = [{"entity": entity, "label": entity.partition("#")[0]} for entity in sorted(entities)]
        return KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, names))])

    return make


@pytest.fixture
def shuffled():
    """The same knowledge with its tables in another order."""

    def shuffle(knowledge, generator):
        tables = [knowledge.facts(), knowledge.names()]
        return KnowledgeBase(
            [
                Chunk(
                    *(table.take(generator.sample(range(table.num_rows), table.num_rows)) for table in tables),
                    predicates=knowledge.predicates,
                )
            ]
        )

    return shuffle


@pytest.fixture(scope="session")
def make():
    """Questions of a knowledge base as a question set, with choices."""

    def make_set(knowledge, schema, task, **options):
        given = MakerOptions(**{"suite": "s", "limit": 100, "choices": 20, "distinct_names": True, **options})
        given = replace(given, complete=given.complete or knowledge.complete_predicates())
        return make_benchmark(DuckTables(knowledge.connection), schema, given, [task])

    return make_set


@pytest.fixture(scope="session")
def closure():
    """Everything that a plain walk upwards reaches, by name: the oracle for what is in a category."""

    def walk(knowledge, *predicates):
        labels = knowledge.labels()
        up: dict[str, set[str]] = {}
        for row in (row for predicate in predicates for row in knowledge.facts(predicate).to_pylist()):
            if row["object"] is not None:
                up.setdefault(row["subject"], set()).add(row["object"])
        found: dict[str, set[str]] = {}
        for start, first in up.items():
            waiting, seen = list(first), set()
            while waiting:
                node = waiting.pop()
                if node not in seen:
                    seen.add(node)
                    waiting += up.get(node, ())
            found.setdefault(labels[start], set()).update(labels[node] for node in seen if node in labels)
        return found

    return walk
