"""The peer of inference: pyoxigraph's SPARQL updates, in two forms, repeated until nothing is added."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ontology_world import BASE, CHAINS, IRIS, property_name

FORMS = {
    "by axiom": "an update for each axiom, with constants in it",
    "by rule": "an update for each rule, with the axioms joined",
}
PREFIXES = "".join(f"PREFIX {prefix} <{iri}>\n" for prefix, iri in IRIS.items())
# The hierarchies are closed once, by property paths: no rule of this world makes new axioms.
SCHEMA = (
    "INSERT { ?a rdfs:subPropertyOf ?c } WHERE { ?a rdfs:subPropertyOf/rdfs:subPropertyOf+ ?c FILTER (?a != ?c) }",
    "INSERT { ?a rdfs:subClassOf ?c } WHERE { ?a rdfs:subClassOf/rdfs:subClassOf+ ?c FILTER (?a != ?c) }",
)
# What a rule's conclusion is for x p y, and how its axiom reads; in the order in which most is found in a round.
PROPERTY_RULES = (
    ("?x ?q ?y", "?p owl:equivalentProperty|^owl:equivalentProperty ?q"),
    ("?y ?q ?x", "?p owl:inverseOf|^owl:inverseOf ?q"),
    ("?x ?q ?y", "?p rdfs:subPropertyOf ?q"),
    ("?y ?p ?x", "?p rdf:type owl:SymmetricProperty"),
)
TYPE_RULES = (("?x rdf:type ?q", "?p rdfs:domain ?q"), ("?y rdf:type ?q", "?p rdfs:range ?q"))
CLASS_RULES = (
    "INSERT { ?x rdf:type ?d } WHERE { ?c owl:equivalentClass|^owl:equivalentClass ?d . ?x rdf:type ?c }",
    "INSERT { ?x rdf:type ?d } WHERE { ?x rdf:type ?c . ?c rdfs:subClassOf ?d }",
)


def load(file: Path) -> Any:
    """A store in memory (the one on disk takes some five times as long) with the triples of a file."""
    import pyoxigraph

    store = pyoxigraph.Store()
    store.bulk_load(path=str(file), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return store


def run_updates(store: Any, form: str) -> tuple[float, int]:
    """Seconds and rounds until the store holds all that follows."""
    started = time.perf_counter()
    for update in SCHEMA:
        store.update(PREFIXES + update)
    transitive = [row["p"].value for row in store.query(f"{PREFIXES}SELECT ?p {{ ?p a owl:TransitiveProperty }}")]
    # Paths close what is there at the start; in later rounds, over what is closed, a join is faster for the peer.
    for one in transitive:
        store.update(f"INSERT {{ ?x <{one}> ?y }} WHERE {{ ?x <{one}>/<{one}>+ ?y }}")
    updates = [
        *_of_properties(store, form, PROPERTY_RULES),
        *(f"INSERT {{ ?x <{one}> ?z }} WHERE {{ ?x <{one}> ?y . ?y <{one}> ?z }}" for one in transitive),
        *_of_chains(),
        *_of_properties(store, form, TYPE_RULES),
        *CLASS_RULES,
    ]
    before, rounds = -1, 0
    while before != len(store):
        before, rounds = len(store), rounds + 1
        for update in updates:
            store.update(PREFIXES + update)
    return time.perf_counter() - started, rounds


def _of_properties(store: Any, form: str, rules: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for conclusion, axiom in rules:
        if form == "by rule":
            yield f"INSERT {{ {conclusion} }} WHERE {{ {axiom} . ?x ?p ?y }}"
            continue
        for row in store.query(f"{PREFIXES}SELECT DISTINCT * {{ {axiom} }}"):
            names = {"?p": f"<{row['p'].value}>", "?q": f"<{row['q'].value}>" if "?q" in axiom else ""}
            filled = " ".join(names.get(part, part) for part in conclusion.split())
            yield f"INSERT {{ {filled} }} WHERE {{ ?x {names['?p']} ?y }}"


def _of_chains() -> Iterator[str]:
    for head, steps in CHAINS:
        path = " . ".join(f"?x{place} <{BASE}{property_name(step)}> ?x{place + 1}" for place, step in enumerate(steps))
        yield f"INSERT {{ ?x0 <{BASE}{property_name(head)}> ?x{len(steps)} }} WHERE {{ {path} }}"
