"""Scores by the co-occurrence of a question's names with its answer in a corpus."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from merkhet.analysis._corpus_index import CorpusIndex
from merkhet.analysis._prompt_names import names_in_prompts, plain_name
from merkhet.analysis.line_charts import chart_buckets
from merkhet.analysis.types import Analysis, AnalysisInput, Row, Table, make_columns
from merkhet.core.text import counted

_STARTS = (0, 1, 3, 10, 30, 100, 300, 1000)
BUCKETS = ("0", *(f"{start:,}–{end - 1:,}" for start, end in pairwise(_STARTS[1:])), f"{_STARTS[-1]:,}+")
_FEWEST = 3
"""Minimum number of questions for a rank correlation."""
_VERDICTS = frozenset({"yes", "no", "true", "false"})
_EXPLANATION = (
    "The co-occurrence of a question is the number of the corpus's paragraphs that hold all names of its prompt and "
    "one of its right answers, each as a phrase; for a question that asks yes or no, all names of the statement. Each "
    "bucket of counts has the mean score of its questions with a 95% bootstrap interval over facts. The rank "
    "correlation (Spearman's rho, 95% bootstrap interval over facts) is over questions, not over buckets. An answer "
    "that often co-occurs with the names may be recalled even if it seems inferred."
)


def cooccurrence(inputs: AnalysisInput) -> Analysis | None:
    """Score buckets of co-occurrence counts, by task and rule; None without the option ``corpus``."""
    corpus_path = inputs.options.corpus
    if corpus_path is None:
        return None
    index = CorpusIndex(corpus_path)
    counts = question_counts(inputs, index)
    buckets = {question_id: bucket_index(count) for question_id, count in counts.items()}
    lines = [line for line in inputs.usable if inputs.usable[line]]
    tables, figures, rows = [], [], []
    for name, (task, question_ids) in _groups(inputs, counts).items():
        ids = {line: sorted(inputs.usable[line].keys() & set(question_ids)) for line in lines}
        figure, table = chart_buckets(
            *(inputs, task, ids, inputs.labels, buckets, BUCKETS),
            Counter(buckets[question_id] for question_id in question_ids),
            group=name,
            x="co-occurrence",
            caption_end="co-occurrence",
            seed_parts=("cooccurrence", name),
            seed_names=range(len(BUCKETS)),
        )
        tables.append(table)
        figures.append(figure)
        for line in lines:
            if len(ids[line]) >= _FEWEST:
                rho = inputs.correlation(line, ids[line], inputs.metric(task, line), counts, "cooccurrence", name)
                rows.append((inputs.labels[line], name, rho.n, rho))
    columns = make_columns("Model", "Questions", "n:count", "Spearman’s rho:correlation")
    correlations = Table("Rank correlation of the score with co-occurrence.", columns, tuple(rows))
    unnamed = len(inputs.questions) - len(counts)
    sentences = [
        f"The corpus has {counted(len(index), 'paragraph')}; "
        f"{counted(len(counts), 'question was', 'questions were')} looked up in it."
    ]
    if unnamed:
        questions = counted(unnamed, "question contains", "questions contain")
        sentences.append(f"{questions} no name to look up and {'is' if unnamed == 1 else 'are'} left out.")
    title = "Co-occurrence in a corpus"
    return Analysis("cooccurrence", title, _EXPLANATION, (correlations, *tables), tuple(figures), tuple(sentences))


def question_counts(inputs: AnalysisInput, index: CorpusIndex) -> dict[str, int]:
    """Count the paragraphs with the names and an answer of each question; skip questions without names.

    Names come from ``inputs.entities`` if the suite records them, otherwise from the prompts.
    """
    unnamed = [row for row in inputs.questions if row["question_id"] not in inputs.entities]
    names: Mapping[str, tuple[str, ...]] = {**names_in_prompts(unnamed), **inputs.entities}
    counts = {}
    for row in inputs.questions:
        entities = [text for name in names[row["question_id"]] if (text := plain_name(name))]
        if entities:
            question = inputs.questions_by_id[row["question_id"]]
            candidates = {plain_name(text) for text in question.candidates}
            # Aliases are left out, because short ones such as symbols occur everywhere.
            answers = [] if candidates <= _VERDICTS else [plain_name(answer) for answer in question.right_candidates]
            counts[row["question_id"]] = index.count(entities, answers)
    return counts


def bucket_index(count: int) -> int:
    """Return the index in ``BUCKETS`` of a co-occurrence count."""
    return bisect_right(_STARTS, count) - 1


def _groups(inputs: AnalysisInput, counts: Mapping[str, int]) -> dict[str, tuple[str, list[str]]]:
    """Return task and question ids of each group: each task, and each rule of a task with several rules."""
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
