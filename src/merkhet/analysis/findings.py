"""Findings of a run: scores against chance, comparisons of models, limits of the design, unusable questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.chance_findings import FactCounts, count_asked, find_groups, find_scores, main_group_column
from merkhet.analysis.comparison import Comparison, Condition, PairedModels, compare_models, is_layer_method
from merkhet.analysis.design_findings import find_designs
from merkhet.analysis.differences import is_significant
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.question_sets import describe_question_sets, withhold_verdicts
from merkhet.analysis.training_comparison import training_findings
from merkhet.analysis.types import Row
from merkhet.core.records import Question
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.metrics import Metric


def summarize_findings(
    *,
    scores: Sequence[Row],
    answers: AnswerTable | pa.Table | Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    about: Mapping[str, str],
    baselines: set[str],
    seed: int,
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
    statements: bool = False,
    conditions: Mapping[str, Condition] | None = None,
    trained: Collection[str] = (),
    repeated: Sequence[pa.Table] = (),
    groups: Mapping[str, Mapping[str, str | None]] | None = None,
    more: Sequence[Finding] = (),
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Summarize the findings of a run.

    If models were trained under several conditions, only models that differ in one respect are compared. Sentences then
    compare only models with the same condition; analyses describe the effects of conditions.

    Args:
        clusters: Fact of each question, by question id.
        headline: Tasks and their metrics.
        about: Names of relations and domains for sentences.
        classes: Class of each question, if scores are means over classes.
        statements: Whether questions are statements; see :class:`merkhet.analysis.comparison.PairedModels`.
        conditions: Training condition of each model.
        trained: Models that the run has trained; see :class:`merkhet.analysis.comparison.PairedModels`.
        repeated: Answers of these models after further trainings.
        groups: Values of the group columns, by question id, to count the facts of groups.
        more: Further findings to list and render, such as those of analyses.
        left_out: Sentences on baselines that were left out.

    Returns:
        ``findings`` (:meth:`Finding.as_json`), ``sentences`` (rendered from the findings), ``comparisons`` (paired
        comparisons of all models except baselines) and ``unusable`` (counts by model and reason).
    """
    table = answers if isinstance(answers, AnswerTable) else AnswerTable(answers, questions)
    models = list(dict.fromkeys(row["model"] for row in scores if row["model"] not in baselines))
    options: dict[str, Any] = {
        "seed": seed,
        "classes": classes,
        "unusable_is_wrong": unusable_is_wrong,
        "statements": statements,
    }
    comparisons = compare_models(
        table,
        questions,
        clusters,
        headline,
        models=models,
        conditions=conditions,
        trained=trained,
        repeated=repeated,
        **options,
    )
    comparisons = withhold_verdicts(comparisons, conditions or {}, table)
    rows = [asdict(comparison) for comparison in comparisons]
    unusable = _count_unusable(table)
    findings: list[Finding] = []
    if not conditions:
        facts = FactCounts(table, clusters, groups or {}, unusable_is_wrong=unusable_is_wrong)
        column = main_group_column(scores)
        judged = [finding for model in models for finding in find_scores(model, scores, headline, facts)]
        findings += find_designs(scores, headline, baselines, questions, judged, about)
        findings += judged
        first_metrics = dict(reversed(headline))
        findings += [
            finding
            for model in models
            for task, metric in reversed(first_metrics.items())
            for finding in find_groups(model, scores, task, metric, column, facts, about)
        ]
    findings += _find_comparisons(
        [comparison for comparison in comparisons if comparison.trainings is None],
        PairedModels(table, questions, clusters, **options),
        dict(_metrics_by_name(headline)),
    )
    findings += training_findings(row for row in rows if _has_same_condition(row, conditions or {}))
    if not conditions:
        findings += _find_unusable(unusable, wrong=unusable_is_wrong)
        findings += [
            Finding(Kind.UNUSABLE, Verdict.NONE, model=model, count=count, total=len(questions))
            for model, count in count_asked(table, models).items()
            if not left_out
        ]
    remarks = [*left_out, *describe_question_sets(table, rows, "statements" if statements else "questions")]
    findings += [Finding(Kind.REMARK, Verdict.NONE, reason=text) for text in remarks]
    findings += more
    return {
        "findings": [finding.as_json() for finding in findings],
        "sentences": render(findings),
        "comparisons": rows,
        "unusable": [
            {"model": model, "reason": reason, "count": count} for (model, reason), count in sorted(unusable.items())
        ],
    }


