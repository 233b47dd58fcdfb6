"""Metrics and statistics: pure functions over arrays."""

from __future__ import annotations

from typing import Any

from merkhet.core.registry import PartType, Registry


def _is_metric(part: Any) -> bool:
    from merkhet.metrics.metrics import Metric

    return isinstance(part, Metric)


_METRICS = "merkhet.metrics.metrics"
METRICS = Registry(
    "metric",
    {
        "accuracy": (f"{_METRICS}:ACCURACY", "the top candidate is a right answer"),
        "strict-accuracy": (f"{_METRICS}:STRICT_ACCURACY", "a right answer is the only top candidate; a tie is wrong"),
        "r@k": (f"{_METRICS}:make_recall", "a right answer is among the first k candidates, e.g. r@5"),
        "p@k": (f"{_METRICS}:make_precision", "the same as r@k; the name in LAMA and ChnEval"),
        "acc@k": (f"{_METRICS}:make_accuracy", "the same as r@k; the name in LAMA-TK"),
        "hit@k": (f"{_METRICS}:make_hit", "the masked answer is among the first k candidates"),
        "mrr": (f"{_METRICS}:MRR", "mean reciprocal rank of the best right answer"),
        "mrr_a": (f"{_METRICS}:MRR_ALL", "one over the mean rank of all right answers"),
        "mean-rank": (f"{_METRICS}:MEAN_RANK", "rank of the best right answer, in expectation over ties"),
        "optimistic-rank": (
            f"{_METRICS}:OPTIMISTIC_RANK",
            "rank of the best right answer, with ties broken in its favour",
        ),
        "pessimistic-rank": (
            f"{_METRICS}:PESSIMISTIC_RANK",
            "rank of the best right answer, with ties broken against it",
        ),
        "rank-index": (
            f"{_METRICS}:RANK_INDEX",
            "rank of the best right answer adjusted for chance: 1 is first, 0 is chance",
        ),
        "f1": (f"{_METRICS}:F1", "word F1 of the top candidate with the nearest right answer"),
        "exact": (f"{_METRICS}:EXACT", "the top candidate equals a right answer, word by word"),
        "no-answer": (f"{_METRICS}:NO_ANSWER", "a chat model's reply has no answer; lower is better"),
        "refused": (f"{_METRICS}:REFUSED", "a chat model declines to answer; lower is better"),
    },
    part_type=PartType("a Metric, or a function of responses or ranks", (1,), _is_metric),
)


def registered_name(metric: str) -> str:
    """Return the name or reference in the registry that a metric is made from: ``r@k`` for ``adjusted-r@5``."""
    while metric.startswith("adjusted-"):
        metric = metric.removeprefix("adjusted-")
    family, at, _ = metric.partition("@")
    return f"{family}@k" if at and f"{family}@k" in METRICS else metric
