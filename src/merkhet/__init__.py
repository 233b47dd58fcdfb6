"""Measurement of what a language model knows.

``run = merkhet.run("quickstart", models=["minilm-mlm"], out="runs/first")`` asks a model, scores its answers and writes
a report. ``run.scores.to_pandas()`` returns the table of scores. Public names are imported when they are first used.
"""

from __future__ import annotations

from merkhet.core.version import __version__

TYPE_CHECKING = False  # To import typing would delay the handlers of the command line.
if TYPE_CHECKING:
    from typing import Any

    from merkhet.api import build, run
    from merkhet.core.errors import InputError, MerkhetError
    from merkhet.engine.run_folder import Run, open_run
    from merkhet.knowledge.store import KnowledgeBase
    from merkhet.models.loading import load_model

_MODULES = {
    "MerkhetError": "merkhet.core.errors",
    "InputError": "merkhet.core.errors",
    "KnowledgeBase": "merkhet.knowledge.store",
    "Run": "merkhet.engine.run_folder",
    "build": "merkhet.api",
    "load_model": "merkhet.models.loading",
    "open_run": "merkhet.engine.run_folder",
    "run": "merkhet.api",
}
"""Module that defines each public name, imported when the name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)


__all__ = [
    "InputError",
    "KnowledgeBase",
    "MerkhetError",
    "Run",
    "__version__",
    "build",
    "load_model",
    "open_run",
    "run",
]
