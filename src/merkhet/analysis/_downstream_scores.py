"""Scores of models on other tasks, which people bring as a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest, read_csv_rows

_LONG = ("model", "task", "score")
_FORM = "write model,task,score with a row for each score, or model and a column for each task"


@dataclass(frozen=True)
class Downstream:
    """The scores in a file by model and task, both in the order of the file."""

    name: str
    tasks: tuple[str, ...]
    scores: Mapping[str, Mapping[str, float]]


def downstream_identity(value: Any, home: Path, _models: Sequence[str]) -> str:
    """What a cache key holds of the option ``downstream``; refuses a file that cannot be read."""
    file = home / str(value)
    read_downstream(file)
    return file_digest(file)


def read_downstream(file: Path) -> Downstream:
    """Scores in long form (model, task, score) or wide form (model, then a column for each task), as they are.

    Commas, semicolons or tabs may stand between cells. An empty cell of the wide form is a score that is not there.
    Refuses what is no number and what is there twice, by its line.
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}; scores on other tasks are read from a CSV file: {_FORM}")
    rows = read_csv_rows(file)
    scores: dict[str, dict[str, float]] = {}
    tasks: dict[str, None] = {}
    try:
        columns = _columns(next(rows, []), file)
        for model, task, score, where in _entries(rows, columns, file):
            if task in scores.setdefault(model, {}):
                raise InputError(f"{where}: the score of {model!r} on {task!r} is there twice. Remove one.")
            scores[model][task] = _number(score, task, where)
            tasks[task] = None
    except csv.Error as error:
        raise InputError(f"{file} is not a CSV file: {error}") from error
    if not tasks:
        raise InputError(f"{file}: there is no score in it; {_FORM}")
    order = [name for name in columns if name in tasks] if not _is_long(columns) else list(tasks)
    return Downstream(file.name, tuple(order), scores)


def _columns(cells: Sequence[str], file: Path) -> list[str]:
    known = {name: name for name in _LONG}
    columns = [known.get(cell.strip().lower(), cell.strip()) for cell in cells]
    if "model" not in columns:
        raise InputError(f"{file}:1: there is no column 'model' (there are: {', '.join(columns) or 'none'}); {_FORM}")
    for place, name in enumerate(columns):
        if not name:
            raise InputError(f"{file}:1: column {place + 1} has no name; {_FORM}")
        if name in columns[:place]:
            raise InputError(f"{file}:1: there are two columns {name!r}; {_FORM}")
    extra = [name for name in columns if name not in _LONG]
    if _is_long(columns) and extra:
        raise InputError(f"{file}:1: beside model, task and score there is a column {extra[0]!r}; {_FORM}")
    return columns


def _is_long(columns: Sequence[str]) -> bool:
    return {"task", "score"} <= set(columns)


def _entries(rows: Any, columns: Sequence[str], file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Model, task and score of each entry, and where it stands."""
    for row in rows:
        cells = [cell.strip() for cell in row]
        where = f"{file}:{rows.line_num}"
        if not any(cells):
            continue
        if len(cells) > len(columns):
            raise InputError(f"{where}: there are {len(cells)} cells under {len(columns)} columns. Mend the row.")
        named = dict(zip(columns, [*cells, *[""] * len(columns)], strict=False))
        model = named.pop("model")
        if not model:
            raise InputError(f"{where}: the model has no name. Mend the row.")
        if _is_long(columns):
            if not named["task"]:
                raise InputError(f"{where}: the task has no name. Mend the row.")
            yield model, named["task"], named["score"], where
        else:
            yield from ((model, task, score, where) for task, score in named.items() if score)


def _number(text: str, task: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: the score on {task!r} is {text!r}, no number. Write it like 71.4 or 0.714.")
    return number
