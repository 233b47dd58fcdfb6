"""Names of the files in a run's folder that several steps use, and functions that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.core.schemas import SETTINGS, read_table
from merkhet.engine.plan import StepContext

QUESTION_TABLES = (
    *("questions.parquet", "candidates.parquet", "facts.parquet", "frequencies.parquet", "entities.parquet"),
    *("premises.parquet", "premise_questions.parquet", "pairs.parquet", "controls.parquet", "about.json"),
)
"""Files of the questions of a run, with their candidates, facts and other tables."""
CALIBRATION = "calibration.json"
SYMBOLS_FILE = "symbols.parquet"
FACTS_FILE = ".merkhet/facts.parquet"
ABOUT_FACTS = ".merkhet/facts.json"
ABOUT_SETS = ".merkhet/sets.json"
PREMISE_LABELS = "settings.parquet"
TRAININGS_FILE = "trainings.parquet"
"""Answers of trained models after further trainings with other seeds."""
CONTROL_ANSWERS_FILE, CONTROL_SCORES = "control_answers.parquet", "control_scores.json"
"""Answers of the controls, and their scores with the findings on controls and on liked positions."""
SHARD_FILE = ".merkhet/shard.json"


def read_json(file: Path) -> Any:
    """Read a JSON file of a run.

    Raises:
        InputError: The file is missing or is not valid JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({first_line(error)}); start the run again, or copy its folder again"
        ) from error


def read_premise_labels(context: StepContext[Any, Any]) -> dict[tuple[str, str], str]:
    """Read how the premises of each question were given, by model and question id.

    The result is empty if the step has no file of premise labels.
    """
    if PREMISE_LABELS not in context.step.inputs:
        return {}
    table = read_table(SETTINGS, context.folder / PREMISE_LABELS)
    columns = (table[name].to_pylist() for name in ("model", "question_id", "premises"))
    return {(model, question): label for model, question, label in zip(*columns, strict=True)}
