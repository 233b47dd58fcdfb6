"""Tables of a run in memory: arrays for filters and counts, DuckDB for search and lookup.

Masks and counts over arrays take a few milliseconds for a million questions; in SQL they took some hundred. Long lists
(ranked candidates, choices) stay on disk until a question is opened.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, QUESTIONS
from merkhet.questions.sense_text import bracketed_words, fill_word
from merkhet.reports.explorer._answer_cells import COLUMNS, Bools, Cells, make_cells
from merkhet.reports.explorer._row_reader import ParquetRows

FACETS = ("task", "domain", "relation", "template", "rule", "split", "language")
"""Columns by which questions are filtered; a missing value is the empty string."""
_LARGE_GROUP = 65_536
_MAX_CACHED_SEARCHES = 16


@dataclass(frozen=True)
class Facet:
    """Hold a dictionary-encoded column of the questions."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]
    """Index of each question's value in ``values``."""

    def codes_of(self, values: Sequence[str]) -> list[int]:
        """Return the codes of the given values; unknown values are skipped."""
        return [code for code, value in enumerate(self.values) if value in set(values)]


@dataclass
class RunTables:
    """Hold a loaded run. It is safe to read from many threads."""

    questions: ParquetRows
    answers: ParquetRows
    candidates: ParquetRows | None
    facets: dict[str, Facet]
    cells: Cells
    database: duckdb.DuckDBPyConnection
    list_columns: pa.Table
    """What a list shows of each question: question_id, prompt, word, answers."""
    text_order: npt.NDArray[np.int32]
    """Position of each question in the order of prompts."""
    candidate_sets: dict[str, int]
    """Row of each candidate set by its name."""
    has_facts: bool
    notes: list[str]
    """Remarks on the run for the user."""
    _searches: OrderedDict[tuple[str, ...], Bools] = field(default_factory=OrderedDict)
    _search_locks: dict[tuple[str, ...], threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self.questions)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query with a cursor of its own. Values from requests must be parameters."""
        with self.database.cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(sql, list(parameters)).fetchall()
            return rows

    def line(self, number: int) -> dict[str, Any]:
        """Return what a list shows of a question."""
        return {name: self.list_columns[name][number].as_py() for name in self.list_columns.column_names}

    def search(self, words: tuple[str, ...]) -> Bools:
        """Return the mask of the questions whose prompt or right answers hold all words, ignoring case."""
        with self._lock:
            search_lock = self._search_locks.setdefault(words, threading.Lock())
        with search_lock:  # A page requests its list and its counts at once: one of them searches for both.
            if words not in self._searches:
                mask = self._search(words)
                with self._lock:
                    self._searches[words] = mask
                    while len(self._searches) > _MAX_CACHED_SEARCHES:
                        self._search_locks.pop(self._searches.popitem(last=False)[0], None)
                return mask
            with self._lock:
                if words in self._searches:
                    self._searches.move_to_end(words)
                    return self._searches[words]
        return self._search(words)

    def _search(self, words: tuple[str, ...]) -> Bools:
        conditions = " and ".join(["contains(words, lower(nfc_normalize(?)))"] * len(words))
        with self.database.cursor() as cursor:
            numbers = cursor.execute(f"select number from texts where {conditions}", list(words)).fetchnumpy()["number"]
        mask = np.zeros(len(self), dtype=bool)
        mask[np.asarray(numbers)] = True
        return mask


def load_tables(folder: Path) -> RunTables:
    """Load the tables of a finished run.

    Raises:
        InputError: if the run has no questions or answers, or a file is broken.
    """
    questions, answers = (ParquetRows(kind, folder / f"{kind.name}.parquet") for kind in (QUESTIONS, ANSWERS))
    candidates = _optional(CANDIDATES, folder)
    facts = _optional(FACTS, folder)
    columns = [name for name in FACETS if name != "relation"]
    table = questions.columns("question_id", "prompt", "answers", "qset", *columns)
    notes: list[str] = []
    cells = make_cells(answers.columns(*COLUMNS), table["question_id"], table["answers"])
    if cells.unmatched:
        notes.append(f"{cells.unmatched:,} answers are to questions that this run does not have; they are left out.")
    if cells.repeated:
        notes.append(
            "Some questions were asked several times in one way: they count as right where more than half of their "
            "answers are right, and their rank is the mean."
        )
    if max(answers.largest_group, questions.largest_group) > _LARGE_GROUP:
        notes.append("This run’s tables are in large pieces, as older versions wrote them: questions open slowly.")
    database = duckdb.connect(":memory:")
    list_columns, order = _store_texts(database, table, questions)
    if facts is not None:
        fact_table = facts.columns(*FACTS.schema.names)
        database.register("fact_rows", fact_table)
        database.execute("create table facts as select * from fact_rows")
        database.execute("create index facts_by_id on facts (fact_id)")
        database.unregister("fact_rows")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")
    text_order = np.empty(len(order), dtype=np.int32)
    text_order[order] = np.arange(len(order), dtype=np.int32)
    names = candidates.columns("candidate_set")["candidate_set"].to_pylist() if candidates is not None else []
    return RunTables(
        questions,
        answers,
        candidates,
        _facets(table),
        cells,
        database,
        list_columns,
        text_order,
        {name: number for number, name in enumerate(names)},
        facts is not None and len(facts) > 0,
        notes,
    )


def _optional(kind: Any, folder: Path) -> ParquetRows | None:
    path = folder / f"{kind.name}.parquet"
    return ParquetRows(kind, path) if path.is_file() else None


def _store_texts(database: duckdb.DuckDBPyConnection, table: pa.Table, questions: ParquetRows) -> tuple[pa.Table, Any]:
    """Store the searched texts in the database.

    Returns:
        The columns that a list shows, and the numbers of the questions in the order of prompts.
    """
    list_columns = pa.table(
        {
            "question_id": table["question_id"],
            **dict(zip(("prompt", "word", "answers"), _readable_texts(table, questions), strict=True)),
        }
    )
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int32))
    database.register(
        "question_rows", list_columns.append_column("number", numbers).append_column("qset", table["qset"])
    )
    database.execute(
        "create table texts as select number, question_id, qset, lower(nfc_normalize("
        f"case when word is null then prompt else replace(prompt, '{SLOT}', word) end"
        " || chr(10) || coalesce(array_to_string(answers, chr(10)), ''))) as words from question_rows"
    )
    order = database.execute("select number from question_rows order by prompt, number").fetchnumpy()["number"]
    database.unregister("question_rows")
    return list_columns, order


def _readable_texts(table: pa.Table, questions: ParquetRows) -> tuple[Any, Any, Any]:
    """Return prompts, the slot words of questions that compare senses, and right answers with their words in place."""
    prompts, answers = table["prompt"], table["answers"]
    words = questions.columns("words")["words"]
    sense_rows = np.flatnonzero(np.asarray(pc.is_valid(words).combine_chunks()))
    if not len(sense_rows):
        return prompts, pa.nulls(table.num_rows, pa.string()), answers
    slots: list[str | None] = [None] * table.num_rows
    golds = answers.to_pylist()
    choices = questions.columns("choices")["choices"].take(pa.array(sense_rows)).to_pylist()
    for index, texts in zip(sense_rows.tolist(), choices, strict=True):
        row = {"prompt": prompts[index].as_py(), "choices": texts, "words": words[index].as_py()}
        senses = bracketed_words(row)
        slots[index] = senses.get(row["prompt"])
        golds[index] = [fill_word(text, senses) for text in golds[index] or ()]
    return prompts, pa.array(slots, pa.string()), pa.array(golds, answers.type)


def _facets(table: pa.Table) -> dict[str, Facet]:
    columns = {name: table[name] for name in FACETS if name != "relation"}
    # As in Question.relation: the template's name without its number, or the task.
    relations = pc.struct_field(pc.extract_regex(_flat(table["template"]), r"(?s)^(?P<relation>[^/]*)"), "relation")
    columns["relation"] = pc.if_else(pc.not_equal(pc.fill_null(table["template"], ""), ""), relations, table["task"])
    return {name: _facet(columns[name]) for name in FACETS}


def _facet(column: Any) -> Facet:
    encoded = _flat(pc.dictionary_encode(pc.fill_null(column, "")))
    return Facet(tuple(encoded.dictionary.to_pylist()), np.asarray(encoded.indices).astype(np.int32))


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
