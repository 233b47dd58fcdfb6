"""Labels stand for the ids of predicates: in imports, exports, rules and schemas."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import yaml

from merkhet.knowledge.predicate_labels import humanize, resolve_predicates
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_export import export_knowledge
from merkhet.knowledge.store_import import import_knowledge

TURTLE = """\
@prefix : <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:bp rdfs:label "Birth Place" ; skos:altLabel "born in" .
:cap rdfs:label "capital" .
:of rdfs:label "capital of" .
:ada rdfs:label "Ada" ; :bp :oslo .
:bo rdfs:label "Bo" ; :bp :rome .
:oslo rdfs:label "Oslo" .
:rome rdfs:label "Rome" .
:no rdfs:label "Norway" ; :cap :oslo .
:it rdfs:label "Italy" ; :cap :rome .
"""
E = "http://e.org/"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "world.ttl").write_text(TURTLE)
    import_knowledge([str(tmp_path / "world.ttl")], tmp_path / "kb.duckdb")
    return tmp_path / "kb.duckdb"


def predicates(store: Path) -> set[str]:
    with KnowledgeBase.open(store) as knowledge:
        return set(knowledge.facts()["predicate"].to_pylist())


@pytest.mark.parametrize("text", ["birth place", "Birth  Place", "born in", E + "bp"])
def test_an_import_selects_predicates_by_label(store: Path, tmp_path: Path, text: str) -> None:
    export_knowledge(store, tmp_path / "tables")
    for number, source in enumerate((tmp_path / "world.ttl", tmp_path / "tables", store)):
        into = tmp_path / f"some-{number}.duckdb"
        import_knowledge([str(source)], into, predicates=[text])
        assert predicates(into) == {E + "bp"}, source


def test_packs_load_predicates_by_label() -> None:
    knowledge = KnowledgeBase.load(["countries", "elements"], predicates=["Has the capital", "symbol", "lies in"])
    found = set(knowledge.facts()["predicate"].to_pylist())
    assert found == {"capital", "symbol", "continent"}


def test_a_label_that_no_predicate_has_selects_nothing(store: Path, tmp_path: Path) -> None:
    import_knowledge([str(tmp_path / "world.ttl")], tmp_path / "none.duckdb", predicates=["Ada"])
    assert predicates(tmp_path / "none.duckdb") == set()


def test_an_export_selects_predicates_by_label(store: Path, tmp_path: Path) -> None:
    assert export_knowledge(store, tmp_path / "facts.csv", predicates=("born in",))["facts"] == 2
    with open(tmp_path / "facts.csv", newline="") as handle:
        assert {row["predicate"] for row in csv.DictReader(handle)} == {E + "bp"}


def test_rules_name_predicates_by_label(store: Path, tmp_path: Path) -> None:
    content = {
        "inverse": [["capital", "capital of"]],
        "chain": [{"if": ["born in", "capital of"], "then": "nationality"}],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(content))
    infer(store, declared=read_rules(tmp_path / "rules.yaml"))
    with KnowledgeBase.open(store) as knowledge:
        rows = knowledge.query("select subject, predicate, object from facts where rule is not null").to_pylist()
    found = {(row["subject"], row["predicate"], row["object"]) for row in rows}
    # No fact has the predicate :of yet, whose label names it all the same.
    assert found == {
        (E + "oslo", E + "of", E + "no"),
        (E + "rome", E + "of", E + "it"),
        (E + "ada", "nationality", E + "no"),
        (E + "bo", "nationality", E + "it"),
    }


def test_a_rule_keeps_a_new_predicate_that_is_the_label_of_a_thing(store: Path, tmp_path: Path) -> None:
    (tmp_path / "things.csv").write_text("subject,predicate,object,subject_label\nw1,is a,w2,capital of\n")
    import_knowledge([str(tmp_path / "things.csv")], store)
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"subproperty": [["is a", "Oslo"]], "range": [["capital", "Rome"]]})
    )
    infer(store, declared=read_rules(tmp_path / "rules.yaml"))
    with KnowledgeBase.open(store) as knowledge:
        rows = knowledge.query("select subject, predicate, object from facts where rule is not null").to_pylist()
    found = {(row["subject"], row["predicate"], row["object"]) for row in rows}
    assert found == {("w1", "Oslo", "w2"), (E + "oslo", "rdf:type", E + "rome"), (E + "rome", "rdf:type", E + "rome")}


def test_texts_stand_for_ids_first_and_then_for_labels() -> None:
    labels = [("P36", "capital"), ("P1376", "capital of"), ("P9", "Capital"), ("dbo:capital", "main city")]
    found = resolve_predicates(
        ["capital", "P36", "CAPITAL OF", "http://dbpedia.org/ontology/capital", "main city", "area"],
        ["P36", "P1376", "P9", "dbo:capital"],
        labels,
    )
    assert found == {
        "capital": ("P36", "P9"),
        "P36": ("P36",),
        "CAPITAL OF": ("P1376",),
        "http://dbpedia.org/ontology/capital": ("dbo:capital",),
        "main city": ("dbo:capital",),
        "area": ("area",),
    }
    assert resolve_predicates(["capital"], ["capital", "P36"], labels) == {"capital": ("capital",)}


def test_ids_are_split_into_words() -> None:
    words = {"dbo:birthPlace": "birth place", "http://e.org/x#made_by": "made by", "has-part": "has part"}
    words |= {"ISBN": "ISBN", "birthPlaceISO": "birth place iso", "launched on": "launched on"}
    words.pop("birthPlaceISO")
    assert {name: humanize(name) for name in words} == words


def test_a_table_of_plain_words_is_an_ontology(tmp_path: Path) -> None:
    rows = ["cat,subclass of,mammal", "mammal,subclass of,animal", "Tom,instance of,cat"]
    rows += ["father of,subproperty of,parent of", "Tom,father of,Tim", "parent of,inverse of,child of"]
    (tmp_path / "zoo.csv").write_text("subject,predicate,object\n" + "\n".join(rows) + "\n")
    import_knowledge([str(tmp_path / "zoo.csv")], tmp_path / "zoo.duckdb")
    infer(tmp_path / "zoo.duckdb")
    with KnowledgeBase.open(tmp_path / "zoo.duckdb") as knowledge:
        found = knowledge.query("select subject, predicate, object from facts where rule is not null").to_pylist()
    assert {(row["subject"], row["object"]) for row in found} == {
        *(("cat", "animal"), ("Tom", "mammal"), ("Tom", "animal"), ("Tom", "Tim"), ("Tim", "Tom")),
    }
