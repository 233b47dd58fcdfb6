"""Tables of paired model comparisons: both scores, their difference, and significance tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merkhet.analysis.differences import is_significant
from merkhet.core import text as fmt
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports._labels import shorten_labels
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import LOWER_IS_BETTER, is_share, overall_rows
from merkhet.reports.table_model import (
    ReportTable,
    TableCell,
    TableColumn,
    has_few_questions,
    score_cell,
    text_cell,
    value_cell,
)

_MAX_GROUPS = 20
_MAX_PAGE_GROUPS = 300
_MAX_NAME = 48
Comparison = Mapping[str, Any]
Field = tuple[TableColumn, Callable[[Comparison], TableCell]]
"""A table column, and the function that makes its cell from a comparison."""


@dataclass(frozen=True)
class PairedTest:
    """A test or effect size that comparison tables show as a column."""

    label: str
    full_label: str
    """Label in tables that come without a legend."""
    kind: str
    """Number format of the column; ``share`` applies only to metrics that are shares."""
    meaning: str = ""


_TESTS = {
    "p": PairedTest(
        "p (Holm)",
        "p (Holm)",
        "p",
        "permutation test that exchanges the models within facts, Holm-corrected over all rows; "
        f"a difference with p < {SIGNIFICANCE_LEVEL} is significant.",
    ),
    "q": PairedTest(
        "q",
        "q (Benjamini–Hochberg)",
        "p",
        "the same test, Benjamini–Hochberg-corrected: of rows with q < 0.05, about 5% are false discoveries.",
    ),
    "p_raw": PairedTest("p", "p (uncorrected)", "p"),
    "mcnemar": PairedTest(
        "McNemar",
        "p (McNemar)",
        "p",
        "p of McNemar’s test of the questions that only one of the two models answered correctly; uncorrected.",
    ),
    "effect": PairedTest(
        "effect",
        "Cohen’s d",
        "effect",
        "Cohen’s d: mean difference over facts divided by its standard deviation; 0.2 is small, 0.5 medium, 0.8 large.",
    ),
    "odds": PairedTest(
        "odds",
        "odds ratio",
        "ratio",
        "questions that only the first model answered correctly, divided by those that only the second did.",
    ),
    "detectable": PairedTest(
        "detectable",
        "detectable",
        "share",
        "the smallest true difference that one uncorrected test detects with 80% power.",
    ),
    "trainings": PairedTest(
        "trainings",
        "trainings",
        "count",
        "number of trainings of each model that the row is based on. With several, the interval and p are Student’s "
        "over trainings of the same seed. With one, the interval is over questions, and there is no p: one training "
        "cannot tell an effect of the condition from the luck of a seed.",
    ),
    "n": PairedTest("questions", "questions", "count"),
    "facts": PairedTest("facts", "facts", "count"),
}
_T_TEST = (
    "paired t test over trainings of the same seed, Holm-corrected over all rows; "
    f"a difference with p < {SIGNIFICANCE_LEVEL} is significant."
)
"""Meaning of p if all compared models were trained by the run."""
_SHOWN = tuple(key for key in _TESTS if key not in ("p", "p_raw"))
"""Keys of the tests, other than p, in tables with a legend."""


def pair_tables(comparisons: Sequence[Comparison]) -> list[ReportTable]:
    """Make one table for each pair of models: a row per task with both scores on shared questions and the tests."""
    return [
        _make_table(
            f"pair{index}",
            fmt.printable(" against ".join(names)),
            [_text_field("task", score_label), *_score_fields(names), _test_field("p"), *_test_fields(_SHOWN, pairs)],
            pairs,
        )
        for index, (names, pairs) in enumerate(_by_pair(comparisons).items())
    ]


def group_tables(groups: Sequence[Comparison], column: str, limit: int = _MAX_GROUPS) -> list[ReportTable]:
    """Make one table for each pair of models and each score, with a row per group.

    The rows keep the order of ``groups``; at most ``limit`` groups are shown. The column q shows p if q is missing.
    """
    tables: list[ReportTable] = []
    for names, pairs in _by_pair(groups).items():
        for task in dict.fromkeys(map(score_label, pairs)):
            fields = [_text_field(column, _getter("group")), (TableColumn("n"), _test_cell("n"))]
            fields += [*_score_fields(names), (TableColumn("q"), _corrected_cell)]
            title = fmt.printable(f"{' against '.join(names)} on {task}, by {column}")
            task_groups = [group for group in pairs if score_label(group) == task]
            tables.append(_make_table(f"groups{len(tables)}", title, fields, task_groups, limit))
    return tables


def all_pairs_table(comparisons: Sequence[Comparison]) -> ReportTable:
    """Make one table of all pairs of models on all tasks; with a single pair, the score columns name its models."""
    fields = [_text_field("Score", score_label), *_page_fields(comparisons), _test_field("p")]
    title = "Pairs of models on the questions that both were asked."
    return _make_table("paired", title, [*fields, *_test_fields(_SHOWN, comparisons)], comparisons)


def all_groups_table(groups: Sequence[Comparison], column: str) -> ReportTable:
    """Make one table of the groups of all pairs of models, in the order of ``groups``."""
    several_scores = len(set(map(score_label, groups))) > 1
    fields = [_text_field(column, _getter("group")), *([_text_field("Score", score_label)] if several_scores else [])]
    fields += [*_page_fields(groups), (TableColumn("q"), _corrected_cell), _test_field("n"), _test_field("facts")]
    return _make_table("groups", f"Pairs of models, by {column}.", fields, groups, _MAX_PAGE_GROUPS)


def verdict_table(comparisons: Sequence[Comparison], limit: int | None = None) -> ReportTable:
    """Make the table of a run's comparisons with a verdict in words; tests without values are omitted."""
    fields = [
        _text_field("Score", _score_and_group),
        _text_field("Model", _getter("model")),
        _text_field("against", _getter("other")),
        _DIFFERENCE,
        (TableColumn("p", tip=_TESTS["p"].meaning), _test_cell("p")),
        (TableColumn("verdict", number=False), _verdict_cell),
    ]
    title = "Models compared in pairs."
    return _make_table("verdicts", title, [*fields, *_test_fields(_SHOWN, comparisons)], comparisons, limit)


