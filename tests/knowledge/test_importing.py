"""Import into a store's file: whole or not at all, the same when it is done twice, and every bad row named."""

from __future__ import annotations

import bz2
import gzip
import lzma
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import fact_id
from merkhet.knowledge.database import KEY_COLUMNS, define_macros, fact_id_sql
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge

TABLES = ("facts", "names", "predicates", "details", "imports")
HEADER = "subject,predicate,object\n"
MANY = 300_000
KILLS = 8


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def content(store: Path, *but: str) -> dict[str, list[tuple]]:
    """All rows of all tables; ``imports.done_at`` is left out, and columns of facts that are named."""
    with duckdb.connect(str(store), read_only=True) as connection:
        found = {}
        for table in TABLES:
            left = ["done_at"] if table == "imports" else [*but] if table == "facts" else []
            columns = f"* exclude ({', '.join(left)})" if left else "*"
            found[table] = connection.execute(f"select {columns} from {table} order by all").fetchall()
        return found


def triples(store: Path) -> set[tuple]:
    return {(row[1], row[2], row[3] if row[3] is not None else row[4]) for row in content(store)["facts"]}


def names(store: Path) -> dict[tuple[str, str], tuple[str, list[str]]]:
    return {(row[0], row[1]): (row[2], row[3]) for row in content(store)["names"]}


def refusal(places, into: Path, **asked) -> str:
    before = sorted(path.name for path in into.parent.iterdir()) if into.parent.is_dir() else None
    held = into.read_bytes() if into.is_file() else None
    with pytest.raises(InputError) as refused:
        import_knowledge([str(place) for place in places], into, **asked)
    after = sorted(path.name for path in into.parent.iterdir()) if into.parent.is_dir() else None
    assert after == before, "something was left behind"
    if held is not None:
        assert into.read_bytes() == held
    assert "\n" not in str(refused.value)
    return str(refused.value)


# Ids

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.text('\x00\x1f\x7f"\\/\u2028é中😀\u200d', max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS | NUMBERS, st.none() | TEXTS), min_size=1, max_size=60))
def test_ids_made_in_sql_are_those_made_in_python(rows) -> None:
    facts = [
        {
            **{"subject": s, "predicate": p, "unit": unit, "start": None, "end": unit},
            **{"object": o if isinstance(o, str) else None, "value": o if isinstance(o, float) else None},
        }
        for s, p, o, unit in rows
    ]
    fields = [(name.strip('"'), pa.float64() if name == "value" else pa.string()) for name in KEY_COLUMNS]
    with duckdb.connect() as connection:
        define_macros(connection)
        connection.register("given", pa.Table.from_pylist(facts, schema=pa.schema(fields)))
        made = connection.execute(f"select {fact_id_sql(*KEY_COLUMNS)} from given").fetchall()
    assert [one for (one,) in made] == [fact_id(row) for row in facts]


# Twice is once, and the order does not matter


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "kb.duckdb"
    file = write(tmp_path / "a.csv", "subject,predicate,object,subject_label\nQ1,p,x,One\nQ2,p,y,Two\nQ1,p,x,One\n")
    (first,) = import_knowledge([file], store)
    import_knowledge(["elements"], store)
    once = content(store)
    again = import_knowledge([file, "elements"], store)
    assert content(store) == once
    assert (first.facts, first.added, first.repeated, first.names) == (3, 2, 1, 4)
    assert [(one.added, one.names) for one in again] == [(0, 0), (0, 0)]


def test_two_imports_in_either_order_give_the_same_facts_and_the_first_label_stays(tmp_path: Path) -> None:
    one = write(tmp_path / "one.csv", "subject,predicate,object,subject_label\nQ1,p,x,Zed\nQ2,p,y,Two\n")
    two = write(tmp_path / "two.csv", "subject,predicate,object,subject_label\nQ1,p,x,Alpha\nQ3,p,y,Three\n")
    stores = []
    for place, order in enumerate(([one, two], [two, one])):
        stores.append(tmp_path / f"{place}.duckdb")
        for file in order:
            import_knowledge([file], stores[-1])
    assert content(stores[0], "source")["facts"] == content(stores[1], "source")["facts"]
    assert names(stores[0])["Q1", "en"] == ("Zed", ["Alpha"])
    assert names(stores[1])["Q1", "en"] == ("Alpha", ["Zed"])
    together = tmp_path / "together.duckdb"
    import_knowledge([one, two], together)
    assert content(together)["facts"] == content(stores[0])["facts"]


