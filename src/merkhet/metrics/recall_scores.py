"""Scores of recalls: how often a model that stores facts recalls a masked symbol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.ids import derived_seed
from merkhet.core.recall_schemas import RECALLS
from merkhet.metrics._closed_form import robust_difference, robust_interval
from merkhet.metrics.bootstrap import Interval, PairedDifference, clustered_interval, paired_difference
from merkhet.metrics.corrections import chance_adjusted
from merkhet.metrics.paired_tests import PairedDetails, paired_details
from merkhet.metrics.ranks import FloatArray, miss_probability

RECALL_METRICS = ("acc@1", "acc@5", "hit@5", "hit@10")
RECALL_GROUPS = ("mask", "relation", "conflict", "cardinality", "template")
MAX_BOOTSTRAP_FACTS = 500
"""Up to this number of facts, intervals are bootstrapped; beyond, they come in closed form."""
TOP_SYMBOLS = 10
Row = dict[str, Any]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """Cluster numbers of statements: by fact and by prompt.

    A prompt with several right answers is one statement per answer, but the model answers it only in one way. Such
    statements are not independent, although their facts differ.
    """

    facts: IntArray
    prompts: IntArray

    def take(self, rows: NDArray[Any]) -> Clusters:
        """Select the clusters of some statements."""
        return Clusters(self.facts[rows], self.prompts[rows])

    @cached_property
    def few(self) -> bool:
        """Whether facts can be resampled: there are few, and no prompt is asked twice."""
        distinct_prompts = not len(self.prompts) or int(np.bincount(self.prompts).max()) == 1
        return distinct_prompts and int(np.count_nonzero(np.bincount(self.facts))) <= MAX_BOOTSTRAP_FACTS

    def interval(self, values: FloatArray, seed: int) -> Interval:
        """Estimate the mean with its 95% interval, by resampling facts or robust to both kinds of clusters."""
        if self.few:
            return clustered_interval(values, self.facts, seed=seed)
        return robust_interval(values, self.facts, self.prompts)

    def difference(self, first: FloatArray, second: FloatArray, seed: int) -> PairedDifference:
        """Estimate the paired difference of two models, in the same two ways."""
        if self.few and len(first):
            return paired_difference(first, second, self.facts, seed=seed)
        return robust_difference(first, second, self.facts, self.prompts)

    def details(self, first: FloatArray, second: FloatArray) -> PairedDetails:
        """Compute further paired statistics with the same clusters."""
        return paired_details(first, second, *((self.facts,) if self.few else (self.facts, self.prompts)))


def statement_clusters(statements: pa.Table) -> Clusters:
    """Return the clusters of statements; a statement without a fact is its own fact."""
    facts = pc.coalesce(statements["fact_id"], statements["statement_id"])
    return Clusters(encode_column(facts), encode_column(statements["prompt"]))


def encode_column(column: pa.ChunkedArray | pa.Array) -> IntArray:
    """Encode the values of a column as integers."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):  # An empty column has no chunk to combine.
        return np.zeros(0, dtype=np.int64)
    codes: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def top_symbols(recalls: pa.Table) -> pa.ChunkedArray:
    """Return the top symbol of each statement; null for a statement without one."""
    has_top = pc.greater(pc.list_value_length(recalls["top"]), 0)
    firsts = pc.struct_field(pc.list_element(recalls["top"].filter(has_top), 0), "symbol")
    indices = pc.subtract(pc.cumulative_sum(pc.cast(has_top, pa.int64())), 1)
    return firsts.take(pc.if_else(has_top, indices, pa.scalar(None, pa.int64())))


def recall_values(recalls: pa.Table, metric: str) -> FloatArray:
    r"""Return the metric's value of each statement: a probability under random tie-breaking, higher is better.

    Hit@k: that the target, the masked symbol, is among the first k. With a symbols above it and t of
    its score, itself included,

    .. math:: \mathrm{Hit@}k = \min(1, \max(0, (k - a) / t))

    Acc@k: that any right answer is. Only the best right answers count, g of the t symbols that share the best score
    of a right one: whatever is right and worse stands after all t of them, so where k reaches it, all t are among
    the first k and a right one with them; and where none of the g is among the first k, neither is a worse one. With
    j = k - a places left for the t symbols (none, if it is negative; all, if it is more than t),

    .. math:: \mathrm{Acc@}k = 1 - \binom{t - g}{j} / \binom{t}{j}

    The target is one of the right answers, so Acc@k is never below Hit@k, and neither falls as k grows.
    """
    kind, k = _parse_metric(metric)
    if kind == "hit":
        above, ties = _numbers(recalls, "target_above"), _numbers(recalls, "target_ties")
        return np.clip((k - above) / ties, 0.0, 1.0)
    above, ties, golds = (_numbers(recalls, name) for name in ("best_above", "best_ties", "best_golds"))
    remaining = np.clip(k - above, 0.0, ties)
    # Drawn and right symbols are exchangeable; iterating over the drawn ones, at most k, is faster.
    return 1.0 - miss_probability(ties, remaining, golds)


