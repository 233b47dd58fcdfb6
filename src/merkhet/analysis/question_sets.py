"""Sentences on the questions that compared models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.metrics.answer_table import AnswerTable


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


def _asked_codes(answers: AnswerTable, model: str, task: str) -> frozenset[int]:
    rows = (rows for key, rows in answers.cell_rows.items() if key[:2] == (model, task))
    return frozenset(code for of_cell in rows for code in answers.codes[of_cell].tolist())


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
