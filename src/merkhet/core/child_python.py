"""Command lines of Python processes that import no modules from the current folder, which may be somebody else's."""

from __future__ import annotations

import sys
from pathlib import Path

_LEAVE_OUT_FOLDER = "import sys; sys.path[:1] == [''] and sys.path.pop(0); "


def python_code(code: str) -> list[str]:
    """Return the command that runs code as ``python -u -c`` does, without the modules of the current folder."""
    return [sys.executable, "-u", "-c", _LEAVE_OUT_FOLDER + code]


def python_module(module: str) -> list[str]:
    """Return the command that runs a module as ``python -u -m`` does, without the modules of the current folder."""
    return python_code(f"from runpy import run_module; run_module({module!r}, run_name='__main__', alter_sys=True)")


def hidden_folders() -> list[str]:
    """Return the current folder, unless this process imports modules from it (``python -m``)."""
    folder = str(Path.cwd())
    return [] if "" in sys.path or folder in sys.path else [folder]
