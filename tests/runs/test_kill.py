"""Killed at any moment and started again, a run ends with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

KILLS = 20


def command(models: dict[str, Path], out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "gnomon", "run", "quickstart", "--limit", "120", "--quiet"),
        *("--model", str(models["llama"]), "--model", "frequency", "--out", str(out)),
    ]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def test_killed_at_twenty_random_moments(model_folders: dict[str, Path], tmp_path: Path) -> None:
    """Kills follow one another in a folder until a run gets through; then another folder begins."""
    began = time.monotonic()
    assert start(command(model_folders, tmp_path / "undisturbed")).wait(300) == 0
    whole = time.monotonic() - began
    expected = (tmp_path / "undisturbed" / "scores.json").read_bytes()

    def check(folder: Path) -> None:
        assert (folder / "scores.json").read_bytes() == expected
        assert (folder / "report.html").stat().st_size > 10_000
        assert not list(folder.rglob("*.tmp"))

    draw = random.Random(20)
    kills = folders = 0
    out = tmp_path / "killed-0"
    while kills < KILLS:
        process = start(command(model_folders, out))
        try:
            assert process.wait(draw.uniform(0.0, whole)) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            check(out)
            folders += 1
            out = tmp_path / f"killed-{folders}"
    assert start(command(model_folders, out)).wait(300) == 0
    check(out)
    print(f"{kills} kills over {folders + 1} runs of {whole:.1f} s: every scores.json is the same")
