"""Whether a model knows what its corpus says: scores against how often a question's names meet the answer in texts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
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
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import rank_correlation
from merkhet.metrics.bootstrap import clustered_interval

_STARTS = (0, 1, 3, 10, 30, 100, 300, 1000)
BUCKETS = (
    "0",
    *(f"{start:,}–{end - 1:,}" for start, end in pairwise(_STARTS[1:])),
    f"{_STARTS[-1]:,}+",
)
_VERDICTS = frozenset({"yes", "no", "true", "false"})
_EXPLANATION = (
    "The co-occurrence of a question is the number of the corpus's paragraphs that hold all names of its prompt "
    "and one of its right answers, each as a phrase; for a question that asks yes or no, all names of the "
    "statement. Questions are put into buckets of it, with the mean score of each bucket and its 95% bootstrap "
    "interval over facts. The rank correlation (Spearman's rho, 95% bootstrap interval over facts) is over "
    "questions, not over buckets. What is often written together may be recalled where it seems inferred."
)


def cooccurrence(given: AnalysisInput) -> Analysis | None:
    """Scores by bucket of co-occurrence, by task and rule; None without the option ``corpus``."""
    place = given.options.get("corpus")
    if place is None:
        return None
    index = CorpusIndex(Path(place))
    counts = question_counts(given, index)
    groups = _groups(given, counts)
    lines = [line for line in given.usable if given.usable[line]]
    tables, figures, rows = [], [], []
    for name, (task, ids) in groups.items():
        table, figure = _buckets(given, lines, name, task, ids, counts)
        tables.append(table)
        figures.append(figure)
        rows += [row for line in lines if (row := _correlation(given, line, name, task, ids, counts))]
    columns = (Column("Model"), Column("Questions"), Column("n", "count"), Column("Spearman’s rho", "correlation"))
    correlations = Table("Rank correlation of the score with co-occurrence.", columns, tuple(rows))
    unnamed = len(given.questions) - len(counts)
    sentences = [f"The corpus has {len(index):,} paragraphs; {len(counts):,} questions were looked up in it."]
    if unnamed:
        sentences.append(f"{unnamed:,} questions name nothing that could be looked up, and are left out.")
    return Analysis(
        "cooccurrence",
        "Co-occurrence in a corpus",
        _EXPLANATION,
        (correlations, *tables),
        tuple(figures),
        tuple(sentences),
    )


def question_counts(given: AnalysisInput, index: CorpusIndex) -> dict[str, int]:
    """The co-occurrence of each question; a question without names has none.

    Names come from ``given.entities`` where the suite has written them down, else from the prompts themselves.
    """
    unnamed = [row for row in given.questions if row["question_id"] not in given.entities]
    names: Mapping[str, tuple[str, ...]] = {**names_in_prompts(unnamed), **given.entities}
    counts = {}
    for row in given.questions:
        entities = [text for name in names[row["question_id"]] if (text := plain_name(name))]
        if entities:
            offered = {plain_name(text) for text in given.questions_by_id[row["question_id"]].candidates}
            answers = [] if offered <= _VERDICTS else [plain_name(answer) for answer in row["answers"]]
            counts[row["question_id"]] = index.count(entities, answers)
    return counts


def bucket(count: int) -> int:
    """The place of a co-occurrence in BUCKETS."""
    return bisect_right(_STARTS, count) - 1


def _groups(given: AnalysisInput, counts: Mapping[str, int]) -> dict[str, tuple[str, list[str]]]:
    """Ids of questions by task, and by rule within a task that has several, each group with its task."""
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in given.questions:
        if row["question_id"] in counts:
            by_task[row["task"]].append(row)
    found: dict[str, tuple[str, list[str]]] = {}
    for task in given.tasks:
        rows = by_task[task]
        if rows:
            found[task] = (task, [row["question_id"] for row in rows])
        rules = {row["rule"] for row in rows}
        for row in rows if len(rules) > 1 else ():
            if row["rule"]:
                found.setdefault(f"{task}, {row['rule']}", (task, []))[1].append(row["question_id"])
    return found


def _buckets(
    given: AnalysisInput, lines: Sequence[Line], name: str, task: str, ids: Sequence[str], counts: Mapping[str, int]
) -> tuple[Table, Figure]:
    cells: dict[tuple[int, Line], Estimate] = {}
    shares = True
    for line in lines:
        metric = given.metric(task, line)
        shares = shares and metric.share
        for place in range(len(BUCKETS)):
            kept = sorted(one for one in ids if bucket(counts[one]) == place and one in given.usable[line])
            if kept:
                seed = derived_seed(given.seed, "cooccurrence", name, place, metric.name)
                interval = clustered_interval(given.values(line, kept, metric), given.cluster_ids(kept), seed=seed)
                cells[place, line] = estimate(interval, len(kept))
    sizes = Counter(bucket(counts[one]) for one in ids)
    used = [place for place in range(len(BUCKETS)) if sizes[place]]
    kind = "share" if shares else "number"
    metrics = " and ".join(dict.fromkeys(metric_label(given.metric(task, line)) for line in lines))
    columns = (
        Column("Co-occurrence"),
        Column("questions", "count"),
        *(Column(given.labels[line], kind) for line in lines),
    )
    rows = tuple((BUCKETS[place], sizes[place], *(cells.get((place, line)) for line in lines)) for place in used)
    caption = f"{name}: {metrics} by bucket of co-occurrence."
    drawn: list[dict[str, Any]] = [
        {"x": BUCKETS[place], "line": given.labels[line], "model": line.model, **vars(cells[place, line])}
        for line in lines
        for place in used
        if (place, line) in cells
    ]
    return Table(caption, columns, rows, aside=True), Figure(
        "lines", f"{name}: {metrics} by co-occurrence", tuple(drawn), "co-occurrence", y=metrics
    )


def _correlation(
    given: AnalysisInput, line: Line, name: str, task: str, ids: Sequence[str], counts: Mapping[str, int]
) -> TableRow | None:
    kept = sorted(one for one in ids if one in given.usable[line])
    if len(kept) < 3:
        return None
    metric = given.metric(task, line)
    values = given.values(line, kept, metric)
    found = np.array([counts[one] for one in kept], dtype=np.float64)
    seed = derived_seed(given.seed, "cooccurrence", name, metric.name)
    rho = rank_correlation(found, values, given.cluster_ids(kept), seed=seed)
    return given.labels[line], name, len(kept), estimate(rho, len(kept))
