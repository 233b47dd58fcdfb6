"""An ontology of any size, made from a seed by DuckDB: classes, properties of every kind, instances and their facts.

It is written twice with the same facts: ``facts.parquet`` with the names that merkhet uses, and ``facts.nt``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

BASE = "http://www.wikidata.org/entity/"
"""Names are of Wikidata's form, so that merkhet knows them by their short names: Q5, P7."""
ENTITIES_FROM = 1_000_000
PROPERTIES_FROM = 10_000
PROPERTIES = 60
TREE = 400
IRIS = {
    "rdf:": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs:": "http://www.w3.org/2000/01/rdf-schema#",
    "owl:": "http://www.w3.org/2002/07/owl#",
}
# A small geography among the properties: what parts and homes say of where things are.
LOCATED_IN, LOCATION_OF, RELATED_TO, PART_OF, LIVES_IN, BORN_IN = 44, 45, 46, 50, 51, 52
BELOW = ((PART_OF, LOCATED_IN), (LIVES_IN, LOCATED_IN), (LOCATION_OF, RELATED_TO))
TRANSITIVE = (PART_OF, 54)
SYMMETRIC = (RELATED_TO, 53, 55)
INVERSE = ((30, 31), (32, 33), (34, 35), (57, PART_OF), (LOCATED_IN, LOCATION_OF))
EQUIVALENT = ((36, 37), (38, 39), (40, 41), (58, LIVES_IN))
CHAINS = ((LIVES_IN, (LIVES_IN, PART_OF)), (59, (BORN_IN, PART_OF, PART_OF)))


@dataclass(frozen=True)
class World:
    """Where an ontology was written, and how many facts it has; chains are lists in RDF and one fact in merkhet."""

    parquet: Path
    ntriples: Path
    facts: int


def property_name(number: int) -> str:
    return f"P{number + PROPERTIES_FROM}"


def class_name(number: int) -> str:
    return f"Q{number + 1}"


def entity(number: str) -> str:
    """SQL for the name of an entity by its number."""
    return f"'Q' || ({ENTITIES_FROM} + {number})"


