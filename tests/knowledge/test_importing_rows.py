"""What becomes of each row of an import: refused by file and line or counted, named, mapped, filtered, merged."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.knowledge.database import open_database
from merkhet.knowledge.source_lookup import read_source
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.stats import describe
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_export import export_knowledge
from merkhet.knowledge.store_import import import_knowledge

HEADER = "subject,predicate,object\n"
ALL = "subject,predicate,object,value,start,end\n"
PACK = "name: mine\ntitle: My facts\ndescription: About\nlicence: CC0-1.0\n"
TWO = {("Oslo", "capital of", "Norway"), ("Rome", "capital of", "Italy")}


def write(path: Path, content: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.fixture
def kb(tmp_path: Path):
    """Imports places into one store and opens it."""

    def take(*places: str, **asked) -> KnowledgeBase:
        import_knowledge(list(places), tmp_path / "kb.duckdb", **asked)
        return KnowledgeBase.open(tmp_path / "kb.duckdb")

    return take


def triples(knowledge: KnowledgeBase) -> set[tuple]:
    with knowledge:
        rows = knowledge.facts().to_pylist()
    return {(row["subject"], row["predicate"], row["object"] or row["value"]) for row in rows}


def names(knowledge: KnowledgeBase) -> dict[tuple[str, str], tuple[str, list[str]]]:
    with knowledge:
        rows = knowledge.query("select * from names").to_pylist()
    return {(row["entity"], row["language"]): (row["label"], row["aliases"]) for row in rows}


BAD_ROWS = [
    ("a,p,b,,1957,1956", 'end 1956 is before start 1957 for "a p b"'),
    ("a,p,b,,1957-03,1957-02", "end 1957-02 is before start 1957-03"),
    ("a,p,b,,1957-03-15,1957-02", "end 1957-02 is before start 1957-03-15"),
    ("a,p,b,,1957,1956-12-31", "end 1956-12-31 is before start 1957"),
    ("a,p,b,,1957-01-01,1956", "end 1956 is before start 1957-01-01"),
    ("a,p,b,,-43,-44", "end -44 is before start -43"),
    ("a,p,,3,1957,1956", 'end 1956 is before start 1957 for "a p 3.0"'),
    ("a,p,b,,1957-13,", "start '1957-13' is not a date"),
    ("a,p,b,,1957-00,", "start '1957-00' is not a date"),
    ("a,p,b,,1957-01-32,", "start '1957-01-32' is not a date"),
    ("a,p,b,,,yesterday", "end 'yesterday' is not a date"),
    ("a,p,b,,2020-02-30,", "start '2020-02-30' is not a date: February 2020 has 29 days"),
    ("a,p,b,,,2021-02-29", "end '2021-02-29' is not a date: February 2021 has 28 days"),
    ("a,p,b,,1900-02-29,", "start '1900-02-29' is not a date: February 1900 has 28 days"),
    ("a,p,b,,2020-00-10,", "start '2020-00-10' is not a date: there is no month 00"),
    ("a,p,b,,2020-02-30T10:00:00Z,", "start '2020-02-30' is not a date"),
    ("a,p,b,,13 BC,44 BC", "end -0044 is before start -0013"),
    ("a,p,b,,0 BC,", "start '0 BC' is not a date: there is no year 0"),
    ("a,p,b,,15.3.1957,", "start '15.3.1957' is not a date"),
    ("a,p,b,3,,", "a fact has either an object or a value"),
    ("a,p,,,,", "a fact has either an object or a value"),
    ("a,p,,nan,,", "the value nan is not finite"),
    ("a,p,,-inf,,", "the value -inf is not finite"),
    ("a,p,,1_000,,", "value must be a number, got '1_000'"),
    ("a,p,,many,,", "value must be a number, got 'many'"),
    ('a,p,,"1.234,5",,', "value must be a number, got '1.234,5'; write the decimal mark as a point"),
    ('"""text""@en",p,b,,,', 'the subject "text"@en is a literal'),
    (",p,b,,,", "the subject is empty"),
    ("  ,p,b,,,", "the subject is empty"),
    ("a,,b,,,", "the predicate is empty"),
    ("a,p,b", "3 cells where the header has 6"),
    ("a,p,b,,,,", "7 cells where the header has 6"),
    ('a,p,"b" c,,,', "not a row of a table"),
]
GOOD_ROWS = [
    "a,p,b,,1957,1957",
    "a,p,b,,1957-03,1957",
    "a,p,b,,1957,1957-01",
    "a,p,b,,1957-03-15,1957-03",
    "a,p,b,,-0044-03-15,-0044",
    "a,p,b,,44 BC,13 BC",
    "a,p,b,,15 March 44 BC,AD 476",
    "a,p,b,,10000-01-01,",
    "a,p,b,,2000-02-29,2020-02-29",
    "a,p,b,,1957-03-15 12:00:00,",
    '"""Weird Al"" Yankovic",p,"""Heroes"" (album)",,,',
    '"""Heroes""",p,"""Heroes""",,,',
    "a,p,b,,+1957,1958",
    "a,p,b,,1957-01-01T00:00:00Z,",
    "a,p,,1e3,,",
    "a,p,,-0.0,,",
]


