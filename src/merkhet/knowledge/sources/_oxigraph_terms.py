"""What pyoxigraph parses, as merkhet writes it: short names, literals, errors in one line."""

from __future__ import annotations

import re
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources._literals import Literal
from merkhet.knowledge.sources._triple_classifier import Triples

_NAMES_KEPT = 200_000
_LONGEST_REASON = 300
_POSITION = re.compile(r"Parser error (?:at|between) (?:line|column)[^:]*: ")


def load_pyoxigraph() -> Any:
    """The package that parses RDF; one line says how to get it where it is missing."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise InputError("reading RDF needs pyoxigraph: pip install 'merkhet[rdf]'") from error
    return pyoxigraph


class Quads:
    """Takes pyoxigraph's quads and gives them to be sorted; short names are remembered, up to a bound."""

    def __init__(self, ox: Any, triples: Triples, context: ReadContext) -> None:
        self._named, self._blank, self._literal = ox.NamedNode, ox.BlankNode, ox.Literal
        self._triples = triples
        self._context = context
        self._short: dict[str, str] = {}

    def add(self, quad: Any, line: int = 0) -> None:
        """Sort one quad; a triple that stands as a term is of no use here and counted."""
        subject, object = self._term(quad.subject), self._term(quad.object)
        if not isinstance(subject, str) or object is None:
            self._context.count_skipped("statements about statements")
            return
        graph = quad.graph_name
        graph_name = self._name(graph.value) if type(graph) is self._named else None
        self._triples.add(subject, self._name(quad.predicate.value), object, graph_name, line)

    def _name(self, iri: str) -> str:
        found = self._short.get(iri)
        if found is None:
            if len(self._short) >= _NAMES_KEPT:
                self._short.clear()
            found = self._short[iri] = short_name(iri)
        return found

    def _term(self, node: Any) -> str | Literal | None:
        kind = type(node)
        if kind is self._named:
            return self._name(node.value)
        if kind is self._literal:
            return node.value, node.datatype.value, node.language
        return str(node) if kind is self._blank else None


def said_by(error: SyntaxError) -> str:
    """The reason in a syntax error of pyoxigraph, without the position, as part of a sentence."""
    text = _POSITION.sub("", first_line(ValueError(error.msg or "")), count=1).rstrip(". ")
    text = text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
    return "".join(letter if letter.isprintable() else "?" for letter in text)
