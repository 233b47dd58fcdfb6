"""Faster start of commands."""

from __future__ import annotations

import sys
from typing import Any


class _HidePandas:
    """Import finder that hides pandas."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse pandas, and leave every other module to other finders."""
        if name == "pandas":
            raise ImportError(name)


def skip_pandas() -> None:
    """Keep pyarrow from importing pandas, which takes 0.2 s: commands make no data frames.

    pyarrow looks for pandas when it first converts a list, and does without it if it is not there. A data frame that is
    asked for later still imports pandas.
    """
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    finder: Any = _HidePandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
