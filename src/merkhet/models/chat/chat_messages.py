"""What is said to a chat model and what it replies, whoever it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Message = tuple[str, str]
"""Who speaks (system, user, assistant) and what is said."""


@dataclass(frozen=True)
class ChatRequest:
    """What a model is told, and how many tokens its reply may have.

    ``letters`` are what the reply may begin with: where the model gives log-probabilities, those of these.
    """

    messages: tuple[Message, ...]
    length: int
    letters: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChatReply:
    """What a model replied to the request at a place (``index``), or the reason why it cannot be asked that.

    ``letters`` are the natural logarithms of the probabilities that the reply begins with each letter, as far as the
    model gives them; None where it gives none. ``refused``: the model or whoever serves it declined to answer.
    ``cut``: the reply was longer than it may be.
    """

    index: int
    text: str = ""
    letters: Mapping[str, float] | None = None
    refused: bool = False
    cut: bool = False
    unusable: str | None = None


@runtime_checkable
class Converses(Protocol):
    """A model that replies to messages."""

    name: str
    kind: str

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """Reply to each request, in whatever order is fastest."""

    def gives_letters(self) -> bool:
        """Whether replies come with the log-probabilities of letters."""


_THOUGHT = re.compile(r"^\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """A reply without what a model wrote to itself before it."""
    return _THOUGHT.sub("", text, count=1).strip()
