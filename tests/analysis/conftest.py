"""Answers made by hand: a model that is right on some questions and wrong on the others."""

from __future__ import annotations

import pytest

from merkhet.core.records import Question
from merkhet.metrics.metrics import get_metric

TASKS = {"completion": 40, "checking": 20}


class Bench:
    """Questions of two tasks, the answers of models to them, and what is made of both."""

    def __init__(self, sizes, candidates=("a", "b", "c", "d")):
        self.questions = {
            f"{task}-{i:02}": Question(f"{task}-{i:02}", task, "[MASK]", ("a",), "a", candidates, template=f"{r}/1")
            for task, size in sizes.items()
            for i, r in ((i, "easy" if i % 2 == 0 else "hard") for i in range(size))
        }
        self.clusters = {name: f"f{name[-2:]}" for name in self.questions}
        self.headline = [(task, get_metric("r@1")) for task in sizes]
        self.answers = []

    def answer(self, model, right, unusable=None, method="mean"):
        """The answers of a model: whether it knows a question, and why it cannot be asked it."""
        for name in self.questions:
            reason = unusable(name) if unusable else None
            rank = 1.0 if right(name) else 2.0
            order = ["a", "b", "c", "d"] if right(name) else ["b", "a", "c", "d"]
            self.answers.append(
                {
                    "question_id": name,
                    "model": model,
                    "probe": "rank",
                    "method": method,
                    "ranked": [] if reason else [{"candidate": c, "score": -float(i)} for i, c in enumerate(order)],
                    "golds": [] if reason else list(self.questions[name].answers),
                    "among": None,
                    "gold_ranks": [] if reason else [rank],
                    "gold_ties": [] if reason else [1],
                    "unusable": reason,
                }
            )
        return self

    def scores(self, *more):
        from merkhet.metrics.score_table import score_answers

        groups = {name: {"relation": question.relation} for name, question in self.questions.items()}
        metrics = [get_metric(name) for name in ("r@1", "mrr", *more)]
        return score_answers("s", self.questions, groups, self.clusters, self.answers, metrics, seed=0).to_pylist()


@pytest.fixture
def bench():
    return Bench(TASKS)


@pytest.fixture
def make_bench():
    return Bench
