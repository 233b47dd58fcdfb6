"""Parts found by name: nothing heavy is imported until a part is used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest


class Registry:
    """Names of parts of one kind, each with the place it is loaded from and a line that says what it is.

    A part comes from merkhet itself, from another distribution (entry points of the group ``merkhet.<plural>``),
    from :meth:`add`, or is named in place: ``package.module:attribute`` or ``path/to/file.py:attribute``.
    """

    def __init__(self, kind: str, parts: Mapping[str, tuple[str, str]], plural: str | None = None) -> None:
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self._own = dict(parts)
        self._added: dict[str, tuple[Any, str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *self._added, *self._foreign()]))

    def __contains__(self, name: str) -> bool:
        return name in self._own or name in self._added or name in self._foreign()

    def add(self, name: str, part: Any, about: str = "") -> Any:
        """Make an object of this process known by a name; returns the object."""
        if name in self:
            raise InputError(f"there is a {self.kind} called {name!r} already; choose another name")
        self._added[name] = (part, about)
        return part

    def remove(self, name: str) -> None:
        """Forget a part that was added."""
        self._added.pop(name, None)

    def about(self, name: str) -> str:
        """One line that says what a part is."""
        if name in self._own:
            return self._own[name][1]
        if name in self._added:
            return self._added[name][1]
        return f"from {self._foreign()[name].value.partition(':')[0]}"

    def get(self, name: str, folder: Path | None = None) -> Any:
        """The part called so; refuses an unknown name, with the nearest known one."""
        if name in self._added:
            return self._added[name][0]
        if name in self._own:
            return load_part(self._own[name][0])
        foreign = self._foreign()
        if name in foreign:
            return foreign[name].load()
        if ":" in name:
            return load_part(name, folder)
        raise InputError(f"there is no {self.kind} called {name!r}; {did_you_mean(name, self)}")

    def check(self, name: str) -> None:
        """Refuse an unknown name without importing anything."""
        if name not in self and ":" not in name:
            raise InputError(f"there is no {self.kind} called {name!r}; {did_you_mean(name, self)}")

    def decorator(self, name: str, about: str = "") -> Callable[[Any], Any]:
        """``@PARTS.decorator("name")`` above a function adds it."""
        return lambda part: self.add(name, part, about)

    def _foreign(self) -> dict[str, Any]:
        from importlib.metadata import entry_points  # Slow to import, and not needed for most names.

        return {point.name: point for point in entry_points(group=f"merkhet.{self.plural}")}


def load_part(place: str, folder: Path | None = None) -> Any:
    """The object at ``package.module:attribute`` or ``file.py:attribute`` (relative to the folder)."""
    where, _, attribute = place.rpartition(":")
    if where.endswith(".py"):
        module = _load_file(_source_file(where, folder))
    elif not where or where.startswith("."):
        raise InputError(f"{place!r} names no module; write package.module:name or path/to/file.py:name")
    else:
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name and where.startswith(error.name):
                raise InputError(f"there is no module {where!r} (named by {place!r}); is it installed?") from error
            raise
    if not hasattr(module, attribute):
        raise InputError(f"{where} has no {attribute!r}; {did_you_mean(attribute, _public(module))}")
    return getattr(module, attribute)


def part_identity(place: str, folder: Path | None = None) -> str:
    """What a cache key holds of a part: its name, and for a part in a loose file the file's content too."""
    where = place.rpartition(":")[0]
    return f"{place}@{file_digest(_source_file(where, folder))}" if where.endswith(".py") else place


def _source_file(where: str, folder: Path | None) -> Path:
    path = (folder or Path()) / where
    if not path.is_file():
        raise InputError(f"there is no file {path}; a part is named as file.py:name, relative to the study")
    return path


def _load_file(path: Path) -> Any:
    name = f"merkhet_local_{path.stem}_{file_digest(path)[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            reason = " ".join(str(error).split())
            raise InputError(f"{path} cannot be imported: {type(error).__name__}: {reason}") from error
    return sys.modules[name]


def _public(module: Any) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]
