"""RDF files: one graph in every format, literals, bad input."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from all_cases import check_all

sys.path.insert(0, str(Path(__file__).parent))
from rdf_files import facts_of, names_of, read, written

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS
from merkhet.knowledge._iris import PREFIXES
from merkhet.knowledge.sources import _ntriples as ntriples
from merkhet.knowledge.sources import _triple_classifier as triples
from merkhet.knowledge.sources._literals import read_literal

ox = pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")

XSD = PREFIXES["xsd"]
HEAD = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items()) + "@prefix : <http://e.org/> .\n"
SMALL = (
    HEAD
    + """
<http://e.org/onto> a owl:Ontology ; owl:imports <http://e.org/other> ; dcterms:title "An ontology" .
:City a owl:Class ; rdfs:label "city"@en , "Stadt"@de ; rdfs:subClassOf :Place ; rdfs:comment "A place."@en .
:capital a owl:ObjectProperty ; rdfs:domain :Country ; rdfs:range :City ; schema:inverseOf :capitalOf .
dbr:France :capital dbr:Paris ; rdfs:label "France" ; skos:altLabel "République française"@fr ;
  dbo:area "643801"^^dbt:squareKilometre ; dbo:population 67000000 ; dbo:founded "0843-08-10"^^xsd:date ;
  dbo:motto "Liberté \\"égalité\\""@fr , "a plain text" ; dbo:member true ;
  dbo:noted "2002-01-01T10:00:00Z"^^xsd:dateTime ;
  rdfs:seeAlso <http://e.org/page> ; dbo:neighbour [ rdfs:label "someone" ] .