def test_each_bad_row_is_named_by_file_and_line(tmp_path: Path) -> None:
    for row, said in BAD_ROWS:
        file = write(tmp_path / "rows.csv", ALL + "x,p,y,,,\n\n" + row + "\nz,p,y,,,\n")
        with pytest.raises(InputError) as refused:
            import_knowledge([file], tmp_path / "kb.duckdb")
        assert str(refused.value).startswith(f"{file}:4: {said}"), row
        assert "Nothing was imported. Correct the row, or pass --skip-bad" in str(refused.value)
        assert not (tmp_path / "kb.duckdb").exists()


def test_bad_rows_are_counted_exactly_and_all_others_kept(tmp_path: Path) -> None:
    rows = [f"s{number},p,o{number},,," for number in range(100)]
    lines = rows[:40] + [row for row, _ in BAD_ROWS] + GOOD_ROWS + rows[40:]
    file = write(tmp_path / "rows.csv", ALL + "\n".join(lines) + "\n")
    (done,) = import_knowledge([file], tmp_path / "kb.duckdb", skip_bad=True)
    assert (done.bad, done.facts, done.added) == (len(BAD_ROWS), 100 + len(GOOD_ROWS), 100 + len(GOOD_ROWS))
    assert {example.split(": ")[0] for example in done.examples} <= {
        f"{file}:{line}" for line in range(42, 42 + len(BAD_ROWS))
    }
    assert len(done.examples) == 5
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        found = {row["subject"] for row in knowledge.facts().to_pylist()}
        (told,) = knowledge.imports().to_pylist()
    assert found == {"a", '"Weird Al" Yankovic', '"Heroes"', *[f"s{number}" for number in range(100)]}
    assert (told["bad"], told["facts"]) == (len(BAD_ROWS), 100 + len(GOOD_ROWS))


BAD_JSON_ROWS = [
    ('{"subject": "a", "predicate": "p", "value": true}', "value must be a number, got true"),
    ('{"subject": "a", "predicate": "p", "value": 1' + "0" * 400 + "}", "value must be a number, got 1000"),
    ('{"subject": "a", "predicate": "p", "value": 1' + "0" * 5000 + "}", "JSON that is too large"),
    (
        '{"subject": "a", "predicate": "p", "value": Infinity}',
        "not valid JSON (Infinity is not a number in JSON at column 45)",
    ),
    ('{"subject": "a", "predicate": "p", "value": NaN}', "not valid JSON (NaN is not a number in JSON at column 45)"),
    ('{"subject": "a", "predicate": "p", "value": 1e999}', "not valid JSON (the number is too large at column 45)"),
    (
        '{"subject": "a", "predicate": "p", "object": "o", "subject": "b"}',
        "not valid JSON (the key 'subject' is repeated at column 51)",
    ),
    ('{"subject": "a", "predicate": "p", "value": {}}', "value must be a number, got {}"),
    (
        '{"subject": "\\ud800", "predicate": "p", "object": "o"}',
        "subject is '\\ud800', which contains a lone surrogate",
    ),
    ('{"subject": ["a"], "predicate": "p", "object": "o"}', 'subject must be a text, got ["a"]'),
    ('{"subject": "a", "predicate": "p", "object": "o", "premises": [1, [2]]}', "premises must be a text, got [2]"),
    ('{"subject": "a", "predicate": "p"}', "a fact has either an object or a value"),
    ("[" * 100_000, "JSON that is too large"),
    ("[1]", "a row must be a JSON object, got list"),
    ("{", "not valid JSON"),
]


