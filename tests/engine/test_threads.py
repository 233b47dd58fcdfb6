"""Runs with other numbers of threads: the same scores up to rounding, and the same right and wrong answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import merkhet
from merkhet.probes.probe_support import TOP_K

NOISE = 1e-5
"""The largest difference of two log-probabilities that rounding explains."""
Key = tuple[str, str, str]


def run_with(threads: int, out: Path, models: list[str]) -> merkhet.Run:
    """Run a small quickstart in a process of its own that computes with ``threads`` threads."""
    arguments = [argument for model in models for argument in ("--model", model)]
    command = [sys.executable, "-m", "merkhet", "run", "quickstart", "--limit", "12", *arguments]
    command += ["--set", "report=none", "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    run = merkhet.open_run(out)
    assert {model["threads"] for model in run.record["models"]} == {threads}
    return run


def answers(run: merkhet.Run) -> dict[Key, dict[str, Any]]:
    return {(row["question_id"], row["model"], row["method"]): row for row in run.answers.to_pylist()}


def candidate_scores(answer: Mapping[str, Any]) -> dict[str, float]:
    return {entry["candidate"]: entry["score"] for entry in answer["ranked"]}


def closest_difference(answer: Mapping[str, Any]) -> float:
    """The smallest difference between a right answer's score and another candidate's."""
    scores = candidate_scores(answer)
    return min(abs(scores[gold] - score) for gold in answer["golds"] for text, score in scores.items() if text != gold)


@pytest.mark.slow
def test_scores_with_one_and_two_threads_agree(model_folders: Mapping[str, Path], tmp_path: Path) -> None:
    models = ["minilm-mlm", str(model_folders["gpt2"])]
    first, second = (run_with(threads, tmp_path / str(threads), models) for threads in (1, 2))
    assert first.questions.questions.equals(second.questions.questions)
    questions = first.questions.by_id()
    one, two = answers(first), answers(second)
    assert {key: row["unusable"] for key, row in one.items()} == {key: row["unusable"] for key, row in two.items()}
    one = {key: row for key, row in one.items() if row["unusable"] is None}
    usable = Counter(model for _, model, _ in one)
    assert len(usable) == 2 and min(usable.values()) >= 12, usable
    worst = 0.0
    close, different = [], []
    for key, answer in one.items():
        other = two[key]
        scores, other_scores = candidate_scores(answer), candidate_scores(other)
        offered = questions[key[0]].candidates
        assert len(offered) <= TOP_K and set(scores) == set(other_scores) == set(offered)
        worst = max([worst, *(abs(scores[text] - other_scores[text]) for text in offered)])
        if answer["gold_ranks"] != other["gold_ranks"] or answer["prediction"] != other["prediction"]:
            (close if closest_difference(answer) < NOISE else different).append(key)
    counted = f"largest difference {worst:.1e}; {len(close)} of {len(one)} answers are decided by less than {NOISE}"
    assert worst < NOISE, counted
    assert not different, f"{different} differ although no score is that close; {counted}"
    rows, other_rows = ({_row_key(row): row for row in run.scores.to_pylist()} for run in (first, second))
    assert rows.keys() == other_rows.keys() and rows
    for key, row in rows.items():
        values = [found["value"] for found in (row, other_rows[key])]
        if None in values:
            assert values == [None, None], key
            continue
        undecided = sum(model == row["model"] for _, model, _ in close)
        assert abs(values[0] - values[1]) * row["n"] <= undecided + 1e-9, (key, counted)


def _row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    numbers = ("value", "low", "high", "n", "unusable", "chance", "adjusted")
    return tuple(value for name, value in sorted(row.items()) if name not in numbers)
