"""What fault drills have found once: each fault in small, and that it is survived."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_packs import run_small, small_pack, small_run

import merkhet
from merkhet.core.errors import InputError
from merkhet.core.files import atomic_path, explain_write_error, temporary_path, write_text
from merkhet.core.progress import SilentProgress
from merkhet.engine import executor
from merkhet.engine.plan import Plan
from merkhet.knowledge.store_import import import_knowledge


class Told(SilentProgress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line.strip())


@pytest.fixture
def run(made_once: Any) -> Callable[[Path], list[str]]:
    """A function that runs a small study, and returns what was said."""

    def start(folder: Path) -> list[str]:
        told = Told()
        run_small(small_pack(made_once), folder, progress=told)
        return told.lines

    return start


@pytest.fixture
def finished(made_once: Any) -> Path:
    return small_run(made_once)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def flip(file: Path, share: float = 0.5) -> None:
    content = bytearray(file.read_bytes())
    content[int(share * (len(content) - 1))] ^= 4
    file.write_bytes(content)


def test_what_is_damaged_is_named_and_made_anew(run: Any, finished: Path, copied: Path) -> None:
    names = ("scores.parquet", "findings.json", "questions.parquet", "study.yaml")
    for cut, name in itertools.product((True, False), names):
        file = copied / name
        if cut:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
        else:
            flip(file)
        said = run(copied)
        assert f"{name} is damaged or was changed, and is written again" in said, cut
        assert file.read_bytes() == (finished / name).read_bytes(), (name, cut)


def test_a_wrong_byte_in_a_record_is_named(run: Any, copied: Path) -> None:
    record = copied / ".merkhet" / "steps" / "score.json"
    content = record.read_text()
    key = json.loads(content)["key"]
    record.write_text(content.replace(key, key[:-1] + ("0" if key[-1] != "0" else "1")))
    assert any(line.startswith(".merkhet/steps/score.json is damaged") for line in run(copied))


def test_what_is_whole_is_not_spoken_of(run: Any, copied: Path) -> None:
    assert not [line for line in run(copied) if "anew" in line]


def test_a_damaged_record_is_named_and_its_step_done_anew(run: Any, finished: Path, copied: Path) -> None:
    record = copied / ".merkhet" / "steps" / "score.json"
    for content in ("", "[]", '{"key": 1}', "\0\0\0", '{"outputs": 3, "key": "a"}'):
        record.write_text(content)
        said = run(copied)
        assert any(line.startswith(".merkhet/steps/score.json is damaged") for line in said), content
        assert json.loads(record.read_text())["outputs"].keys() == {"scores.parquet", "scores.json"}, content
        assert (copied / "scores.parquet").read_bytes() == (finished / "scores.parquet").read_bytes(), content


def test_readers_refuse_what_the_run_has_not_written(copied: Path) -> None:
    for name, read in (
        ("scores.parquet", lambda run: run.scores),
        ("answers.parquet", lambda run: run.answers),
        ("facts.parquet", lambda run: run.questions),
        ("run.json", lambda run: run.record),
        ("findings.json", lambda run: run.findings),
        ("study.yaml", lambda run: run.study),
    ):
        whole = (copied / name).read_bytes()
        read(merkhet.open_run(copied))
        flip(copied / name, 0.3)
        with pytest.raises(InputError, match=rf"{name} is damaged.*repeat the command"):
            read(merkhet.open_run(copied))
        (copied / name).write_bytes(whole)


def test_a_run_without_records_can_be_read(copied: Path) -> None:
    shutil.rmtree(copied / ".merkhet")
    assert merkhet.open_run(copied).scores.num_rows


def test_wrong_bytes_in_a_table_are_noticed(copied: Path) -> None:
    """Without the run's records too: pages have checksums."""
    shutil.rmtree(copied / ".merkhet")
    column = pq.ParquetFile(copied / "answers.parquet").metadata.row_group(0).column(0)
    flip(copied / "answers.parquet", (column.dictionary_page_offset + 60) / (copied / "answers.parquet").stat().st_size)
    with pytest.raises(InputError, match=r"answers\.parquet is not a complete Parquet file"):
        merkhet.open_run(copied).answers  # noqa: B018


def test_who_comes_second_leaves_the_folder_of_the_first_alone(tmp_path: Path, monkeypatch) -> None:
    """Both have seen that there is no such folder yet; the first makes it and is at work when the second looks."""
    folder = tmp_path / "run"
    lock_file, held = executor._lock_file, []

    def second(folder: Path):
        handle = lock_file(folder)
        held.append(open(folder / ".merkhet" / "lock"))  # noqa: SIM115
        fcntl.flock(held[0], fcntl.LOCK_EX)
        (folder / "work of the first").touch()
        return handle

    monkeypatch.setattr(executor, "_lock_file", second)
    with pytest.raises(InputError, match="another merkhet"):
        executor.execute(Plan(()), folder, tmp_path, SilentProgress())
    assert (folder / "work of the first").exists()
    held[0].close()


