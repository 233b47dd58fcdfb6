"""A causal model on this machine is talked to: by its chat template, or as plain text where it has none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from merkhet.models._text_generation import PaddedTexts, TextWriter
from merkhet.models.batching import run_batches
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, Message, without_thoughts
from merkhet.models.chat.chat_settings import ChatSettings
from merkhet.models.row_scheduler import Row
from merkhet.models.tokenize_candidates import UnusableError, refuse_too_long

_ANSWER = "\nAnswer:"
_END = re.compile(r"end|eot|eos|</s>|eom", re.IGNORECASE)
_NO_SYSTEM = re.compile(r"system", re.IGNORECASE)


class LocalChat:
    """Talks to a causal model, greedily; replies come with the exact log-probabilities of letters.

    A model without a chat template goes on with a text in which every question is followed by "Answer:"; its reply ends
    with the line.
    """

    def __init__(self, writer: TextWriter, tokenizer: Any, settings: ChatSettings) -> None:
        self.writer, self.tokenizer, self.settings = writer, tokenizer, settings
        self.has_template = bool(getattr(tokenizer, "chat_template", None))
        self.backend = writer.prompts.candidate_tokenizer.backend
        self.ends = self._ends()

    def reply(self, requests: Sequence[ChatRequest], budget: int) -> Iterator[tuple[ChatReply, int]]:
        """Each reply, with the budget of tokens that was found. Equal requests are computed once."""
        asked: dict[tuple[Row, int, tuple[str, ...]], list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            try:
                length = max(request.length, self.settings.length or 0)
                row = self._tokens(request.messages)
                refuse_too_long(len(row) + length, self.writer.prompts.candidate_tokenizer.max_tokens)
                asked[row, length, request.letters].append(place)
            except UnusableError as reason:
                yield ChatReply(place, unusable=str(reason)), budget
        groups: dict[tuple[int, int], list[tuple[Row, int, tuple[str, ...]]]] = defaultdict(list)
        for one in sorted(asked, key=lambda one: (-len(one[0]), one)):
            groups[one[1], 0 if self.writer.pads_alike else len(one[0])].append(one)
        for (length, _), some in groups.items():
            found: dict[int, ChatReply] = {}

            def forward(batch: list[int], some: Any = some, length: int = length, found: Any = found) -> None:
                found.update(zip(batch, self._go_on([some[i] for i in batch], length), strict=True))

            budget = run_batches([len(row) + length for row, _, _ in some], budget, forward)
            for number, one in enumerate(some):
                made = found[number]
                for place in asked[one]:
                    yield ChatReply(place, made.text, made.letters, cut=made.cut), budget

    def _go_on(self, some: Sequence[tuple[Row, int, tuple[str, ...]]], length: int) -> list[ChatReply]:
        tokens: list[list[int]] = [[] for _ in some]
        letters: list[dict[str, float] | None] = [None] * len(some)
        ended = [False] * len(some)
        with torch.inference_mode():
            text = PaddedTexts(self.writer, [row for row, _, _ in some])
            for step in range(length):
                logits = text.step()
                if step == 0:
                    shares = torch.log_softmax(logits.double(), dim=1).cpu()
                    letters = [self._letters(shares[line], wanted) for line, (_, _, wanted) in enumerate(some)]
                best = logits.argmax(dim=1)
                text.add(best[:, None])
                for line, token in enumerate(best.tolist()):
                    if ended[line]:
                        continue
                    if token in self.ends:
                        ended[line] = True
                        continue
                    tokens[line].append(token)
                    ended[line] = not self.has_template and "\n" in self._text(tokens[line]).lstrip()
                if all(ended):
                    break
        return [
            ChatReply(line, self._cut(self._text(own)), letters[line], cut=not ended[line])
            for line, own in enumerate(tokens)
        ]

    def _cut(self, text: str) -> str:
        return without_thoughts(text) if self.has_template else text.strip().partition("\n")[0].strip()

    def _text(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def _letters(self, shares: torch.Tensor, letters: Sequence[str]) -> dict[str, float] | None:
        """The log-probability that the text begins with each letter, with or without a blank before it."""
        if not letters:
            return None
        return {letter: float(torch.logsumexp(shares[self._beginnings(letter)], dim=0)) for letter in letters}

    def _beginnings(self, letter: str) -> list[int]:
        """The tokens that are a letter."""
        found = set()
        for text in (letter, f" {letter}"):
            ids = self.backend.encode(text, add_special_tokens=False).ids
            if len(ids) == 1:
                found.add(int(ids[0]))
        return sorted(found) or [int(self.backend.encode(letter, add_special_tokens=False).ids[0])]

    def _tokens(self, messages: Sequence[Message]) -> Row:
        said = [("system", self.settings.system)] if self.settings.system else []
        whole: list[Message] = [*said, *messages]
        if not self.has_template:
            return self.writer.prompts.tokens_of(_plain(whole))
        text = self._templated(whole)
        return tuple(self.backend.encode(text, add_special_tokens=False).ids)

    def _templated(self, messages: Sequence[Message]) -> str:
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self.tokenizer.apply_chat_template(_as_dicts(messages), **options))
        except Exception as error:  # Templates raise what they like; many take no system message.
            if messages[0][0] == "system" and _NO_SYSTEM.search(str(error)):
                (_, system), (role, first), *rest = messages
                return str(
                    self.tokenizer.apply_chat_template(_as_dicts([(role, f"{system}\n\n{first}"), *rest]), **options)
                )
            raise UnusableError(f"its chat template fails: {error}") from error

    def _ends(self) -> frozenset[int]:
        """The tokens that end a reply."""
        special = {token: str(self.tokenizer.decode([token])) for token in self.writer.decoder.special}
        found = {token for token, text in special.items() if _END.search(text)}
        for named in (self.tokenizer, getattr(self.writer.model, "generation_config", None)):
            ends = getattr(named, "eos_token_id", None)
            found.update(ends if isinstance(ends, list | tuple) else [ends] if ends is not None else [])
        return frozenset(int(token) for token in found)


def _plain(messages: Sequence[Message]) -> str:
    parts = []
    for role, text in messages:
        parts.append({"user": f"{text}{_ANSWER}", "assistant": f" {text}\n\n"}.get(role, f"{text}\n\n"))
    return "".join(parts)


def _as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in messages]
