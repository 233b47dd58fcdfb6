"""Questions that compared models share, and conditions that too few of them meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from merkhet.analysis.comparison import Comparison, Condition
from merkhet.analysis.training_comparison import is_measurable
from merkhet.metrics.answer_table import AnswerTable

STORED = "statement"
"""Task of the statements that a model has stored."""


def describe_question_sets(answers: AnswerTable, comparisons: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Say on which tasks compared models were asked different questions, and on how many each pair is compared.

    Args:
        kind: Plural noun for the questions, such as "statements".
    """
    sentences = []
    for task in dict.fromkeys(row["task"] for row in comparisons):
        rows = [row for row in comparisons if row["task"] == task]
        models = dict.fromkeys(row[side] for row in rows for side in ("model", "other"))
        asked = {model: _asked_codes(answers, model, task) for model in models}
        if len(set(asked.values())) < 2:
            continue
        numbers = _range([len(codes) for codes in asked.values()])
        common = _range([row["n"] for row in rows])
        sentences.append(
            f"On {task}, models were asked different {kind} ({numbers}): each pair is compared on those that both were "
            f"asked ({common}), and other scores on {task} are about different {kind}."
        )
    return sentences


def withhold_verdicts(
    comparisons: Sequence[Comparison], conditions: Mapping[str, Condition], answers: AnswerTable
) -> list[Comparison]:
    """Remove the p-values of comparisons with and without conflict where too few statements conflict to measure it."""
    withheld = []
    for comparison in comparisons:
        models = (comparison.model, comparison.other)
        settings = [conditions[model].settings if model in conditions else {} for model in models]
        stores = [model for model, of_model in zip(models, settings, strict=True) if of_model.get("conflict")]
        if len(stores) == 1 and all("conflict" in of_model for of_model in settings):
            codes = _asked_codes(answers, stores[0], STORED)
            several = sum(len(answers.questions[answers.ids[code]].right_candidates) > 1 for code in codes)
            if not is_measurable(several, len(codes)):
                comparison = replace(comparison, p=None, p_raw=None, q=None, detectable=None)
        withheld.append(comparison)
    return withheld


def _asked_codes(answers: AnswerTable, model: str, task: str) -> frozenset[int]:
    rows = (rows for key, rows in answers.cell_rows.items() if key[:2] == (model, task))
    return frozenset(code for of_cell in rows for code in answers.codes[of_cell].tolist())


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
