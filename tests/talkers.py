"""Models that say what a test tells them to, and questions for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from merkhet.core.records import Question
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest


class Talker:
    """Replies by a function of what was asked; a dict is fields of the reply."""

    kind = "chat"
    methods: tuple[str, ...] = ()
    fingerprint = "talker"

    def __init__(self, says: Callable[[ChatRequest], str | dict[str, Any]], letters: bool = False) -> None:
        self.name = "talker"
        self.says, self.letters = says, letters
        self.heard: list[ChatRequest] = []

    def has_letter_logprobs(self) -> bool:
        return self.letters

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """In an order that is not that of the requests, as replies come from an endpoint."""
        self.heard += requests
        for index, request in reversed(list(enumerate(requests))):
            said = self.says(request)
            yield ChatReply(index, **({"text": said} if isinstance(said, str) else said))

    def describe(self) -> dict[str, str | int | float]:
        return {}

    def score_candidates(self, questions: Any, methods: Any) -> Any:
        raise AssertionError


def capital(number: int = 0, count: int = 4, **changed: Any) -> Question:
    names = tuple(f"city {place}" for place in range(count))
    given: dict[str, Any] = {
        "question_id": f"q{number}",
        "task": "completion",
        "prompt": f"The capital of country {number} is [MASK].",
        "answers": (names[number % count],),
        "target": names[number % count],
        "candidates": names,
        "template": "capital/1",
    }
    return Question(**{**given, **changed})


def shown(request: ChatRequest) -> list[str]:
    """The choices of a request, in the order of their letters."""
    lines = request.messages[-1][1].splitlines()
    return [line[3:] for line in lines if line[1:3] == ". "]


def knows(right: Callable[[ChatRequest], str]) -> Callable[[ChatRequest], str]:
    """One who names the letter of what is right."""
    return lambda request: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[shown(request).index(right(request))]


def city(request: ChatRequest, count: int = 4) -> str:
    """The right city of a question of :func:`capital`."""
    number = int(request.messages[-1][1].partition("country ")[2].split()[0])
    return f"city {number % count}"
