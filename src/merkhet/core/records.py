"""Question and answer objects."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.errors import InputError


@dataclass(frozen=True)
class Question:
    """A question with its candidates, as a probe receives it."""

    question_id: str
    task: str
    prompt: str
    answers: tuple[str, ...]
    """All right answers, then their aliases, which are right as text and no candidates."""
    target: str
    candidates: tuple[str, ...]
    language: str = "en"
    template: str | None = None
    words: tuple[str, ...] = ()
    """Words of a question that compares word senses and has sentences as candidates.

    Either one word for all slots, or one word for the slot of the prompt and one for the slot of each candidate.
    """
    entities: tuple[str, ...] = ()
    """Names of the entities that the question mentions; empty if its maker does not record them."""

    @property
    def usages(self) -> list[tuple[str, int, int]]:
        """Prompt and candidates with their words filled in, each as sentence, start and end of the word."""
        texts = (self.prompt, *self.candidates)
        words = self.words if len(self.words) > 1 else self.words * len(texts)
        starts = [text.index(SLOT) for text in texts]
        return [
            (text.replace(SLOT, word, 1), start, start + len(word))
            for text, start, word in zip(texts, starts, words, strict=True)
        ]

    @property
    def right_candidates(self) -> tuple[str, ...]:
        """Right answers without their aliases: those among the candidates; all answers if none is a candidate."""
        return right_candidates(self.answers, self.candidates)

    @property
    def relation(self) -> str:
        """Relation that the question asks about: the template's name without its number, or else the task."""
        return self.template.partition("/")[0] if self.template else self.task


def right_candidates(answers: Sequence[str], candidates: Container[str]) -> tuple[str, ...]:
    """Return the answers that are candidates; all answers if none is."""
    if len(answers) == 1:
        return tuple(answers)
    return tuple(answer for answer in answers if answer in candidates) or tuple(answers)


_AFFIRMATIVE = ("yes", "true")


def affirmative_choice(choices: Sequence[str]) -> str:
    """Return the choice that affirms a statement: "yes" or "true", or else the first."""
    return next((choice for choice in choices if choice.lower() in _AFFIRMATIVE), choices[0])


class QuestionTable(Mapping[str, Question]):
    """Questions by id. Question objects are made on first access; reading a column makes none."""

    def __init__(self, table: pa.Table, make_questions: Callable[[], Iterable[Question]]) -> None:
        self._table, self._make_questions = table, make_questions
        self._columns: dict[str, list[Any]] = {}

    def __getitem__(self, question_id: str) -> Question:
        return self._questions[question_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def column(self, name: str, ids: Sequence[str]) -> list[Any]:
        """Return the values of the column ``name`` for the questions ``ids``."""
        if name not in self._columns:
            self._columns[name] = self._table[name].to_pylist()
        values, rows = self._columns[name], self._rows
        return [values[rows[question_id]] for question_id in ids]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {question_id: row for row, question_id in enumerate(self._table["question_id"].to_pylist())}

    @cached_property
    def _questions(self) -> dict[str, Question]:
        return {question.question_id: question for question in self._make_questions()}


def question_column(questions: Mapping[str, Question], name: str, ids: Sequence[str]) -> list[Any]:
    """Return the field ``name`` of the questions ``ids``; a QuestionTable is read without making objects."""
    if isinstance(questions, QuestionTable):
        return questions.column(name, ids)
    return [getattr(questions[question_id], name) for question_id in ids]


@dataclass(frozen=True)
class Answer:
    """A model's answer to a question, obtained by one probe and one method."""

    question_id: str
    model: str
    probe: str
    method: str
    prediction: str | None = None
    ranked: tuple[tuple[str, float], ...] = ()
    golds: tuple[str, ...] = ()
    """Right answers whose rank is known."""
    gold_ranks: tuple[float, ...] = ()
    """Expected rank of each gold answer."""
    gold_ties: tuple[int, ...] = ()
    """Size of each gold answer's tie group."""
    tied_first: tuple[int, ...] = ()
    """Candidates tied for the first rank, if ``ranked`` has only some of them.

    Runs of positions in the alphabetical order of the candidates: start, stop, start, stop, …
    """
    among: int | None = None
    """Number of ranked items, if other items than the question's candidates were ranked."""
    right: int | None = None
    """Number of right answers among the ranked items, if ``golds`` has only some of them."""
    unusable: str | None = None
    """Reason why the model gave no usable answer; None if the answer is usable."""
    seconds: float | None = None
    repeat: int | None = None
    """Number of the repetition, if a question is repeated with other pseudowords or in another random order.

    The score of the question is the mean over its repetitions.
    """
    outcome: str | None = None
    """Outcome of a chat model's replies: answered, no answer or refused."""
    replies: tuple[str, ...] = ()
    """Replies of a chat model, one per request."""
    positions: tuple[int | None, ...] = ()
    """Position of the chosen option in each request, counted from 0; None if no option was chosen."""
    right_positions: tuple[int, ...] = ()
    """Position of the right option in each request, counted from 0."""
    letters: tuple[str | None, ...] = ()
    """Letter of the chosen option in each request; None if no option was chosen."""
    right_letters: tuple[str, ...] = ()
    """Letter of the right option in each request."""

    def as_row(self) -> dict[str, Any]:
        """Return the answer as a row of the answers table."""
        return {**vars(self), "ranked": [{"candidate": candidate, "score": score} for candidate, score in self.ranked]}


def questions_from_rows(
    rows: Iterable[Mapping[str, Any]],
    candidate_sets: Mapping[str, tuple[str, ...]],
    entities: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> list[Question]:
    """Make questions from rows of the questions table and look up their candidates.

    Args:
        entities: Names of entities by question id.

    Raises:
        InputError: A candidate set is unknown.
    """
    questions = []
    for row in rows:
        set_name = row["candidate_set"]
        if set_name is not None and set_name not in candidate_sets:
            raise InputError(
                f"the question {row['prompt']!r} uses the candidate set {set_name!r}, which is not in the table of "
                "candidates; add it there, or give the question its own 'choices'"
            )
        questions.append(
            Question(
                question_id=row["question_id"],
                task=row["task"],
                prompt=row["prompt"],
                answers=tuple(row["answers"]),
                target=row["target"],
                candidates=tuple(row["choices"]) if set_name is None else candidate_sets[set_name],
                language=row["language"],
                template=row["template"],
                words=tuple(row.get("words") or ()),
                entities=entities.get(row["question_id"], ()),
            )
        )
    return questions
