"""Readers of knowledge: RDF, Wikidata, ConceptNet, tables, WordNet, quadruples, packs, and rules."""

from __future__ import annotations

import bz2
import functools
import gzip
import json
import lzma
from typing import Any

import duckdb

from fuzz import examples, mutations
from fuzz.oddities import json_bombs, yaml_bombs
from fuzz.readers.formats import refuse_impossible
from fuzz.targets import SEPARATOR, Place, Target, parts
from merkhet.knowledge._staging import stage_chunks
from merkhet.knowledge.database import create_tables, define_macros
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.source_lookup import read_source
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.store_import import import_knowledge


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    define_macros(connection)
    create_tables(connection)
    connection.execute("attach ':memory:' as staging")
    return connection


def _taken(place: str, **asked: Any) -> None:
    """Read a place whole and take each chunk in, as an import does, but without a file."""
    reading = ReadContext(**asked)
    connection = _connection()
    try:
        stage_chunks(connection, "staging.place", read_source(place, reading), reading)
    except BaseException:
        connection.execute("rollback")
        raise
    else:
        for column in ("start", "end"):
            query = f'select distinct "{column}" from staging.place.facts where "{column}" is not null'
            for (time,) in connection.execute(query).fetchall():
                refuse_impossible(time)
    finally:
        connection.execute("set force_compression = 'auto'")
        connection.execute("drop schema if exists staging.place cascade")


def _reads(name: str, *others: str, source: str = "", every: int = 40, **asked: Any) -> Any:
    """Read one file, or a folder of several; one of so many inputs goes through a whole import into a store."""

    def read(data: bytes, place: Place) -> None:
        given = _given(data, place)
        read.count += 1
        asked_now = {**asked, "skip_bad": read.count % 2 == 0}
        if read.count % every == 0:
            import_knowledge([given], place.out / "own.duckdb", memory="400MB", **asked_now)
        elif read.count % 4:
            for _ in read_source(given, ReadContext(**asked_now)):
                pass
        else:
            _taken(given, **asked_now)

    def _given(data: bytes, place: Place) -> str:
        files = parts(data, 1 + len(others))
        paths = [place.file(one, part) for one, part in zip((name, *others), files, strict=True) if part is not None]
        where = paths[0].parent if others or source in ("wordnet", "pack", "tables", "quadruples") else paths[0]
        return f"{source}={where}" if source else str(where)

    def command(data: bytes, place: Place) -> list[str]:
        options = [word for name, text in asked.get("options", {}).items() for word in _option(name, text)]
        return [
            "knowledge",
            "import",
            _given(data, place),
            "--into",
            str(place.out / "own.duckdb"),
            "--quiet",
            *options,
        ]

    read.count = 0  # type: ignore[attr-defined]
    return {"read": read, "command": command}


def _option(name: str, text: str) -> list[str]:
    kind, _, column = name.partition(".")
    return [f"--{kind}", f"{column}={text}"] if column else ["--set", f"{name}={text}"]


def _read_rules(data: bytes, place: Place) -> None:
    read_rules(place.file("rules.yaml", data)).roles()


def _xml_bombs() -> list[bytes]:
    laughs = (
        b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a0 "ha">'
        + b"".join(b'<!ENTITY a%d "&a%d;&a%d;&a%d;&a%d;">' % (n, n - 1, n - 1, n - 1, n - 1) for n in range(1, 20))
        + b"]>"
    )
    head = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/">'
    return [
        laughs + head + b'<a:x rdf:about="http://a/b"><a:y>&a19;</a:y></a:x></rdf:RDF>',
        b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY f SYSTEM "file:///etc/hosts">]>'
        + head
        + b"<a:x><a:y>&f;</a:y></a:x></rdf:RDF>",
        head + b"<a:x><a:y>" * 20_000,
        head + b"<a:x><a:y>" * 5_000 + b"</a:y></a:x>" * 5_000 + b"</rdf:RDF>",
        b'<?xml version="1.0" encoding="UTF-16"?><a/>',
        b'<?xml version="1.0" encoding="utf-99"?><a/>',
        b'<?xml version="1.0" encoding="latin-1"?>' + head + b'<a:x a:y="\xfc"/></rdf:RDF>',
    ]


def _turtle_bombs() -> list[bytes]:
    head = b"@prefix a: <http://a/> .\n"
    return [
        head + b"a:x a:y " + b"[ a:z " * 20_000,
        head + b"a:x a:y " + b"( " * 20_000,
        head + b"a:x a:y " + b"( " * 3_000 + b")" * 3_000 + b" .",
        head + b"a:x a:y " + b"[ a:z " * 3_000 + b"a:w " + b"]" * 3_000 + b" .",
        head + b'a:x a:y """' + b"x" * 5_000_000,
        head + b"a:x a:y " + b"9" * 100_000 + b" .",
        head + b"a:x a:y " + b"1e" + b"9" * 100 + b" .",
        head + b"@base <http://[> . <x> <y> <z> .",
    ]


