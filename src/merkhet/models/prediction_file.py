"""Answers that were made elsewhere: a CSV of ``id,ret``, asked like a model by the probe ``write``."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.core.text_formats import short_repr
from merkhet.models.protocol import CandidateScores, WrittenAnswer

HEADER = ["id", "ret"]


class PredictionFile:
    """A file of predictions: ``id`` is a question's id, or the official one after its slash; ``ret`` a list of texts.

    A question without a prediction is answered with an empty text, and counted. Of several texts the best counts.
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
        """Count the questions without a prediction; refuses ids that fit no question, or two."""
        used: dict[str, str] = {}
        for question in questions:
            key = self._key(question.question_id)
            other = used.setdefault(key, question.question_id) if key is not None else question.question_id
            if other != question.question_id:
                raise InputError(
                    f"{self.path}: the id {key!r} is that of {other} and of {question.question_id}. Write whole ids, "
                    "or ask the questions of one file alone (--data)."
                )
        if not used:
            one, asked = next(iter(self.texts), "none"), questions[0].question_id if questions else "none"
            raise InputError(
                f"{self.path}: no id is that of a question; the first is {one!r}, and a question's is {asked!r}"
            )
        self.missing = len(questions) - len(used)

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = 8
    ) -> Iterator[WrittenAnswer]:
        """What the file has for each question."""
        for index, question in enumerate(questions):
            key = self._key(question.question_id)
            first, *others = self.texts[key] if key is not None else ("",)
            for method in methods:
                yield WrittenAnswer(index, method, first, others=tuple(others))

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Nothing: what was written elsewhere says nothing of candidates."""
        for index in range(len(questions)):
            yield CandidateScores(index, unusable="predictions are asked by the probe write (--set probes=[write])")

    def describe(self) -> dict[str, str | int | float]:
        """How many predictions there are, and how many questions are without one."""
        return {"predictions": len(self.texts), "questions_without_prediction": self.missing}

    def _key(self, question: str) -> str | None:
        return next((key for key in (question, official_id(question)) if key in self.texts), None)


def official_id(question: str) -> str:
    """The id that a published question has in its own file: what stands after the split (``test/q17``)."""
    return question.partition("/")[2] or question


def read_predictions(path: Path) -> dict[str, tuple[str, ...]]:
    """The texts given for each id, at least one; refuses a wrong row by its number."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            rows = csv.reader(handle)
            head = next(rows, [])
            if [cell.strip() for cell in head] != HEADER:
                raise InputError(f"{path}: the first row is {','.join(head)!r}, and should be 'id,ret'")
            for row in rows:
                if row:
                    _take(row, f"{path}, row {rows.line_num}", found)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file: {error}") from error
    if not found:
        raise InputError(f"{path} holds no predictions")
    return found


def _take(row: list[str], where: str, found: dict[str, tuple[str, ...]]) -> None:
    if len(row) != len(HEADER):
        raise InputError(f"{where}: a row has an id and a JSON list in quotes, and this one has {len(row)} cells")
    identity = row[0].strip()
    try:
        texts = json.loads(row[1])
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'{where}: ret is {short_repr(row[1])}, and should be a JSON list of texts such as ["Paris"]'
        ) from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where}: ret is {short_repr(row[1])}, and should be a JSON list of texts such as ["Paris"]')
    if not identity or identity in found:
        raise InputError(f"{where}: the id {identity!r} is {'there already' if identity else 'empty'}")
    found[identity] = tuple(dict.fromkeys(texts)) or ("",)
