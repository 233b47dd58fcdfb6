"""Ontologies from schema.org, Wikidata, WordNet and the packs, and the names they get."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from all_cases import check_all
from ontology_files import LOW, knowledge_of, names, told, turtle

from merkhet.core.errors import InputError
from merkhet.knowledge._ontology_terms import instance_name, split_identifier, term_name
from merkhet.knowledge.ontology import PREDICATES, read_ontology
from merkhet.knowledge.store import KnowledgeBase


def test_schema_org_has_identifiers_for_labels_and_datatypes_of_its_own(tmp_path):
    found = read_ontology(
        turtle(
            tmp_path,
            """schema:Thing a rdfs:Class . schema:DataType a rdfs:Class ; rdfs:subClassOf rdfs:Class .
            schema:Text a schema:DataType , rdfs:Class . schema:URL a rdfs:Class ; rdfs:subClassOf schema:Text .
            schema:CreativeWork a rdfs:Class ; rdfs:label "CreativeWork" ; rdfs:subClassOf schema:Thing .
            schema:TVSeries a rdfs:Class ; rdfs:label "TVSeries" ; rdfs:subClassOf schema:CreativeWork .
            schema:Person a rdfs:Class ; rdfs:label "Person" ; rdfs:subClassOf schema:Thing .
            schema:readBy a rdf:Property ; rdfs:label "readBy" ; rdfs:subPropertyOf schema:actor ;
              schema:domainIncludes schema:TVSeries , schema:CreativeWork ; schema:rangeIncludes schema:Person .
            schema:actor a rdf:Property ; rdfs:label "actor" ; schema:rangeIncludes schema:URL , schema:Text .
            schema:name a rdf:Property ; rdfs:subPropertyOf rdfs:label .""",
        )
    )
    assert found.classes == {
        "schema:CreativeWork": "creative work",
        "schema:Person": "person",
        "schema:TVSeries": "TV series",
    }
    assert found.superclasses["schema:TVSeries"] == ("schema:CreativeWork",)
    assert found.superproperties == {"schema:actor": (), "schema:name": (), "schema:readBy": ("schema:actor",)}
    assert found.domains == {"schema:readBy": ("schema:CreativeWork", "schema:TVSeries")}
    assert found.ranges == {"schema:readBy": ("schema:Person",)}
    assert {one for _, one in found.alternatives} == {"schema:readBy"}


def test_wikidata_as_the_ready_queries_give_it():
    triples = [
        ("Q5", LOW, "Q215627"),
        ("Q215627", LOW, "Q35120"),
        ("Q1622272", "P279", "Q5"),
        ("Q42", "P31", "Q5"),
        ("Q5", "P31", "Q55983715"),
        ("P25", "rdfs:subPropertyOf", "P8810"),
        ("P8810", "P1647", "P1038"),
        ("P25", "rdf:type", "owl:SymmetricProperty"),
        ("P25", "rdfs:domain", "Q5"),
        *(("P1038", "schema:domainIncludes", one) for one in ("Q5", "Q215627")),
        ("P25", "rdfs:range", "Q999"),
        ("Q5", "P1709", "http://schema.org/Person"),
    ]
    called = {"Q5": "human", "Q215627": "person", "Q35120": "entity", "Q42": "Douglas Adams", "Q1622272": "teacher"}
    called |= {"P25": "mother", "P8810": "parent", "P1038": "relative", "Q55983715": "kind of organism"}
    found = read_ontology(knowledge_of(triples, called))
    assert found.classes == {"Q1622272": "teacher", "Q215627": "person", "Q5": "human"}
    assert names(found.classes, found.superclasses["Q1622272"]) == ["human", "person"]
    assert found.instances == {"Q42": ("Q5",)} and found.types == {"Q42": ("Q5", "Q215627")}
    assert names(found.properties, found.superproperties["P25"]) == ["parent", "relative"]
    assert found.domains == {"P1038": ("Q5", "Q215627"), "P25": ("Q5",)} and found.ranges == {}
    assert found.alternatives == {("domain", "P1038")}


def test_wordnet_synsets_are_classes_but_for_verbs_and_instances(tmp_path):
    lines = {
        "noun": "00001740 03 n 01 entity 0 000 | all  \n00001930 03 n 01 thing 0 001 @ 00001740 n 0000 | x  \n"
        "00002000 05 n 02 cat 0 true_cat 0 001 @ 00001930 n 0000 | a feline  \n"
        "00003000 18 n 01 Tom 0 001 @i 00002000 n 0000 | a cat  \n",
        "verb": "00001740 29 v 01 breathe 0 001 @ 00002325 v 0000 00 | draw air  \n"
        "00002325 29 v 01 act 0 000 00 | do  \n",
    }
    for name, text in lines.items():
        (tmp_path / f"data.{name}").write_text(text, encoding="utf-8")
    found = read_ontology(KnowledgeBase.load([str(tmp_path)]))
    assert names(found.classes, found.classes) == ["thing", "cat"]
    assert names(found.classes, found.superclasses["wordnet:00002000-n"]) == ["thing"]
    assert found.instance_names == {"wordnet:00003000-n": "Tom"}
    assert found.types == {"wordnet:00003000-n": ("wordnet:00002000-n", "wordnet:00001930-n")}
    assert told(found, "2 verbs are not classes")


def test_the_whole_of_wordnet():
    folder = os.environ.get("MERKHET_WORDNET")
    if not folder:
        pytest.skip("MERKHET_WORDNET does not name a folder with the database files of WordNet")
    knowledge = KnowledgeBase.load([folder])
    found = read_ontology(knowledge)
    assert len(found.classes) > 60_000 and len(found.instances) > 6_000
    assert len({name.casefold() for name in found.classes.values()}) == len(found.classes)
    edges = defaultdict(set)
    for row in knowledge.facts("is-a").to_pylist():
        edges[row["subject"]].add(row["object"])
    for one in sorted(found.classes)[::5000]:
        some, waiting = set(), [one]
        while waiting:
            new = edges[waiting.pop()] - some
            some |= new
            waiting += new
        called = knowledge.labels()
        expected = {called[high].casefold() for high in some} - {"entity", found.classes[one].casefold()}
        assert {found.classes[high].casefold() for high in found.superclasses[one]} - {"entity"} == expected


def test_packs_and_predicates_of_ones_own():
    found = read_ontology(KnowledgeBase.load(["taxonomy"]))
    assert "synset:mammal-n-1" in found.superclasses["synset:dog-n-1"]
    knowledge = knowledge_of(
        [("rex", "sort", "poodle"), ("poodle", "below", "dog")], {"rex": "Rex", "poodle": "poodle", "dog": "dog"}
    )
    with pytest.raises(InputError) as refused:
        read_ontology(knowledge)
    assert all(predicate in str(refused.value) for predicate in PREDICATES["subclass"])
    assert "\n" not in str(refused.value)
    found = read_ontology(knowledge, predicates={"type": ["sort"], "subclass": ["below"]})
    assert found.types == {"rex": ("poodle", "dog")}
    # A predicate that is given another part plays that one alone.
    turned = knowledge_of([("rex", "is-a", "poodle"), ("poodle", "below", "dog")])
    found = read_ontology(turned, predicates={"type": ["is-a"], "subclass": ["below"]})
    assert found.instances == {"rex": ("poodle",)}


def test_an_unknown_part_is_refused():
    knowledge = knowledge_of([("a", LOW, "b")])
    with pytest.raises(InputError, match="did you mean 'subclass'"):
        read_ontology(knowledge, predicates={"subclas": ["below"]})
    with pytest.raises(InputError, match="must be a list"):
        read_ontology(knowledge, predicates={"subclass": "below"})


def test_only_everything_above_is_no_hierarchy():
    with pytest.raises(InputError, match="no class has a superclass"):
        read_ontology(knowledge_of([("a", LOW, "owl:Thing"), ("b", LOW, "owl:Thing"), ("c", LOW, "c")]))


def test_identifiers_as_words():
    def check(identifier, words):
        assert split_identifier(identifier) == words

    check_all(
        check,
        [
            ("SoccerPlayer", "soccer player"),
            ("TVSeries", "TV series"),
            ("3DModel", "3D model"),
            ("isPartOf", "is part of"),
            ("HVACBusiness", "HVAC business"),
            ("birth_place", "birth place"),
            ("Person", "person"),
            ("subclass-of", "subclass of"),
        ],
    )


def test_what_has_no_name():
    assert [term_name(one, None, "en") for one in ("Q42", "obo:IAO_0000115", "wordnet:00001740-n")] == [None] * 3
    assert term_name("dbo:Person", " natural   person ", "en") == "natural person"
    assert term_name("http://e.org/Hund", "Hund", "de") == "Hund"
    assert instance_name("dbr:Caf%C3%A9_de_Flore", None) == "Café de Flore"
    assert instance_name("Q42", None) is None and instance_name("Q42", "Douglas Adams") == "Douglas Adams"


# ---------------------------------------------------------------------------------------------------------------------
# The embedded ontology.


def test_the_embedded_ontology_holds_what_every_task_needs():
    found = read_ontology(KnowledgeBase.load(["ontology"]))
    assert 150 <= len(found.classes) <= 250 and 60 <= len(found.properties) <= 120
    assert 150 <= len(found.instances) <= 410
    assert sum(map(bool, found.superclasses.values())) > 150
    assert sum(map(bool, found.superproperties.values())) > 40
    assert len(found.domains) > 60 and len(found.ranges) > 50
    assert not found.ambiguous and not found.alternatives and not found.equivalents
    called = {**found.classes, **found.properties}
    assert not {"thing", "intangible", "enumeration", "text", "url"} & {name.casefold() for name in called.values()}
    # Nobody is asked what a thing is by a name that is also an answer.
    assert not {name.casefold() for name in found.instance_names.values()} & {n.casefold() for n in called.values()}
    classes = found.classes
    by_name = {name: one for one, name in found.instance_names.items()}
    assert names(classes, found.types[by_name["France"]]) == ["country", "administrative area", "place"]
    assert names(classes, found.types[by_name["malaria"]]) == [
        *("infectious disease", "medical condition", "medical entity"),
    ]
    properties = {name: one for one, name in found.properties.items()}
    assert names(found.properties, found.superproperties[properties["blind copy recipient"]]) == [
        *("recipient", "participant"),
    ]
    assert names(classes, found.domains[properties["place of birth"]]) == ["person"]
    # What was bridged or left out does not change what schema.org says: all ways lead upwards.
    assert all(one not in above for one, above in found.superclasses.items())
