"""Random graphs come back from RDF files, and lines are read as pyoxigraph reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merkhet.knowledge._iris import PREFIXES, short_name
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.rdf import read_rdf

ox = pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")

XSD = PREFIXES["xsd"]
FORMATS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "ttl": ox.RdfFormat.TURTLE,
    "jsonld": ox.RdfFormat.JSON_LD,
}
_LOCALS = st.text(st.sampled_from("abzABZ019_-.~é日"), min_size=1, max_size=4)
_IRIS = st.builds(
    lambda base, local: ox.NamedNode(base + local),
    st.sampled_from(
        ["http://e.org/", "http://dbpedia.org/resource/", "http://e.org/a/b#", "urn:x:", PREFIXES["dbo"] + "x"]
    ),
    _LOCALS,
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_LITERALS = st.one_of(
    st.builds(ox.Literal, _TEXTS),
    st.builds(
        lambda text, tag: ox.Literal(text, language=tag), _TEXTS, st.sampled_from(["en", "fr", "zh-Hans", "en-GB-oed"])
    ),
    st.builds(
        lambda value: ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer")), st.integers(-(2**53), 2**53)
    ),
    st.builds(
        lambda value: ox.Literal(repr(value), datatype=ox.NamedNode(XSD + "double")),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.builds(lambda day: ox.Literal(day.isoformat(), datatype=ox.NamedNode(XSD + "date")), st.dates()),
    st.builds(lambda text: ox.Literal(text, datatype=ox.NamedNode("http://e.org/type")), _TEXTS),
)
_TRIPLES = st.builds(ox.Triple, _IRIS, _IRIS, st.one_of(_IRIS, _LITERALS))


def read(path: Path, data: bytes, skip_bad: bool = False) -> tuple[ReadContext, Counter[tuple[str, str, Any]]]:
    path.write_bytes(data)
    reading = ReadContext(skip_bad=skip_bad)
    rows = [row for chunk in read_rdf(path, reading) for row in chunk.facts.to_pylist()]
    return reading, Counter((r["subject"], r["predicate"], r["object"] or (r["value"], r["unit"])) for r in rows)


def obvious(triple: Any) -> tuple[str, str, Any]:
    """What a triple should become, written down the plain way."""
    subject, predicate, value = triple
    start = (short_name(subject.value), short_name(predicate.value))
    if isinstance(value, ox.NamedNode):
        return (*start, short_name(value.value))
    if value.language:
        return (*start, f'"{value.value}"@{value.language}')
    if value.datatype.value in (XSD + "integer", XSD + "double"):
        return (*start, (float(value.value), None))
    return (*start, f'"{value.value}"')


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=st.lists(_TRIPLES, max_size=12))
def test_random_triples_come_back(suffix: str, graph: list[Any], tmp_path: Path) -> None:
    _, found = read(tmp_path / f"random.{suffix}", ox.serialize(graph, format=FORMATS[suffix]))
    expected = Counter(obvious(triple) for triple in graph)
    assert set(found) == set(expected)
    if suffix in ("nt", "nq"):
        assert found == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.tuples(
            _TRIPLES, st.sampled_from(["{} .", "{}\t.", " {} . ", "{}.", "{} . # word", "{}", "{} . .", "x{} ."])
        ),
        max_size=8,
    )
)
def test_lines_are_read_as_pyoxigraph_reads_them(lines: list[tuple[Any, str]], tmp_path: Path) -> None:
    texts = [form.format(str(triple)) for triple, form in lines]
    expected: Counter[Any] = Counter()
    bad = 0
    for text in texts:
        try:
            expected.update(obvious(quad.triple) for quad in list(ox.parse(text, format=ox.RdfFormat.N_TRIPLES)))
        except SyntaxError:
            bad += 1
    reading, found = read(tmp_path / "lines.nt", "\n".join(texts).encode(), skip_bad=True)
    assert found == expected
    assert reading.bad == bad
