"""Scores against the co-occurrence of a question's names with its answer in a corpus."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from merkhet.analysis._corpus_index import CorpusIndex
from merkhet.analysis._prompt_names import names_in_prompts, plain_name
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Row,
    Table,
    TableRow,
    estimate,
    make_columns,
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import rank_correlation

_STARTS = (0, 1, 3, 10, 30, 100, 300, 1000)
BUCKETS = ("0", *(f"{start:,}–{end - 1:,}" for start, end in pairwise(_STARTS[1:])), f"{_STARTS[-1]:,}+")
_VERDICTS = frozenset({"yes", "no", "true", "false"})
_EXPLANATION = (
    "The co-occurrence of a question is the number of the corpus's paragraphs that hold all names of its prompt and "
    "one of its right answers, each as a phrase; for a question that asks yes or no, all names of the statement. Each "
    "bucket of counts has the mean score of its questions with a 95% bootstrap interval over facts. The rank "
    "correlation (Spearman's rho, 95% bootstrap interval over facts) is over questions, not over buckets. An answer "
    "that often co-occurs with the names may be recalled even if it seems inferred."
)


def cooccurrence(inputs: AnalysisInput) -> Analysis | None:
    """Score buckets of co-occurrence, by task and rule; None without the option ``corpus``."""
    corpus_path = inputs.options.corpus
    if corpus_path is None:
        return None
    index = CorpusIndex(corpus_path)
    counts = question_counts(inputs, index)
    groups = _groups(inputs, counts)
    lines = [line for line in inputs.usable if inputs.usable[line]]
    tables, figures, rows = [], [], []
    for name, (task, ids) in groups.items():
        table, figure = _buckets(inputs, lines, name, task, ids, counts)
        tables.append(table)
        figures.append(figure)
        rows += [row for line in lines if (row := _correlation(inputs, line, name, task, ids, counts))]
    columns = make_columns("Model", "Questions", "n:count", "Spearman’s rho:correlation")
    correlations = Table("Rank correlation of the score with co-occurrence.", columns, tuple(rows))
    unnamed = len(inputs.questions) - len(counts)
    sentences = [f"The corpus has {len(index):,} paragraphs; {len(counts):,} questions were looked up in it."]
    if unnamed:
        sentences.append(f"{unnamed:,} questions contain no name to look up and are left out.")
    title = "Co-occurrence in a corpus"
    return Analysis("cooccurrence", title, _EXPLANATION, (correlations, *tables), tuple(figures), tuple(sentences))


def question_counts(inputs: AnalysisInput, index: CorpusIndex) -> dict[str, int]:
    """Count the co-occurrence of each question; skip questions without names.

    Names come from ``inputs.entities`` where the suite records them, else from the prompts.
    """
    unnamed = [row for row in inputs.questions if row["question_id"] not in inputs.entities]
    names: Mapping[str, tuple[str, ...]] = {**names_in_prompts(unnamed), **inputs.entities}
    counts = {}
    for row in inputs.questions:
        entities = [text for name in names[row["question_id"]] if (text := plain_name(name))]
        if entities:
            candidates = {plain_name(text) for text in inputs.questions_by_id[row["question_id"]].candidates}
            answers = [] if candidates <= _VERDICTS else [plain_name(answer) for answer in row["answers"]]
            counts[row["question_id"]] = index.count(entities, answers)
    return counts


def bucket_index(count: int) -> int:
    """Find the index in BUCKETS of a co-occurrence count."""
    return bisect_right(_STARTS, count) - 1


def _groups(inputs: AnalysisInput, counts: Mapping[str, int]) -> dict[str, tuple[str, list[str]]]:
    """Group question ids by task, and by rule within a task that has several; each group with its task."""
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in inputs.questions:
        if row["question_id"] in counts:
            by_task[row["task"]].append(row)
    groups: dict[str, tuple[str, list[str]]] = {}
    for task in inputs.tasks:
        rows = by_task[task]
        if rows:
            groups[task] = (task, [row["question_id"] for row in rows])
        rules = {row["rule"] for row in rows}
        for row in rows if len(rules) > 1 else ():
            if row["rule"]:
                groups.setdefault(f"{task}, {row['rule']}", (task, []))[1].append(row["question_id"])
    return groups


def _buckets(
    inputs: AnalysisInput, lines: Sequence[Line], name: str, task: str, ids: Sequence[str], counts: Mapping[str, int]
) -> tuple[Table, Figure]:
    cells: dict[tuple[int, Line], Estimate] = {}
    shares = True
    for line in lines:
        metric = inputs.metric(task, line)
        shares = shares and metric.share
        for index in range(len(BUCKETS)):
            answered = sorted(
                question_id
                for question_id in ids
                if bucket_index(counts[question_id]) == index and question_id in inputs.usable[line]
            )
            if answered:
                values = inputs.values(line, answered, metric)
                cells[index, line] = inputs.mean(values, answered, "cooccurrence", name, index, metric.name)
    sizes = Counter(bucket_index(counts[question_id]) for question_id in ids)
    used_buckets = [index for index in range(len(BUCKETS)) if sizes[index]]
    kind = "share" if shares else "number"
    metrics = " and ".join(dict.fromkeys(metric_label(inputs.metric(task, line)) for line in lines))
    columns = (
        *make_columns("Co-occurrence", "questions:count"),
        *(Column(inputs.labels[line], kind) for line in lines),
    )
    rows = tuple(
        (BUCKETS[index], sizes[index], *(cells.get((index, line)) for line in lines)) for index in used_buckets
    )
    caption = f"{name}: {metrics} by bucket of co-occurrence."
    points: list[dict[str, Any]] = [
        {"x": BUCKETS[index], "line": inputs.labels[line], "model": line.model, **vars(cells[index, line])}
        for line in lines
        for index in used_buckets
        if (index, line) in cells
    ]
    return Table(caption, columns, rows, aside=True), Figure(
        "lines", f"{name}: {metrics} by co-occurrence", tuple(points), "co-occurrence", y=metrics
    )


def _correlation(
    inputs: AnalysisInput, line: Line, name: str, task: str, ids: Sequence[str], counts: Mapping[str, int]
) -> TableRow | None:
    answered = sorted(question_id for question_id in ids if question_id in inputs.usable[line])
    if len(answered) < 3:
        return None
    metric = inputs.metric(task, line)
    values = inputs.values(line, answered, metric)
    occurrences = np.array([counts[question_id] for question_id in answered], dtype=np.float64)
    seed = derived_seed(inputs.seed, "cooccurrence", name, metric.name)
    rho = rank_correlation(occurrences, values, inputs.cluster_ids(answered), seed=seed)
    return inputs.labels[line], name, len(answered), estimate(rho, len(answered))
