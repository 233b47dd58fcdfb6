"""Fast reader of N-Triples and N-Quads: simple lines are split here, other lines are parsed by pyoxigraph.

Most lines of a large file are ``<subject> <predicate> <object> .`` with single spaces, and their IRIs recur. Splitting
a line and looking up its IRIs is some four times faster than a parser. Pyoxigraph checks each IRI only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import UTF_16_MARKS
from merkhet.knowledge._iris import PREFIXES, short_name
from merkhet.knowledge.source_reader import ReadContext, read_blocks
from merkhet.knowledge.sources._literals import STRING, Literal
from merkhet.knowledge.sources._oxigraph_terms import QuadClassifier, syntax_error_reason
from merkhet.knowledge.sources._triple_classifier import TripleClassifier

BOM_8 = b"\xef\xbb\xbf"
_LINES_PER_BLOCK = 10_000
_MAX_CACHED = 400_000
# Matches only language tags that are certainly well-formed.
_TAG = rb"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-[A-Za-z]{2})?"
_LITERAL = re.compile(rb'"([^"\\\r]*)"(?:@(%b)|\^\^(<[^ <>"]+>))?' % _TAG)
_LANGUAGE_DATATYPES = (PREFIXES["rdf"] + "langString", PREFIXES["rdf"] + "dirLangString")


def read_line_format(
    ox: Any, rdf_format: Any, path: Path, context: ReadContext, triples: TripleClassifier
) -> Iterator[None]:
    """Read an N-Triples or N-Quads file and pass its triples to ``triples``; yield None after each block of lines.

    A malformed line is a bad row.
    """
    lines = _LineReader(ox, rdf_format, path, context, triples)
    for first, block in read_blocks(path, context):
        if first == 1:
            if block[0].startswith(UTF_16_MARKS):
                raise InputError(f"{path}:1: the text is UTF-16. Save the file as UTF-8.")
            block[0] = block[0].removeprefix(BOM_8)
        for start in range(0, len(block), _LINES_PER_BLOCK):
            lines.add(block[start : start + _LINES_PER_BLOCK], first + start)
            yield


class _LineReader:
    """A reader of lines with a cache of checked IRIs."""

    def __init__(self, ox: Any, rdf_format: Any, path: Path, context: ReadContext, triples: TripleClassifier) -> None:
        self._ox = ox
        self._format = rdf_format
        self._check = ox.NamedNode
        self._with_graphs = rdf_format == ox.RdfFormat.N_QUADS
        self._path = path
        self._context = context
        self._triples = triples
        self._quads = QuadClassifier(ox, triples, context)
        self._entities: dict[bytes, str] = {}
        self._plain: dict[bytes, str] = {}
        self._datatypes: dict[bytes, str] = {}

    def add(self, lines: list[bytes], first: int) -> None:
        """Classify the triples of a block of lines, first those of simple lines; ``first`` is the first line number."""
        entities, plain, add, facts = self._entities, self._plain, self._triples.add, self._triples.facts
        graph = None
        with_graphs = self._with_graphs
        if len(entities) > _MAX_CACHED:
            entities.clear()
            plain.clear()
        if lines[0].endswith(b"\r"):
            lines = [line.removesuffix(b"\r") for line in lines]
        odd: list[tuple[int, bytes]] = []
        number = first - 1
        for line in lines:
            number += 1
            try:
                if with_graphs:
                    line, graph = self._without_graph(line)
                subject, predicate, tail = line.split(b" ", 2)
                if tail[-2:] != b" .":
                    raise ValueError("no plain end")
                token = tail[:-2]
                subject_name = entities.get(subject) or self._read_entity(subject)
                if token[:1] == b'"':
                    name = entities.get(predicate) or self._read_entity(predicate)
                    add(subject_name, name, self._read_literal(token), graph, number)
                    continue
                object = entities.get(token) or self._read_entity(token)
                if predicate in plain:
                    facts.extend((subject_name, plain[predicate], object, graph, number))
                else:
                    self._add(subject_name, predicate, object, graph, number)
            except ValueError:
                odd.append((number, lines[number - first]))
        if odd:
            self._add_odd(odd)

    def _add(self, subject: str, predicate: bytes, object: str, graph: str | None, number: int) -> None:
        name = self._entity(predicate)
        self._triples.add(subject, name, object, graph, number)
        if self._triples.is_plain(name):
            self._plain[predicate] = name

    def _entity(self, token: bytes) -> str:
        return self._entities.get(token) or self._read_entity(token)

    def _without_graph(self, line: bytes) -> tuple[bytes, str]:
        at = line.rfind(b" <")
        token = line[at + 1 : -2]
        return line[:at] + b" .", self._entity(token)

    def _read_entity(self, token: bytes) -> str:
        if token[:1] != b"<" or token[-1:] != b">":
            raise ValueError("no plain IRI")
        iri = token[1:-1].decode()
        self._check(iri)
        name = self._entities[token] = short_name(iri)
        return name

    def _read_literal(self, token: bytes) -> Literal:
        match = _LITERAL.fullmatch(token)
        if not match:
            raise ValueError("no plain literal")
        text, tag, datatype = match.groups()
        if tag:
            return text.decode(), _LANGUAGE_DATATYPES[0], tag.decode().lower()
        return text.decode(), (self._datatypes.get(datatype) or self._datatype(datatype)) if datatype else STRING, None

    def _datatype(self, token: bytes) -> str:
        datatype: str = self._check(token[1:-1].decode()).value
        if datatype in _LANGUAGE_DATATYPES:
            raise ValueError("a text in a language without the language")
        self._datatypes[token] = datatype
        return datatype

    def _parse(self, text: bytes) -> list[Any]:
        return list(self._ox.parse(text, format=self._format))

    def _add_odd(self, odd: list[tuple[int, bytes]]) -> None:
        odd = [(number, line) for number, line in odd if line.strip() and not line.lstrip().startswith(b"#")]
        try:
            quads = self._parse(b"\n".join(line for _, line in odd))
        except SyntaxError:
            quads = []
        if len(quads) == len(odd):
            for (number, _), quad in zip(odd, quads, strict=True):
                self._quads.add(quad, number)
            return
        for number, line in odd:
            try:
                quads = self._parse(line)
            except SyntaxError as error:
                self._context.reject(f"{self._path}:{number}", _reason(line, error))
                continue
            for quad in quads:
                self._quads.add(quad, number)


def _reason(line: bytes, error: SyntaxError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as decode_error:
        return f"the text is not UTF-8 (byte {decode_error.start + 1} of the line)"
    return syntax_error_reason(error)
