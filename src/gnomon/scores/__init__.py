"""Metrics and statistics: pure functions over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.scores.bootstrap import Interval, PairedDifference, clustered_interval, paired_difference
    from gnomon.scores.metrics import Metric, NoRanksError, Responses, as_metric, get_metric, is_metric
    from gnomon.scores.ranks import best_gold, expected_ranks
    from gnomon.scores.words import exact_match, word_f1

METRICS = Registry(
    "metric",
    {
        "accuracy": ("gnomon.scores.metrics:ACCURACY", "the top candidate is a right answer"),
        "strict-accuracy": (
            "gnomon.scores.metrics:STRICT_ACCURACY",
            "the same, but a tie for the first place is wrong",
        ),
        "r@k": ("gnomon.scores.metrics:make_recall", "a right answer is among the first k candidates, e.g. r@5"),
        "p@k": ("gnomon.scores.metrics:make_precision", "the same, as LAMA and ChnEval call it"),
        "acc@k": ("gnomon.scores.metrics:make_accuracy", "the same, as LAMA-TK calls it"),
        "hit@k": ("gnomon.scores.metrics:make_hit", "the answer that was left out is among the first k candidates"),
        "mrr": ("gnomon.scores.metrics:MRR", "mean reciprocal rank of the best right answer"),
        "mrr_a": ("gnomon.scores.metrics:MRR_ALL", "one over the mean rank of all right answers"),
        "mean-rank": ("gnomon.scores.metrics:MEAN_RANK", "rank of the best right answer, ties by expectation"),
        "optimistic-rank": ("gnomon.scores.metrics:OPTIMISTIC_RANK", "the same, ties broken in its favour"),
        "pessimistic-rank": ("gnomon.scores.metrics:PESSIMISTIC_RANK", "the same, ties broken against it"),
        "rank-index": ("gnomon.scores.metrics:RANK_INDEX", "rank against guessing: 1 is first, 0 is chance"),
        "f1": ("gnomon.scores.metrics:F1", "word F1 of the top candidate with the nearest right answer"),
        "exact": ("gnomon.scores.metrics:EXACT", "the top candidate equals a right answer, word by word"),
        "no-answer": ("gnomon.scores.metrics:NO_ANSWER", "a chat model's reply answers nothing; lower is better"),
        "refused": ("gnomon.scores.metrics:REFUSED", "a chat model declines to answer; lower is better"),
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "Interval": "gnomon.scores.bootstrap",
        "PairedDifference": "gnomon.scores.bootstrap",
        "clustered_interval": "gnomon.scores.bootstrap",
        "paired_difference": "gnomon.scores.bootstrap",
        "Metric": "gnomon.scores.metrics",
        "NoRanksError": "gnomon.scores.metrics",
        "Responses": "gnomon.scores.metrics",
        "as_metric": "gnomon.scores.metrics",
        "get_metric": "gnomon.scores.metrics",
        "is_metric": "gnomon.scores.metrics",
        "best_gold": "gnomon.scores.ranks",
        "expected_ranks": "gnomon.scores.ranks",
        "exact_match": "gnomon.scores.words",
        "word_f1": "gnomon.scores.words",
    },
)

__all__ = [
    "METRICS",
    "Interval",
    "Metric",
    "NoRanksError",
    "PairedDifference",
    "Responses",
    "as_metric",
    "best_gold",
    "clustered_interval",
    "exact_match",
    "expected_ranks",
    "get_metric",
    "is_metric",
    "paired_difference",
    "word_f1",
]
