"""Heat maps: groups of questions by models for one score, and by tasks for one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.core import text as fmt
from merkhet.reports._chart_style import NamedChart, join_sentences, sample_size_text, score_tooltip, short_labels
from merkhet.reports._plot_layout import BASELINE_SHIFT, MAX_NAME_WIDTH, SLANT, SMALL, names_at_left
from merkhet.reports._svg_marks import FONT_SIZE, INK, Bar, Label, Mark, extent, make_drawing
from merkhet.reports._text_width import fit_labels
from merkhet.reports.scoreboard import ScoreCell, ScoreColumn, Series, above_chance, cell_from_row, order_groups
from merkhet.reports.table_model import FEW_NOTE

_MAX_ROWS = 40
_MAX_LINES = 24
_BLUES = ("#cfe1f2", "#a8cee5", "#74b2d7", "#4592c6", "#206fb2", "#0a4a90")
"""Colours of scores from 0 to the maximum."""
_AGAINST_CHANCE = ("#b35806", "#f1b26e", "#f7f7f7", "#7fb3d8", "#08519c")
"""Colour-blind-safe colours of scores, from below chance (orange) to perfect (blue).

In greyscale, the two ends look alike, and only the numbers are distinct."""
_CHANCE_INK = "#a03c00"
_BORDER = "#d8d8de"
_FEW_FILL, _FEW_INK = "#ececef", "#66666b"
"""Colours of cells with too few questions, and of cells without a score."""
_ROW_HEIGHT = 21.0
_FEW_WIDTH = 68.0
"""Width of a cell that may hold a number of questions, in pixels."""
_LEGEND_STEPS, _LEGEND_STEP_WIDTH, _LEGEND_HEIGHT = 35, 6.0, 10.0
"""Number of steps in the colour legend, and width and height of a step in pixels."""


@dataclass(frozen=True)
class _Square:
    """A coloured cell of a heat map, with its number and tooltip."""

    row: int
    column: int
    text: str
    fill: str
    ink: str
    tooltip: str


def heat_chart(
    rows: list[dict[str, Any]],
    group: str,
    column: ScoreColumn,
    series: Sequence[Series],
    order: Sequence[str] = (),
) -> NamedChart | None:
    """Draw a heat map of one score: groups by models, with a column for chance.

    At most forty groups are drawn, those with the most questions, in the order of :func:`order_groups`. Cells of few
    questions are grey. Return None if fewer than two groups have scores.
    """
    scores: dict[str, dict[Series, ScoreCell]] = {}
    sizes: dict[str, int] = {}
    chances: dict[str, float] = {}
    lines = list(series)[:_MAX_LINES]
    for row in rows:
        if (row["task"], row["metric"]) != (column.task, column.metric):
            continue
        line = next((line for line in lines if line.covers(row)), None)
        if line is None:
            continue
        score = cell_from_row(row)
        name = fmt.printable(row[group])
        sizes[name] = max(sizes.get(name, 0), score.n)
        if score.chance is not None:
            chances.setdefault(name, score.chance)
        if score.value is not None:
            scores.setdefault(name, {}).setdefault(line, score)
    names = order_groups(_largest_groups(scores, sizes), order)
    if len(names) < 2:
        return None
    labels = list(short_labels(lines).values())
    read = [score.value or 0.0 for name in names for score in scores[name].values() if not score.few]
    top = 1.0 if column.percent else max(read, default=0.0)
    squares = [
        _model_square(name, line, scores[name].get(line), row, index, top, percent=column.percent)
        for row, name in enumerate(names)
        for index, line in enumerate(lines)
    ]
    chance_texts = {
        row: fmt.score(chances[name], percent=column.percent) for row, name in enumerate(names) if name in chances
    }
    has_few = any(score.few for name in names for score in scores[name].values())
    width = _FEW_WIDTH if has_few else 50.0 if len(labels) <= 6 else 42.0
    marks = _heat_map(names, [*labels, *(["chance"] if chance_texts else [])], squares, width, ("white", 1.5))
    marks += [_number_label(row, len(labels), text, _CHANCE_INK, width) for row, text in chance_texts.items()]
    unit = " in percent" if column.percent else ""
    caption = join_sentences(
        f"{column.label}{unit} by {group} and model, with chance",
        _truncation_note(scores, len(series)),
        _few_note(score for name in names for score in scores[name].values()),
    )
    return NamedChart(
        fmt.file_slug("models by", group, column.task, column.metric),
        join_sentences(caption, sample_size_text([sizes[name] for name in names], f"questions for each {group}")),
        make_drawing(marks),
        title=caption,
        description=f"Heat map: {caption} The numbers are in the tables below.",
    )


def _model_square(
    name: str, line: Series, score: ScoreCell | None, row: int, index: int, top: float, *, percent: bool
) -> _Square:
    if score is None or score.value is None:
        return _empty_square(f"{name}, {line.label}", row, index)
    tooltip = score_tooltip(score.value, score.low, score.high, n=score.n, chance=score.chance, percent=percent)
    return _Square(
        row,
        index,
        _cell_text(score, percent=percent),
        _FEW_FILL if score.few else _shade(_BLUES, score.value / top if top > 0 else 0.0),
        _FEW_INK if score.few else "white" if score.value > 0.62 * top else INK,
        f"{name}, {line.label}: {tooltip}",
    )


def _cell_text(score: ScoreCell, *, percent: bool = True) -> str:
    """Format the number of a cell; a score of few questions is followed by their number."""
    text = fmt.score(score.value, percent=percent)[:6]
    return f"{text} (n={score.n})" if score.few else text


def _empty_square(subject: str, row: int, index: int) -> _Square:
    return _Square(row, index, fmt.DASH, "white", _FEW_INK, f"{subject}: no score")


def _few_note(scores: Iterable[ScoreCell]) -> str:
    return FEW_NOTE if any(score.few for score in scores) else ""


def task_heat_charts(
    rows: Iterable[dict[str, Any]],
    group: str,
    columns: Sequence[ScoreColumn],
    series: Sequence[Series],
    order: Sequence[str] = (),
) -> list[NamedChart]:
    """Draw a heat map for each model: groups (such as domains) by tasks.

    A cell shows the score. Its colour shows (score - chance) / (1 - chance): white at chance, blue above, orange below;
    cells of few questions are grey. All models have the same rows and columns, in the same order. The list is empty if
    fewer than two groups or tasks have scores.
    """
    column_of_task: dict[str, ScoreColumn] = {}
    for column in columns:
        if column.percent:
            column_of_task.setdefault(column.task, column)
    cells_of_line: dict[Series, dict[tuple[str, ScoreColumn], ScoreCell]] = {}
    for row in rows:
        task_column = column_of_task.get(row["task"])
        line = next((line for line in series if line.covers(row)), None)
        if line is not None and task_column is not None and row["metric"] == task_column.metric:
            score = cell_from_row(row)
            if score.value is not None:
                cells_of_line.setdefault(line, {}).setdefault((fmt.printable(row[group]), task_column), score)
    groups = {name for cells in cells_of_line.values() for name, _ in cells}
    tasks = {task for cells in cells_of_line.values() for _, task in cells}
    if len(groups) < 2 or len(tasks) < 2:
        return []
    sizes: dict[str, int] = {}
    for cells in cells_of_line.values():
        for (name, _), score in cells.items():
            sizes[name] = sizes.get(name, 0) + score.n
    names = order_groups(_largest_groups(sizes, sizes), order)
    drawn_columns = [column for column in column_of_task.values() if column in tasks]
    note = _truncation_note(sizes)
    return [
        _task_heat(cells_of_line[line], line, group, names, drawn_columns, note)
        for line in series
        if line in cells_of_line
    ]


def _task_heat(
    cells: Mapping[tuple[str, ScoreColumn], ScoreCell],
    line: Series,
    group: str,
    names: Sequence[str],
    drawn_columns: Sequence[ScoreColumn],
    truncation_note: str,
) -> NamedChart:
    squares = [
        _task_square(line, name, column, cells.get((name, column)), row, index)
        for row, name in enumerate(names)
        for index, column in enumerate(drawn_columns)
    ]
    marks = _heat_map(names, [column.label for column in drawn_columns], squares, _FEW_WIDTH, (_BORDER, 1.0))
    marks += _colour_legend(extent(marks).bottom + 14)
    title = f"{line.label}: score in percent by {group} and task"
    caption = join_sentences(
        title,
        "Colours are relative to chance: (score − chance) / (1 − chance)",
        truncation_note,
        _few_note(cells.values()),
        sample_size_text([score.n for score in cells.values()], "questions per cell"),
    )
    description = "; ".join(square.tooltip for square in squares)
    return NamedChart(
        fmt.file_slug("tasks by", group, line.label),
        caption,
        make_drawing(marks),
        title=f"{title}.",
        description=f"Heat map. {description}.",
    )


def _task_square(
    line: Series, name: str, column: ScoreColumn, score: ScoreCell | None, row: int, index: int
) -> _Square:
    if score is None:
        return _empty_square(f"{line.label}, {name}, {column.label}", row, index)
    adjusted = _chance_adjusted(score)
    tooltip = score_tooltip(score.value, score.low, score.high, n=score.n, chance=score.chance)
    return _Square(
        row,
        index,
        _cell_text(score),
        _FEW_FILL if score.few else _shade(_AGAINST_CHANCE, (adjusted + 1) / 2),
        _FEW_INK if score.few else "white" if abs(adjusted) > 0.6 else INK,
        f"{line.label}, {name}, {column.label}: {tooltip}",
    )


def _chance_adjusted(score: ScoreCell) -> float:
    adjusted = above_chance(score.value, score.chance or 0.0)
    return max(-1.0, min(1.0, adjusted if adjusted is not None else 0.0))


def _largest_groups(groups: Iterable[str], sizes: Mapping[str, int]) -> list[str]:
    return sorted(groups, key=lambda name: (-sizes[name], name))[:_MAX_ROWS]


def _truncation_note(groups: Mapping[str, Any], lines: int = 0) -> str:
    note = f"The {_MAX_ROWS} groups with the most questions, of {len(groups)}" if len(groups) > _MAX_ROWS else ""
    if lines > _MAX_LINES:
        note = join_sentences(note, f"The first {_MAX_LINES} models of {lines}")
    return note


def _heat_map(
    names: Sequence[str],
    labels: Sequence[str],
    squares: Sequence[_Square],
    width: float,
    border: tuple[str, float],
) -> list[Mark]:
    """Draw the cells with their numbers, row names at the left and slanted column labels above.

    Args:
        width: Width of a cell in pixels.
        border: Colour and width of the lines between cells.
    """
    centres = [_ROW_HEIGHT * (row + 0.5) for row in range(len(names))]
    return [
        *names_at_left(names, centres),
        *(
            Label(width * (index + 0.5) - 4, -6, label, angle=SLANT)
            for index, label in enumerate(fit_labels(labels, FONT_SIZE, MAX_NAME_WIDTH))
        ),
        *(
            Bar(
                width * square.column,
                _ROW_HEIGHT * square.row,
                width,
                _ROW_HEIGHT,
                square.fill,
                square.tooltip,
                *border,
            )
            for square in squares
        ),
        *(_number_label(square.row, square.column, square.text, square.ink, width) for square in squares),
    ]


def _number_label(row: int, column: int, text: str, ink: str, width: float) -> Label:
    """Make the label with the number of a cell."""
    x, y = width * (column + 0.5), _ROW_HEIGHT * (row + 0.5) + BASELINE_SHIFT * SMALL
    return Label(x, y, text, "middle", SMALL, fill="" if ink == INK else ink, inert=True)


def _colour_legend(top: float) -> list[Mark]:
    """Draw the colour legend, from below chance to perfect, with chance in the middle."""
    # Each step overlaps the next one to avoid visible gaps.
    marks: list[Mark] = [
        Bar(
            _LEGEND_STEP_WIDTH * step,
            top,
            _LEGEND_STEP_WIDTH + 0.5 * (step < _LEGEND_STEPS - 1),
            _LEGEND_HEIGHT,
            _shade(_AGAINST_CHANCE, step / (_LEGEND_STEPS - 1)),
        )
        for step in range(_LEGEND_STEPS)
    ]
    baseline = top + _LEGEND_HEIGHT + 12
    width = _LEGEND_STEP_WIDTH * _LEGEND_STEPS
    labels = (("below chance", "start"), ("chance", "middle"), ("perfect", "end"))
    marks += [Label(width * index / 2, baseline, *label, SMALL) for index, label in enumerate(labels)]
    return marks


def _shade(colours: Sequence[str], share: float) -> str:
    """Interpolate between evenly spaced colours; ``share`` 0 is the first colour and 1 the last."""
    position = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    first = min(int(position), len(colours) - 2)
    pairs = zip(_channels(colours[first]), _channels(colours[first + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (position - first)):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
