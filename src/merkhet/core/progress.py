"""How long work tells of itself without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Something that shows work: a bar in a terminal, plain lines in a log, or nothing."""

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work of so many units begins."""

    def advance(self, label: str, done: int) -> None:
        """So many more units are done."""

    def finish(self, label: str) -> None:
        """The piece of work has ended."""

    def say(self, line: str) -> None:
        """A line for whoever watches."""


class SilentProgress:
    """Nobody watches."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Ignore."""

    def advance(self, label: str, done: int) -> None:
        """Ignore."""

    def finish(self, label: str) -> None:
        """Ignore."""

    def say(self, line: str) -> None:
        """Ignore."""