def test_each_bad_row_of_json_lines_is_named_by_file_and_line(tmp_path: Path) -> None:
    good = '{"subject": "x", "predicate": "p", "object": 5}\n'

    def check(row: str, said: str) -> None:
        file = write(tmp_path / "rows.jsonl", good + row + "\n")
        with pytest.raises(InputError) as refused:
            import_knowledge([file], tmp_path / "kb.duckdb")
        assert str(refused.value).startswith(f"{file}:2: {said}")

    check_all(check, BAD_JSON_ROWS)
    file = write(tmp_path / "rows.jsonl", good + "".join(f"{row}\n" for row, _ in BAD_JSON_ROWS))
    (done,) = import_knowledge([file], tmp_path / "kb.duckdb", skip_bad=True)
    assert (done.bad, done.facts) == (len(BAD_JSON_ROWS), 1)


def test_a_quote_that_is_never_closed_is_named_where_it_opens(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", HEADER + 'a,p,b\nc,p,"d\n' + "e,p,f\n" * 50)
    with pytest.raises(InputError, match=r"rows.csv:3: not a row of a table .* set quotes=no"):
        import_knowledge([file], tmp_path / "kb.duckdb")
    (done,) = import_knowledge([file], tmp_path / "kb.duckdb", options={"quotes": "no"})
    assert (done.facts, done.added) == (52, 3)


# Formats


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_tables_may_be_packed(kb, tmp_path: Path, suffix: str, packed: str) -> None:
    columns = ("subject", "predicate", "object")
    if suffix == ".jsonl":
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in sorted(TWO))
    else:
        mark = "," if suffix == ".csv" else "\t"
        text = "\ufeff" + "\r\n".join(mark.join(row) for row in [columns, *sorted(TWO)])
    pack = {
        "": bytes,
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    }[packed]
    assert triples(kb(write(tmp_path / f"facts{suffix}{packed}", pack(text.encode())))) == TWO


def test_delimiters_and_quotes(kb, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'subject;predicate;object\na "b" c;says, "so;d\n')
    assert triples(kb(file, options={"delimiter": ";", "quotes": "no"})) == {('a "b" c', 'says, "so', "d")}
    tabs = write(tmp_path / "b.csv", "subject\tpredicate\tobject\nx\tp\ty\n")
    assert ("x", "p", "y") in triples(kb(tabs, options={"delimiter": "tab"}))
    for option, value in (("delimiter", "ab"), ("delimiter", ""), ("quotes", "maybe")):
        with pytest.raises(InputError, match=f"the option '{option}' must be .*, got '{value}'"):
            kb(file, options={option: value})
    with pytest.raises(InputError, match="no option 'delimeter'; did you mean 'delimiter'"):
        kb(file, options={"delimeter": ";"})


