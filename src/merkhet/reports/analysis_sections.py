"""What the analyses of a run found, as sections of the report: any analysis, known to this code or not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from merkhet.reports import formatting as show
from merkhet.reports._chart_specs import described_chart
from merkhet.reports._chart_style import Figure, drawn
from merkhet.reports._page_budget import fitting

_MOST_ROWS = 500
_ROOM = 400_000
"""Bytes of a page that the tables of all analyses may take, about."""


def analysis_sections(analyses: Sequence[Mapping[str, Any]], baselines: Collection[str] = ()) -> list[dict[str, Any]]:
    """Titles, texts, tables and drawn figures of analyses.json, ready for the template."""
    sections = []
    room = _ROOM // max(1, sum(len(found.get("tables") or ()) for found in analyses))
    for place, found in enumerate(analyses):
        identity = f"analysis-{place}"
        sections.append(
            {
                "id": identity,
                "title": show.printable(found.get("title") or found.get("name") or "Analysis"),
                "explanation": show.printable(found.get("explanation") or ""),
                "sentences": [show.printable(text) for text in found.get("sentences") or ()],
                "tables": [_table(table, room) for table in found.get("tables") or ()],
                "figures": _figures(found.get("figures") or (), identity, baselines),
            }
        )
    return sections


def _figures(described: Sequence[Mapping[str, Any]], name: str, baselines: Collection[str]) -> list[Figure]:
    charts = (described_chart(figure, name, baselines) for figure in described)
    return [drawn(chart) for chart in charts if chart is not None]


def _table(table: Mapping[str, Any], room: int) -> dict[str, Any]:
    columns = [(show.printable(column["name"]), str(column.get("kind", "text"))) for column in table["columns"]]
    rows = table.get("rows") or ()
    shown = [
        [_cell(value, kind) for value, (_, kind) in zip(row, columns, strict=True)] for row in list(rows)[:_MOST_ROWS]
    ]
    shown = fitting(shown, room, least=20)
    return {
        "caption": show.printable(table.get("caption") or ""),
        "columns": [{"name": name, "number": kind != "text"} for name, kind in columns],
        "rows": shown,
        "aside": bool(table.get("aside")),
        "spaced": any(cell["interval"] for row in shown for cell in row),
        "left_out": len(rows) - len(shown),
    }


def _cell(value: Any, kind: str) -> dict[str, Any]:
    """A value or an estimate as it is read, with the number to sort by and what to say when pointed at."""
    found = value if isinstance(value, Mapping) else {"value": value}
    bare = found.get("value")
    if kind == "text":
        text = show.DASH if bare is None else show.printable(bare)
        return {"text": text, "interval": "", "sort": text, "tip": "", "number": False}
    number, n = show.finite(bare), found.get("n")
    low, high = show.finite(found.get("low")), show.finite(found.get("high"))
    return {
        "text": _number(number, kind),
        "interval": f"[{_number(low, kind)}, {_number(high, kind)}]" if low is not None and high is not None else "",
        "sort": "" if number is None else f"{number:.6g}",
        "tip": "" if n is None else f"n = {show.count(n)}",
        "number": True,
    }


def _number(value: float | None, kind: str) -> str:
    if kind == "count":
        return show.count(value)
    if kind == "points":
        return show.difference(value)
    if kind == "p":
        return show.probability(value)
    if kind == "correlation":
        return show.DASH if value is None else f"{value:.2f}".replace("-0.00", "0.00")
    return show.score(value, percent=kind == "share")
