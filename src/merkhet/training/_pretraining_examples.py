"""What a model is shown in pre-training: pieces of documents between special tokens, some tokens masked.

The examples of a step depend on the corpus, the settings, the seed and the number of the step alone: a run that was
killed makes the very same ones again. All objectives see the same pieces of the same documents in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.models.protocol import IntArray
from merkhet.training.pretraining_settings import PretrainSettings
from merkhet.training.text_corpus import Corpus, TokenArray

NO_LABEL = -100
"""The label of an example that is no pair of segments: nothing is learned of their order."""

SHOWN_AS_MASK, SHOWN_AS_OTHER = 0.8, 0.1
"""Of the tokens to be told, so many are masked and so many are another token; the rest stands as it is."""


@dataclass(frozen=True)
class Example:
    """A row of tokens as it is shown, the segment of each, and what is learned: the right token at some columns.

    ``label`` is 1 where the second segment is of another document (nsp), or where the segments are swapped (sop),
    and 0 where they are as they were; ``slot`` is the place in the batch.
    """

    slot: int
    ids: IntArray
    segments: IntArray
    columns: IntArray
    targets: IntArray
    label: int = NO_LABEL


@dataclass(frozen=True)
class SequenceTemplate:
    """The special tokens that a tokenizer puts around one segment (``first``, ``last``), and those around two."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many special tokens a row has at most."""
        return max(len(self.first) + len(self.last), len(self.before) + len(self.between) + len(self.after))

    def row(self, one: TokenArray, other: TokenArray | None = None) -> tuple[IntArray, IntArray]:
        """One or two segments with the special tokens around them, and the segment of each token."""
        if other is None:
            parts: list[Any] = [self.first, one, self.last]
            second = 0
        else:
            parts = [self.before, one, self.between, other, self.after]
            second = len(other) + len(self.after)
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        segments = np.zeros(len(ids), dtype=np.int64)
        segments[len(ids) - second :] = 1
        return ids, segments


def sequence_template(backend: Any) -> SequenceTemplate:
    """The frame of a tokenizer, by its own template.

    One that has none for pairs, or nothing to tell two segments apart by, ends the first as it ends a single one.
    """
    text = "a 1 的"
    single, pair = backend.encode(text), backend.encode(text, text)
    own = np.flatnonzero([owner is not None for owner in single.sequence_ids])
    first, last = tuple(single.ids[: own[0]]), tuple(single.ids[own[-1] + 1 :])
    ones, others = (np.flatnonzero([owner == number for owner in pair.sequence_ids]) for number in (0, 1))
    between = tuple(pair.ids[ones[-1] + 1 : others[0]])
    if not between:
        return SequenceTemplate(first, last, first, last, last)
    return SequenceTemplate(first, last, tuple(pair.ids[: ones[0]]), between, tuple(pair.ids[others[-1] + 1 :]))


@dataclass(frozen=True)
class Vocabulary:
    """The mask, and the tokens that are neither special nor unknown: only these are masked or stand in for others.

    ``ordinary`` lists them, ``known`` says of every token whether it is one.
    """

    mask: int
    ordinary: IntArray
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, tokenizer: Any, size: int) -> Vocabulary:
        """Of a tokenizer, within an embedding of so many tokens."""
        numbers = set(tokenizer.get_vocab().values())
        ordinary = sorted(number for number in numbers - set(tokenizer.all_special_ids) if number < size)
        known = np.zeros(max(numbers) + 1, dtype=bool)
        known[ordinary] = True
        return cls(int(tokenizer.mask_token_id), np.array(ordinary, dtype=np.int64), known)


