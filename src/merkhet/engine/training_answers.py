"""Answers of trained models after further trainings with other seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import ANSWERS, TRAININGS, read_table, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import TRAININGS_FILE


@dataclass(frozen=True)
class TrainingsParams:
    """Parameters of the step that collects the answers after further trainings."""

    numbers: tuple[int, ...]
    """Number of the training that each input belongs to, from 2."""


def collect_trainings(context: StepContext[TrainingsParams, Nothing]) -> None:
    """Concatenate the answers after further trainings into trainings.parquet, with the number of the training."""
    tables = [read_table(ANSWERS, context.folder / name) for name in context.step.inputs]
    numbers = [
        pa.array([number] * len(table), pa.int32())
        for number, table in zip(context.params.numbers, tables, strict=True)
    ]
    parts = [
        table.add_column(0, "training", number).cast(TRAININGS.schema)
        for number, table in zip(numbers, tables, strict=True)
    ]
    write_table(TRAININGS, pa.concat_tables(parts), context.folder / context.step.outputs[0])


def split_trainings(table: pa.Table) -> list[pa.Table]:
    """Return the answers of each further training in a table of :func:`collect_trainings`."""
    numbers = sorted(pc.unique(table["training"]).to_pylist())
    return [table.filter(pc.equal(table["training"], number)).drop_columns(["training"]) for number in numbers]


def read_repeated(folder: Path, inputs: Sequence[str]) -> list[pa.Table]:
    """Read the answers of each further training if they are among the ``inputs`` of a step."""
    return split_trainings(read_table(TRAININGS, folder / TRAININGS_FILE)) if TRAININGS_FILE in inputs else []
