"""Scores of models that store: how often a masked symbol is recalled, over hundreds of thousands of statements."""

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
"""Up to so many facts intervals are drawn by resampling; beyond, they come from a formula that tells the same."""
TOP_SYMBOLS = 10
Row = dict[str, Any]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """What statements stand and fall together: those of one fact, and those that are one prompt (as numbers).

    A prompt with several right answers is asked once for each of them, and the model answers it in one way: hundreds
    of such statements of as many facts are no hundreds of observations.
    """

    facts: IntArray
    prompts: IntArray

    def take(self, rows: NDArray[Any]) -> Clusters:
        """Those of some of the statements."""
        return Clusters(self.facts[rows], self.prompts[rows])

    @cached_property
    def few(self) -> bool:
        """Whether they are few enough to be resampled fact by fact: no prompt is asked twice."""
        alone = not len(self.prompts) or int(np.bincount(self.prompts).max()) == 1
        return alone and int(np.count_nonzero(np.bincount(self.facts))) <= MAX_BOOTSTRAP_FACTS

    def interval(self, values: FloatArray, seed: int) -> Interval:
        """The mean with its 95% interval: by resampling facts, or robust to facts and prompts both."""
        if self.few:
            return clustered_interval(values, self.facts, seed=seed)
        return robust_interval(values, self.facts, self.prompts)

    def difference(self, first: FloatArray, second: FloatArray, seed: int) -> PairedDifference:
        """How far the first values are above the second ones, statement by statement; the same two ways."""
        if self.few and len(first):
            return paired_difference(first, second, self.facts, seed=seed)
        return robust_difference(first, second, self.facts, self.prompts)

    def details(self, first: FloatArray, second: FloatArray) -> PairedDetails:
        """What else is said of the two, by the same clusters."""
        return paired_details(first, second, *((self.facts,) if self.few else (self.facts, self.prompts)))


def statement_clusters(statements: pa.Table) -> Clusters:
    """The clusters of statements; one that names no fact is a fact of its own."""
    facts = pc.coalesce(statements["fact_id"], statements["statement_id"])
    return Clusters(encode_column(facts), encode_column(statements["prompt"]))


