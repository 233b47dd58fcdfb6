"""Metrics and statistics: pure functions over arrays."""

from gnomon.foundation.registry import Registry
from gnomon.scores.bootstrap import Interval, PairedDifference, clustered_interval, paired_difference
from gnomon.scores.metrics import Metric, Responses, as_metric, get_metric
from gnomon.scores.ranks import best_gold, expected_ranks
from gnomon.scores.words import exact_match, word_f1

METRICS = Registry(
    "metric",
    {
        "accuracy": ("gnomon.scores.metrics:ACCURACY", "the top candidate is a right answer"),
        "r@k": ("gnomon.scores.metrics:make_recall", "a right answer is among the first k candidates, e.g. r@5"),
        "mrr": ("gnomon.scores.metrics:MRR", "mean reciprocal rank of the best right answer"),
        "f1": ("gnomon.scores.metrics:F1", "word F1 of the top candidate with the nearest right answer"),
        "exact": ("gnomon.scores.metrics:EXACT", "the top candidate equals a right answer, word by word"),
    },
)

__all__ = [
    "METRICS",
    "Interval",
    "Metric",
    "PairedDifference",
    "Responses",
    "as_metric",
    "best_gold",
    "clustered_interval",
    "exact_match",
    "expected_ranks",
    "get_metric",
    "paired_difference",
    "word_f1",
]
