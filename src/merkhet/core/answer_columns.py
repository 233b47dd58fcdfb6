"""Conversion of answers to the answers table, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from merkhet.core.records import Answer
from merkhet.core.schemas import ANSWERS, make_table, validate

_EXACT_TYPES: dict[pa.DataType, frozenset[type]] = {
    pa.string(): frozenset({str, type(None)}),
    pa.float64(): frozenset({float, int, type(None)}),
    pa.int64(): frozenset({int, type(None)}),
    pa.int32(): frozenset({int, type(None)}),
}
"""Types of values that Arrow converts without a change."""
_LONG = 16
"""Mean length of lists from which on lists that several answers share are converted once."""


def make_answer_table(answers: Sequence[Answer]) -> pa.Table:
    """Return the answers as a validated table, equal to that of :func:`make_table` from their rows.

    Answers of a probe that are not of the declared types are left to :func:`make_table`, which names the faults.
    """
    columns = []
    for column in ANSWERS.schema:
        values = list(map(attrgetter(column.name), answers))
        array = _ranked_column(values) if column.name == "ranked" else _column(values, column.type)
        if array is None:
            return make_table(ANSWERS, [answer.as_row() for answer in answers])
        columns.append(array)
    return validate(ANSWERS, pa.Table.from_arrays(columns, schema=ANSWERS.schema))


def _column(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """Convert the values of a column; return None if one of them has another type."""
    if not pa.types.is_list(kind):
        return pa.array(values, kind) if _have_types(values, kind) else None
    if not set(map(type, values)) <= {tuple}:
        return None
    # Finding the values that are one object takes longer than converting some numbers anew.
    is_long = sum(map(len, values)) > _LONG * len(values)
    distinct, positions = _distinct(values) if is_long else (values, None)
    flat = list(chain.from_iterable(distinct))
    if not _have_types(flat, kind.value_type):
        return None
    return _repeat(_lists(distinct, pa.array(flat, kind.value_type)), positions)


def _ranked_column(values: list[Any]) -> pa.Array | None:
    """Convert rankings; return None if one of them is not of the declared types."""
    distinct, positions = _distinct(values)
    if not set(map(type, distinct)) <= {tuple}:
        return None
    pairs = list(chain.from_iterable(distinct))
    if not (set(map(type, pairs)) <= {tuple} and set(map(len, pairs)) <= {2}):
        return None
    # Slices of one flat list are several times as fast as comprehensions over the pairs.
    flat = list(chain.from_iterable(pairs))
    texts, scores = flat[::2], flat[1::2]
    if not _have_types(texts, pa.string()) or not _have_types(scores, pa.float64()):
        return None
    kind = ANSWERS.schema.field("ranked").type.value_type
    structs = pa.StructArray.from_arrays(
        [pa.array(texts, pa.string()), pa.array(scores, pa.float64())], fields=list(kind)
    )
    return _repeat(_lists(distinct, structs), positions)


def _distinct(values: list[Any]) -> tuple[list[Any], list[int] | None]:
    """Return the distinct objects, and the position in them of each value; None if no two values are one object.

    Many answers may share a ranking or a long list of ties, which is then converted once.
    """
    by_id = {id(value): value for value in values}
    if len(by_id) == len(values):
        return values, None
    positions = {identity: position for position, identity in enumerate(by_id)}
    return list(by_id.values()), [positions[id(value)] for value in values]


def _repeat(lists: pa.ListArray, positions: list[int] | None) -> pa.ListArray:
    """Return the list at each position; without positions, all lists."""
    if positions is None:
        return lists
    # ``take`` copies number by number, which is many times as slow for long lists.
    parts = [lists.slice(position, 1) for position in range(len(lists))]
    return pa.concat_arrays([parts[position] for position in positions])


def _lists(values: Sequence[Sequence[Any]], flat: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(list(map(len, values)), dtype=np.int64)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def _have_types(values: Sequence[Any], kind: pa.DataType) -> bool:
    return set(map(type, values)) <= _EXACT_TYPES[kind]
