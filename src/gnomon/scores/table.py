"""From answers to the table of scores: groups, metrics, intervals, chance, and what could not be asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.foundation import derived_seed
from gnomon.foundation.records import Question
from gnomon.foundation.tables import SCORES, make_table
from gnomon.scores.bootstrap import clustered_interval
from gnomon.scores.metrics import Given, Metric, NoRanksError, Responses
from gnomon.scores.ranks import FloatArray

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
) -> pa.Table:
    """Scores of every model, task, probe and method: over all questions, then by each group column.

    ``groups_of`` gives each question's group columns (domain, relation, …), ``groups_by_model`` those that depend on
    the model too, by model and question, ``clusters`` the fact it belongs to. A question that was answered several
    times counts once, by the mean. A metric of ranks has no row where answers have none. The result does not depend
    on the order of the answers.
    """
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for answer in answers:
        question = questions[answer["question_id"]]
        head = (answer["model"], question.task, answer["probe"], answer["method"])
        cells[(*head, "", "")].append(answer)
        own_groups = (groups_by_model or {}).get((answer["model"], question.question_id), {})
        for column, value in (*groups_of[question.question_id].items(), *own_groups.items()):
            if value is not None:
                cells[(*head, column, value)].append(answer)
    rows = []
    without: set[tuple[str, str]] = set()
    for (model, task, probe, method, column, value), members in cells.items():
        usable = sorted((a for a in members if a["unusable"] is None), key=_place)
        base: Row = {"model": model, "suite": suite, "task": task, "probe": probe, "method": method}
        if column:
            base[column] = value
        responses = gather(usable, questions)
        asked = len({answer["question_id"] for answer in members})
        firsts = first_of_each([answer["question_id"] for answer in usable])
        own = np.array([clusters[usable[first]["question_id"]] for first in firsts], dtype=np.str_)
        for metric in metrics:
            try:
                row = _score(metric, responses, firsts, own, derived_seed(seed, task, column, value, metric.name))
            except NoRanksError:
                without.add((probe, metric.name))
                continue
            rows.append({**base, **row, "n": len(firsts), "unusable": asked - len(firsts)})
    # Nor where nothing could be asked, so that it was not tried.
    return make_table(SCORES, [row for row in rows if (row["probe"], row["metric"]) not in without])


def gather(answers: Sequence[Row], questions: Mapping[str, Question]) -> Responses:
    """The responses of usable answers, in their order."""
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
    )


def first_of_each(ids: Sequence[str]) -> IntArray:
    """Where each question's answers begin, in answers that are sorted by question."""
    starts = [place for place, name in enumerate(ids) if not place or name != ids[place - 1]]
    return np.array(starts, dtype=np.int64)


def mean_of_each(values: FloatArray, firsts: IntArray) -> FloatArray:
    """The mean over the answers of each question, which begin at these places."""
    if len(firsts) == len(values):
        return values
    counts = np.diff(np.append(firsts, len(values)))
    means: FloatArray = np.add.reduceat(values, firsts) / counts
    return means


def answer_rows(table: pa.Table) -> list[Row]:
    """The rows of a table of answers, of what was ranked only what is tied for the first place: all that is scored."""
    ranked = table["ranked"].combine_chunks()
    if isinstance(ranked, pa.ChunkedArray):  # An empty table has no chunk to combine.
        return []
    starts = np.asarray(ranked.offsets)[:-1]
    lengths = pc.fill_null(pc.list_value_length(ranked), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries = ranked.values
    scores = entries.field("score").to_numpy(zero_copy_only=False)
    number = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    index = np.repeat(starts, lengths) + place
    kept = scores[index] == scores[np.repeat(starts, lengths)]
    counts = np.bincount(number[kept], minlength=len(lengths))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    tops = pa.ListArray.from_arrays(offsets, entries.take(pa.array(index[kept])))
    rows: list[Row] = table.set_column(table.schema.get_field_index("ranked"), "ranked", tops).to_pylist()
    return rows


def _place(answer: Row) -> tuple[str, int]:
    return answer["question_id"], answer.get("repeat") or 0


def _score(metric: Metric, responses: Responses, firsts: IntArray, clusters: Any, seed: int) -> Row:
    if not len(responses.answers):
        return {"metric": metric.name}
    interval = clustered_interval(mean_of_each(metric.values(responses), firsts), clusters, seed=seed)
    chance = float(np.mean(mean_of_each(metric.chance(responses), firsts))) if metric.chance else None
    row = {"metric": metric.name, "value": interval.value, "low": interval.low, "high": interval.high, "chance": chance}
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}


def _tops(answer: Row) -> list[Given]:
    """The candidates tied for the first place; or what was written, of which the best counts if there is more."""
    ranked = answer["ranked"]
    tied = [entry["candidate"] for entry in ranked if entry["score"] == ranked[0]["score"]]
    return [tuple(tied)] if len(tied) > 1 and not answer["gold_ranks"] else tied
