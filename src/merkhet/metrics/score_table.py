"""The table of scores from answers: groups, metrics, intervals, chance levels, unusable counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.core.schemas import SCORES, make_table
from merkhet.metrics.bootstrap import averaged_interval, class_weights
from merkhet.metrics.corrections import chance_adjusted
from merkhet.metrics.metrics import Metric, MetricNotApplicableError, Prediction, Responses
from merkhet.metrics.ranks import FloatArray

Row = dict[str, Any]
IntArray = NDArray[np.int64]


def score_answers(
    suite: str,
    questions: Mapping[str, Question],
    groups_of: Mapping[str, Mapping[str, str | None]],
    clusters: Mapping[str, str],
    answers: Sequence[Row],
    metrics: Sequence[Metric],
    *,
    seed: int,
    groups_by_model: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
    average_over: str | None = None,
    unusable_is_wrong: bool = False,
) -> pa.Table:
    """Score every model, task, probe and method: over all questions, then by each group column.

    A question that was answered several times counts once, by the mean. A metric of ranks has no row where answers
    have no ranks. The result does not depend on the order of the answers.

    Args:
        suite: Name of the suite.
        questions: Questions by id.
        groups_of: Group columns (domain, relation, …) of each question.
        clusters: Cluster (fact) of each question.
        answers: Rows of answers.
        metrics: The metrics.
        seed: Seed of the intervals.
        groups_by_model: Group columns that depend on the model, by model and question.
        average_over: Group column whose classes are averaged with equal weight in the score of a task.
        unusable_is_wrong: Count unusable questions as 0, also in the chance level, in metrics that are shares and
            better if higher; otherwise they are left out and only counted.
    """
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for answer in answers:
        question = questions[answer["question_id"]]
        head = (answer["model"], question.task, answer["probe"], answer["method"])
        cells[(*head, "", "")].append(answer)
        model_groups = (groups_by_model or {}).get((answer["model"], question.question_id), {})
        for column, value in (*groups_of[question.question_id].items(), *model_groups.items()):
            if value is not None:
                cells[(*head, column, value)].append(answer)
    rows = []
    not_applicable: set[tuple[str, str]] = set()
    for (model, task, probe, method, column, value), members in cells.items():
        usable = [answer for answer in members if answer["unusable"] is None]
        usable.sort(key=lambda answer: (answer["question_id"], answer.get("repeat") or 0))
        base: Row = {"model": model, "suite": suite, "task": task, "probe": probe, "method": method}
        if column:
            base[column] = value
        responses = collect_responses(usable, questions)
        firsts = question_starts([answer["question_id"] for answer in usable])
        answered = [usable[first]["question_id"] for first in firsts]
        missing = sorted({answer["question_id"] for answer in members}.difference(answered))
        cell = _Cell(responses, firsts, answered, missing, clusters)
        classes = (
            {name: str(groups_of[name].get(average_over)) for name in (*answered, *missing)} if average_over else {}
        )
        for metric in metrics:
            wrong = unusable_is_wrong and metric.share and metric.higher_is_better
            try:
                row = cell.score(
                    metric,
                    derived_seed(seed, task, column, value, metric.name),
                    classes=classes if not column else {},
                    wrong=wrong,
                )
            except MetricNotApplicableError:
                not_applicable.add((probe, metric.name))
                continue
            rows.append({**base, **row, "unusable": len(missing)})
    # Cells without usable answers never tried the metric; drop it there too.
    return make_table(SCORES, [row for row in rows if (row["probe"], row["metric"]) not in not_applicable])


def collect_responses(answers: Sequence[Row], questions: Mapping[str, Question]) -> Responses:
    """Collect the responses of usable answers, in their order."""
    asked = [questions[answer["question_id"]] for answer in answers]
    return Responses(
        top=[_tops(answer) for answer in answers],
        answers=[question.answers for question in asked],
        candidates=[
            question.candidates if answer["among"] is None else ()
            for question, answer in zip(asked, answers, strict=True)
        ],
        gold_ranks=[answer["gold_ranks"] for answer in answers],
        gold_ties=[answer["gold_ties"] for answer in answers],
        targets=[
            answer["golds"].index(question.target) if question.target in answer["golds"] else None
            for question, answer in zip(asked, answers, strict=True)
        ],
        among=[answer["among"] for answer in answers],
        outcomes=[answer.get("outcome") for answer in answers],
    )


def question_starts(ids: Sequence[str]) -> IntArray:
    """Return the index of each question's first answer, in answers sorted by question."""
    starts = [index for index, name in enumerate(ids) if not index or name != ids[index - 1]]
    return np.array(starts, dtype=np.int64)


