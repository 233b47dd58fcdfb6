"""Ontologies read from knowledge: hierarchies against plain walks, names, and what is left out and told."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ontology_files import HEAD, LOW, knowledge_of, names, told, turtle

from merkhet.core.errors import InputError
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.ontology import read_ontology
from merkhet.knowledge.store import KnowledgeBase

# ---------------------------------------------------------------------------------------------------------------------
# Hierarchies against a plain walk.


def plain_levels(edges, start):
    """Everything above, level by level: {ancestor: distance}; the start too if it is in a circle."""
    found, level, distance = {}, {start}, 0
    while level:
        distance += 1
        level = {high for low, high in edges if low in level} - set(found)
        found.update(dict.fromkeys(level, distance))
    return found


def plainly_above(edges, start, called):
    levels = plain_levels(edges, start)
    mine = {one for one in levels if start in plain_levels(edges, one)}
    outside = [one for one in levels if one not in mine and one != start]
    return tuple(sorted(outside, key=lambda one: (levels[one], called[one], one)))


NODES = [f"n{number}" for number in range(9)]
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), min_size=1, max_size=18, unique=True)


@settings(deadline=None, max_examples=15)
@given(edges=EDGES, called=st.permutations([f"name {letter}" for letter in "abcdefghi"]), data=st.data())
def test_superclasses_and_types_are_those_of_a_plain_walk(edges, called, data):
    called = dict(zip(NODES, called, strict=True))
    stated = data.draw(st.lists(st.tuples(st.sampled_from(["i", "j"]), st.sampled_from(NODES)), unique=True))
    triples = [(low, LOW, high) for low, high in edges] + [(one, "rdf:type", kind) for one, kind in stated]
    knowledge = knowledge_of(triples, called | {"i": "I", "j": "J"})
    nodes = {node for edge in edges for node in edge} | {kind for _, kind in stated}
    expected = {node: plainly_above(edges, node, called) for node in nodes}
    if not any(expected.values()):
        with pytest.raises(InputError, match="no class hierarchy"):
            read_ontology(knowledge)
        return
    found = read_ontology(knowledge)
    assert found.classes == {node: called[node] for node in nodes}
    assert found.superclasses == expected
    circles = {node: {o for o in plain_levels(edges, node) if node in plain_levels(edges, o)} for node in nodes}
    assert {node: set(same) for node, same in found.equivalents.items()} == {
        node: same - {node} for node, same in circles.items() if same - {node}
    }
    for instance in ("i", "j"):
        kinds = {kind for one, kind in stated if one == instance}
        finest = {kind for kind in kinds if not any(kind in expected[other] for other in kinds)}
        levels = dict.fromkeys(finest, 0)
        for kind in finest:
            for high, distance in plain_levels(edges, kind).items():
                levels[high] = min(distance, levels.get(high, distance))
        depth = {kind: len(expected[kind]) for kind in finest}
        order = sorted(levels, key=lambda one: (levels[one], -depth.get(one, 0), called[one]))
        assert found.types.get(instance, ()) == tuple(order)
        assert found.instances.get(instance, ()) == tuple(order[: len(finest)])


@settings(deadline=None, max_examples=6)
@given(edges=EDGES, shuffled=st.randoms(use_true_random=False))
def test_an_ontology_hangs_on_what_is_said_and_not_on_the_order_of_rows(edges, shuffled):
    triples = [(low, LOW, high) for low, high in edges] + [("i", "rdf:type", edges[0][0]), ("x", LOW, "y")]
    other = list(triples)
    shuffled.shuffle(other)
    assert read_ontology(knowledge_of(triples)) == read_ontology(knowledge_of(other))


def test_dbpedia_against_its_triples(shared):
    ox = pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")
    path = shared / "data" / "dbpedia" / "ontology.ttl"
    said = defaultdict(set)
    for triple in ox.parse(path=str(path)):
        if isinstance(triple.object, ox.NamedNode):
            said[short_name(triple.predicate.value)].add(
                (short_name(triple.subject.value), short_name(triple.object.value))
            )
    declared = {low for low, high in said["rdf:type"] if high == "owl:Class"}
    assert len(declared) == 790
    found = read_ontology(KnowledgeBase.load([str(path)]))
    # Two classes have one label: a misspelt one and the one that is meant.
    assert declared - set(found.classes) == {"dbo:Infrastucture"}
    assert set(found.classes) < declared
    assert found.ambiguous & set(found.classes) == {"dbo:Infrastructure"}
    edges = {(low, high) for low, high in said["rdfs:subClassOf"] if high != "owl:Thing"}
    for low, high in said["owl:equivalentClass"]:
        if {low, high} <= {node for edge in edges for node in edge} | declared:
            edges |= {(low, high), (high, low)}
    called = defaultdict(str, found.classes)
    for one in sorted(found.classes)[::5]:
        expected = [high for high in plainly_above(edges, one, called) if high in found.classes]
        assert list(found.superclasses[one]) == expected
    classes = found.classes
    assert names(classes, found.superclasses["dbo:SoccerPlayer"]) == [
        "athlete",
        "person",
        "animal",
        "eukaryote",
        "species",
    ]
    for ends, predicate in ((found.domains, "rdfs:domain"), (found.ranges, "rdfs:range")):
        stated = defaultdict(set)
        for low, high in said[predicate]:
            if low in found.properties and high in classes:
                stated[low].add(high)
        assert {one: set(highs) for one, highs in ends.items()} == stated and len(stated) > 800
    assert "owl:Thing" not in classes and not any("Thing" in one for one in classes)
    assert found.instances == {} and told(found, "No class has an instance")
    assert "neither declared nor named" in told(found, "classes are neither declared")
    folded = [name.casefold() for name in found.properties.values()]
    assert len(folded) == len(set(folded)) > 2900


# ---------------------------------------------------------------------------------------------------------------------
# A small ontology in OWL with what goes wrong in them.

OWL = """
:Animal a owl:Class ; rdfs:label "animal"@en , "Tier"@de ; rdfs:subClassOf owl:Thing .
:Dog a owl:Class ; rdfs:label "dog"@en ; rdfs:subClassOf :Animal .
:Hound a owl:Class ; rdfs:label "hound"@en ; rdfs:subClassOf :Dog , :HuntingHelp ; owl:equivalentClass :HuntingDog .
:HuntingDog a owl:Class ; rdfs:subClassOf :Dog .
:HuntingHelp a owl:Class .
:Puppy a owl:Class ; rdfs:label "puppy"@en ; rdfs:subClassOf :Cub . :Cub a owl:Class ; rdfs:label "cub"@en .
:Cub rdfs:subClassOf :Whelp . :Whelp a owl:Class ; rdfs:label "whelp"@en ; rdfs:subClassOf :Cub , :Animal .
:Help a owl:Class ; rdfs:label "hunting help"@en .
:C0042 a owl:Class ; rdfs:subClassOf :Animal . :Setter a owl:Class ; rdfs:label "setter"@en ; rdfs:subClassOf :C0042 .
:Weight a rdfs:Datatype ; rdfs:label "weight"@en .
:owner a owl:ObjectProperty ; rdfs:label "owner"@en ; rdfs:range :Person , owl:Thing .
:keeper a owl:ObjectProperty ; rdfs:label "keeper"@en ; rdfs:subPropertyOf :owner ; rdfs:domain :Dog , :Puppy .
:nightKeeper a owl:ObjectProperty ; rdfs:subPropertyOf :keeper ; rdfs:domain [ owl:unionOf ( :Dog :Puppy ) ] .
:heaviness a owl:DatatypeProperty ; rdfs:label "heaviness"@en ; rdfs:domain owl:Thing ; rdfs:range xsd:double .
:Person a owl:Class ; rdfs:label "person"@en .
:rex a :Dog , :Animal , owl:NamedIndividual ; rdfs:label "Rex"@en .
:bob a :Person , :Hound ; rdfs:label "Bob"@en .
:max1 a :Dog ; rdfs:label "Max"@en . :max2 a :Person ; rdfs:label "Max"@en .
:tim1 a :Dog ; rdfs:label "Tim"@en . :tim2 a :Dog ; rdfs:label "Tim"@en .
:Hachi_Ko a :Setter . :i99 a :Dog . :fig a :C0042 ; rdfs:label "Fig"@en .
:Dog a :Species . :Species a owl:Class ; rdfs:label "species"@en .
"""


@pytest.fixture
def dogs(tmp_path):
    found = read_ontology(turtle(tmp_path, OWL))

    def short(value):
        if isinstance(value, dict):
            return {short(key): short(one) for key, one in value.items()}
        if isinstance(value, (tuple, frozenset)):
            return type(value)(map(short, value))
        return value.removeprefix("http://e.org/")

    return found, short


def test_classes_of_an_owl_file(dogs):
    found, short = dogs
    classes, above = short(found.classes), short(found.superclasses)
    assert classes["HuntingDog"] == "hunting dog" and classes["Dog"] == "dog"
    assert above["Dog"] == ("Animal",) and above["Animal"] == ()
    # The label of :Help is what :HuntingHelp reads as: one candidate, and the one with a label is kept.
    assert "HuntingHelp" not in classes and short(found.ambiguous) == {"Help"}
    assert above["Hound"] == ("Dog", "Help", "Animal")
    assert above["HuntingDog"] == ("Dog", "Animal", "Help")
    assert above["Setter"] == ("Animal",), "through a class without a name"
    assert above["Puppy"] == ("Cub", "Whelp", "Animal")
    assert above["Cub"] == above["Whelp"] == ("Animal",)
    assert short(found.equivalents) == {
        "Cub": ("Whelp",),
        "Whelp": ("Cub",),
        "Hound": ("HuntingDog",),
        "HuntingDog": ("Hound",),
    }
    assert not {"Weight", "C0042", "owl:Thing"} & set(classes)
    assert told(found, "classes are in 2 cycles").startswith("4 classes")
    assert "C0042" in told(found, "1 class has no name")
    assert told(found, "1 class has the name of another one")
    assert told(found, "2 classes have no name in 'en' but an identifier")


def test_instances_of_an_owl_file(dogs):
    found, short = dogs
    assert short(found.instances) == {
        "rex": ("Dog",),
        "bob": ("Hound", "Person"),
        "tim1": ("Dog",),
        "Hachi_Ko": ("Setter",),
        "fig": ("Animal",),
    }
    assert short(found.types)["bob"] == ("Hound", "Person", "Dog", "HuntingDog", "Help", "Animal")
    assert short(found.types)["rex"] == ("Dog", "Animal"), "both are stated"
    assert found.instance_names["http://e.org/Hachi_Ko"] == "Hachi Ko"
    assert told(found, "1 name is of instances of different types") and told(found, "1 instance has no name: left out")
    assert told(found, "1 instance has the name and the types of another one")
    assert "Dog" in told(found, "1 class or property is typed like instances")


def test_properties_of_an_owl_file(dogs):
    found, short = dogs
    assert short(found.properties) == {
        "owner": "owner",
        "keeper": "keeper",
        "nightKeeper": "night keeper",
        "heaviness": "heaviness",
    }
    assert short(found.superproperties)["nightKeeper"] == ("keeper", "owner")
    assert short(found.domains) == {"keeper": ("Dog", "Puppy"), "nightKeeper": ("Dog", "Puppy")}
    assert short(found.ranges) == {"owner": ("Person",)}
    assert short(found.alternatives) == {("domain", "nightKeeper")}, "a union is no domain of each"
    assert told(found, "1 property has no domain.") and told(found, "2 properties have no range.")
    assert told(found, "1 property has a domain that is a datatype, a root class or unknown")
    assert told(found, "1 property has a range that is a datatype, a root class or unknown")


def test_without_identifiers_only_labels_are_names(tmp_path):
    found = read_ontology(turtle(tmp_path, OWL), identifiers=False)
    assert "http://e.org/HuntingDog" not in found.classes and "http://e.org/Hachi_Ko" not in found.instances
    german = read_ontology(turtle(tmp_path, OWL), "de", identifiers=False)
    assert german.classes == {"http://e.org/Animal": "Tier"} and german.superclasses == {"http://e.org/Animal": ()}


def test_conclusions_do_not_shorten_the_way(tmp_path):
    from merkhet.knowledge.rules.fixpoint import infer
    from merkhet.knowledge.store_import import import_knowledge

    pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")
    (tmp_path / "o.ttl").write_text(HEAD + OWL, encoding="utf-8")
    import_knowledge([str(tmp_path / "o.ttl")], tmp_path / "kb.duckdb")
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        before = read_ontology(knowledge)
    infer(tmp_path / "kb.duckdb")
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        assert knowledge.facts(inferred=True).num_rows
        assert read_ontology(knowledge) == before
