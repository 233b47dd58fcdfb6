"""Comparison of the models of one or several runs of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison_text import give_verdict, summarize_groups
from merkhet.analysis.differences import is_significant, orient_to
from merkhet.analysis.training_comparison import is_trained, training_findings
from merkhet.analysis.training_text import describe_trainings
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.text import join_names, quote_name
from merkhet.engine._comparability import comparability_remarks, count_shared_questions, describe_shared_questions
from merkhet.engine._paired_answers import PairedAnswers
from merkhet.engine._run_collection import RunCollection, collect_runs
from merkhet.engine.combine_runs import correlate_downstream, report_data
from merkhet.engine.run_folder import Run
from merkhet.engine.study import GROUPS, STATEMENT_GROUPS
from merkhet.metrics.metrics import get_metric, is_available_metric
from merkhet.reports.comparison_page import ComparisonData

Pair = tuple[str, str]


@dataclass(frozen=True)
class ComparisonChoice:
    """Models, tasks, metrics and groups to compare."""

    against: str | None = None
    """Model that all others are compared with; if None, every pair of models is compared."""
    tasks: Sequence[str] = ()
    """Tasks to compare on; the headline tasks if empty."""
    metrics: Sequence[str] = ()
    """Metrics to compare by; the headline metrics of each task if empty."""
    by: str | None = None
    """Column that divides questions into groups, such as domain; models are also compared within each group."""
    baselines: bool = False
    """Whether to compare baselines too. If the runs have only one model, it is always compared with the baselines."""


EVERY_PAIR = ComparisonChoice()


def compare_runs(
    runs: Sequence[Run], choice: ComparisonChoice = EVERY_PAIR, downstream: Path | None = None
) -> ComparisonData:
    """Compare models in one or several runs of a suite, each pair on the questions that both models were asked.

    Args:
        downstream: CSV file of the models' scores on other tasks, to be correlated with the scores of the runs.

    Returns:
        The comparisons with a verdict. If nothing can be compared, the verdict gives the reason.

    Raises:
        InputError: The runs are of different suites, or no run has the chosen model, task, metric or column.
    """
    collection = collect_runs(runs)
    all_models = pc.unique(collection.scores["model"]).to_pylist()
    if choice.against is not None and choice.against not in all_models:
        raise InputError(f"no run has the model {choice.against!r}; {did_you_mean(choice.against, all_models)}")
    asked_models = [name for name in all_models if name not in collection.baselines]
    single_model = len(asked_models) == 1 < len(all_models) and not choice.baselines
    models = (
        all_models
        if choice.baselines or single_model
        else [*asked_models, *_missing_reference(choice.against, asked_models)]
    )
    headline, metric_remarks = _select_headline(collection, choice)
    loaded = [(task, get_metric(metric, Path.cwd())) for task, metric in headline]
    pairing = PairedAnswers(collection, models, loaded)
    reference = choice.against or (asked_models[0] if single_model else None)
    pairs = _pairs(pairing.models, reference)
    comparisons = pairing.compare(pairs)
    groups = pairing.compare(pairs, _check_column(choice.by, collection)) if choice.by else []
    if choice.against is not None:
        comparisons = [_against_reference(comparison, choice.against) for comparison in comparisons]
    question_ids = [pairing.question_ids(run_index) for run_index in range(len(runs))]
    shared = count_shared_questions(collection, question_ids)
    verb = "recalls more" if collection.memorized else "knows more"
    verb = verb if collection.baselines.isdisjoint(pairing.models) else "scores higher"
    # A difference that involves a trained model is about its trainings, and has sentences of its own.
    tested = [comparison for comparison in comparisons if not is_trained(comparison)]
    verdict = give_verdict(tested, reference, verb)
    findings = training_findings(comparisons)
    side_by_pair = {frozenset((row["model"], row["other"])): row["model"] for row in reversed(comparisons)}
    side_by_pair |= {frozenset((pair.model, pair.other)): pair.model for pair in verdict.pairs}
    if choice.against is not None:
        side_by_pair = {pair: next(name for name in pair if name != choice.against) for pair in side_by_pair}
    groups = _orient(
        sorted(groups, key=lambda comparison: (not is_significant(comparison), -abs(comparison["difference"]))),
        side_by_pair,
    )
    sentences = (
        [*verdict.sentences, *pairing.name_methods(pairs), *describe_trainings(findings)]
        if comparisons
        else [_explain_nothing_compared(collection, pairing.models, all_models, shared, question_ids)]
    )
    if comparisons and single_model:
        sentences.insert(
            0, f"Only one model answered, {quote_name(asked_models[0])}: it is compared with the baselines."
        )
    return ComparisonData(
        data=report_data(collection, {"comparisons": comparisons}),
        runs=[_describe_run(collection, run_index, len(question_ids[run_index])) for run_index in range(len(runs))],
        models=pairing.models,
        reference=choice.against,
        verdict=sentences,
        order=verdict.order,
        pairs=[asdict(pair) for pair in verdict.pairs],
        comparisons=comparisons,
        oriented=_orient(comparisons, side_by_pair),
        column=choice.by,
        groups=groups,
        group_sentences=_describe_groups(groups, choice.by) if choice.by and comparisons else [],
        shared=shared,
        question_remarks=describe_shared_questions(shared, "statements" if collection.memorized else "questions"),
        remarks=[
            *metric_remarks,
            *pairing.explain_missing(pairs, comparisons),
            *([] if len(runs) > 1 else pairing.describe_question_sets(comparisons)),
            *comparability_remarks(collection, set(pairing.models), question_ids, pairing.methods_by_task(pairs)),
        ],
        extrinsic=correlate_downstream(collection, downstream) if downstream is not None else [],
    )


def _describe_groups(groups: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    """Describe differences within groups; groups without a test, as after one training, have no sentence."""
    tested = [group for group in groups if group.get("p") is not None]
    if groups and not tested:
        return [f"By {column}, no difference is tested: see above why these models get no verdict."]
    return summarize_groups(tested, column)


def _select_headline(collection: RunCollection, choice: ComparisonChoice) -> tuple[list[tuple[str, str]], list[str]]:
    """Select the (task, metric) pairs to compare by, and describe in a remark each metric that cannot be used."""
    scored: dict[str, list[str]] = {}
    for row in (
        collection.scores.select(["task", "metric"])
        .group_by(["task", "metric"], use_threads=False)
        .aggregate([])
        .to_pylist()
    ):
        scored.setdefault(row["task"], []).append(row["metric"])
    headline_metrics: dict[str, list[str]] = {}
    for entry in collection.headline:
        headline_metrics.setdefault(entry["task"], []).append(entry["metric"])
    for task in choice.tasks:
        if task not in scored:
            raise InputError(f"no run has the task {task!r}; {did_you_mean(task, scored)}")
    for metric in choice.metrics:
        if not collection.memorized:
            get_metric(metric, Path.cwd())
        elif not any(metric in names for names in scored.values()):
            known = {name for names in scored.values() for name in names}
            raise InputError(f"no run has the metric {metric!r}; {did_you_mean(metric, known)}")
    tasks = choice.tasks or [task for task in headline_metrics if task in scored] or list(scored)
    entries = [
        (task, metric) for task in tasks for metric in choice.metrics or headline_metrics.get(task) or scored[task][:1]
    ]
    usable = [entry for entry in entries if choice.metrics or is_available_metric(entry[1])]
    unusable = sorted({metric for _, metric in entries} - {metric for _, metric in usable})
    remarks = [
        f"The metric {metric} is not built into merkhet, so models are not compared by it; name it with --metric "
        f"FILE.py:{metric}, or --metric {metric} if it is a plug-in."
        for metric in unusable
    ]
    return usable, remarks


def _pairs(models: Sequence[str], reference: str | None) -> list[Pair]:
    if reference is None:
        return list(combinations(models, 2))
    return [(model, reference) for model in models if model != reference]


def _missing_reference(reference: str | None, models: Sequence[str]) -> list[str]:
    return [] if reference is None or reference in models else [reference]


def _check_column(column: str, collection: RunCollection) -> str:
    columns = STATEMENT_GROUPS if collection.memorized else GROUPS
    if column not in columns:
        models = "models that memorized" if collection.memorized else "models"
        raise InputError(f"{models} cannot be compared by {column!r}; {did_you_mean(column, columns)}")
    return column


def _against_reference(comparison: Mapping[str, Any], reference: str) -> dict[str, Any]:
    """Swap the models of a comparison if needed, so that ``reference`` is the second model."""
    return orient_to(comparison, comparison["other"] if comparison["model"] == reference else comparison["model"])


def _orient(comparisons: Sequence[Mapping[str, Any]], side: Mapping[frozenset[str], str]) -> list[dict[str, Any]]:
    """Swap models where needed, so that the same model of each pair is always first.

    Args:
        side: Model that comes first, by pair of models.
    """
    pairs = (frozenset((comparison["model"], comparison["other"])) for comparison in comparisons)
    return [
        orient_to(comparison, side.get(pair, comparison["model"]))
        for comparison, pair in zip(comparisons, pairs, strict=True)
    ]


def _explain_nothing_compared(
    collection: RunCollection,
    models: Sequence[str],
    all_models: Sequence[str],
    shared: Sequence[Mapping[str, Any]],
    question_ids: Sequence[pa.Array],
) -> str:
    """Explain why no models could be compared, and what the user can do."""
    if not sum(map(len, question_ids)) or not all_models:
        return (
            "There is nothing to compare: no question of these tasks was answered in "
            + join_names(collection.labels)
            + "."
        )
    if len(models) < 2:
        answered = f"only one model, {quote_name(models[0])}," if models else "only baselines"
        others = [name for name in all_models if name not in models]
        hint = f" --baselines compares with {join_names(list(map(quote_name, others)))} too." if others else ""
        remedy = (
            "Name a second run of the same questions." if len(collection.runs) == 1 else "Name a run of another model."
        )
        return f"There is nothing to compare: {answered} answered in {join_names(collection.labels)}. {remedy}{hint}"
    if shared and not any(pair["both"] for pair in shared):
        return (
            "The runs share no question, so nothing can be compared in pairs. Their scores are listed below without "
            "differences or p-values, because they are of different questions. Ask both models the same questions "
            "('merkhet build', then 'merkhet run --data')."
        )
    return "No two models share questions about at least two facts, so nothing can be compared in pairs."


def _describe_run(collection: RunCollection, run_index: int, question_count: int) -> dict[str, Any]:
    run = collection.runs[run_index]
    record = run.record
    return {
        "name": collection.labels[run_index],
        "folder": str(run.folder),
        "date": record.get("date"),
        "merkhet": record.get("merkhet"),
        "seed": record.get("seed"),
        "command": record.get("command"),
        "questions": question_count,
    }
