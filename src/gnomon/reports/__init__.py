"""What a run looks like to its reader: the report, its tables and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.reports.data import ReportData

if TYPE_CHECKING:
    from gnomon.reports.exporting import report_charts, save_charts
    from gnomon.reports.html import render_html
    from gnomon.reports.tables import report_tables
    from gnomon.reports.terminal import score_table

__getattr__ = lazy_names(
    __name__,
    {
        "render_html": "gnomon.reports.html",
        "report_charts": "gnomon.reports.exporting",
        "report_tables": "gnomon.reports.tables",
        "save_charts": "gnomon.reports.exporting",
        "score_table": "gnomon.reports.terminal",
    },
)

__all__ = ["ReportData", "render_html", "report_charts", "report_tables", "save_charts", "score_table"]
