"""Where knowledge comes from: tables, pack folders, other people's sources, and what is refused."""

from __future__ import annotations

import shutil

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, write_table
from merkhet.knowledge.pack_catalog import embedded_packs
from merkhet.knowledge.source_lookup import source_identity
from merkhet.knowledge.store import KnowledgeBase

TRIPLES = {("Oslo", "capital of", "Norway"), ("Rome", "capital of", "Italy")}
PACK = "name: mine\ntitle: My facts\ndescription: About\nlicence: CC0-1.0\ndomain: work\n"


def refusal(place, folder=None) -> str:
    with pytest.raises(InputError) as refused:
        KnowledgeBase.load([str(place)], folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def table(folder, content, name="facts.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def triples(material):
    return {(row["subject"], row["predicate"], row["object"]) for row in material.facts().to_pylist()}


def make_pack(folder, facts="subject,predicate,object\na,p,b\n", about=PACK, names="entity,label\na,Alpha\nb,Beta\n"):
    folder.mkdir(exist_ok=True)
    (folder / "pack.yaml").write_text(about, encoding="utf-8")
    (folder / "facts.csv").write_text(facts, encoding="utf-8")
    if names is not None:
        (folder / "names.csv").write_text(names, encoding="utf-8")
    return folder


def test_a_table_of_facts_is_read_in_any_format(tmp_path):
    def check(name, content):
        found = KnowledgeBase.load([str(table(tmp_path, content, name))])
        assert triples(found) == TRIPLES
        names = {row["entity"]: row["label"] for row in found.names().to_pylist()}
        assert names == {text: text for text in ("Oslo", "Norway", "Rome", "Italy")}
        write_table(FACTS, found.facts(), tmp_path / "again.parquet")
        assert (
            KnowledgeBase.load(["again.parquet"], tmp_path)
            .facts()
            .drop_columns("source")
            .equals(found.facts().drop_columns("source"))
        )

    check_all(
        check,
        [
            ("facts.csv", "subject,predicate,object\nOslo,capital of,Norway\n\nRome,capital of,Italy\n"),
            ("bom.csv", "\ufeffsubject,predicate,object\r\nOslo,capital of,Norway\r\nRome,capital of,Italy\r\n"),
            ("facts.tsv", "object\tpredicate\tsubject\nNorway\tcapital of\tOslo\nItaly\tcapital of\tRome"),
            (
                "facts.jsonl",
                '{"subject": "Oslo", "predicate": "capital of", "object": "Norway"}\n'
                '{"subject": "Rome", "predicate": "capital of", "object": "Italy"}\n',
            ),
        ],
    )


def test_cells_may_hold_commas_numbers_times_and_lists(tmp_path):
    header = "subject,predicate,object,value,start,end,premises\n"
    path = table(tmp_path, header + '"Paris, France",population,,2.1e6,1990,2000,f_1|f_2\n')
    (row,) = KnowledgeBase.load([str(path)]).facts().to_pylist()
    assert (row["subject"], row["value"], row["object"]) == ("Paris, France", 2.1e6, None)
    assert (row["start"], row["end"], row["premises"]) == ("1990", "2000", ["f_1", "f_2"])


def test_a_broken_table_is_refused_by_file_and_line(tmp_path):
    def check(content, said):
        path = table(tmp_path, content)
        assert refusal(path).startswith(f"{path}{said}")

    check_all(
        check,
        [
            ("subject,object\na,b\n", ":1: the column 'predicate' is missing; map one: --map predicate=COLUMN"),
            ("subject,predicat,object\na,p,b\n", ":1: there is no column 'predicat'"),
            ("", ":1: the column 'subject' is missing; map one: --map subject=COLUMN"),
            ("subject,predicate,object\na,p,b\na,p,b,c\n", ":3: 4 cells where the header has 3. Correct the row."),
            ("subject,predicate,object\na,p\n", ":2: 2 cells where the header has 3. Correct the row."),
            ("subject,predicate,object\na,,b\n", ":2: the predicate is empty. Correct the row."),
            (
                "subject,predicate,value\na,p,3\n\nb,p,many\n",
                ":4: value must be a number, got 'many'. Correct the row.",
            ),
            ("subject,predicate,object,value\na,p,b,3\n", ":2: a fact has either an object or a value"),
            ("subject,predicate,object,value\na,p,,\n", ":2: a fact has either an object or a value"),
            (
                "subject,predicate,object,start,end\na,p,b,,\n\na,p,c,1961,1957\n",
                ':4: end 1957 is before start 1961 for "a p c". Correct the row.',
            ),
            (
                b"subject,predicate,object\ncaf\xe9,p,b\n",
                ":2: the text is not UTF-8 (byte 4 of the line). Correct the row.",
            ),
            ('subject,predicate,object\n\n"two\nlines",p,b\na,p,b,c\n', ":5: 4 cells"),
        ],
    )


def test_a_repeated_row_is_one_fact(tmp_path):
    path = table(tmp_path, "subject,predicate,object\na,p,b\nc,p,d\na,p,b\n")
    assert KnowledgeBase.load([str(path)]).facts().num_rows == 2


def test_an_own_pack_folder(tmp_path):
    about = PACK + "predicates:\n  p: {label: is next to, symmetric: true}\n"
    folder = make_pack(tmp_path / "mine", "subject,predicate,object,source\na,p,b,book\nb,p,c,\n", about)
    knowledge = KnowledgeBase.load(["mine"], tmp_path)
    assert knowledge.labels() == {"a": "Alpha", "b": "Beta"}
    rows = {row["subject"]: row for row in knowledge.facts().to_pylist()}
    assert {row["domain"] for row in rows.values()} == {"work"}
    assert (rows["a"]["source"], rows["b"]["source"]) == ("mine/book", "mine")
    assert knowledge.predicates["p"].symmetric
    (folder / "names.csv").unlink()
    assert KnowledgeBase.load([str(folder)]).labels() == {}


def test_a_broken_pack_is_refused_by_file(tmp_path_factory):
    def check(change, said):
        tmp_path = tmp_path_factory.mktemp("case")
        folder = make_pack(tmp_path / "mine", **change)
        assert f"{folder}/{said}" in refusal(folder)

    check_all(
        check,
        [
            ({"about": "name: [broken\n"}, "pack.yaml is not valid YAML"),
            ({"about": "name: mine\n"}, "pack.yaml: the key 'title' is missing"),
            ({"about": "just words\n"}, "pack.yaml: the key 'name' is missing"),
            (
                {"about": PACK + "predicates:\n  p: {complete: objects}\n"},
                "pack.yaml: 'complete' of the predicate 'p' must be one of object, subject, both, got 'objects'",
            ),
            ({"facts": "subject,predicate,object\na,p,b\na,,b\n"}, "facts.csv:3: 'predicate' is empty"),
            (
                {"names": "entity,lable\na,A\n"},
                "names.csv:1: there is no column 'lable' in a table of names; did you mean 'label'?",
            ),
            ({"names": "entity,label\na,\n"}, "names.csv:2: 'label' is empty"),
        ],
    )


def test_a_pack_that_is_not_utf8_or_no_pack(tmp_path):
    folder = make_pack(tmp_path / "mine")
    (folder / "pack.yaml").write_bytes(b"name: caf\xe9\n")
    assert "is not UTF-8" in refusal(folder)
    (folder / "pack.yaml").unlink()
    assert refusal(folder) == f"{folder} is not a knowledge pack: it has no pack.yaml. Name a file in it, or a pack."
    make_pack(folder)
    (folder / "facts.csv").unlink()
    assert refusal(folder) == f"there is no file {folder}/facts.csv; a pack needs a table of facts"


def test_an_unknown_place_gets_the_nearest_pack():
    assert refusal("contries") == "there is no knowledge pack, folder or file 'contries'; did you mean 'countries'?"
    assert "there are: countries, elements" in refusal("xyzzy")


OWN_SOURCE = """
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import ChunkBuilder, Chunk

def read(path):
    rows = [dict(zip(("subject", "predicate", "object"), line.split(";"))) for line in path.read_text().splitlines()]
    return Chunk(make_table(FACTS, rows), make_table(NAMES, []))

def stream(path, reading):
    for line in path.read_text().splitlines():
        subject, predicate, object = line.split(";")
        builder = ChunkBuilder(path.name)
        builder.add_fact(str(path), subject, predicate, object)
        yield builder.flush()

def nothing(path):
    return 3

def untidy(path):
    import pyarrow as pa
    return Chunk(pa.table({"subject": ["a"], "predicate": ["p"]}), make_table(NAMES, []))
"""


def test_an_own_source_in_a_file(tmp_path):
    table(tmp_path, OWN_SOURCE, "mine.py")
    table(tmp_path, "Oslo;capital of;Norway\nRome;capital of;Italy\n", "facts.txt")
    assert triples(KnowledgeBase.load(["mine.py:read=facts.txt"], tmp_path)) == TRIPLES
    assert triples(KnowledgeBase.load([f"{tmp_path}/mine.py:read={tmp_path}/facts.txt"])) == TRIPLES
    assert refusal("mine.py:nothing=facts.txt", tmp_path).endswith("must return or yield a Chunk, got int")
    assert triples(KnowledgeBase.load(["mine.py:stream=facts.txt"], tmp_path)) == TRIPLES
    assert "a fact has either an object or a value" in refusal("mine.py:untidy=facts.txt", tmp_path)
    assert "did you mean 'read'" in refusal("mine.py:raed=facts.txt", tmp_path)
    assert "absent.txt" in refusal("mine.py:read=absent.txt", tmp_path)
    assert "there is no source called 'tabel'; did you mean 'table'?" in refusal("tabel=facts.txt", tmp_path)


def test_a_source_can_be_named_for_a_file_with_another_ending(tmp_path):
    folder = make_pack(tmp_path / "mine")
    assert KnowledgeBase.load([f"pack={folder}"]).facts().num_rows == 1


def test_identity_changes_with_content_and_not_with_place(tmp_path):
    one = table(tmp_path, "subject,predicate,object\na,p,b\n")
    before = source_identity(str(one))
    (tmp_path / "copy").mkdir()
    shutil.copy(one, tmp_path / "copy")
    assert source_identity(str(tmp_path / "copy" / "facts.csv")) == before
    table(tmp_path, "subject,predicate,object\na,p,c\n")
    assert source_identity("facts.csv", tmp_path) != before


def test_identity_of_a_pack_changes_with_each_of_its_files(tmp_path):
    folder = make_pack(tmp_path / "mine")
    seen = {source_identity("mine", tmp_path)}
    for name in ("facts.csv", "names.csv", "pack.yaml"):
        with (folder / name).open("a") as handle:
            handle.write("\n")
        seen.add(source_identity("mine", tmp_path))
    assert len(seen) == 4
    identities = {source_identity(pack) for pack in embedded_packs()}
    assert len(identities) == len(embedded_packs())


def test_identity_of_an_own_source_changes_with_its_code(tmp_path):
    table(tmp_path, OWN_SOURCE, "mine.py")
    table(tmp_path, "a;p;b\n", "facts.txt")
    before = source_identity("mine.py:read=facts.txt", tmp_path)
    table(tmp_path, OWN_SOURCE + "\n# changed\n", "mine.py")
    assert source_identity("mine.py:read=facts.txt", tmp_path) != before
