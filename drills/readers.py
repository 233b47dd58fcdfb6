"""Commands that only read a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from drills.stage import TIMEOUT, CommandResult, Stage, kill_orphans

SERVES = "http://"


def reading_commands(run: Path, other: Path, out: Path) -> list[tuple[str, ...]]:
    """Return every command that reads a run; those that write do so in ``out``."""
    return [
        ("report", str(run), "--out", str(out / "report.html")),
        ("tables", str(run)),
        ("figures", str(run), "--as", "svg", "--out", str(out / "figures")),
        ("compare", str(run), str(other)),
        ("explore", str(run), "--port", "0"),
    ]


def read_with(stage: Stage, command: Sequence[str], workdir: Path) -> CommandResult:
    """Run a reading command; one that serves pages has succeeded when it prints its address."""
    if command[0] != "explore":
        return stage.finish(command, workdir)
    running = stage.start(command, workdir)
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        result = running.wait(0.2)
        if result is not None:
            return result
        if SERVES in running.output_file.read_text(encoding="utf-8", errors="replace"):
            killed = running.kill()
            kill_orphans(running.mark, 0.0)
            return CommandResult(0, killed.output, killed.seconds)
    return running.kill()
