"""Report sections for the results of any analysis."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from merkhet.reports import formatting as fmt
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._chart_style import Figure, draw_figure
from merkhet.reports._page_budget import take_fitting

_MAX_ROWS = 500
_TABLES_BUDGET = 400_000
"""Approximate bytes that the tables of all analyses may take in a page."""


def analysis_sections(analyses: Sequence[Mapping[str, Any]], baselines: Collection[str] = ()) -> list[dict[str, Any]]:
    """Turn the content of analyses.json into titles, texts, tables and drawn figures for the template."""
    sections = []
    budget = _TABLES_BUDGET // max(1, sum(len(analysis.get("tables") or ()) for analysis in analyses))
    for index, analysis in enumerate(analyses):
        section_id = f"analysis-{index}"
        sections.append(
            {
                "id": section_id,
                "title": fmt.printable(analysis.get("title") or analysis.get("name") or "Analysis"),
                "explanation": fmt.printable(analysis.get("explanation") or ""),
                "sentences": [fmt.printable(text) for text in analysis.get("sentences") or ()],
                "tables": [_table(table, budget) for table in analysis.get("tables") or ()],
                "figures": _figures(analysis.get("figures") or (), section_id, baselines),
            }
        )
    return sections


def _figures(specs: Sequence[Mapping[str, Any]], name: str, baselines: Collection[str]) -> list[Figure]:
    charts = (chart_from_spec(figure, name, baselines) for figure in specs)
    return [draw_figure(chart) for chart in charts if chart is not None]


def _table(spec: Mapping[str, Any], budget: int) -> dict[str, Any]:
    columns = [(fmt.printable(column["name"]), str(column.get("kind", "text"))) for column in spec["columns"]]
    rows = spec.get("rows") or ()
    cells = [
        [_cell(value, kind) for value, (_, kind) in zip(row, columns, strict=True)] for row in list(rows)[:_MAX_ROWS]
    ]
    cells = take_fitting(cells, budget, minimum=20)
    return {
        "caption": fmt.printable(spec.get("caption") or ""),
        "columns": [{"name": name, "number": kind != "text"} for name, kind in columns],
        "rows": cells,
        "aside": bool(spec.get("aside")),
        "spaced": any(cell["interval"] for row in cells for cell in row),
        "left_out": len(rows) - len(cells),
    }


def _cell(value: Any, kind: str) -> dict[str, Any]:
    """Format a plain value or an estimate, with its sort key and tooltip."""
    estimate = value if isinstance(value, Mapping) else {"value": value}
    content = estimate.get("value")
    if kind == "text":
        text = fmt.DASH if content is None else fmt.printable(content)
        return {"text": text, "interval": "", "sort": text, "tip": "", "number": False}
    number, n = fmt.finite_or_none(content), estimate.get("n")
    low, high = fmt.finite_or_none(estimate.get("low")), fmt.finite_or_none(estimate.get("high"))
    return {
        "text": _number(number, kind),
        "interval": f"[{_number(low, kind)}, {_number(high, kind)}]" if low is not None and high is not None else "",
        "sort": "" if number is None else f"{number:.6g}",
        "tip": "" if n is None else f"n = {fmt.count(n)}",
        "number": True,
    }


def _number(value: float | None, kind: str) -> str:
    if kind == "count":
        return fmt.count(value)
    if kind == "points":
        return fmt.difference(value)
    if kind == "p":
        return fmt.p_value(value)
    if kind == "correlation":
        return fmt.DASH if value is None else f"{value:.2f}".replace("-0.00", "0.00")
    return fmt.score(value, percent=kind == "share")
