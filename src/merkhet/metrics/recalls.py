"""Conversion of recalls to answers; a recall is a model's ranking of all symbols at the mask of a statement."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.recall_schemas import RECALLS
from merkhet.core.schemas import ANSWERS, validate
from merkhet.core.text import counted
from merkhet.metrics.answer_table import IntArray, encode_column, flatten_lists
from merkhet.metrics.ranks import FloatArray

RECALL_METRICS = ("acc@1", "acc@5", "hit@5", "hit@10")
TOP_SYMBOLS = 10
PROBE, METHOD = "recall", "symbols"
_SLICE_ROWS = 8192
"""Number of statements that are converted at once, because an Arrow array has a maximum size."""


def recall_answers(
    statements: pa.Table, recalls: pa.Table, question_ids: pa.Array, symbols: pa.Table, model: str
) -> pa.Table:
    """Make the table of answers from recalls.

    The column ``golds`` has the target and the right answers that share the best score; the ranks of other right
    answers are unknown. A recall records only how many right answers share the best score. Their names are taken from
    the top symbols of the recall, then from the remaining right answers in order.

    Args:
        recalls: One recall for each statement, in any order.
        question_ids: Id of the question of each statement.
        symbols: Table of symbols and their labels.
    """
    recalls = align_recalls(statements, recalls)
    parts = [
        _slice_answers(statements.slice(start, _SLICE_ROWS), recalls.slice(start, _SLICE_ROWS), symbols)
        for start in range(0, statements.num_rows, _SLICE_ROWS)
    ]
    if not parts:
        return ANSWERS.schema.empty_table()
    table = pa.concat_tables(parts).append_column("question_id", pa.chunked_array([question_ids], pa.string()))
    for name, value in (("model", model), ("probe", PROBE), ("method", METHOD)):
        table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
    return validate(ANSWERS, table)


def _slice_answers(statements: pa.Table, recalls: pa.Table, symbols: pa.Table) -> pa.Table:
    numbers = {name: recalls[name].to_numpy().astype(np.int64) for name in RECALLS.schema.names[1:-1]}
    target_is_best = numbers["target_above"] == numbers["best_above"]
    others = np.maximum(numbers["best_golds"] - target_is_best, 0)
    counts = 1 + others
    owners = np.repeat(np.arange(len(counts)), counts)
    is_target = np.zeros(len(owners), dtype=bool)
    is_target[np.cumsum(counts) - counts] = True
    above, ties = (
        np.where(is_target, numbers[f"target_{name}"][owners], numbers[f"best_{name}"][owners])
        for name in ("above", "ties")
    )
    targets = statements["target"].combine_chunks()
    other_golds = _best_others(statements, recalls, others)
    sources = np.where(is_target, owners, len(targets) + np.cumsum(~is_target) - 1)
    golds = _label(pa.concat_arrays([targets, other_golds]).take(pa.array(sources)), symbols)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    top_counts, top = flatten_lists(recalls["top"])
    ranked = pa.StructArray.from_arrays(
        [_label(top.field("symbol"), symbols), top.field("score").cast(pa.float64())], ["candidate", "score"]
    )
    starts = np.cumsum(top_counts) - top_counts
    firsts = pa.array(np.where(top_counts > 0, starts, 0), mask=top_counts == 0)
    return pa.table(
        {
            "prediction": ranked.field("candidate").take(firsts),
            "ranked": pa.ListArray.from_arrays(pa.array(np.append(starts, top_counts.sum()).astype(np.int32)), ranked),
            "golds": pa.ListArray.from_arrays(offsets, golds),
            "gold_ranks": pa.ListArray.from_arrays(offsets, pa.array(above + (ties + 1) / 2.0)),
            "gold_ties": pa.ListArray.from_arrays(offsets, pa.array(ties.astype(np.int32))),
            "among": numbers["among"],
            "right": pc.list_value_length(statements["answers"]).cast(pa.int64()),
        }
    )


def _best_others(statements: pa.Table, recalls: pa.Table, counts: IntArray) -> pa.Array:
    """Return ``counts`` right answers of each statement, other than the target, that share the best score."""
    rows = np.flatnonzero(counts)
    statements, recalls = statements.take(pa.array(rows)), recalls.take(pa.array(rows))
    lengths, names = flatten_lists(statements["answers"])
    top_lengths, top = flatten_lists(recalls["top"])
    owners, top_owners = (np.repeat(np.arange(len(rows)), count) for count in (lengths, top_lengths))
    codes, _ = encode_column(pa.concat_arrays([names, top.field("symbol"), statements["target"].combine_chunks()]))
    size = int(codes.max(initial=0)) + 1
    answer_codes, top_codes, target_codes = np.split(codes, [len(names), len(names) + len(top_owners)])
    positions = {key: position for position, key in reversed(list(enumerate((top_owners * size + top_codes).tolist())))}
    keys = (owners * size + answer_codes).tolist()
    priority = np.array([positions.get(key, len(top_owners)) for key in keys], dtype=np.int64)
    order = np.lexsort((priority, owners))
    order = order[answer_codes[order] != target_codes[owners[order]]]
    sorted_owners = owners[order]
    place = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    return names.take(pa.array(order[place < counts[rows][sorted_owners]]))


def _label(column: pa.Array, symbols: pa.Table) -> pa.Array:
    """Return the labels of symbols; words that are not in the table of symbols are returned unchanged."""
    indices = pc.index_in(column, value_set=symbols["symbol"].combine_chunks())
    return pc.coalesce(symbols["label"].combine_chunks().take(indices), column)


def align_recalls(statements: pa.Table, recalls: pa.Table) -> pa.Table:
    """Return the recalls in the order of the statements; raise MerkhetError if a statement has no recall."""
    statement_ids, recall_ids = (table["statement_id"].combine_chunks() for table in (statements, recalls))
    if statement_ids.equals(recall_ids):
        return recalls
    indices = pc.index_in(statements["statement_id"], value_set=recall_ids)
    if indices.null_count:
        name = statements["statement_id"].filter(pc.is_null(indices))[0].as_py()
        raise MerkhetError(
            f"{counted(indices.null_count, 'statement has', 'statements have')} no recall; the first is {name}"
        )
    return recalls.take(indices)


def frequency_recalls(stored: pa.Table, asked: pa.Table, symbols: pa.Table) -> pa.Table:
    r"""Return the recalls of a baseline that knows only how often each symbol is a target.

    Symbols are ranked by how often they are the target of stored statements with the same relation and mask. Symbols
    with equal counts are ranked by how often they are the target of stored statements with the same mask. Symbols that
    are equal in both counts are tied. The score of a symbol is the logarithm of

    .. math:: p = (c_{rm} + q) / (n_{rm} + 1), \quad q = (c_m + 1 / S) / (n_m + 1)

    with the counts c of the symbol among the n statements of the relation and mask (rm) or of the mask (m), and S
    symbols in total.
    """
    size = symbols.num_rows
    targets, owners, answers = _symbol_indices(stored, asked, symbols)
    masks = {name: np.bincount(targets[rows], minlength=size) for name, rows in _rows_of(stored, "mask").items()}
    pairs = {
        name: np.bincount(targets[rows], minlength=size) for name, rows in _rows_of(stored, "mask", "relation").items()
    }
    nothing = np.zeros(size, dtype=np.int64)
    asked_targets = _index_symbols(asked["target"], symbols)
    numbers = {name: np.zeros(asked.num_rows, dtype=np.int32) for name in RECALLS.schema.names[1:-1]}
    numbers["among"][:] = size
    cells = _rows_of(asked, "mask", "relation")
    tops, scores, top_of = [], [], np.zeros(asked.num_rows, dtype=np.int64)
    for cell, ((mask, relation), rows) in enumerate(cells.items()):
        counts, mask_counts = pairs.get((mask, relation), nothing), masks.get((mask,), nothing)
        keys = counts * (int(mask_counts.sum()) + 1) + mask_counts
        order = np.sort(keys)
        numbers["target_above"][rows], numbers["target_ties"][rows] = _above_and_ties(order, keys[asked_targets[rows]])
        in_cell = np.zeros(asked.num_rows, dtype=bool)
        in_cell[rows] = True
        inside = in_cell[owners]
        starts = np.flatnonzero(np.diff(owners[inside], prepend=-1))
        right = keys[answers[inside]]
        best = np.maximum.reduceat(right, starts)
        numbers["best_above"][rows], numbers["best_ties"][rows] = _above_and_ties(order, best)
        answer_counts = np.diff(np.append(starts, len(right)))
        numbers["best_golds"][rows] = np.add.reduceat(right == np.repeat(best, answer_counts), starts)
        first = np.flatnonzero(keys >= order[-min(TOP_SYMBOLS, size)])
        first = first[np.lexsort((first, -keys[first]))][:TOP_SYMBOLS]
        tops.append(first)
        prior = (mask_counts[first] + 1.0 / size) / (mask_counts.sum() + 1.0)
        scores.append(np.log((counts[first] + prior) / (counts.sum() + 1.0)))
        top_of[rows] = cell
    return _recall_table(asked, symbols, numbers, tops, scores, top_of)


def _recall_table(
    asked: pa.Table,
    symbols: pa.Table,
    numbers: dict[str, NDArray[np.int32]],
    tops: list[IntArray],
    scores: list[FloatArray],
    top_of: IntArray,
) -> pa.Table:
    if not tops:
        return RECALLS.schema.empty_table()
    offsets = np.concatenate([[0], np.cumsum([len(top) for top in tops])]).astype(np.int32)
    names = symbols["symbol"].combine_chunks().take(pa.array(np.concatenate(tops)))
    entry = RECALLS.schema.field("top").type.value_type
    entries = pa.StructArray.from_arrays(
        [names, pa.array(np.concatenate(scores), pa.float32())], fields=[entry.field(0), entry.field(1)]
    )
    lists = pa.ListArray.from_arrays(pa.array(offsets), entries).take(pa.array(top_of))
    columns = [asked["statement_id"], *(numbers[name] for name in RECALLS.schema.names[1:-1]), lists]
    return pa.table(columns, names=RECALLS.schema.names).cast(RECALLS.schema)


def _symbol_indices(stored: pa.Table, asked: pa.Table, symbols: pa.Table) -> tuple[IntArray, IntArray, IntArray]:
    """Return the symbol indices of stored targets, and the row and symbol index of each right answer in ``asked``."""
    answers = asked["answers"]
    lengths = pc.list_value_length(answers).to_numpy().astype(np.int64)
    if len(lengths) and not lengths.min():
        raise InputError("a statement has no right answer; give it at least one")
    owners = np.repeat(np.arange(asked.num_rows), lengths)
    return _index_symbols(stored["target"], symbols), owners, _index_symbols(pc.list_flatten(answers), symbols)


def _index_symbols(column: pa.ChunkedArray, symbols: pa.Table) -> IntArray:
    matches = pc.index_in(column, value_set=symbols["symbol"].combine_chunks())
    if matches.null_count:
        name = column.filter(pc.is_null(matches))[0].as_py()
        raise InputError(f"{name!r} is not in the table of {symbols.num_rows:,} symbols; add it there")
    indices: IntArray = matches.to_numpy().astype(np.int64)
    return indices


def _above_and_ties(order: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Count the entries of ``order``, which is ascending, that are above each key and equal to each key."""
    right = np.searchsorted(order, keys, side="right")
    return len(order) - right, right - np.searchsorted(order, keys, side="left")


def _rows_of(table: pa.Table, *columns: str) -> dict[tuple[str, ...], IntArray]:
    """Return the ascending row numbers of each combination of values in ``columns``."""
    number = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        codes, _ = encode_column(table[column])
        number = number * (int(codes.max(initial=0)) + 1) + codes
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return {tuple(table[column][int(rows[0])].as_py() for column in columns): rows for rows in parts}
