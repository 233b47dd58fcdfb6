"""Names of a room that are imported when they are first used, so that a list of parts costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that finds each name in the module that defines it."""

    def find(name: str) -> Any:
        if name in places:
            return getattr(importlib.import_module(places[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
