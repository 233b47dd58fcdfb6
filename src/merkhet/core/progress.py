"""Progress reporting, independent of how it is displayed."""

from __future__ import annotations


class Progress:
    """A display of running work: a bar in a terminal, plain lines in a log, or nothing."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a task of ``total`` units; 0 if the total is unknown."""

    def advance(self, label: str, done: int) -> None:
        """Advance a task by ``done`` units."""

    def finish(self, label: str) -> None:
        """End a task."""

    def say(self, line: str) -> None:
        """Show a message."""


class SilentProgress(Progress):
    """Progress that displays nothing."""