def mean_by_question(values: FloatArray, firsts: IntArray) -> FloatArray:
    """Average the values of each question's answers, which begin at these indices."""
    if len(firsts) == len(values):
        return values
    counts = np.diff(np.append(firsts, len(values)))
    means: FloatArray = np.add.reduceat(values, firsts) / counts
    return means


def scoring_rows(table: pa.Table) -> list[Row]:
    """Return the rows of a table of answers, with only the candidates tied for the first rank, as scoring needs."""
    ranked = table["ranked"].combine_chunks()
    if isinstance(ranked, pa.ChunkedArray):  # An empty table has no chunk to combine.
        return []
    starts = np.asarray(ranked.offsets)[:-1]
    lengths = pc.fill_null(pc.list_value_length(ranked), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries = ranked.values
    scores = entries.field("score").to_numpy(zero_copy_only=False)
    number = np.repeat(np.arange(len(lengths)), lengths)
    offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    index = np.repeat(starts, lengths) + offset
    is_top = scores[index] == scores[np.repeat(starts, lengths)]
    counts = np.bincount(number[is_top], minlength=len(lengths))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    tops = pa.ListArray.from_arrays(offsets, entries.take(pa.array(index[is_top])))
    rows: list[Row] = table.set_column(table.schema.get_field_index("ranked"), "ranked", tops).to_pylist()
    return rows


@dataclass(frozen=True)
class _Cell:
    """Questions asked in one way: responses sorted by question, and the unusable questions."""

    responses: Responses
    firsts: IntArray
    answered: Sequence[str]
    missing: Sequence[str]
    clusters: Mapping[str, str]

    def score(self, metric: Metric, seed: int, *, classes: Mapping[str, str], wrong: bool) -> Row:
        """Score a metric with its interval, chance level, adjusted value and n, averaged over classes if given.

        Questions for which the metric is not finite are left out of n.
        """
        if not self.answered and not wrong:
            return {"metric": metric.name, "n": 0}
        names = [*self.answered, *self.missing] if wrong else self.answered
        padding = np.zeros(len(names) - len(self.answered))

        def by_question(values: FloatArray) -> FloatArray:
            return np.concatenate([mean_by_question(values, self.firsts), padding])

        values = by_question(metric.values(self.responses))
        known = np.isfinite(values)
        if not known.any():
            return {"metric": metric.name, "n": 0}
        cluster_ids = np.array([self.clusters[name] for name in names], dtype=np.str_)[known]
        class_ids = np.array([classes.get(name, "") for name in names], dtype=np.str_)[known]
        interval = averaged_interval(values[known], cluster_ids, class_ids, seed=seed)
        chance = None
        if metric.chance and self.answered:
            chance = float(np.mean(by_question(metric.chance(self.responses))[known] * class_weights(class_ids)))
        row = {
            "metric": metric.name,
            "n": len(cluster_ids),
            **{"value": interval.value, "low": interval.low, "high": interval.high, "chance": chance},
            "adjusted": chance_adjusted(interval.value, chance) if metric.share and metric.higher_is_better else None,
        }
        return {
            key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()
        }


def _tops(answer: Row) -> list[Prediction]:
    """Return the candidates tied for the first rank; several written answers as one tuple."""
    ranked = answer["ranked"]
    tied = [entry["candidate"] for entry in ranked if entry["score"] == ranked[0]["score"]]
    return [tuple(tied)] if len(tied) > 1 and not answer["gold_ranks"] else tied