def recall_chance(statements: pa.Table, recalls: pa.Table, metric: str) -> FloatArray:
    """Return the chance level of each statement, by a random order of all n symbols, of which g are right.

    Hit@k: k / n. Acc@k: 1 - C(n - g, k) / C(n, k).
    """
    kind, k = _parse_metric(metric)
    among = _numbers(recalls, "among")
    draws = np.minimum(float(k), among)
    golds = pc.list_value_length(statements["answers"]).to_numpy().astype(np.float64)
    return draws / among if kind == "hit" else 1.0 - miss_probability(among, draws, golds)


def score_recalls(
    statements: pa.Table,
    recalls: pa.Table,
    *,
    suite: str,
    model: str,
    seed: int,
    probe: str = "recall",
    method: str = "symbols",
) -> list[Row]:
    """Score recalls by task: over all statements, by each of RECALL_GROUPS, and by mask and conflict together.

    Every row has all columns of RECALL_GROUPS, None where it is not grouped by them; conflict is "yes" or "no".
    Intervals are clustered by fact and prompt (:class:`Clusters`). Refuses recalls that lack a statement.
    """
    recalls = align_recalls(statements, recalls)
    clusters = statement_clusters(statements)
    values = {metric: recall_values(recalls, metric) for metric in RECALL_METRICS}
    chances = {metric: recall_chance(statements, recalls, metric) for metric in RECALL_METRICS}
    rows: list[Row] = []
    for task, groups, members in _cells(statements):
        cell_clusters = clusters.take(members)
        for metric in RECALL_METRICS:
            interval = cell_clusters.interval(
                values[metric][members], derived_seed(seed, task, *groups.values(), metric)
            )
            numbers = {"value": interval.value, "low": interval.low, "high": interval.high}
            chance = float(chances[metric][members].mean())
            rows.append(
                {
                    **{"model": model, "suite": suite, "task": task, "probe": probe, "method": method},
                    "metric": metric,
                    **{name: None if np.isnan(number) else number for name, number in numbers.items()},
                    **{"n": len(members), "unusable": 0, "chance": chance},
                    "adjusted": chance_adjusted(interval.value, chance),
                    **groups,
                }
            )
    return rows


def paired_recall_difference(
    statements: pa.Table, recalls: pa.Table, others: pa.Table, metric: str, seed: int
) -> tuple[PairedDifference, int]:
    """Estimate the paired difference of two sets of recalls, and the number of statements they share."""
    differences, n = paired_recall_differences(statements, recalls, others, [metric], seed)
    return differences[metric], n


def paired_recall_differences(
    statements: pa.Table, recalls: pa.Table, others: pa.Table, metrics: Sequence[str], seed: int
) -> tuple[dict[str, PairedDifference], int]:
    """Estimate the paired differences of several metrics; NaN where no statement is shared."""
    first, second, clusters = _shared(statements, recalls, others)
    if not first.num_rows:
        return dict.fromkeys(metrics, PairedDifference(*[float("nan")] * 4)), 0
    differences = {
        metric: clusters.difference(
            recall_values(first, metric), recall_values(second, metric), derived_seed(seed, metric)
        )
        for metric in metrics
    }
    return differences, first.num_rows


def paired_recall_details(statements: pa.Table, recalls: pa.Table, others: pa.Table, metric: str) -> PairedDetails:
    """Compute further paired statistics on the shared statements."""
    first, second, clusters = _shared(statements, recalls, others)
    return (
        clusters.details(recall_values(first, metric), recall_values(second, metric))
        if first.num_rows
        else PairedDetails(0)
    )


