"""KMIR's table of models by question types: sizes, corpora, and open questions apart from those with choices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from examined_runs import make_input

import merkhet
from merkhet.analysis.model_descriptions import ModelDescription
from merkhet.suites.kmir.analyses.question_types import question_types

QUESTIONS = [
    {"task": "reasoning", "prompt": "A cat is a [MASK].", "answers": ["mammal"], "choices": ["mammal", "fish"]},
    {"task": "reasoning", "prompt": "A cod is a [MASK].", "answers": ["fish"], "choices": ["mammal", "fish"]},
    {"task": "reasoning", "prompt": "An eel is a [MASK].", "answers": ["fish"], "candidate_set": "kinds"},
    {"task": "completion", "prompt": "An ape is a [MASK].", "answers": ["mammal"], "candidate_set": "kinds"},
]


def test_scores_by_form_are_means_over_the_questions_of_the_form():
    given = make_input()
    forms = {row["question_id"]: index % 12 < 6 for index, row in enumerate(given.questions)}
    rows = [
        row
        | {"choices": ["Oslo", "Lima"] if row["task"] == "reasoning" and forms[row["question_id"]] else row["choices"]}
        for row in given.questions
    ]
    models = {
        "bert-base-cased": ModelDescription(110_000_000, "Wikipedia"),
        "distilbert-base-cased": ModelDescription(66),
    }
    given = make_input(questions=rows, models=models)
    [table] = question_types(given).tables
    names = [column.name for column in table.columns]
    assert names == [
        *("Model", "parameters", "training corpus", "completion", "distinction", "checking"),
        *("reasoning", "reasoning, open", "reasoning, with choices"),
    ]
    labels = {label: line for line, label in given.labels.items()}
    assert table.rows[0] == ("guessing", *[None] * 8), "the made-up run has no scores"
    for label, size, corpus, *cells in table.rows[1:]:
        line = labels[label]
        assert (size, corpus) == {
            "bert-base-cased": ("110M", "Wikipedia"),
            "distilbert-base-cased": ("66", None),
            "random": (None, None),
        }[line.model]
        for cell, name in zip(cells, names[3:], strict=True):
            task, _, form = name.partition(", ")
            ids = [
                row["question_id"]
                for row in rows
                if row["task"] == task
                and row["question_id"] in given.usable[line]
                and form in ("", "open" if row["choices"] is None else "with choices")
            ]
            values = given.values(line, ids, given.metric(task, line))
            assert cell.n == len(ids) and cell.value == pytest.approx(float(np.mean(values)))


def test_a_run_shows_size_corpus_and_chance(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{"question_id": f"q{number}", "suite": "kmir", **row} for number, row in enumerate(QUESTIONS)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "candidates.jsonl").write_text(
        json.dumps({"candidate_set": "kinds", "candidates": ["bird", "fish", "insect", "mammal", "reptile"]}) + "\n"
    )
    models = [{"model": "minilm-mlm", "corpus": "Wikipedia and books"}, "constant"]
    study = {"suite": "kmir", "data": "data", "models": models, "probes": ["rank"], "report": "none"}
    (tmp_path / "study.yaml").write_text(json.dumps(study | {"metrics": ["accuracy"], "options": {"split": None}}))
    run = merkhet.run(str(tmp_path / "study.yaml"), out=tmp_path / "run")
    analyses = json.loads((tmp_path / "run" / "analyses.json").read_text())
    table = next(analysis for analysis in analyses if analysis["name"] == "question-types")["tables"][0]
    rows_by_model = {
        row[0]: dict(zip([c["name"] for c in table["columns"]], row, strict=True)) for row in table["rows"]
    }
    chance = rows_by_model["guessing"]
    assert chance["completion"] == pytest.approx(0.2)
    assert chance["reasoning, open"] == pytest.approx(0.2) and chance["reasoning, with choices"] == pytest.approx(0.5)
    assert chance["reasoning"] == pytest.approx((0.5 + 0.5 + 0.2) / 3)
    parameters = next(model["parameters"] for model in run.record["models"] if model["name"] == "minilm-mlm")
    tiny = rows_by_model["minilm-mlm"]
    assert tiny["parameters"] == f"{parameters / 1e6:.0f}M" and tiny["training corpus"] == "Wikipedia and books"
    assert rows_by_model["constant"]["parameters"] is None
    assert rows_by_model["constant"]["reasoning"]["value"] == pytest.approx(chance["reasoning"])
