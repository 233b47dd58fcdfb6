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
    flat = list(chain.from_iterable(values))
    return _lists(values, pa.array(flat, kind.value_type)) if _have_types(flat, kind.value_type) else None


def _ranked_column(values: list[Any]) -> pa.Array | None:
    """Convert rankings, each of which many answers may share, so that it is converted once."""
    by_id = {id(value): value for value in values}
    distinct = list(by_id.values())
    if not set(map(type, distinct)) <= {tuple}:
        return None
    pairs = list(chain.from_iterable(distinct))
    if not (set(map(type, pairs)) <= {tuple} and set(map(len, pairs)) <= {2}):
        return None
    texts, scores = [text for text, _ in pairs], [score for _, score in pairs]
    if not _have_types(texts, pa.string()) or not _have_types(scores, pa.float64()):
        return None
    kind = ANSWERS.schema.field("ranked").type.value_type
    structs = pa.StructArray.from_arrays(
        [pa.array(texts, pa.string()), pa.array(scores, pa.float64())], fields=list(kind)
    )
    lists = _lists(distinct, structs)
    if len(distinct) == len(values):
        return lists
    positions = {identity: position for position, identity in enumerate(by_id)}
    return lists.take(pa.array([positions[id(value)] for value in values], pa.int64()))


def _lists(values: Sequence[Sequence[Any]], flat: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(list(map(len, values)), dtype=np.int64)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def _have_types(values: Sequence[Any], kind: pa.DataType) -> bool:
    return set(map(type, values)) <= _EXACT_TYPES[kind]
