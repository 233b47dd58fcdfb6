"""Tables of paired comparisons: the scores of both models, how far apart they are, and the tests behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports import formatting as show
from merkhet.reports._chart_style import cut
from merkhet.reports.table_model import ReportTable, TableCell, TableColumn, counts, measure, words

CHANCE = "p (Holm)"
MOST_GROUPS = 20
_MOST_ON_A_PAGE = 300
_NAME = 48
_FOLDED = 14
"""Names of models that stand over a column are folded to so many letters."""
_GAP = 2
_LONGEST = 24
Compared = Mapping[str, Any]


def pair_tables(comparisons: Sequence[Compared]) -> list[ReportTable]:
    """A table for each pair of models: its tasks, the scores of both on the questions they share, and the tests."""
    tables = []
    for place, (names, own) in enumerate(_by_pair(comparisons).items()):
        label = [_column(one) for one in own]
        rows = [(words(text), *paired_cells(one), *test_cells(one, own)) for text, one in zip(label, own, strict=True)]
        heads = (TableColumn("task", number=False), *_heads(names), TableColumn(CHANCE), *_test_heads(own))
        tables.append(ReportTable(f"pair{place}", show.printable(" against ".join(names)), heads, tuple(rows)))
    return tables


def group_tables(groups: Sequence[Compared], column: str, most: int = MOST_GROUPS) -> list[ReportTable]:
    """A table for each pair of models and task: its groups, in the order given, with q, corrected over all groups."""
    tables: list[ReportTable] = []
    for names, pair in _by_pair(groups).items():
        for task in dict.fromkeys(map(_column, pair)):
            own = [one for one in pair if _column(one) == task]
            rows = [(words(one.get("group")), counts(one["n"]), *_group_cells(one)) for one in own[:most]]
            heads = (TableColumn(column, number=False), TableColumn("n"), *_heads(names), TableColumn("q"))
            more = f"{len(own) - most:,} more are in what --json prints." if len(own) > most else ""
            title = show.printable(f"{' against '.join(names)} on {task}, by {column}")
            tables.append(ReportTable(f"groups{len(tables)}", title, heads, tuple(rows), more))
    return tables


def all_pairs_table(comparisons: Sequence[Compared]) -> ReportTable:
    """All pairs on all tasks in one table; the names of the models stand over their scores where there is one pair."""
    pairs = list(_by_pair(comparisons))
    rows = [
        (words(_column(one)), *_names(one, pairs), *paired_cells(one), *test_cells(one, comparisons))
        for one in comparisons
    ]
    heads = (*_all_heads(["Score"], pairs), TableColumn(CHANCE), *_test_heads(comparisons))
    return ReportTable("paired", "Models in pairs, on the questions that both were asked.", heads, tuple(rows))


def all_groups_table(groups: Sequence[Compared], column: str) -> ReportTable:
    """All groups of all pairs in one table, in the order given."""
    pairs = list(_by_pair(groups))
    several = len(set(map(_column, groups))) > 1
    rows = [
        (
            words(one.get("group")),
            *([words(_column(one))] if several else []),
            *_names(one, pairs),
            *_group_cells(one),
            counts(one.get("n")),
            counts(one.get("facts")),
        )
        for one in groups[:_MOST_ON_A_PAGE]
    ]
    heads = _all_heads([column, *(["Score"] if several else [])], pairs)
    columns = (*heads, *(TableColumn(name) for name in ("q", "questions", "facts")))
    left = len(groups) - len(rows)
    more = f"{left:,} more are in what --json prints." if left else ""
    return ReportTable("groups", f"Models in pairs, by {column}.", columns, tuple(rows), more)


def split_tests(table: ReportTable) -> tuple[ReportTable, ReportTable | None]:
    """The table as far as p, and what else was tested in one of its own: a page is not wide enough for both."""
    ends = next(place for place, column in enumerate(table.columns) if column.label == CHANCE) + 1
    named = [place for place, column in enumerate(table.columns) if not column.number]
    rest = [*named, *range(ends, len(table.columns))]
    if len(rest) == len(named):
        return table, None
    first = replace(table, columns=table.columns[:ends], rows=tuple(row[:ends] for row in table.rows))
    columns = tuple(table.columns[place] for place in rest)
    rows = tuple(tuple(row[place] for place in rest) for row in table.rows)
    return first, ReportTable("tests", "The same pairs: what else was tested.", columns, rows)


def legend(comparisons: Sequence[Compared]) -> list[str]:
    """What the columns mean, of those that tables of these comparisons have."""
    metrics = dict.fromkeys(show.metric_label(str(one["metric"])) for one in comparisons if not _more_is_better(one))
    return [
        "scores: on the questions that both models could be asked, in percent where they are shares.",
        "difference: how far the first model is ahead, in points, with its 95% interval; facts are resampled.",
        *(f"{name}: less is better, and its difference is turned round: + is better." for name in metrics),
        f"{CHANCE}: permutation test that exchanges the models within facts, corrected over all rows after Holm; below "
        f"{SIGNIFICANCE_LEVEL} a difference is clear.",
        *(said for name, said in _MEANINGS.items() if _known(name, comparisons)),
    ]


def _more_is_better(one: Compared) -> bool:
    return bool(one.get("higher_is_better", True))


def _names(one: Compared, pairs: Sequence[tuple[str, str]]) -> list[TableCell]:
    return [words(one["model"]), words(one["other"])] if len(pairs) > 1 else []


def _all_heads(first: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[TableColumn, ...]:
    if len(pairs) == 1:
        return (*(TableColumn(name, number=False) for name in first), *_heads(pairs[0]))
    named = (TableColumn(name, number=False) for name in (*first, "Model", "against"))
    return (*named, *(TableColumn(name) for name in ("score", "of the other", "difference")))


def _group_cells(one: Compared) -> tuple[TableCell, ...]:
    scores, others, difference, p = paired_cells(one)
    return scores, others, difference, p if one.get("q") is None else chance_cell(one["q"])


def paired_cells(one: Compared) -> tuple[TableCell, TableCell, TableCell, TableCell]:
    """The scores of both, the difference with its interval, and p."""
    percent = bool(one.get("share", True))
    return (
        measure(one.get("value"), percent=percent),
        measure(one.get("other_value"), percent=percent),
        difference_cell(one),
        chance_cell(one.get("p")),
    )


def difference_cell(one: Compared) -> TableCell:
    """The difference in points with its interval; in the metric's own unit where it is no share."""
    value, low, high = (show.finite(one.get(name)) for name in ("difference", "low", "high"))
    if one.get("share", True):
        text, ends = show.difference(value), show.interval(low, high)
    else:
        text, ends = show.DASH if value is None else f"{value:+.3g}", show.interval(low, high, percent=False)
    return TableCell(text, value, low, high, interval=ends)


