"""A memory limit holds for the whole process and for every database of a build; it changes no question."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from merkhet.api import build
from merkhet.core.errors import InputError
from merkhet.knowledge.memory_limit import current_share, duckdb_share, limited_memory, open_in_memory
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.makers import question_builder

PARTS = ("questions", "candidates", "facts", "frequencies", "entities")


def write_facts(folder: Path, count: int) -> Path:
    """Write facts about made-up things in ten relations, whose frequent objects are much more frequent."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(
            f"""copy (
                select 'thing ' || (hash(n, 1) % {count // 4}) as subject, 'relation' || (n % 10) as predicate,
                    'thing ' || (pow((hash(n, 2) % 100003) / 100003.0, 3) * {count // 4})::bigint as object
                from range({count}) as r(n) order by n
            ) to '{folder / "facts.csv"}' (header)"""
        )
    return folder / "facts.csv"


def settings(connection: duckdb.DuckDBPyConnection) -> tuple[str, str]:
    [row] = connection.execute("select current_setting('memory_limit'), current_setting('temp_directory')").fetchall()
    return row


def test_duckdb_gets_what_python_leaves() -> None:
    shares = {"4GB": 3_500_000_000, "1GB": 500_000_000, "600 MB": 300_000_000, "1GiB": 2**30 - 500_000_000}
    assert {text: duckdb_share(text) for text in shares} == shares


def test_a_limit_holds_for_every_database_and_ends_with_its_block(tmp_path: Path) -> None:
    store = tmp_path / "kb.duckdb"
    import_knowledge([str(write_facts(tmp_path, 100))], store)
    with open_in_memory() as free:
        without = settings(free)
    with limited_memory("1GB"):
        with KnowledgeBase.open(store) as knowledge:
            assert settings(knowledge.connection)[0] == "476.8 MiB"
        with KnowledgeBase.load([str(tmp_path / "facts.csv")]) as loaded:
            assert settings(loaded.connection)[0] == "476.8 MiB"
            [(place,)] = loaded.connection.execute("select path from duckdb_databases() where not internal").fetchall()
            assert Path(place).is_file()
        with open_in_memory() as helper:
            assert settings(helper)[0] == "238.4 MiB"
            spills_to = Path(settings(helper)[1])
    assert not spills_to.exists() and not Path(place).exists()
    assert current_share() is None
    with open_in_memory() as free:
        assert settings(free) == without


def test_a_query_beyond_the_limit_is_told_so() -> None:
    with limited_memory("20MB"), pytest.raises(InputError, match="--memory"), open_in_memory() as connection:
        connection.execute("select list(n) from range(10000000) r(n)").fetchall()


def test_a_limit_changes_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = str(write_facts(tmp_path, 3000))
    monkeypatch.setattr(question_builder, "MAX_ASKED_FACTS", 500)
    sampled, limited = (
        build("quickstart", knowledge=[facts], limit=30, memory=memory, out=tmp_path / f"out-{memory}")
        for memory in (None, "400MB")
    )
    for part in PARTS:
        assert getattr(sampled, part).equals(getattr(limited, part)), part
    assert any("of about 500 of " in remark for remark in sampled.about["remarks"])
    used = {fact for facts in sampled.questions["facts"].to_pylist() for fact in facts}
    assert set(sampled.facts["fact_id"].to_pylist()) == used


def test_at_most_so_many_facts_are_asked_about_without_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_builder, "MAX_ASKED_FACTS", 500)

    def asked(count: int, option: int | None = None) -> int:
        builder = object.__new__(question_builder.QuestionBuilder)
        builder.fact_count, builder.options = count, question_builder.MakerOptions("kmir", asked=option)
        return builder.asked_count

    assert [asked(count) for count in (1, 499, 500, 501, 10**9)] == [1, 499, 500, 500, 500]
    assert [asked(1000, option) for option in (1, 700, 5000)] == [1, 700, 1000]


MEASURED = """
import json, sys
from merkhet.api import build
build("quickstart", knowledge=[sys.argv[1]], out=sys.argv[2], memory=sys.argv[3] or None)
with open("/proc/self/status") as status:
    [peak] = [int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")]
print(json.dumps(peak))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory is read from /proc")
def test_the_whole_process_stays_near_its_limit(tmp_path: Path) -> None:
    store = tmp_path / "kb.duckdb"
    import_knowledge([str(write_facts(tmp_path, 300_000))], store)
    peaks, tables = {}, {}
    for memory in ("", "400MB"):
        out = tmp_path / f"out-{memory}"
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(store), str(out), memory], capture_output=True, text=True, check=True
        )
        peaks[memory] = json.loads(done.stdout.splitlines()[-1])
        tables[memory] = [pq.read_table(out / f"{part}.parquet") for part in PARTS]
    assert all(a.equals(b) for a, b in zip(*tables.values(), strict=True))
    assert peaks["400MB"] < 560, peaks