def comparison_report_table(data: ReportData) -> ReportTable:
    """Make the table of a run's paired differences with all tests; tests without values are omitted."""
    pairs = run_comparisons(data)
    grouped = any(pair.get("group") is not None for pair in pairs)
    names = {"task": "task", "metric": "metric", **({"group": "group_column", "of": "group"} if grouped else {})}
    names |= {"model": "model", "other": "other"}
    fields = [_text_field(label, _metric if key == "metric" else _getter(key)) for label, key in names.items()]
    fields += [_DIFFERENCE, *_test_fields(_TESTS, pairs, full=True)]
    note = (
        "Differences are paired by question, in percentage points if scores are shares, with 95% intervals in "
        "brackets. Intervals are not corrected for the number of pairs; p (Holm) is."
    )
    return replace(_make_table("comparisons", "Models compared on the same questions.", fields, pairs), note=note)


def run_comparisons(data: ReportData) -> list[Comparison]:
    """Return the comparisons in a run's findings; the added key ``share`` says whether the metric is a share."""
    rows = overall_rows(data.scores)
    pairs = [pair for pair in data.findings.get("comparisons") or () if isinstance(pair, Mapping)]
    metrics = {str(pair.get("metric", "")) for pair in pairs}
    shares = {metric: metric not in LOWER_IS_BETTER and is_share(rows, metric) for metric in metrics}
    return [{"share": shares[str(pair.get("metric", ""))], **pair} for pair in pairs]


def split_tests(table: ReportTable) -> tuple[ReportTable, ReportTable | None]:
    """Split a comparison table after the column p, because a page is too narrow for all tests.

    Returns:
        The table up to p, and a table with the other tests; None if there are no other tests.
    """
    end = next(index for index, column in enumerate(table.columns) if column.label == _TESTS["p"].label) + 1
    text_columns = [index for index, column in enumerate(table.columns) if not column.number]
    test_columns = [*text_columns, *range(end, len(table.columns))]
    if len(test_columns) == len(text_columns):
        return table, None
    scores = replace(table, columns=table.columns[:end], rows=tuple(row[:end] for row in table.rows))
    columns = tuple(table.columns[index] for index in test_columns)
    rows = tuple(tuple(row[index] for index in test_columns) for row in table.rows)
    return scores, ReportTable("tests", "Further tests of the same pairs.", columns, rows)


