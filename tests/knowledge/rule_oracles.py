"""What follows, worked out slowly and obviously: by loops in Python, by SPARQL, by owlrl; and a checker of proofs."""

from __future__ import annotations

import csv
import itertools
import json
import random
from pathlib import Path

from merkhet.knowledge._iris import full_iri
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rulebook import RULES
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge

TYPE, SUBCLASS, SUBPROPERTY = "rdf:type", "rdfs:subClassOf", "rdfs:subPropertyOf"
DOMAIN, RANGE, INVERSE = "rdfs:domain", "rdfs:range", "owl:inverseOf"
EQUIVALENT, EQUIVALENT_CLASS, CHAIN = "owl:equivalentProperty", "owl:equivalentClass", "owl:propertyChainAxiom"
SYMMETRIC, TRANSITIVE = "owl:SymmetricProperty", "owl:TransitiveProperty"
ALWAYS = (-(10**15), 10**15)
COLUMNS = ("subject", "predicate", "object", "value", "unit", "start", "end", "domain", "source")


def rows_of(facts):
    """Rows of a table from triples, from (s, p, o, start, end), or from rows."""
    named = [fact if isinstance(fact, dict) else dict(zip(COLUMNS[:3], fact[:3], strict=True)) for fact in facts]
    for row, fact in zip(named, facts, strict=True):
        if not isinstance(fact, dict) and len(fact) == 5:
            row |= {"start": fact[3], "end": fact[4]}
    return named


