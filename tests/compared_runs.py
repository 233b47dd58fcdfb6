"""Finished runs to be compared: models that know a given share of the answers, and copies that were changed by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import merkhet

_MODELS = """
import numpy as np
from merkhet.core.ids import derived_seed, digest
from merkhet.models.baselines import RandomBaseline
from merkhet.models.protocol import CandidateScores

class Knower(RandomBaseline):
    kind = "causal"

    def __init__(self, name, share, seed):
        super().__init__(name, seed=seed)
        self.share, self.fingerprint = share, digest([name, share, seed])

    def score_candidates(self, questions, methods):
        for place, found in enumerate(super().score_candidates(questions, methods)):
            question = questions[place]
            if derived_seed(self.seed, "known", question.question_id) / 2.0**64 < self.share:
                known = np.array([text in question.answers for text in question.candidates])
                found = CandidateScores(place, {method: found.by_method[method] + known for method in methods})
            yield found
"""

Rows = list[dict[str, Any]]


def make_run(folder: Path, shares: Mapping[str, float], **more: Any) -> Path:
    """A run of quickstart whose models, by name, know so many of the answers."""
    names = {name: f"model_{place}" for place, name in enumerate(shares)}
    lines = [
        f"def {names[name]}():\n    return Knower({name!r}, {share}, {place})"
        for place, (name, share) in enumerate(shares.items())
    ]
    file = folder.parent / f"{folder.name}.py"
    file.write_text("\n".join([_MODELS, *lines, ""]), encoding="utf-8")
    models = [f"{file}:{name}" for name in names.values()]
    given = {"limit": 40, "settings": ["report=none"], **more}
    return merkhet.run("quickstart", models=["random", *models], out=folder, **given).folder


def changed(
    run: Path,
    folder: Path,
    *,
    questions: Callable[[Rows], Rows] = lambda rows: rows,
    answers: Callable[[Rows], Rows] = lambda rows: rows,
    record: Callable[[dict[str, Any]], object] = lambda found: found,
    names: Mapping[str, str] | None = None,
) -> Path:
    """A copy of a run with other questions, answers or record, or with models called by other ``names``."""
    shutil.copytree(run, folder)
    shutil.rmtree(folder / ".merkhet" / "steps", ignore_errors=True)  # They would say that it is damaged.
    known = names or {}

    def named(rows: Rows) -> Rows:
        return [{**row, "model": known.get(row["model"], row["model"])} for row in rows]

    def rewritten(table: str, change: Callable[[Rows], Rows]) -> Rows:
        read = pq.read_table(folder / f"{table}.parquet")
        rows = change(read.to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, read.schema), folder / f"{table}.parquet")
        return rows

    asked = {row["question_id"] for row in rewritten("questions", questions)}
    rewritten("answers", lambda rows: [row for row in named(answers(rows)) if row["question_id"] in asked])
    rewritten("scores", named)
    found = json.loads((folder / "run.json").read_text())
    found["models"] = [{**model, "name": known.get(model["name"], model["name"])} for model in found["models"]]
    record(found)
    (folder / "run.json").write_text(json.dumps(found), encoding="utf-8")
    return folder


def half(rows: Rows, *, first: bool) -> Rows:
    """Every second fact's questions."""
    facts = sorted({row["facts"][0] for row in rows})
    kept = set(facts[not first :: 2])
    return [row for row in rows if row["facts"][0] in kept]
