"""The paper's protocol on questions that `merkhet build kmir` wrote: a masked model tuned on each question type.

A second model of the same shape that was never trained learns the same: what it reaches can be had without knowing
anything beforehand. Needs torch and transformers alone; meant for a GPU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TASKS = ("completion", "distinction", "checking", "reasoning")


def questions_of(folder: Path, task: str, split: str, limit: int | None, seed: int) -> list[Any]:
    """The questions of a task and split, at most so many, drawn by their ids."""
    from merkhet.core.ids import derived_seed
    from merkhet.core.records import questions_from_rows

    rows = pq.read_table(folder / "questions.parquet", filters=[("task", "=", task), ("split", "=", split)]).to_pylist()
    rows.sort(key=lambda row: derived_seed(seed, row["question_id"]))
    sets = {
        row["candidate_set"]: tuple(row["candidates"])
        for row in pq.read_table(folder / "candidates.parquet").to_pylist()
    }
    entities = {
        row["question_id"]: tuple(row["entities"]) for row in pq.read_table(folder / "entities.parquet").to_pylist()
    }
    return questions_from_rows(rows[:limit], sets, entities)


def mean_f1(model: Any, questions: Sequence[Any]) -> float:
    """Mean word F1 of what a model writes; a question that it cannot be asked counts as 0."""
    from merkhet.metrics.text_overlap import word_f1
    from merkhet.probes import PROBES

    answers = {answer.question_id: answer for answer in PROBES.get("write")(model, questions)}
    return sum(word_f1(answers[one.question_id].prediction or "", one.answers) for one in questions) / len(questions)


def association_f1(folder: Path, training: Sequence[Any], asked: Sequence[Any]) -> float:
    """Mean word F1 of what the model's own input embeddings alone would answer."""
    from merkhet.metrics.text_overlap import word_f1
    from merkhet.models.association_baseline import AssociationBaseline
    from merkhet.probes import PROBES

    model = AssociationBaseline(str(folder))
    model.prepare_pairs(
        [
            {
                "task": one.task,
                "relation": one.relation,
                "first": one.entities[0],
                "second": one.entities[1],
                "holds": one.target == "Yes",
            }
            for one in training
            if set(one.candidates) == {"Yes", "No"}
        ]
    )
    answers = {answer.question_id: answer for answer in PROBES.get("rank")(model, asked)}
    return sum(word_f1(answers[one.question_id].prediction or "", one.answers) for one in asked) / len(asked)


def untrained(folder: Path, place: Path) -> Path:
    """A folder with a model of the same shape and tokenizer and random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    shutil.copytree(folder, place)
    torch.manual_seed(0)
    AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(place)
    return place


def tune(folder: Path, questions: Path, task: str, options: argparse.Namespace) -> dict[str, Any]:
    """F1 on the test split before and after tuning on the training split of a task, and by word association."""
    from merkhet.models.loading import load_model
    from merkhet.models.model_lookup import ModelSpec, resolve_model
    from merkhet.training.cloze import tune_cloze

    training, dev, test = (
        questions_of(questions, task, split, options.limit, options.seed) for split in ("train", "dev", "test")
    )
    model = load_model(resolve_model(ModelSpec(str(folder), label=folder.name)))
    before = mean_f1(model, test)
    settings = {"epochs": options.epochs, "batch_size": 64, "learning_rate": 2e-4}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        learned = tune_cloze(model, training, Path(place) / "out", dev=dev, settings=settings, seed=options.seed)
    return {
        "task": task,
        "training": len(training),
        "test": len(test),
        "association": round(association_f1(folder, training, test), 4),
        "before": round(before, 4),
        "tuned": round(mean_f1(model, test), 4),
        "kept epoch": learned.record["kept_epoch"],
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="a folder with a masked model")
    parser.add_argument("--questions", type=Path, required=True, help="what 'merkhet build kmir' wrote")
    parser.add_argument("--limit", type=int, help="at most so many questions of each split")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        blank = untrained(options.model, Path(place) / "untrained")
        for folder in (options.model, blank):
            for task in options.tasks:
                print(json.dumps({"model": folder.name, **tune(folder, options.questions, task, options)}), flush=True)


if __name__ == "__main__":
    main()
