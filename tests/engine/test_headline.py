"""The headline scores of a run: chosen from what was asked, by which probes, and what has a score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from merkhet.core.schemas import QUESTIONS, SCORES, make_table
from merkhet.engine.headline import AskedTask, HeadlinePlan, asked_tasks, choose_headline
from merkhet.engine.suite_card import HeadlineScore

SUITE = (HeadlineScore("SCO", "mrr"), HeadlineScore("TP", "mrr"))
METRICS = ("r@1", "mrr", "accuracy", "f1", "no-answer")
RANKED, WRITTEN, JUDGED = ("r@1", "mrr", "accuracy", "f1"), ("f1", "exact"), ("accuracy",)


def row(task: str, metric: str, probe: str, model: str = "m", **group: Any) -> dict[str, Any]:
    names = {"model": model, "suite": "s", "task": task, "probe": probe, "method": "x", "metric": metric}
    return {**names, "value": 0.5, "n": 4, "unusable": 0, **group}


def rows(tasks: Sequence[str], metrics: Sequence[str], probe: str = "rank", model: str = "m") -> list[dict[str, Any]]:
    return [row(task, metric, probe, model) for task, metric in product(tasks, metrics)]


def headline(
    scores: list[dict[str, Any]], tasks: Sequence[str] = (), own: Sequence[str] = (), **plan: Any
) -> list[tuple[str, str]]:
    asked = [AskedTask(name, name in own) for name in tasks]
    settings: dict[str, Any] = {"preferred": SUITE, "metrics": METRICS, "known": ("SCO", "TP", "rdfs9"), **plan}
    chosen = choose_headline(HeadlinePlan(**settings), asked, make_table(SCORES, scores))
    return [(entry.task, entry.metric) for entry in chosen]


def test_tasks_of_the_suite_keep_its_order_and_metric():
    tasks = ("predisposition", "rdfs9", "TP", "SCO")
    assert headline(rows(tasks, RANKED), tasks) == [("SCO", "mrr"), ("TP", "mrr")]


def test_a_task_with_a_chooser_has_accuracy_for_all_its_models():
    ranked = rows(["SCO", "TP"], RANKED)
    for chooser in ("choose", "judge"):
        chosen = rows(["SCO"], ("accuracy",) if chooser == "judge" else (*RANKED, "no-answer"), chooser, "chat")
        assert headline(ranked + chosen) == [("SCO", "accuracy"), ("TP", "mrr")], chooser
        assert headline(chosen) == [("SCO", "accuracy")], chooser
    two_metrics = (HeadlineScore("SCO", "p@1"), HeadlineScore("SCO", "p@10"))
    scores = rows(["SCO"], ("p@1", "p@10", "accuracy"), "choose")
    assert headline(scores, preferred=two_metrics) == [("SCO", "accuracy")]


def test_a_chooser_without_accuracy_has_a_metric_that_needs_no_ranking():
    assert headline(rows(["SCO"], ("mrr", "half", "no-answer"), "choose"), metrics=("mrr", "half")) == [("SCO", "half")]
    assert headline(rows(["SCO"], ("mrr",), "choose"), metrics=("mrr",)) == [("SCO", "mrr")]


def test_every_probe_has_a_score():
    ranked, written = rows(["SCO"], RANKED), rows(["SCO"], WRITTEN, "write", "w")
    assert headline(ranked + written) == [("SCO", "mrr"), ("SCO", "f1")]
    answered = rows(["SCO"], WRITTEN, "answer", "chat")
    assert headline(ranked + answered) == [("SCO", "mrr"), ("SCO", "exact")]
    assert headline(answered) == [("SCO", "exact")]


def test_own_tasks_follow_in_order_of_appearance_with_a_main_metric():
    tasks = ("z", "TP", "a")
    scores = rows(tasks, RANKED)
    assert headline(scores, tasks, own=["z"], own_tasks=True) == [("TP", "mrr"), ("z", "accuracy"), ("a", "r@1")]
    given = headline(rows(tasks, ("mrr", "f1")), tasks, own=["z"], own_tasks=True, metrics=("f1", "mrr"))
    assert given == [("TP", "mrr"), ("z", "f1"), ("a", "f1")]


def test_named_tasks_are_shown_and_no_others():
    tasks = ("a", "SCO", "rdfs9")
    scores = rows(tasks, RANKED)
    named = {"preferred": (), "named": ("rdfs9",), "suite_metric": "mrr"}
    assert headline(scores, tasks, **named) == [("rdfs9", "mrr")]
    assert headline(scores, tasks, preferred=(), named=("a",), own_tasks=True) == [("a", "r@1")]


def test_there_is_a_headline_wherever_there_is_a_score():
    """Of every probe, every set of scored metrics, and every plan."""
    for metrics, probe in product((RANKED, WRITTEN, JUDGED, ("own",)), ("rank", "choose", "answer", "judge", "mine")):
        for preferred, named, own_tasks in product(((), SUITE), ((), ("SCO",)), (False, True)):
            for model in ("m", "random"):
                plan = {"preferred": preferred, "named": named, "own_tasks": own_tasks, "baselines": ("random",)}
                scores = rows(["t"], metrics, probe, model)
                [(task, metric)] = headline(scores, ["t"], **plan)
                assert task == "t" and metric in metrics
    assert headline([]) == [] and headline([row("SCO", "mrr", "rank", relation="r")]) == []


def test_a_score_that_is_missing_is_replaced():
    scores = [{**row("SCO", "mrr", "rank"), "value": None}, row("SCO", "accuracy", "rank")]
    assert headline(scores) == [("SCO", "accuracy")]


def test_tasks_are_listed_as_they_appear():
    def question(task: str, **candidates: Any) -> dict[str, Any]:
        return {
            "task": task,
            "prompt": "[MASK]",
            "answers": ["a"],
            "target": "a",
            "question_id": str(len(made)),
            **candidates,
        }

    made: list[dict[str, Any]] = []
    for task, candidates in (("z", "own"), ("a", "own"), ("z", "shared"), ("b", "shared")):
        offered = {"choices": ["a", "b"]} if candidates == "own" else {"candidate_set": "set"}
        made.append(question(task, **offered))
    table = make_table(QUESTIONS, made)
    assert asked_tasks(table) == [AskedTask("z", False), AskedTask("a", True), AskedTask("b", False)]
