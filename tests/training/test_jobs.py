"""Jobs of several processes: one that is killed is told of and gone on from, one of another version is refused."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training_together import KILL, MEMORIZE, TESTS, WAIT, statements, torchrun, troubled

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.version import __version__
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.training._trainer import CHECKPOINT
from merkhet.training.distributed import _jobs as jobs
from merkhet.training.memorizing.memorize import store_statements as memorize

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found by /proc"),
]
SETTINGS = {**MEMORIZE, "epochs": 12, "parts": 4}


def workers(of: int) -> dict[int, int]:
    """The process of each rank that a process has started, by way of torchrun."""
    parents, ranks = {}, {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                given = (entry / "environ").read_bytes().split(b"\0")
                ranks[int(entry.name)] = next((int(one[5:]) for one in given if one.startswith(b"RANK=")), -1)
        except OSError:
            continue
    mine = {process for process, parent in parents.items() if parent == of}
    return {
        ranks[process]: process for process, parent in parents.items() if parent in mine and ranks.get(process, -1) >= 0
    }


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended; one that has may wait to be looked at."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Watch:
    """Remembers what a training says and how far it is."""

    def __init__(self) -> None:
        self.done, self.first, self.said = 0, -1, []

    def start(self, *given) -> None: ...
    def finish(self, *given) -> None: ...

    def say(self, line: str) -> None:
        self.said.append(line)

    def advance(self, label: str, done: int) -> None:
        self.first = done if self.first < 0 else self.first
        self.done += done


def trained(folder: Path, count: int, progress: Watch, work: Path | None) -> str:
    start = load_model(resolve_model(ModelSpec("random:1x32")))
    settings = {**SETTINGS, "processes": count}
    return memorize(
        start, *statements(), folder, settings=settings, progress=progress, checkpoints=work, device="cpu"
    ).fingerprint


def test_killed_under_two_and_under_three_one_ends_with_the_very_same(tmp_path, monkeypatch):
    """A process of each job kills itself at the beginning of an epoch."""
    work = tmp_path / "work"
    work.mkdir()
    for count, rank, epoch in ((2, 1, 4), (3, 0, 8)):
        watch = Watch()
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", troubled(tmp_path / f"trouble-{count}", rank, epoch, KILL))
            with pytest.raises(
                MerkhetError, match=r"SIGKILL.*kept: run it again, with any number of processes"
            ) as told:
                trained(tmp_path / "killed", count, watch, work)
        assert str(told.value).startswith(f"one of {count} training processes has failed: ")
        assert not (tmp_path / "killed").exists() and (work / CHECKPOINT).is_file()
        assert (watch.first > 0) == (count == 3)
    watch = Watch()
    again = trained(tmp_path / "killed", 1, watch, work)
    assert (watch.first, watch.done) == (800, 1200)  # It did not begin anew.
    assert again == trained(tmp_path / "undisturbed", 1, Watch(), None)


_STARTER = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {own!r}]
from test_jobs import Watch, trained

class Told(Watch):
    def advance(self, label, done):
        super().advance(label, done)
        print(self.done, flush=True)

if __name__ == "__main__":
    trained(Path(sys.argv[1]) / "m", 2, Told(), None)
"""


def test_processes_end_with_the_one_that_has_started_them(tmp_path):
    """They wait in their third epoch, and would do so for ever."""
    (tmp_path / "starter.py").write_text(_STARTER.format(tests=str(TESTS), own=str(TESTS / "training")))
    environment = {**os.environ, "PYTHONPATH": troubled(tmp_path / "trouble", 0, 2, WAIT)}
    command = [sys.executable, tmp_path / "starter.py", tmp_path]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert running.stdout is not None
    for line in running.stdout:
        if int(line) >= 200:
            break
    started = workers(running.pid)
    running.kill()
    running.communicate()
    assert sorted(started) == [0, 1]
    until = time.monotonic() + 60
    while any(map(is_running, started.values())) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(is_running, started.values()))


_OTHER = """
import os, sys
from pathlib import Path
from merkhet.training.distributed import _jobs as jobs

if os.environ["RANK"] == "1":
    jobs.__version__ = "0.0.9"
jobs.run_worker(Path(sys.argv[1]))
"""


def test_a_process_of_another_version_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other.py").write_text(_OTHER)
    (tmp_path / jobs.JOB).write_text(json.dumps({"merkhet": __version__, "device": "cpu"}))
    done = torchrun(2, tmp_path / "other.py", tmp_path)
    said = [json.loads(line[13:]) for line in done.stdout.splitlines() if line.startswith("merkhet-error ")]
    assert done.returncode and said and all(one["input"] for one in said), done.stderr
    words = said[0]["message"]
    assert "have different values of the version of merkhet: " in words
    assert f"{__version__} in process 0" in words and "0.0.9 in process 1" in words
    raised = []
    monkeypatch.setattr(jobs, "_fail", raised.append)
    (tmp_path / jobs.JOB).write_text(json.dumps({"merkhet": "0.0.8", "device": "cpu"}))
    jobs.run_worker(tmp_path)
    jobs.run_worker(tmp_path / "none")
    assert "was written by merkhet 0.0.8" in str(raised[0]) and "there is no " in str(raised[1])
    assert all(isinstance(one, InputError) for one in raised)


class Colleague(Watch):
    """The other machine: starts what it is told to."""

    def say(self, line: str) -> None:
        super().say(line)
        _, found, command = line.partition("other machines: torchrun ")
        if found:
            self.other = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *shlex.split(command)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )


def test_two_machines_train_together(tmp_path, monkeypatch):
    """Two torchruns, which find each other by an address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:{port} --rdzv-id=test"
    monkeypatch.setenv(jobs.TORCHRUN, f"{options} --local-addr=127.0.0.1")
    colleague = Colleague()
    found = trained(tmp_path / "together", 2, colleague, tmp_path / "work")
    out, _ = colleague.other.communicate()
    assert colleague.other.returncode == 0, out
    assert not (tmp_path / "work/job").exists()
    monkeypatch.delenv(jobs.TORCHRUN)
    assert found == trained(tmp_path / "alone", 1, Watch(), None)
