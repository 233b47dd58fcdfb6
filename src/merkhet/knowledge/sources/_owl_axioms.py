"""Conversion of OWL axioms with blank nodes (chains, unions, intersections, disjoint sets) to facts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from merkhet.knowledge._iris import (
    CHAIN,
    DISJOINT_CLASSES,
    DISJOINT_PROPERTIES,
    DOMAIN,
    EQUIVALENT_CLASS,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources._literals import Literal

Triple = tuple[str, str, str]
"""The short names of subject, predicate and object."""

EXPRESSIONS = "class expressions"
BLANK = "blank nodes"
_FIRST, _REST, _NIL = "rdf:first", "rdf:rest", "rdf:nil"
_UNION, _INTERSECTION, _DISJOINT_UNION = "owl:unionOf", "owl:intersectionOf", "owl:disjointUnionOf"
_DISJOINT = {"owl:AllDisjointClasses": DISJOINT_CLASSES, "owl:AllDisjointProperties": DISJOINT_PROPERTIES}
# A class in a union is only an alternative domain; schema.org has a predicate for alternatives.
_INCLUDES = {DOMAIN: "schema:domainIncludes", RANGE: "schema:rangeIncludes"}
_AXIOMS = {CHAIN, DOMAIN, RANGE, SUBCLASS, EQUIVALENT_CLASS, _UNION, _INTERSECTION, _DISJOINT_UNION}


def is_blank(name: str) -> bool:
    """Check whether a name denotes a blank node."""
    return name.startswith("_:")


class BlankNodeAxioms:
    """A collector of triples with blank nodes, which turns them into axioms at the end of the file.

    For a class expression that is skipped, only the triple that uses the expression is counted, not its inner triples.
    """

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._first: dict[str, str] = {}
        self._rest: dict[str, str] = {}
        self._lists: dict[str, tuple[str, str]] = {}
        self._disjoint: dict[str, str] = {}
        self._members: dict[str, str] = {}
        self._axioms: list[Triple] = []

    def add(self, subject: str, predicate: str, object: str | Literal) -> None:
        """Add a triple whose subject or object is a blank node; a triple without an axiom is counted as skipped."""
        if not isinstance(object, str):
            if not predicate.startswith("owl:"):
                self._context.count_skipped(BLANK)
        elif is_blank(subject):
            self._add_part(subject, predicate, object)
        elif predicate in _AXIOMS:
            self._axioms.append((subject, predicate, object))
        else:
            ontological = predicate == TYPE or predicate.startswith(("owl:", "rdfs:"))
            self._context.count_skipped(EXPRESSIONS if ontological else BLANK)

    def facts(self, location: str) -> Iterator[Triple]:
        """Yield the axioms as facts; an incomplete RDF list is a bad row at ``location``."""
        for subject, predicate, object in self._axioms:
            if predicate in (CHAIN, _DISJOINT_UNION, _UNION, _INTERSECTION):
                kind, items = predicate, self._list(object)
            elif object in self._lists:
                kind, items = self._lists[object][0], self._list(self._lists[object][1])
            else:
                self._context.count_skipped(EXPRESSIONS)
                continue
            if items is None:
                self._context.reject(location, f"the list in {predicate} of {subject} is incomplete")
                continue
            named = [item for item in items if not is_blank(item)]
            expanded = list(_expand_axiom(subject, predicate, kind, items, named))
            if not expanded or len(named) < len(items):
                self._context.count_skipped(EXPRESSIONS)
            yield from expanded
        for node, predicate in self._disjoint.items():
            items = self._list(self._members.get(node, ""))
            if items is None:
                self._context.reject(location, f"the members of a set for {predicate} are incomplete")
                continue
            yield from _pairs(predicate, items)

    def _add_part(self, node: str, predicate: str, object: str) -> None:
        if predicate == _FIRST:
            self._first[node] = object
        elif predicate == _REST:
            self._rest[node] = object
        elif predicate in (_UNION, _INTERSECTION):
            self._lists[node] = (predicate, object)
        elif predicate == "owl:members":
            self._members[node] = object
        elif predicate == TYPE and object in _DISJOINT:
            self._disjoint[node] = _DISJOINT[object]
        elif predicate in (SUBCLASS, EQUIVALENT_CLASS, DISJOINT_CLASSES):
            self._context.count_skipped(EXPRESSIONS)
        elif not (predicate.startswith("owl:") or (predicate == TYPE and object.startswith(("owl:", "rdf:", "rdfs:")))):
            self._context.count_skipped(BLANK)

    def _list(self, head: str) -> list[str] | None:
        """Return the items of an RDF list; None if the list is incomplete or cyclic."""
        items: list[str] = []
        visited: set[str] = set()
        while head != _NIL:
            if head in visited or head not in self._first or head not in self._rest:
                return None
            visited.add(head)
            items.append(self._first[head])
            head = self._rest[head]
        return items


def _expand_axiom(subject: str, predicate: str, kind: str, items: list[str], named: list[str]) -> Iterator[Triple]:
    """Yield an axiom about a list of classes or properties as facts; ``named`` excludes blank nodes from ``items``."""
    if predicate == CHAIN:
        # A chain with a blank node cannot be stored as a fact.
        if len(named) == len(items) == 1:
            yield named[0], SUBPROPERTY, subject
        elif items and len(named) == len(items):
            yield subject, CHAIN, json.dumps(items, ensure_ascii=False)
    elif predicate in _INCLUDES:
        each = kind == _INTERSECTION or len(items) == 1
        yield from ((subject, predicate if each else _INCLUDES[predicate], item) for item in named)
    elif kind == _INTERSECTION or (predicate == SUBCLASS and len(items) == 1):
        yield from ((subject, SUBCLASS, item) for item in named)
    elif predicate != SUBCLASS:
        # Each member of a union is a subclass of it.
        yield from ((item, SUBCLASS, subject) for item in named)
        if predicate == _DISJOINT_UNION:
            yield from _pairs(DISJOINT_CLASSES, named)


def _pairs(predicate: str, items: list[str]) -> Iterator[Triple]:
    named = sorted({item for item in items if not is_blank(item)})
    for index, left in enumerate(named):
        yield from ((left, predicate, right) for right in named[index + 1 :])
