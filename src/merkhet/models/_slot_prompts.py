"""Tokenized prompts with an open slot, for writing answers and for training."""

from __future__ import annotations

import unicodedata
from typing import Any

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.row_scheduler import Row
from merkhet.models.tokenize_candidates import CandidateTokenizer, UnusableError, check_length, token_span

BLANK = "____"
CONTINUE_PROMPT = "{sentence}\nThe missing words are:"
CHAT_PROMPT = "Fill in the blank with the missing words. Reply with the missing words alone.\n{sentence}"
_CLOSING = ('"', "”", "»", "?", "!", ";", ":")
_FILLERS = ("it", "One", "7", "—")


class MaskPrompts:
    """Prompts of a masked model, with several masks in the slot."""

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer) -> None:
        self.candidate_tokenizer = candidate_tokenizer
        self.mask = int(tokenizer.mask_token_id)
        end_tokens = (tokenizer.pad_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id)
        self.end = int(next((token for token in end_tokens if token is not None), 0))

    def mask_slot(self, prompt: str, length: int) -> tuple[Row, int]:
        """Tokenize a prompt with ``length`` masks in its slot; return the tokens and the index of the first mask.

        The prompt is tokenized with a filler word in its slot, whose tokens are then replaced by masks. So the text
        around the slot has the same tokens as around a word.

        Raises:
            UnusableError: The prompt is too long, or every filler word shares a token with the text around the slot.
        """
        before, after = prompt.split(SLOT)
        for filler in _FILLERS:
            sentence = before + filler + after
            (encoding,) = self.candidate_tokenizer.encode([sentence])
            start, stop = _separate_span(encoding, sentence, len(before), len(before) + len(filler))
            if start == stop:
                continue
            row = (*encoding.ids[:start], *[self.mask] * length, *encoding.ids[stop:])
            check_length(len(row), self.candidate_tokenizer.max_tokens)
            return row, start
        raise UnusableError("the slot shares a token with the text around it")

    def answer_tokens(self, prompt: str, text: str, length: int) -> Row:
        """Tokenize an answer in its sentence, and pad it with end tokens to ``length``.

        Raises:
            UnusableError: The answer has no token, an unknown token, or more than ``length`` tokens.
        """
        before, after = prompt.split(SLOT)
        sentence = before + text + after
        (encoding,) = self.candidate_tokenizer.encode([sentence])
        start, stop = _separate_span(encoding, sentence, len(before), len(before) + len(text))
        if start == stop:
            # The answer shares a token with punctuation next to it, so it is tokenized alone.
            encoding = self.candidate_tokenizer.backend.encode(text, add_special_tokens=False)
            start, stop = 0, len(encoding.ids)
        tokens = encoding.ids[start:stop]
        _check_answer(tokens, self.candidate_tokenizer.unknown, length)
        return (*tokens, *[self.end] * (length - len(tokens)))


