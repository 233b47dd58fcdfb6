"""Several runs as one: for a common report, and to compare models that were asked at different times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gnomon.analysis import AnalysisInput, find_out, options_of
from gnomon.foundation import InputError
from gnomon.questions import QuestionSet
from gnomon.reports import ReportData
from gnomon.runs.examining import analysis_input, run_analyses
from gnomon.runs.folder import Run
from gnomon.runs.memory_findings import recall_findings
from gnomon.runs.scoring import classes_of
from gnomon.scores import Metric, get_metric, is_metric

EXTRINSIC = "extrinsic"


def combine_runs(runs: Sequence[Run], downstream: Path | None = None) -> ReportData:
    """The data of one report over all runs, which must be of the same suite.

    A model that is in several runs is shown once for each, with the run's name. Models are compared on the questions
    that they share. ``downstream`` is a CSV file of the models' scores on other tasks, which these are set against.
    """
    names = {run.record["suite"] for run in runs}
    if len(names) > 1:
        raise InputError(f"runs of different suites cannot be put together: {', '.join(sorted(names))}")
    repeated = Counter(model for run in runs for model in set(run.scores["model"].to_pylist()))
    asked = QuestionSet(
        _distinct([run.questions.questions for run in runs], "question_id"),
        _distinct([run.questions.candidates for run in runs], "candidate_set"),
    )
    scores = pa.concat_tables([_named(run.scores, run, repeated) for run in runs], promote_options="default")
    answers = pa.concat_tables([_named(run.answers, run, repeated) for run in runs])
    records = [
        {**model, "name": _name(model["name"], run, repeated)} for run in runs for model in run.record.get("models", [])
    ]
    first = runs[0].record
    seed = runs[0].study.seed
    entries = [(entry["task"], entry["metric"]) for run in runs for entry in run.record["card"]["headline"]]
    headline = [{"task": task, "metric": metric} for task, metric in dict.fromkeys(entries)]
    card = {**first["card"], "headline": headline}
    rows = {"scores": scores.to_pylist(), "answers": answers.to_pylist()}
    metrics = [(entry["task"], get_metric(entry["metric"])) for entry in headline if is_metric(entry["metric"])]
    baselines = {record["name"] for record in records if record.get("kind") == "baseline"}
    if all("recalls" in run.record for run in runs):
        findings = runs[0].findings if len(runs) == 1 else _recalled(runs, headline, repeated, seed)
    else:
        findings = find_out(
            **rows,
            questions=asked.by_id(),
            clusters=asked.clusters(),
            headline=metrics,
            about={name: text for run in runs for name, text in run.record["card"]["names"].items()},
            baselines=baselines,
            seed=seed,
            classes=classes_of(asked, first["card"].get("average_over")),
            unusable_is_wrong=first["card"].get("unusable_is_wrong", False),
        )
    analyses = runs[0].analyses if len(runs) == 1 else _analyses(runs, asked, rows, metrics, frozenset(baselines))
    if downstream is not None:
        given = AnalysisInput(
            questions=(),
            asked=asked.by_id(),
            answers=(),
            clusters={},
            headline=metrics,
            scores=rows["scores"],
            baselines=frozenset(baselines),
            options={"downstream": str(downstream)},
            seed=seed,
        )
        kept = [one for one in analyses if one["name"] != EXTRINSIC]
        analyses = [*kept, *run_analyses([EXTRINSIC], given)]
    return ReportData(
        title=runs[0].study.title or card["title"],
        study=runs[0].study.model_dump(),
        record={**first, "models": records, **_sampled(runs)},
        suite=card,
        scores=scores,
        questions=asked.questions,
        candidates=asked.candidate_sets(),
        answers=answers,
        findings=findings,
        analyses=analyses,
        calibration=_cards(runs),
    )


def _cards(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The calibration cards of all runs, each once."""
    cards: list[dict[str, Any]] = []
    for run in runs:
        cards += [card for card in run.calibration if card not in cards]
    return cards


def _recalled(
    runs: Sequence[Run], headline: Sequence[Mapping[str, str]], repeated: Counter[str], seed: int
) -> dict[str, Any]:
    """The findings of runs in which models memorized: these keep all that was recalled, and a sample of questions."""
    parts = [
        (run.folder, {**part, "model": _name(part["model"], run, repeated)})
        for run in runs
        for part in run.record["recalls"]
    ]
    return recall_findings(parts, headline, seed)


def _sampled(runs: Sequence[Run]) -> dict[str, Any]:
    """How many questions are shown of how many, where runs keep a sample of those that they asked."""
    found = [run.record["sampled"] for run in runs if "sampled" in run.record]
    if len(found) < 2:
        return {}
    return {"sampled": {**found[0], **{key: sum(one[key] for one in found) for key in ("questions", "of")}}}


def _analyses(
    runs: Sequence[Run],
    asked: QuestionSet,
    rows: Mapping[str, list[dict[str, Any]]],
    metrics: Sequence[tuple[str, Metric]],
    baselines: frozenset[str],
) -> list[dict[str, Any]]:
    """The suite's analyses over all runs, but for those that read files of a study: these may be elsewhere by now."""
    named = dict.fromkeys(name for run in runs for name in run.record["card"].get("analyses", ()))
    names = [name for name in named if not any(option.path for option in options_of([name]).values())]
    if not names:
        return []
    facts = _distinct([run.questions.facts for run in runs], "fact_id")
    whole = replace(asked, facts=facts, about=runs[0].questions.about)
    card = runs[0].record["card"]
    given = analysis_input(
        whole,
        **rows,
        headline=metrics,
        baselines=baselines,
        seed=runs[0].study.seed,
        unusable_is_wrong=card.get("unusable_is_wrong", False),
        average_over=card.get("average_over"),
    )
    models = {line.model for line in given.usable}
    pairs = [pair for run in runs for pair in run.study.options.get("pairs") or () if models.issuperset(pair)]
    options = {"lengths": runs[0].study.options.get("lengths")} | ({"pairs": pairs} if pairs else {})
    return run_analyses(names, replace(given, options=options))


def _name(model: str, run: Run, repeated: Counter[str]) -> str:
    return model if repeated[model] < 2 else f"{model} ({run.folder.name})"


def _named(table: pa.Table, run: Run, repeated: Counter[str]) -> pa.Table:
    names = pa.array([_name(model, run, repeated) for model in table["model"].to_pylist()], pa.string())
    return table.set_column(table.column_names.index("model"), "model", names)


def _distinct(tables: Sequence[pa.Table], key: str) -> pa.Table:
    together = pa.concat_tables(tables)
    first: dict[str, int] = {}
    for row, identity in enumerate(together[key].to_pylist()):
        first.setdefault(identity, row)
    return together.take(pa.array(sorted(first.values()), pa.int64()))
