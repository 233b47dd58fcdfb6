"""Registries of components (metrics, probes, suites, …), which are imported on first use."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest
from merkhet.core.ids import digest


@dataclass(frozen=True)
class PartType:
    """What a component of one kind must be. Foreign components are checked before they are called."""

    description: str
    """Noun phrase for error messages: ``a function that asks a model``."""
    arguments: tuple[int, ...] = ()
    """Numbers of positional arguments that a component may be called with; empty if it is not a function."""
    is_instance: Callable[[Any], bool] = lambda part: False
    """Predicate of components that are objects and not functions."""

    def accepts(self, part: Any) -> bool:
        """Return whether an object can be a component of this kind; functions are not called."""
        if self.is_instance(part):
            return True
        if not self.arguments or not callable(part):
            return False
        try:
            signature = inspect.signature(part)
        except (TypeError, ValueError):  # Some functions of extension modules have no signature.
            return True
        return any(_binds(signature, count) for count in self.arguments)


def _binds(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


class Registry:
    """Components of one kind by name, each with its import reference and a one-line description.

    A component comes from merkhet itself, from entry points of another distribution (group ``merkhet.<plural>``),
    from :meth:`add`, or from a reference: ``package.module:attribute`` or ``path/to/file.py:attribute``.
    """

    def __init__(
        self,
        kind: str,
        parts: Mapping[str, tuple[str, str]],
        plural: str | None = None,
        part_type: PartType | None = None,
    ) -> None:
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self.part_type = part_type
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
            InputError: The name is unknown, or the component is not of this kind.
        """
        if name in self._added:
            return self._added[name][0]
        if name in self._builtin:
            return load_part(self._builtin[name][0])
        self.check(name)
        plugins = self._plugins()
        part = plugins[name].load() if name in plugins else load_part(name, folder)
        self._check_type(name, part)
        return part

    def check(self, name: str) -> None:
        """Raise InputError for an unknown name, without importing anything."""
        if name in self:
            return
        if ":" not in name:
            raise InputError(f"there is no {self.kind} called {name!r}; {did_you_mean(name, self)}")
        source = name.rpartition(":")[0]
        if not source.endswith(".py") and _is_standard(source):
            raise self._standard_error(name)

    def foreign_reference(self, name: str) -> str | None:
        """Return the reference of code that is not merkhet's; None for other names. Nothing is imported."""
        if name in self._builtin or name in self._added:
            return None
        plugins = self._plugins()
        if name in plugins:
            return str(plugins[name].value)
        return name if ":" in name else None

    def is_plugin(self, name: str) -> bool:
        """Return whether a name is that of an entry point of another distribution."""
        return name not in self._builtin and name not in self._added and name in self._plugins()

    def is_available(self, name: str) -> bool:
        """Return whether a component can be loaded without importing foreign code.

        It is merkhet's, was added in this process, or is an entry point whose module this process has imported.
        """
        if self.is_plugin(name):
            return str(self._plugins()[name].value).partition(":")[0] in sys.modules
        return name in self

    def _check_type(self, name: str, part: Any) -> None:
        """Raise InputError unless a foreign component is of this kind; the component is not called."""
        if _is_standard(_defining_module(part)):
            raise self._standard_error(name)
        if self.part_type is None or self.part_type.accepts(part):
            return
        is_function = self.part_type.arguments and callable(part)
        problem = "takes other arguments" if is_function else f"is of the type {type(part).__name__}"
        raise InputError(f"{name} {problem}; a {self.kind} must be {self.part_type.description}")

    def _standard_error(self, name: str) -> InputError:
        return InputError(
            f"{name!r} is not a {self.kind}: it belongs to Python's standard library; "
            f"write the {self.kind} in a file and name it as file.py:name"
        )

    def _plugins(self) -> dict[str, Any]:
        from importlib.metadata import entry_points  # Slow to import, and not needed for most names.

        return {point.name: point for point in entry_points(group=f"merkhet.{self.plural}")}


def load_part(reference: str, folder: Path | None = None) -> Any:
    """Import ``package.module:attribute`` or ``file.py:attribute``; file paths are relative to ``folder``."""
    source, _, attribute = reference.rpartition(":")
    if source.endswith(".py"):
        module = _load_file(source_file(source, folder))
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


def code_digest(reference: str, folder: Path | None = None) -> str:
    """Hash the code files that loading a reference executes, without importing them.

    For a module, these are its file and those of its packages; modules that they import are not included.

    Raises:
        InputError: The file or module does not exist.
    """
    source = reference.rpartition(":")[0]
    if source.endswith(".py"):
        return file_digest(source_file(source, folder))
    files: list[Path] = []
    path = None
    importlib.invalidate_caches()
    names = source.split(".")
    for depth in range(1, len(names) + 1):
        spec = _find_spec(".".join(names[:depth]), path)
        if spec is None or (depth < len(names) and spec.submodule_search_locations is None):
            raise InputError(f"there is no module {source!r} (named by {reference!r}); is it installed?")
        path = spec.submodule_search_locations
        files += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return digest([file_digest(file) for file in files if file.is_file()])


def _find_spec(name: str, path: Any) -> Any:
    """Find a module without importing its packages, as :func:`importlib.util.find_spec` would."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is not None:
        return spec
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except (AttributeError, ImportError):
            continue
        if spec is not None:
            return spec
    return None


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _defining_module(part: Any) -> str:
    """Return the module of a function or of an object's class; wrappers and partial functions are unwrapped."""
    while isinstance(part, functools.partial):
        part = part.func
    module = getattr(inspect.unwrap(part) if callable(part) else type(part), "__module__", None)
    return module if isinstance(module, str) and not isinstance(part, _PLAIN_TYPES) else ""


_PLAIN_TYPES = (str, bytes, int, float, complex, list, tuple, dict, set, frozenset, type(None))
"""Types of values that the check of the type describes."""


def part_identity(reference: str, folder: Path | None = None) -> str:
    """Return a component's id for cache keys: its reference, with a hash of the file for ``file.py:attribute``."""
    source = reference.rpartition(":")[0]
    return f"{reference}@{file_digest(source_file(source, folder))}" if source.endswith(".py") else reference


def source_file(name: str, folder: Path | None) -> Path:
    """Return the path of the file in ``file.py:name``; raise InputError if there is none."""
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
