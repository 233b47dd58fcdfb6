"""Export of answers as CSV files with the columns ``id,ret``, the format of KMIR's evaluator."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import write_text
from merkhet.engine.run_folder import Run
from merkhet.models.prediction_file import HEADER, official_id

WRITTEN = ("write", "answer")
"""Probes with which models answer in free text."""


def write_predictions(run: Run, model: str, path: Path) -> int:
    """Write the answers of a model to a CSV file, and return the number of answers.

    Answers come from a free-text probe if the model has one, otherwise they are the candidates ranked first by its
    first probe and method. An unusable question has an empty list. The id of a question is its published id if that id
    is unique, otherwise its id in merkhet. :class:`merkhet.models.prediction_file.PredictionFile` reads the file.
    """
    models = dict.fromkeys(run.answers["model"].to_pylist())
    if model not in models:
        raise InputError(f"{run.folder} has no answers of {model!r}; {did_you_mean(model, models)}")
    answers = run.answers.filter(pc.equal(run.answers["model"], model)).to_pylist()
    ways = list(dict.fromkeys((answer["probe"], answer["method"]) for answer in answers))
    way = next((way for way in ways if way[0] in WRITTEN), ways[0])
    rows = [answer for answer in answers if (answer["probe"], answer["method"]) == way]
    shared = Counter(official_id(row["question_id"]) for row in rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for row in sorted(rows, key=lambda row: str(row["question_id"])):
        official = official_id(row["question_id"])
        identity = official if shared[official] == 1 else row["question_id"]
        writer.writerow([identity, json.dumps(_texts(row), ensure_ascii=False)])
    write_text(path, text.getvalue())
    return len(rows)


def write_all_predictions(run: Run) -> list[Path]:
    """Write the file ``predictions-MODEL.csv`` for every model into the run's folder, and return the paths."""
    paths: dict[Path, str] = {}
    for model in dict.fromkeys(run.answers["model"].to_pylist()):
        stem = "predictions-" + re.sub(r"[^\w.-]+", "-", model)
        path = run.folder / f"{stem}.csv"
        path = run.folder / f"{stem}-{len(paths)}.csv" if path in paths else path
        paths[path] = model
        write_predictions(run, model, path)
    return list(paths)


def _texts(answer: dict[str, Any]) -> list[str]:
    if answer["prediction"] is None:
        return []
    return [entry["candidate"] for entry in answer["ranked"]] if answer["probe"] in WRITTEN else [answer["prediction"]]