def _json_nests() -> list[bytes]:
    return [
        b'{"@id":"x","@type":' + b"[" * 50_000,
        b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
        b'{"@context":"http://x/y","@id":"z"}',
        b'{"@context":' * 5000 + b"{}" + b"}" * 5000,
    ]


def _packed_bombs(pack: Any) -> list[bytes]:
    whole = pack(examples.DUMP)
    return [
        whole[:-1],
        whole + whole,
        whole + b"\0" * 8 + whole,
        whole + b"x",
        pack(whole),
        b"\xfd7zXZ\x00\x00\x04" + b"\xff" * 50,
        b"",
        pack(b""),
        pack(b"x" * 50_000_000),
        pack(b"[\n" + b"," * 20_000_000),
        pack(examples.DUMP)[:40],
        pack(b"\n" * 20_000_000),
        b"\x1f\x8b\x08\x04" + b"\xff" * 50,
        b"BZh9" + b"\x00" * 50,
    ]


def _dump_bombs() -> list[bytes]:
    return [b"[\n" + bomb + b"]\n" for bomb in json_bombs(examples.ENTITY)] + [
        b"[\n" * 1000,
        json.dumps(examples.ENTITY).replace('"+2100000"', '"' + "9" * 5000 + '"').encode(),
    ]


def targets() -> list[Target]:
    """The readers of knowledge."""
    words = tuple(term.encode() for term in examples.TERMS)
    lines = mutations.lines_of(examples.TERMS)
    wiki = (
        b'"claims":',
        b'"id": "Q1"',
        b'"precision": 11',
        b'"rank": "normal"',
        b'"time": "+1957-00-00T00:00:00Z"',
        b'"snaktype": "novalue"',
    )
    return [
        Target("N-Triples", seeds=(examples.TRIPLES,), grammar=lines, words=words, **_reads("facts.nt")),
        Target("N-Quads", seeds=(examples.QUADS,), grammar=lines, words=words, share=0.6, **_reads("facts.nq")),
        Target(
            "Turtle",
            seeds=(examples.TURTLE,),
            grammar=mutations.lines_of((*examples.TERMS, "[", "]", "(", ")", "a:x", "@prefix", "@base", "true", "1.5")),
            words=words,
            bombs=_turtle_bombs,
            guided=False,
            **_reads("facts.ttl"),
        ),
        Target(
            "TriG",
            seeds=(examples.TRIG, examples.TURTLE),
            grammar=mutations.lines_of((*examples.TERMS, "{", "}", "a:g", "GRAPH")),
            words=words,
            bombs=_turtle_bombs,
            guided=False,
            share=0.5,
            **_reads("facts.trig"),
        ),
        Target(
            "RDF/XML",
            seeds=(examples.XML,),
            grammar=mutations.lines_of(
                ("<a:x>", "</a:x>", "rdf:parseType='Collection'", "rdf:nodeID='b'", "<!--", "&lt;", "<![CDATA[")
            ),
            bombs=_xml_bombs,
            guided=False,
            **_reads("facts.owl"),
        ),
        Target(
            "JSON-LD",
            seeds=(examples.JSONLD,),
            grammar=mutations.json_documents,
            bombs=_json_nests,
            guided=False,
            share=0.6,
            **_reads("facts.jsonld"),
        ),
        Target(
            "Wikidata JSON",
            seeds=(examples.DUMP,),
            grammar=mutations.wikidata_lines,
            bombs=_dump_bombs,
            words=wiki,
            share=1.5,
            **_reads("dump.json"),
        ),
        Target(
            "Wikidata JSON (gz)",
            seeds=(gzip.compress(examples.DUMP, 1, mtime=0),),
            grammar=mutations.packed(mutations.wikidata_lines, "gz"),
            bombs=lambda: _packed_bombs(lambda d: gzip.compress(d, 1)),
            guided=False,
            share=0.5,
            **_reads("dump.json.gz"),
        ),
        Target(
            "Wikidata JSON (bz2)",
            seeds=(bz2.compress(examples.DUMP, 1),),
            grammar=mutations.packed(mutations.wikidata_lines, "bz2"),
            bombs=lambda: _packed_bombs(lambda d: bz2.compress(d, 1)),
            guided=False,
            share=0.5,
            **_reads("dump.json.bz2", options={"names": "used"}),
        ),
        Target(
            "Wikidata JSON (xz)",
            seeds=(lzma.compress(examples.DUMP, preset=0),),
            grammar=mutations.packed(mutations.wikidata_lines, "xz"),
            bombs=lambda: _packed_bombs(lambda d: lzma.compress(d, preset=0)),
            guided=False,
            share=0.5,
            **_reads("dump.json.xz"),
        ),
        Target(
            "CSV (xz)",
            seeds=(lzma.compress(examples.CSV, preset=0),),
            grammar=mutations.packed(mutations.tables(","), "xz"),
            bombs=lambda: _packed_bombs(lambda d: lzma.compress(d, preset=0)),
            guided=False,
            share=0.4,
            **_reads("facts.csv.xz"),
        ),
        Target(
            "ConceptNet",
            seeds=(examples.CONCEPTS,),
            grammar=mutations.lines_of(
                (
                    "/c/en/cat",
                    "/c/",
                    "/c/en/",
                    "/r/IsA",
                    "/r/",
                    '{"weight": 1.0}',
                    '{"weight": NaN}',
                    '{"weight": ' + "9" * 5000 + "}",
                    '{"weight":1,"dataset":[]}',
                ),
                "\t",
            ),
            **_reads("conceptnet-assertions-5.7.0.csv", languages=("en",)),
        ),
        Target("CSV", seeds=(examples.CSV,), grammar=mutations.tables(","), share=1.5, **_reads("facts.csv")),
        Target(
            "CSV, semicolons",
            seeds=(examples.QUOTED_CSV, examples.CSV.replace(b",", b";")),
            grammar=mutations.tables(";"),
            words=(b";", b",", b"\t", b'"', b'""', b'"""', b"44 BC", b"2020-02-30", b"1,5"),
            **_reads("facts.csv"),
        ),
        Target(
            "CSV, tabs",
            seeds=(examples.QUOTED_CSV.replace(b";", b"\t"),),
            grammar=mutations.tables("\t"),
            share=0.5,
            **_reads("facts.csv"),
        ),
        Target(
            "TSV", seeds=(examples.CSV.replace(b",", b"\t"),), grammar=mutations.tables("\t"), **_reads("facts.tsv")
        ),
        Target(
            "CSV, mapped",
            seeds=(b"who,what,when\nParis,France,1957\n",),
            grammar=mutations.tables(","),
            share=0.5,
            **_reads(
                "mine.csv",
                options={"map.subject": "who", "map.object": "what", "map.start": "when", "constant.predicate": "in"},
            ),
        ),
        Target(
            "JSON lines",
            seeds=(examples.ROWS,),
            grammar=mutations.json_lines,
            bombs=lambda: json_bombs({"subject": "a", "predicate": "b", "object": "c", "start": "1957"}),
            share=1.5,
            **_reads("facts.jsonl"),
        ),
        Target(
            "Parquet",
            seeds=(examples.FACTS_PARQUET,),
            grammar=mutations.parquet_tables,
            guided=False,
            **_reads("facts.parquet", source="table"),
        ),
        Target(
            "exported tables",
            seeds=(examples.TABLES,),
            grammar=mutations.folder_of(*[mutations.parquet_tables] * 4),
            guided=False,
            **_reads("facts.parquet", "names.parquet", "details.parquet", "predicates.parquet"),
        ),
        Target(
            "quadruples",
            seeds=(examples.QUADRUPLES,),
            grammar=mutations.folder_of(
                *[
                    mutations.lines_of(
                        ("<Paris>", "<>", "0", "1", "07", "1986-##-##", "####-##-##", "-044-03-15", "1986-13-01", "٣"),
                        "\t",
                    )
                ]
                * 3
            ),
            **_reads("entity2id.txt", "relation2id.txt", "train.txt"),
        ),
        Target(
            "WordNet",
            seeds=(examples.WORDNET,),
            grammar=mutations.lines_of(("@", "~", "n", "ff", "000", "00001740", "-1", "|", "0000", "+5", "٣٣٣٣٣٣٣٣")),
            **_reads("data.noun", source="wordnet"),
        ),
        Target(
            "pack",
            seeds=(examples.PACK,),
            grammar=mutations.folder_of(mutations.yaml_documents, mutations.tables(","), mutations.tables(",")),
            bombs=lambda: [bomb + SEPARATOR + examples.PACK.split(SEPARATOR, 1)[1] for bomb in yaml_bombs()],
            **_reads("pack.yaml", "facts.csv", "names.csv"),
        ),
        Target("rules", _read_rules, (examples.RULES,), mutations.yaml_documents, yaml_bombs, share=1.2),
    ]