def chance_cell(value: Any) -> TableCell:
    """A p or a q."""
    return TableCell(show.probability(value), show.finite(value))


def test_cells(one: Compared, own: Sequence[Compared]) -> tuple[TableCell, ...]:
    """What else was found out about a difference, as far as any of the comparisons has it."""
    return tuple(cell(one) for name, (_, cell) in TESTS.items() if _known(name, own))


def for_terminal(table: ReportTable, width: int) -> list[Table]:
    """The table for a terminal; where it is wider than ``width``, two: difference and p first, other tests below."""
    columns = [
        (column.label, not column.number, [row[place].text for row in table.rows])
        for place, column in enumerate(table.columns)
    ]
    ends = next(place for place, column in enumerate(table.columns) if column.label == "difference")
    columns.insert(ends + 1, ("95% interval", False, [row[ends].interval for row in table.rows]))
    sizes = [_words(label, texts) if is_words else _least(label, texts) for label, is_words, texts in columns]
    if sum(sizes) + _GAP * (len(sizes) - 1) <= width:
        return [_drawn(columns)]
    first = ends + 3
    gap = _GAP if sum(sizes[:first]) + _GAP * (first - 1) <= width else 1
    rest = [_drawn([columns[0], *columns[first:]])] if len(columns) > first else []
    return [_drawn(columns[:first], gap), *rest]


