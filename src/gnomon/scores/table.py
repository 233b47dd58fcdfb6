"""From answers to the table of scores: groups, metrics, intervals, chance, and what could not be asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gnomon.foundation import derived_seed
from gnomon.foundation.records import Question
from gnomon.foundation.tables import SCORES, make_table
from gnomon.scores.bootstrap import clustered_interval
from gnomon.scores.metrics import Given, Metric, NoRanksError, Responses

Row = dict[str, Any]


def score_answers(
    suite: str,
    questions: Mapping[str, Question],
    groups_of: Mapping[str, Mapping[str, str | None]],
    clusters: Mapping[str, str],
    answers: Sequence[Row],
    metrics: Sequence[Metric],
    *,
    seed: int,
) -> pa.Table:
    """Scores of every model, task, probe and method: over all questions, then by each group column.

    ``groups_of`` gives each question's group columns (domain, relation, …), ``clusters`` the fact it belongs to.
    A metric of ranks has no row where answers have none. The result does not depend on the order of the answers.
    """
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for answer in answers:
        question = questions[answer["question_id"]]
        head = (answer["model"], question.task, answer["probe"], answer["method"])
        cells[(*head, "", "")].append(answer)
        for column, value in groups_of[question.question_id].items():
            if value is not None:
                cells[(*head, column, value)].append(answer)
    rows = []
    without: set[tuple[str, str]] = set()
    for (model, task, probe, method, column, value), members in cells.items():
        usable = sorted((a for a in members if a["unusable"] is None), key=lambda answer: answer["question_id"])
        base: Row = {"model": model, "suite": suite, "task": task, "probe": probe, "method": method}
        if column:
            base[column] = value
        responses = gather(usable, questions)
        own = np.array([clusters[answer["question_id"]] for answer in usable], dtype=np.str_)
        for metric in metrics:
            try:
                row = _score(metric, responses, own, derived_seed(seed, task, column, value, metric.name))
            except NoRanksError:
                without.add((probe, metric.name))
                continue
            rows.append({**base, **row, "n": len(usable), "unusable": len(members) - len(usable)})
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


def _score(metric: Metric, responses: Responses, clusters: Any, seed: int) -> Row:
    if not len(responses.answers):
        return {"metric": metric.name}
    interval = clustered_interval(metric.values(responses), clusters, seed=seed)
    chance = float(np.mean(metric.chance(responses))) if metric.chance else None
    row = {"metric": metric.name, "value": interval.value, "low": interval.low, "high": interval.high, "chance": chance}
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}


def _tops(answer: Row) -> list[Given]:
    """The candidates tied for the first place; or what was written, of which the best counts if there is more."""
    ranked = answer["ranked"]
    tied = [entry["candidate"] for entry in ranked if entry["score"] == ranked[0]["score"]]
    return [tuple(tied)] if len(tied) > 1 and not answer["gold_ranks"] else tied
