"""Ontologies read from knowledge: hierarchies against plain walks, names, and what is left out and told."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.foundation import InputError
from gnomon.foundation.tables import FACTS, NAMES, make_table
from gnomon.knowledge import KnowledgeBase, Material
from gnomon.knowledge.iris import PREFIXES, short_name
from gnomon.knowledge.naming import instance_name, term_name, words_of
from gnomon.knowledge.ontologies import PREDICATES, read_ontology

HEAD = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items()) + "@prefix : <http://e.org/> .\n"
LOW = "rdfs:subClassOf"


def knowledge_of(triples, names=()):
    rows = [{"subject": low, "predicate": predicate, "object": high} for low, predicate, high in triples]
    called = [{"entity": entity, "label": label, "language": "en"} for entity, label in dict(names).items()]
    return KnowledgeBase([Material(make_table(FACTS, rows), make_table(NAMES, called))])


def turtle(tmp_path, text):
    pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")
    path = tmp_path / "o.ttl"
    path.write_text(HEAD + text, encoding="utf-8")
    return KnowledgeBase.load([str(path)])


def told(ontology, words):
    """The one remark that has these words."""
    found = [remark for remark in ontology.remarks if words in remark]
    assert len(found) == 1, ontology.remarks
    return found[0]


def names(terms, ids):
    return [terms[one] for one in ids]


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


@settings(deadline=None, max_examples=30)
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


@settings(deadline=None, max_examples=15)
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
    assert told(found, "classes are in 2 circles").startswith("4 classes")
    assert "C0042" in told(found, "1 class has no name")
    assert told(found, "1 class is called as others")
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
    assert told(found, "1 property has a domain that is no class")
    assert told(found, "1 property has a range that is no class")


def test_without_identifiers_only_labels_are_names(tmp_path):
    found = read_ontology(turtle(tmp_path, OWL), identifiers=False)
    assert "http://e.org/HuntingDog" not in found.classes and "http://e.org/Hachi_Ko" not in found.instances
    german = read_ontology(turtle(tmp_path, OWL), "de", identifiers=False)
    assert german.classes == {"http://e.org/Animal": "Tier"} and german.superclasses == {"http://e.org/Animal": ()}


def test_conclusions_do_not_shorten_the_way(tmp_path):
    from gnomon.knowledge.importing import import_knowledge
    from gnomon.knowledge.rules import infer

    pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")
    (tmp_path / "o.ttl").write_text(HEAD + OWL, encoding="utf-8")
    import_knowledge([str(tmp_path / "o.ttl")], tmp_path / "kb.duckdb")
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        before = read_ontology(knowledge)
    infer(tmp_path / "kb.duckdb")
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        assert knowledge.facts(inferred=True).num_rows
        assert read_ontology(knowledge) == before


# ---------------------------------------------------------------------------------------------------------------------
# Other sources.


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
    assert told(found, "2 verbs are no classes")


def test_the_whole_of_wordnet():
    folder = os.environ.get("GNOMON_WORDNET")
    if not folder:
        pytest.skip("GNOMON_WORDNET does not name a folder with the database files of WordNet")
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
    with pytest.raises(InputError, match="should be a list"):
        read_ontology(knowledge, predicates={"subclass": "below"})


def test_only_everything_above_is_no_hierarchy():
    with pytest.raises(InputError, match="no class has a superclass"):
        read_ontology(knowledge_of([("a", LOW, "owl:Thing"), ("b", LOW, "owl:Thing"), ("c", LOW, "c")]))


@pytest.mark.parametrize(
    ("identifier", "words"),
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
def test_identifiers_as_words(identifier, words):
    assert words_of(identifier) == words


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