def _shared(statements: pa.Table, recalls: pa.Table, others: pa.Table) -> tuple[pa.Table, pa.Table, Clusters]:
    """Return both sets of recalls of the shared statements, and their clusters."""
    ids = statements["statement_id"]
    both = pc.and_(pc.is_in(ids, recalls["statement_id"]), pc.is_in(ids, others["statement_id"]))
    statements = statements.select(["statement_id", "fact_id", "prompt"]).filter(both)
    first, second = (align_recalls(statements, table.drop_columns(["top"])) for table in (recalls, others))
    return first, second, statement_clusters(statements)


def align_recalls(statements: pa.Table, recalls: pa.Table) -> pa.Table:
    """Return the recalls in the order of the statements; refuse if one is missing."""
    statement_ids, recall_ids = (table["statement_id"].combine_chunks() for table in (statements, recalls))
    if statement_ids.equals(recall_ids):
        return recalls
    indices = pc.index_in(statements["statement_id"], value_set=recall_ids)
    if indices.null_count:
        name = statements["statement_id"].filter(pc.is_null(indices))[0].as_py()
        raise MerkhetError(f"{indices.null_count:,} statements have no recall, the first of them {name}")
    return recalls.take(indices)


def frequency_recalls(stored: pa.Table, asked: pa.Table, symbols: pa.Table) -> pa.Table:
    r"""Return the recalls of a baseline that knows only how often each stored symbol was masked.

    Symbols are ranked by how often they are the target of a stored statement of the same relation and mask, and where
    that is equal by how often they are one of the mask; the rest is tied. Their scores are the logarithms of

    .. math:: p = (c_{rm} + q) / (n_{rm} + 1), \quad q = (c_m + 1 / S) / (n_m + 1)

    with counts c of the symbol among n statements of the relation and mask (rm) or of the mask (m), S symbols in all.
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
    """Return symbol indices of the stored targets, and row and symbol index of each right answer asked for."""
    answers = asked["answers"]
    lengths = pc.list_value_length(answers).to_numpy().astype(np.int64)
    if len(lengths) and not lengths.min():
        raise InputError("a statement has no right answer; every statement needs at least one")
    owners = np.repeat(np.arange(asked.num_rows), lengths)
    return _index_symbols(stored["target"], symbols), owners, _index_symbols(pc.list_flatten(answers), symbols)


def _index_symbols(column: pa.ChunkedArray, symbols: pa.Table) -> IntArray:
    matches = pc.index_in(column, value_set=symbols["symbol"].combine_chunks())
    if matches.null_count:
        name = column.filter(pc.is_null(matches))[0].as_py()
        raise InputError(f"{name!r} is asked for or stored, but is none of the {symbols.num_rows:,} symbols")
    indices: IntArray = matches.to_numpy().astype(np.int64)
    return indices


def _above_and_ties(order: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Count the keys above each key in an ascending order, and those equal to it."""
    right = np.searchsorted(order, keys, side="right")
    return len(order) - right, right - np.searchsorted(order, keys, side="left")


def _rows_of(table: pa.Table, *columns: str) -> dict[tuple[str, ...], IntArray]:
    """Return the ascending rows of each combination of values."""
    number = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        codes = encode_column(table[column])
        number = number * (int(codes.max(initial=0)) + 1) + codes
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return {tuple(table[column][int(rows[0])].as_py() for column in columns): rows for rows in parts}


def _cells(statements: pa.Table) -> Iterator[tuple[str, Row, IntArray]]:
    """Iterate over tasks and their groups, with the values of the group columns and the rows."""
    words = pc.if_else(statements["conflict"], "yes", "no")
    table = statements.set_column(statements.schema.get_field_index("conflict"), "conflict", words)
    for columns in ((), *((name,) for name in RECALL_GROUPS), ("mask", "conflict")):
        for (task, *values), rows in sorted(
            _rows_of(table, "task", *columns).items(), key=lambda item: tuple(map(str, item[0]))
        ):
            if None not in values:
                yield task, dict.fromkeys(RECALL_GROUPS) | dict(zip(columns, values, strict=True)), rows


def _numbers(recalls: pa.Table, name: str) -> FloatArray:
    numbers: FloatArray = recalls[name].to_numpy().astype(np.float64)
    return numbers


def _parse_metric(metric: str) -> tuple[str, int]:
    kind, _, k = metric.partition("@")
    if kind not in ("acc", "hit") or not k.isdigit() or not int(k):
        raise InputError(f"recalls have no metric {metric!r}; write acc@1, hit@10 or another rank")
    return kind, int(k)
