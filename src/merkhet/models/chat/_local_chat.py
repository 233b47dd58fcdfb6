"""Chat with a causal model on this machine, by its chat template or else as plain text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from merkhet.models._text_generation import Prompt, TextWriter
from merkhet.models.chat._chat_settings import ChatSettings
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, Message, strip_reasoning
from merkhet.models.row_scheduler import Row
from merkhet.models.tokenize_candidates import UnusableError, check_length

_ANSWER = "\nAnswer:"
_END_TOKEN = re.compile(r"end|eot|eos|</s>|eom", re.IGNORECASE)
_SYSTEM_ERROR = re.compile(r"system", re.IGNORECASE)


class LocalChat:
    """Greedy chat with a causal model; replies have exact log-probabilities of letters.

    A model without a chat template continues a plain text in which "Answer:" follows every question. Its reply ends at
    the first line break.
    """

    def __init__(self, writer: TextWriter, settings: ChatSettings) -> None:
        self.writer, self.tokenizer, self.settings = writer, writer.network.tokenizer, settings
        self.has_template = bool(getattr(self.tokenizer, "chat_template", None))
        self.backend = writer.prompts.candidate_tokenizer.backend
        self.end_tokens = self._find_end_tokens()

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """Yield the reply to each request; equal requests are computed once."""
        indices_of: dict[Prompt, list[int]] = defaultdict(list)
        for index, request in enumerate(requests):
            try:
                length = max(request.max_tokens, self.settings.length or 0)
                row = self._tokenize(request.messages)
                check_length(len(row) + length, self.writer.prompts.candidate_tokenizer.max_tokens)
                indices_of[row, length, request.letters].append(index)
            except UnusableError as reason:
                yield ChatReply(index, unusable=str(reason))
        for prompt, reply in self.writer.run_prompts(indices_of, self._generate):
            yield from (replace(reply, index=index) for index in indices_of[prompt])

    def _generate(self, prompts: Sequence[Prompt], length: int) -> list[ChatReply]:
        continuations, logits = self.writer.continue_rows(
            [row for row, _, _ in prompts],
            length,
            self.end_tokens,
            lambda _, tokens: not self.has_template and "\n" in self._decode(tokens).lstrip(),
        )
        logprobs = torch.log_softmax(logits.double(), dim=1).cpu()
        return [
            ChatReply(
                line,
                self._strip(self._decode(continuation.tokens)),
                self._letter_logprobs(logprobs[line], letters),
                truncated=not continuation.ended,
            )
            for line, (continuation, (_, _, letters)) in enumerate(zip(continuations, prompts, strict=True))
        ]

    def _strip(self, text: str) -> str:
        return strip_reasoning(text) if self.has_template else text.strip().partition("\n")[0].strip()

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))

    def _letter_logprobs(self, logprobs: torch.Tensor, letters: Sequence[str]) -> dict[str, float] | None:
        """Return the log-probability that the reply begins with each letter, with or without a leading space.

        None if ``letters`` is empty.
        """
        if not letters:
            return None
        return {letter: float(torch.logsumexp(logprobs[self._letter_tokens(letter)], dim=0)) for letter in letters}

    def _letter_tokens(self, letter: str) -> list[int]:
        tokens = set()
        for text in (letter, f" {letter}"):
            ids = self.backend.encode(text, add_special_tokens=False).ids
            if len(ids) == 1:
                tokens.add(int(ids[0]))
        return sorted(tokens) or [int(self.backend.encode(letter, add_special_tokens=False).ids[0])]

    def _tokenize(self, messages: Sequence[Message]) -> Row:
        system = [("system", self.settings.system)] if self.settings.system else []
        conversation: list[Message] = [*system, *messages]
        if not self.has_template:
            return self.writer.prompts.tokenize(_plain_text(conversation))
        text = self._apply_template(conversation)
        return tuple(self.backend.encode(text, add_special_tokens=False).ids)

    def _apply_template(self, messages: Sequence[Message]) -> str:
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self.tokenizer.apply_chat_template(_as_dicts(messages), **options))
        except Exception as error:  # Templates raise any exception; many do not accept a system message.
            if messages[0][0] == "system" and _SYSTEM_ERROR.search(str(error)):
                (_, system), (role, first), *rest = messages
                return str(
                    self.tokenizer.apply_chat_template(_as_dicts([(role, f"{system}\n\n{first}"), *rest]), **options)
                )
            raise UnusableError(f"its chat template fails: {error}") from error

    def _find_end_tokens(self) -> frozenset[int]:
        special = {token: str(self.tokenizer.decode([token])) for token in self.writer.decoder.special}
        tokens = {token for token, text in special.items() if _END_TOKEN.search(text)}
        for source in (self.tokenizer, getattr(self.writer.model, "generation_config", None)):
            eos = getattr(source, "eos_token_id", None)
            tokens.update(eos if isinstance(eos, list | tuple) else [eos] if eos is not None else [])
        return frozenset(int(token) for token in tokens)


def _plain_text(messages: Sequence[Message]) -> str:
    texts = []
    for role, text in messages:
        texts.append({"user": f"{text}{_ANSWER}", "assistant": f" {text}\n\n"}.get(role, f"{text}\n\n"))
    return "".join(texts)


def _as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in messages]
