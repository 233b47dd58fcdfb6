"""Answers of a run as arrays, with the metric values of every model, task, probe and method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from merkhet.core.records import Question, question_column
from merkhet.core.schemas import ANSWERS, make_table, read_table
from merkhet.metrics.metrics import Metric, MetricNotApplicableError, Prediction, Responses
from merkhet.metrics.ranks import FloatArray, GoldRanks

Row = dict[str, Any]
IntArray = NDArray[np.int64]
_COLUMNS = (
    *("question_id", "model", "probe", "method", "repeat", "golds", "gold_ranks", "gold_ties"),
    *("among", "right", "unusable", "outcome"),
)
"""Columns that are always read; the large column of rankings is read only for metrics that need it."""


class LazyRows(Sequence[Any]):
    """A sequence that is computed on first access."""

    def __init__(self, size: int, load: Callable[[], Sequence[Any]], answers: AnswerTable | None = None) -> None:
        self._size, self._load = size, load
        self.answers = answers
        """Table of the answers that the rows hold; None if the rows are not answers."""

    @cached_property
    def _items(self) -> Sequence[Any]:
        return self._load()

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._items[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


class TableResponses(Responses):
    """Responses read from a table of answers; a column becomes Python objects only when a metric reads it."""

    column: Callable[[str], pa.ChunkedArray]
    """Function that returns a column of the answers by name."""

    @classmethod
    def collect(
        cls, column: Callable[[str], pa.ChunkedArray], ids: Sequence[str], questions_by_id: Mapping[str, Question]
    ) -> TableResponses:
        """Collect the responses to the questions ``ids``; ``column`` returns a column of their answers by name."""
        size = len(ids)
        questions = LazyRows(size, lambda: [questions_by_id[question_id] for question_id in ids])

        def lazy(load: Callable[[], Sequence[Any]]) -> LazyRows:
            return LazyRows(size, load)

        right, outcomes = column("right"), column("outcome")
        responses = cls(
            top=lazy(lambda: _top_predictions(column("ranked"), column("gold_ranks"), column("tied_first"), questions)),
            answers=lazy(lambda: [question.answers for question in questions]),
            candidates=lazy(
                lambda: [
                    questions[row].candidates if ranked is None else ()
                    for row, ranked in enumerate(column("among").to_pylist())
                ]
            ),
            gold_ranks=lazy(lambda: [ranks or [] for ranks in column("gold_ranks").to_pylist()]),
            gold_ties=lazy(lambda: [ties or [] for ties in column("gold_ties").to_pylist()]),
            targets=lazy(lambda: _target_indices(column("golds"), question_column(questions_by_id, "target", ids))),
            among=lazy(lambda: column("among").to_pylist()),
            outcomes=outcomes.to_pylist() if outcomes.null_count < size else [None] * size,
            right_counts=right.to_pylist() if right.null_count < size else (),
        )
        responses.__dict__["column"] = column
        return responses

    @cached_property
    def golds(self) -> GoldRanks:
        """Ranks of the right answers in flat arrays, at least one per question."""
        counts, ranks = flatten_lists(self.column("gold_ranks"))
        if not counts.all():
            raise MetricNotApplicableError("written answers have no ranks")
        ties = flatten_lists(self.column("gold_ties"))[1]
        return GoldRanks(
            counts, *(values.to_numpy(zero_copy_only=False).astype(np.float64) for values in (ranks, ties))
        )


@dataclass(frozen=True)
class Cell:
    """Answers of one model to one task, obtained by one probe and one method."""

    model: str
    task: str
    probe: str
    method: str
    rows: IntArray
    """Row numbers of the usable answers in the table, sorted by question and repetition."""
    first_rows: IntArray
    """Row number of each question's first answer, usable or not, in the order of ``codes``."""
    starts: IntArray
    """Index in ``rows`` of each answered question's first answer."""
    codes: IntArray
    """Codes of the questions: first those with a usable answer, then the others, each in ascending order."""
    answered: int
    """Number of questions with a usable answer."""
    responses: Responses
    _values: dict[tuple[Metric, bool], FloatArray] = field(default_factory=dict)

    def values(self, metric: Metric, *, chance: bool = False, wrong: bool = False) -> FloatArray:
        """Compute the metric of each question as the mean over its answers.

        Args:
            chance: Compute the chance level instead of the metric.
            wrong: Append a value of 0 for each question without a usable answer.
        """
        function = metric.chance if chance else metric.values
        assert function is not None
        key = (metric, chance)
        if key not in self._values:
            values = np.asarray(function(self.responses), dtype=np.float64) if self.answered else np.zeros(0)
            self._values[key] = mean_by_question(values, self.starts)
        values = self._values[key]
        return np.concatenate([values, np.zeros(len(self.codes) - self.answered)]) if wrong else values

    def tied_codes(self) -> IntArray:
        """Return the codes of the questions whose best right answer is tied; none for written answers."""
        if not self.answered:
            return self.codes[:0]
        try:
            ties = self.responses.best.ties
        except MetricNotApplicableError:  # Written answers have no ranks.
            return self.codes[:0]
        return self.codes[: self.answered][np.maximum.reduceat(ties, self.starts) > 1]

    def question_codes(self, wrong: bool) -> IntArray:
        """Return the codes of the questions that :meth:`values` covers."""
        return self.codes if wrong else self.codes[: self.answered]


