"""A question with an open slot as rows of tokens, for a model that writes into it and for one that learns to."""

from __future__ import annotations

import unicodedata
from typing import Any

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.row_scheduler import Row
from merkhet.models.tokenize_candidates import CandidateTokenizer, UnusableError, refuse_too_long, touching

BLANK = "____"
FRAME = "{sentence}\nThe missing words are:"
REQUEST = "Fill in the blank with the missing words. Reply with the missing words alone.\n{sentence}"
_CLOSING = ('"', "”", "»", "?", "!", ";", ":")
_FILLERS = ("it", "One", "7", "—")


class MaskFrame:
    """Prompts of a masked model: so many masks stand in the slot."""

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer) -> None:
        self.candidate_tokenizer = candidate_tokenizer
        self.mask = int(tokenizer.mask_token_id)
        ends = (tokenizer.pad_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id)
        self.end = int(next((token for token in ends if token is not None), 0))

    def mask_slot(self, prompt: str, length: int) -> tuple[Row, int]:
        """The tokens of a prompt with masks in its slot, and the column of the first; raises UnusableError.

        A word stands in the slot while the sentence is tokenised, and masks take the place of its tokens, so that the
        text around the slot has the tokens that it has around a word.
        """
        before, after = prompt.split(SLOT)
        for filler in _FILLERS:
            sentence = before + filler + after
            (encoding,) = self.candidate_tokenizer.encode([sentence])
            start, stop = _alone(encoding, sentence, len(before), len(before) + len(filler))
            if start == stop:
                continue
            row = (*encoding.ids[:start], *[self.mask] * length, *encoding.ids[stop:])
            refuse_too_long(len(row), self.candidate_tokenizer.max_tokens)
            return row, start
        raise UnusableError("the slot shares a token with the text around it")

    def answer_tokens(self, prompt: str, text: str, length: int) -> Row:
        """The tokens of an answer in its sentence, followed by ends up to the length; raises UnusableError."""
        before, after = prompt.split(SLOT)
        sentence = before + text + after
        (encoding,) = self.candidate_tokenizer.encode([sentence])
        start, stop = _alone(encoding, sentence, len(before), len(before) + len(text))
        if start == stop:
            # It has joined a mark beside it: it is then learned as it stands alone.
            encoding = self.candidate_tokenizer.backend.encode(text, add_special_tokens=False)
            start, stop = 0, len(encoding.ids)
        pieces = encoding.ids[start:stop]
        refuse_unlearnable(pieces, self.candidate_tokenizer.unknown, length)
        return (*pieces, *[self.end] * (length - len(pieces)))


class TextFrame:
    """Prompts of a causal model: a text that it goes on from.

    ``continue``: the text before the slot, where nothing but marks follow it; else the sentence with a blank and a
    line that asks for what is missing. ``chat``: the sentence with a blank in a user's message.
    """

    def __init__(self, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, beginning: int) -> None:
        self.tokenizer = tokenizer
        self.candidate_tokenizer = candidate_tokenizer
        self.beginning = beginning
        self.special = frozenset(tokenizer.all_special_ids)

    def prompt_tokens(self, question: Question, method: str, length: int) -> Row:
        """The tokens that the model goes on from; raises UnusableError where there is no room for an answer."""
        row = self._tokens(self._text(question, method)[0], method)
        refuse_too_long(len(row) + length, self.candidate_tokenizer.max_tokens)
        return row

    def answer_tokens(self, question: Question, method: str, length: int) -> tuple[Row, Row]:
        """The tokens of the prompt, and those of the right answer with the end that follows; raises UnusableError."""
        text, gap = self._text(question, method)
        prompt = self._tokens(text, method)
        whole = self._tokens(text + gap + question.target, method)
        if whole[: len(prompt)] != prompt:
            # The answer has joined its tokens to the text before: it is then learned as it would be written anew.
            whole = (
                *prompt,
                *self.candidate_tokenizer.backend.encode(gap + question.target, add_special_tokens=False).ids,
            )
        pieces = whole[len(prompt) :]
        refuse_unlearnable(pieces, self.candidate_tokenizer.unknown, length)
        refuse_too_long(len(whole) + 1, self.candidate_tokenizer.max_tokens)
        return prompt, (*pieces, *self._end())

    def cut_at(self, question: Question, method: str) -> str:
        """The mark that follows the slot and so ends an answer, besides the usual ends; empty if there is none."""
        after = question.prompt.split(SLOT)[1].strip()
        closing = after[:1] in _CLOSING or unicodedata.category(after[:1] or " ") == "Pe"
        return after[:1] if closing and method == "continue" and only_marks(after) else ""

    def _text(self, question: Question, method: str) -> tuple[str, str]:
        """The text before the answer, and what stands between the two."""
        before, after = question.prompt.split(SLOT)
        sentence = before + BLANK + after
        if method == "chat":
            if not getattr(self.tokenizer, "chat_template", None):
                raise UnusableError("its tokenizer has no chat template")
            messages = [{"role": "user", "content": REQUEST.format(sentence=sentence)}]
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
            return str(text), ""
        if only_marks(after):
            shown = before.rstrip()
            return shown, before[len(shown) :] if shown else ""
        return FRAME.format(sentence=sentence), " "

    def tokens_of(self, text: str) -> Row:
        """The tokens of a text that the model goes on from."""
        return self._tokens(text, "continue")

    def _tokens(self, text: str, method: str) -> Row:
        around = method != "chat" and self.candidate_tokenizer.special_tokens
        ids = list(self.candidate_tokenizer.backend.encode(text, add_special_tokens=around).ids)
        while len(ids) > 1 and ids[-1] in self.special and method != "chat":
            ids.pop()  # Some tokenizers set an end after every text.
        return tuple(ids) or (self.beginning,)

    def _end(self) -> Row:
        end = self.tokenizer.eos_token_id
        if end is not None:
            return (int(end),)
        return tuple(self.candidate_tokenizer.backend.encode("\n", add_special_tokens=False).ids)


def only_marks(text: str) -> bool:
    """Whether a text is nothing but punctuation and blanks."""
    return all(letter.isspace() or unicodedata.category(letter).startswith("P") for letter in text)


def refuse_unlearnable(pieces: Row | list[int], unknown: int | None, length: int) -> None:
    """Refuse an answer that the model could not write."""
    if not pieces:
        raise UnusableError("the answer has no token in this model's vocabulary")
    if unknown is not None and unknown in pieces:
        raise UnusableError("the answer holds a token that this model does not know")
    if len(pieces) > length:
        raise UnusableError(f"the answer is longer than {length} pieces")


def _alone(encoding: Any, sentence: str, first: int, last: int) -> tuple[int, int]:
    """The tokens of the characters from first to last, if they hold no more than these and a blank before them."""
    start, stop = touching(encoding, first, last)
    if start == stop:
        return 0, 0
    low, high = encoding.offsets[start][0], encoding.offsets[stop - 1][1]
    return (start, stop) if high <= last and not sentence[low:first].strip() else (0, 0)
