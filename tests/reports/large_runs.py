"""A run of many answers, made as columns: as large as is wanted in a second or two."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from report_runs import make_run

from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, validate
from merkhet.reports.report_data import ReportData

METRICS = ("accuracy", "r@5", "mrr")
METHODS = ("multiple-mean", "pll-l2r-sum")


def large_run(
    questions: int = 25_000,
    *,
    models: int = 4,
    tasks: int = 12,
    relations: int = 300,
    domains: int = 10,
    label: str = "",
) -> ReportData:
    """``questions`` asked of all models by two methods. ``label`` is put into every name, to make names long or odd."""
    draw = np.random.default_rng(0)
    names = {
        kind: [f"{kind} {number}{label}" for number in range(count)]
        for kind, count in (("model", models), ("task", tasks), ("relation", relations), ("domain", domains))
    }
    ids = np.array([f"q_{number:07d}" for number in range(questions)])
    relation = np.arange(questions) % relations
    answers = models * len(METHODS)
    rank = draw.integers(1, 20, questions * answers).astype(float)
    candidates = [f"candidate {number}{label}" for number in range(20)]
    best = np.stack([rank - 1, rank % 20, (rank + 1) % 20], axis=1).astype(np.int64).ravel()
    ranked = pa.StructArray.from_arrays(
        [pa.array(candidates).take(pa.array(best)), pa.array(-np.arange(len(best)) % 7 / 3.0)], ["candidate", "score"]
    )
    rows = questions * answers
    asked = pa.table(
        {
            "question_id": pa.array(np.tile(ids, answers)),
            "model": _repeated(names["model"], np.arange(rows) // (questions * len(METHODS))),
            "probe": pa.array(["rank"]).take(pa.array(np.zeros(rows, np.int64))),
            "method": _repeated(METHODS, np.arange(rows) // questions % len(METHODS)),
            "prediction": pa.array(candidates).take(pa.array(best[::3])),
            "ranked": pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * rows + 1, 3, dtype=np.int32)), ranked),
            "gold_ranks": pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), pa.array(rank)),
            "unusable": pa.array([None, f"too long{label}"], pa.string()).take(pa.array((rank > 18).astype(np.int64))),
        }
    )
    run = make_run(models=tuple(names["model"]), size=3)
    return replace(
        run,
        questions=validate(QUESTIONS, _questions(ids, names, relation, candidates)),
        candidates={"set": candidates},
        answers=validate(ANSWERS, asked),
        scores=validate(SCORES, _scores(names)),
        suite={**run.suite, "headline": [{"task": task, "metric": "accuracy"} for task in names["task"]]},
        findings={"sentences": [f"{name} is asked." for name in names["model"]], "comparisons": _compared(names)},
        record={**run.record, "questions": {"count": questions}},
    )


def _questions(ids: np.ndarray, names: dict[str, list[str]], relation: np.ndarray, candidates: list[str]) -> pa.Table:
    count = len(ids)
    gold = pa.array(candidates).take(pa.array(np.arange(count) % len(candidates)))
    one = pa.array(np.arange(count + 1, dtype=np.int32))
    return pa.table(
        {
            "question_id": pa.array(ids),
            "suite": _repeated(["large"], np.zeros(count, np.int64)),
            "task": _repeated(names["task"], np.arange(count) % len(names["task"])),
            "language": _repeated(["en"], np.zeros(count, np.int64)),
            "prompt": pa.array(
                [
                    f"{identity} and {names['relation'][at]} is [MASK]."
                    for identity, at in zip(ids, relation, strict=True)
                ]
            ),
            "answers": pa.ListArray.from_arrays(one, gold),
            "target": gold,
            "candidate_set": _repeated(["set"], np.zeros(count, np.int64)),
            "facts": pa.ListArray.from_arrays(one, pa.array(ids)),
            "domain": _repeated(names["domain"], np.arange(count) % len(names["domain"])),
            "template": _repeated(names["relation"], relation),
        }
    )


def _scores(names: dict[str, list[str]]) -> pa.Table:
    groups = [(None, None), *((relation, None) for relation in names["relation"])]
    groups += [(None, domain) for domain in names["domain"]]
    columns: dict[str, list[Any]] = {name: [] for name in ("model", "task", "method", "metric", "relation", "domain")}
    for model in names["model"]:
        for task in names["task"]:
            for method in METHODS:
                for metric in METRICS:
                    for relation, domain in groups:
                        place = (model, task, method, metric, relation, domain)
                        for name, value in zip(columns, place, strict=True):
                            columns[name].append(value)
    size = len(columns["model"])
    value = np.random.default_rng(1).random(size)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    same = np.zeros(size, np.int64)
    for name, values in (("suite", ["large"]), ("probe", ["rank"])):
        table = table.append_column(name, _repeated(values, same))
    numbers = {"value": value, "low": value - 0.05, "high": value + 0.05, "chance": same + 0.05}
    for name, column in numbers.items():
        table = table.append_column(name, pa.array(column))
    for name in ("n", "unusable"):
        table = table.append_column(name, pa.array(np.arange(size) % 97))
    return table


def _compared(names: dict[str, list[str]]) -> list[dict[str, Any]]:
    one = {"metric": "accuracy", "difference": 0.1, "low": 0.02, "high": 0.18, "p": 0.01, "q": 0.01, "n": 2000}
    pairs = combinations(names["model"], 2)
    return [{**one, "task": task, "model": a, "other": b} for a, b in pairs for task in names["task"]]


def _repeated(values: Any, places: np.ndarray) -> pa.Array:
    return pa.array(list(values), pa.string()).take(pa.array(places.astype(np.int64)))