def _words(label: str, texts: Sequence[str]) -> int:
    """How wide a column of words must be: its names are folded at words."""
    return max(min(_LONGEST, cell_len(word)) for text in (label, *texts) for word in text.split() or [""])


def _least(label: str, texts: Sequence[str]) -> int:
    """How wide a column must be: no number is folded, and its name at words."""
    return max(*(min(_FOLDED, cell_len(word)) for word in label.split()), *map(cell_len, texts))


def _drawn(columns: Sequence[tuple[str, bool, Sequence[str]]], gap: int = _GAP) -> Table:
    shown = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for label, is_words, texts in columns:
        if is_words:
            shown.add_column(Text(label), overflow="fold")
        else:
            least = _least(label, texts)
            shown.add_column(Text(label), justify="right", overflow="fold", min_width=least, max_width=least)
    for texts in zip(*(texts for _, _, texts in columns), strict=True):
        shown.add_row(*(Text(text) for text in texts))
    return shown


def _by_pair(comparisons: Sequence[Compared]) -> dict[tuple[str, str], list[Compared]]:
    found: dict[tuple[str, str], list[Compared]] = {}
    for one in comparisons:
        found.setdefault((str(one["model"]), str(one["other"])), []).append(one)
    return found


def _heads(names: Sequence[str]) -> tuple[TableColumn, ...]:
    shown = [cut(show.printable(name), _NAME) for name in names]
    if shown[0] == shown[1]:
        shown = [f"{name} ({place})" for place, name in enumerate(shown, 1)]
    return TableColumn(shown[0]), TableColumn(shown[1]), TableColumn("difference")


def _test_heads(own: Sequence[Compared]) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(label) for name, (label, _) in TESTS.items() if _known(name, own))


def _known(name: str, own: Sequence[Compared]) -> bool:
    return any(one.get(name) is not None for one in own)


def _column(one: Compared) -> str:
    return f"{one['task']} {show.metric_label(str(one['metric']))}"


def _ratio(value: Any) -> TableCell:
    if value == float("inf"):
        return TableCell("∞")
    number = show.finite(value)
    return TableCell(show.DASH if number is None else f"{number:.2f}" if number < 100 else f"{number:,.0f}", number)


def _number(value: Any) -> TableCell:
    number = show.finite(value)
    return TableCell(show.DASH if number is None else f"{number:+.2f}" if round(number, 2) else "0.00", number)


TESTS: dict[str, tuple[str, Any]] = {
    "q": ("q", lambda one: chance_cell(one.get("q"))),
    "mcnemar": ("McNemar", lambda one: chance_cell(one.get("mcnemar"))),
    "effect": ("effect", lambda one: _number(one.get("effect"))),
    "odds": ("odds", lambda one: _ratio(one.get("odds"))),
    "detectable": (
        "detectable",
        lambda one: measure(one.get("detectable"), percent=bool(one.get("share", True))),
    ),
    "n": ("questions", lambda one: counts(one.get("n"))),
    "facts": ("facts", lambda one: counts(one.get("facts"))),
}
"""What a comparison may have besides: the column's name, and the cell of a comparison."""
_MEANINGS = {
    "q": "q: the same test, corrected after Benjamini and Hochberg: of rows with q < 0.05, about 1 in 20 is by chance.",
    "mcnemar": "McNemar: p of a test that counts the questions that only one of the two got right; not corrected.",
    "effect": "effect: Cohen's d, the mean difference of facts over its standard deviation.",
    "odds": "odds: questions that only the first got right, for each that only the second did.",
    "detectable": "detectable: the smallest true difference that one test, not corrected, finds in 4 of 5 samples.",
}
