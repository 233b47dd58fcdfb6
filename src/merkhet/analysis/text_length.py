"""Scores by the length of a question's text."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from merkhet.analysis.line_charts import chart_buckets
from merkhet.analysis.types import Analysis, AnalysisInput, Estimate, Line, Table, label_lines, make_columns
from merkhet.core import SLOT
from merkhet.core.text import join_names, metric_label, quote_name
from merkhet.metrics.metrics import Metric

_EXPLANATION = (
    "The length of a text is its number of characters with the right answer in place. Each bucket of lengths has the "
    "mean score of its questions with a 95% bootstrap interval over facts. The rank correlation (Spearman's rho, 95% "
    "bootstrap interval over facts) is over questions, not over buckets. Longer texts may also differ in topic."
)


def lengths(inputs: AnalysisInput) -> Analysis | None:
    """Score buckets of text length for each task of the option ``lengths`` and each probe; None without answers."""
    edges = inputs.options.lengths.edges
    names = bucket_names(edges)
    text_lengths = {row["question_id"]: len(row["prompt"].replace(SLOT, row["target"], 1)) for row in inputs.questions}
    buckets = {question_id: bisect_right(edges, length) for question_id, length in text_lengths.items()}
    figures, tables, rows, sentences = [], [], [], []
    for task in inputs.options.lengths.tasks:
        by_probe: dict[str, list[Line]] = defaultdict(list)
        for line in inputs.usable:
            if any(inputs.questions_by_id[question_id].task == task for question_id in inputs.usable[line]):
                by_probe[line.probe].append(line)
        for probe, lines in by_probe.items():
            labels = label_lines(lines)
            ids = {line: inputs.counted_ids(line, task) for line in lines}
            sizes: Counter[int] = Counter()
            for line_ids in ids.values():
                sizes |= Counter(buckets[question_id] for question_id in line_ids)
            figure, table = chart_buckets(
                *(inputs, task, ids, labels, buckets, names, sizes),
                group=f"{task}, {probe}",
                x="characters",
                caption_end="length of the text",
                seed_parts=("lengths", task),
                seed_names=names,
            )
            figures.append(figure)
            tables.append(table)
            correlations = {
                line: inputs.correlation(line, ids[line], inputs.metric(task, line), text_lengths, "lengths", task)
                for line in lines
            }
            rows += [(labels[line], task, probe, rho) for line, rho in correlations.items()]
            by_metric: dict[Metric, dict[str, Estimate]] = defaultdict(dict)
            for line, rho in correlations.items():
                # Rho is undefined if a model scores the same on every question.
                if line.model not in inputs.baselines and rho.value is not None:
                    by_metric[inputs.metric(task, line)][labels[line]] = rho
            sentences += [
                f"On {task} ({probe}), {_describe_trend(metric, models)}." for metric, models in by_metric.items()
            ]
    if not figures:
        return None
    columns = make_columns("Model", "Task", "Probe", "Spearman’s rho:correlation")
    table = Table("Rank correlation of the score with the length of the text.", columns, tuple(rows))
    title = "Accuracy by text length"
    return Analysis("lengths", title, _EXPLANATION, (table, *tables), tuple(figures), tuple(sentences))


def bucket_names(edges: Sequence[int]) -> list[str]:
    """Return the names of the buckets: below the first edge, between edges, and from the last edge on."""
    inner = (f"{start}–{end - 1}" if end - 1 > start else str(start) for start, end in pairwise(edges))
    return [f"below {edges[0]}", *inner, f"{edges[-1]}+"]


def _describe_trend(metric: Metric, correlations: Mapping[str, Estimate]) -> str:
    """Describe for which models the score increases, decreases or does not change significantly with length.

    Rho is positive if longer texts have better scores, so a metric that is better if lower then decreases.
    """
    verbs = ("increases", "decreases") if metric.higher_is_better else ("decreases", "increases")
    sides: dict[str, list[str]] = {verb: [] for verb in (*verbs, "does not change significantly")}
    grows, falls, unknown = sides.values()
    for label, rho in correlations.items():
        if rho.low is None or rho.high is None:
            unknown.append(quote_name(label))
            continue
        side = grows if rho.low > 0 else falls if rho.high < 0 else unknown
        side.append(f"{quote_name(label)} (rho {rho.value:.2f} [{rho.low:.2f}, {rho.high:.2f}])")
    parts = [f"{side} with the length of the text for {join_names(names)}" for side, names in sides.items() if names]
    return f"{metric_label(metric.name)} {'; it '.join(parts)}"