def import_facts(folder: Path, facts, store="kb.duckdb", name="facts.csv"):
    with open(folder / name, "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(rows_of(facts))
    import_knowledge([str(folder / name)], folder / store)
    return folder / store


def inferred_from(folder: Path, facts, **options):
    """Every fact of a store made of these, by its id, after inference; and what the inference told."""
    store = import_facts(folder, facts)
    result = infer(store, **options)
    return table(store), result


def table(store):
    with KnowledgeBase.open(store) as knowledge:
        return {row["fact_id"]: row for row in knowledge.facts().to_pylist()}


def triples(rows, *, rule=any):
    """Subject, predicate and object of rows: all, those inferred (a rule's name, or True) or stated (None)."""
    chosen = [row for row in rows.values() if rule is any or row["rule"] == rule or (rule is True and row["rule"])]
    return {(row["subject"], row["predicate"], thing(row)) for row in chosen}


def thing(row):
    return row["object"] if row["value"] is None else (row["value"], row["unit"])


def is_literal(object):
    return not isinstance(object, str) or object.startswith('"')


# Loops in Python ------------------------------------------------------------------------------------------------------


def both(one, other):
    return max(one[0], other[0]), min(one[1], other[1])


def closure(stated, rules=tuple(RULES)):
    """All (s, p, o, (start, end)) that follow; reflexive subclasses and subproperties are left out as merkhet does."""
    facts = {fact if len(fact) == 4 else (*fact, ALWAYS) for fact in stated}
    while True:
        new = {fact for rule in rules for fact in STEPS[rule](facts)}
        new = {fact for fact in new if fact[3][0] <= fact[3][1]} - facts
        if not new:
            return facts
        facts |= new


def having(facts, predicate, object=None):
    return [fact for fact in facts if fact[1] == predicate and (object is None or fact[2] == object)]


def symmetric(facts):
    for p, _, _, when in having(facts, TYPE, SYMMETRIC):
        yield from ((o, p, s, both(when, t)) for s, _, o, t in having(facts, p) if not is_literal(o))


def transitive(facts):
    for p, _, _, when in having(facts, TYPE, TRANSITIVE):
        edges = having(facts, p)
        for (x, _, y, t), (again, _, z, u) in itertools.product(edges, edges):
            if y == again:
                yield x, p, z, both(when, both(t, u))


def equivalent(facts):
    for p, _, q, when in having(facts, EQUIVALENT):
        for one, other in ((p, q), (q, p)):
            yield from ((s, other, o, both(when, t)) for s, _, o, t in having(facts, one))


def inverse(facts):
    for p, _, q, when in having(facts, INVERSE):
        for one, other in ((p, q), (q, p)):
            yield from ((o, other, s, both(when, t)) for s, _, o, t in having(facts, one) if not is_literal(o))


def chain(facts):
    for head, _, text, when in having(facts, CHAIN):
        paths = None
        for step in json.loads(text):
            edges = [(s, o, t) for s, _, o, t in having(facts, step)]
            paths = (
                [(s, o, both(when, t)) for s, o, t in edges]
                if paths is None
                else [(a, d, both(t, u)) for a, b, t in paths for c, d, u in edges if b == c]
            )
        yield from ((s, head, o, t) for s, o, t in paths)


def rdfs2(facts):
    for p, _, c, when in having(facts, DOMAIN):
        yield from ((s, TYPE, c, both(when, t)) for s, _, _, t in having(facts, p))


def rdfs3(facts):
    for p, _, c, when in having(facts, RANGE):
        yield from ((o, TYPE, c, both(when, t)) for _, _, o, t in having(facts, p) if not is_literal(o))


def closed(predicate):
    def step(facts):
        for (a, _, b, t), (c, _, d, u) in itertools.product(having(facts, predicate), repeat=2):
            if b == c and a != d:
                yield a, predicate, d, both(t, u)

    return step


def rdfs7(facts):
    for p, _, q, when in having(facts, SUBPROPERTY):
        yield from ((s, q, o, both(when, t)) for s, _, o, t in having(facts, p))


def rdfs9(facts):
    for c, _, d, when in having(facts, SUBCLASS):
        yield from ((s, TYPE, d, both(when, t)) for s, _, _, t in having(facts, TYPE, c))


def equivalent_class(facts):
    for c, _, d, when in having(facts, EQUIVALENT_CLASS):
        for one, other in ((c, d), (d, c)):
            yield from ((s, TYPE, other, both(when, t)) for s, _, _, t in having(facts, TYPE, one))


STEPS = {
    "symmetric": symmetric,
    "transitive": transitive,
    "equivalent": equivalent,
    "inverse": inverse,
    "chain": chain,
    "rdfs2": rdfs2,
    "rdfs3": rdfs3,
    "rdfs5": closed(SUBPROPERTY),
    "rdfs7": rdfs7,
    "rdfs9": rdfs9,
    "rdfs11": closed(SUBCLASS),
    "equivalent class": equivalent_class,
}


# Proofs ---------------------------------------------------------------------------------------------------------------


def check_proofs(rows):
    """Every conclusion follows by its rule from its premises alone, which are there, and no proof rests on itself."""
    heights: dict[str, int] = {key: 0 for key, row in rows.items() if row["rule"] is None}
    for row in rows.values():
        premises = [rows[key] for key in row["premises"] or ()]
        assert bool(premises) == bool(row["rule"])
        if premises:
            given = [(one["subject"], one["predicate"], thing(one), when(one)) for one in premises]
            concluded = (row["subject"], row["predicate"], thing(row), when(row))
            assert concluded in set(STEPS[row["rule"]](given)), (row, premises)
            assert row["source"] == "inferred"
    waiting = [key for key in rows if key not in heights]
    while waiting:
        ready = [key for key in waiting if all(premise in heights for premise in rows[key]["premises"])]
        assert ready, "proofs that rest on themselves"
        heights |= {key: 1 + max(heights[premise] for premise in rows[key]["premises"]) for key in ready}
        waiting = [key for key in waiting if key not in heights]


def when(row):
    return key(row["start"], "00", ALWAYS[0]), key(row["end"], "99", ALWAYS[1])


def key(text, missing, unknown):
    if text is None:
        return unknown
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    year, month, day = (*rest.split("-"), missing, missing)[:3]
    return sign * int(year) * 10000 + int(month) * 100 + int(day)


# SPARQL and owlrl -----------------------------------------------------------------------------------------------------

PREFIXES = "".join(f"PREFIX {prefix}: <{full_iri(prefix + ':x')[:-1]}>\n" for prefix in ("rdf", "rdfs", "owl"))
UPDATES = (
    "INSERT { ?y ?p ?x } WHERE { ?p rdf:type owl:SymmetricProperty . ?x ?p ?y }",
    "INSERT { ?x ?p ?z } WHERE { ?p rdf:type owl:TransitiveProperty . ?x ?p ?y . ?y ?p ?z }",
    "INSERT { ?x ?q ?y } WHERE { ?p owl:equivalentProperty|^owl:equivalentProperty ?q . ?x ?p ?y }",
    "INSERT { ?y ?q ?x } WHERE { ?p owl:inverseOf|^owl:inverseOf ?q . ?x ?p ?y }",
    "INSERT { ?x rdf:type ?c } WHERE { ?p rdfs:domain ?c . ?x ?p ?y }",
    "INSERT { ?y rdf:type ?c } WHERE { ?p rdfs:range ?c . ?x ?p ?y }",
    "INSERT { ?x ?q ?y } WHERE { ?p rdfs:subPropertyOf ?q . ?x ?p ?y }",
    "INSERT { ?x rdf:type ?d } WHERE { ?x rdf:type ?c . ?c rdfs:subClassOf ?d }",
    "INSERT { ?x rdf:type ?d } WHERE { ?c owl:equivalentClass|^owl:equivalentClass ?d . ?x rdf:type ?c }",
    "INSERT { ?c rdfs:subClassOf ?d } WHERE { ?c rdfs:subClassOf+ ?d FILTER (?c != ?d) }",
    "INSERT { ?p rdfs:subPropertyOf ?q } WHERE { ?p rdfs:subPropertyOf+ ?q FILTER (?p != ?q) }",
)


def long(name):
    return full_iri(name) or f"http://w/{name}"


def sparql_closure(facts):
    """What SPARQL updates add, each rule again and again until nothing changes."""
    import pyoxigraph as ox

    names = {long(name): name for fact in facts for name in fact}
    names |= {full_iri(name): name for name in (TYPE, SUBCLASS, SUBPROPERTY)}
    store = ox.Store()
    updates = list(UPDATES)
    for s, p, o in facts:
        if p == CHAIN:
            path = "/".join(f"<{long(step)}>" for step in json.loads(o))
            updates.append(f"INSERT {{ ?x <{long(s)}> ?y }} WHERE {{ ?x {path} ?y }}")
        else:
            store.add(ox.Quad(*(ox.NamedNode(long(name)) for name in (s, p, o))))
    before = -1
    while before != len(store):
        before = len(store)
        for update in updates:
            store.update(PREFIXES + update)
    return {tuple(names[one.value] for one in quad.triple) for quad in store} if len(store) else set()


def owlrl_closure(facts):
    """What owlrl's OWL 2 RL adds."""
    import owlrl
    import rdflib
    from rdflib.collection import Collection

    graph = rdflib.Graph()
    for s, p, o in facts:
        if p == CHAIN:
            node = rdflib.BNode()
            Collection(graph, node, [rdflib.URIRef(long(step)) for step in json.loads(o)])
            graph.add((rdflib.URIRef(long(s)), rdflib.URIRef(full_iri(CHAIN)), node))
        else:
            graph.add(tuple(rdflib.URIRef(long(name)) for name in (s, p, o)))
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    return {tuple(str(one) for one in triple) for triple in graph}


# Worlds ---------------------------------------------------------------------------------------------------------------

ENTITIES = [f"e{number}" for number in range(6)]
CLASSES = [f"c{number}" for number in range(4)]
PROPERTIES = [f"p{number}" for number in range(5)]


def random_axiom(draw):
    """An axiom of any kind; ``draw`` chooses from a list."""
    kind = draw((*RULES, "kind"))
    p, q, c, d = draw(PROPERTIES), draw(PROPERTIES), draw(CLASSES), draw(CLASSES)
    return {
        "equivalent": (p, EQUIVALENT, q),
        "inverse": (p, INVERSE, q),
        "chain": (p, CHAIN, json.dumps([draw(PROPERTIES) for _ in range(draw([2, 2, 3]))])),
        "rdfs2": (p, DOMAIN, c),
        "rdfs3": (p, RANGE, c),
        "rdfs5": (p, SUBPROPERTY, q),
        "rdfs7": (p, SUBPROPERTY, q),
        "rdfs9": (c, SUBCLASS, d),
        "rdfs11": (c, SUBCLASS, d),
        "equivalent class": (c, EQUIVALENT_CLASS, d),
        "symmetric": (p, TYPE, SYMMETRIC),
    }.get(kind, (p, TYPE, TRANSITIVE))


def random_fact(draw):
    if draw(range(4)) == 0:
        return draw(ENTITIES), TYPE, draw(CLASSES)
    return draw(ENTITIES), draw(PROPERTIES), draw(ENTITIES)


def random_world(seed, axioms=12, facts=14):
    """A world that depends on a number alone."""
    draw = random.Random(seed).choice
    return {random_axiom(draw) for _ in range(axioms)} | {random_fact(draw) for _ in range(facts)}
