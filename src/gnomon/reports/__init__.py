"""What a run looks like to its reader: the table in the terminal and the self-contained HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnomon.reports.data import ReportData

if TYPE_CHECKING:
    from gnomon.reports.html import render_html
    from gnomon.reports.terminal import score_table

__all__ = ["ReportData", "render_html", "score_table"]

_PLACES = {"render_html": "gnomon.reports.html", "score_table": "gnomon.reports.terminal"}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        import importlib

        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