class AnswerTable:
    """Answers of a run, grouped by model, task, probe and method.

    Args:
        answers: A table of answers, its rows, or its file. Rankings are read from the file when a metric needs them.
    """

    def __init__(self, answers: pa.Table | Sequence[Row] | Path, questions: Mapping[str, Question]) -> None:
        self._source = answers if isinstance(answers, pa.Table | Path) else make_table(ANSWERS, answers)
        self.table = self._read(_COLUMNS)
        self.questions = questions
        self.ids: list[str] = sorted(pc.unique(self.table["question_id"]).to_pylist())
        """Sorted ids of all questions in the table; a question's code is its index in this list."""
        self.codes = _as_integers(
            pc.index_in(self.table["question_id"], value_set=pa.array(self.ids, pa.string())), self.table.num_rows
        )
        self.tasks: list[str] = question_column(questions, "task", self.ids)
        self._cells: dict[tuple[str, str, str, str], Cell] = {}
        self._columns: dict[str, pa.ChunkedArray] = {}

    @cached_property
    def cell_rows(self) -> dict[tuple[str, str, str, str], IntArray]:
        """Row numbers of the answers of every model, task, probe and method, in the order of the table."""
        task_names = list(dict.fromkeys(self.tasks))
        numbers = {name: number for number, name in enumerate(task_names)}
        task_codes = np.array([numbers[task] for task in self.tasks], dtype=np.int64)
        columns = [encode_column(self.table["model"]), (task_codes[self.codes], task_names)]
        columns += [encode_column(self.table[name]) for name in ("probe", "method")]
        key = np.zeros(self.table.num_rows, dtype=np.int64)
        for codes, names in columns:
            key = key * max(1, len(names)) + codes
        order = np.argsort(key, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else []
        parts.sort(key=lambda rows: int(rows[0]))
        return {tuple(names[codes[rows[0]]] for codes, names in columns): rows for rows in parts}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the answers as one chunk."""
        if name not in self._columns:
            column = (self.table if name in _COLUMNS else self._read([name]))[name]
            self._columns[name] = (
                pa.chunked_array([column.combine_chunks()], column.type) if column.num_chunks > 1 else column
            )
        return self._columns[name]

    def _read(self, columns: Sequence[str] | None = None) -> pa.Table:
        table = self._source
        if isinstance(table, Path):
            names = None if columns is None else list(ANSWERS.required.union(columns))
            table = read_table(ANSWERS, table, columns=names)
            pa.default_memory_pool().release_unused()  # Decoding takes several times the memory of the columns.
        return table if columns is None else table.select(columns)

    def take(self, name: str, rows: IntArray) -> pa.ChunkedArray:
        """Return the values of a column in ``rows``; only the row groups that hold them are read from a file."""
        if name in _COLUMNS or name in self._columns or isinstance(self._source, pa.Table) or not len(rows):
            return self.column(name).take(pa.array(rows))
        with pq.ParquetFile(self._source, page_checksum_verification=True) as file:
            sizes = np.array([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
            starts = np.cumsum(sizes) - sizes
            groups, owners = np.unique(np.searchsorted(starts, rows, side="right") - 1, return_inverse=True)
            column = file.read_row_groups(groups.tolist(), columns=[name])[name]
        skipped = starts[groups] - (np.cumsum(sizes[groups]) - sizes[groups])
        return column.take(pa.array(rows - skipped[owners]))

    def rows(self) -> LazyRows:
        """Return the answers as a sequence of dictionaries, which are made on first access."""
        return LazyRows(self.table.num_rows, lambda: scoring_rows(self._read()), self)

    def cell(self, model: str, task: str, probe: str, method: str) -> Cell:
        """Return the answers of one model to one task, obtained by one probe and one method."""
        key = (model, task, probe, method)
        if key not in self._cells:
            self._cells[key] = self._make_cell(key)
        return self._cells[key]

    def _make_cell(self, key: tuple[str, str, str, str]) -> Cell:
        members = self.cell_rows[key]
        members = members[np.lexsort((self._repeats[members], self.codes[members]))]
        usable = members[self._is_usable[members]]
        starts = question_starts(self.codes[usable])
        answered = self.codes[usable][starts]
        asked, firsts = np.unique(self.codes[members], return_index=True)
        is_answered = np.isin(asked, answered)
        codes = np.concatenate([asked[is_answered], asked[~is_answered]])
        # The first row in the order of the table decides where a group appears among the scores.
        first_rows = np.minimum.reduceat(members, firsts) if len(members) else members
        first_rows = np.concatenate([first_rows[is_answered], first_rows[~is_answered]])
        ids = [self.ids[code] for code in self.codes[usable].tolist()]
        rows = pa.array(usable)
        responses = TableResponses.collect(lambda name: self.column(name).take(rows), ids, self.questions)
        return Cell(*key, usable, first_rows, starts, codes, len(answered), responses)

    @cached_property
    def _repeats(self) -> IntArray:
        return np.asarray(pc.fill_null(self.table["repeat"], 0).to_numpy(), dtype=np.int64)

    @cached_property
    def _is_usable(self) -> NDArray[np.bool_]:
        return np.asarray(
            pc.is_null(self.table["unusable"]).combine_chunks().to_numpy(zero_copy_only=False), dtype=bool
        )


def question_starts(codes: NDArray[Any]) -> IntArray:
    """Return the index of each question's first answer; ``codes`` are the questions of the sorted answers."""
    if not len(codes):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))


