"""Metrics and statistics: pure functions over arrays."""

from __future__ import annotations

from merkhet.core.registry import Registry

METRICS = Registry(
    "metric",
    {
        "accuracy": ("merkhet.metrics.metrics:ACCURACY", "the top candidate is a right answer"),
        "strict-accuracy": (
            "merkhet.metrics.metrics:STRICT_ACCURACY",
            "the same, but a tie for the first place is wrong",
        ),
        "r@k": ("merkhet.metrics.metrics:make_recall", "a right answer is among the first k candidates, e.g. r@5"),
        "p@k": ("merkhet.metrics.metrics:make_precision", "the same, as LAMA and ChnEval call it"),
        "acc@k": ("merkhet.metrics.metrics:make_accuracy", "the same, as LAMA-TK calls it"),
        "hit@k": ("merkhet.metrics.metrics:make_hit", "the answer that was left out is among the first k candidates"),
        "mrr": ("merkhet.metrics.metrics:MRR", "mean reciprocal rank of the best right answer"),
        "mrr_a": ("merkhet.metrics.metrics:MRR_ALL", "one over the mean rank of all right answers"),
        "mean-rank": ("merkhet.metrics.metrics:MEAN_RANK", "rank of the best right answer, ties by expectation"),
        "optimistic-rank": ("merkhet.metrics.metrics:OPTIMISTIC_RANK", "the same, ties broken in its favour"),
        "pessimistic-rank": ("merkhet.metrics.metrics:PESSIMISTIC_RANK", "the same, ties broken against it"),
        "rank-index": ("merkhet.metrics.metrics:RANK_INDEX", "rank against guessing: 1 is first, 0 is chance"),
        "f1": ("merkhet.metrics.metrics:F1", "word F1 of the top candidate with the nearest right answer"),
        "exact": ("merkhet.metrics.metrics:EXACT", "the top candidate equals a right answer, word by word"),
        "no-answer": ("merkhet.metrics.metrics:NO_ANSWER", "a chat model's reply answers nothing; lower is better"),
        "refused": ("merkhet.metrics.metrics:REFUSED", "a chat model declines to answer; lower is better"),
    },
)
