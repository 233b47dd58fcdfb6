"""What is fuzzed: each reader with valid examples, how odd ones are made of them, and how a user would have it read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

SEPARATOR = b"\n=====8<=====\n"
"""Stands between the files of an input that is a folder."""


@dataclass
class Place:
    """A folder of one input: ``given`` are files that the user had, ``out`` is where a reader may write."""

    folder: Path
    given: set[Path] = field(default_factory=set)

    @property
    def out(self) -> Path:
        """Where a reader may leave what it makes."""
        return self.folder / "out"

    def file(self, name: str, data: bytes) -> Path:
        """A file of the user's."""
        path = self.folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.given.add(path)
        return path


Reader = Callable[[bytes, Place], Any]
Command = Callable[[bytes, Place], Sequence[str]]
Grammar = Callable[[Sequence[bytes]], Any]
"""A hypothesis strategy of inputs, made of valid ones."""


@dataclass(frozen=True)
class Target:
    """A reader. ``read`` and ``command`` go through what is public; ``command`` is what a user would type.

    ``seeds`` are valid, ``bombs`` are inputs that have brought down readers elsewhere; ``words`` are pieces to put in.
    ``share`` is how many inputs it gets, against 1 for the usual reader.
    """

    name: str
    read: Reader
    seeds: tuple[bytes, ...]
    grammar: Grammar | None = None
    bombs: Callable[[], Sequence[bytes]] | None = None
    words: tuple[bytes, ...] = ()
    command: Command | None = None
    share: float = 1.0
    guided: bool = True
    module: str = ""


_MODULES = ("knowledge", "questions", "studies", "models", "replies", "formats")
READERS = tuple(f"fuzz.readers.{name}" for name in _MODULES)
"""Modules with a function ``targets``."""


def targets_of(modules: Sequence[str] = READERS) -> dict[str, Target]:
    """The readers of some modules, by name; all of them if none are named."""
    found: dict[str, Target] = {}
    for module in modules:
        for target in importlib.import_module(module).targets():
            if target.name in found:
                raise ValueError(f"two targets are called {target.name}")
            found[target.name] = replace(target, module=module)
    return found


def parts(data: bytes, count: int) -> list[bytes | None]:
    """The files of an input that is a folder; None for one that is not there."""
    found: list[bytes | None] = list(data.split(SEPARATOR, count - 1))
    return found + [None] * (count - len(found))
