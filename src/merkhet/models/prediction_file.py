"""Predictions from a CSV file (``id,ret``), which the probe ``write`` evaluates like a model."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.delimited_text import read_csv_rows
from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.core.text import counted
from merkhet.core.text_formats import short_repr
from merkhet.models.protocol import CandidateScores, WrittenAnswer, refuse_questions

HEADER = ["id", "ret"]


class PredictionFile:
    """A CSV file of predictions in the role of a model.

    The column ``id`` has a question's id, or only the official id after its slash. The column ``ret`` has a JSON list
    of texts, of which the best is evaluated. A question without a prediction gets an empty answer; ``missing`` counts
    these questions.
    """

    kind = "predictions"
    methods: tuple[str, ...] = ("file",)
    writing_methods = methods

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.fingerprint = digest(["predictions", 1, file_digest(path)])
        self.texts = read_predictions(path)
        self.missing = 0

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Match predictions with questions, and count the questions without a prediction.

        Raises:
            InputError: An id matches two questions, or no id matches a question.
        """
        used: dict[str, str] = {}
        for question in questions:
            key = self._key(question.question_id)
            match = used.setdefault(key, question.question_id) if key is not None else question.question_id
            if match != question.question_id:
                raise InputError(
                    f"{self.path}: the id {key!r} matches {match} and {question.question_id}. Write full ids, or ask "
                    "the questions of one file only (--data)."
                )
        if not used:
            first, expected = next(iter(self.texts), "none"), questions[0].question_id if questions else "none"
            raise InputError(
                f"{self.path}: no id matches a question; its first id is {first!r}, a question's id is {expected!r}"
            )
        self.missing = len(questions) - len(used)

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = 8
    ) -> Iterator[WrittenAnswer]:
        """Return the file's texts for each question, or an empty text if the file has none."""
        for index, question in enumerate(questions):
            key = self._key(question.question_id)
            first, *alternatives = self.texts[key] if key is not None else ("",)
            for method in methods:
                yield WrittenAnswer(index, method, first, alternatives=tuple(alternatives))

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable, because a prediction file has no scores."""
        return refuse_questions(questions, "predictions are asked by the probe write (--set probes=[write])")

    def describe(self) -> dict[str, str | int | float]:
        """Describe the file by its number of predictions and the number of questions without a prediction."""
        return {"predictions": len(self.texts), "questions_without_prediction": self.missing}

    def _key(self, question_id: str) -> str | None:
        return next((key for key in (question_id, official_id(question_id)) if key in self.texts), None)


def official_id(question_id: str) -> str:
    """Return the question's id in the published dataset, such as ``q17`` for ``test/q17``."""
    return question_id.partition("/")[2] or question_id


def read_predictions(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the predicted texts by id; an empty list becomes one empty text.

    Raises:
        InputError: The file or one of its rows is invalid.
    """
    predictions: dict[str, tuple[str, ...]] = {}
    try:
        rows = read_csv_rows(path, HEADER)
        header: list[str] = next(rows, [])
        if [cell.strip() for cell in header] != HEADER:
            raise InputError(f"{path}: the first row must be 'id,ret', got {','.join(header)!r}")
        for row in rows:
            if row:
                _add_row(row, f"{path}, row {rows.line_num}", predictions)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error}). Save it as CSV.") from error
    if not predictions:
        raise InputError(f"{path} holds no predictions; write a row for each question")
    return predictions


def _add_row(row: list[str], where: str, predictions: dict[str, tuple[str, ...]]) -> None:
    if len(row) != len(HEADER):
        raise InputError(
            f"{where}: a row must have two cells, an id and a JSON list in quotes, got {counted(len(row), 'cell')}"
        )
    prediction_id = row[0].strip()
    try:
        texts = json.loads(row[1])
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where}: ret must be a JSON list of texts such as ["Paris"], got {short_repr(row[1])}')
    if not prediction_id or prediction_id in predictions:
        raise InputError(f"{where}: the id {prediction_id!r} is {'a duplicate' if prediction_id else 'empty'}")
    predictions[prediction_id] = tuple(dict.fromkeys(texts)) or ("",)
