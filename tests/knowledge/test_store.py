"""The knowledge base: packs and files in, one copy of each fact, closures that end."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.database import create_tables
from merkhet.knowledge.pack_catalog import embedded_packs, pack_card
from merkhet.knowledge.source_lookup import read_source
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.store import KnowledgeBase


def material(triples, source="s", names=()):
    rows = [{"subject": s, "predicate": p, "object": o, "source": source} for s, p, o in triples]
    labels = [{"entity": entity, "label": label} for entity, label in names]
    return Chunk(make_table(FACTS, rows), make_table(NAMES, labels))


def plain_closure(pairs):
    """Everything that can be reached by going up, step by step."""
    up = {}
    for lower, higher in pairs:
        up.setdefault(lower, set()).add(higher)
    found = set()
    for start, first in up.items():
        waiting, seen = list(first), set()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += up.get(node, ())
        found |= {(start, node) for node in seen}
    return found


def test_each_embedded_pack_is_loaded_whole():
    def check(pack):
        knowledge = KnowledgeBase.load([pack])
        card = pack_card(embedded_packs()[pack])
        assert knowledge.facts().num_rows == card.facts == sum(knowledge.count().values())
        assert sum(knowledge.names(language).num_rows for language in ("en", "zh")) == card.names
        assert card.title
        assert card.licence
        for row in knowledge.facts().slice(0, 50).to_pylist():
            assert row["source"].startswith(f"{pack}/")
            assert row["domain"]

    check_all(check, sorted(embedded_packs()))


def test_packs_know_things():
    knowledge = KnowledgeBase.load(["elements", "countries"])
    labels = knowledge.labels()
    capitals = {labels[row["subject"]]: labels[row["object"]] for row in knowledge.facts("capital").to_pylist()}
    assert capitals["France"] == "Paris"
    numbers = {labels[row["subject"]]: row["value"] for row in knowledge.facts("atomic-number").to_pylist()}
    assert numbers["gold"] == 79
    assert knowledge.predicates["capital"].label == "has the capital"
    assert knowledge.predicates["borders"].symmetric
    assert knowledge.predicates["atomic-number"].functional
    assert KnowledgeBase.load(["names-zh"]).labels("zh")["country:FR"] == "法国"


def test_the_same_fact_from_two_sources_is_kept_once_whatever_their_order():
    one = material([("a", "is", "b"), ("c", "is", "d")], "beta")
    other = material([("a", "is", "b"), ("e", "is", "f")], "alpha")
    for order in ([one, other], [other, one]):
        rows = KnowledgeBase(order).facts().to_pylist()
        assert sorted((row["subject"], row["source"]) for row in rows) == [
            ("a", "alpha"),
            ("c", "beta"),
            ("e", "alpha"),
        ]


def test_an_entity_has_one_name_in_a_language():
    first, second = material([], names=[("Q1", "Zed")]), material([], names=[("Q1", "Alpha"), ("Q2", "Beta")])
    for order in ([first, second], [second, first]):
        assert KnowledgeBase(order).labels() == {"Q1": "Alpha", "Q2": "Beta"}


def test_facts_come_in_the_same_order_whatever_order_they_went_in():
    triples = [(f"s{i}", "p", f"o{i % 7}") for i in range(60)]
    expected = KnowledgeBase([material(triples)]).facts()
    for seed in range(3):
        random.Random(seed).shuffle(triples)
        assert KnowledgeBase([material(triples)]).facts().equals(expected)


def test_nothing_is_known_without_materials():
    knowledge = KnowledgeBase([])
    assert knowledge.facts().num_rows == 0
    assert knowledge.labels() == {}
    assert knowledge.count() == {}
    assert knowledge.ancestors("is-a").num_rows == 0


def test_facts_are_counted_largest_first():
    knowledge = KnowledgeBase([material([("a", "q", "b"), ("a", "p", "b"), ("b", "p", "c"), ("a", "r", "b")])])
    assert list(knowledge.count().items()) == [("p", 2), ("q", 1), ("r", 1)]


NODES = st.integers(0, 7).map(lambda number: f"n{number}")


@settings(deadline=None, max_examples=15)
@given(pairs=st.sets(st.tuples(NODES, NODES), max_size=16))
def test_ancestors_are_the_plain_transitive_closure_also_in_circles(pairs):
    triples = [(low, "is-a", high) for low, high in pairs] + [("n0", "other", "n9")]
    rows = KnowledgeBase([material(triples)]).ancestors("is-a").to_pylist()
    assert [(row["subject"], row["ancestor"]) for row in rows] == sorted(plain_closure(pairs))


def test_ancestors_of_the_taxonomy_are_the_plain_closure():
    knowledge = KnowledgeBase.load(["taxonomy"])
    pairs = {(row["subject"], row["object"]) for row in knowledge.facts("is-a").to_pylist()}
    rows = knowledge.ancestors("is-a").to_pylist()
    assert {(row["subject"], row["ancestor"]) for row in rows} == plain_closure(pairs)
    assert ("synset:poodle-n-1", "synset:mammal-n-1") in plain_closure(pairs)


def test_values_are_no_ancestors():
    facts = make_table(FACTS, [{"subject": "a", "predicate": "p", "value": 1.0}])
    assert KnowledgeBase([Chunk(facts, make_table(NAMES, []))]).ancestors("p").num_rows == 0


def test_a_pack_is_a_material():
    (found,) = read_source("elements", ReadContext())
    assert found.facts.schema.names == FACTS.schema.names
    assert set(found.predicates) >= {"symbol", "category"}


def test_a_label_takes_the_place_of_an_id_or_an_alias():
    by_id = Chunk(
        make_table(FACTS, [{"subject": "FRA", "predicate": "p", "object": "EUR"}]), named_by_id=("subject", "object")
    )
    alias = Chunk(names=pa.table({"entity": ["EUR"], "language": ["en"], "label": [None], "aliases": [["the Union"]]}))
    label = material([], names=[("FRA", "France"), ("EUR", "Europe")])
    for order in ([by_id, alias, label], [label, alias, by_id]):
        knowledge = KnowledgeBase(order)
        assert knowledge.labels() == {"FRA": "France", "EUR": "Europe"}
        assert {row["entity"]: row["aliases"] for row in knowledge.names().to_pylist()} == {
            "FRA": [],
            "EUR": ["the Union"],
        }


def test_a_file_with_queries_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """A view or a macro in the file could read any file of the user."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    read = f"(select content from read_text('{secret}'))"
    queries = {
        "names": "alter table names rename to hidden; "
        f"create view names as select * replace ({read} as label) from hidden",
        "lower": f"create macro lower(x) as {read}",
        "duckdb_functions": "create macro duckdb_functions() as table select 1",
    }

    def check(name: str, query: str) -> None:
        file = tmp_path / f"{name}.duckdb"
        with duckdb.connect(str(file)) as connection:
            create_tables(connection)
            connection.execute(query)
        with pytest.raises(InputError, match=f"holds a view or macro \\('{name}'\\)"):
            KnowledgeBase.open(file)

    check_all(check, queries.items())
