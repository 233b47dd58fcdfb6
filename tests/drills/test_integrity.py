"""The drills' own eyes: they see a file that is cut off, what is left over, and a result that is another."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_packs import small_pack

sys.path.insert(0, str(Path(__file__).parents[2]))

from drills.fork_server import PRELOADED
from drills.integrity import broken_files, content_hashes, differences, leftovers
from drills.jobs import JOBS
from drills.kills import _divide_kills
from merkhet.knowledge.store_import import import_knowledge


def write(folder: Path, seconds: float = 1.0, score: float = 0.5) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({"question_id": ["a", "b"], "score": [score, 1.0], "seconds": [seconds] * 2}), folder / "a.parquet"
    )
    (folder / "scores.json").write_text("[1, 2]")
    (folder / "report.html").write_text("<html></html>")
    return folder


def test_whole_files_are_whole_and_times_do_not_count(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one"), write(tmp_path / "other", seconds=2.0)
    assert not broken_files(one) and not leftovers(one)
    assert not differences(content_hashes(one), content_hashes(other))
    assert differences(content_hashes(one), content_hashes(write(tmp_path / "other", score=0.4)))
    (other / "scores.json").unlink()
    assert "scores.json" in differences(content_hashes(one), content_hashes(other))[0]


@pytest.mark.parametrize("name", ["a.parquet", "scores.json", "report.html"])
def test_a_file_that_is_cut_off_is_seen(tmp_path: Path, name: str) -> None:
    file = write(tmp_path) / name
    file.write_bytes(file.read_bytes()[:-3])
    assert broken_files(tmp_path)[0].startswith(f"{name} is not whole")
    file.rename(tmp_path / f".{name}.1.tmp")
    assert not broken_files(tmp_path)
    assert leftovers(tmp_path) == [f".{name}.1.tmp is left over"]


def test_a_knowledge_base_is_its_rows_and_not_when_they_came(made_once, tmp_path: Path) -> None:
    for name in ("one", "other"):
        import_knowledge([str(small_pack(made_once))], tmp_path / name / "kb.duckdb")
    assert not differences(content_hashes(tmp_path / "one"), content_hashes(tmp_path / "other"))
    import_knowledge(["everyday"], tmp_path / "other" / "kb.duckdb")
    assert differences(content_hashes(tmp_path / "one"), content_hashes(tmp_path / "other"))


def test_all_kills_are_divide_kills_over_all_jobs() -> None:
    divided = _divide_kills(200)
    assert sum(kills for _, kills in divided) == 200
    assert {job.name for job, kills in divided if kills} == {job.name for job in JOBS}


def test_the_fork_server_names_modules_that_exist() -> None:
    missing = [name for name in PRELOADED if name.startswith("merkhet") and find_spec(name) is None]
    assert missing == []
