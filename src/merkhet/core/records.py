"""Questions and answers as objects, for code that works on one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import InputError


@dataclass(frozen=True)
class Question:
    """A question with its candidates in place: what a probe gets.

    A question that compares senses has ``words``: what stands in the slot of the prompt and of each candidate, which
    are sentences then; one word stands in all of them.
    """

    question_id: str
    task: str
    prompt: str
    answers: tuple[str, ...]
    target: str
    candidates: tuple[str, ...]
    language: str = "en"
    template: str | None = None
    words: tuple[str, ...] = ()

    @property
    def usages(self) -> list[tuple[str, int, int]]:
        """The prompt and the candidates with their words in place: a sentence, and from where to where its word is."""
        texts = (self.prompt, *self.candidates)
        words = self.words if len(self.words) > 1 else self.words * len(texts)
        starts = [text.index(SLOT) for text in texts]
        return [
            (text.replace(SLOT, word, 1), start, start + len(word))
            for text, start, word in zip(texts, starts, words, strict=True)
        ]

    @property
    def relation(self) -> str:
        """What is asked about: the template's name without its number, or the task."""
        return self.template.partition("/")[0] if self.template else self.task


@dataclass(frozen=True)
class Answer:
    """What a model gave for a question by one probe and one method; ``unusable`` says why there is nothing.

    ``golds`` are the right answers that were ranked, ``gold_ranks`` their expected ranks and ``gold_ties`` the sizes of
    their tie groups; ``among`` is how many things were ranked, where these are not the question's own candidates.
    ``repeat`` numbers answers to a question that is asked several times in the same way (with other pseudowords, in
    another random order); its score is the mean over them.

    Where the model was talked to, ``replies`` are its words, one for each time that it was asked, ``outcome`` says what
    they come to (answered, no answer, refused). ``positions`` are the places at which what it chose was shown each time
    (None if it chose nothing), ``right_positions`` those of the right answer, counted from 0; ``letters`` and
    ``right_letters`` are the letters that stood before them.
    """

    question_id: str
    model: str
    probe: str
    method: str
    prediction: str | None = None
    ranked: tuple[tuple[str, float], ...] = ()
    golds: tuple[str, ...] = ()
    gold_ranks: tuple[float, ...] = ()
    gold_ties: tuple[int, ...] = ()
    among: int | None = None
    unusable: str | None = None
    seconds: float | None = None
    repeat: int | None = None
    outcome: str | None = None
    replies: tuple[str, ...] = ()
    positions: tuple[int | None, ...] = ()
    right_positions: tuple[int, ...] = ()
    letters: tuple[str | None, ...] = ()
    right_letters: tuple[str, ...] = ()

    def as_row(self) -> dict[str, Any]:
        """The row of the answers table."""
        return {
            **vars(self),
            "ranked": [{"candidate": candidate, "score": score} for candidate, score in self.ranked],
        }


def questions_from_rows(
    rows: Iterable[Mapping[str, Any]], candidate_sets: Mapping[str, tuple[str, ...]]
) -> list[Question]:
    """Questions with their candidates looked up; refuses a candidate set that is not there."""
    questions = []
    for row in rows:
        named = row["candidate_set"]
        if named is not None and named not in candidate_sets:
            raise InputError(
                f"question {row['question_id']} uses the candidate set {named!r}, which is not in the table of "
                "candidates; add it there, or give the question its own 'choices'"
            )
        questions.append(
            Question(
                question_id=row["question_id"],
                task=row["task"],
                prompt=row["prompt"],
                answers=tuple(row["answers"]),
                target=row["target"],
                candidates=tuple(row["choices"]) if named is None else candidate_sets[named],
                language=row["language"],
                template=row["template"],
                words=tuple(row.get("words") or ()),
            )
        )
    return questions
