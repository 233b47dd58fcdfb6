"""Questions and answers of a run, read once and shared by all steps of a process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from merkhet.core.records import QuestionTable
from merkhet.engine.run_files import QUESTION_TABLES
from merkhet.questions.question_files import QuestionSet, read_questions

if TYPE_CHECKING:
    from merkhet.metrics.answer_table import AnswerTable

_ANSWERS_FILE = "answers.parquet"
_FileState = tuple[tuple[int, int, int], ...]
_tables: dict[Path, RunTables] = {}


class RunTables:
    """The questions and answers of a run, with cached values that several steps need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = _file_state(folder, QUESTION_TABLES)
        """Inode, size and modification time of each question file when it was read."""
        self.question_set: QuestionSet = read_questions(folder)
        self.questions: QuestionTable = self.question_set.by_id()
        self._answers: tuple[_FileState, AnswerTable] | None = None

    @cached_property
    def clusters(self) -> dict[str, str]:
        """The cluster id of each question."""
        return self.question_set.clusters()

    @property
    def answers(self) -> AnswerTable:
        """The answers of all models, read again if the file has changed."""
        from merkhet.metrics.answer_table import AnswerTable

        state = _file_state(self.folder, (_ANSWERS_FILE,))
        if self._answers is None or self._answers[0] != state:
            self._answers = (state, AnswerTable(self.folder / _ANSWERS_FILE, self.questions))
        return self._answers[1]


def run_tables(folder: Path) -> RunTables:
    """Return the shared tables of a run, read again if a question file has changed."""
    if folder not in _tables or _tables[folder].state != _file_state(folder, QUESTION_TABLES):
        _tables[folder] = RunTables(folder)
    return _tables[folder]


def _file_state(folder: Path, names: Iterable[str]) -> _FileState:
    stats = [path.stat() for name in names if (path := folder / name).is_file()]
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def release_tables(folder: Path) -> None:
    """Free the memory of a run's shared tables."""
    if _tables.pop(folder, None) is not None:
        pa.default_memory_pool().release_unused()