@settings(deadline=None, max_examples=5)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.sampled_from("xyz")), min_size=1, max_size=12
    ),
    cut=st.integers(0, 12),
)
def test_a_file_in_two_halves_is_the_whole_file(tmp_path_factory, rows, cut) -> None:
    folder = tmp_path_factory.mktemp("halves")
    parts = {"whole": rows, "left": rows[:cut], "right": rows[cut:]}
    for name, some in parts.items():
        write(folder / f"{name}.csv", HEADER + "".join(",".join(row) + "\n" for row in some))
    import_knowledge([str(folder / "whole.csv")], folder / "whole.duckdb")
    import_knowledge([str(folder / "left.csv"), str(folder / "right.csv")], folder / "halves.duckdb")
    whole, halves = content(folder / "whole.duckdb", "source"), content(folder / "halves.duckdb", "source")
    assert whole["facts"] == halves["facts"]
    assert whole["names"] == halves["names"]
    assert triples(folder / "whole.duckdb") == set(rows)


# Whole or not at all


def bad_places(folder: Path) -> dict[str, list[str]]:
    large = HEADER + "".join(f"s{i},p,o{i}\n" for i in range(60_000))
    many = large[:90_000]
    good = write(folder / "good.csv", HEADER + "new,p,fact\n")
    parquet = folder / "whole.parquet"
    pq.write_table(pa.table({name: [name] * 50_000 for name in ("subject", "predicate", "object")}), parquet)
    return {
        "late": [write(folder / "late.csv", large + "s,p\n")],
        "second": [good, write(folder / "second.csv", HEADER + "a,,b\n")],
        "gz": [write(folder / "cut.csv.gz", gzip.compress(many.encode())[:-40])],
        "bz2": [write(folder / "cut.csv.bz2", bz2.compress(many.encode())[:-40])],
        "xz": [write(folder / "cut.csv.xz", lzma.compress(many.encode())[:-40])],
        "zst": [write(folder / "cut.csv.zst", pa.compress(many.encode(), "zstd", asbytes=True)[:-40])],
        "no gz": [write(folder / "plain.csv.gz", many)],
        "parquet": [good, write(folder / "cut.parquet", parquet.read_bytes()[:-20])],
        "parquet inside": [write(folder / "hole.parquet", parquet.read_bytes().replace(b"object", b"\xff" * 6, 1))],
        "encoding": [write(folder / "latin.csv", (HEADER + "café,p,o\n").encode("latin-1"))],
        "utf-16": [write(folder / "utf16.csv", (HEADER + "a,p,o\n").encode("utf-16"))],
        "absent": [good, str(folder / "absent.csv")],
        "column": [write(folder / "column.csv", "subjekt,predicate,object\na,p,b\n")],
    }


def test_what_is_broken_leaves_no_new_store_and_an_old_one_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    old = tmp_path / "kb" / "old.duckdb"
    import_knowledge([write(tmp_path / "old.csv", HEADER + "old,p,fact\n")], old)
    before = content(old)
    for kind, places in bad_places(tmp_path).items():
        assert refusal(places, old), kind
        assert content(old) == before, kind
        said = refusal(places, tmp_path / "kb" / "new.duckdb")
        assert Path(places[-1]).name in said, kind
    refusal([tmp_path / "latin.csv"], tmp_path / "kb" / "further" / "down" / "new.duckdb")
    assert "late.csv:60002: 2 cells where the header has 3. Nothing was imported." in refusal(
        [tmp_path / "late.csv"], old
    )


