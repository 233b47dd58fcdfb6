"""Standard output and error that are closed, full, or read by nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_packs import small_pack, small_run

CLOSED, FULL, UNREAD = ">&-", "> /dev/full", "| head -0"


def run(command: str, redirection: str, cwd: Path) -> tuple[int, str, str]:
    """Run a command in a shell, redirected; return its exit code and what it wrote elsewhere."""
    options = {"shell": True, "cwd": cwd, "text": True, "timeout": 120}
    command = f"{sys.executable} -m merkhet {command}"
    if redirection == UNREAD:
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, **options)
    else:
        done = subprocess.run(f"{command} {redirection}", capture_output=True, **options)
    return done.returncode, done.stdout or "", done.stderr


def test_lost_output_is_exit_code_1_without_a_word(tmp_path: Path) -> None:
    for command in ("--help", "suites", "metrics --json"):
        for redirection in (CLOSED, FULL, UNREAD):
            assert run(command, redirection, tmp_path) == (1, "", ""), (command, redirection)


def test_lost_messages_change_nothing(tmp_path: Path) -> None:
    for redirection in ("2>&-", "2> /dev/full", "2>&- <&-"):
        code, printed, _ = run("suites", redirection, tmp_path)
        assert code == 0 and "quickstart" in printed, redirection
    assert run("knowledge show", "2> /dev/full", tmp_path) == (2, "", "")


@pytest.mark.slow
def test_commands_whose_output_is_lost_do_their_work(made_once, tmp_path: Path) -> None:
    pack = small_pack(made_once)
    finished = shutil.copytree(small_run(made_once), tmp_path / "finished")
    scores = (finished / "scores.json").read_bytes()
    made = {
        f"run quickstart --knowledge {pack} --model random --set report=none --quiet --out": "scores.json",
        f"run quickstart --knowledge {pack} --model random --set report=none --json --out": "scores.json",
        f"build quickstart --knowledge {pack} --json --out": "questions.parquet",
        f"tables {finished} --out": None,
    }
    for command, file in made.items():
        for number, redirection in enumerate((CLOSED, FULL, UNREAD, ">&- 2>&-", "> /dev/full 2>&1")):
            out = f"out-{len(command)}-{number}"
            code, printed, error = run(f"{command} {out}", redirection, tmp_path)
            # A run reports its progress on standard error.
            assert (code, printed) == (1, "") and "Traceback" not in error and "Exception" not in error, (
                command,
                error,
            )
            assert (tmp_path / out / file).stat().st_size if file else (tmp_path / out).exists(), (command, redirection)
    assert (finished / "scores.json").read_bytes() == scores
