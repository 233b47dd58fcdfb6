"""Requests to chat models, and the replies of these models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Message = tuple[str, str]
"""A role (system, user, assistant) and a text."""


@dataclass(frozen=True)
class ChatRequest:
    """A request to a chat model."""

    messages: tuple[Message, ...]
    max_tokens: int
    """The maximum number of tokens of the reply."""
    letters: tuple[str, ...] = ()
    """Letters whose log-probability at the beginning of the reply is requested."""


@dataclass(frozen=True)
class ChatReply:
    """The reply to a request, or the reason why the model cannot be asked."""

    index: int
    """The index of the request."""
    text: str = ""
    letters: Mapping[str, float] | None = None
    """The log-probability that the reply begins with each letter; letters that the model does not report are missing.

    None if log-probabilities were not requested or not returned.
    """
    refused: bool = False
    """Whether the model or its server declined to answer."""
    truncated: bool = False
    """Whether the reply reached the maximum number of tokens."""
    unusable: str | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A model that replies to messages."""

    name: str
    kind: str

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """Reply to each request; replies come in any order."""

    def has_letter_logprobs(self) -> bool:
        """Return whether replies have log-probabilities of letters."""


_REASONING = re.compile(r"^\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)


def strip_reasoning(text: str) -> str:
    """Remove a reasoning block such as ``<think>…</think>`` from the beginning of a reply."""
    return _REASONING.sub("", text, count=1).strip()
