"""merkhet explore in a process of its own: where it is, what it refuses, how it ends."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reports" / "explorer"))
from explored_runs import answer, question, write_run

PATIENCE = 120
"""Seconds to wait for what takes a moment on a machine that has nothing else to do."""


@contextmanager
def started(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command, once it has said where its page is."""
    command = [sys.executable, "-m", "merkhet", "explore", *map(str, arguments)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said = [process.stdout.readline() for _ in range(2)]
        assert re.match(r"http://127\.0\.0\.1:\d+/", said[1]), (said, process.poll())
        yield process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def port_of(said: list[str]) -> int:
    return int(re.search(r":(\d+)/", said[1]).group(1))


def asked(port: int, target: str = "/api/run") -> dict:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", target)
    answered = connection.getresponse()
    assert answered.status == 200
    return json.loads(answered.read())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "my run", [question()], [answer(), answer(model="large", rank=3.0)])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_says_where_it_is_serves_and_ends_cleanly(run, number):
    with started(run, "--port", 0) as (process, said):
        assert said[0] == f"1 question, 2 answers by 2 models: {run}\n" and "Ctrl-C stops it" in said[1]
        assert asked(port_of(said))["title"] == "Where things lie"
        process.send_signal(number)
        out, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, error) == (0, "", "")
        with socket.socket() as other:
            assert other.connect_ex(("127.0.0.1", port_of(said))) != 0


def test_ctrl_c_ends_it_while_a_reader_waits(run):
    with started(run, "--port", 0) as (process, said), socket.create_connection(("127.0.0.1", port_of(said))) as held:
        held.sendall(b"GET /api/run HTTP/1.1\r\n")
        asked(port_of(said))
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "") and process.returncode == 0


def test_a_signal_counts_as_soon_as_it_has_said_where_it_is(run, monkeypatch):
    from merkhet.cli import explore_command as explore
    from merkhet.reports.explorer.explorer_views import Views
    from merkhet.reports.explorer.playground import Player
    from merkhet.reports.explorer.run_tables import load_tables

    def say(line):
        if line.startswith("http"):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(explore.typer, "echo", say)
    explore.serve(Views(load_tables(run), run, "a run", json.loads((run / "run.json").read_text())), Player([]), 0)


@pytest.fixture
def usual_ports():
    """The ports that are tried without --port, for one test at a time on this machine: two would free each other's."""
    with open(Path(tempfile.gettempdir()) / "merkhet-usual-ports.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def test_without_a_port_the_next_free_one_is_taken(run, usual_ports):
    with started(run) as (_, first), started(run) as (_, second):
        ports = [port_of(first), port_of(second)]
        assert ports[0] >= 8765 and ports[1] > ports[0]
        assert [asked(port)["questions"] for port in ports] == [1, 1]


def refused(merkhet, *arguments: object) -> str:
    done = merkhet("explore", *arguments)
    assert done.returncode == 2 and done.stdout == "", done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_port_that_is_taken_is_refused_by_its_number(merkhet, run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(merkhet, run, "--port", port)
    assert f"port {port} is not available" in line and "choose another with --port" in line


def test_a_folder_that_is_no_run_and_one_that_is_not_there(merkhet, tmp_path):
    assert "is not a finished run; 'merkhet run' makes one" in refused(merkhet, tmp_path)
    assert "is not a finished run" in refused(merkhet, tmp_path / "nowhere")
    (tmp_path / "begun" / ".merkhet").mkdir(parents=True)
    assert "not a finished run; start the same command again to finish it" in refused(merkhet, tmp_path / "begun")


@pytest.mark.parametrize("name", ["answers.parquet", "questions.parquet", "run.json"])
def test_a_run_that_lacks_a_file_is_refused_by_its_name(merkhet, run, name):
    (run / name).write_bytes(b"no such content")
    assert name in refused(merkhet, run)
    (run / name).unlink()
    assert name in refused(merkhet, run)


def test_a_model_that_is_not_there_is_refused(merkhet, run):
    assert "no-such-model" in refused(merkhet, run, "--model", "no-such-model")


@pytest.mark.slow
def test_models_of_a_real_run_can_be_played_with_or_say_why_not(merkhet, tmp_path, model_folders):
    shutil.copytree(model_folders["bert-cased"], tmp_path / "bert")
    rows = [question(prompt="The capital of France is [MASK].", answers=["Paris"], target="Paris")]
    rows[0] |= {"choices": ["Paris", "Rome"]}
    rows[0].pop("candidate_set")
    (tmp_path / "questions.jsonl").write_text(json.dumps(rows[0]) + "\n")
    chosen = ("--data", "questions.jsonl", "--model", "bert", "--model", "random")
    merkhet("run", "quickstart", *chosen, "--out", "run", check=0)
    with started(tmp_path / "run", "--port", 0, "--model", model_folders["gpt2"]) as (_, said):
        models = asked(port_of(said))["models"]
    reasons = {one["name"]: one["reason"] for one in models}
    assert list(reasons) == ["bert", "random", "gpt2"]
    assert reasons["bert"] == reasons["gpt2"] == "" and "a baseline counts or guesses" in reasons["random"]
