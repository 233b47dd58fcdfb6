"""Questions and answers of a run, read once for all steps of a process."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pyarrow as pa

from merkhet.core.records import QuestionTable
from merkhet.engine.run_files import QUESTION_TABLES
from merkhet.metrics.answer_table import AnswerTable
from merkhet.questions.question_files import QuestionSet, read_questions

_ANSWERS_FILE = "answers.parquet"
_tables: dict[Path, tuple[tuple[object, ...], RunTables]] = {}


class RunTables:
    """The tables of a run, with the values that steps have computed from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def question_set(self) -> QuestionSet:
        """The questions with their companion tables."""
        return read_questions(self.folder)

    @cached_property
    def questions(self) -> QuestionTable:
        """The questions by id."""
        return self.question_set.by_id()

    @cached_property
    def clusters(self) -> dict[str, str]:
        """The cluster id of each question."""
        return self.question_set.clusters()

    @cached_property
    def answers(self) -> AnswerTable:
        """The answers of all models."""
        return AnswerTable(self.folder / _ANSWERS_FILE, self.questions)


def run_tables(folder: Path) -> RunTables:
    """Return the tables of a run; read them anew if a file has changed."""
    stats = [path.stat() for name in (*QUESTION_TABLES, _ANSWERS_FILE) if (path := folder / name).is_file()]
    state = tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)
    if folder not in _tables or _tables[folder][0] != state:
        _tables[folder] = (state, RunTables(folder))
    return _tables[folder][1]


def release_tables(folder: Path) -> None:
    """Free the tables of a run."""
    if _tables.pop(folder, None) is not None:
        pa.default_memory_pool().release_unused()
