"""Conversion of pyoxigraph's RDF terms and syntax errors."""

from __future__ import annotations

import re
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources._literals import Literal
from merkhet.knowledge.sources._triple_classifier import TripleClassifier

_MAX_CACHED = 200_000
_MAX_REASON_LENGTH = 300
_POSITION = re.compile(r"Parser error (?:at|between) (?:line|column)[^:]*: ")


def load_pyoxigraph() -> Any:
    """Import pyoxigraph.

    Raises:
        InputError: Pyoxigraph is not installed.
    """
    try:
        import pyoxigraph
    except ImportError as error:
        raise InputError("reading RDF needs pyoxigraph: pip install 'merkhet[rdf]'") from error
    return pyoxigraph


class QuadClassifier:
    """An adapter that passes pyoxigraph's quads to a triple classifier, with a bounded cache of short names."""

    def __init__(self, ox: Any, triples: TripleClassifier, context: ReadContext) -> None:
        self._named, self._blank, self._literal = ox.NamedNode, ox.BlankNode, ox.Literal
        self._triples = triples
        self._context = context
        self._short: dict[str, str] = {}

    def add(self, quad: Any, line: int = 0) -> None:
        """Classify a quad; a quad that contains a quoted triple is counted as skipped."""
        subject, object = self._term(quad.subject), self._term(quad.object)
        if not isinstance(subject, str) or object is None:
            self._context.count_skipped("statements about statements")
            return
        graph = quad.graph_name
        graph_name = self._name(graph.value) if type(graph) is self._named else None
        self._triples.add(subject, self._name(quad.predicate.value), object, graph_name, line)

    def _name(self, iri: str) -> str:
        name = self._short.get(iri)
        if name is None:
            if len(self._short) >= _MAX_CACHED:
                self._short.clear()
            name = self._short[iri] = short_name(iri)
        return name

    def _term(self, node: Any) -> str | Literal | None:
        kind = type(node)
        if kind is self._named:
            return self._name(node.value)
        if kind is self._literal:
            return node.value, node.datatype.value, node.language
        return str(node) if kind is self._blank else None


def syntax_error_reason(error: SyntaxError) -> str:
    """Return the message of a pyoxigraph syntax error without position and final period, shortened if it is long."""
    text = _POSITION.sub("", first_line(ValueError(error.msg or "")), count=1).rstrip(". ")
    text = text if len(text) <= _MAX_REASON_LENGTH else f"{text[:_MAX_REASON_LENGTH]}..."
    return "".join(letter if letter.isprintable() else "?" for letter in text)