def test_the_delimiter_of_a_table_is_that_of_its_header(tmp_path: Path) -> None:
    def rows(name: str, text: str | bytes, **options: str) -> list[dict]:
        file = write(tmp_path / name, text)
        return [row for chunk in read_source(file, ReadContext(options=options)) for row in chunk.facts.to_pylist()]

    lines = ["subject{0}predicate{0}object{0}start", "Oslo{0}capital of{0}Norway{0}1814"]
    for suffix, delimiter, mark in product((".csv", ".tsv"), ",;\t", ("", "\ufeff")):
        (row,) = rows(f"a{suffix}", mark + "\r\n".join(lines).format(delimiter) + "\r\n")
        assert [row[name] for name in ("subject", "object", "start")] == ["Oslo", "Norway", "1814"]
    quoted = 'subject;predicate;"object";"unit, if any";domain\r\n"Bonn; am Rhein";in;Germany;;a\r\n'
    (row,) = rows("a.csv", quoted, **{"map.unit": "unit, if any"})
    assert (row["subject"], row["object"], row["domain"]) == ("Bonn; am Rhein", "Germany", "a")
    refused = {
        "subject,predicate;object\na,b;c\n": r"a.csv:1: the columns may be separated by commas or by semicolons. Set",
        "subject|predicate|object\na|b|c\n": r"If another character separates the columns, set the option 'delimiter'",
        "subject;predicate;value\na;b;1,5\n": r"a.csv:2: value must be a number, got '1,5'; write the decimal mark as",
        "subject;predicate;object\n".encode("utf-16"): r"a.csv:1: the text is UTF-16. Save the file as UTF-8.",
    }
    for text, said in refused.items():
        with pytest.raises(InputError, match=said):
            rows("a.csv", text)


def test_empty_files_and_headers_without_rows(kb, tmp_path: Path) -> None:
    for name, content in (("a.csv", HEADER), ("b.csv", HEADER.strip()), ("c.jsonl", ""), ("d.jsonl", "\n\n")):
        assert triples(kb(write(tmp_path / name, content))) == set()
    for name in ("e.csv", "f.tsv"):
        with pytest.raises(InputError, match=rf"{name}:1: the column 'subject' is missing"):
            kb(write(tmp_path / name, ""))