def mean_by_question(values: FloatArray, starts: IntArray) -> FloatArray:
    """Average the values of each question's answers; ``starts`` are the indices of the first answers."""
    if len(starts) == len(values):
        return values
    counts = np.diff(np.append(starts, len(values)))
    means: FloatArray = np.add.reduceat(values, starts) / counts
    return means


def encode_column(column: pa.ChunkedArray | pa.Array) -> tuple[IntArray, list[Any]]:
    """Return the code of each row, and the distinct values in order of appearance."""
    values = pc.unique(column)
    return _as_integers(pc.index_in(column, value_set=values), len(column)), values.to_pylist()


def flatten_lists(column: pa.ChunkedArray) -> tuple[IntArray, pa.Array]:
    """Return the length of each list (0 for null), and the items of all lists in one array."""
    lists = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(lists, pa.ChunkedArray):  # An empty column has no chunk to combine.
        return np.zeros(0, dtype=np.int64), pa.array([], column.type.value_type)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths, lists.flatten()


def first_tied(ranked: pa.ChunkedArray) -> pa.Array:
    """Return the entries of each ranking that are tied for the first rank."""
    counts, entries = flatten_lists(ranked)
    scores = entries.field("score").to_numpy(zero_copy_only=False)
    starts = np.cumsum(counts) - counts
    is_top = scores == scores[np.repeat(starts, counts)]
    top_counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[is_top], minlength=len(counts))
    offsets = pa.array(np.concatenate([[0], np.cumsum(top_counts)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, entries.filter(pa.array(is_top)))


def scoring_rows(table: pa.Table) -> list[Row]:
    """Return the rows of a table of answers; rankings keep only the candidates tied for the first rank."""
    column = table.schema.get_field_index("ranked")
    rows: list[Row] = table.set_column(column, "ranked", first_tied(table["ranked"])).to_pylist() if len(table) else []
    return rows


def _top_predictions(
    ranked: pa.ChunkedArray, gold_ranks: pa.ChunkedArray, tied_first: pa.ChunkedArray, questions: Sequence[Question]
) -> list[Sequence[Prediction]]:
    """Return the candidates tied for the first rank of each answer; several written answers form one tuple."""
    tops: list[Sequence[Prediction]] = [
        [tuple(entry["candidate"] for entry in tied)]
        if len(tied) > 1 and not count
        else [entry["candidate"] for entry in tied]
        for tied, count in zip(first_tied(ranked).to_pylist(), flatten_lists(gold_ranks)[0], strict=True)
    ]
    # Questions with the same candidates share one list, so that it is compared with right answers only once.
    shared: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for row in np.flatnonzero(flatten_lists(tied_first)[0]).tolist():
        candidates, runs = questions[row].candidates, tuple(tied_first[row].as_py())
        key = id(candidates), runs
        if key not in shared:
            ordered = sorted(candidates)
            shared[key] = [
                text for start, stop in zip(runs[::2], runs[1::2], strict=True) for text in ordered[start:stop]
            ]
        tops[row] = shared[key]
    return tops


def _target_indices(golds: pa.ChunkedArray, targets: Sequence[str]) -> list[int | None]:
    """Return the index of each question's target among its ranked right answers; None if the target is not ranked."""
    counts, names = flatten_lists(golds)
    owners = np.repeat(np.arange(len(counts)), counts)
    wanted = pa.array(targets, pa.string()).take(pa.array(owners))
    matches = np.flatnonzero(pc.fill_null(pc.equal(names, wanted), False).to_numpy(zero_copy_only=False))
    rows, first = np.unique(owners[matches], return_index=True)
    indices = np.full(len(counts), -1)
    indices[rows] = matches[first] - (np.cumsum(counts) - counts)[rows]
    return [None if index < 0 else index for index in indices.tolist()]


def _as_integers(indices: pa.ChunkedArray | pa.Array, size: int) -> IntArray:
    if not size:
        return np.zeros(0, dtype=np.int64)
    codes: IntArray = (
        indices.to_numpy() if isinstance(indices, pa.ChunkedArray) else indices.to_numpy(zero_copy_only=False)
    )
    return codes.astype(np.int64)