def schema(classes: int) -> list[tuple[str, str, str]]:
    """The axioms but for the tree of classes; chains are not among them."""
    axioms = [(property_name(low), "rdfs:subPropertyOf", property_name(high)) for low, high in BELOW]
    for number in range(10, 30):
        above = (number * 7) % 10 if number < 22 else number - 10
        axioms.append((property_name(number), "rdfs:subPropertyOf", property_name(above)))
    for number in range(7):
        place = 5 * number
        axioms.append((property_name(place), "rdfs:domain", class_name(1 + number % min(classes - 1, 40))))
        axioms.append((property_name(place + 1), "rdfs:range", class_name(1 + number * 2 % min(classes - 1, 40))))
    axioms += [(property_name(number), "rdf:type", "owl:TransitiveProperty") for number in TRANSITIVE]
    axioms += [(property_name(number), "rdf:type", "owl:SymmetricProperty") for number in SYMMETRIC]
    axioms += [(property_name(one), "owl:inverseOf", property_name(other)) for one, other in INVERSE]
    axioms += [(property_name(one), "owl:equivalentProperty", property_name(other)) for one, other in EQUIVALENT]
    axioms.append((class_name(classes - 1), "owl:equivalentClass", class_name(classes // 2)))
    return sorted(set(axioms))


def make_world(facts: int, folder: Path, seed: int = 1, *, ntriples: bool = True) -> World:
    """Write an ontology of about so many facts; the same size and seed give the same facts.

    A seventh of the facts are types, a fiftieth the edges of a forest of parts, the rest are drawn evenly over the
    other properties.
    """
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    world = World(folder / "facts.parquet", folder / "facts.nt", 0)
    classes, entities, parts = max(20, facts // 500), facts // 7, facts // 50
    connection = duckdb.connect()
    connection.execute(f"create macro draw(i, what) as hash(i * 1000003 + what * 7919 + {seed})")
    connection.execute("create table facts (subject varchar, predicate varchar, object varchar)")
    connection.executemany("insert into facts values (?, ?, ?)", schema(classes))
    tree = f"select 'Q' || (i + 1), 'rdfs:subClassOf', 'Q' || ((i - 1) // 3 + 1) from range(1, {classes}) t(i)"
    types = f"select {entity('i')}, 'rdf:type', 'Q' || (draw(i, 1) % {classes} + 1) from range({entities}) t(i)"
    # Many trees of moderate size: no entity has so many parts that a store without a joint index would suffer.
    forest = (
        f"select {entity('i')}, '{property_name(PART_OF)}', {entity(f'i - i % {TREE} + (i % {TREE} - 1) // 3')} "
        f"from range({parts}) t(i) where i % {TREE} > 0"
    )
    rest = facts - entities - parts - classes
    object = f"case when p in ({LIVES_IN}, {BORN_IN}) then draw(i, 4) % {parts} else draw(i, 4) % {entities} end"
    # No facts of the transitive ones among those drawn: a random graph's closure is all pairs.
    drawn = (
        f"select {entity(f'draw(i, 3) % {entities}')}, 'P' || (p + {PROPERTIES_FROM}), {entity(object)} "
        f"from (select i, draw(i, 5) % {PROPERTIES} as p from range({rest}) t(i)) where p not in (50, 54, 57)"
    )
    for query in (tree, types, forest, drawn):
        connection.execute(f"insert into facts {query}")
    connection.execute("create table given as select distinct * from facts order by all")
    chains = [
        (property_name(head), "owl:propertyChainAxiom", json.dumps([property_name(step) for step in steps]))
        for head, steps in CHAINS
    ]
    connection.execute(iri_macro())
    if ntriples:
        connection.execute(
            "copy (select iri(subject) || ' ' || iri(predicate) || ' ' || iri(object) || ' .' from given) "
            f"to '{world.ntriples}' (header false, delimiter '', quote '')"
        )
    connection.executemany("insert into given values (?, ?, ?)", chains)
    connection.execute(f"copy given to '{world.parquet}' (format parquet)")
    [(count,)] = connection.execute("select count(*) from given").fetchall()
    if ntriples:
        with open(world.ntriples, "a", encoding="utf-8") as handle:
            handle.writelines(_chain_lines())
    connection.close()
    return World(world.parquet, world.ntriples, int(count))


def iri_macro() -> str:
    """SQL that defines ``iri``: a name as N-Triples writes it."""
    long = f"case when regexp_full_match(x, '[QP][0-9]+') then '{BASE}' || x else x end"
    for prefix, iri in IRIS.items():
        long = f"case when starts_with(x, '{prefix}') then '{iri}' || x[{len(prefix) + 1}:] else {long} end"
    return f"create or replace temp macro iri(x) as '<' || {long} || '>'"


def _chain_lines() -> list[str]:
    rdf, lines = IRIS["rdf:"], []
    for number, (head, steps) in enumerate(CHAINS):
        nodes = [f"_:chain{number}n{place}" for place in range(len(steps))]
        lines.append(f"<{BASE}{property_name(head)}> <{IRIS['owl:']}propertyChainAxiom> {nodes[0]} .\n")
        for place, (node, step) in enumerate(zip(nodes, steps, strict=True)):
            rest = nodes[place + 1] if place + 1 < len(nodes) else f"<{rdf}nil>"
            lines.append(f"{node} <{rdf}first> <{BASE}{property_name(step)}> .\n{node} <{rdf}rest> {rest} .\n")
    return lines


def main() -> None:
    """Make one, for a parent that is to stay small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--ntriples", action="store_true")
    options = parser.parse_args()
    make_world(options.facts, options.folder, ntriples=options.ntriples)


if __name__ == "__main__":
    main()
