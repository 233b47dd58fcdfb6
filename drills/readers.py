"""The commands that only read a run, and how they end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from drills.stage import LONGEST, Ended, Stage, orphans

SERVES = "http://"


def reading_commands(run: Path, other: Path, out: Path) -> list[tuple[str, ...]]:
    """Every command that reads a run, writing elsewhere where it writes at all."""
    return [
        ("report", str(run), "--out", str(out / "report.html")),
        ("tables", str(run)),
        ("figures", str(run), "--as", "svg", "--out", str(out / "figures")),
        ("compare", str(run), str(other)),
        ("explore", str(run), "--port", "0"),
    ]


def read_with(stage: Stage, command: Sequence[str], place: Path) -> Ended:
    """How a reading command ends; one that serves pages has done well when it says where."""
    if command[0] != "explore":
        return stage.finish(command, place)
    running = stage.start(command, place)
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        ended = running.wait(0.2)
        if ended is not None:
            return ended
        if SERVES in running.said.read_text(encoding="utf-8", errors="replace"):
            killed = running.kill()
            orphans(running.mark, 0.0)
            return Ended(0, killed.said, killed.seconds)
    return running.kill()