class TextPrompts:
    """Prompts of a causal model, each a text to continue.

    With the method ``continue``, the prompt is the text before the slot if only punctuation follows the slot. Otherwise
    it is the sentence with a blank, and a line that asks for the missing words. With the method ``chat``, the prompt is
    a user's message with the sentence, which has a blank in its slot.
    """

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, start_token: int) -> None:
        self.tokenizer = tokenizer
        self.candidate_tokenizer = candidate_tokenizer
        self.start_token = start_token
        self.special = frozenset(tokenizer.all_special_ids)

    def prompt_tokens(self, question: Question, method: str, length: int) -> Row:
        """Tokenize the prompt of a question.

        Raises:
            UnusableError: The prompt and an answer of ``length`` tokens exceed the maximum input length, or the chat
                template is missing.
        """
        row = self.tokenize(self._prompt_text(question, method)[0], method)
        check_length(len(row) + length, self.candidate_tokenizer.max_tokens)
        return row

    def answer_tokens(self, question: Question, method: str, length: int) -> tuple[Row, Row]:
        """Tokenize the prompt of a question, and its right answer followed by an end token.

        Raises:
            UnusableError: The answer has no token, an unknown token or more than ``length`` tokens, or the whole is too
                long for the model, or the chat template is missing.
        """
        text, gap = self._prompt_text(question, method)
        prompt = self.tokenize(text, method)
        full = self.tokenize(text + gap + question.target, method)
        if full[: len(prompt)] != prompt:
            # The answer shares a token with the prompt, so it is tokenized alone, as the model would write it.
            backend = self.candidate_tokenizer.backend
            full = (*prompt, *backend.encode(gap + question.target, add_special_tokens=False).ids)
        tokens = full[len(prompt) :]
        _check_answer(tokens, self.candidate_tokenizer.unknown, length)
        check_length(len(full) + 1, self.candidate_tokenizer.max_tokens)
        return prompt, (*tokens, *self._end_tokens())

    def closing_mark(self, question: Question, method: str) -> str:
        """Return the punctuation mark after the slot that ends an answer; an empty string if no mark does."""
        after = question.prompt.split(SLOT)[1].strip()
        closing = after[:1] in _CLOSING or unicodedata.category(after[:1] or " ") == "Pe"
        return after[:1] if closing and method == "continue" and _is_punctuation(after) else ""

    def _prompt_text(self, question: Question, method: str) -> tuple[str, str]:
        """Return the prompt's text, and the whitespace between this text and the answer."""
        before, after = question.prompt.split(SLOT)
        sentence = before + BLANK + after
        if method == "chat":
            if not getattr(self.tokenizer, "chat_template", None):
                raise UnusableError("its tokenizer has no chat template")
            messages = [{"role": "user", "content": CHAT_PROMPT.format(sentence=sentence)}]
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
            return str(text), ""
        if _is_punctuation(after):
            stripped = before.rstrip()
            return stripped, before[len(stripped) :] if stripped else ""
        return CONTINUE_PROMPT.format(sentence=sentence), " "

    def tokenize(self, text: str, method: str = "continue") -> Row:
        """Tokenize a text to continue, without special tokens at its end unless ``method`` is ``chat``."""
        special_tokens = method != "chat" and self.candidate_tokenizer.special_tokens
        ids = list(self.candidate_tokenizer.backend.encode(text, add_special_tokens=special_tokens).ids)
        while len(ids) > 1 and ids[-1] in self.special and method != "chat":
            ids.pop()  # Some tokenizers end every text with a special token.
        return tuple(ids) or (self.start_token,)

    def _end_tokens(self) -> Row:
        end = self.tokenizer.eos_token_id
        if end is not None:
            return (int(end),)
        return tuple(self.candidate_tokenizer.backend.encode("\n", add_special_tokens=False).ids)


def _is_punctuation(text: str) -> bool:
    return all(character.isspace() or unicodedata.category(character).startswith("P") for character in text)


def _check_answer(tokens: Row | list[int], unknown: int | None, length: int) -> None:
    """Raise UnusableError for an answer without tokens, with an unknown token, or longer than ``length``."""
    if not tokens:
        raise UnusableError("the answer has no token in this model's vocabulary")
    if unknown is not None and unknown in tokens:
        raise UnusableError("the answer holds a token that this model does not know")
    if len(tokens) > length:
        raise UnusableError(f"the answer is longer than {length} pieces")


def _separate_span(encoding: Any, sentence: str, first: int, last: int) -> tuple[int, int]:
    """Return the range of tokens that overlap the characters from ``first`` to ``last``.

    (0, 0) if no token overlaps them, or if these tokens cover other text than a space before ``first``.
    """
    start, stop = token_span(encoding, first, last)
    if start == stop:
        return 0, 0
    low, high = encoding.offsets[start][0], encoding.offsets[stop - 1][1]
    return (start, stop) if high <= last and not sentence[low:first].strip() else (0, 0)
