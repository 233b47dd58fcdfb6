"""What a run looks like to its reader: the table in the terminal and the self-contained HTML report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.reports.data import ReportData

if TYPE_CHECKING:
    from gnomon.reports.html import render_html
    from gnomon.reports.terminal import score_table

__getattr__ = lazy_names(__name__, {"render_html": "gnomon.reports.html", "score_table": "gnomon.reports.terminal"})

__all__ = ["ReportData", "render_html", "score_table"]
