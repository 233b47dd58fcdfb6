"""What stands between runs that are compared: questions that only one asked, other weights under one name, versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.difference_text import join_some
from merkhet.analysis.types import quote_name
from merkhet.engine._run_collection import Together

_MOST_NAMED = 4
_MOST_PAIRS = 6


def shared_questions(together: Together, asked: Sequence[pa.Array]) -> list[dict[str, Any]]:
    """Of every two runs, how many questions both asked and how many only one; nothing where there is one run."""
    found = []
    for first, second in combinations(range(len(asked)), 2):
        both = pc.sum(pc.is_in(asked[first], value_set=asked[second])).as_py() or 0
        found.append(
            {
                "run": together.labels[first],
                "other": together.labels[second],
                "both": both,
                "only_run": len(asked[first]) - both,
                "only_other": len(asked[second]) - both,
            }
        )
    return found


def say_questions(shared: Sequence[Mapping[str, Any]], kind: str = "questions") -> list[str]:
    """The same in words."""
    if not shared:
        return []
    if not any(one["only_run"] or one["only_other"] for one in shared):
        runs = "Both runs" if len(shared) == 1 else "All runs"
        return [f"{runs} asked the same {shared[0]['both']:,} {kind}."]
    said = []
    for one in shared[:_MOST_PAIRS]:
        only = f"{one['only_run']:,} only in {one['run']}, {one['only_other']:,} only in {one['other']}"
        who = "both runs" if len(shared) == 1 else f"{one['run']} and {one['other']}"
        if not one["both"]:
            said.append(f"{one['run']} and {one['other']} share no {kind.removesuffix('s')} ({only}).")
        else:
            said.append(f"Across runs, models are compared on the {one['both']:,} {kind} that {who} asked; {only}.")
    if len(shared) > _MOST_PAIRS:
        said.append(f"{len(shared) - _MOST_PAIRS} more pairs of runs are in what --json prints.")
    return said


def remarks(
    together: Together,
    models: Collection[str],
    asked: Sequence[pa.Array],
    ways: Mapping[str, Mapping[str, tuple[str, str]]],
) -> list[str]:
    """What one must know of the runs before one believes a difference between them."""
    return [
        *_samples(together),
        *_weights(together, models),
        *_ways(ways, models),
        *_wordings(together, asked),
        *_settings(together),
    ]


def _samples(together: Together) -> list[str]:
    """Which runs keep a part of their answers only, where these are what is compared."""
    if together.memorized:
        return []
    kept = [(label, run.record.get("sampled")) for label, run in zip(together.labels, together.runs, strict=True)]
    return [
        f"{label} keeps {own['questions']:,} of the {own['of']:,} questions that it asked: its models are compared on "
        "these alone."
        for label, own in kept
        if own is not None
    ]


def _weights(together: Together, models: Collection[str]) -> list[str]:
    """Other weights under one name, and the same under several."""
    by_name: dict[str, dict[str, list[str]]] = {}
    by_weights: dict[str, list[str]] = {}
    for place, run in enumerate(together.runs):
        for model in run.record.get("models", []):
            shown = together.name(model["name"], place)
            if shown not in models or not model.get("fingerprint") or model.get("kind") == "baseline":
                continue
            places = by_name.setdefault(model["name"], {}).setdefault(model["fingerprint"], [])
            places += [] if together.labels[place] in places else [together.labels[place]]
            names = by_weights.setdefault(model["fingerprint"], [])
            names += [] if model["name"] in names else [model["name"]]
    said = []
    for name, states in by_name.items():
        if len(states) > 1:
            parts = [f"{print_[:12]} in {join_some(places, _MOST_NAMED)}" for print_, places in states.items()]
            said.append(f"{quote_name(name)} has different weights under one name ({join_some(parts, _MOST_NAMED)}).")
        elif name in together.repeated:
            where = join_some(next(iter(states.values())), _MOST_NAMED)
            said.append(
                f"{quote_name(name)} has the same weights in {where}: a difference there is one of asking, not of "
                "knowing."
            )
    said += [
        f"{join_some(list(map(quote_name, names)), _MOST_NAMED)} have the same weights."
        for names in by_weights.values()
        if len(names) > 1
    ]
    return said


def _ways(ways: Mapping[str, Mapping[str, tuple[str, str]]], models: Collection[str]) -> list[str]:
    """By which probes and methods models were asked, where these are not the same."""
    by_task: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for task, own in ways.items():
        used = tuple((model, *way) for model, way in own.items() if model in models)
        if len({(probe, method) for _, probe, method in used}) > 1:
            by_task.setdefault(used, []).append(task)
    said = []
    for used, tasks in by_task.items():
        where = "" if len(tasks) == len(ways) else f" on {join_some(tasks, _MOST_NAMED)}"
        by_way: dict[str, list[str]] = {}
        for model, probe, method in used:
            by_way.setdefault(f"{probe} ({method})", []).append(quote_name(model))
        parts = [f"{join_some(names, _MOST_NAMED)} by {way}" for way, names in by_way.items()]
        said.append(f"Models were asked in different ways{where}: {'; '.join(parts)}.")
    return said


def _wordings(together: Together, asked: Sequence[pa.Array]) -> list[str]:
    """Templates of one run alone, and prompts that are shared while the questions are not."""
    tables = [run.questions.questions for run in together.runs]
    said = []
    for first, second in combinations(range(len(tables)), 2):
        one, other = together.labels[first], together.labels[second]
        templates = [
            set(pc.unique(table["template"]).drop_null().to_pylist()) for table in (tables[first], tables[second])
        ]
        for label, own in ((one, templates[0] - templates[1]), (other, templates[1] - templates[0])):
            if own and templates[0] and templates[1]:
                said.append(f"Only {label} asks by the templates {join_some(sorted(own), _MOST_NAMED)}.")
        alone = [
            table.filter(pc.invert(pc.is_in(table["question_id"], value_set=asked[place])))["prompt"]
            for table, place in ((tables[first], second), (tables[second], first))
        ]
        same = pc.sum(pc.is_in(pc.unique(alone[0]), value_set=pc.unique(alone[1]))).as_py() or 0
        if same:
            said.append(
                f"{same:,} prompts are in both {one} and {other} with other candidates or answers: they are different "
                "questions, and not compared."
            )
    return said


def _settings(together: Together) -> list[str]:
    """Versions, seeds and rules of scoring that are not the same in all runs."""
    said = []
    versions = _by_value(together, lambda run: run.record.get("merkhet"))
    if len(versions) > 1:
        said.append(f"The runs were made by different versions of merkhet: {_told(versions)}.")
    metrics: dict[str, dict[str, list[str]]] = {}
    for label, run in zip(together.labels, together.runs, strict=True):
        for entry in run.record["card"]["headline"]:
            metrics.setdefault(entry["task"], {}).setdefault(entry["metric"], []).append(label)
    for task, own in metrics.items():
        if len({tuple(labels) for labels in own.values()}) > 1:
            said.append(f"{task} is scored by different metrics: {_told(own)}. Models are compared by each of them.")
    for key, rule in (("unusable_is_wrong", "counting unusable questions as wrong"), ("average_over", "averaging")):
        values = _by_value(together, lambda run, key=key: str(run.record["card"].get(key) or "no"))
        if len(values) > 1:
            said.append(f"The runs differ in {rule} ({_told(values)}); all are compared as in {together.labels[0]}.")
    return said


def _by_value(together: Together, read: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, run in zip(together.labels, together.runs, strict=True):
        found.setdefault(str(read(run)), []).append(label)
    return found


def _told(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value} in {join_some(labels, _MOST_NAMED)}" for value, labels in values.items())
