"""Remarks on the comparability of runs: questions, weights, methods, templates, versions and scoring rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.text import counted, join_pairs, join_some, quote_name
from merkhet.engine._run_collection import RunCollection

_MAX_NAMES = 4
_MAX_PAIRS = 6


def count_shared_questions(collection: RunCollection, question_ids: Sequence[pa.Array]) -> list[dict[str, Any]]:
    """Count, for each pair of runs, the questions that both runs asked and those that only one run asked."""
    counts = []
    for first, second in combinations(range(len(question_ids)), 2):
        both = pc.sum(pc.is_in(question_ids[first], value_set=question_ids[second])).as_py() or 0
        counts.append(
            {
                "run": collection.labels[first],
                "other": collection.labels[second],
                "both": both,
                "only_run": len(question_ids[first]) - both,
                "only_other": len(question_ids[second]) - both,
            }
        )
    return counts


def asked_question_ids(collection: RunCollection, run_index: int, tasks: Collection[str]) -> pa.Array:
    """Return the ids of the questions of ``tasks`` that a run asked, as :meth:`RunCollection.pair_ids`."""
    run = collection.runs[run_index]
    table = run.questions.questions
    ids = table.filter(pc.is_in(table["task"], value_set=pa.array(sorted(tasks), pa.string())))["question_id"]
    answered = pc.unique(run.answers["question_id"])
    return pc.unique(collection.pair_ids(ids.filter(pc.is_in(ids, value_set=answered))))


def describe_disjoint_runs(collection: RunCollection) -> list[str]:
    """Say which runs share no question of their headline tasks, so that their scores cannot be compared."""
    tasks = {entry["task"] for entry in collection.headline}
    asked = [asked_question_ids(collection, run_index, tasks) for run_index in range(len(collection.runs))]
    kind = "statement" if collection.memorized else "question"
    pairs = [
        f"{pair['run']} and {pair['other']}" for pair in count_shared_questions(collection, asked) if not pair["both"]
    ]
    if not pairs:
        return []
    return [
        f"Not compared, because they share no {kind}: {join_pairs(pairs, _MAX_PAIRS)}. Their scores are about "
        f"different {kind}s."
    ]


def describe_shared_questions(shared: Sequence[Mapping[str, Any]], kind: str = "questions") -> list[str]:
    """Describe the counts of :func:`count_shared_questions` in sentences.

    Args:
        kind: Plural noun for the questions, such as "statements".
    """
    if not shared:
        return []
    if not any(pair["only_run"] or pair["only_other"] for pair in shared):
        runs = "Both runs" if len(shared) == 1 else "All runs"
        return [f"{runs} asked the same {shared[0]['both']:,} {kind}."]
    sentences = []
    for pair in shared[:_MAX_PAIRS]:
        only = f"{pair['only_run']:,} only in {pair['run']}, {pair['only_other']:,} only in {pair['other']}"
        askers = "both runs" if len(shared) == 1 else f"{pair['run']} and {pair['other']}"
        if not pair["both"]:
            sentences.append(f"{pair['run']} and {pair['other']} share no {kind.removesuffix('s')} ({only}).")
        else:
            sentences.append(
                f"Across runs, models are compared on the {pair['both']:,} {kind} that {askers} asked; {only}."
            )
    if len(shared) > _MAX_PAIRS:
        sentences.append(f"--json prints {len(shared) - _MAX_PAIRS} more pairs of runs.")
    return sentences


def comparability_remarks(
    collection: RunCollection,
    models: Collection[str],
    question_ids: Sequence[pa.Array],
    ways: Mapping[str, Mapping[str, tuple[str, str]]],
) -> list[str]:
    """Collect the differences between runs that may explain a difference between their models.

    Args:
        ways: Probe and method that each model was asked with, by task and model.
    """
    return [
        *_sample_remarks(collection),
        *_weight_remarks(collection, models),
        *_method_remarks(ways, models),
        *_template_remarks(collection, question_ids),
        *_setting_remarks(collection),
    ]


def _sample_remarks(collection: RunCollection) -> list[str]:
    """List the runs that keep only a sample of their answers."""
    samples = [
        (label, run.record.get("sampled")) for label, run in zip(collection.labels, collection.runs, strict=True)
    ]
    return [
        f"{label} keeps {sample['questions']:,} of {counted(sample['of'], 'question')} that it asked: its models are "
        "compared on these alone."
        for label, sample in samples
        if sample is not None
    ]


def _weight_remarks(collection: RunCollection, models: Collection[str]) -> list[str]:
    """List model names that stand for different weights, and weights that have several model names."""
    by_name: dict[str, dict[str, list[str]]] = {}
    by_weights: dict[str, list[str]] = {}
    for run_index, run in enumerate(collection.runs):
        for model in run.record.get("models", []):
            model_name = collection.name(model["name"], run_index)
            if model_name not in models or not model.get("fingerprint") or model.get("kind") == "baseline":
                continue
            runs = by_name.setdefault(model["name"], {}).setdefault(model["fingerprint"], [])
            runs += [] if collection.labels[run_index] in runs else [collection.labels[run_index]]
            names = by_weights.setdefault(model["fingerprint"], [])
            names += [] if model["name"] in names else [model["name"]]
    sentences = []
    for name, runs_by_weights in by_name.items():
        if len(runs_by_weights) > 1:
            parts = [
                f"{fingerprint[:12]} in {join_some(runs, _MAX_NAMES)}" for fingerprint, runs in runs_by_weights.items()
            ]
            sentences.append(
                f"{quote_name(name)} has different weights under one name ({join_some(parts, _MAX_NAMES)})."
            )
        elif name in collection.repeated:
            where = join_some(next(iter(runs_by_weights.values())), _MAX_NAMES)
            sentences.append(
                f"{quote_name(name)} has the same weights in {where}: a difference comes from how it was asked, "
                "not from what it knows."
            )
    sentences += [
        f"{join_some(list(map(quote_name, names)), _MAX_NAMES)} have the same weights."
        for names in by_weights.values()
        if len(names) > 1
    ]
    return sentences


def _method_remarks(ways: Mapping[str, Mapping[str, tuple[str, str]]], models: Collection[str]) -> list[str]:
    """List the probes and methods that the models were asked with, if the models of a task differ in them."""
    by_task: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for task, way_by_model in ways.items():
        used = tuple((model, *way) for model, way in way_by_model.items() if model in models)
        if len({(probe, method) for _, probe, method in used}) > 1:
            by_task.setdefault(used, []).append(task)
    sentences = []
    for used, tasks in by_task.items():
        where = "" if len(tasks) == len(ways) else f" on {join_some(tasks, _MAX_NAMES)}"
        by_way: dict[str, list[str]] = {}
        for model, probe, method in used:
            by_way.setdefault(f"{probe} ({method})", []).append(quote_name(model))
        parts = [f"{join_some(names, _MAX_NAMES)} by {way}" for way, names in by_way.items()]
        sentences.append(f"Models were asked in different ways{where}: {'; '.join(parts)}.")
    return sentences


def _template_remarks(collection: RunCollection, question_ids: Sequence[pa.Array]) -> list[str]:
    """List templates that only one run uses, and count prompts that two runs use in different questions."""
    tables = [run.questions.questions for run in collection.runs]
    sentences = []
    for first, second in combinations(range(len(tables)), 2):
        first_label, second_label = collection.labels[first], collection.labels[second]
        templates = [
            set(pc.unique(table["template"]).drop_null().to_pylist()) for table in (tables[first], tables[second])
        ]
        for label, names in ((first_label, templates[0] - templates[1]), (second_label, templates[1] - templates[0])):
            if names and templates[0] and templates[1]:
                sentences.append(f"Only {label} asks by the templates {join_some(sorted(names), _MAX_NAMES)}.")
        unshared_prompts = [
            table.filter(
                pc.invert(pc.is_in(collection.pair_ids(table["question_id"]), value_set=question_ids[run_index]))
            )["prompt"]
            for table, run_index in ((tables[first], second), (tables[second], first))
        ]
        count = pc.sum(pc.is_in(pc.unique(unshared_prompts[0]), value_set=pc.unique(unshared_prompts[1]))).as_py() or 0
        if count:
            sentences.append(
                f"{count:,} prompts occur in both {first_label} and {second_label} with different candidates or "
                "answers: they count as different questions and are not compared."
            )
    return sentences


def _setting_remarks(collection: RunCollection) -> list[str]:
    """List the versions of merkhet, metrics and scoring rules that differ between runs."""
    sentences = []
    versions = _group_labels(collection, lambda run: run.record.get("merkhet"))
    if len(versions) > 1:
        sentences.append(f"The runs were made by different versions of merkhet: {_list_values(versions)}.")
    metrics: dict[str, dict[str, list[str]]] = {}
    compared = [(entry["task"], entry["metric"]) for entry in collection.headline]
    for label, run in zip(collection.labels, collection.runs, strict=True):
        for entry in run.record["card"]["headline"]:
            if (entry["task"], entry["metric"]) in compared:
                metrics.setdefault(entry["task"], {}).setdefault(entry["metric"], []).append(label)
    for task, labels_by_metric in metrics.items():
        if len({tuple(labels) for labels in labels_by_metric.values()}) > 1:
            sentences.append(
                f"{task} is scored by different metrics: {_list_values(labels_by_metric)}. Models are compared by each "
                "of them."
            )
    for key, rule in (("unusable_is_wrong", "counting unusable questions as wrong"), ("average_over", "averaging")):
        values = _group_labels(collection, lambda run, key=key: str(run.record["card"].get(key) or "no"))
        if len(values) > 1:
            sentences.append(
                f"The runs differ in {rule} ({_list_values(values)}); all are compared by the rule of "
                f"{collection.labels[0]}."
            )
    return sentences


def _group_labels(collection: RunCollection, read: Any) -> dict[str, list[str]]:
    labels_by_value: dict[str, list[str]] = {}
    for label, run in zip(collection.labels, collection.runs, strict=True):
        labels_by_value.setdefault(str(read(run)), []).append(label)
    return labels_by_value


def _list_values(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value} in {join_some(labels, _MAX_NAMES)}" for value, labels in values.items())
