"""Progress for people: bars with rate and time left in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from merkhet.core.progress import Progress

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def make_progress(*, plain: bool) -> Iterator[Progress]:
    """What shows progress on standard error: bars if it is a terminal and nobody asked for plain lines."""
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
    with bars:
        yield TerminalBars(bars)


class TerminalBars:
    """One bar for each piece of work."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def start(self, label: str, total: int, unit: str) -> None:
        """A new bar."""
        self.tasks[label] = self.bars.add_task(label, total=total or None, rate="", unit=unit)

    def advance(self, label: str, done: int) -> None:
        """Move a bar."""
        task = self.tasks[label]
        self.bars.update(task, advance=done)
        shown = self.bars.tasks[self.bars.task_ids.index(task)]
        speed = shown.finished_speed or shown.speed
        if speed:
            self.bars.update(task, rate=f"{speed:,.0f} {shown.fields['unit']}/s")

    def finish(self, label: str) -> None:
        """Stop a bar's clock."""
        self.bars.stop_task(self.tasks[label])

    def say(self, line: str) -> None:
        """A line above the bars."""
        self.bars.console.print(line)


@dataclass
class _Work:
    total: int
    unit: str
    started: float
    shown: float
    done: int = 0

    @property
    def shown_done(self) -> str:
        """How much is done, of how much if that is known."""
        return f"{self.done}/{self.total}" if self.total else str(self.done)


class PlainLines:
    """A line now and then, and one at the end, for logs and pipes."""

    def __init__(self) -> None:
        self.work: dict[str, _Work] = {}

    def start(self, label: str, total: int, unit: str) -> None:
        """Remember when it began."""
        now = time.monotonic()
        self.work[label] = _Work(total, unit, now, now)

    def advance(self, label: str, done: int) -> None:
        """A line if the last one is some time ago."""
        work = self.work[label]
        work.done += done
        now = time.monotonic()
        if now - work.shown >= SECONDS_BETWEEN_LINES and (work.done < work.total or not work.total):
            work.shown = now
            rate = work.done / (now - work.started)
            left = f", {(work.total - work.done) / rate:,.0f} s left" if work.total and rate else ""
            self.say(f"  {label}: {work.shown_done} {work.unit}, {rate:,.1f}/s{left}")

    def finish(self, label: str) -> None:
        """The last line."""
        work = self.work.pop(label)
        seconds = time.monotonic() - work.started
        rate = work.done / seconds if seconds else 0.0
        self.say(f"  {label}: {work.shown_done} {work.unit} in {seconds:,.1f} s ({rate:,.0f}/s)")

    def say(self, line: str) -> None:
        """A line on standard error."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
