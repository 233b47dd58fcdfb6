"""Charts of scores and ranks: one chart per score, one of all scores, and ranks by task."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from merkhet.core import text as fmt
from merkhet.reports import _plot_layout as layout
from merkhet.reports._answer_outcomes import UNUSABLE, Outcomes
from merkhet.reports._axis_scales import Axis, number_labels, percent_labels, value_axis
from merkhet.reports._chart_style import (
    INTERVALS,
    NamedChart,
    join_sentences,
    sample_size_text,
    score_tooltip,
    short_labels,
)
from merkhet.reports._labels import shorten_labels
from merkhet.reports._svg_marks import FONT_SIZE, INK, PADDING, Bar, Drawing, Label, Mark, Strokes, extent, make_drawing
from merkhet.reports._text_width import text_width
from merkhet.reports.scoreboard import Scoreboard, ScoreCell, ScoreColumn, Series

RANK_SHADES = ("#08306b", "#1c5a9c", "#3f85bf", "#74abd6", "#9bc2e1", "#c5daec", "#e9f0f7")
"""Colours of rank bins from dark to light, which stay distinct in greyscale."""
_CHANCE_NOTE = "the orange mark is chance"
_BAR_WIDTH, _THIN_BAR_WIDTH, _GROUP_GAP, _MAX_ROW_WIDTH, _MIN_ROW_WIDTH = 17, 9, 22, 620, 180
"""Width of a bar, of a bar among many, of the gap between groups, and maximum and minimum width of a row of groups, in
pixels."""
_MAX_LABEL_WIDTH = 110
"""Maximum width that the label of a group adds to the group, in pixels."""
_MAX_WIDE_BARS = 6
_HEIGHT = 210
_MAX_TITLE = 60
"""Maximum characters of an axis title."""


def score_charts(board: Scoreboard, colours: dict[Series, str]) -> list[NamedChart]:
    """Make a bar chart for each headline score: a bar with interval and chance level for each model."""
    scored_columns = [column for column in board.columns if _cells(board, column)]
    shares = [score for column in scored_columns if column.percent for _, score in _cells(board, column)]
    ends = [end for score in shares for end in (score.value, score.low, score.high, score.chance)]
    plotted = [end for end in ends if end is not None]
    top = next((limit for limit in (0.1, 0.25, 0.5, 1.0) if max(plotted, default=1.0) <= limit), 1.0)
    low = math.floor(min([0.0, *plotted]) * 10) / 10
    names = short_labels(board.series)
    titles = shorten_labels((column.label for column in board.columns), _MAX_TITLE)
    charts = []
    for column in scored_columns:
        bars = _score_bars(board, column, names, colours)
        title = titles[column.label]
        if column.percent:
            axis = value_axis(low, top, percent_labels, title=title, nice=False)
        else:
            plotted_here = [0.0, *(end for bar in bars for end in (bar.low, bar.high, bar.chance) if end is not None)]
            axis = value_axis(min(plotted_here), max(plotted_here), number_labels, title=title)
        charts.append(
            NamedChart(
                fmt.file_slug("scores", column.task, column.metric),
                _caption(f"{column.label} by model", board, [column]),
                _score_panel(list(names.values()), bars, axis),
                title=column.label,
                description=f"Bar chart of {column.label}. {'; '.join(bar.tooltip for bar in bars)}.",
            )
        )
    return charts


def _score_panel(names: Sequence[str], bars: Sequence[layout.Point], axis: Axis) -> Drawing:
    """Draw a row for each name with its bar; a dash marks a model without a score."""

    def build(width: float) -> list[Mark]:
        marks, x, centres = layout.rows_frame(names, axis, width)
        height = 0.62 * layout.ROW
        centre_of = dict(zip(names, centres, strict=True))
        rows = [(bar, centre_of[bar.line]) for bar in bars]
        empty = centre_of.keys() - {bar.line for bar in bars}
        chances = tuple((x(bar.chance), y - 10, x(bar.chance), y + 10) for bar, y in rows if bar.chance is not None)
        return [
            *marks,
            *(
                Label(x(0) + 5, y + layout.BASELINE_SHIFT * FONT_SIZE, fmt.DASH, fill=layout.NOT_ASKED)
                for name, y in centre_of.items()
                if name in empty
            ),
            *(
                Bar(min(x(0), x(bar.value)), y - height / 2, abs(x(bar.value) - x(0)), height, bar.fill, bar.tooltip)
                for bar, y in rows
            ),
            *layout.whiskers(((x(bar.low), y, x(bar.high), y) for bar, y in rows if bar.low < bar.high), caps=7),
            *([Strokes(chances, layout.VERMILION, 2.4)] if chances else []),
        ]

    return layout.fit_panel(build)


def grouped_chart(board: Scoreboard, colours: dict[Series, str], baselines: Collection[str] = ()) -> NamedChart | None:
    """Draw all headline scores that are shares in one chart, with a bar group per score and a bar per model.

    Return None if no headline score is a share with values.
    """
    columns = [column for column in board.columns if column.percent and _cells(board, column)]
    series = list(board.series)
    if not columns:
        return None
    names = short_labels(series)
    bar_width = _BAR_WIDTH if len(series) <= _MAX_WIDE_BARS else _THIN_BAR_WIDTH
    words = (word for column in columns for word in column.label.split(" "))
    group_width = max(
        len(series) * bar_width + _GROUP_GAP,
        min(_MAX_LABEL_WIDTH, max(text_width(word, FONT_SIZE) + 10 for word in words)),
    )
    rows_needed = math.ceil(len(columns) / max(1, int(_MAX_ROW_WIDTH // group_width)))
    in_a_row = math.ceil(len(columns) / rows_needed)
    bars_of = {column: _score_bars(board, column, names, colours, baselines) for column in columns}
    ends = [end for bars in bars_of.values() for bar in bars for end in (bar.low, bar.high, bar.chance)]
    plotted = [end for end in ends if end is not None]
    axis = value_axis(min(0.0, *plotted), max(0.1, *plotted), percent_labels, title="score")
    marks: list[Mark] = []
    for start in range(0, len(columns), in_a_row):
        row = columns[start : start + in_a_row]
        marks += layout.bar_groups(
            [bar for column in row for bar in bars_of[column]],
            axis,
            {column: column.label for column in row},
            {names[line]: index for index, line in enumerate(series)},
            width=max(_MIN_ROW_WIDTH, len(row) * group_width),
            height=_HEIGHT,
            bar_width=bar_width,
            outline=0.7,
            top=extent(marks).bottom + 18 if marks else 0.0,
        )
    keys = [layout.LegendEntry(names[line], colours[line], stroke=INK) for line in series]
    marks += layout.legend_below(marks, keys, width=layout.PANEL - 2 * PADDING)
    undrawn = [column.label for column in board.columns if column not in columns]
    caption = _caption("Scores by task and model", board, columns)
    if len(series) > 2:
        caption = join_sentences(caption, "Bars are in the order of the legend")
    if any((line, column) not in board.cells for line in series for column in columns):
        caption = join_sentences(caption, "A dash marks a missing score")
    if undrawn:
        caption = join_sentences(caption, f"Not drawn, because it is not a share or has no value: {', '.join(undrawn)}")
    description = "; ".join(f"{column.label}, {bar.tooltip}" for column, bars in bars_of.items() for bar in bars)
    return NamedChart("scores", caption, make_drawing(marks), description=f"Bar chart: {description}.")


def _cells(board: Scoreboard, column: ScoreColumn) -> list[tuple[Series, ScoreCell]]:
    """Return the scoreboard lines that have a value in the column, with their scores."""
    cells = ((line, board.cells.get((line, column))) for line in board.series)
    return [(line, score) for line, score in cells if score is not None and score.value is not None]


def _score_bars(
    board: Scoreboard,
    column: ScoreColumn,
    names: Mapping[Series, str],
    colours: Mapping[Series, str],
    dashed: Collection[str] = (),
) -> list[layout.Point]:
    """Make a bar for each scoreboard line with a value in the column; models in ``dashed`` get dashed outlines."""
    return [
        layout.Point(
            column,
            names[line],
            value := score.value or 0.0,
            value if score.low is None else score.low,
            value if score.high is None else score.high,
            f"{line.label}: "
            + score_tooltip(score.value, score.low, score.high, n=score.n, chance=score.chance, percent=column.percent),
            colours[line],
            score.chance,
            (3, 2) if line.model in dashed else (),
        )
        for line, score in _cells(board, column)
    ]


def _caption(subject: str, board: Scoreboard, columns: Sequence[ScoreColumn]) -> str:
    cells = [score for column in columns for _, score in _cells(board, column)]
    parts = [
        sample_size_text([score.n for score in cells], "questions" if len(columns) == 1 else "questions per score")
    ]
    if any(score.low is not None for score in cells):
        parts.append(f"thin lines are {INTERVALS}")
    if any(score.chance is not None for score in cells):
        parts.append(_CHANCE_NOTE)
    note = "; ".join(part for part in parts if part)
    return join_sentences(subject, note[:1].upper() + note[1:] if not note.startswith("n =") else note)


def rank_charts(outcomes: Outcomes) -> list[NamedChart]:
    """Make a stacked bar chart for each task: shares of each model's questions by rank of the best right answer."""
    charts = []
    names = short_labels(outcomes.series)
    usable = (outcomes.verdict != UNUSABLE) & ~np.isnan(outcomes.rank)
    for task, name in enumerate(outcomes.tasks):
        in_task = usable & (outcomes.task == task) & (outcomes.line >= 0)
        if not in_task.any():
            continue
        limit = max(int(outcomes.choices[outcomes.question[in_task]].max()), math.ceil(outcomes.rank[in_task].max()))
        edges, labels = rank_bins(limit)
        shades = _shades(len(labels))
        rows: dict[str, list[layout.BarSegment]] = {}
        sizes = []
        for index, line in enumerate(outcomes.series):
            ranks = outcomes.rank[in_task & (outcomes.line == index)]
            if not len(ranks):
                continue
            sizes.append(len(ranks))
            shares = np.bincount(np.searchsorted(edges, ranks, side="left"), minlength=len(labels)) / len(ranks)
            rows[names[line]] = [
                layout.BarSegment(
                    float(share), shade, f"{line.label}, rank {label}: {fmt.score(share)}% of {len(ranks):,}"
                )
                for label, share, shade in zip(labels, shares.tolist(), shades, strict=True)
            ]
        axis = value_axis(0.0, 1.0, percent_labels, title="share of questions")
        keys = [layout.LegendEntry(label, shade) for label, shade in zip(labels, shades, strict=True)]
        description = "; ".join(f"{line} {fmt.score(parts[0].size)}%" for line, parts in rows.items())
        title = fmt.printable(name)
        charts.append(
            NamedChart(
                fmt.file_slug("ranks", name),
                join_sentences(
                    f"{title}: rank of the best right answer",
                    "Tied candidates have their mean rank",
                    sample_size_text(sizes),
                ),
                layout.stacked_rows(rows, axis, keys, title="rank"),
                title=title,
                description=f"Rank of the best right answer, {name}. At rank 1: {description}.",
            )
        )
    return charts


def _shades(count: int) -> list[str]:
    """Return ``count`` colours from dark to light, spread over ``RANK_SHADES``."""
    last = min(len(RANK_SHADES), max(count, len(RANK_SHADES) - 1)) - 1
    return [RANK_SHADES[round(index * last / max(1, count - 1))] for index in range(count)]


def rank_bins(limit: int) -> tuple[list[float], list[str]]:
    """Choose bins for the ranks 1 to ``limit``: single ranks up to 5 candidates, else bins of growing width.

    Returns:
        The upper edges of all bins except the last, and the labels of all bins.
    """
    if limit <= 5:
        ends = list(range(1, max(limit, 2) + 1))
    else:
        ends = [end for end in (1, 2, 5, 10, 100, 1000) if end < limit]
        ends.append(limit)
    starts = [1, *(end + 1 for end in ends[:-1])]
    labels = [f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in zip(starts, ends, strict=True)]
    return [float(end) for end in ends[:-1]], labels
