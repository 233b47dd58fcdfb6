"""Methods section of a report: questions, models, probes, scoring and statistics of a run.

This module collects numbers and names; the sentences are in ``templates/methods.txt.j2``.
"""

from __future__ import annotations

import inspect
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from merkhet.core import text as fmt
from merkhet.core.templating import render_prose
from merkhet.metrics import METRICS
from merkhet.metrics.bootstrap import clustered_interval, paired_difference
from merkhet.metrics.clusters import MAX_BOOTSTRAP_FACTS
from merkhet.models.protocol import ANSWER_LENGTH
from merkhet.reports._calibration_section import CalibrationStatus, describe_calibration
from merkhet.reports._citations import StatisticsCiter, cite_in_text
from merkhet.reports._import_description import describe_imports, only_imported, published_files
from merkhet.reports._reproduction import public_text
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import overall_rows

_LANGUAGES = {
    **{"ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "he": "Hebrew"},
    **{"hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "pt": "Portuguese", "ru": "Russian"},
    **{"zh": "Chinese"},
}
_DEVICES = {"cpu": "a CPU", "cuda": "a GPU"}
_UNSCORED_PROBES = ("recall", "answer", "judge")
"""Probes whose description in the template explains the scoring, so that their methods are not described."""
_TRAINING_NUMBERS = ("epochs", "learned", "steps", "statements", "symbols")
_MAX_NAMED = 20
_MAX_TRAININGS = 6
_MAX_NAME = 80
_MAX_LANGUAGES = 5

ModelRecord = Mapping[str, Any]


class AskedCounts(NamedTuple):
    """Number of questions in total, of facts behind them, and of questions by task."""

    questions: int
    facts: int
    tasks: Mapping[str, int]


class ScoringMethod:
    """A scoring method, with its name split into layer, masking, scope and pooling."""

    mask_count = ANSWER_LENGTH

    def __init__(self, name: str) -> None:
        self.name = name
        self.stem, _, self.layer = name.partition("@")
        self.masking, _, self.pooling = self.stem.rpartition("-")
        pll = re.fullmatch(r"(sentence-)?pll(-l2r)?", self.masking)
        self.pll = pll is not None
        self.whole_sentence, self.left_to_right = (False, False) if pll is None else (bool(pll[1]), bool(pll[2]))
        scope, _, pooling = self.stem.partition("-")
        named_scope = scope in ("candidate", "sentence")
        self.causal_scope, self.causal_pooling = (scope, pooling) if named_scope else ("", self.stem)


def count_asked(data: ReportData) -> AskedCounts:
    """Count the questions, facts and tasks of a run from its question table.

    The counts come from the run's record if the table is empty, a sample, or the questions of an experiment.
    """
    record = data.record.get("questions") or {}
    if data.suite.get("experiment") or data.record.get("sampled") or not data.questions.num_rows:
        return AskedCounts(int(record.get("count") or 0), int(record.get("facts") or 0), record.get("by_task") or {})
    task_counts = data.questions["task"].value_counts().to_pylist()
    facts = int(pc.count_distinct(pc.list_flatten(data.questions["facts"])).as_py() or record.get("facts") or 0)
    if only_imported(data) and pc.any(pc.equal(pc.list_value_length(data.questions["facts"]), 0)).as_py():
        facts = 0  # Not every question names its facts.
    tasks = {fmt.printable(count["values"]): int(count["counts"]) for count in task_counts}
    return AskedCounts(data.questions.num_rows, facts, tasks)


def methods_text(
    data: ReportData, choices: Sequence[int], calibration: CalibrationStatus
) -> tuple[list[str], list[str]]:
    """Write the methods section.

    Args:
        choices: Number of candidates of each question; 0 if unknown.

    Returns:
        The paragraphs, and the BibTeX keys of the statistical sources that they cite. Both are empty without questions.
    """
    if not count_asked(data).questions:
        return [], []
    cite = StatisticsCiter()
    paragraphs = render_prose(
        "merkhet.reports", "templates", "methods.txt.j2", "methods", _methods(data, choices, calibration, cite)
    )
    return paragraphs, list(cite.keys)


def _methods(
    data: ReportData, choices: Sequence[int], calibration: CalibrationStatus, cite: StatisticsCiter
) -> dict[str, Any]:
    """Collect the numbers and names for the template of the methods section."""
    record, study, suite = data.record, data.study, data.suite
    asked, baselines = count_asked(data), data.baselines()
    ways = data.ways_of_asking()
    probes = dict.fromkeys(way["probe"] for way in ways)
    by_name: dict[str, ModelRecord] = {}
    for model in record.get("models") or ():
        by_name.setdefault(str(model.get("name")), model)
    models = {name: model for name, model in by_name.items() if name not in baselines}
    remote = [model for model in models.values() if model.get("endpoint")]
    candidate_counts = sorted(number for number in choices if number) if {"rank", "compare"} & probes.keys() else []
    languages = data.questions["language"].drop_null().unique().to_pylist()[:_MAX_LANGUAGES]
    trainings = _distinct(
        _training(model)
        for model in record.get("models") or ()
        if isinstance(model.get("learned"), Mapping) and model["learned"].get("learner")
    )
    learner = (study.get("learning") or {}).get("learner")
    repetitions = fmt.finite_or_none((study.get("options") or {}).get("trainings")) or 1
    packages = record["versions"] if isinstance(record.get("versions"), Mapping) else {}
    versions = [f"{name} {packages[name]}" for name in ("torch", "transformers") if packages.get(name)]
    devices = {str(model["device"]).partition(":")[0] for model in record.get("models") or () if model.get("device")}
    return {
        "asked": asked,
        "task_counts": [f"{task} {fmt.count(number)}" for task, number in asked.tasks.items()],
        "languages": [_LANGUAGES.get(str(code), f"the language {code}") for code in languages if code],
        "suite": _makers(data),
        "imports": describe_imports(data),
        "published_files": published_files(data),
        "suite_source": cite_in_text([str(text) for text in suite.get("citations") or ()]),
        "suite_methods": str(suite.get("methods") or ""),
        "version": str(record.get("merkhet") or ""),
        "knowledge_facts": 0 if only_imported(data) else (record.get("questions") or {}).get("knowledge") or 0,
        "packs": [] if study.get("data") else [public_text(str(name)) for name in study.get("knowledge") or ()],
        "templates": pc.count_distinct(data.questions["template"]).as_py() or 0,
        "limit": study.get("limit"),
        "sampling_seed": record.get("seed", study.get("seed", 0)),
        "candidate_counts": candidate_counts,
        "median_candidates": statistics.median(candidate_counts) if candidate_counts else None,
        "models": [_named_model(name, model) for name, model in list(models.items())[:_MAX_NAMED]],
        "more_models": max(0, len(models) - _MAX_NAMED),
        "local_weights": len(remote) < len(models),
        "endpoints": _distinct(map(_endpoint, remote))[:_MAX_TRAININGS],
        "repetitions": repetitions if repetitions > 1 and learner == "memorize" else None,
        "trainings": trainings[:_MAX_TRAININGS],
        "more_trainings": max(0, len(trainings) - _MAX_TRAININGS),
        "soft_models": [_short_name(name) for name in by_name if ", soft" in name] if learner == "soft" else [],
        "probes": [
            _used_probe(data, probe, ways)
            for probe in probes
            if not models or any(way["probe"] == probe and way["model"] not in baselines for way in ways)
        ],
        "ranked": bool({"rank", "fill"} & probes.keys()),
        # A baseline has one name per condition; describe it once, by its base name.
        "baselines": _distinct(
            (
                _short_name(str(model.get("base") or name)),
                next((way["method"] for way in ways if way["model"] == name), ""),
            )
            for name, model in by_name.items()
            if name in baselines and model.get("questions") != 0
        ),
        "statistics": _statistics(data, cite),
        "calibration": describe_calibration(calibration),
        "seed": record.get("seed"),
        "devices": sorted({_DEVICES.get(name, name) for name in devices}),
        "versions": [*versions, *([f"Python {record['python']}"] if packages and record.get("python") else [])],
    }


def _makers(data: ReportData) -> str:
    """Return the names of the suites whose questions were asked; empty if all questions are imported."""
    if not data.suite.get("origins"):
        return str(data.suite.get("name") or data.record.get("suite") or "")
    return " and ".join(dict.fromkeys(suite for origin in data.suite["origins"] if (suite := origin["suite"])))


def _has_values(data: ReportData, column: str) -> bool:
    """Return whether a question has a value in a column, which may not be stored."""
    return column not in data.questions.column_names or data.questions[column].null_count < data.questions.num_rows


def _distinct(items: Iterable[Any]) -> list[Any]:
    """Return the items without duplicates, in order; items may be unhashable."""
    distinct: list[Any] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return distinct


def _named_model(name: str, model: ModelRecord) -> dict[str, Any]:
    return {
        "name": _short_name(name),
        "kind": str(model.get("kind") or ""),
        "parameters": fmt.finite_or_none(model.get("parameters")),
        "dtype": str(model.get("dtype") or (model.get("learned") or {}).get("precision") or ""),
    }


def _endpoint(model: ModelRecord) -> dict[str, Any]:
    """Return the name, address, sampling settings and system prompt of a remote model."""
    omitted = [name.strip() for name in str(model.get("left_out") or "").split(",")]
    temperature = fmt.finite_or_none(model.get("temperature"))
    settings = {
        "temperature": None if temperature is None else f"temperature {temperature:g}",
        "seed": None if model.get("seed") is None else f"seed {model['seed']}",
    }
    return {
        "name": str(model.get("model") or model.get("name")),
        "address": str(model["endpoint"]),
        "settings": [text for name, text in settings.items() if text and name not in omitted],
        "system": str(model.get("system") or ""),
    }


def _training(model: ModelRecord) -> dict[str, Any]:
    """Return the learner and the training numbers of a model; unrecorded numbers are None."""
    record = model["learned"]
    curve = (record.get("curve") or ()) if record["learner"] == "memorize" else ()
    shares = [fmt.finite_or_none(epoch.get("acc@1")) for epoch in curve]
    return {
        "name": _short_name(str(model.get("name"))),
        "learner": str(record["learner"]),
        "objective": str(record.get("objective")),
        "selected_epoch": record.get("kept_epoch") if record.get("dev_questions") else None,
        "recalled": next((share for share in reversed(shares) if share is not None), None),
        **{name: fmt.finite_or_none(record.get(name)) for name in _TRAINING_NUMBERS},
    }


def _used_probe(data: ReportData, probe: str, ways: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    baselines = data.baselines()
    used = dict.fromkeys(
        (way["kind"], way["method"]) for way in ways if way["probe"] == probe and way["model"] not in baselines
    )
    methods_of_kind: dict[str, list[ScoringMethod]] = {}
    for kind, method in used:
        if "@" not in method and probe not in _UNSCORED_PROBES:
            methods_of_kind.setdefault(kind, []).append(ScoringMethod(method))
    choices = (choice for choice in data.study.get("probes") or () if isinstance(choice, Mapping))
    options = next((choice.get("options") or {} for choice in choices if choice.get("probe") == probe), {})
    return {
        "name": probe,
        "groups": [{"kind": kind, "methods": methods} for kind, methods in methods_of_kind.items()],
        "layers": sum("@" in method for _, method in used),
        "orders": fmt.finite_or_none(options.get("orders")) or 1,
        "mixed_letters": bool(options.get("mixed_letters")),
        "most_choices": options.get("most"),
        "shots": fmt.finite_or_none(options.get("shots")) or 0,
    }


def _statistics(data: ReportData, cite: StatisticsCiter) -> dict[str, Any] | None:
    rows = overall_rows(data.scores)
    if not rows:
        return None
    every_pair = list(data.findings.get("comparisons") or ())
    pairs = [pair for pair in every_pair if pair.get("trainings") is None]
    trained = [pair for pair in every_pair if pair.get("trainings") is not None]
    reasons = data.findings.get("unusable")
    recorded = data.answers.num_rows - data.answers["unusable"].null_count
    metrics = describe_metrics(str(row["metric"]) for row in rows)
    return {
        "cite": cite,
        "metrics": [f"{name} ({description})" if description else name for name, description in metrics],
        "has_chance": _any_number(rows, "chance"),
        "has_adjusted": _any_number(rows, "adjusted"),
        "average_over": column if (column := data.suite.get("average_over")) and _has_values(data, column) else None,
        # Scores are computed with these defaults, so the text states them.
        "resamples": inspect.signature(clustered_interval).parameters["resamples"].default,
        "permutations": inspect.signature(paired_difference).parameters["flips"].default,
        "closed_form_above": MAX_BOOTSTRAP_FACTS if any(row.get("probe") == "recall" for row in rows) else None,
        "pairs": len(pairs),
        "trained_pairs": len(trained),
        "tested_trainings": sum(pair.get("p") is not None for pair in trained),
        "untested_trainings": sum(pair["trainings"] == 1 for pair in trained),
        "closed_form_tests": bool(data.record.get("recalls")),
        "has_q": len(pairs) > 1 and _any_number(pairs, "q"),
        **{f"has_{name}": _any_number(pairs, name) for name in ("mcnemar", "effect", "detectable")},
        "unusable": recorded if reasons is None else sum(int(reason.get("count") or 0) for reason in reasons),
        "unusable_is_wrong": bool(data.suite.get("unusable_is_wrong")),
    }


def describe_metrics(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """Return the label and description of each distinct metric; an unknown metric has an empty description."""
    descriptions = []
    for metric in dict.fromkeys(metrics):
        kind, at, number = metric.partition("@")
        name = f"{kind}@k" if at and number.isdigit() else metric
        description = METRICS.about(name) if name in METRICS else ""
        if at and description.startswith("the same"):
            description = METRICS.about("r@k")
        description = description.partition(", e.g.")[0].replace("first k ", f"first {number} ")
        if number == "1":
            description = description.replace("is among the first 1 candidates", "is ranked first")
        descriptions.append((fmt.metric_label(metric), description))
    return descriptions


def _any_number(rows: Iterable[Mapping[str, Any]], name: str) -> bool:
    return any(fmt.finite_or_none(row.get(name)) is not None for row in rows)


def _short_name(name: str) -> str:
    return fmt.quote_name(fmt.truncate(name, _MAX_NAME))
