"""Ranking of a masked model's whole vocabulary at a single mask in the slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.core.text import counted
from merkhet.models.protocol import FilledSlot, IntArray
from merkhet.models.row_scheduler import Row, read_positions
from merkhet.models.tokenize_candidates import token_span

if TYPE_CHECKING:
    from merkhet.models._network import Network

_GOLDS_AT_ONCE = 64
"""The number of right answers ranked together, which limits the size of a copy of their logits."""
NO_SINGLE_TOKEN = "no right answer is a single piece of this model's vocabulary"


@dataclass(frozen=True)
class _MaskedSlot:
    """A prompt with one mask in its slot."""

    row: Row
    column: int
    """The index of the mask in ``row``."""
    golds: dict[int, str] = field(default_factory=dict)
    """The right answers that are a single token in this slot, by token id."""


class SlotFiller:
    """Ranking of the vocabulary in slots; equal prompts are computed once, and logits only at the mask."""

    def __init__(self, network: Network) -> None:
        self.network, self.tokenizer = network, network.tokenizer
        self.candidate_tokenizer = network.candidate_tokenizer
        self.mask, self.special = int(network.tokenizer.mask_token_id), sorted(network.special)
        self._texts: dict[int, str] = {}

    def fill(self, questions: Sequence[Question], count: int) -> list[FilledSlot]:
        """Return for each question the ``count`` likeliest tokens and the ranks of its right answers."""
        slots: dict[int, _MaskedSlot] = {}
        filled: list[FilledSlot] = []
        questions_of: dict[Row, list[int]] = {}
        max_tokens = self.candidate_tokenizer.max_tokens
        for index, slot in enumerate(self._mask_slots(questions)):
            if isinstance(slot, str):
                filled.append(FilledSlot(index, unusable=slot))
            elif len(slot.row) > max_tokens:
                reason = f"too long: {counted(len(slot.row), 'token')}, and the model takes {max_tokens}"
                filled.append(FilledSlot(index, unusable=reason))
            else:
                questions_of.setdefault(slot.row, []).append(index)
                slots[index] = slot
        rows = list(questions_of)

        def store(positions: IntArray, logits: torch.Tensor) -> None:
            located = [(line, index) for line, row in enumerate(positions) for index in questions_of[rows[row]]]
            filled.extend(self._rank(logits, located, slots, count))

        if rows:
            columns = np.array([slots[questions_of[row][0]].column for row in rows], dtype=np.int64)
            read_positions(self.network, rows, np.arange(len(rows)), columns, store)
        return sorted(filled, key=lambda slot: slot.index)

    def _rank(
        self, logits: torch.Tensor, located: list[tuple[int, int]], slots: dict[int, _MaskedSlot], count: int
    ) -> Iterator[FilledSlot]:
        """Rank the vocabulary for each question in ``located``, a list of pairs (row of ``logits``, question index)."""
        normalisers = torch.logsumexp(logits, dim=1)
        # Special tokens are not answers, so they are neither listed nor ranked above a right answer.
        logits[:, self.special] = -torch.inf
        among = logits.shape[1] - len(self.special)
        top = torch.topk(logits, min(count, among), dim=1)
        scores = (top.values - normalisers[:, None]).double().cpu().numpy()
        top_tokens = top.indices.cpu().numpy()
        lines = [line for line, index in located for _ in slots[index].golds]
        gold_tokens = [token for _, index in located for token in slots[index].golds]
        above, ties = _count_above_and_equal(logits, lines, gold_tokens)
        done = 0
        for line, index in located:
            golds = slice(done, done + len(slots[index].golds))
            done = golds.stop
            yield FilledSlot(
                index,
                pieces=tuple(zip(self._display_texts(top_tokens[line]), scores[line].tolist(), strict=True)),
                golds=tuple(slots[index].golds.values()),
                gold_ranks=tuple((above[golds] + (ties[golds] + 1) / 2).tolist()),
                gold_ties=tuple(ties[golds].tolist()),
                among=among,
            )

    def _mask_slots(self, questions: Sequence[Question]) -> list[_MaskedSlot | str]:
        """Return each question's prompt with a masked slot, or the reason why the question is unusable.

        The prompt is tokenized with a single-token right answer in its slot, which the mask then replaces.
        """
        answers = [
            (index, text)
            for index, question in enumerate(questions)
            for text in dict.fromkeys(question.answers)
            if self.candidate_tokenizer.word_kind is None or " " not in text.strip()  # Else it has several tokens.
        ]
        sentences = [questions[index].prompt.replace(SLOT, text) for index, text in answers]
        encodings = self.candidate_tokenizer.encode(sentences)
        slots: list[_MaskedSlot | str] = [NO_SINGLE_TOKEN] * len(questions)
        for (index, text), sentence, encoding in zip(answers, sentences, encodings, strict=True):
            first = questions[index].prompt.index(SLOT)
            ids = encoding.ids
            column = _single_token(encoding, first, first + len(text))
            if column is None:
                continue
            if ids[column] in self.special:
                if ids[column] == self.candidate_tokenizer.unknown and slots[index] == NO_SINGLE_TOKEN:
                    slots[index] = f"the answer {text!r} holds a token that this model does not know"
                continue
            low, high = encoding.offsets[column]
            # The token covers only the answer, or the answer and a space before it.
            if high <= first + len(text) and not sentence[low:first].strip():
                row = (*ids[:column], self.mask, *ids[column + 1 :])
                known = slots[index]
                slot = _MaskedSlot(row, column) if isinstance(known, str) else known
                if slot.row == row:
                    slot.golds.setdefault(ids[column], text)
                slots[index] = slot
        return slots

    def _display_texts(self, tokens: Sequence[int]) -> list[str]:
        """Return readable texts of tokens; tokens with equal texts are shown as their vocabulary entries."""
        texts = [self._texts.get(token) or self._display_text(int(token)) for token in tokens]
        return [
            text if texts.count(text) == 1 else str(self.tokenizer.convert_ids_to_tokens(int(token)))
            for token, text in zip(tokens, texts, strict=True)
        ]

    def _display_text(self, token: int) -> str:
        text = self.tokenizer.decode([token]).strip() or str(self.tokenizer.convert_ids_to_tokens(token))
        self._texts[token] = text
        return text


def _single_token(encoding: Any, first: int, last: int) -> int | None:
    """Return the index of the single token that overlaps the characters from ``first`` to ``last``.

    None if no token or more than one token overlaps them.
    """
    start, stop = encoding.char_to_token(first), encoding.char_to_token(last - 1)
    if start is not None and stop is not None and start != stop:
        return None
    start, stop = token_span(encoding, first, last)
    return start if stop - start == 1 else None


def _count_above_and_equal(logits: torch.Tensor, lines: list[int], tokens: list[int]) -> tuple[IntArray, IntArray]:
    """For each token, count the logits in its row that exceed its logit, and those that equal it."""
    if logits.device.type == "cpu":
        # numpy counts booleans many times faster than torch.
        table = logits.numpy()
        pairs = [(table[line], table[line, token]) for line, token in zip(lines, tokens, strict=True)]
        counts = [(np.count_nonzero(row > value), np.count_nonzero(row == value)) for row, value in pairs]
        return np.array([above for above, _ in counts]), np.array([equal for _, equal in counts])
    chunks = []
    for first in range(0, len(lines), _GOLDS_AT_ONCE):
        rows = logits[lines[first : first + _GOLDS_AT_ONCE]]
        values = rows.gather(1, torch.tensor(tokens[first : first + _GOLDS_AT_ONCE], device=rows.device)[:, None])
        chunks.append(torch.stack([(rows > values).sum(1), (rows == values).sum(1)]))
    above, equal = torch.cat(chunks, dim=1).cpu().numpy()
    return above, equal
