"""Jobs of several processes: one that is killed is told of and gone on from, one of another version is refused."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training_together import MEMORIZE, TESTS, statements, torchrun

from gnomon.foundation import GnomonError, InputError
from gnomon.foundation.version import __version__
from gnomon.learning import jobs
from gnomon.learning.memorizing import memorize
from gnomon.learning.memorizing.training import CHECKPOINT
from gnomon.models import ModelSpec, load_model, resolve_model

pytestmark = [
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


class Killer:
    """Kills the process of a rank when so much was learned."""

    def __init__(self, rank: int = -1, after: int = 0) -> None:
        self.rank, self.after = rank, after
        self.done, self.first, self.said = 0, -1, []

    def start(self, *given) -> None: ...
    def finish(self, *given) -> None: ...

    def say(self, line: str) -> None:
        self.said.append(line)

    def advance(self, label: str, done: int) -> None:
        self.first = done if self.first < 0 else self.first
        self.done += done
        if 0 < self.after <= self.done:
            self.after = 0
            os.kill(workers(os.getpid())[self.rank], signal.SIGKILL)


def trained(folder: Path, count: int, progress: Killer, work: Path | None) -> str:
    start = load_model(resolve_model(ModelSpec("random:1x32")))
    settings = {**SETTINGS, "processes": count}
    return memorize(
        start, *statements(), folder, settings=settings, progress=progress, checkpoints=work, device="cpu"
    ).fingerprint


def test_killed_under_two_and_under_three_one_ends_with_the_very_same(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    for count, rank, after in ((2, 1, 350), (3, 0, 750)):
        killer = Killer(rank, after)
        with pytest.raises(
            GnomonError, match=r"SIGKILL.*kept: run it again, with as many processes as you like"
        ) as told:
            trained(tmp_path / "killed", count, killer, work)
        assert str(told.value).startswith(f"one of {count} processes that train together has failed: ")
        assert not (tmp_path / "killed").exists() and (work / CHECKPOINT).is_file()
        assert (killer.first > 0) == (count == 3)
    watch = Killer()
    again = trained(tmp_path / "killed", 1, watch, work)
    assert watch.first >= 600 and watch.done == 1200  # It did not begin anew.
    assert again == trained(tmp_path / "undisturbed", 1, Killer(), None)


_STARTER = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {own!r}]
from test_jobs import Killer, trained

class Watch(Killer):
    def advance(self, label, done):
        print(done, flush=True)

if __name__ == "__main__":
    trained(Path(sys.argv[1]) / "m", 2, Watch(), None)
"""


def test_processes_end_with_the_one_that_has_started_them(tmp_path):
    (tmp_path / "starter.py").write_text(_STARTER.format(tests=str(TESTS), own=str(TESTS / "learning")))
    running = subprocess.Popen([sys.executable, tmp_path / "starter.py", tmp_path], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    running.stdout.readline()
    started = workers(running.pid)
    running.kill()
    running.wait()
    assert sorted(started) == [0, 1]
    until = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in started.values()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{process}").exists() for process in started.values())


_OTHER = """
import os, sys
from pathlib import Path
from gnomon.learning import jobs

if os.environ["RANK"] == "1":
    jobs.__version__ = "0.0.9"
jobs.take_part(Path(sys.argv[1]))
"""


def test_a_process_of_another_version_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other.py").write_text(_OTHER)
    (tmp_path / jobs.JOB).write_text(json.dumps({"gnomon": __version__, "device": "cpu"}))
    done = torchrun(2, tmp_path / "other.py", tmp_path)
    said = [json.loads(line[13:]) for line in done.stdout.splitlines() if line.startswith("gnomon-error ")]
    assert done.returncode and said and all(one["input"] for one in said), done.stderr
    words = said[0]["message"]
    assert "do not agree on the version of gnomon: it is" in words
    assert f"{__version__} in process 0" in words and "0.0.9 in process 1" in words
    raised = []
    monkeypatch.setattr(jobs, "_fail", raised.append)
    (tmp_path / jobs.JOB).write_text(json.dumps({"gnomon": "0.0.8", "device": "cpu"}))
    jobs.take_part(tmp_path)
    jobs.take_part(tmp_path / "none")
    assert "was written by gnomon 0.0.8" in str(raised[0]) and "there is no " in str(raised[1])
    assert all(isinstance(one, InputError) for one in raised)


class Colleague(Killer):
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
    assert found == trained(tmp_path / "alone", 1, Killer(), None)
