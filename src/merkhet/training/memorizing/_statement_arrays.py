"""Statements as arrays: tokenised once, kept in memory-mapped files, put into batches of about equal length."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from merkhet.core import SLOT
from merkhet.core.errors import InputError, first_line
from merkhet.core.files import file_digest, write_json
from merkhet.core.ids import derived_seed, digest

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

IntArray = NDArray[np.int64]
_SYMBOL = re.compile(r"⟦([^⟧]*)⟧")
_ABOUT = "packed.json"
_FILES = ("ids", "starts", "columns", "bare", "targets", "answers", "answer_starts")
LENGTH_STEP = 4
"""Rows are padded to multiples of this, so that there are few shapes and little padding."""


@dataclass(frozen=True)
class Packed:
    """Statements as arrays. Rows up to the number of statements are their sentences; the bare ones follow.

    ``ids`` are the tokens of all rows end to end, from ``starts``; numbers from the size of the vocabulary on are
    symbols. ``columns`` says where the mask of each row is, ``bare`` gives each statement's row without the other time
    (or -1), ``targets`` and ``answers`` are numbers of symbols. What is ``unreadable`` is too long for the model.
    """

    ids: NDArray[np.int32]
    starts: IntArray
    columns: NDArray[np.int32]
    bare: IntArray
    targets: NDArray[np.int32]
    answers: NDArray[np.int32]
    answer_starts: IntArray
    unreadable: int = 0

    @property
    def count(self) -> int:
        """How many statements there are."""
        return len(self.targets)

    @property
    def lengths(self) -> IntArray:
        """The number of tokens of each row."""
        return np.diff(self.starts)


def pack(
    statements: pa.Table, symbols: pa.Table, tokenizer: Any, vocabulary: int, longest: int, folder: Path | None
) -> Packed:
    """Statements as arrays, in files of a folder if one is given; files made of the same are used again.

    Refuses a target or an answer that is no symbol. A sentence that the model cannot read as a whole is counted, and
    has a row without tokens.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    content = [_digest(statements), digest(symbols["symbol"].to_pylist()), _identity(tokenizer), vocabulary, longest]
    identity = digest(["packed", content])
    if folder is not None and (found := _opened(folder, identity)) is not None:
        return found
    numbers = {name: number for number, name in enumerate(symbols["symbol"].to_pylist())}
    prompts = statements["prompt"].to_pylist()
    bare_prompts = statements["bare_prompt"].to_pylist()
    with_bare = [number for number, text in enumerate(bare_prompts) if text]
    reader = _Reader(tokenizer, numbers, vocabulary)
    ids, starts, columns, unreadable = reader.read([*prompts, *(bare_prompts[number] for number in with_bare)], longest)
    bare = np.full(len(prompts), -1, dtype=np.int64)
    bare[with_bare] = len(prompts) + np.arange(len(with_bare))
    answers = statements["answers"].combine_chunks()
    answers = answers if isinstance(answers, pa.Array) else pa.array([], pa.list_(pa.string()))
    packed = Packed(
        ids,
        starts,
        columns,
        bare,
        _numbered(statements["target"], symbols),
        _numbered(answers.flatten(), symbols),
        np.concatenate([[0], np.cumsum(pc.list_value_length(answers).to_numpy())]).astype(np.int64),
        unreadable,
    )
    if folder is None:
        return packed
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        np.save(folder / f"{name}.npy", getattr(packed, name))
    contents = {name: file_digest(folder / f"{name}.npy") for name in _FILES}
    write_json(folder / _ABOUT, {"identity": identity, "unreadable": unreadable, "contents": contents})
    return _opened(folder, identity) or packed


