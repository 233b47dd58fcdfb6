"""Evidence that a name is wrong in a statement: complete or functional relations, and disjoint classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.questions.makers._template_sql import case_sql, sql_literal
from merkhet.questions.schema import Hierarchy, Relation, Schema

if TYPE_CHECKING:
    from merkhet.questions.makers.question_builder import QuestionBuilder

DECLARED, ASSUMED = "declared", "assumed"
"""Evidence of the wrong names of a question: declared in the schema or the knowledge, or only assumed."""
MODES = (DECLARED, ASSUMED)


class EvidenceRules:
    """Which relations and hierarchies have declared evidence, and which of them are asked about.

    A pair of names that is not true is known to be false if its relation is complete for one of the two fields: every
    distractor comes from a fact of the relation, so the knowledge states all true names beside it.
    """

    def __init__(self, schema: Schema, declared: Mapping[str, str], stated: Iterable[str], mode: str | None) -> None:
        """Decide what is asked.

        If the mode is not chosen and the knowledge declares nothing, all relations are asked about.

        Args:
            stated: Predicates of the knowledge's stated facts.
            declared: Predicates that the knowledge declares complete, with the field.
            mode: Evidence of the questions to make. None means declared evidence, or assumed if there is no other.
        """
        self.disjoint = {predicate: number for number, predicate in enumerate(schema.disjoint)}
        """Number of each predicate with disjoint classes."""
        parts: list[Relation | Hierarchy] = [*schema.relations.values(), *schema.hierarchies.values()]
        self._declared = dict(declared)
        self._complete = set(declared) | {
            predicate for part in parts if part.complete or part.functional for predicate in part.predicates
        }
        self._stated = frozenset(stated)
        self.is_chosen = mode is not None
        """Whether the user chose the evidence."""
        self.mode = mode or (DECLARED if self._is_any_declared(parts) else ASSUMED)
        self._asks_all = not self.is_chosen and self.mode == ASSUMED

    def _is_any_declared(self, parts: Iterable[Relation | Hierarchy]) -> bool:
        return any(self._stated.intersection(part.predicates) and self.has_evidence(part) for part in parts)

    def is_complete(self, part: Relation | Hierarchy) -> bool:
        """Return whether the knowledge states all true names of a relation or hierarchy."""
        if part.complete or part.functional:
            return True
        stated = self._stated.intersection(part.predicates)
        return bool(stated) and stated <= self._complete

    def states_all(self, relation: Relation, place: str) -> bool:
        """Return whether the knowledge states all true names of one field, ``object`` or ``subject``."""
        places = {relation.complete, "object" if relation.functional else None}
        if places == {None}:
            stated = self._stated.intersection(relation.predicates)
            declared = {self._declared.get(name) for name in stated}
            return bool(declared) and declared <= {place, "both"}
        return bool(places & {place, "both"})

    def taxonomy(self, part: Relation | Hierarchy) -> int | None:
        """Return the number of the disjoint classes that a relation or hierarchy leads to, if any."""
        return next((self.disjoint[name] for name in part.predicates if name in self.disjoint), None)

    def has_evidence(self, part: Relation | Hierarchy) -> bool:
        """Return whether some names are known to be wrong in statements of a relation or hierarchy."""
        return self.is_complete(part) or self.taxonomy(part) is not None

    def asks_openly(self, relation: Relation) -> bool:
        """Return whether open questions are asked, in which all other answers of the relation must be wrong."""
        return self._asks_all or self.is_complete(relation) == (self.mode == DECLARED)

    def asks_with_distractors(self, part: Relation | Hierarchy) -> bool:
        """Return whether questions with distractors are asked."""
        return self._asks_all or self.has_evidence(part) == (self.mode == DECLARED)

    @property
    def asks_comparisons(self) -> bool:
        """Whether numbers are compared; the evidence is their values."""
        return self.mode == DECLARED or not self.is_chosen

    def needs_disjoint_classes(self, part: Relation | Hierarchy) -> bool:
        """Return whether only disjoint classes show that a name is wrong."""
        return self.mode == DECLARED and not self.is_complete(part) and self.taxonomy(part) is not None


def count_evidence(builder: QuestionBuilder) -> list[dict[str, Any]]:
    """Count the relations and their facts, stated and inferred, by the evidence that other names are wrong."""
    rows = []
    for evidence in MODES:
        relations = [
            relation
            for relation in builder.used_relations
            if builder.evidence.has_evidence(relation) == (evidence == DECLARED)
        ]
        numbers = ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations) or "-1"
        rows.append(
            {
                "evidence": evidence,
                "relations": len(relations),
                "facts": builder.tables.count(f"worded where rel in ({numbers})"),
                "asked": evidence == builder.evidence.mode,
            }
        )
    return rows


def create_disjoint_classes(builder: QuestionBuilder) -> None:
    """Create the table ``class_sides``: the members of classes that are disjoint with others of their group.

    Its columns are ``taxonomy``, ``grp`` (the group), ``side`` (the class of the group) and ``name`` (a member, a
    subclass, or the class itself). The table ``class_overlaps`` has the pairs of sides with a common member, which are
    not disjoint.
    """
    rows = []
    for predicate, number in builder.evidence.disjoint.items():
        classes = builder.schema.disjoint[predicate]
        rows += [
            {"taxonomy": number, "grp": f"{place}", "side": name, "parent": None}
            for place, group in enumerate(classes.groups)
            for name in group
        ]
        rows += [{"taxonomy": number, "grp": f"below {name}", "side": None, "parent": name} for name in classes.below]
    if not rows:
        return
    columns = [("taxonomy", pa.int32()), ("grp", pa.string()), ("side", pa.string()), ("parent", pa.string())]
    builder.tables.load("class_groups", pa.Table.from_pylist(rows, pa.schema(columns)))
    predicates = case_sql(
        (f"f.predicate = {sql_literal(name)}", str(n)) for name, n in builder.evidence.disjoint.items()
    )
    builder.create_table(
        "class_links",
        f"""select distinct {predicates} as taxonomy, a.name as low, b.name as high
        from facts f join named a on a.entity = f.subject join named b on b.entity = f.object
        where f.rule is null and {predicates} is not null and a.name != b.name""",
    )
    make_transitive_closure(builder.tables, "select taxonomy, low, high from class_links", "subclasses", "taxonomy")
    builder.create_table(
        "class_sides",
        """with sides as (
            select taxonomy, grp, side from class_groups where side is not null
            union select g.taxonomy, g.grp, l.low as side from class_groups g
            join class_links l on l.taxonomy = g.taxonomy and l.high = g.parent
        )
        select taxonomy, grp, side, side as name from sides
        union select s.taxonomy, s.grp, s.side, c.low as name from sides s
        join subclasses c on c.taxonomy = s.taxonomy and c.high = s.side""",
    )
    builder.create_table(
        "class_overlaps",
        """select distinct x.taxonomy, x.grp, x.side as one, y.side as other from class_sides x join class_sides y
        on y.taxonomy = x.taxonomy and y.grp = x.grp and y.name = x.name and y.side != x.side""",
    )


def disjoint_names_sql(pairs: str) -> str:
    """Return an SQL query for the rows of ``pairs`` whose two names belong to disjoint classes.

    Args:
        pairs: Table or subquery with the columns id, taxonomy, one and other.
    """
    return f"""select distinct p.id, p.one, p.other from {pairs} p
        join class_sides x on x.taxonomy = p.taxonomy and x.name = p.one
        join class_sides y on y.taxonomy = p.taxonomy and y.grp = x.grp and y.name = p.other and y.side != x.side
        anti join class_overlaps o
            on o.taxonomy = x.taxonomy and o.grp = x.grp and o.one = x.side and o.other = y.side"""
