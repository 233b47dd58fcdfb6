"""Token arrays of statements, which are tokenized once, memory-mapped, and loaded in batches of similar length."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from merkhet.core import SLOT
from merkhet.core.errors import InputError, first_line
from merkhet.core.files import file_digest, write_json
from merkhet.core.ids import derived_seed, digest

logger = logging.getLogger(__name__)

IntArray = NDArray[np.int64]
_SYMBOL = re.compile(r"⟦([^⟧]*)⟧")
_METADATA = "packed.json"
_FILES = ("ids", "starts", "columns", "bare", "targets", "answers", "answer_starts")
LENGTH_STEP = 4
"""Sentences are padded to a multiple of this number of tokens: a compromise between few shapes and little padding."""


@dataclass(frozen=True)
class StatementArrays:
    """Tokenized statements as arrays, with one row for each sentence.

    The first rows are the sentences of all statements. The other rows are bare sentences: variants of statements with a
    masked start or end in which the other time is left out.
    """

    ids: NDArray[np.int32]
    """Token ids of all rows, concatenated; ids from the vocabulary size on stand for symbols."""
    starts: IntArray
    """Index of each row's first token in ``ids``, and the total number of tokens."""
    columns: NDArray[np.int32]
    """Position of the mask in each row."""
    bare: IntArray
    """Row of each statement's bare sentence, or -1 without a bare sentence."""
    targets: NDArray[np.int32]
    """Symbol index of each statement's target."""
    answers: NDArray[np.int32]
    """Symbol indices of the gold answers of all statements, concatenated."""
    answer_starts: IntArray
    """Index of each statement's first gold answer in ``answers``, and the total number of gold answers."""
    unreadable: int = 0
    """Number of sentences that are too long for the model; their rows are empty."""

    @property
    def count(self) -> int:
        """Number of statements."""
        return len(self.targets)

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each row."""
        return np.diff(self.starts)


def pack_statements(
    statements: pa.Table, symbols: pa.Table, tokenizer: Any, vocabulary: int, longest: int, folder: Path | None
) -> StatementArrays:
    """Tokenize statements into arrays, which are cached as memory-mapped files if ``folder`` is not None.

    Targets and answers become row indices of the table ``symbols``. Symbols within sentences become ids from
    ``vocabulary`` on. A sentence of more than ``longest`` tokens becomes an empty row and is counted.
    """
    names = symbols["symbol"].to_pylist()
    tokenizer_digest = digest(tokenizer.backend_tokenizer.to_str())
    identity = digest(
        ["packed", [_statements_digest(statements), digest(names), tokenizer_digest, vocabulary, longest]]
    )
    if folder is not None and (cached := _open_arrays(folder, identity)) is not None:
        return cached
    numbers = {name: number for number, name in enumerate(names)}
    prompts = statements["prompt"].to_pylist()
    bare_prompts = statements["bare_prompt"].to_pylist()
    with_bare = [index for index, prompt in enumerate(bare_prompts) if prompt]
    encoder = _StatementTokenizer(tokenizer, numbers, vocabulary)
    ids, starts, columns, unreadable = encoder.tokenize(
        [*prompts, *(bare_prompts[index] for index in with_bare)], longest
    )
    bare = np.full(len(prompts), -1, dtype=np.int64)
    bare[with_bare] = len(prompts) + np.arange(len(with_bare))
    answers = statements["answers"].combine_chunks()
    answers = answers if isinstance(answers, pa.Array) else pa.array([], pa.list_(pa.string()))
    arrays = StatementArrays(
        ids,
        starts,
        columns,
        bare,
        _symbol_numbers(statements["target"], symbols),
        _symbol_numbers(answers.flatten(), symbols),
        np.concatenate([[0], np.cumsum(pc.list_value_length(answers).to_numpy())]).astype(np.int64),
        unreadable,
    )
    if folder is None:
        return arrays
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        np.save(folder / f"{name}.npy", getattr(arrays, name))
    contents = {name: file_digest(folder / f"{name}.npy") for name in _FILES}
    write_json(folder / _METADATA, {"identity": identity, "unreadable": unreadable, "contents": contents})
    return _open_arrays(folder, identity) or arrays


def _open_arrays(folder: Path, identity: str) -> StatementArrays | None:
    try:
        metadata = json.loads((folder / _METADATA).read_text(encoding="utf-8"))
        if metadata["identity"] != identity:
            return None
        damaged = [name for name in _FILES if file_digest(folder / f"{name}.npy") != metadata["contents"][name]]
        if damaged:
            raise ValueError(f"{damaged[0]}.npy has changed")
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="c") for name in _FILES}
        return StatementArrays(**arrays, unreadable=int(metadata["unreadable"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s: the cached statements are damaged (%s); packing them again", folder.name, first_line(error))
        return None


def _statements_digest(statements: pa.Table) -> str:
    """Return a hash of the Arrow buffers of all packed columns.

    Hashing Python objects would be too slow for millions of answers.
    """
    hasher = hashlib.sha256()
    for name in ("prompt", "bare_prompt", "target", "answers"):
        column = statements[name].combine_chunks()
        for chunk in [column] if isinstance(column, pa.Array) else column.chunks:
            # Copy the chunk: the buffers of a slice also contain the rows outside the slice.
            for buffer in pa.concat_arrays([chunk]).buffers():
                hasher.update(b"-" if buffer is None else memoryview(buffer))
    return hasher.hexdigest()


def _symbol_numbers(names: Any, symbols: pa.Table) -> NDArray[np.int32]:
    """Return the row indices of symbols; raise an ``InputError`` for a name that is not in the table."""
    indices = pc.index_in(names, value_set=symbols["symbol"].combine_chunks())
    if indices.null_count:
        name = names.filter(pc.is_null(indices))[0].as_py()
        raise InputError(f"the answer {name!r} is not in the table of symbols; add it there")
    numbers: NDArray[np.int32] = indices.to_numpy().astype(np.int32)
    return numbers


class _StatementTokenizer:
    """A tokenizer of statements, which puts the mask into the slot and replaces ⟦symbols⟧ by their ids."""

    def __init__(self, tokenizer: Any, numbers: dict[str, int], vocabulary: int) -> None:
        self.backend = tokenizer.backend_tokenizer
        self.mask_token, self.mask = tokenizer.mask_token, int(tokenizer.mask_token_id)
        self.numbers, self.vocabulary = numbers, vocabulary
        # Encoding the mask alone shows which special tokens this tokenizer puts around a sentence.
        alone = self.backend.encode(self.mask_token).ids
        position = alone.index(self.mask)
        self.prefix, self.suffix = alone[:position], alone[position + 1 :]
        self._text_ids: dict[str, list[int]] = {}

    def tokenize(
        self, prompts: Sequence[str], longest: int
    ) -> tuple[NDArray[np.int32], IntArray, NDArray[np.int32], int]:
        """Return the ids of all sentences, the offset and mask position of each sentence, and the number left out.

        Sentences of more than ``longest`` tokens are left out, as empty rows.
        """
        flat: list[NDArray[np.int32]] = []
        lengths = np.zeros(len(prompts), dtype=np.int64)
        columns = np.zeros(len(prompts), dtype=np.int32)
        unreadable = 0
        for index, ids in enumerate(self._encode(prompts)):
            if len(ids) > longest:
                unreadable += 1
                continue
            if ids.count(self.mask) != 1:
                raise InputError(f"the statement {prompts[index]!r} must have the slot {SLOT} exactly once; correct it")
            columns[index] = ids.index(self.mask)
            lengths[index] = len(ids)
            flat.append(np.array(ids, dtype=np.int32))
        all_ids = np.concatenate(flat) if flat else np.zeros(0, dtype=np.int32)
        return all_ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), columns, unreadable

    def _encode(self, prompts: Sequence[str], at_once: int = 16_384) -> Iterator[list[int]]:
        for first in range(0, len(prompts), at_once):
            chunk = prompts[first : first + at_once]
            if any("⟦" in prompt for prompt in chunk):
                yield from map(self._with_symbols, chunk)
            else:
                encoded = self.backend.encode_batch([prompt.replace(SLOT, self.mask_token) for prompt in chunk])
                yield from (encoding.ids for encoding in encoded)

    def _with_symbols(self, prompt: str) -> list[int]:
        ids = list(self.prefix)
        for index, part in enumerate(_SYMBOL.split(prompt)):
            if index % 2:
                if part not in self.numbers:
                    raise InputError(f"the symbol {part!r} of a statement is not in the table of symbols; add it there")
                ids.append(self.vocabulary + self.numbers[part])
            elif part:
                if part not in self._text_ids:
                    text = part.replace(SLOT, self.mask_token)
                    self._text_ids[part] = self.backend.encode(text, add_special_tokens=False).ids
                ids += self._text_ids[part]
        return ids + list(self.suffix)


@dataclass(frozen=True)
class Batch:
    """Statements that are processed together."""

    statements: IntArray
    """Indices of the statements."""
    rows: IntArray
    """Row of the sentence that is read for each statement."""
    length: int
    """Number of tokens of each sentence, with padding."""
    padded: bool
    """True if some sentences are shorter than ``length``."""


def epoch_batches(
    arrays: StatementArrays, epoch: int, *, batch_size: int, seed: int, dynamic: int = 0, copies: int = 1
) -> list[Batch]:
    """Return the batches of an epoch, which together contain each statement once.

    The batches depend only on the arguments. Of the statements with a bare sentence, ``dynamic`` percent are replaced
    by it. There are ``copies`` random selections of replaced statements, which the epochs use in turn.
    """
    rows: IntArray = np.arange(arrays.count)
    if dynamic:
        generator = np.random.default_rng(derived_seed(seed, "times left out", epoch % copies))
        drawn = generator.random(arrays.count) * 100
        rows = np.where((drawn < dynamic) & (arrays.bare >= 0), arrays.bare, rows)
    return length_batches(arrays, rows, batch_size, np.random.default_rng(derived_seed(seed, "memorize", epoch)))


def length_batches(
    arrays: StatementArrays, rows: IntArray, batch_size: int, generator: np.random.Generator | None = None
) -> list[Batch]:
    """Group statements into batches of one padded length.

    ``rows`` holds the row that is read for each statement; empty rows are left out. Statements that do not fill a batch
    join the next longer length. With a ``generator``, statements and batches are shuffled.
    """
    lengths = arrays.lengths[rows]
    order: IntArray = np.arange(arrays.count) if generator is None else generator.permutation(arrays.count)
    order = order[lengths[order] > 0]
    padded_lengths = -(-lengths[order] // LENGTH_STEP) * LENGTH_STEP
    batches: list[Batch] = []
    pending: IntArray = np.zeros(0, dtype=np.int64)
    sizes = np.unique(padded_lengths)
    for size in sizes:
        pending = np.concatenate([pending, order[padded_lengths == size]])
        full_count = len(pending) if size == sizes[-1] else len(pending) // batch_size * batch_size
        for first in range(0, full_count, batch_size):
            chosen = pending[first : min(first + batch_size, full_count)]
            batches.append(Batch(chosen, rows[chosen], int(size), bool((lengths[chosen] < size).any())))
        pending = pending[full_count:]
    if generator is not None:
        batches = [batches[index] for index in generator.permutation(len(batches))]
    return batches


@dataclass(frozen=True)
class DeviceBatch:
    """The tensors of a batch on the device."""

    ids: torch.Tensor
    lengths: torch.Tensor | None
    """Number of tokens of each sentence; None if no sentence is padded."""
    columns: torch.Tensor
    """Position of the mask in each row."""
    targets: torch.Tensor
    """Symbol index of each target."""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> DeviceBatch:
        lengths = None if self.lengths is None else self.lengths[rows]
        return DeviceBatch(self.ids[rows], lengths, self.columns[rows], self.targets[rows])


class BatchLoader:
    """A loader of batches of statements onto a device; on a CPU the arrays stay memory-mapped."""

    def __init__(self, arrays: StatementArrays, device: torch.device, pad: int) -> None:
        self.arrays, self.device, self.pad = arrays, device, pad
        self.ids, self.starts, self.columns = (
            self._tensor(array) for array in (arrays.ids, arrays.starts, arrays.columns)
        )
        self.targets, self.lengths = self._tensor(arrays.targets), self._tensor(arrays.lengths.astype(np.int32))

    def _tensor(self, array: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def load(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, DeviceBatch]]:
        """Yield each batch with its tensors on the device; the indices of all batches are copied there at once."""
        if not batches:
            return
        rows, numbers = (
            self._tensor(np.concatenate([getattr(batch, name) for batch in batches])) for name in ("rows", "statements")
        )
        start = 0
        for batch in batches:
            chosen = slice(start, start + len(batch.rows))
            start = chosen.stop
            yield batch, self._load(batch, rows[chosen], numbers[chosen])

    def _load(self, batch: Batch, rows: torch.Tensor, numbers: torch.Tensor) -> DeviceBatch:
        positions = torch.arange(batch.length, device=self.device)
        lengths = self.lengths[rows]
        ids = self.ids[(self.starts[rows][:, None] + positions).clamp_(max=len(self.ids) - 1)].long()
        if batch.padded:
            ids = torch.where(positions[None, :] < lengths[:, None], ids, self.pad)
        return DeviceBatch(
            ids, lengths if batch.padded else None, self.columns[rows].long(), self.targets[numbers].long()
        )

    def answers(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two tensors over all gold answers of a batch: the batch row and the symbol index of each answer."""
        first, last = (self.arrays.answer_starts[batch.statements + offset] for offset in (0, 1))
        counts = last - first
        rows = np.repeat(np.arange(len(counts)), counts)
        flat = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return self._tensor(rows), self._tensor(self.arrays.answers[flat]).long()
