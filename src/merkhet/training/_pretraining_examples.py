"""Examples of pre-training: pieces of documents between special tokens, with some tokens masked.

The examples of a step depend on the corpus, the settings, the seed and the step alone, so that a resumed run sees the
same ones. All objectives see the same pieces of the same documents in the same order.
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
from merkhet.training._token_rows import TokenRow
from merkhet.training.pretraining_settings import PretrainSettings
from merkhet.training.text_corpus import Corpus, TokenArray

NO_LABEL = -100
"""The label of an example that is no pair of segments; it does not contribute to the segment loss."""

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Shares of the target tokens that are replaced by the mask and by a random token; the rest is unchanged."""


@dataclass(frozen=True)
class Example(TokenRow):
    """A row of tokens with masks; its targets are the original tokens."""

    segments: IntArray
    """Segment (0 or 1) of each token."""
    slot: int
    """Index in the batch."""
    label: int = NO_LABEL
    """1 if the second segment is from another document (nsp) or the segments are swapped (sop), else 0."""


@dataclass(frozen=True)
class SequenceTemplate:
    """The special tokens that a tokenizer puts around one or two segments."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    pair_prefix: tuple[int, ...]
    separator: tuple[int, ...]
    """Between two segments."""
    pair_suffix: tuple[int, ...]

    @property
    def size(self) -> int:
        """Maximum number of special tokens of a row."""
        pair = len(self.pair_prefix) + len(self.separator) + len(self.pair_suffix)
        return max(len(self.prefix) + len(self.suffix), pair)

    def row(self, first: TokenArray, second: TokenArray | None = None) -> tuple[IntArray, IntArray]:
        """Return one or two segments with their special tokens, and the segment of each token."""
        parts: list[Any] = [self.prefix, first, self.suffix]
        if second is not None:
            parts = [self.pair_prefix, first, self.separator, second, self.pair_suffix]
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        lengths = [sum(map(len, parts[:3])), sum(map(len, parts[3:]))]
        return ids, np.repeat(np.arange(2), lengths)


def sequence_template(backend: Any) -> SequenceTemplate:
    """Return the template of a tokenizer.

    A tokenizer without a template for pairs, or without a separator, ends the first of two segments as it ends a single
    one.
    """
    text = "a 1 的"
    single, pair = backend.encode(text), backend.encode(text, text)
    positions = np.flatnonzero([owner is not None for owner in single.sequence_ids])
    prefix, suffix = tuple(single.ids[: positions[0]]), tuple(single.ids[positions[-1] + 1 :])
    first_positions, second_positions = (
        np.flatnonzero([owner == segment for owner in pair.sequence_ids]) for segment in (0, 1)
    )
    separator = tuple(pair.ids[first_positions[-1] + 1 : second_positions[0]])
    if not separator:
        return SequenceTemplate(prefix, suffix, prefix, suffix, suffix)
    return SequenceTemplate(
        prefix, suffix, tuple(pair.ids[: first_positions[0]]), separator, tuple(pair.ids[second_positions[-1] + 1 :])
    )


@dataclass(frozen=True)
class Vocabulary:
    """The mask, and the ordinary tokens: neither special nor unknown. Only these are masked or drawn at random."""

    mask: int
    ordinary: IntArray
    """Ids of all ordinary tokens."""
    known: NDArray[np.bool_]
    """For every id, whether it is an ordinary token."""

    @classmethod
    def of(cls, tokenizer: Any, size: int) -> Vocabulary:
        """Return the vocabulary of a tokenizer, within an embedding of ``size`` tokens."""
        ids = set(tokenizer.get_vocab().values())
        ordinary = sorted(token for token in ids - set(tokenizer.all_special_ids) if token < size)
        known = np.zeros(max(ids) + 1, dtype=bool)
        known[ordinary] = True
        return cls(int(tokenizer.mask_token_id), np.array(ordinary, dtype=np.int64), known)


class Examples:
    """The examples of an objective, step by step.

    A document is cut into chunks of as many consecutive sentences as fit; a sentence that is too long is cut into
    pieces. Each round visits all chunks in a new random order. For nsp and sop a chunk is cut between two sentences; a
    chunk of one sentence is used whole and without a label.
    """

    def __init__(
        self, corpus: Corpus, template: SequenceTemplate, vocabulary: Vocabulary, settings: PretrainSettings, seed: int
    ) -> None:
        self.corpus, self.template, self.vocabulary = corpus, template, vocabulary
        self.settings, self.seed = settings, seed
        self.space = settings.max_length - template.size
        if self.space < 2:
            raise InputError(
                f"learning.settings.max_length must be ≥ {template.size + 2}, as {template.size} tokens are special, "
                f"got {settings.max_length}"
            )
        self.pieces, self.documents = _pieces(corpus, self.space)
        self.chunks = self._chunks()
        self._order = lru_cache(maxsize=2)(self._draw_order)
        self._check_corpus()

    def batch(self, step: int) -> list[Example]:
        """Return the examples of a step."""
        size, count = self.settings.batch_size, len(self.chunks)
        examples = []
        for slot in range(size):
            round_number, index = divmod(step * size + slot, count)
            examples.append(self.example(int(self._order(round_number)[index]), step, slot))
        return examples

    def example(self, chunk: int, step: int, slot: int) -> Example:
        """Return a chunk as the example of a slot in a step's batch."""
        first, last = (int(piece) for piece in self.chunks[chunk])
        segments, label = self._segments(first, last, self._generator("segments", step, slot))
        ids, segment_ids = self.template.row(*segments)
        row, columns = self._mask_tokens(ids, self._generator("masks", step, slot))
        return Example(row, columns, ids[columns], segment_ids, slot, label)

    def tokens_of(self, first: int, last: int) -> TokenArray:
        """Return the tokens of the pieces from ``first`` to ``last``, exclusive."""
        return self.corpus.tokens[self.pieces[first] : self.pieces[last]]

    def _segments(self, first: int, last: int, generator: Generator) -> tuple[Sequence[TokenArray], int]:
        kind = self.settings.objective.partition("+")[2]
        if kind not in ("nsp", "sop") or last - first < 2:
            return (self.tokens_of(first, last),), NO_LABEL
        cut = int(generator.integers(first + 1, last))
        label = int(generator.integers(2))
        left, right = self.tokens_of(first, cut), self.tokens_of(cut, last)
        if kind == "sop":
            return ((right, left) if label else (left, right)), label
        return (left, self._draw_other_segment(first, self.space - len(left), generator) if label else right), label

    def _draw_other_segment(self, piece: int, space: int, generator: Generator) -> TokenArray:
        """Draw consecutive sentences of another document than the piece's, as many as fit."""
        begin, end = np.searchsorted(self.documents, [self.documents[piece], self.documents[piece] + 1])
        start = int(generator.integers(len(self.documents) - (end - begin)))
        start += int(end - begin) if start >= begin else 0
        stop = min(self._end_of_fitting(start, space), int(np.searchsorted(self.documents, self.documents[start] + 1)))
        return self.tokens_of(start, max(stop, start + 1))[:space]

    def _mask_tokens(self, ids: IntArray, generator: Generator) -> tuple[IntArray, IntArray]:
        """Return the row with masks, and the target positions; special tokens are never masked."""
        candidates = np.flatnonzero(self.vocabulary.known[ids])
        count = min(len(candidates), max(1, round(len(candidates) * self.settings.masked)))
        columns: IntArray = np.sort(generator.choice(candidates, count, replace=False)) if count else candidates
        draws, random_tokens = generator.random(count), generator.choice(self.vocabulary.ordinary, count)
        unmasked = np.where(draws < MASK_SHARE + RANDOM_SHARE, random_tokens, ids[columns])
        row = ids.copy()
        row[columns] = np.where(draws < MASK_SHARE, self.vocabulary.mask, unmasked)
        return row, columns

    def _chunks(self) -> IntArray:
        """Return the first piece and the end of every chunk; chunks without an ordinary token are left out."""
        ends = np.append(np.flatnonzero(np.diff(self.documents)) + 1, len(self.documents))
        bounds, first = [], 0
        for end in ends.tolist():
            while first < end:
                last = min(end, max(first + 1, self._end_of_fitting(first, self.space)))
                bounds.append((first, last))
                first = last
        chunks: IntArray = np.array(bounds, dtype=np.int64)
        is_ordinary = self.vocabulary.known[self.corpus.tokens]
        return chunks[np.logical_or.reduceat(is_ordinary, self.pieces[chunks[:, 0]])]

    def _end_of_fitting(self, first: int, space: int) -> int:
        """Return the piece after the last that fits into ``space`` tokens, counted from ``first``."""
        return int(np.searchsorted(self.pieces, self.pieces[first] + space, side="right")) - 1

    def _draw_order(self, round_number: int) -> IntArray:
        order: IntArray = self._generator("order", round_number).permutation(len(self.chunks))
        return order

    def _generator(self, *key: Any) -> Generator:
        return np.random.default_rng(derived_seed(self.seed, "pretrain", *key))

    def _check_corpus(self) -> None:
        if not len(self.chunks):
            raise InputError("the corpus has no word that the model knows; name a corpus in the model's language")
        if self.settings.objective not in ("mlm+nsp", "mlm+sop"):
            return
        if not (np.diff(self.chunks, axis=1) > 1).any():
            raise InputError(
                f"{self.settings.objective} needs documents of two sentences, and the corpus has none with two in "
                f"{self.space} tokens; put blank lines between documents, or use mlm or mlm+sbo"
            )
        if self.settings.objective == "mlm+nsp" and self.documents[0] == self.documents[-1]:
            raise InputError(
                "mlm+nsp needs two documents, and the corpus is a single one; put blank lines between documents"
            )


def _pieces(corpus: Corpus, space: int) -> tuple[IntArray, IntArray]:
    """Return the offset of each piece (a sentence, or a part of one that is too long) and its document."""
    starts, lengths = corpus.sentences[:-1], np.diff(corpus.sentences)
    counts = -(-lengths // space)
    index_in_sentence = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pieces = np.append(np.repeat(starts, counts) + index_in_sentence * space, corpus.sentences[-1])
    sentence_documents = np.repeat(np.arange(len(corpus.documents) - 1), np.diff(corpus.documents))
    return pieces, np.repeat(sentence_documents, counts)