def encode_column(column: pa.ChunkedArray | pa.Array) -> IntArray:
    """A number for each value of a column, the same for equal ones."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):  # An empty column has no chunk to combine.
        return np.zeros(0, dtype=np.int64)
    found: IntArray = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def top_symbols(recalls: pa.Table) -> pa.ChunkedArray:
    """What stands first for each statement; null for one that could not be read."""
    there = pc.greater(pc.list_value_length(recalls["top"]), 0)
    firsts = pc.struct_field(pc.list_element(recalls["top"].filter(there), 0), "symbol")
    places = pc.subtract(pc.cumulative_sum(pc.cast(there, pa.int64())), 1)
    return firsts.take(pc.if_else(there, places, pa.scalar(None, pa.int64())))


def recall_values(recalls: pa.Table, metric: str) -> FloatArray:
    r"""The metric's value of each statement, in [0, 1], higher is better: a probability over ties in random order.

    Hit@k: that the target, the very symbol that was masked, is among the first k. With a symbols above it and t of
    its score, itself included,

    .. math:: \mathrm{Hit@}k = \min(1, \max(0, (k - a) / t))

    Acc@k: that any right answer is. Only the best right answers count, g of the t symbols that share the best score
    of a right one: whatever is right and worse stands after all t of them, so where k reaches it, all t are among
    the first k and a right one with them; and where none of the g is among the first k, neither is a worse one. With
    j = k - a places left for the t symbols (none, if it is negative; all, if it is more than t),

    .. math:: \mathrm{Acc@}k = 1 - \binom{t - g}{j} / \binom{t}{j}

    The target is one of the right answers, so Acc@k is never below Hit@k, and neither falls as k grows.
    """
    kind, k = _parsed(metric)
    if kind == "hit":
        above, ties = _numbers(recalls, "target_above"), _numbers(recalls, "target_ties")
        return np.clip((k - above) / ties, 0.0, 1.0)
    above, ties, golds = (_numbers(recalls, name) for name in ("best_above", "best_ties", "best_golds"))
    places = np.clip(k - above, 0.0, ties)
    # Which are drawn and which are right may be exchanged, and the places are never more than k.
    return 1.0 - miss_probability(ties, places, golds)


def recall_chance(statements: pa.Table, recalls: pa.Table, metric: str) -> FloatArray:
    """What a random order of all n symbols would give: Hit@k k / n, Acc@k 1 - C(n - g, k) / C(n, k) with g right."""
    kind, k = _parsed(metric)
    among = _numbers(recalls, "among")
    places = np.minimum(float(k), among)
    golds = pc.list_value_length(statements["answers"]).to_numpy().astype(np.float64)
    return places / among if kind == "hit" else 1.0 - miss_probability(among, places, golds)


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
    """Rows of scores: of each task over all its statements, by each of GROUPS, and by mask and conflict together.

    Every row has all columns of GROUPS, None where it is not split by them; conflict is "yes" or "no". Intervals are
    over facts and prompts (:class:`Clusters`). Refuses recalls that lack a statement.
    """
    recalls = align_recalls(statements, recalls)
    clusters = statement_clusters(statements)
    values = {metric: recall_values(recalls, metric) for metric in RECALL_METRICS}
    chances = {metric: recall_chance(statements, recalls, metric) for metric in RECALL_METRICS}
    rows: list[Row] = []
    for task, groups, members in _cells(statements):
        own = clusters.take(members)
        for metric in RECALL_METRICS:
            found = own.interval(values[metric][members], derived_seed(seed, task, *groups.values(), metric))
            numbers = {"value": found.value, "low": found.low, "high": found.high}
            chance = float(chances[metric][members].mean())
            rows.append(
                {
                    **{"model": model, "suite": suite, "task": task, "probe": probe, "method": method},
                    "metric": metric,
                    **{name: None if np.isnan(number) else number for name, number in numbers.items()},
                    **{"n": len(members), "unusable": 0, "chance": chance},
                    "adjusted": chance_adjusted(found.value, chance),
                    **groups,
                }
            )
    return rows


def paired_recall_difference(
    statements: pa.Table, recalls: pa.Table, others: pa.Table, metric: str, seed: int
) -> tuple[PairedDifference, int]:
    """How far recalls are above others on those of the statements that both have, and how many these are."""
    found, n = paired_recall_differences(statements, recalls, others, [metric], seed)
    return found[metric], n


def paired_recall_differences(
    statements: pa.Table, recalls: pa.Table, others: pa.Table, metrics: Sequence[str], seed: int
) -> tuple[dict[str, PairedDifference], int]:
    """The same for several metrics at once; NaN where no statement is shared."""
    first, second, clusters = _shared(statements, recalls, others)
    if not first.num_rows:
        return dict.fromkeys(metrics, PairedDifference(*[float("nan")] * 4)), 0
    found = {
        metric: clusters.difference(
            recall_values(first, metric), recall_values(second, metric), derived_seed(seed, metric)
        )
        for metric in metrics
    }
    return found, first.num_rows


def paired_recall_details(statements: pa.Table, recalls: pa.Table, others: pa.Table, metric: str) -> PairedDetails:
    """What else is said of recalls and others on those of the statements that both have."""
    first, second, clusters = _shared(statements, recalls, others)
    return (
        clusters.details(recall_values(first, metric), recall_values(second, metric))
        if first.num_rows
        else PairedDetails(0)
    )


def _shared(statements: pa.Table, recalls: pa.Table, others: pa.Table) -> tuple[pa.Table, pa.Table, Clusters]:
    """The recalls and the others of the statements that both have, and the clusters of these."""
    ids = statements["statement_id"]
    both = pc.and_(pc.is_in(ids, recalls["statement_id"]), pc.is_in(ids, others["statement_id"]))
    statements = statements.select(["statement_id", "fact_id", "prompt"]).filter(both)
    first, second = (align_recalls(statements, own.drop_columns(["top"])) for own in (recalls, others))
    return first, second, statement_clusters(statements)


def align_recalls(statements: pa.Table, recalls: pa.Table) -> pa.Table:
    """The recalls of these statements, in their order; refuses to go on where one is missing."""
    wanted, there = (table["statement_id"].combine_chunks() for table in (statements, recalls))
    if wanted.equals(there):
        return recalls
    places = pc.index_in(statements["statement_id"], value_set=there)
    if places.null_count:
        name = statements["statement_id"].filter(pc.is_null(places))[0].as_py()
        raise MerkhetError(f"{places.null_count:,} statements have no recall, the first of them {name}")
    return recalls.take(places)


def frequency_recalls(stored: pa.Table, asked: pa.Table, symbols: pa.Table) -> pa.Table:
    r"""What a baseline recalls that knows only how often each symbol was masked in what was stored.

    Symbols are ranked by how often they are the target of a stored statement of the same relation and mask, and where
    that is equal by how often they are one of the mask; the rest is tied. Their scores are the logarithms of

    .. math:: p = (c_{rm} + q) / (n_{rm} + 1), \quad q = (c_m + 1 / S) / (n_m + 1)

    with counts c of the symbol among n statements of the relation and mask (rm) or of the mask (m), S symbols in all.
    """
    size = symbols.num_rows
    targets, owners, answers = _symbol_places(stored, asked, symbols)
    masks = {name: np.bincount(targets[rows], minlength=size) for name, rows in _rows_of(stored, "mask").items()}
    pairs = {
        name: np.bincount(targets[rows], minlength=size) for name, rows in _rows_of(stored, "mask", "relation").items()
    }
    nothing = np.zeros(size, dtype=np.int64)
    asked_targets = _places(asked["target"], symbols)
    numbers = {name: np.zeros(asked.num_rows, dtype=np.int32) for name in RECALLS.schema.names[1:-1]}
    numbers["among"][:] = size
    wanted = _rows_of(asked, "mask", "relation")
    tops, scores, top_of = [], [], np.zeros(asked.num_rows, dtype=np.int64)
    for place, ((mask, relation), rows) in enumerate(wanted.items()):
        own, wider = pairs.get((mask, relation), nothing), masks.get((mask,), nothing)
        keys = own * (int(wider.sum()) + 1) + wider
        order = np.sort(keys)
        numbers["target_above"][rows], numbers["target_ties"][rows] = _standing(order, keys[asked_targets[rows]])
        here = np.zeros(asked.num_rows, dtype=bool)
        here[rows] = True
        inside = here[owners]
        starts = np.flatnonzero(np.diff(owners[inside], prepend=-1))
        right = keys[answers[inside]]
        best = np.maximum.reduceat(right, starts)
        numbers["best_above"][rows], numbers["best_ties"][rows] = _standing(order, best)
        counts = np.diff(np.append(starts, len(right)))
        numbers["best_golds"][rows] = np.add.reduceat(right == np.repeat(best, counts), starts)
        first = np.flatnonzero(keys >= order[-min(TOP_SYMBOLS, size)])
        first = first[np.lexsort((first, -keys[first]))][:TOP_SYMBOLS]
        tops.append(first)
        wide = (wider[first] + 1.0 / size) / (wider.sum() + 1.0)
        scores.append(np.log((own[first] + wide) / (own.sum() + 1.0)))
        top_of[rows] = place
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


def _symbol_places(stored: pa.Table, asked: pa.Table, symbols: pa.Table) -> tuple[IntArray, IntArray, IntArray]:
    """The targets of what was stored, and the right answers of what is asked with the row of each, as places."""
    answers = asked["answers"]
    lengths = pc.list_value_length(answers).to_numpy().astype(np.int64)
    if len(lengths) and not lengths.min():
        raise InputError("a statement without a right answer cannot be scored; every statement needs one at least")
    owners = np.repeat(np.arange(asked.num_rows), lengths)
    return _places(stored["target"], symbols), owners, _places(pc.list_flatten(answers), symbols)


def _places(column: pa.ChunkedArray, symbols: pa.Table) -> IntArray:
    found = pc.index_in(column, value_set=symbols["symbol"].combine_chunks())
    if found.null_count:
        name = column.filter(pc.is_null(found))[0].as_py()
        raise InputError(f"{name!r} is asked for or stored, but is none of the {symbols.num_rows:,} symbols")
    places: IntArray = found.to_numpy().astype(np.int64)
    return places


def _standing(order: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """How many stand above each key in an ascending order, and how many share it."""
    right = np.searchsorted(order, keys, side="right")
    return len(order) - right, right - np.searchsorted(order, keys, side="left")


def _rows_of(table: pa.Table, *columns: str) -> dict[tuple[str, ...], IntArray]:
    """The rows of each combination of values, ascending."""
    number = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        own = encode_column(table[column])
        number = number * (int(own.max(initial=0)) + 1) + own
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return {tuple(table[column][int(rows[0])].as_py() for column in columns): rows for rows in parts}


def _cells(statements: pa.Table) -> Iterator[tuple[str, Row, IntArray]]:
    """Each task, all of it and split, with the group columns' values and the rows."""
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


def _parsed(metric: str) -> tuple[str, int]:
    kind, _, k = metric.partition("@")
    if kind not in ("acc", "hit") or not k.isdigit() or not int(k):
        raise InputError(f"recalls have no metric {metric!r}; write acc@1, hit@10 or another number of places")
    return kind, int(k)
