"""Export and back: the same facts in every format, N-Triples that others can read, and nothing half-written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from all_cases import check_all
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.knowledge._iris import full_iri, short_name
from merkhet.knowledge.sources._literals import read_literal
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_export import _node, _triple, export_knowledge
from merkhet.knowledge.store_import import import_knowledge

NASTY = "\x00\x01\x1f \"'\\\r\n\t,;|@^<>{}`%#/:é中😀\u2028\x85\ufeff"
TEXTS = st.text(st.sampled_from(NASTY + "aQ1_") | st.characters(codec="utf-8"), min_size=1, max_size=8)
WORDS = TEXTS.map(lambda text: "w" + text + "w") | TEXTS.map(lambda text: f'"{text}" w')
LITERALS = st.tuples(TEXTS, st.sampled_from(["", "@en", "@zh-hant"])).map(lambda pair: f'"{pair[0]}"{pair[1]}')
IRIS = st.sampled_from(["Q42", "P31", "dbo:Person", "rdf:type", "http://a.b/c", "urn:a:b", "dbr:Café_(Zürich)"])
IRIS |= st.text("aé中%/?&=()'!*;+,~", min_size=1, max_size=6).map(
    lambda text: "http://a.b/" + text.replace("%", "%41") + "#x"
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
FACT = st.tuples(WORDS | IRIS, WORDS | IRIS, WORDS | IRIS | LITERALS | NUMBERS)


def make_store(folder: Path, facts, name: str = "kb", **more) -> Path:
    """A store with these triples, by way of a Parquet file, which takes any text."""
    columns = {
        "subject": pa.array([s for s, _, _ in facts], pa.string()),
        "predicate": pa.array([p for _, p, _ in facts], pa.string()),
        "object": pa.array([o if isinstance(o, str) else None for _, _, o in facts], pa.string()),
        "value": pa.array([o if isinstance(o, float) else None for _, _, o in facts], pa.float64()),
    }
    pq.write_table(pa.table(columns | more), folder / f"{name}.parquet")
    import_knowledge([str(folder / f"{name}.parquet")], folder / f"{name}.duckdb")
    return folder / f"{name}.duckdb"


def table(store: Path, name: str = "facts") -> list[dict]:
    with KnowledgeBase.open(store) as knowledge:
        return knowledge.query(f"select * from {name} order by all").to_pylist()


def triples(store: Path) -> set[tuple]:
    return {(row["subject"], row["predicate"], row["object"] or row["value"]) for row in table(store)}


@pytest.fixture(scope="module")
def rich(tmp_path_factory) -> Path:
    """A store with names, details, proofs, times, units and declared predicates."""
    folder = tmp_path_factory.mktemp("rich")
    (folder / "own.py").write_text(
        "from merkhet.knowledge.chunk import ChunkBuilder\n\ndef read(path):\n    builder = ChunkBuilder('own')\n"
        "    builder.add_fact('', 'Q1', 'knows', 'Q2', start='1957-03', end='1960', details={'weight': '1.5'})\n"
        "    builder.add_fact('', 'Q1', 'height', value=180.5, unit='dbt:centimetre', domain='body')\n"
        "    builder.add_fact('', 'Q1', 'says', '\"hi, \\\\\"you\\\\\"\\\\n\"@en', details={'rank': 'best, or | so'})\n"
        "    builder.add_name('Q1', 'Ada', 'en', ['A. L.', 'Countess'], 'person')\n"
        "    builder.add_name('Q1', '艾达', 'zh')\n    builder.add_name('Q1', 'Aða', 'zh-classical')\n"
        "    return builder.flush()\n"
    )
    proved = "subject,predicate,object,rule,premises\nQ2,knows,Q1,symmetric,f_1|f_2\n"
    (folder / "proved.csv").write_text(proved)
    import_knowledge([f"{folder}/own.py:read={folder}", f"{folder}/proved.csv", "elements"], folder / "kb.duckdb")
    return folder / "kb.duckdb"


def test_a_folder_keeps_everything(rich: Path, tmp_path: Path) -> None:
    written = export_knowledge(rich, tmp_path / "out")
    import_knowledge([str(tmp_path / "out")], tmp_path / "again.duckdb")
    for name in ("facts", "names", "details", "predicates"):
        assert table(tmp_path / "again.duckdb", name) == table(rich, name), name
        assert written.get(name, len(table(rich, name))) == len(table(rich, name))
    export_knowledge(rich, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{n}.parquet" for n in ("details", "facts", "names", "predicates")
    ]


def test_a_file_keeps_the_facts(rich: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    def check(suffix: str) -> None:
        tmp_path = tmp_path_factory.mktemp("case")
        assert export_knowledge(rich, tmp_path / f"out{suffix}") == {"facts": len(table(rich))}
        import_knowledge([str(tmp_path / f"out{suffix}")], tmp_path / "again.duckdb")
        assert table(tmp_path / "again.duckdb") == table(rich)

    check_all(check, [".parquet", ".csv", ".tsv", ".jsonl"])


@settings(deadline=None, max_examples=2, phases=[Phase.generate])
@given(facts=st.lists(FACT, min_size=20, max_size=60, unique=True))
def test_nasty_texts_come_back_from_every_format(tmp_path_factory, facts) -> None:
    folder = tmp_path_factory.mktemp("nasty")
    store = make_store(folder, facts)
    expected = table(store)
    assert triples(store) == {(s, p, o) for s, p, o in facts}
    for name in ("out", "out.parquet", "out.csv", "out.tsv", "out.jsonl"):
        export_knowledge(store, folder / name)
        again = folder / f"{name}.duckdb"
        import_knowledge([str(folder / name)], again)
        assert table(again) == expected, name


@settings(deadline=None, max_examples=300)
@given(fact=FACT)
def test_n_triples_are_what_others_read_and_come_back_as_they_were(fact) -> None:
    subject, predicate, object = fact
    ends = {"object": object, "value": None} if isinstance(object, str) else {"object": None, "value": object}
    line = _triple({"subject": subject, "predicate": predicate, "unit": None, **ends})
    (quad,) = ox.parse(line.encode(), format=ox.RdfFormat.N_TRIPLES)
    assert (short_name(quad.subject.value), short_name(quad.predicate.value)) == (subject, predicate)
    if isinstance(quad.object, ox.NamedNode):
        assert short_name(quad.object.value) == object
    else:
        text, value, _ = read_literal((quad.object.value, quad.object.datatype.value, quad.object.language))
        assert (text if text is not None else value) == object


def test_the_ontology_and_wikidata_come_back_from_n_triples(tmp_path: Path) -> None:
    facts = [("Q42", "P31", "Q5"), ("dbr:Zürich", "rdf:type", "dbo:City"), ("dbo:City", "rdfs:subClassOf", "dbo:Place")]
    facts += [
        ("Oslo", "capital of", "http://a.b/Norway"),
        ("Oslo", "motto", '"Unanimiter"@la'),
        ("Oslo", "size", 454.0),
    ]
    store = make_store(tmp_path, facts)
    export_knowledge(store, tmp_path / "out.nt")
    import_knowledge([str(tmp_path / "out.nt")], tmp_path / "again.duckdb")
    assert triples(tmp_path / "again.duckdb") == set(facts)
    assert "<http://dbpedia.org/resource/Zürich>" in (tmp_path / "out.nt").read_text(encoding="utf-8")


def test_n_triples_of_a_rich_store(rich: Path, tmp_path: Path) -> None:
    written = export_knowledge(rich, tmp_path / "out.nt")
    lines = (tmp_path / "out.nt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == written["facts"] + written["names"]
    assert len(list(ox.parse("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES))) == len(lines)
    assert '"180.5"^^<http://dbpedia.org/datatype/centimetre>' in "\n".join(lines)
    assert "zh-classical" not in "\n".join(lines), "RDF has no such tag"
    import_knowledge([str(tmp_path / "out.nt")], tmp_path / "again.duckdb")
    with KnowledgeBase.open(tmp_path / "again.duckdb") as again, KnowledgeBase.open(rich) as one:
        assert again.labels("zh") == one.labels("zh")
        (row,) = [row for row in again.names().to_pylist() if row["entity"] == "Q1"]
        assert (row["label"], sorted(row["aliases"])) == ("Ada", ["A. L.", "Countess"])
        assert again.facts("height")["unit"].to_pylist() == ["dbt:centimetre"]


@settings(deadline=None, max_examples=200)
@given(
    name=WORDS
    | IRIS
    | TEXTS
    | TEXTS.map("http://a.b/{}".format)
    | TEXTS.map("dbo:{}".format)
    | TEXTS.map("x://{}".format)
)
def test_every_name_has_an_iri_and_comes_back_from_it(name: str) -> None:
    iri = _node(name)[1:-1]
    assert ox.NamedNode(iri).value == iri
    if full_iri(name) is None and not name.startswith("_"):
        assert short_name(iri) == name


def test_a_literal_is_a_text_in_quotes_and_other_texts_are_written_as_names(tmp_path: Path) -> None:
    names = ['"', '"a', '"a"b', '"a"@', '"a"@e n', '"Weird Al" Yankovic', '"a"^^b c', 'a"', '"a" "b']
    literals = ['"a"@zh-classical', '"a"^^<x>', '""', '"""', '"a"@en"@de', '"a\nb"', '"Heroes" and "Low"']
    objects = [*names, *literals]
    store = make_store(tmp_path, [(f"s{place:02}", "p", object) for place, object in enumerate(objects)])
    with KnowledgeBase.open(store) as knowledge:
        sql = knowledge.query("select object from facts where is_literal(object)")["object"].to_pylist()
    assert sorted(sql) == sorted(literals)
    export_knowledge(store, tmp_path / "out.nt")
    quads = ox.parse((tmp_path / "out.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
    found = [q.object for q in sorted(quads, key=lambda q: q.subject.value) if q.predicate.value.endswith(":p")]
    assert [short_name(node.value) for node in found[: len(names)]] == names
    assert [node.value for node in found[len(names) :]] == [
        *('"a"@zh-classical', '"a"^^<x>', "", '"', 'a"@en', "a\nb", 'Heroes" and "Low')
    ]
    assert found[len(names) + 4].language == "de"


def test_stated_facts_alone_and_chosen_predicates(rich: Path, tmp_path: Path) -> None:
    export_knowledge(rich, tmp_path / "stated.csv", inferred=False)
    assert "symmetric" not in (tmp_path / "stated.csv").read_text()
    assert export_knowledge(rich, tmp_path / "one.jsonl", predicates=("knows",)) == {"facts": 2}
    assert export_knowledge(rich, tmp_path / "one.csv", predicates=("knows",), inferred=False) == {"facts": 1}
    written = export_knowledge(rich, tmp_path / "folder", predicates=("knows", "nothing"))
    assert (written["facts"], written["details"]) == (2, 1)
    import_knowledge([str(tmp_path / "folder")], tmp_path / "kb.duckdb")
    assert [row["name"] for row in table(tmp_path / "kb.duckdb", "details")] == ["weight"]


def test_where_nothing_can_be_written_nothing_is_left(rich: Path, tmp_path: Path) -> None:
    def refusal(out: Path, store: Path = rich) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError) as refused:
            export_knowledge(store, out)
        assert sorted(tmp_path.rglob("*")) == before
        return str(refused.value)

    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    assert "holds other files" in refusal(tmp_path / "taken")
    assert "is not a folder" in refusal(tmp_path / "file")
    assert "out.xlsx: unknown suffix; use .parquet, .csv" in refusal(tmp_path / "out.xlsx")
    assert "is the knowledge base itself" in refusal(rich)
    assert "there is no knowledge base" in refusal(tmp_path / "out.csv", tmp_path / "nothing.duckdb")
    (tmp_path / "text.duckdb").write_text("no database" * 999)
    assert "is not a merkhet knowledge base" in refusal(tmp_path / "out", tmp_path / "text.duckdb")
    (tmp_path / "there.csv").mkdir()
    assert "there.csv is a folder" in refusal(tmp_path / "there.csv")
    (tmp_path / "there.nt").mkdir()
    assert "there.nt is a folder" in refusal(tmp_path / "there.nt")


def test_a_full_disk(rich: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
        mounted = subprocess.run(command, capture_output=True, timeout=10)
    except OSError as error:
        pytest.skip(f"there is no mount command here: {error}")
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        for name in ("out.csv", "out.jsonl", "out.nt", "out.parquet", "out"):
            with pytest.raises(InputError, match=r"disk.*: the disk is full"):
                export_knowledge(rich, disk / name)
            assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=10)
