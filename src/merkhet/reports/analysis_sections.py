"""Report sections with the results of analyses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.core import text as fmt
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._chart_style import Figure, draw_figure
from merkhet.reports.table_model import ReportTable
from merkhet.reports.table_writers import as_page_table
from merkhet.reports.tables import analysis_tables

_MAX_ROWS = 500


@dataclass(frozen=True)
class AnalysisSection:
    """The results of an analysis as sentences, tables and drawn figures."""

    id: str
    title: str
    explanation: str
    sentences: Sequence[str]
    tables: Sequence[ReportTable]
    folded: Sequence[bool]
    """Whether the page shows a table collapsed, for each table in ``tables``."""
    figures: Sequence[Figure]


def analysis_sections(analyses: Sequence[Mapping[str, Any]], baselines: Collection[str] = ()) -> list[AnalysisSection]:
    """Make a section from each analysis in analyses.json; ``baselines`` are names of models."""
    return [
        AnalysisSection(
            id=(section_id := f"analysis-{index}"),
            title=fmt.printable(analysis.get("title") or analysis.get("name") or "Analysis"),
            explanation=fmt.printable(analysis.get("explanation") or ""),
            sentences=[fmt.printable(text) for text in analysis.get("sentences") or ()],
            tables=analysis_tables(analysis),
            folded=[bool(spec.get("aside")) for spec in analysis.get("tables") or ()],
            figures=_figures(analysis.get("figures") or (), section_id, baselines),
        )
        for index, analysis in enumerate(analyses)
    ]


def section_view(section: AnalysisSection, budget: int, rest: str) -> dict[str, Any]:
    """Render the texts and tables of a section for the page template.

    Args:
        budget: Maximum bytes of the rows of a table.
        rest: End of the note on omitted rows: what they are and where to find them.
    """
    tables = [
        {
            "title": table.title,
            "note": table.note,
            "folded": folded,
            "table": as_page_table(
                table.first_rows(_MAX_ROWS),
                label=table.title or section.title,
                caption=not folded,
                whole_texts=True,
                budget=budget,
                minimum=20,
                rest=rest,
            ),
        }
        for table, folded in zip(section.tables, section.folded, strict=True)
    ]
    texts = {"id": section.id, "title": section.title, "explanation": section.explanation}
    return {**texts, "sentences": section.sentences, "tables": tables, "figures": (), "undrawn": 0}


def _figures(specs: Sequence[Mapping[str, Any]], name: str, baselines: Collection[str]) -> list[Figure]:
    charts = (chart_from_spec(figure, name, baselines) for figure in specs)
    return [draw_figure(chart) for chart in charts if chart is not None]
