"""Table of scores computed from answers, with groups, intervals, chance levels and unusable counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, SCORES, make_table
from merkhet.metrics.answer_table import AnswerTable, Cell, IntArray, TableResponses
from merkhet.metrics.bootstrap import Interval, averaged_interval, class_weights
from merkhet.metrics.clusters import Clusters, question_clusters
from merkhet.metrics.corrections import chance_adjusted
from merkhet.metrics.metrics import Metric, MetricNotApplicableError, Responses
from merkhet.metrics.paraphrases import PairedWordings, Wording

Row = dict[str, Any]


def score_answers(
    suite: str,
    questions: Mapping[str, Question],
    groups_of: Mapping[str, Mapping[str, str | None]],
    clusters: Mapping[str, str],
    answers: AnswerTable | pa.Table | Sequence[Row],
    metrics: Sequence[Metric],
    *,
    seed: int,
    groups_by_model: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
    group_sets: Sequence[tuple[str, ...]] | None = None,
    average_over: str | None = None,
    unusable_is_wrong: bool = False,
    cluster_prompts: bool = False,
    wordings: Mapping[str, Wording] | None = None,
) -> pa.Table:
    """Score every model, task, probe and method over all questions, and over the questions of each group.

    A question with several answers counts once, with their mean. Metrics of ranks are left out for probes whose answers
    have no ranks. Values and intervals do not depend on the order of the answers.

    Args:
        groups_of: Group columns (domain, relation, …) and their values by question id.
        clusters: Cluster id, such as the fact, by question id.
        groups_by_model: Group columns that depend on the model, by model and question id.
        group_sets: Sets of columns to group by jointly; by default, each column alone.
        average_over: Group column whose classes are averaged with equal weight in the score of a task.
        unusable_is_wrong: Count unusable questions as 0 in metrics that are shares and better if higher, also in their
            chance level. By default, unusable questions are left out and only counted.
        cluster_prompts: Treat the questions with the same prompt as one observation, like those of one cluster.
        wordings: What each question asks and in which words, by question id, for the spread over paraphrases.
    """
    table = answers if isinstance(answers, AnswerTable) else AnswerTable(answers, questions)
    all_clusters = question_clusters(table.ids, clusters, questions if cluster_prompts else None)
    grouping = _Grouping(table.ids, groups_of, groups_by_model or {}, group_sets)
    paired_wordings = PairedWordings(table.ids, wordings or {})
    classes = None
    if average_over:
        names = np.array([str(groups_of[name].get(average_over)) for name in table.ids], dtype=np.str_)
        classes = np.unique(names, return_inverse=True)[1]
    groups = [group for key in table.cell_rows for group in grouping.groups(table.cell(*key))]
    rows = []
    not_applicable: set[tuple[str, str]] = set()
    for group in sorted(groups, key=lambda group: group.order):
        cell, column = group.cell, "+".join(group.columns)
        base: Row = {"model": cell.model, "suite": suite, "task": cell.task, "probe": cell.probe}
        base |= {"method": cell.method, **dict(zip(group.columns, group.values, strict=True))}
        for metric in metrics:
            wrong = unusable_is_wrong and metric.share and metric.higher_is_better
            try:
                row = _score_group(
                    group,
                    metric,
                    all_clusters,
                    derived_seed(seed, cell.task, column, "+".join(group.values), metric.name),
                    None if column else classes,
                    None if column else paired_wordings,
                    wrong=wrong,
                )
            except MetricNotApplicableError:
                not_applicable.add((cell.probe, metric.name))
                continue
            rows.append({**base, **row, "unusable": int(np.count_nonzero(group.members >= cell.answered))})
    # Without usable answers a metric is not computed and cannot fail, so drop it for the whole probe.
    return make_table(SCORES, [row for row in rows if (row["probe"], row["metric"]) not in not_applicable])


@dataclass(frozen=True)
class _Group:
    """Questions of one model, task, probe and method with equal values in some group columns."""

    order: tuple[int, int]
    """Sort key of the score rows: row number of the first answer, then index of the group columns."""
    cell: Cell
    columns: tuple[str, ...]
    values: tuple[str, ...]
    members: IntArray
    """Indices of the group's questions in ``cell.codes``."""