def test_a_place_to_write_that_is_none(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", HEADER + "a,p,b\n")
    (tmp_path / "folder.duckdb").mkdir()
    assert "is a folder" in refusal([file], tmp_path / "folder.duckdb")
    assert "must end in .duckdb" in refusal([file], tmp_path / "kb.db")
    assert "cannot be created" in refusal([file], tmp_path / "a.csv" / "kb.duckdb")
    write(tmp_path / "text.duckdb", "this is no database " * 1000)
    assert "is not a merkhet knowledge base" in refusal([file], tmp_path / "text.duckdb")
    duckdb.connect(str(tmp_path / "other.duckdb")).execute("create table mine (x int)").close()
    assert "not a merkhet knowledge base" in refusal([file], tmp_path / "other.duckdb")
    import_knowledge([file], tmp_path / "old.duckdb")
    assert "into itself" in refusal([tmp_path / "old.duckdb"], tmp_path / "old.duckdb")
    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("update meta set value = '99' where key = 'format'")
    assert "has format 99" in refusal([file], tmp_path / "old.duckdb")
    assert "has format 99" in refusal([tmp_path / "old.duckdb"], tmp_path / "new.duckdb")
    assert "nothing to import: name a file" in refusal([], tmp_path / "new.duckdb")
    with pytest.raises(InputError, match="there is no knowledge base"):
        KnowledgeBase.open(tmp_path / "nowhere.duckdb")


def test_paths_with_quotes_and_spaces_and_folders_that_are_not_there_yet(tmp_path: Path) -> None:
    store = tmp_path / "it's" / 'a "folder"' / "it's a store; drop.duckdb"
    file = write(tmp_path / "it's a table.csv", HEADER + "a,p,it's\n")
    import_knowledge([file], store)
    import_knowledge([file], store)
    assert triples(store) == {("a", "p", "it's")}
    assert [path.name for path in store.parent.iterdir()] == [store.name]
    import_knowledge([str(store)], tmp_path / "other's.duckdb")
    assert triples(tmp_path / "other's.duckdb") == {("a", "p", "it's")}


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, timeout=10)
    except OSError as error:
        pytest.skip(f"there is no mount command here: {error}")
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=10)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    rows = "".join(f"s{i},p,{random.Random(i).getrandbits(200):x}\n" for i in range(60_000))
    many = write(tmp_path / "many.csv", HEADER + rows)
    few = write(tmp_path / "few.csv", HEADER + "a,p,b\n")
    assert "the disk is full" in refusal([many], small_disk / "new.duckdb")
    import_knowledge([few], small_disk / "old.duckdb")
    before = content(small_disk / "old.duckdb")
    assert "the disk is full" in refusal([many], small_disk / "old.duckdb")
    assert content(small_disk / "old.duckdb") == before
    import_knowledge([write(tmp_path / "more.csv", HEADER + "c,p,d\n")], small_disk / "old.duckdb")
    assert triples(small_disk / "old.duckdb") == {("a", "p", "b"), ("c", "p", "d")}


