"""Reader of CSV files with scores on other tasks."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.delimited_text import read_csv_rows
from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.text import counted

_LONG_COLUMNS = ("model", "task", "score")
_FORMAT_HINT = "write model,task,score with a row for each score, or model and a column for each task"


@dataclass(frozen=True)
class Downstream:
    """Scores on other tasks, in the order of their file."""

    name: str
    """Name of the file."""
    tasks: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float]]
    """Scores by model and task."""


def downstream_identity(value: Any, home: Path, _models: Sequence[str]) -> str:
    """Hash the file of the option ``downstream`` for cache keys.

    Raises:
        InputError: The file cannot be read.
    """
    file = home / str(value)
    read_downstream(file)
    return file_digest(file)


def read_downstream(file: Path) -> Downstream:
    """Read scores in long form (model, task, score) or wide form (model, then a column for each task).

    The delimiter may be a comma, a semicolon or a tab. An empty cell of the wide form is a missing score.

    Raises:
        InputError: The file is missing or malformed, or a score is repeated or not a number.
    """
    if not file.is_file():
        raise InputError(f"file not found: {file}; scores on other tasks are read from a CSV file: {_FORMAT_HINT}")
    rows = read_csv_rows(file, _LONG_COLUMNS)
    scores: dict[str, dict[str, float]] = {}
    tasks: dict[str, None] = {}
    try:
        columns = _columns(next(rows, []), file)
        for model, task, score, where in _entries(rows, columns, file):
            if task in scores.setdefault(model, {}):
                raise InputError(f"{where}: duplicate score of {model!r} on {task!r}. Remove one.")
            scores[model][task] = _number(score, task, where)
            tasks[task] = None
    except csv.Error as error:
        raise InputError(f"{file} is not a CSV file: {error}") from error
    if not tasks:
        raise InputError(f"{file} contains no score; {_FORMAT_HINT}")
    order = [name for name in columns if name in tasks] if not _is_long(columns) else list(tasks)
    return Downstream(file.name, tuple(order), scores)


def _columns(cells: Sequence[str], file: Path) -> list[str]:
    known = {name: name for name in _LONG_COLUMNS}
    columns = [known.get(cell.strip().lower(), cell.strip()) for cell in cells]
    if "model" not in columns:
        raise InputError(f"{file}:1: no column 'model' (columns: {', '.join(columns) or 'none'}); {_FORMAT_HINT}")
    for index, name in enumerate(columns):
        if not name:
            raise InputError(f"{file}:1: column {index + 1} has no name; {_FORMAT_HINT}")
        if name in columns[:index]:
            raise InputError(f"{file}:1: duplicate column {name!r}; {_FORMAT_HINT}")
    extra = [name for name in columns if name not in _LONG_COLUMNS]
    if _is_long(columns) and extra:
        raise InputError(f"{file}:1: unexpected column {extra[0]!r} beside model, task and score; {_FORMAT_HINT}")
    return columns


def _is_long(columns: Sequence[str]) -> bool:
    return {"task", "score"} <= set(columns)


def _entries(rows: Any, columns: Sequence[str], file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield model, task, score and location of each entry."""
    for row in rows:
        cells = [cell.strip() for cell in row]
        where = f"{file}:{rows.line_num}"
        if not any(cells):
            continue
        if len(cells) > len(columns):
            raise InputError(
                f"{where}: {counted(len(cells), 'cell')} for {counted(len(columns), 'column')}. Correct the row."
            )
        named = dict(zip(columns, [*cells, *[""] * len(columns)], strict=False))
        model = named.pop("model")
        if not model:
            raise InputError(f"{where}: the model has no name. Correct the row.")
        if _is_long(columns):
            if not named["task"]:
                raise InputError(f"{where}: the task has no name. Correct the row.")
            yield model, named["task"], named["score"], where
        else:
            yield from ((model, task, score, where) for task, score in named.items() if score)


def _number(text: str, task: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: the score on {task!r} must be a number such as 71.4 or 0.714, got {text!r}")
    return number