def test_a_lock_of_a_folder_that_is_gone_is_no_lock(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "run"
    lock_file = executor._lock_file

    def late(folder: Path):
        handle = lock_file(folder)
        shutil.rmtree(folder)
        return handle

    monkeypatch.setattr(executor, "_lock_file", late)
    with pytest.raises(InputError, match="another merkhet"):
        executor.execute(Plan(()), folder, tmp_path, SilentProgress())


def test_a_line_that_the_log_has_no_room_for_is_lost_without_a_word(tmp_path: Path, capfd) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    (tmp_path / "log.txt").symlink_to("/dev/full")
    with executor._logging_to(tmp_path, SilentProgress()):
        executor.logger.info("a line")
    assert capfd.readouterr().err == ""


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    script = (
        "import os, sys; from pathlib import Path; from merkhet.core.files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as path:\n"
        "    path.write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", script, str(target)]).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1  # The second has removed what the first left.
    write_text(target, "whole")
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_living_process_is_writing_stays(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    other = subprocess.Popen(["sleep", "60"])
    try:
        of_other = temporary_path(target).name.replace(f"-{os.getpid()}.", f"-{other.pid}.")
        elsewhere = ".report.html.ffffff-1.tmp"  # Of another machine, on a shared disk.
        for name in (of_other, elsewhere):
            (tmp_path / name).touch()
        write_text(target, "whole")
        assert {path.name for path in tmp_path.iterdir()} == {"report.html", of_other, elsewhere}
    finally:
        other.kill()
        other.wait()


def test_what_a_killed_process_left_in_the_temporary_folder_is_removed(tmp_path: Path) -> None:
    script = (
        "import os, sys; from merkhet.core.files import scratch_folder\n"
        "with scratch_folder('job') as outer, scratch_folder('job') as folder:\n"
        "    assert outer.is_dir(); (folder / 'large').write_text('half')\n"
        "    if sys.argv[1] == 'kill': os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for how, code, left in (("kill", -9, 2), ("kill", -9, 2), ("end", 0, 0)):
        assert subprocess.run([sys.executable, "-c", script, how], env=environment).returncode == code
        assert len(list(tmp_path.iterdir())) == left


def test_a_place_that_cannot_be_written_to_is_said_in_a_line(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    for number in (errno.EROFS, errno.EACCES, errno.EPERM):
        with pytest.raises(InputError, match=r"report\.html cannot be written to.*--out"), atomic_path(target) as path:
            raise OSError(number, os.strerror(number), str(path))
        other = OSError(number, os.strerror(number), "/elsewhere/input.csv")
        assert explain_write_error(other, target) is None, number


def test_work_of_a_step_that_was_done_when_a_kill_came_is_cleared_away(run: Any, copied: Path) -> None:
    left = copied / ".merkhet" / "work" / "collect" / "0123"
    left.mkdir(parents=True)
    (left / "00001.parquet").write_bytes(b"")
    run(copied)
    assert not (copied / ".merkhet" / "work").exists()


def test_a_damaged_knowledge_base_is_named_with_a_remedy(made_once: Any, tmp_path: Path) -> None:
    store = tmp_path / "kb.duckdb"
    import_knowledge([str(small_pack(made_once))], store)
    content = store.read_bytes()
    with open(store, "rb+") as handle:  # Of the two headers and of the first block.
        for place in (4096 + 100, 8192 + 100, 12288 + 500):
            handle.seek(place)
            handle.write(bytes([content[place] ^ 4]))
    with pytest.raises(InputError, match=r"kb\.duckdb is damaged.*import its sources again"):
        import_knowledge(["countries"], store)


def test_a_damaged_log_of_a_knowledge_base_is_named_with_a_remedy(made_once: Any, tmp_path: Path) -> None:
    """As a kill leaves it, with a wrong byte."""
    store = tmp_path / "kb.duckdb"
    import_knowledge([str(small_pack(made_once))], store)
    script = (
        "import duckdb, os, sys\n"
        "connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute(\"insert into meta select 'k' || i, 'v' from range(1000) t(i)\")\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(store)]).returncode == -9
    log = tmp_path / "kb.duckdb.wal"
    flip(log)
    with pytest.raises(InputError, match=r"kb\.duckdb\.wal, .* is damaged.*Remove it"):
        import_knowledge(["everyday"], store)
    log.unlink()
    assert import_knowledge(["everyday"], store)[0].added
