"""Labels of predicates in schemas: "birth place" stands for the predicate with this label."""

from __future__ import annotations

from dataclasses import replace

from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.predicate_labels import resolve_predicates
from merkhet.questions.schema import Schema


def resolve_labels(schema: Schema, tables: Tables) -> Schema:
    """Return a schema with the ids of predicates in place of labels and IRIs.

    A predicate of the schema that is no predicate of the facts stands for all predicates with this label or alias.
    """
    ids = {row[0] for row in tables.rows("select distinct predicate from facts")}
    if schema.predicates() <= ids:
        return schema
    labels = tables.rows(
        """select entity, label from names where entity in (select predicate from facts) and label is not null
        union all select entity, unnest(aliases) as label from names where entity in (select predicate from facts)"""
    )
    found = resolve_predicates(schema.predicates(), ids, [(row[0], row[1]) for row in labels])

    def resolve(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(predicate for name in names for predicate in found[name]))

    relations = {
        key: replace(
            relation,
            predicates=resolve(relation.predicates),
            kinship=found[relation.kinship][0] if relation.kinship else None,
        )
        for key, relation in schema.relations.items()
    }
    hierarchies = {key: replace(part, predicates=resolve(part.predicates)) for key, part in schema.hierarchies.items()}
    comparisons = {key: replace(part, predicates=resolve(part.predicates)) for key, part in schema.comparisons.items()}
    return replace(schema, relations=relations, hierarchies=hierarchies, comparisons=comparisons)