class Examples:
    """The examples of an objective, step by step.

    A document is cut into chunks: as many whole sentences as fit, one after another (a sentence that is too long is
    cut into pieces). Chunks are gone through in an order drawn anew for each round. For nsp and sop a chunk is cut
    between two sentences; one of a single sentence is shown whole, and without a label.
    """

    def __init__(
        self, corpus: Corpus, frame: SequenceTemplate, vocabulary: Vocabulary, settings: PretrainSettings, seed: int
    ) -> None:
        self.corpus, self.frame, self.vocabulary = corpus, frame, vocabulary
        self.settings, self.seed = settings, seed
        self.space = settings.max_length - frame.size
        if self.space < 2:
            raise InputError(
                f"the setting max_length of learning is {settings.max_length}, and {frame.size} of these are special "
                f"tokens; it should be {frame.size + 2} or more"
            )
        self.pieces, owners = _pieces(corpus, self.space)
        self.owners = owners
        self.chunks = self._chunks()
        self._order = lru_cache(maxsize=2)(self._draw_order)
        self._refuse_too_little()

    def batch(self, step: int) -> list[Example]:
        """The examples of a step."""
        size, count = self.settings.batch_size, len(self.chunks)
        found = []
        for slot in range(size):
            turn, place = divmod(step * size + slot, count)
            found.append(self.example(int(self._order(turn)[place]), step, slot))
        return found

    def example(self, chunk: int, step: int, slot: int) -> Example:
        """A chunk as an example in a place of a step's batch."""
        first, last = (int(number) for number in self.chunks[chunk])
        segments, label = self._segments(first, last, self._draw("segments", step, slot))
        ids, kinds = self.frame.row(*segments)
        row, columns = self._masked(ids, self._draw("masks", step, slot))
        return Example(slot, row, kinds, columns, ids[columns], label)

    def tokens_of(self, first: int, last: int) -> TokenArray:
        """The tokens of the pieces from one up to another."""
        return self.corpus.tokens[self.pieces[first] : self.pieces[last]]

    def _segments(self, first: int, last: int, draw: Generator) -> tuple[Sequence[TokenArray], int]:
        kind = self.settings.objective.partition("+")[2]
        if kind not in ("nsp", "sop") or last - first < 2:
            return (self.tokens_of(first, last),), NO_LABEL
        cut = int(draw.integers(first + 1, last))
        label = int(draw.integers(2))
        one, other = self.tokens_of(first, cut), self.tokens_of(cut, last)
        if kind == "sop":
            return ((other, one) if label else (one, other)), label
        return (one, self._of_another_document(first, self.space - len(one), draw) if label else other), label

    def _of_another_document(self, piece: int, space: int, draw: Generator) -> TokenArray:
        """Sentences that follow one another in a document other than that of a piece, as many as there is space for."""
        begin, end = np.searchsorted(self.owners, [self.owners[piece], self.owners[piece] + 1])
        start = int(draw.integers(len(self.owners) - (end - begin)))
        start += int(end - begin) if start >= begin else 0
        stop = min(self._fitting(start, space), int(np.searchsorted(self.owners, self.owners[start] + 1)))
        return self.tokens_of(start, max(stop, start + 1))[:space]

    def _masked(self, ids: IntArray, draw: Generator) -> tuple[IntArray, IntArray]:
        """The row as it is shown, and the columns to be told; special tokens stay."""
        usual = np.flatnonzero(self.vocabulary.known[ids])
        count = min(len(usual), max(1, round(len(usual) * self.settings.masked)))
        columns: IntArray = np.sort(draw.choice(usual, count, replace=False)) if count else usual
        how, others = draw.random(count), draw.choice(self.vocabulary.ordinary, count)
        shown = np.where(how < SHOWN_AS_MASK + SHOWN_AS_OTHER, others, ids[columns])
        row = ids.copy()
        row[columns] = np.where(how < SHOWN_AS_MASK, self.vocabulary.mask, shown)
        return row, columns

    def _chunks(self) -> IntArray:
        """The first piece of every chunk and the piece after its last; those with nothing to mask are left out."""
        ends = np.append(np.flatnonzero(np.diff(self.owners)) + 1, len(self.owners))
        found, first = [], 0
        for end in ends.tolist():
            while first < end:
                last = min(end, max(first + 1, self._fitting(first, self.space)))
                found.append((first, last))
                first = last
        chunks: IntArray = np.array(found, dtype=np.int64)
        usual = self.vocabulary.known[self.corpus.tokens]
        return chunks[np.logical_or.reduceat(usual, self.pieces[chunks[:, 0]])]

    def _fitting(self, first: int, space: int) -> int:
        """The piece after the last that fits into a space, from a first one on."""
        return int(np.searchsorted(self.pieces, self.pieces[first] + space, side="right")) - 1

    def _draw_order(self, turn: int) -> IntArray:
        order: IntArray = self._draw("order", turn).permutation(len(self.chunks))
        return order

    def _draw(self, *what: Any) -> Generator:
        return np.random.default_rng(derived_seed(self.seed, "pretrain", *what))

    def _refuse_too_little(self) -> None:
        if not len(self.chunks):
            raise InputError("the corpus has no word that the model knows; name one in the model's language")
        if self.settings.objective not in ("mlm+nsp", "mlm+sop"):
            return
        if not (np.diff(self.chunks, axis=1) > 1).any():
            raise InputError(
                f"{self.settings.objective} needs documents of two sentences, and the corpus has none with two in "
                f"{self.space} tokens; put blank lines between documents, or use mlm or mlm+sbo"
            )
        if self.settings.objective == "mlm+nsp" and self.owners[0] == self.owners[-1]:
            raise InputError(
                "mlm+nsp needs two documents, and the corpus is a single one; put blank lines between documents"
            )


def _pieces(corpus: Corpus, space: int) -> tuple[IntArray, IntArray]:
    """Where sentences begin, those too long for a space cut into pieces, and the document of each piece."""
    starts, lengths = corpus.sentences[:-1], np.diff(corpus.sentences)
    counts = -(-lengths // space)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pieces = np.append(np.repeat(starts, counts) + within * space, corpus.sentences[-1])
    of_sentence = np.repeat(np.arange(len(corpus.documents) - 1), np.diff(corpus.documents))
    return pieces, np.repeat(of_sentence, counts)
