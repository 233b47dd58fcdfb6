"""Registries of components (metrics, probes, suites, …), which are imported on first use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest


class Registry:
    """Components of one kind by name, each with its import reference and a one-line description.

    A component comes from merkhet itself, from entry points of another distribution (group ``merkhet.<plural>``),
    from :meth:`add`, or from a reference: ``package.module:attribute`` or ``path/to/file.py:attribute``.
    """

    def __init__(self, kind: str, parts: Mapping[str, tuple[str, str]], plural: str | None = None) -> None:
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self._builtin = dict(parts)
        self._added: dict[str, tuple[Any, str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._builtin, *self._added, *self._plugins()]))

    def __contains__(self, name: str) -> bool:
        return name in self._builtin or name in self._added or name in self._plugins()

    def add(self, name: str, part: Any, about: str = "") -> Any:
        """Register an object under a name and return the object."""
        if name in self:
            raise InputError(f"there is already a {self.kind} called {name!r}; choose another name")
        self._added[name] = (part, about)
        return part

    def remove(self, name: str) -> None:
        """Remove a component registered by :meth:`add`."""
        self._added.pop(name, None)

    def about(self, name: str) -> str:
        """Return the one-line description of a component."""
        if name in self._builtin:
            return self._builtin[name][1]
        if name in self._added:
            return self._added[name][1]
        return f"from {self._plugins()[name].value.partition(':')[0]}"

    def get(self, name: str, folder: Path | None = None) -> Any:
        """Load a component by its name or reference; file paths are relative to ``folder``.

        Raises:
            InputError: The name is unknown.
        """
        if name in self._added:
            return self._added[name][0]
        if name in self._builtin:
            return load_part(self._builtin[name][0])
        plugins = self._plugins()
        if name in plugins:
            return plugins[name].load()
        self.check(name)
        return load_part(name, folder)

    def check(self, name: str) -> None:
        """Raise InputError for an unknown name, without importing anything."""
        if name not in self and ":" not in name:
            raise InputError(f"there is no {self.kind} called {name!r}; {did_you_mean(name, self)}")

    def _plugins(self) -> dict[str, Any]:
        from importlib.metadata import entry_points  # Slow to import, and not needed for most names.

        return {point.name: point for point in entry_points(group=f"merkhet.{self.plural}")}


def load_part(reference: str, folder: Path | None = None) -> Any:
    """Import ``package.module:attribute`` or ``file.py:attribute``; file paths are relative to ``folder``."""
    source, _, attribute = reference.rpartition(":")
    if source.endswith(".py"):
        module = _load_file(_source_file(source, folder))
    elif not source or source.startswith("."):
        raise InputError(f"{reference!r} names no module; write package.module:name or path/to/file.py:name")
    else:
        try:
            module = importlib.import_module(source)
        except ModuleNotFoundError as error:
            if error.name and source.startswith(error.name):
                raise InputError(f"there is no module {source!r} (named by {reference!r}); is it installed?") from error
            raise
    if not hasattr(module, attribute):
        raise InputError(f"{source} has no {attribute!r}; {did_you_mean(attribute, _public_names(module))}")
    return getattr(module, attribute)


def part_identity(reference: str, folder: Path | None = None) -> str:
    """Return a component's id for cache keys: its reference, with a hash of the file for ``file.py:attribute``."""
    source = reference.rpartition(":")[0]
    return f"{reference}@{file_digest(_source_file(source, folder))}" if source.endswith(".py") else reference


def _source_file(name: str, folder: Path | None) -> Path:
    path = (folder or Path()) / name
    if not path.is_file():
        raise InputError(f"there is no file {path}; write file.py:name, relative to the study")
    return path


def _load_file(path: Path) -> Any:
    name = f"merkhet_local_{path.stem}_{file_digest(path)[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path} cannot be imported; name a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            reason = " ".join(str(error).split())
            raise InputError(
                f"{path} cannot be imported: {type(error).__name__}: {reason}; correct the file"
            ) from error
    return sys.modules[name]


def _public_names(module: Any) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]
