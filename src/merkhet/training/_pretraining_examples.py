"""Pre-training examples: passages of documents with special tokens around them and some tokens masked.

The examples of a step depend only on the corpus, the settings, the seed and the step, so a resumed run sees the same
examples. All objectives see the same passages in the same order.
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
"""Label of an example with a single segment, which does not contribute to the segment loss."""

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Shares of the target tokens that are replaced by the mask or by a random token; the others are unchanged."""


@dataclass(frozen=True)
class Example(TokenRow):
    """A sequence of input tokens, some of them masked; the targets are the original tokens."""

    segments: IntArray
    """Segment (0 or 1) of each token."""
    slot: int
    """Index of the example in its batch."""
    label: int = NO_LABEL
    """1 if the second segment is from another document (NSP) or the segments are swapped (SOP), else 0.

    ``NO_LABEL`` if the example has a single segment.
    """


@dataclass(frozen=True)
class SequenceTemplate:
    """The special tokens that a tokenizer puts around one or two segments."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    pair_prefix: tuple[int, ...]
    separator: tuple[int, ...]
    """Special tokens between two segments."""
    pair_suffix: tuple[int, ...]

    @property
    def size(self) -> int:
        """Maximum number of special tokens in an example."""
        pair = len(self.pair_prefix) + len(self.separator) + len(self.pair_suffix)
        return max(len(self.prefix) + len(self.suffix), pair)

    def row(self, first: TokenArray, second: TokenArray | None = None) -> tuple[IntArray, IntArray]:
        """Return the tokens of one or two segments with special tokens, and the segment (0 or 1) of each token."""
        parts: list[Any] = [self.prefix, first, self.suffix]
        if second is not None:
            parts = [self.pair_prefix, first, self.separator, second, self.pair_suffix]
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        lengths = [sum(map(len, parts[:3])), sum(map(len, parts[3:]))]
        return ids, np.repeat(np.arange(2), lengths)


def sequence_template(backend: Any) -> SequenceTemplate:
    """Return the special tokens that a tokenizer adds, read from the encodings of a sample text and a sample pair.

    If the tokenizer puts nothing between two segments, the suffix of a single segment separates them.
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
    """The mask token and the ordinary tokens of a tokenizer.

    Ordinary tokens are neither special nor unknown. Only ordinary tokens are masked or drawn as random replacements.
    """

    mask: int
    ordinary: IntArray
    """Ids of all ordinary tokens."""
    known: NDArray[np.bool_]
    """Whether each token id is an ordinary token."""

    @classmethod
    def of(cls, tokenizer: Any, size: int) -> Vocabulary:
        """Return the vocabulary of a tokenizer, limited to ids below ``size``, the number of input embeddings."""
        ids = set(tokenizer.get_vocab().values())
        ordinary = sorted(token for token in ids - set(tokenizer.all_special_ids) if token < size)
        known = np.zeros(max(ids) + 1, dtype=bool)
        known[ordinary] = True
        return cls(int(tokenizer.mask_token_id), np.array(ordinary, dtype=np.int64), known)


class Examples:
    """The pre-training examples of one objective, generated step by step.

    A sentence that is too long is split into pieces. Each document is cut into chunks: as many consecutive sentences or
    pieces as fit into an example. Each round visits all chunks in a new random order. For NSP and SOP a chunk is split
    into two segments between pieces; a chunk of a single piece is used whole and without a label.
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
        """Return the example that the chunk with index ``chunk`` yields at index ``slot`` of a step's batch."""
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
        """Draw as many consecutive sentences as fit into ``space`` tokens, from another document than ``piece``."""
        begin, end = np.searchsorted(self.documents, [self.documents[piece], self.documents[piece] + 1])
        start = int(generator.integers(len(self.documents) - (end - begin)))
        start += int(end - begin) if start >= begin else 0
        stop = min(self._end_of_fitting(start, space), int(np.searchsorted(self.documents, self.documents[start] + 1)))
        return self.tokens_of(start, max(stop, start + 1))[:space]

    def _mask_tokens(self, ids: IntArray, generator: Generator) -> tuple[IntArray, IntArray]:
        """Return the tokens with some of them masked or replaced, and the target positions.

        Special tokens are never targets.
        """
        candidates = np.flatnonzero(self.vocabulary.known[ids])
        count = min(len(candidates), max(1, round(len(candidates) * self.settings.masked)))
        columns: IntArray = np.sort(generator.choice(candidates, count, replace=False)) if count else candidates
        draws, random_tokens = generator.random(count), generator.choice(self.vocabulary.ordinary, count)
        unmasked = np.where(draws < MASK_SHARE + RANDOM_SHARE, random_tokens, ids[columns])
        row = ids.copy()
        row[columns] = np.where(draws < MASK_SHARE, self.vocabulary.mask, unmasked)
        return row, columns

    def _chunks(self) -> IntArray:
        """Return the index of the first piece of every chunk, and the index after the last piece.

        Chunks without an ordinary token are left out.
        """
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
        """Return the end (exclusive) of the pieces from ``first`` on that together fit into ``space`` tokens."""
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
    """Return the token offset of each piece, with the end of the corpus appended, and the document index of each piece.

    A piece is a sentence, or at most ``space`` tokens of a longer sentence.
    """
    starts, lengths = corpus.sentences[:-1], np.diff(corpus.sentences)
    counts = -(-lengths // space)
    index_in_sentence = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pieces = np.append(np.repeat(starts, counts) + index_in_sentence * space, corpus.sentences[-1])
    sentence_documents = np.repeat(np.arange(len(corpus.documents) - 1), np.diff(corpus.documents))
    return pieces, np.repeat(sentence_documents, counts)
