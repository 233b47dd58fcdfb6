"""Prompts with an open slot as token rows, to write answers and to train on them."""

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
    """Prompts of a masked model: several masks in the slot."""

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer) -> None:
        self.candidate_tokenizer = candidate_tokenizer
        self.mask = int(tokenizer.mask_token_id)
        end_tokens = (tokenizer.pad_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id)
        self.end = int(next((token for token in end_tokens if token is not None), 0))

    def mask_slot(self, prompt: str, length: int) -> tuple[Row, int]:
        """Tokenize a prompt with ``length`` masks in its slot; return also the column of the first mask.

        A filler word is in the slot during tokenization, and masks then replace its tokens. The text around the slot
        thus has the tokens that it has around a word.

        Raises:
            UnusableError: The prompt is too long, or the slot shares a token with the text around it.
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
        """Tokenize an answer in its sentence, and pad it with end tokens to ``length``; raises UnusableError."""
        before, after = prompt.split(SLOT)
        sentence = before + text + after
        (encoding,) = self.candidate_tokenizer.encode([sentence])
        start, stop = _separate_span(encoding, sentence, len(before), len(before) + len(text))
        if start == stop:
            # It shares a token with punctuation next to it, so it is tokenized alone.
            encoding = self.candidate_tokenizer.backend.encode(text, add_special_tokens=False)
            start, stop = 0, len(encoding.ids)
        tokens = encoding.ids[start:stop]
        _check_answer(tokens, self.candidate_tokenizer.unknown, length)
        return (*tokens, *[self.end] * (length - len(tokens)))


class TextPrompts:
    """Prompts of a causal model: a text to continue.

    ``continue``: the text before the slot if nothing but punctuation follows it; else the sentence with a blank and a
    line that asks for the missing words. ``chat``: the sentence with a blank in a user's message.
    """

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, start_token: int) -> None:
        self.tokenizer = tokenizer
        self.candidate_tokenizer = candidate_tokenizer
        self.start_token = start_token
        self.special = frozenset(tokenizer.all_special_ids)

    def prompt_tokens(self, question: Question, method: str, length: int) -> Row:
        """Tokenize a prompt; raises UnusableError if there is no room for an answer of ``length`` tokens."""
        row = self.tokenize(self._prompt_text(question, method)[0], method)
        check_length(len(row) + length, self.candidate_tokenizer.max_tokens)
        return row

    def answer_tokens(self, question: Question, method: str, length: int) -> tuple[Row, Row]:
        """Tokenize a prompt and its right answer, which ends with an end token; raises UnusableError."""
        text, gap = self._prompt_text(question, method)
        prompt = self.tokenize(text, method)
        full = self.tokenize(text + gap + question.target, method)
        if full[: len(prompt)] != prompt:
            # The answer shares a token with the prompt: it is tokenized as the model would write it after the prompt.
            backend = self.candidate_tokenizer.backend
            full = (*prompt, *backend.encode(gap + question.target, add_special_tokens=False).ids)
        tokens = full[len(prompt) :]
        _check_answer(tokens, self.candidate_tokenizer.unknown, length)
        check_length(len(full) + 1, self.candidate_tokenizer.max_tokens)
        return prompt, (*tokens, *self._end_tokens())

    def closing_mark(self, question: Question, method: str) -> str:
        """Return the punctuation mark after the slot that ends an answer; empty if there is none."""
        after = question.prompt.split(SLOT)[1].strip()
        closing = after[:1] in _CLOSING or unicodedata.category(after[:1] or " ") == "Pe"
        return after[:1] if closing and method == "continue" and _is_punctuation(after) else ""

    def _prompt_text(self, question: Question, method: str) -> tuple[str, str]:
        """Return the text before the answer, and the space between the two."""
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
        """Tokenize a text to continue."""
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
    """Raise UnusableError for an answer that the model cannot write."""
    if not tokens:
        raise UnusableError("the answer has no token in this model's vocabulary")
    if unknown is not None and unknown in tokens:
        raise UnusableError("the answer holds a token that this model does not know")
    if len(tokens) > length:
        raise UnusableError(f"the answer is longer than {length} pieces")


def _separate_span(encoding: Any, sentence: str, first: int, last: int) -> tuple[int, int]:
    """Return the span of tokens of the characters from first to last; (0, 0) if it covers more than a space before."""
    start, stop = token_span(encoding, first, last)
    if start == stop:
        return 0, 0
    low, high = encoding.offsets[start][0], encoding.offsets[stop - 1][1]
    return (start, stop) if high <= last and not sentence[low:first].strip() else (0, 0)