def test_a_column_that_stands_twice_is_refused(kb, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a.csv:1: the column 'subject' is in the header twice"):
        kb(write(tmp_path / "a.csv", "subject,subject,predicate,object\na,b,p,c\n"))
    table = pa.Table.from_arrays([pa.array(["a"])] * 4, names=["subject", "predicate", "object", "object"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the column 'object' is in the header twice"):
        kb(str(tmp_path / "a.parquet"))


def test_very_long_cells_and_cells_of_several_lines(kb, tmp_path: Path) -> None:
    long, lines = "字" * 2_000_000, "one\r\ntwo\rthree\nfour"
    file = write(tmp_path / "a.csv", f'{HEADER}a,p,{long}\r\nb,p,"{lines}"\r\n')
    assert triples(kb(file)) == {("a", "p", long), ("b", "p", lines)}


def test_empty_cells_of_parquet_are_no_texts(kb, tmp_path: Path) -> None:
    columns = {"subject": ["a", "b"], "predicate": ["p", "p"], "object": ["c", ""], "value": [None, 2.0]}
    pq.write_table(pa.table({**columns, "start": ["", "1957"], "unit": ["", "m"]}), tmp_path / "a.parquet")
    with kb(str(tmp_path / "a.parquet")) as knowledge:
        rows = {row["subject"]: row for row in knowledge.facts().to_pylist()}
    assert (rows["a"]["object"], rows["a"]["start"], rows["a"]["unit"]) == ("c", None, None)
    assert (rows["b"]["object"], rows["b"]["value"], rows["b"]["unit"]) == (None, 2.0, "m")
    pq.write_table(pa.table({**columns, "predicate": ["p", ""]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet, row 2: the predicate is empty"):
        kb(str(tmp_path / "b.parquet"))
    pq.write_table(pa.table({**columns, "value": ["x", "y"]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"c.parquet: the column 'value' must hold double, got string"):
        kb(str(tmp_path / "c.parquet"))


# Columns


def test_columns_are_mapped_and_filled_with_constants(kb, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "person,office,from,object,note\nAda,chancellor,1990,x,y\n")
    options = {"map.subject": "person", "map.object": "office", "map.start": "from"}
    options |= {"constant.predicate": "held", "constant.domain": "politics", "constant.language": "de"}
    with kb(file, options=options) as knowledge:
        (row,) = knowledge.facts().to_pylist()
        labels = knowledge.labels("de")
    assert [row[key] for key in ("subject", "predicate", "object", "start", "domain", "source")] == [
        *("Ada", "held", "chancellor", "1990", "politics", "a.csv")
    ]
    assert labels == {"Ada": "Ada", "chancellor": "chancellor"}
    with pytest.raises(InputError, match=r"a.csv:1: there is no column 'persn'; did you mean 'person'\?"):
        kb(file, options={"map.subject": "persn"})
    with pytest.raises(InputError, match=r"no option 'map.subjct'; did you mean 'map.subject'"):
        kb(file, options={"map.subjct": "person"})
    with pytest.raises(InputError, match="--constant value: value must be a number, got 'x'"):
        kb(file, options={**options, "constant.value": "x"})


def test_filters_of_predicates_and_languages(kb, tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv",
        "subject,predicate,object,subject_label,language\n"
        "Q1,p,Q2,Eins,de\nQ1,p,Q2,One,en\nQ1,q,Q2,Uno,it\nQ3,q,,Tre,it\n",
    )
    with kb(file, predicates=["p"], languages=["DE"]) as knowledge:
        assert knowledge.count() == {"p": 1}
        assert knowledge.query("select entity, language, label from names").to_pylist() == [
            {"entity": "Q1", "language": "de", "label": "Eins"}
        ]
    with pytest.raises(InputError, match=r"a.csv:5: a fact has either"):
        kb(file, predicates=["q"])
    plain = write(tmp_path / "b.csv", HEADER + "Oslo,in,Norway\n")
    assert ("Oslo", "en") not in names(kb(plain, languages=["zh"]))
    assert ("Oslo", "en") in names(kb(plain))


# Names


def test_ids_iris_and_literals_are_not_named_by_themselves(kb, tmp_path: Path) -> None:
    given = ["Q42", "P31", "http://a.b/c", "urn:x:y", "_:b1", '"text"@en', "Q42b", "Quito", "Q", "a: b", "3"]
    rows = "".join(f"thing\tp\t{one}\n" for one in given)
    file = write(tmp_path / "a.tsv", HEADER.replace(",", "\t") + rows)
    found = names(kb(file, options={"quotes": "no"}))
    assert {entity for entity, _ in found} == {"thing", "Q42b", "Quito", "Q", "a: b", "3"}
    assert all(label == entity and aliases == [] for (entity, _), (label, aliases) in found.items())


def test_two_labels_become_a_label_and_an_alias_and_shared_labels_are_counted(kb, tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv",
        "subject,predicate,object,subject_label,object_label,language\n"
        "Q1,p,Q2,Springfield,Ohio,en\nQ1,p,Q3,Springfeld,,en\nQ4,p,Q2,Springfield,Ohio,de\nQ5,p,Q2,Springfield,Ohio,en\n",
    )
    found = names(kb(file))
    assert found["Q1", "en"] == ("Springfeld", ["Springfield"])
    assert found["Q5", "en"] == ("Springfield", [])
    assert ("Q3", "en") not in found
    assert describe(tmp_path / "kb.duckdb")["shared_labels"] == 0
    kb(write(tmp_path / "b.csv", "subject,predicate,object,subject_label\nQ6,p,Q2,Springfield\n")).close()
    assert describe(tmp_path / "kb.duckdb")["shared_labels"] == 1
    assert names(kb(file))["Q1", "en"] == ("Springfeld", ["Springfield"])


def pack(folder: Path, names: str = "", predicates: str = "", facts: str = HEADER + "a,p,b\n") -> str:
    write(folder / "pack.yaml", PACK + predicates)
    write(folder / "facts.csv", facts)
    write(folder / "names.csv", "entity,label,aliases,kind\n" + names)
    return str(folder)


def test_aliases_of_packs_and_of_sources_without_a_label(kb, tmp_path: Path) -> None:
    source = "from merkhet.knowledge.chunk import ChunkBuilder\n\ndef read(path):\n    builder = ChunkBuilder('x')\n"
    source += "    builder.add_name('a', None, 'en', ['Zed', 'Ay', ''])\n    builder.add_name('b', None)\n"
    source += "    builder.add_name('c', ' See ', 'en', ['See', 'C'])\n    return builder.flush()\n"
    own = f"{write(tmp_path / 'own.py', source)}:read={tmp_path}"
    assert names(kb(own)) == {("a", "en"): ("Ay", ["Zed"]), ("c", "en"): ("See", ["C"])}
    found = names(kb(pack(tmp_path / "mine", "a,Aleph,Alef|Ay,letter\n")))
    assert found["a", "en"] == ("Aleph", ["Alef", "Ay", "Zed"])


def test_predicates_are_kept_and_replaced(kb, tmp_path: Path) -> None:
    folder = pack(tmp_path / "mine", predicates="predicates:\n  p: {label: is next to, symmetric: true}\n")
    with kb(folder) as knowledge:
        assert (knowledge.predicates["p"].label, knowledge.predicates["p"].symmetric) == ("is next to", True)
    pack(tmp_path / "mine", predicates="predicates:\n  p: {functional: true}\n")
    with kb(folder) as knowledge:
        assert list(knowledge.predicates) == ["p"]
        declared = knowledge.predicates["p"]
        assert (declared.label, declared.symmetric, declared.functional) == ("p", False, True)


def test_completeness_of_predicates_is_read_stored_and_exported(kb, tmp_path: Path) -> None:
    declared = {
        "a": "{}",
        "b": "{complete: subject}",
        "c": "{functional: true}",
        "d": "{functional: true, complete: subject}",
        "e": "{functional: true, complete: object}",
        "f": "{complete: both}",
        "g": "{symmetric: true, complete: object}",
    }
    expected = {"a": None, "b": "subject", "c": "object", "d": "both", "e": "object", "f": "both", "g": "both"}
    text = "predicates:\n" + "".join(f"  {name}: {body}\n" for name, body in declared.items())
    stores = [str(tmp_path / "kb.duckdb"), str(tmp_path / "tables")]
    kb(pack(tmp_path / "mine", predicates=text)).close()
    export_knowledge(tmp_path / "kb.duckdb", tmp_path / "tables")
    for source in (str(tmp_path / "mine"), *stores):
        with KnowledgeBase.load([source]) as knowledge:
            assert {name: about.complete for name, about in knowledge.predicates.items()} == expected, source


def test_a_store_of_an_earlier_version_lacks_completeness(kb, tmp_path: Path) -> None:
    folder = pack(tmp_path / "mine", predicates="predicates:\n  p: {label: is next to, complete: object}\n")
    kb(folder).close()
    with open_database(tmp_path / "kb.duckdb", read_only=False) as connection:
        connection.execute("alter table predicates drop column complete")
    with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
        assert knowledge.predicates["p"].complete is None
    pack(tmp_path / "mine", predicates="predicates:\n  q: {complete: subject}\n")
    with kb(folder) as knowledge:
        assert {name: about.complete for name, about in knowledge.predicates.items()} == {"p": None, "q": "subject"}


def test_details_are_merged_and_replaced(kb, tmp_path: Path) -> None:
    source = (
        "from merkhet.knowledge.chunk import ChunkBuilder\n\ndef read(path):\n    builder = ChunkBuilder('x')\n"
        "    for line in path.read_text().split():\n        subject, name, text = line.split('=')\n"
        "        builder.add_fact('here', subject, 'p', 'o', details={name: text})\n    return builder.flush()\n"
    )
    own = f"{write(tmp_path / 'own.py', source)}:read={tmp_path / 'details.txt'}"

    def details() -> list[tuple]:
        with KnowledgeBase.open(tmp_path / "kb.duckdb") as knowledge:
            rows = knowledge.query("select subject, name, text from details join facts using (fact_id) order by all")
        return [tuple(row.values()) for row in rows.to_pylist()]

    write(tmp_path / "details.txt", "a=weight=1 a=rank=best b=weight=3")
    kb(own).close()
    assert details() == [("a", "rank", "best"), ("a", "weight", "1"), ("b", "weight", "3")]
    write(tmp_path / "details.txt", "a=weight=2 a=weight=2 a=note=new")
    kb(own).close()
    assert details() == [("a", "note", "new"), ("a", "rank", "best"), ("a", "weight", "2"), ("b", "weight", "3")]


# Stated, inferred and other stores


def test_a_stated_fact_replaces_an_inferred_one_and_never_the_other_way(kb, tmp_path: Path) -> None:
    inferred = write(tmp_path / "a.csv", "subject,predicate,object,rule,premises\na,p,b,symmetric,f_1|f_2\n")
    stated = write(tmp_path / "b.csv", HEADER + "a,p,b\n")
    with kb(inferred) as knowledge:
        (row,) = knowledge.facts(inferred=True).to_pylist()
        assert (row["rule"], row["premises"]) == ("symmetric", ["f_1", "f_2"])
    (done,) = import_knowledge([stated], tmp_path / "kb.duckdb")
    assert (done.facts, done.added) == (1, 0)
    for file in (stated, inferred):
        with kb(file) as knowledge:
            (row,) = knowledge.facts().to_pylist()
            assert (row["rule"], row["premises"], row["source"]) == (None, None, "b.csv")
    import_knowledge([inferred, stated], tmp_path / "both.duckdb")
    with KnowledgeBase.open(tmp_path / "both.duckdb") as knowledge:
        assert knowledge.facts(inferred=False).num_rows == 1


def test_a_store_is_imported_into_another_with_its_proofs(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "subject,predicate,object,rule,premises,start\na,p,b,r,f_1,1957\nc,q,d,,,\n")
    import_knowledge([file, "elements"], tmp_path / "one.duckdb")
    import_knowledge([str(tmp_path / "one.duckdb")], tmp_path / "two.duckdb")
    with KnowledgeBase.open(tmp_path / "one.duckdb") as one, KnowledgeBase.open(tmp_path / "two.duckdb") as two:
        assert one.facts().equals(two.facts())
        assert one.names().equals(two.names())
        assert one.predicates == two.predicates
        (row,) = two.facts("p").to_pylist()
        assert (row["rule"], row["premises"], row["start"]) == ("r", ["f_1"], "1957")
    with KnowledgeBase.load([str(tmp_path / "two.duckdb")]) as alone:
        count = alone.facts().num_rows
    with KnowledgeBase.load(["two.duckdb", "countries"], tmp_path) as several:
        assert several.facts("p").num_rows == 1
        assert several.facts().num_rows > count
    import_knowledge([str(tmp_path / "one.duckdb")], tmp_path / "few.duckdb", predicates=["q"], languages=["zh"])
    with KnowledgeBase.open(tmp_path / "few.duckdb") as few:
        assert few.count() == {"q": 1}
        assert few.labels() == {}


def test_questions_are_built_from_a_store(merkhet, tmp_path: Path) -> None:
    import_knowledge(["elements"], tmp_path / "x.duckdb")
    merkhet("build", "quickstart", "--knowledge", "x.duckdb", "--limit", "20", "--out", "made", check=0)
    merkhet("build", "quickstart", "--knowledge", "elements", "--limit", "20", "--out", "plain", check=0)
    one, other = (pq.read_table(tmp_path / folder / "questions.parquet") for folder in ("made", "plain"))
    assert one.num_rows > 0
    assert one.equals(other)