<http://www.wikidata.org/entity/Q90> owl:sameAs dbr:Paris .
"""
)
E_ORG = "http://e.org/"
SMALL_FACTS = {
    (f"{E_ORG}City", "rdf:type", "owl:Class"),
    (f"{E_ORG}City", "rdfs:subClassOf", f"{E_ORG}Place"),
    (f"{E_ORG}capital", "rdf:type", "owl:ObjectProperty"),
    (f"{E_ORG}capital", "rdfs:domain", f"{E_ORG}Country"),
    (f"{E_ORG}capital", "rdfs:range", f"{E_ORG}City"),
    (f"{E_ORG}capital", "owl:inverseOf", f"{E_ORG}capitalOf"),
    ("dbr:France", f"{E_ORG}capital", "dbr:Paris"),
    ("dbr:France", "dbo:area", (643801.0, "dbt:squareKilometre")),
    ("dbr:France", "dbo:population", (67e6, None)),
    ("dbr:France", "dbo:founded", '"0843-08-10"'),
    ("dbr:France", "dbo:motto", '"Liberté "égalité""@fr'),
    ("dbr:France", "dbo:motto", '"a plain text"'),
    ("dbr:France", "dbo:member", '"true"'),
    ("dbr:France", "dbo:noted", '"2002-01-01"'),
    ("Q90", "owl:sameAs", "dbr:Paris"),
}
SMALL_NAMES = {
    (f"{E_ORG}City", "en", "city"),
    (f"{E_ORG}City", "de", "Stadt"),
    ("dbr:France", "en", "France"),
    ("dbr:France", "fr", ("République française",)),
}
SMALL_LEFT_OUT = {"annotations": 4, "descriptions": 1, "blank nodes": 2}
SUFFIXES = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "ttl": ox.RdfFormat.TURTLE,
    "rdf": ox.RdfFormat.RDF_XML,
    "owl": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
    "nq": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
}


class Listener:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def start(self, label: str, total: int, unit: str) -> None: ...
    def advance(self, label: str, done: int) -> None: ...
    def finish(self, label: str) -> None: ...
    def say(self, line: str) -> None:
        self.said.append(line)


def test_every_format_gives_the_same(tmp_path: Path) -> None:
    def check(suffix: str) -> None:
        data = ox.serialize(
            [quad.triple for quad in ox.parse(SMALL, format=ox.RdfFormat.TURTLE)], format=SUFFIXES[suffix]
        )
        listener = Listener()
        reading, chunks = read(written(tmp_path / f"small.{suffix}", data), progress=listener)
        assert facts_of(chunks) == Counter(SMALL_FACTS)
        assert names_of(chunks) == SMALL_NAMES
        assert dict(reading.left_out) == SMALL_LEFT_OUT
        assert listener.said == [f"small.{suffix}: imports are not followed: http://e.org/other"]
        assert {row["source"] for chunk in chunks for row in chunk.facts.to_pylist()} == {f"small.{suffix}"}
        assert all(chunk.facts.schema == FACTS.schema for chunk in chunks)

    check_all(check, SUFFIXES)


def test_compressed_files(tmp_path: Path) -> None:
    def check(packed: str, suffix: str) -> None:
        data = ox.serialize(
            [quad.triple for quad in ox.parse(SMALL, format=ox.RdfFormat.TURTLE)], format=SUFFIXES[suffix]
        )
        compress = {
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
            "zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
        }[packed]
        _, chunks = read(written(tmp_path / f"small.{suffix}.{packed}", compress(data)))
        assert facts_of(chunks) == Counter(SMALL_FACTS)
        broken = written(tmp_path / f"broken.{suffix}.{packed}", compress(data)[:-20])
        with pytest.raises(InputError, match=r"broken\.\w+\.\w+: the compressed file is broken|broken\.\w+\.\w+:\d+:"):
            read(broken)

    check_all(check, product(["gz", "bz2", "xz", "zst"], ["nt", "ttl", "rdf", "jsonld"]))


def test_graphs_are_said_of_the_fact(tmp_path: Path) -> None:
    for name, text in {
        "g.nq": "<http://e.org/a> <http://e.org/p> <http://e.org/b> <https://schema.org/g> .\n"
        '<http://e.org/a> <http://e.org/p> "3"^^<http://www.w3.org/2001/XMLSchema#int> <https://schema.org/g> .\n'
        "<http://e.org/a> <http://e.org/p> <http://e.org/c> .\n"
        '<http://e.org/a> <http://e.org/q> "x <y>"^^<http://e.org/d> .\n',
        "g.trig": HEAD + 'schema:g { :a :p :b , "3"^^xsd:int } :a :p :c ; :q "x <y>"^^:d . ',
    }.items():
        _, chunks = read(written(tmp_path / name, text))
        assert len(facts_of(chunks)) == 4
        details = [row for chunk in chunks for row in chunk.details.to_pylist()]
        assert Counter((row["object"], row["value"], row["name"], row["text"]) for row in details) == Counter(
            [("http://e.org/b", None, "graph", "schema:g"), (None, 3.0, "graph", "schema:g")]
        )


def test_where_names_the_line_or_the_triple(tmp_path: Path) -> None:
    lines = (
        "# a comment\n<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n\n_:x <http://e.org/p> <http://e.org/b> .\n"
    )
    lines += '<http://e.org/a> <http://e.org/p> "7"^^<http://www.w3.org/2001/XMLSchema#byte> .\n'
    _, [chunk] = read(path := written(tmp_path / "a.nt", lines))
    assert chunk.where is not None
    assert [chunk.where(row) for row in range(2)] == [f"{path}:2", f"{path}:5"]
    _, [chunk] = read(path := written(tmp_path / "a.ttl", lines))
    assert chunk.where is not None
    assert chunk.where(0) == f"{path}: http://e.org/a http://e.org/p http://e.org/b"


def test_chunks_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merkhet.knowledge.sources.rdf.ROWS_IN_CHUNK", 100)
    monkeypatch.setattr(ntriples, "_LINES_PER_BLOCK", 50)
    monkeypatch.setattr(ntriples, "_MAX_CACHED", 30)
    monkeypatch.setattr(triples, "_MAX_CACHED_USES", 5)
    text = "".join(f"<http://e.org/{n}> <http://e.org/p{n % 9}> <http://e.org/{n + 1}> .\r\n" for n in range(1000))
    _, chunks = read(written(tmp_path / "many.nt", text))
    assert max(chunk.facts.num_rows for chunk in chunks) <= 150
    assert len(facts_of(chunks)) == 1000


def test_relative_iris_do_not_depend_on_the_machine(tmp_path: Path) -> None:
    _, chunks = read(written(tmp_path / "my file.ttl", "<> <#p> <a> . <../x> </y> <b> ."))
    root = "merkhet://my%20file.ttl/"
    assert set(facts_of(chunks)) == {(root, f"{root}#p", f"{root}a"), (f"{root}x", f"{root}y", f"{root}b")}
    _, chunks = read(tmp_path / "my file.ttl", options={"base": "http://e.org/o"})
    assert ("http://e.org/o", "http://e.org/o#p", "http://e.org/a") in facts_of(chunks)
    with pytest.raises(InputError, match="the option base must be an absolute IRI, got 'here'"):
        read(tmp_path / "my file.ttl", options={"base": "here"})


def test_options(tmp_path: Path) -> None:
    path = written(tmp_path / "data.txt", SMALL)
    assert facts_of(read(path, options={"format": "turtle"})[1]) == Counter(SMALL_FACTS)
    with pytest.raises(InputError, match=r"data\.txt: the suffix does not tell the RDF format"):
        read(path)
    with pytest.raises(InputError, match="unknown RDF format 'turtel'; did you mean 'turtle'"):
        read(path, options={"format": "turtel"})
    with pytest.raises(InputError, match="this source has no option 'lang'"):
        read(path, options={"lang": "de"})
    _, chunks = read(path, options={"format": "turtle", "language": "fr"})
    assert ("dbr:France", "fr", "France") in names_of(chunks)


def test_filters(tmp_path: Path) -> None:
    path = written(tmp_path / "small.ttl", SMALL)
    reading, chunks = read(path, languages=("de", "FR"))
    assert {name[1] for name in names_of(chunks)} == {"de", "fr"}
    assert reading.left_out["texts in other languages"] == 2
    reading, chunks = read(path, predicates=("http://e.org/capital", "rdfs:subClassOf", "http://schema.org/inverseOf"))
    assert {fact[1] for fact in facts_of(chunks)} == {f"{E_ORG}capital", "rdfs:subClassOf"}
    assert names_of(chunks) == SMALL_NAMES
    reading, chunks = read(path, predicates=("rdfs:comment", "owl:inverseOf"))
    assert {fact[1] for fact in facts_of(chunks)} == {"rdfs:comment", "owl:inverseOf"}


# Literals


def test_literals() -> None:
    def check(text: str, datatype: str, language: str | None, expected: tuple[Any, ...]) -> None:
        assert read_literal((text, XSD + datatype, language)) == expected

    check_all(
        check,
        [
            ("12", "integer", None, (None, 12.0, None)),
            (" -1.5e3 ", "double", None, (None, -1500.0, None)),
            ("1957", "gYear", None, ('"1957"', None, None)),
            ("-0044Z", "gYear", None, ('"-0044"', None, None)),
            ("1957-03", "gYearMonth", None, ('"1957-03"', None, None)),
            ("1957-03-15+02:00", "date", None, ('"1957-03-15"', None, None)),
            ("1957-03-15T23:59:59.9Z", "dateTime", None, ('"1957-03-15"', None, None)),
            ("--03-15", "gMonthDay", None, ('"--03-15"', None, None)),
            ("false", "boolean", None, ('"false"', None, None)),
            ("a", "string", None, ('"a"', None, None)),
            ("a", "string", "fr", ('"a"@fr', None, None)),
        ],
    )


def test_dbpedia_units_may_be_words() -> None:
    assert read_literal(("3.5", PREFIXES["dbt"] + "acre", None)) == (None, 3.5, "dbt:acre")
    assert read_literal(("OHC", PREFIXES["dbt"] + "valvetrain", None)) == ('"OHC"', None, None)


def test_bad_literals_are_refused_by_line(tmp_path: Path) -> None:
    def check(text: str, datatype: str) -> None:
        good = "<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n"
        bad = f'<http://e.org/a> <http://e.org/p> "{text}"^^<{XSD}{datatype}> .\n'
        path = written(tmp_path / "bad.nt", good + bad)
        with pytest.raises(InputError, match=rf'bad\.nt:2: "{text}" is not a .*Correct the row'):
            read(path)
        reading, chunks = read(path, skip_bad=True)
        assert (reading.bad, len(facts_of(chunks))) == (1, 1)
        with pytest.raises(InputError, match=r"bad\.ttl: http://e\.org/a http://e\.org/p .* is not a "):
            read(written(tmp_path / "bad.ttl", good + bad))

    check_all(
        check,
        [
            *(
                ("NaN", "double"),
                ("-INF", "float"),
                ("1e999", "double"),
                ("1_000", "integer"),
                ("١٢", "integer"),
                ("x", "int"),
            ),
            *(
                ("2020-02-30", "date"),
                ("1900-02-29", "date"),
                ("2020-13", "gYearMonth"),
                ("1957-04-31T10:00:00Z", "dateTime"),
            ),
            *(("1957-13-01", "date"), ("unknown", "gYear"), ("57", "gYear"), ("1957-03-15", "dateTime")),
        ],
    )


# Bad files


def test_bad_lines_are_named_or_skipped(tmp_path: Path) -> None:
    line = b"<http://e.org/%d> <http://e.org/p> <http://e.org/b> .\n"
    bad = [
        b"<http://e.org/a> <http://e.org/p> .\n",
        b"<http://e.org/a> <relative> <http://e.org/b> .\n",
        b'<http://e.org/a> <http://e.org/p> "no end .\n',
        b"<http://e.org/a> <http://e.org/p> <http://e.org/b>\n",
        b"<http://e.org/a> <http://e.org/p> <http://e.org/b> . <http://e.org/a> <http://e.org/p> <http://e.org/c> .\n",
        '<http://e.org/a> <http://e.org/p> "é" .\n'.encode("latin-1"),
        '<http://e.org/a> <http://e.org/é> "e" .\n'.encode("latin-1"),
        b'<http://e.org/a> <http://e.org/p> "e"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .\n',
        b'<http://e.org/a> <http://e.org/p> "e"@123 .\n',
        b"<http://e.org/%zz> <http://e.org/p> <http://e.org/b> .\n",
        b"<http://e.org/a> <http://e.org/p>  .\n",
        b"oops\n",
    ]
    good = [line % number for number in range(len(bad) + 1)]
    text = b"".join(one + other for one, other in zip(good, [*bad, b""], strict=True))
    for suffix in ("nt", "nq"):
        path = written(tmp_path / f"bad.{suffix}", text)
        with pytest.raises(InputError, match=rf"bad\.{suffix}:2: .*Correct the row"):
            read(path)
        reading, chunks = read(path, skip_bad=True)
        assert reading.bad == len(bad)
        assert set(facts_of(chunks)) == {(f"{E_ORG}{n}", f"{E_ORG}p", f"{E_ORG}b") for n in range(len(good))}
    for one in bad:
        with pytest.raises(InputError, match=r"one\.nt:1: [^\n]*$"):
            read(written(tmp_path / "one.nt", one))
    with pytest.raises(InputError, match=r"one\.nt:1: the text is not UTF-8 \(byte 36 of the line\)"):
        read(written(tmp_path / "one.nt", bad[5]))
    graph = "<http://e.org/a> <http://e.org/p> <http://e.org/b> <http://e.org/g> .\n"
    with pytest.raises(InputError, match=r"one\.nt:1: "):
        read(written(tmp_path / "one.nt", graph))


def test_malformed_files_are_refused_even_when_bad_lines_are_skipped(tmp_path: Path) -> None:
    def check(name: str, text: str | bytes, message: str) -> None:
        for skip_bad in (False, True):
            with pytest.raises(InputError, match=message) as caught:
                read(written(tmp_path / name, text), skip_bad=skip_bad)
            assert "\n" not in str(caught.value)

    check_all(
        check,
        [
            ("a.ttl", "<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n<http://e.org/a> oops .", r"a\.ttl:2: "),
            ("a.ttl", '<http://e.org/a> <http://e.org/p> "no end .\n\n', r"a\.ttl:1: "),
            ("a.ttl", "<http://e.org/a> <http://e.org/p>", r"a\.ttl:1: "),
            ("a.ttl", '<http://e.org/a> <http://e.org/p> "é" .'.encode("latin-1"), r"a\.ttl:1: the text is not UTF-8"),
            ("a.ttl", SMALL.encode("utf-16"), r"a\.ttl:1: the text is UTF-16"),
            ("a.nt", SMALL.encode("utf-16"), r"a\.nt:1: the text is UTF-16"),
            ("a.trig", "<http://e.org/g> {\n<http://e.org/a> <http://e.org/p> . }", r"a\.trig:2: "),
            ("a.jsonld", '{"@id": "http://e.org/a",\n"http://e.org/p": "x"', r"a\.jsonld:2: "),
            ("a.jsonld", "<not json>", r"a\.jsonld:1: "),
            (
                "a.jsonld",
                '{"@context": "https://schema.org", "name": "x"}',
                r"the @context is an address, and nothing is fetch",
            ),
            (
                "a.rdf",
                "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<a></rdf:RDF>",
                r"a\.rdf:2: not well-",
            ),
            ("a.rdf", "<a/>", r"a\.rdf: before line 1: "),
            ("a.rdf", "", r"a\.rdf:1: not well-formed XML \(no element found\)"),
            ("a.xml", "<?xml version='1.0' encoding='latin-1'?><r/>".encode("latin-1"), r"a\.xml"),
        ],
    )


def test_xml_that_breaks_off_is_refused(tmp_path: Path) -> None:
    data = ox.serialize(
        [quad.triple for quad in ox.parse(SMALL, format=ox.RdfFormat.TURTLE)], format=ox.RdfFormat.RDF_XML
    )
    whole = data.rstrip()
    cut = whole.rindex(b"</rdf:RDF>")
    with pytest.raises(InputError, match=r"cut\.rdf:\d+: not well-formed XML \(no element found\)"):
        read(written(tmp_path / "cut.rdf", whole[:cut]))


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    line = "\ufeff<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n"
    for suffix in ("nt", "ttl"):
        assert len(facts_of(read(written(tmp_path / f"bom.{suffix}", line))[1])) == 1


def test_a_missing_file_and_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read(tmp_path / "absent.ttl")
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    with pytest.raises(InputError, match=r"reading RDF needs pyoxigraph: pip install 'merkhet\[rdf\]'"):
        read(tmp_path / "absent.ttl")


def test_a_literal_where_an_entity_is_expected(tmp_path: Path) -> None:
    def check(predicate: str) -> None:
        text = HEAD + f':capital a owl:ObjectProperty .\n:a :capital :b .\n:a {predicate} "Paris" .\n'
        data = ox.serialize(
            [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)], format=ox.RdfFormat.N_TRIPLES
        )
        path = written(tmp_path / "a.nt", data)
        with pytest.raises(InputError, match=r"a\.nt:3: a literal where an entity is expected"):
            read(path)
        reading, chunks = read(path, skip_bad=True)
        assert (reading.bad, len(facts_of(chunks))) == (1, 2)
        with pytest.raises(
            InputError, match=r'a\.ttl: http://e.org/a .* "Paris": a literal where an entity is expected'
        ):
            read(written(tmp_path / "a.ttl", text))

    check_all(check, ["rdf:type", "rdfs:subClassOf", "owl:inverseOf", "schema:inverseOf", ":capital"])


def test_triples_as_terms_are_left_out(tmp_path: Path) -> None:
    reading, chunks = read(written(tmp_path / "a.nt", "<a:a> <a:b> <<( <a:a> <a:b> <a:c> )>> .\n<a:a> <a:b> <a:c> .\n"))
    assert (len(facts_of(chunks)), dict(reading.left_out)) == (1, {"statements about statements": 1})