# Killed, and several at once


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """A table of some 300,000 facts."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    numbers = range(MANY)
    columns = {"subject": [f"Q{i + 1}" for i in numbers], "object": [f"Q{i % 999 + 1}" for i in numbers]}
    pq.write_table(pa.table({**columns, "predicate": ["p"] * MANY}), path)
    return path


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["merkhet.knowledge.store_import", "merkhet.knowledge.sources.fact_table"])


def import_and_report(place: str, into: str) -> None:
    """What a process of its own does: it ends with 2 after it said why, as the command does."""
    try:
        import_knowledge([place], Path(into))
    except InputError as error:
        sys.exit(2 if "in use by another process" in str(error) else 3)


def start_import(place: Path | str, into: Path) -> multiprocessing.process.BaseProcess:
    process = PROCESSES.Process(target=import_and_report, args=(str(place), str(into)))
    process.start()
    return process


def ended(process: multiprocessing.process.BaseProcess) -> int | None:
    process.join(120)
    return process.exitcode


def until_begun(process: multiprocessing.process.BaseProcess, into: Path) -> None:
    """Wait until an import has begun to write."""
    while process.is_alive() and not (into.parent / f".{into.name}.importing" / "staging.duckdb").exists():
        time.sleep(0.002)


@pytest.mark.slow
def test_killed_at_random_moments_the_store_is_the_old_or_the_new_one(large: Path, tmp_path: Path) -> None:
    old = write(tmp_path / "old.csv", HEADER + "Q1,p,Q1\nold,p,fact\n")
    draw = random.Random(8)
    folder = tmp_path / "kb"
    store = folder / "kb.duckdb"
    import_knowledge([old], store)
    old_bytes = store.read_bytes()
    process = start_import(large, store)
    until_begun(process, store)
    began = time.monotonic()
    assert ended(process) == 0
    whole = time.monotonic() - began
    seen = set()
    for _ in range(KILLS):
        for path in folder.iterdir():
            if path.name.startswith(store.name):
                path.unlink()
        store.write_bytes(old_bytes)
        process = start_import(large, store)
        until_begun(process, store)
        time.sleep(draw.uniform(0, 1.1 * whole))
        process.kill()
        process.join()
        with KnowledgeBase.open(store) as knowledge:
            [found] = knowledge.query("select count(*) as facts, count(distinct fact_id) as ids from facts").to_pylist()
            rows = knowledge.imports().num_rows
        assert found["facts"] == found["ids"]
        assert (found["facts"], rows) in ((2, 1), (MANY + 1, 2))
        seen.add(rows)
    import_knowledge([str(large)], store)
    assert [path.name for path in folder.iterdir()] == [store.name]
    with KnowledgeBase.open(store) as knowledge:
        assert knowledge.count() == {"p": MANY + 1}
    assert 1 in seen


def test_killed_while_a_store_is_made_there_is_none_and_the_next_import_makes_it(large: Path, tmp_path: Path) -> None:
    store = tmp_path / "kb" / "kb.duckdb"
    process = start_import(large, store)
    until_begun(process, store)
    process.kill()
    process.join()
    assert not store.exists()
    assert list(store.parent.iterdir()), "it was not killed in the middle"
    import_knowledge([write(tmp_path / "a.csv", HEADER + "a,p,b\n")], store)
    assert [path.name for path in store.parent.iterdir()] == [store.name]
    assert triples(store) == {("a", "p", "b")}


@pytest.mark.parametrize("there", [True, False])
def test_a_second_import_is_refused_while_one_runs(large: Path, tmp_path: Path, there: bool) -> None:
    store = tmp_path / "kb" / "kb.duckdb"
    few = write(tmp_path / "few.csv", HEADER + "a,p,b\n")
    if there:
        import_knowledge([few], store)
    process = start_import(large, store)
    until_begun(process, store)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(InputError, match="in use by another process") as refused:
            import_knowledge([few], store)
        assert "\n" not in str(refused.value)
        with pytest.raises(InputError, match="in use" if there else "there is no knowledge base"):
            KnowledgeBase.open(store)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert ended(process) == 0
    assert [path.name for path in store.parent.iterdir()] == [store.name]
    with KnowledgeBase.open(store) as knowledge:
        assert knowledge.count() == {"p": MANY + there}
        with pytest.raises(InputError, match="open in this program already"):
            import_knowledge([few], store)
    import_knowledge([few], store)


def test_a_reader_keeps_an_import_out(tmp_path: Path) -> None:
    store = tmp_path / "kb.duckdb"
    file = write(tmp_path / "a.csv", HEADER + "a,p,b\n")
    import_knowledge([file], store)
    with KnowledgeBase.open(store):
        assert ended(start_import(file, store)) == 2
        with KnowledgeBase.open(store) as another:
            assert another.facts().num_rows == 1
    assert ended(start_import(file, store)) == 0


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """By the chunks that are alive at once, and not by seconds or by what a machine happens to have."""
    from merkhet.knowledge.source_lookup import read_source
    from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext

    for name, count in (("few.csv", 60_000), ("many.csv", 240_000)):
        write(tmp_path / name, HEADER + "".join(f"s{i},p,o\n" for i in range(count)))
    largest = {
        name: max(chunk.facts.num_rows for chunk in read_source(str(tmp_path / name), ReadContext()))
        for name in ("few.csv", "many.csv")
    }
    assert largest["many.csv"] == largest["few.csv"] == ROWS_IN_CHUNK
    numbers = {"subject": [str(i) for i in range(700_000)], "predicate": ["p"] * 700_000}
    pq.write_table(pa.table({**numbers, "object": numbers["subject"]}), tmp_path / "many.parquet")
    held = [chunk.facts.num_rows for chunk in read_source(str(tmp_path / "many.parquet"), ReadContext())]
    assert sum(held) == 700_000
    assert max(held) < 600_000
    before = pa.total_allocated_bytes()
    for _ in read_source(str(tmp_path / "many.parquet"), ReadContext()):
        assert pa.total_allocated_bytes() - before < 120 << 20
