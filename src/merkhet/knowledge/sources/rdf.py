"""Streaming source for RDF files: N-Triples, Turtle, RDF/XML, JSON-LD, N-Quads and TriG."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.parsers import expat

from merkhet.core.compressed_files import format_suffix, is_compressed
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import UTF_16_MARKS
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.predicate_labels import select_by_label
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, open_file
from merkhet.knowledge.sources._ntriples import BOM_8, read_line_format
from merkhet.knowledge.sources._oxigraph_terms import QuadClassifier, load_pyoxigraph, syntax_error_reason
from merkhet.knowledge.sources._triple_classifier import TripleClassifier

# Pyoxigraph's names of the formats.
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
_XML_BLOCK_BYTES = 8192
# Parsers get slower with each level of nesting, and with each byte of an unclosed tag.
_MAX_TAG_BYTES, _MAX_DEPTH = 1 << 20, 1000
_QUADS_PER_BLOCK = 5000
_NO_SKIP = "Correct the file; --skip-bad works only for N-Triples and N-Quads."


def read_rdf(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts and names of an RDF file.

    Options:

    * ``format`` (nt, turtle, rdfxml, jsonld, nquads or trig) is needed if the suffix does not determine the format;
    * ``base`` is the base of relative IRIs;
    * ``language`` is the language of names without a language tag (default: en).

    Raises:
        InputError: The file is malformed; the message states the line. In N-Triples and N-Quads, a malformed line is a
            bad row, which can be skipped.
    """
    context.check_options("base", "format", "language")
    select_by_label(context, lambda scan: read_rdf(path, scan))
    ox = load_pyoxigraph()
    format_name = _rdf_format(path, context)
    rdf_format = getattr(ox.RdfFormat, _FORMATS[format_name], None)
    if rdf_format is None:
        raise InputError(f"{path}: this pyoxigraph does not read {format_name}: pip install -U 'merkhet[rdf]'")
    triples = TripleClassifier(path, context)
    if format_name in ("nt", "nquads"):
        blocks = read_line_format(ox, rdf_format, path, context, triples)
    else:
        blocks = _read_stream(ox, rdf_format, path, context, triples)
    for _ in blocks:
        if len(triples) >= ROWS_IN_CHUNK:
            yield triples.flush()
    yield from triples.finish()


def _rdf_format(path: Path, context: ReadContext) -> str:
    name = context.option("format") or _SUFFIXES.get(format_suffix(path), "")
    if name in _FORMATS:
        return name
    if name:
        raise InputError(f"unknown RDF format {name!r}; {did_you_mean(name, _FORMATS)}")
    known = ", ".join(_FORMATS)
    raise InputError(f"{path}: the suffix does not tell the RDF format; set the option format to one of {known}")


def _base_iri(path: Path, context: ReadContext, ox: Any) -> str:
    """Return the base of relative IRIs: the option ``base``, or an IRI made from the file name.

    The IRI does not contain the path of the file, because it must be the same on every machine.
    """
    base = context.option("base")
    try:
        return str(ox.NamedNode(base or f"merkhet://{quote(path.stem if is_compressed(path) else path.name)}/").value)
    except ValueError as error:
        raise InputError(f"the option base must be an absolute IRI, got {base!r} ({error})") from error


def _read_stream(
    ox: Any, rdf_format: Any, path: Path, context: ReadContext, triples: TripleClassifier
) -> Iterator[None]:
    quads = QuadClassifier(ox, triples, context)
    base = _base_iri(path, context, ox)
    with open_file(path, context) as handle:
        start = handle.peek(4)[:4]
        if start.startswith(UTF_16_MARKS):
            raise InputError(f"{path}:1: the text is UTF-16. Save the file as UTF-8.")
        if start.startswith(BOM_8):
            handle.read(len(BOM_8))
        xml = _CheckedXml(handle, path) if rdf_format == ox.RdfFormat.RDF_XML else None
        try:
            for count, quad in enumerate(ox.parse(xml or handle, format=rdf_format, base_iri=base), 1):
                quads.add(quad)
                if not count % _QUADS_PER_BLOCK:
                    yield
        except SyntaxError as error:
            raise InputError(_describe_syntax_error(path, error, xml)) from error
    yield


def _describe_syntax_error(path: Path, error: SyntaxError, xml: _CheckedXml | None) -> str:
    reason = syntax_error_reason(error)
    if "LoadDocumentCallback" in reason:
        reason = "the @context is an address, and nothing is fetched; write the context into the file"
    elif "utf-8" in reason.lower():
        reason = "the text is not UTF-8; save the file as UTF-8"
    line = f":{error.lineno}" if error.lineno else f": before line {xml.line}" if xml else ""
    return f"{path}{line}: {reason}. {_NO_SKIP}"


class _CheckedXml(io.RawIOBase):
    """A stream that checks XML while it is read, because pyoxigraph does not notice a truncated file."""

    def __init__(self, handle: io.BufferedReader, path: Path) -> None:
        self._handle = handle
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._ended = False
        self._bytes_read = 0
        self._depth = 0

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._parser.CurrentLineNumber

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read bytes into ``buffer`` and check them.

        Raises:
            InputError: The XML is not well-formed, too deeply nested, or has a tag that is too long.
        """
        # Small blocks keep ``line`` close to the position of a pyoxigraph error.
        data = self._handle.read(min(len(buffer), _XML_BLOCK_BYTES))
        try:
            if data or not self._ended:
                self._parser.Parse(data, not data)
            self._ended = not data
            self._bytes_read += len(data)
            if self._bytes_read - self._parser.CurrentByteIndex > _MAX_TAG_BYTES:
                raise self._syntax_error("a tag is longer than a megabyte")
        except expat.ExpatError as error:
            raise self._syntax_error(expat.ErrorString(error.code), error.lineno) from error
        except LookupError as error:
            raise self._syntax_error(str(error)) from error
        buffer[: len(data)] = data
        return len(data)

    def _open(self, _name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._syntax_error(f"elements are nested more than {_MAX_DEPTH:,} deep")

    def _close(self, _name: str) -> None:
        self._depth -= 1

    def _syntax_error(self, reason: str, line: int | None = None) -> InputError:
        return InputError(f"{self._path}:{line or self.line}: not well-formed XML ({reason}). {_NO_SKIP}")
