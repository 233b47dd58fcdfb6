"""Progress display: bars with rate and remaining time in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from merkhet.core.interrupts import set_terminal_reset
from merkhet.core.progress import Progress

SECONDS_BETWEEN_LINES = 10.0
_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def make_progress(*, plain: bool) -> Iterator[Progress]:
    """Show progress on standard error: bars in a terminal, plain lines elsewhere or if ``plain``."""
    console = Console(stderr=True, highlight=False)
    if plain or not console.is_terminal:
        yield PlainLines()
        return
    bars = Bars(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
    set_terminal_reset(f"{_SHOW_CURSOR}\n")
    with bars:
        yield TerminalBars(bars)
    set_terminal_reset("")


class TerminalBars(Progress):
    """Terminal display with one bar per task."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def start(self, label: str, total: int, unit: str) -> None:
        """Add a bar for a task."""
        self.tasks[label] = self.bars.add_task(label, total=total or None, rate="", unit=unit)

    def advance(self, label: str, done: int) -> None:
        """Advance a task's bar and update its rate."""
        task = self.tasks[label]
        self.bars.update(task, advance=done)
        bar = self.bars.tasks[self.bars.task_ids.index(task)]
        speed = bar.finished_speed or bar.speed
        if speed:
            self.bars.update(task, rate=f"{speed:,.0f} {bar.fields['unit']}/s")

    def finish(self, label: str) -> None:
        """Stop the clock of a task's bar."""
        self.bars.stop_task(self.tasks[label])

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self.bars.console.print(line)


@dataclass
class _Work:
    total: int
    unit: str
    started: float
    printed_at: float
    done: int = 0

    @property
    def completed(self) -> str:
        """Completed units, followed by the total if it is known."""
        return f"{self.done}/{self.total}" if self.total else str(self.done)


class PlainLines(Progress):
    """Display for logs and pipes: a line at intervals and a line at the end of a task."""

    def __init__(self) -> None:
        self.work: dict[str, _Work] = {}

    def start(self, label: str, total: int, unit: str) -> None:
        """Start the clock of a task."""
        now = time.monotonic()
        self.work[label] = _Work(total, unit, now, now)

    def advance(self, label: str, done: int) -> None:
        """Advance a task; print a line if enough time has passed since the last line."""
        work = self.work[label]
        work.done += done
        now = time.monotonic()
        if now - work.printed_at >= SECONDS_BETWEEN_LINES and (work.done < work.total or not work.total):
            work.printed_at = now
            rate = work.done / (now - work.started)
            remaining = f", {(work.total - work.done) / rate:,.0f} s left" if work.total and rate else ""
            self.say(f"  {label}: {work.completed} {work.unit}, {rate:,.1f}/s{remaining}")

    def finish(self, label: str) -> None:
        """Print the total and the rate of a finished task."""
        work = self.work.pop(label)
        seconds = time.monotonic() - work.started
        rate = work.done / seconds if seconds else 0.0
        self.say(f"  {label}: {work.completed} {work.unit} in {seconds:,.1f} s ({rate:,.0f}/s)")

    def say(self, line: str) -> None:
        """Print a line on standard error."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