def legend(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """Explain the columns in the tables of ``comparisons``, as pairs of label and meaning."""
    metrics = dict.fromkeys(
        fmt.metric_label(str(pair["metric"])) for pair in comparisons if not pair.get("higher_is_better", True)
    )
    untrained = [pair for pair in comparisons if pair.get("trainings") is None]
    trained = len(untrained) < len(comparisons)
    over = " over resampled facts, or over trainings (see there)" if trained else " over resampled facts"
    return [
        ("scores", "on the questions that both models were asked; in percent if they are shares."),
        ("difference", f"first model minus second, in points, with its 95% interval{over}."),
        *((name, "lower is better; the sign of its difference is flipped, so that + is better.") for name in metrics),
        (_TESTS["p"].label, _T_TEST if not untrained else _TESTS["p"].meaning),
        *explain_tests(comparisons),
    ]


def explain_tests(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """Explain the tests, other than p, that have a value in any comparison, as pairs of label and meaning."""
    tests = [_TESTS[key] for key in _SHOWN if _any_has(key, comparisons)]
    return [(test.label, test.meaning) for test in tests if test.meaning]


def score_label(pair: Comparison) -> str:
    """Return the task and metric of a comparison as text, such as ``completion R@1``."""
    return f"{pair.get('task', '')} {_metric(pair)}"


def _make_table(
    name: str, title: str, fields: Sequence[Field], pairs: Sequence[Comparison], limit: int | None = None
) -> ReportTable:
    rows = tuple(tuple(make_cell(pair) for _, make_cell in fields) for pair in pairs[:limit])
    columns = tuple(column for column, _ in fields)
    return ReportTable(name, title, columns, rows, left_out=len(pairs) - len(rows))


def _text_field(label: str, get_text: Callable[[Comparison], Any]) -> Field:
    return TableColumn(label, number=False), lambda pair: text_cell(get_text(pair))


def _score_fields(names: Sequence[str]) -> list[Field]:
    """Make the columns of both scores, headed by the model names, and the column of their difference."""
    texts = [fmt.printable(name) for name in names]
    short = shorten_labels(texts, _MAX_NAME)
    labels = [short[text] for text in texts]
    if labels[0] == labels[1]:
        labels = [f"{name} ({number})" for number, name in enumerate(labels, 1)]
    return [(TableColumn(labels[0]), _score("value")), (TableColumn(labels[1]), _score("other_value")), _DIFFERENCE]


def _page_fields(pairs: Sequence[Comparison]) -> list[Field]:
    """Make the columns of models, scores and difference; with a single pair, the score columns name its models."""
    model_pairs = list(_by_pair(pairs))
    if len(model_pairs) == 1:
        return _score_fields(model_pairs[0])
    names = [_text_field("Model", _getter("model")), _text_field("against", _getter("other"))]
    return [*names, *_score_fields(("score", "of the other"))]


def _test_fields(keys: Iterable[str], pairs: Sequence[Comparison], *, full: bool = False) -> list[Field]:
    return [_test_field(key, full=full) for key in keys if _any_has(key, pairs)]


def _test_field(key: str, *, full: bool = False) -> Field:
    test = _TESTS[key]
    return TableColumn(test.full_label if full else test.label, tip=test.meaning), _test_cell(key)


def _test_cell(key: str) -> Callable[[Comparison], TableCell]:
    kind = _TESTS[key].kind
    return lambda pair: value_cell(pair.get(key), "number" if kind == "share" and not _is_share(pair) else kind)


def _corrected_cell(group: Comparison) -> TableCell:
    """Make the cell with q, or with p if q is missing."""
    return _test_cell("p" if group.get("q") is None else "q")(group)


def _score(key: str) -> Callable[[Comparison], TableCell]:
    return lambda pair: _greyed(score_cell(pair.get(key), percent=_is_share(pair)), pair)


def _difference_cell(pair: Comparison) -> TableCell:
    """Make the cell of the difference: in percentage points for shares, otherwise in the unit of the metric."""
    estimate = {"value": pair.get("difference"), "low": pair.get("low"), "high": pair.get("high")}
    return _greyed(value_cell(estimate, "points" if _is_share(pair) else "signed"), pair)


def _greyed(cell: TableCell, pair: Comparison) -> TableCell:
    """Mark the number of a group of few questions; the column of questions has their number."""
    return replace(cell, few=True) if _has_few(pair) else cell


_DIFFERENCE: Field = (TableColumn("difference"), _difference_cell)


def _verdict_cell(pair: Comparison) -> TableCell:
    low, high, difference = (fmt.finite_or_none(pair.get(name)) for name in ("low", "high", "difference"))
    if low is None or high is None or not difference:
        return TableCell("no significant difference" if difference == 0 else "insufficient data")
    if _has_few(pair):
        return TableCell(f"too few questions (n = {fmt.count(pair.get('n'))})", few=True)
    if pair.get("p") is None and pair.get("trainings") is not None:
        return TableCell("none: one training" if pair["trainings"] == 1 else "none: too few statements")
    if is_significant(pair):
        return TableCell(f"{fmt.printable(pair.get('model' if difference > 0 else 'other', ''))} is ahead", best=True)
    return TableCell("no significant difference")


def _has_few(pair: Comparison) -> bool:
    """Return whether a comparison within a group has too few questions for a result."""
    return pair.get("group") is not None and has_few_questions(fmt.finite_or_none(pair.get("n")))


def _is_share(pair: Comparison) -> bool:
    return bool(pair.get("share", True))


def _getter(key: str) -> Callable[[Comparison], Any]:
    return lambda pair: pair.get(key)


def _metric(pair: Comparison) -> str:
    return fmt.metric_label(str(pair.get("metric", "")))


def _score_and_group(pair: Comparison) -> str:
    group = f", {pair.get('group_column') or 'group'} {pair['group']}" if pair.get("group") is not None else ""
    return f"{score_label(pair)}{group}"


def _by_pair(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for pair in comparisons:
        by_pair.setdefault((str(pair["model"]), str(pair["other"])), []).append(pair)
    return by_pair


def _any_has(key: str, pairs: Sequence[Comparison]) -> bool:
    return any(fmt.finite_or_none(pair.get(key)) is not None or pair.get(key) == math.inf for pair in pairs)
