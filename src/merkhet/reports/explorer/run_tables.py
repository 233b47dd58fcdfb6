"""A run in memory: what is filtered and counted as arrays, what is searched and looked up in DuckDB.

Masks and counts over arrays take a few milliseconds for a million questions; the same in SQL took some hundred, and so
did the lines of a page. DuckDB searches texts and finds questions and facts. Long lists (ranked candidates, choices)
stay on disk until a question is opened.
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
"""What questions are filtered by; a question without a value has the empty one."""
_SLOW_GROUP = 65_536
_KEPT_SEARCHES = 16


@dataclass(frozen=True)
class Facet:
    """A column of questions: its values, and the number of the value of each question."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int32]

    def numbers(self, wanted: Sequence[str]) -> list[int]:
        """The numbers of values; those that there are not are left out."""
        return [number for number, value in enumerate(self.values) if value in set(wanted)]


@dataclass
class RunTables:
    """A loaded run. Many threads may read it at once."""

    questions: ParquetRows
    answers: ParquetRows
    candidates: ParquetRows | None
    facets: dict[str, Facet]
    cells: Cells
    database: duckdb.DuckDBPyConnection
    shown: pa.Table
    """Of each question what a list shows: question_id, prompt, word, answers."""
    text_order: npt.NDArray[np.int32]
    """For each question its place in the order of prompts."""
    candidate_sets: dict[str, int]
    has_facts: bool
    notes: list[str]
    _searches: OrderedDict[tuple[str, ...], Bools] = field(default_factory=OrderedDict)
    _gates: dict[tuple[str, ...], threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self.questions)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, by a cursor of its own; whatever came from outside is a parameter."""
        with self.database.cursor() as cursor:
            found: list[tuple[Any, ...]] = cursor.execute(sql, list(parameters)).fetchall()
            return found

    def line(self, number: int) -> dict[str, Any]:
        """What a list shows of a question."""
        return {name: self.shown[name][number].as_py() for name in self.shown.column_names}

    def search(self, words: tuple[str, ...]) -> Bools:
        """Which questions hold all the words in their prompt or right answers, whatever the case of letters."""
        with self._lock:
            gate = self._gates.setdefault(words, threading.Lock())
        with gate:  # A page asks for its list and its counts at once: the texts are gone through for one of them.
            if words not in self._searches:
                found = self._search(words)
                with self._lock:
                    self._searches[words] = found
                    while len(self._searches) > _KEPT_SEARCHES:
                        self._gates.pop(self._searches.popitem(last=False)[0], None)
                return found
            with self._lock:
                if words in self._searches:
                    self._searches.move_to_end(words)
                    return self._searches[words]
        return self._search(words)

    def _search(self, words: tuple[str, ...]) -> Bools:
        needed = " and ".join(["contains(words, lower(nfc_normalize(?)))"] * len(words))
        with self.database.cursor() as cursor:
            numbers = cursor.execute(f"select number from texts where {needed}", list(words)).fetchnumpy()["number"]
        found = np.zeros(len(self), dtype=bool)
        found[np.asarray(numbers)] = True
        return found


def load_tables(folder: Path) -> RunTables:
    """Load the tables of a finished run; refuses one without questions or answers, and files that are broken."""
    questions, answers = (ParquetRows(kind, folder / f"{kind.name}.parquet") for kind in (QUESTIONS, ANSWERS))
    candidates = _optional(CANDIDATES, folder)
    facts = _optional(FACTS, folder)
    columns = [name for name in FACETS if name != "relation"]
    table = questions.columns("question_id", "prompt", "answers", "qset", *columns)
    notes: list[str] = []
    cells = make_cells(answers.columns(*COLUMNS), table["question_id"], table["answers"])
    if cells.strangers:
        notes.append(f"{cells.strangers:,} answers are to questions that this run does not have; they are left out.")
    if cells.repeated:
        notes.append(
            "Some questions were asked several times in one way: they count as right where more than half of their "
            "answers are right, and their rank is the mean."
        )
    if max(answers.largest, questions.largest) > _SLOW_GROUP:
        notes.append("This run’s tables are in large pieces, as older versions wrote them: questions open slowly.")
    database = duckdb.connect(":memory:")
    shown, order = _store(database, table, questions)
    if facts is not None:
        named = facts.columns(*FACTS.schema.names)
        database.register("given", named)
        database.execute("create table facts as select * from given")
        database.execute("create index facts_by_id on facts (fact_id)")
        database.unregister("given")
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
        shown,
        text_order,
        {name: number for number, name in enumerate(names)},
        facts is not None and len(facts) > 0,
        notes,
    )


def _optional(kind: Any, folder: Path) -> ParquetRows | None:
    path = folder / f"{kind.name}.parquet"
    return ParquetRows(kind, path) if path.is_file() else None


def _store(database: duckdb.DuckDBPyConnection, table: pa.Table, questions: ParquetRows) -> tuple[pa.Table, Any]:
    """Put what is searched for into the database; what a list shows, and the numbers in the order of prompts."""
    shown = pa.table(
        {
            "question_id": table["question_id"],
            **dict(zip(("prompt", "word", "answers"), _readable(table, questions), strict=True)),
        }
    )
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int32))
    database.register("given", shown.append_column("number", numbers).append_column("qset", table["qset"]))
    database.execute(
        "create table texts as select number, question_id, qset, lower(nfc_normalize("
        f"case when word is null then prompt else replace(prompt, '{SLOT}', word) end"
        " || chr(10) || coalesce(array_to_string(answers, chr(10)), ''))) as words from given"
    )
    order = database.execute("select number from given order by prompt, number").fetchnumpy()["number"]
    database.unregister("given")
    return shown, order


def _readable(table: pa.Table, questions: ParquetRows) -> tuple[Any, Any, Any]:
    """Prompts, the word in the slot of those that compare senses, and right answers with their words in place."""
    prompts, answers = table["prompt"], table["answers"]
    words = questions.columns("words")["words"]
    places = np.flatnonzero(np.asarray(pc.is_valid(words).combine_chunks()))
    if not len(places):
        return prompts, pa.nulls(table.num_rows, pa.string()), answers
    slots: list[str | None] = [None] * table.num_rows
    right = answers.to_pylist()
    choices = questions.columns("choices")["choices"].take(pa.array(places)).to_pylist()
    for place, offered in zip(places.tolist(), choices, strict=True):
        row = {"prompt": prompts[place].as_py(), "choices": offered, "words": words[place].as_py()}
        senses = bracketed_words(row)
        slots[place] = senses.get(row["prompt"])
        right[place] = [fill_word(text, senses) for text in right[place] or ()]
    return prompts, pa.array(slots, pa.string()), pa.array(right, answers.type)


def _facets(table: pa.Table) -> dict[str, Facet]:
    columns = {name: table[name] for name in FACETS if name != "relation"}
    # As Question.relation has it: the template's name without its number, or the task.
    relations = pc.struct_field(pc.extract_regex(_flat(table["template"]), r"(?s)^(?P<relation>[^/]*)"), "relation")
    columns["relation"] = pc.if_else(pc.not_equal(pc.fill_null(table["template"], ""), ""), relations, table["task"])
    return {name: _facet(columns[name]) for name in FACETS}


def _facet(column: Any) -> Facet:
    encoded = _flat(pc.dictionary_encode(pc.fill_null(column, "")))
    return Facet(tuple(encoded.dictionary.to_pylist()), np.asarray(encoded.indices).astype(np.int32))


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