def _metrics_by_name(headline: Sequence[tuple[str, Metric]]) -> Iterator[tuple[str, Metric]]:
    return ((metric.name, metric) for _, metric in headline)


def _has_same_condition(row: Row, conditions: Mapping[str, Condition]) -> bool:
    """Return whether both models of a comparison were trained under the same condition, or under none."""
    first, second = (conditions.get(row[side]) for side in ("model", "other"))
    return first is None or second is None or first.label == second.label


def _find_comparisons(
    comparisons: Sequence[Comparison], paired: PairedModels, metrics: Mapping[str, Metric]
) -> Iterator[Finding]:
    """Yield a finding for each comparison of two models that the run has not trained."""
    order = {model: index for index, model in enumerate(paired.models)}
    for comparison in comparisons:
        # The models of a comparison may have been swapped; the probe is that of the original order.
        pair = tuple(sorted((comparison.model, comparison.other), key=order.__getitem__))
        probe = paired.shared_probe((pair[0], pair[1]), comparison.task) or ""
        methods = [paired.methods[model, comparison.task][probe] for model in (comparison.model, comparison.other)]
        metric = metrics[comparison.metric]
        shared = paired.shared_values((pair[0], pair[1]), comparison.task, metric)
        verdict = Verdict.AHEAD if is_significant(asdict(comparison)) else Verdict.NO_DIFFERENCE
        if shared is not None and np.array_equal(shared.first, shared.second):
            verdict = Verdict.EQUAL
        yield Finding(
            Kind.COMPARISON,
            verdict,
            model=comparison.model,
            other=comparison.other,
            task=comparison.task,
            metric=comparison.metric,
            probe=probe,
            method=methods[0],
            other_method=methods[1] if methods[1] != methods[0] else None,
            value=comparison.difference,
            low=comparison.low,
            high=comparison.high,
            n=comparison.n,
            facts=comparison.facts,
            p=comparison.p,
            detectable=comparison.detectable,
            share=metric.share,
            higher_is_better=metric.higher_is_better,
        )


def _count_unusable(table: AnswerTable) -> Counter[tuple[str, str]]:
    """Count the unusable answers by model and kind of reason."""
    answers = table.table.select(["model", "method", "unusable"])
    return Counter(
        (answer["model"], _reason_kind(answer["unusable"]))
        for answer in answers.filter(pc.is_valid(answers["unusable"])).to_pylist()
        if not is_layer_method(answer["method"])
    )


def _find_unusable(unusable: Counter[tuple[str, str]], *, wrong: bool) -> Iterator[Finding]:
    """Yield the numbers of unusable answers; ``value`` is 0 if they count as wrong."""
    for (model, reason), count in unusable.most_common():
        score = 0.0 if wrong else None
        yield Finding(Kind.UNUSABLE, Verdict.NONE, model=model, n=count, value=score, reason=reason)


def _reason_kind(text: str) -> str:
    """Generalize a reason by dropping the candidate and the numbers that it mentions."""
    if text.startswith("too long"):
        return "too long for the model"
    if "holds a token that this model does not know" in text:
        subject = next((subject for subject in ("answer", "word") if text.startswith(f"the {subject} ")), "candidate")
        return f"{'an' if subject == 'answer' else 'a'} {subject} holds an unknown token"
    if "has no token" in text:
        return "a candidate has no token"
    if "have the same tokens" in text:
        return "a right and a wrong candidate have the same tokens"
    return text
