"""The whole vocabulary ranked at one mask in the slot: what a masked model says of its own accord."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.protocol import FilledSlot, IntArray
from merkhet.models.row_scheduler import Row, read_positions
from merkhet.models.tokenize_candidates import CandidateTokenizer, touching

AT_ONCE = 64
"""Right answers that are ranked at once, so that no second table of logits for a whole batch is made."""


NO_PIECE = "no right answer is a single piece of this model's vocabulary"


@dataclass(frozen=True)
class _Slot:
    """A prompt with one mask in its slot, where the mask stands, and the right answers that are one token there."""

    row: Row
    column: int
    golds: dict[int, str] = field(default_factory=dict)


class SlotFiller:
    """Fills slots by one masked model: one row a distinct prompt, the head at its mask alone."""

    def __init__(self, model: Any, tokenizer: Any, candidate_tokenizer: CandidateTokenizer, early: Any = None) -> None:
        self.model = model
        self.early = early
        self.candidate_tokenizer = candidate_tokenizer
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.special = sorted(set(tokenizer.all_special_ids))
        self.tokenizer = tokenizer
        self._texts: dict[int, str] = {}

    def fill(self, questions: Sequence[Question], count: int, budget: int) -> tuple[list[FilledSlot], int]:
        """The likeliest pieces of each slot, the ranks of right answers among all, and the budget that was found."""
        slots: dict[int, _Slot] = {}
        filled: list[FilledSlot] = []
        asked: dict[Row, list[int]] = {}
        for index, slot in enumerate(self._place(questions)):
            if isinstance(slot, str):
                filled.append(FilledSlot(index, unusable=slot))
            elif len(slot.row) > self.candidate_tokenizer.max_tokens:
                reason = f"too long: {len(slot.row)} tokens, and the model takes {self.candidate_tokenizer.max_tokens}"
                filled.append(FilledSlot(index, unusable=reason))
            else:
                asked.setdefault(slot.row, []).append(index)
                slots[index] = slot
        rows = list(asked)

        def take(some: IntArray, logits: torch.Tensor) -> None:
            wanted = [(line, index) for line, number in enumerate(some) for index in asked[rows[number]]]
            filled.extend(self._filled(logits, wanted, slots, count))

        if rows:
            places = np.array([slots[asked[row][0]].column for row in rows], dtype=np.int64)
            numbers = np.arange(len(rows))
            budget = read_positions(self.model, rows, numbers, places, self.pad, budget, take, self.early)
        return sorted(filled, key=lambda one: one.index), budget

    def _filled(
        self, logits: torch.Tensor, wanted: list[tuple[int, int]], slots: dict[int, _Slot], count: int
    ) -> Iterator[FilledSlot]:
        normalisers = torch.logsumexp(logits, dim=1)
        # A special token is no answer: it neither stands in the list nor takes a place before a right answer.
        logits[:, self.special] = -torch.inf
        among = logits.shape[1] - len(self.special)
        top = torch.topk(logits, min(count, among), dim=1)
        scores = (top.values - normalisers[:, None]).double().cpu().numpy()
        pieces = top.indices.cpu().numpy()
        lines = [line for line, index in wanted for _ in slots[index].golds]
        tokens = [token for _, index in wanted for token in slots[index].golds]
        above, ties = _above_and_equal(logits, lines, tokens)
        done = 0
        for line, index in wanted:
            part = slice(done, done + len(slots[index].golds))
            done = part.stop
            yield FilledSlot(
                index,
                pieces=tuple(zip(self._named(pieces[line]), scores[line].tolist(), strict=True)),
                golds=tuple(slots[index].golds.values()),
                gold_ranks=tuple((above[part] + (ties[part] + 1) / 2).tolist()),
                gold_ties=tuple(ties[part].tolist()),
                among=among,
            )

    def _place(self, questions: Sequence[Question]) -> list[_Slot | str]:
        """Each question's slot as the right answers that are one piece leave it; the reason where there is none."""
        answers = [
            (index, text)
            for index, question in enumerate(questions)
            for text in dict.fromkeys(question.answers)
            if self.candidate_tokenizer.words is None or " " not in text.strip()  # Else it is more than one token.
        ]
        sentences = [questions[index].prompt.replace(SLOT, text) for index, text in answers]
        slots: list[_Slot | str] = [NO_PIECE] * len(questions)
        for (index, text), sentence, encoding in zip(
            answers, sentences, self.candidate_tokenizer.encode(sentences), strict=True
        ):
            first = questions[index].prompt.index(SLOT)
            place = _only_token(encoding, first, first + len(text))
            if place is None or encoding.ids[place] in self.special:
                if (
                    place is not None
                    and encoding.ids[place] == self.candidate_tokenizer.unknown
                    and slots[index] == NO_PIECE
                ):
                    slots[index] = f"the answer {text!r} holds a token that this model does not know"
                continue
            low, high = encoding.offsets[place]
            # Of the answer alone, but for a blank before it that the family joins to its tokens.
            if high <= first + len(text) and not sentence[low:first].strip():
                ids = encoding.ids
                row = (*ids[:place], self.mask, *ids[place + 1 :])
                known = slots[index]
                slot = _Slot(row, place) if isinstance(known, str) else known
                if slot.row == row:
                    slot.golds.setdefault(ids[place], text)
                slots[index] = slot
        return slots

    def _named(self, pieces: Sequence[int]) -> list[str]:
        """Pieces as a reader sees them; where two look alike, as the vocabulary spells them."""
        texts = [self._texts.get(token) or self._text(int(token)) for token in pieces]
        return [
            text if texts.count(text) == 1 else str(self.tokenizer.convert_ids_to_tokens(int(token)))
            for token, text in zip(pieces, texts, strict=True)
        ]

    def _text(self, token: int) -> str:
        text = self.tokenizer.decode([token]).strip() or str(self.tokenizer.convert_ids_to_tokens(token))
        self._texts[token] = text
        return text


def _only_token(encoding: Any, first: int, last: int) -> int | None:
    """The one token that touches the characters from first to last; None if there are several or none."""
    start, stop = encoding.char_to_token(first), encoding.char_to_token(last - 1)
    if start is not None and stop is not None and start != stop:
        return None
    start, stop = touching(encoding, first, last)
    return start if stop - start == 1 else None


def _above_and_equal(logits: torch.Tensor, lines: list[int], tokens: list[int]) -> tuple[IntArray, IntArray]:
    """How many logits of each token's line are above its own, and how many equal it."""
    if logits.device.type == "cpu":
        # Counting booleans is what numpy does many times as fast as torch.
        table = logits.numpy()
        own = [(table[line], table[line, token]) for line, token in zip(lines, tokens, strict=True)]
        counts = [(np.count_nonzero(row > value), np.count_nonzero(row == value)) for row, value in own]
        return np.array([above for above, _ in counts]), np.array([equal for _, equal in counts])
    found = []
    for first in range(0, len(lines), AT_ONCE):
        some = logits[lines[first : first + AT_ONCE]]
        values = some.gather(1, torch.tensor(tokens[first : first + AT_ONCE], device=some.device)[:, None])
        found.append(torch.stack([(some > values).sum(1), (some == values).sum(1)]))
    above, equal = torch.cat(found, dim=1).cpu().numpy()
    return above, equal
