"""Progress reporting, independent of how it is displayed."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A display of running work: a bar in a terminal, plain lines in a log, or nothing."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Begin a task of ``total`` units."""

    def advance(self, label: str, done: int) -> None:
        """Advance by ``done`` units."""

    def finish(self, label: str) -> None:
        """End the task."""

    def say(self, line: str) -> None:
        """Show a message."""


class SilentProgress:
    """Progress that displays nothing."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Ignore."""

    def advance(self, label: str, done: int) -> None:
        """Ignore."""

    def finish(self, label: str) -> None:
        """Ignore."""

    def say(self, line: str) -> None:
        """Ignore."""