def _opened(folder: Path, identity: str) -> Packed | None:
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        if about["identity"] != identity:
            return None
        damaged = [name for name in _FILES if file_digest(folder / f"{name}.npy") != about["contents"][name]]
        if damaged:
            raise ValueError(f"{damaged[0]}.npy is not what was written")
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="c") for name in _FILES}
        return Packed(**arrays, unreadable=int(about["unreadable"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s, unfinished work, was damaged (%s): packed anew", folder.name, first_line(error))
        return None


def _digest(statements: pa.Table) -> str:
    """A hash of all that is packed, without making it into objects: there may be many millions of answers."""
    import pyarrow as pa

    found = hashlib.sha256()
    for name in ("prompt", "bare_prompt", "target", "answers"):
        column = statements[name].combine_chunks()
        for part in [column] if isinstance(column, pa.Array) else column.chunks:
            # Anew, so that what hides behind a slice does not count.
            for buffer in pa.concat_arrays([part]).buffers():
                found.update(b"-" if buffer is None else memoryview(buffer))
    return found.hexdigest()


def _identity(tokenizer: Any) -> str:
    return digest(tokenizer.backend_tokenizer.to_str())


def _numbered(names: Any, symbols: pa.Table) -> NDArray[np.int32]:
    """The numbers of symbols; refuses a name that is none."""
    import pyarrow.compute as pc

    found = pc.index_in(names, value_set=symbols["symbol"].combine_chunks())
    if found.null_count:
        name = names.filter(pc.is_null(found))[0].as_py()
        raise InputError(f"{name!r} is an answer, and the table of symbols has no such symbol")
    numbers: NDArray[np.int32] = found.to_numpy().astype(np.int32)
    return numbers


class _Reader:
    """Sentences as tokens: the mask in the slot, and symbols where they stand between their brackets."""

    def __init__(self, tokenizer: Any, numbers: dict[str, int], vocabulary: int) -> None:
        self.backend = tokenizer.backend_tokenizer
        self.mask_token, self.mask = tokenizer.mask_token, int(tokenizer.mask_token_id)
        self.numbers, self.vocabulary = numbers, vocabulary
        # Alone, the mask has the special tokens of the family around it, whatever these are.
        alone = self.backend.encode(self.mask_token).ids
        place = alone.index(self.mask)
        self.before, self.after = alone[:place], alone[place + 1 :]
        self._pieces: dict[str, list[int]] = {}

    def read(self, prompts: Sequence[str], longest: int) -> tuple[NDArray[np.int32], IntArray, NDArray[np.int32], int]:
        """Tokens of all sentences end to end, where each starts, where its mask is, and how many are too long."""
        flat: list[NDArray[np.int32]] = []
        lengths = np.zeros(len(prompts), dtype=np.int64)
        columns = np.zeros(len(prompts), dtype=np.int32)
        unreadable = 0
        for number, ids in enumerate(self._encoded(prompts)):
            if len(ids) > longest:
                unreadable += 1
                continue
            columns[number] = self._mask_in(ids, prompts[number])
            lengths[number] = len(ids)
            flat.append(np.array(ids, dtype=np.int32))
        together = np.concatenate(flat) if flat else np.zeros(0, dtype=np.int32)
        return together, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), columns, unreadable

    def _encoded(self, prompts: Sequence[str], at_once: int = 16_384) -> Iterator[list[int]]:
        for first in range(0, len(prompts), at_once):
            some = prompts[first : first + at_once]
            if any("⟦" in text for text in some):
                yield from map(self._with_symbols, some)
            else:
                encoded = self.backend.encode_batch([text.replace(SLOT, self.mask_token) for text in some])
                yield from (one.ids for one in encoded)

    def _with_symbols(self, prompt: str) -> list[int]:
        ids = list(self.before)
        for place, part in enumerate(_SYMBOL.split(prompt)):
            if place % 2:
                if part not in self.numbers:
                    raise InputError(f"{part!r} stands in a statement, and the table of symbols has no such symbol")
                ids.append(self.vocabulary + self.numbers[part])
            elif part:
                if part not in self._pieces:
                    text = part.replace(SLOT, self.mask_token)
                    self._pieces[part] = self.backend.encode(text, add_special_tokens=False).ids
                ids += self._pieces[part]
        return ids + list(self.after)

    def _mask_in(self, ids: Sequence[int], prompt: str) -> int:
        if ids.count(self.mask) != 1:
            raise InputError(f"the statement {prompt!r} should have the slot {SLOT} exactly once")
        return ids.index(self.mask)


@dataclass(frozen=True)
class Batch:
    """Statements that are learned at once, the row read of each, the length of all, and whether some are shorter."""

    statements: IntArray
    rows: IntArray
    length: int
    padded: bool


def epoch_batches(
    packed: Packed, epoch: int, *, batch_size: int, seed: int, dynamic: int = 0, copies: int = 1
) -> list[Batch]:
    """The batches of an epoch, which depend on the seed and the epoch alone; each statement stands in one of them.

    With ``dynamic`` so many percent of the statements that have a bare sentence are read in it, drawn for each of the
    ``copies`` that take turns.
    """
    rows = rows_of_epoch(packed, epoch, seed=seed, dynamic=dynamic, copies=copies)
    return length_batches(packed, rows, batch_size, np.random.default_rng(derived_seed(seed, "memorize", epoch)))


def rows_of_epoch(packed: Packed, epoch: int, *, seed: int, dynamic: int, copies: int) -> IntArray:
    """The row by which each statement is read in an epoch."""
    rows: IntArray = np.arange(packed.count)
    if dynamic:
        copy = epoch % copies
        drawn = np.random.default_rng(derived_seed(seed, "times left out", copy)).random(packed.count) * 100
        rows = np.where((drawn < dynamic) & (packed.bare >= 0), packed.bare, rows)
    return rows


def length_batches(
    packed: Packed, rows: IntArray, batch_size: int, generator: np.random.Generator | None = None
) -> list[Batch]:
    """Statements in batches of one padded length; what fills no batch of its length goes to the next longer one.

    With a generator statements and batches are shuffled. Rows without tokens are left out.
    """
    lengths = packed.lengths[rows]
    order: IntArray = np.arange(packed.count) if generator is None else generator.permutation(packed.count)
    order = order[lengths[order] > 0]
    padded = -(-lengths[order] // LENGTH_STEP) * LENGTH_STEP
    batches: list[Batch] = []
    waiting: IntArray = np.zeros(0, dtype=np.int64)
    sizes = np.unique(padded)
    for size in sizes:
        waiting = np.concatenate([waiting, order[padded == size]])
        full = len(waiting) if size == sizes[-1] else len(waiting) // batch_size * batch_size
        for first in range(0, full, batch_size):
            some = waiting[first : min(first + batch_size, full)]
            batches.append(Batch(some, rows[some], int(size), bool((lengths[some] < size).any())))
        waiting = waiting[full:]
    if generator is not None:
        batches = [batches[place] for place in generator.permutation(len(batches))]
    return batches