def _score_group(
    group: _Group,
    metric: Metric,
    clusters: Clusters,
    seed: int,
    classes: IntArray | None,
    wordings: PairedWordings | None,
    *,
    wrong: bool,
) -> Row:
    """Score a group of questions by a metric; with ``classes``, average the class means.

    Questions for which the metric is not finite are left out and not counted in n.
    """
    cell = group.cell
    is_answered = group.members < cell.answered
    members = group.members if wrong else group.members[is_answered]
    values = cell.values(metric, wrong=wrong)[members]
    spread = None
    if wordings is not None:
        codes = cell.codes[members]
        spread = wordings.spread(codes, values, None if classes is None else classes[codes])
    known = np.isfinite(values)
    if not known.any():
        return {"metric": metric.name, "n": 0}
    members, values = members[known], values[known]
    codes = cell.codes[members]
    class_codes = np.zeros(len(codes), dtype=np.int64) if classes is None else classes[codes]
    interval = (
        clusters.take(codes).interval(values, seed)
        if classes is None
        else averaged_interval(values, clusters.facts[codes], class_codes, seed=seed)
    )
    if not metric.share and np.ptp(values) == 0.0 and np.isfinite(interval.low):
        # The binomial interval of equal values is for shares.
        interval = Interval(interval.value, interval.value, interval.value)
    chance = None
    if metric.chance and is_answered.any():
        chances = cell.values(metric, chance=True, wrong=wrong)[members]
        chance = float(np.mean(chances * class_weights(class_codes)))
        if math.isclose(chance, interval.value, rel_tol=1e-12, abs_tol=1e-12):
            # Rounding must not put a scorer that ties all candidates above or below chance.
            chance = interval.value
    row = {
        "metric": metric.name,
        "n": len(codes),
        **{"value": interval.value, "low": interval.low, "high": interval.high, "chance": chance},
        "adjusted": chance_adjusted(interval.value, chance) if metric.share and metric.higher_is_better else None,
        **({"wording_sd": spread.sd, "wording_n": spread.items} if spread else {}),
    }
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}


class _Grouping:
    """Values of the group columns of all questions."""

    def __init__(
        self,
        ids: Sequence[str],
        groups_of: Mapping[str, Mapping[str, str | None]],
        groups_by_model: Mapping[tuple[str, str], Mapping[str, str]],
        group_sets: Sequence[tuple[str, ...]] | None,
    ) -> None:
        self.ids, self.groups_by_model = ids, groups_by_model
        # Questions may share one mapping of groups, so encode each distinct mapping once.
        objects = [groups_of[name] for name in ids]
        distinct = {id(groups): groups for groups in objects}
        indices = {identity: index for index, identity in enumerate(distinct)}
        rows = np.array([indices[id(groups)] for groups in objects], dtype=np.int64)
        if group_sets is None:
            group_sets = [
                (column,) for column in dict.fromkeys(name for groups in distinct.values() for name in groups)
            ]
        coded = {}
        for column in {name for names in group_sets for name in names}:
            codes, names = _encode_groups([groups.get(column) for groups in distinct.values()])
            coded[column] = (codes[rows], names)
        self.codes = {names: _combine_groups([coded[name] for name in names]) for names in group_sets}
        self.model_columns = tuple(dict.fromkeys(column for groups in groups_by_model.values() for column in groups))

    def groups(self, cell: Cell) -> Iterator[_Group]:
        """Yield the groups of a cell's questions; the first group has all questions."""
        if not len(cell.codes):
            return
        yield _Group((int(cell.first_rows.min()), -1), cell, (), (), np.arange(len(cell.codes)))
        coded = {columns: (codes[cell.codes], names) for columns, (codes, names) in self.codes.items()}
        for column in self.model_columns:
            groups = (self.groups_by_model.get((cell.model, self.ids[code]), {}) for code in cell.codes.tolist())
            coded[(column,)] = _encode_groups([group.get(column) for group in groups])
        for number, (columns, (codes, names)) in enumerate(coded.items()):
            order = np.argsort(codes, kind="stable")
            for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
                if codes[members[0]] >= 0:
                    position = (int(cell.first_rows[members].min()), number)
                    yield _Group(position, cell, columns, names[codes[members[0]]], members)


def _encode_groups(values: Sequence[str | None]) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Return the group number of each question (-1 without a value), and the group names."""
    numbers: dict[str | None, int] = {None: -1}
    codes = [numbers.setdefault(value, len(numbers) - 1) for value in values]
    return np.array(codes, dtype=np.int64), [(str(name),) for name in list(numbers)[1:]]


def _combine_groups(
    columns: Sequence[tuple[IntArray, list[tuple[str, ...]]]],
) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Return group numbers (-1 if a column has no value) and names for the combination of several columns."""
    codes, names = columns[0]
    for other_codes, other_names in columns[1:]:
        known = (codes >= 0) & (other_codes >= 0)
        codes = np.where(known, codes * len(other_names) + other_codes, -1)
        names = [(*name, *other) for name in names for other in other_names]
    return codes, names


def collect_responses(answers: Sequence[Row], questions: Mapping[str, Question]) -> Responses:
    """Collect the responses of usable answers, in the order of ``answers``."""
    table = make_table(ANSWERS, answers)
    return TableResponses.collect(table.column, [answer["question_id"] for answer in answers], questions)
