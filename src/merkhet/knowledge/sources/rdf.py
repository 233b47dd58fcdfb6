"""RDF files as knowledge: N-Triples, Turtle, RDF/XML, JSON-LD, N-Quads and TriG, read as a stream."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, format_suffix, is_compressed, open_file
from merkhet.knowledge.sources._ntriples import BOM_8, BOM_16, read_line_format
from merkhet.knowledge.sources._oxigraph_terms import Quads, load_pyoxigraph, said_by
from merkhet.knowledge.sources._triple_classifier import Triples

# What pyoxigraph calls a format.
_FORMATS = {
    "nt": "N_TRIPLES",
    "turtle": "TURTLE",
    "rdfxml": "RDF_XML",
    "jsonld": "JSON_LD",
    "nquads": "N_QUADS",
    "trig": "TRIG",
}
_SUFFIXES = {
    ".nt": "nt",
    ".ttl": "turtle",
    **dict.fromkeys((".rdf", ".owl", ".xml"), "rdfxml"),
    ".jsonld": "jsonld",
    ".nq": "nquads",
    ".trig": "trig",
}
_BYTES_OF_XML = 8192
# What parsers look back over costs more with each level, and with each byte of a tag that does not end.
_BYTES_OF_TAG, _DEEPEST = 1 << 20, 1000
_QUADS_AT_ONCE = 5000
_NO_SKIP = "Mend the file; --skip-bad works line by line, for N-Triples and N-Quads."


def read_rdf(place: Path, context: ReadContext) -> Iterator[Chunk]:
    """The facts and names of an RDF file, in chunks.

    Options: ``format`` (nt, turtle, rdfxml, jsonld, nquads, trig) where the suffix does not tell it, ``base`` for
    relative IRIs, ``language`` of names without a tag (en). Refuses a malformed file, naming the line; in N-Triples
    and N-Quads a bad line is left out and counted if that was asked for.
    """
    context.check_options("base", "format", "language")
    ox = load_pyoxigraph()
    name = _format_of(place, context)
    form = getattr(ox.RdfFormat, _FORMATS[name], None)
    if form is None:
        raise InputError(f"{place}: this pyoxigraph does not read {name}: pip install -U 'merkhet[rdf]'")
    triples = Triples(place, context)
    if name in ("nt", "nquads"):
        pieces = read_line_format(ox, form, place, context, triples)
    else:
        pieces = _read_stream(ox, form, place, context, triples)
    for _ in pieces:
        if len(triples) >= ROWS_IN_CHUNK:
            yield triples.take()
    yield from triples.finish()


def _format_of(path: Path, context: ReadContext) -> str:
    name = context.option("format") or _SUFFIXES.get(format_suffix(path), "")
    if name in _FORMATS:
        return name
    if name:
        raise InputError(f"there is no RDF format {name!r}; {did_you_mean(name, _FORMATS)}")
    raise InputError(f"{path}: the name does not tell the RDF format; give the option format: {', '.join(_FORMATS)}")


def _base_of(path: Path, context: ReadContext, ox: Any) -> str:
    """What relative IRIs are relative to: the same on every machine, so never the file's path."""
    given = context.option("base")
    try:
        return str(ox.NamedNode(given or f"merkhet://{quote(path.stem if is_compressed(path) else path.name)}/").value)
    except ValueError as error:
        raise InputError(f"the option base is {given!r}, which is no absolute IRI ({error})") from error


def _read_stream(ox: Any, form: Any, path: Path, context: ReadContext, triples: Triples) -> Iterator[None]:
    quads = Quads(ox, triples, context)
    base = _base_of(path, context, ox)
    with open_file(path, context) as handle:
        start = handle.peek(4)[:4]
        if start.startswith(BOM_16):
            raise InputError(f"{path}:1: the text is UTF-16. Save the file as UTF-8.")
        if start.startswith(BOM_8):
            handle.read(len(BOM_8))
        xml = _WellFormed(handle, path) if form == ox.RdfFormat.RDF_XML else None
        try:
            for count, quad in enumerate(ox.parse(xml or handle, format=form, base_iri=base), 1):
                quads.add(quad)
                if not count % _QUADS_AT_ONCE:
                    yield
        except SyntaxError as error:
            raise InputError(_malformed(path, error, xml)) from error
    yield


def _malformed(path: Path, error: SyntaxError, xml: _WellFormed | None) -> str:
    reason = said_by(error)
    if "LoadDocumentCallback" in reason:
        reason = "the @context is an address, and nothing is fetched; write the context into the file"
    elif "utf-8" in reason.lower():
        reason = "the text is not UTF-8; save the file as UTF-8"
    line = f":{error.lineno}" if error.lineno else f": before line {xml.line}" if xml else ""
    return f"{path}{line}: {reason}. {_NO_SKIP}"


class _WellFormed(io.RawIOBase):
    """XML as it is read, checked on the way: pyoxigraph takes a file that breaks off for one that ends."""

    def __init__(self, handle: io.BufferedReader, path: Path) -> None:
        self._handle = handle
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._ended = False
        self._given = 0
        self._depth = 0

    @property
    def line(self) -> int:
        """The line up to which the text was read."""
        return self._parser.CurrentLineNumber

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer; refuses what is not well-formed, by line."""
        # Little at a time, so that the line of an error of pyoxigraph's is near.
        data = self._handle.read(min(len(buffer), _BYTES_OF_XML))
        try:
            if data or not self._ended:
                self._parser.Parse(data, not data)
            self._ended = not data
            self._given += len(data)
            if self._given - self._parser.CurrentByteIndex > _BYTES_OF_TAG:
                raise self._refused("a tag is longer than a megabyte")
        except expat.ExpatError as error:
            raise self._refused(expat.ErrorString(error.code), error.lineno) from error
        except LookupError as error:
            raise self._refused(str(error)) from error
        buffer[: len(data)] = data
        return len(data)

    def _open(self, _name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused(f"elements are nested more than {_DEEPEST:,} deep")

    def _close(self, _name: str) -> None:
        self._depth -= 1

    def _refused(self, reason: str, line: int | None = None) -> InputError:
        return InputError(f"{self._path}:{line or self.line}: not well-formed XML ({reason}). {_NO_SKIP}")
