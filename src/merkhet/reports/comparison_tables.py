"""Tables of paired comparisons: both scores, their difference, and the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports import formatting as fmt
from merkhet.reports._chart_style import truncate_middle
from merkhet.reports.table_model import ReportTable, TableCell, TableColumn, count_cell, score_cell, text_cell

_P_LABEL = "p (Holm)"
_MAX_GROUPS = 20
_MAX_PAGE_GROUPS = 300
_MAX_NAME = 48
_FOLD_WIDTH = 14
"""Model names in column heads are folded to this many characters."""
_GAP = 2
_MAX_WORD = 24
Comparison = Mapping[str, Any]


def pair_tables(comparisons: Sequence[Comparison]) -> list[ReportTable]:
    """Make one table for each pair of models: both scores on the shared questions and the tests, by task."""
    tables = []
    for index, (names, pairs) in enumerate(_by_pair(comparisons).items()):
        rows = [(text_cell(_score_label(pair)), *_paired_cells(pair), *_test_cells(pair, pairs)) for pair in pairs]
        heads = (TableColumn("task", number=False), *_pair_heads(names), TableColumn(_P_LABEL), *_test_heads(pairs))
        tables.append(ReportTable(f"pair{index}", fmt.printable(" against ".join(names)), heads, tuple(rows)))
    return tables


def group_tables(groups: Sequence[Comparison], column: str, limit: int = _MAX_GROUPS) -> list[ReportTable]:
    """Make one table for each pair of models and task: its groups in the given order, with q over all groups."""
    tables: list[ReportTable] = []
    for names, pairs in _by_pair(groups).items():
        for task in dict.fromkeys(map(_score_label, pairs)):
            task_groups = [group for group in pairs if _score_label(group) == task]
            rows = [
                (text_cell(group.get("group")), count_cell(group["n"]), *_group_cells(group))
                for group in task_groups[:limit]
            ]
            heads = (TableColumn(column, number=False), TableColumn("n"), *_pair_heads(names), TableColumn("q"))
            more = f"{len(task_groups) - limit:,} more are in what --json prints." if len(task_groups) > limit else ""
            title = fmt.printable(f"{' against '.join(names)} on {task}, by {column}")
            tables.append(ReportTable(f"groups{len(tables)}", title, heads, tuple(rows), more))
    return tables


def all_pairs_table(comparisons: Sequence[Comparison]) -> ReportTable:
    """Make one table of all pairs on all tasks; a single pair has the names of its models in the column heads."""
    model_pairs = list(_by_pair(comparisons))
    rows = [
        (
            text_cell(_score_label(pair)),
            *_model_cells(pair, model_pairs),
            *_paired_cells(pair),
            *_test_cells(pair, comparisons),
        )
        for pair in comparisons
    ]
    heads = (*_page_heads(["Score"], model_pairs), TableColumn(_P_LABEL), *_test_heads(comparisons))
    return ReportTable("paired", "Models in pairs, on the questions that both were asked.", heads, tuple(rows))


def all_groups_table(groups: Sequence[Comparison], column: str) -> ReportTable:
    """Make one table of all groups of all pairs, in the given order."""
    model_pairs = list(_by_pair(groups))
    several_scores = len(set(map(_score_label, groups))) > 1
    rows = [
        (
            text_cell(group.get("group")),
            *([text_cell(_score_label(group))] if several_scores else []),
            *_model_cells(group, model_pairs),
            *_group_cells(group),
            count_cell(group.get("n")),
            count_cell(group.get("facts")),
        )
        for group in groups[:_MAX_PAGE_GROUPS]
    ]
    heads = _page_heads([column, *(["Score"] if several_scores else [])], model_pairs)
    columns = (*heads, *(TableColumn(name) for name in ("q", "questions", "facts")))
    left_out = len(groups) - len(rows)
    more = f"{left_out:,} more are in what --json prints." if left_out else ""
    return ReportTable("groups", f"Models in pairs, by {column}.", columns, tuple(rows), more)


def split_tests(table: ReportTable) -> tuple[ReportTable, ReportTable | None]:
    """Split the table after p, because a page is too narrow for all tests.

    Returns:
        The table up to p, and a table with the other tests or None.
    """
    end = next(index for index, column in enumerate(table.columns) if column.label == _P_LABEL) + 1
    text_columns = [index for index, column in enumerate(table.columns) if not column.number]
    test_columns = [*text_columns, *range(end, len(table.columns))]
    if len(test_columns) == len(text_columns):
        return table, None
    scores = replace(table, columns=table.columns[:end], rows=tuple(row[:end] for row in table.rows))
    columns = tuple(table.columns[index] for index in test_columns)
    rows = tuple(tuple(row[index] for index in test_columns) for row in table.rows)
    return scores, ReportTable("tests", "The same pairs: what else was tested.", columns, rows)


def legend(comparisons: Sequence[Comparison]) -> list[str]:
    """Explain the columns that the tables of these comparisons have."""
    metrics = dict.fromkeys(
        fmt.metric_label(str(pair["metric"])) for pair in comparisons if not _higher_is_better(pair)
    )
    return [
        "scores: on the questions that both models could be asked, in percent where they are shares.",
        "difference: how far the first model is ahead, in points, with its 95% interval; facts are resampled.",
        *(f"{name}: less is better, and its difference is turned round: + is better." for name in metrics),
        f"{_P_LABEL}: permutation test that exchanges the models within facts, corrected over all rows after Holm; "
        f"below {SIGNIFICANCE_LEVEL} a difference is clear.",
        *(meaning for name, meaning in _MEANINGS.items() if _any_has(name, comparisons)),
    ]


def _higher_is_better(pair: Comparison) -> bool:
    return bool(pair.get("higher_is_better", True))


def _model_cells(pair: Comparison, model_pairs: Sequence[tuple[str, str]]) -> list[TableCell]:
    return [text_cell(pair["model"]), text_cell(pair["other"])] if len(model_pairs) > 1 else []


def _page_heads(labels: Sequence[str], model_pairs: Sequence[tuple[str, str]]) -> tuple[TableColumn, ...]:
    if len(model_pairs) == 1:
        return (*(TableColumn(name, number=False) for name in labels), *_pair_heads(model_pairs[0]))
    text_columns = (TableColumn(name, number=False) for name in (*labels, "Model", "against"))
    return (*text_columns, *(TableColumn(name) for name in ("score", "of the other", "difference")))


def _group_cells(group: Comparison) -> tuple[TableCell, ...]:
    score, other_score, difference, p = _paired_cells(group)
    return score, other_score, difference, p if group.get("q") is None else _p_cell(group["q"])


def _paired_cells(pair: Comparison) -> tuple[TableCell, TableCell, TableCell, TableCell]:

    percent = bool(pair.get("share", True))
    return (
        score_cell(pair.get("value"), percent=percent),
        score_cell(pair.get("other_value"), percent=percent),
        _difference_cell(pair),
        _p_cell(pair.get("p")),
    )


def _difference_cell(pair: Comparison) -> TableCell:
    """Format the difference with its interval, in points or, if the metric is no share, in its own unit."""
    value, low, high = (fmt.finite_or_none(pair.get(name)) for name in ("difference", "low", "high"))
    if pair.get("share", True):
        text, ends = fmt.difference(value), fmt.interval(low, high)
    else:
        text, ends = fmt.DASH if value is None else f"{value:+.3g}", fmt.interval(low, high, percent=False)
    return TableCell(text, value, low, high, interval=ends)


def _p_cell(value: Any) -> TableCell:

    return TableCell(fmt.p_value(value), fmt.finite_or_none(value))


def _test_cells(pair: Comparison, pairs: Sequence[Comparison]) -> tuple[TableCell, ...]:
    """Format the further tests of a pair that any of the pairs has."""
    return tuple(cell(pair) for name, (_, cell) in _TESTS.items() if _any_has(name, pairs))


def as_terminal_tables(table: ReportTable, width: int) -> list[Table]:
    """Render the table for a terminal; if it is wider than ``width``, split it after p."""
    columns = [
        (column.label, not column.number, [row[index].text for row in table.rows])
        for index, column in enumerate(table.columns)
    ]
    difference = next(index for index, column in enumerate(table.columns) if column.label == "difference")
    columns.insert(difference + 1, ("95% interval", False, [row[difference].interval for row in table.rows]))
    sizes = [
        _text_column_width(label, texts) if is_text else _number_column_width(label, texts)
        for label, is_text, texts in columns
    ]
    if sum(sizes) + _GAP * (len(sizes) - 1) <= width:
        return [_terminal_table(columns)]
    split = difference + 3
    gap = _GAP if sum(sizes[:split]) + _GAP * (split - 1) <= width else 1
    rest = [_terminal_table([columns[0], *columns[split:]])] if len(columns) > split else []
    return [_terminal_table(columns[:split], gap), *rest]


def _text_column_width(label: str, texts: Sequence[str]) -> int:
    """Return the minimum width of a text column, which is folded at words."""
    return max(min(_MAX_WORD, cell_len(word)) for text in (label, *texts) for word in text.split() or [""])


def _number_column_width(label: str, texts: Sequence[str]) -> int:
    """Return the minimum width of a number column: numbers are not folded, its head is folded at words."""
    return max(*(min(_FOLD_WIDTH, cell_len(word)) for word in label.split()), *map(cell_len, texts))


def _terminal_table(columns: Sequence[tuple[str, bool, Sequence[str]]], gap: int = _GAP) -> Table:
    terminal = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for label, is_text, texts in columns:
        if is_text:
            terminal.add_column(Text(label), overflow="fold")
        else:
            width = _number_column_width(label, texts)
            terminal.add_column(Text(label), justify="right", overflow="fold", min_width=width, max_width=width)
    for texts in zip(*(texts for _, _, texts in columns), strict=True):
        terminal.add_row(*(Text(text) for text in texts))
    return terminal


def _by_pair(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for pair in comparisons:
        by_pair.setdefault((str(pair["model"]), str(pair["other"])), []).append(pair)
    return by_pair


def _pair_heads(names: Sequence[str]) -> tuple[TableColumn, ...]:
    labels = [truncate_middle(fmt.printable(name), _MAX_NAME) for name in names]
    if labels[0] == labels[1]:
        labels = [f"{name} ({number})" for number, name in enumerate(labels, 1)]
    return TableColumn(labels[0]), TableColumn(labels[1]), TableColumn("difference")


def _test_heads(pairs: Sequence[Comparison]) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(label) for name, (label, _) in _TESTS.items() if _any_has(name, pairs))


def _any_has(name: str, pairs: Sequence[Comparison]) -> bool:
    return any(pair.get(name) is not None for pair in pairs)


def _score_label(pair: Comparison) -> str:
    return f"{pair['task']} {fmt.metric_label(str(pair['metric']))}"


def _ratio(value: Any) -> TableCell:
    if value == float("inf"):
        return TableCell("∞")
    number = fmt.finite_or_none(value)
    return TableCell(fmt.DASH if number is None else f"{number:.2f}" if number < 100 else f"{number:,.0f}", number)


def _number(value: Any) -> TableCell:
    number = fmt.finite_or_none(value)
    return TableCell(fmt.DASH if number is None else f"{number:+.2f}" if round(number, 2) else "0.00", number)


_TESTS: dict[str, tuple[str, Any]] = {
    "q": ("q", lambda pair: _p_cell(pair.get("q"))),
    "mcnemar": ("McNemar", lambda pair: _p_cell(pair.get("mcnemar"))),
    "effect": ("effect", lambda pair: _number(pair.get("effect"))),
    "odds": ("odds", lambda pair: _ratio(pair.get("odds"))),
    "detectable": (
        "detectable",
        lambda pair: score_cell(pair.get("detectable"), percent=bool(pair.get("share", True))),
    ),
    "n": ("questions", lambda pair: count_cell(pair.get("n"))),
    "facts": ("facts", lambda pair: count_cell(pair.get("facts"))),
}
"""Optional tests by key: column label, and a function from a pair to its cell."""
_MEANINGS = {
    "q": "q: the same test, corrected after Benjamini and Hochberg: of rows with q < 0.05, about 1 in 20 is by chance.",
    "mcnemar": "McNemar: p of a test that counts the questions that only one of the two got right; not corrected.",
    "effect": "effect: Cohen's d, the mean difference of facts over its standard deviation.",
    "odds": "odds: questions that only the first got right, for each that only the second did.",
    "detectable": "detectable: the smallest true difference that one test, not corrected, finds in 4 of 5 samples.",
}
