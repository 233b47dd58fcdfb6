"""Steps that write the record, the calibration cards and the report of a run."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from merkhet.analysis.comparison import statement_id
from merkhet.core.files import file_digest, write_json, write_text
from merkhet.core.schemas import ANSWERS, SCORES, read_table
from merkhet.core.version import __version__
from merkhet.engine.headline import HeadlinePlan, asked_tasks, choose_headline
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import CALIBRATION, CONTROL_SCORES, read_json
from merkhet.engine.shared_tables import release_tables, run_tables
from merkhet.engine.study import Study
from merkhet.engine.suite_card import SuiteCard

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow", "duckdb", "pydantic", "tantivy")


@dataclass(frozen=True)
class RecordParams:
    """Parameters of the step that writes run.json."""

    suite: str
    card: SuiteCard
    seed: int
    headline: HeadlinePlan


@dataclass(frozen=True)
class RecordRuntime:
    """Command line of a run, and the shards that it was merged from."""

    command: str
    shards: tuple[Mapping[str, Any], ...] = ()
    """Number, command, package versions and machine of each merged shard; empty for a run without shards."""


@dataclass(frozen=True)
class CalibrationParams:
    """Calibration cards of the run's probes."""

    cards: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ReportParams:
    """Parameters of the step that writes report.html."""

    study: Study


def write_record(context: StepContext[RecordParams, RecordRuntime]) -> None:
    """Write run.json: versions, machine, seed, and hashes of the questions and of every model's weights."""
    questions = run_tables(context.folder).question_set
    ids = questions.questions["question_id"].to_pylist()
    if context.params.card.scoring.statements:  # Variants of a statement are counted once.
        ids = [statement_id(name) for name in ids]
    asked = dict(zip(ids, questions.questions["task"].to_pylist(), strict=True))
    tasks = Counter(asked.values())
    facts = {fact for row in questions.questions["facts"].to_pylist() for fact in row or []}
    counts = {
        "count": len(asked),
        "by_task": dict(sorted(tasks.items())),
        "facts": len(facts),
        "knowledge": questions.facts.num_rows,
        "digest": file_digest(context.folder / "questions.parquet"),
    }
    models = [read_json(context.folder / name) for name in context.step.inputs if name.startswith(".merkhet/")]
    scores = read_table(SCORES, context.folder / "scores.parquet")
    headline = choose_headline(context.params.headline, asked_tasks(questions.questions), scores)
    params = replace(context.params, card=replace(context.params.card, headline=headline))
    content = make_record(params, context.runtime, counts, models)
    write_json(context.folder / "run.json", content)


def make_record(
    params: RecordParams, runtime: RecordRuntime, questions: Mapping[str, Any], models: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Make the content of run.json.

    Args:
        questions: Counts and hash of the questions.
        models: Record of each model.
    """
    return {
        "merkhet": __version__,
        "suite": params.suite,
        "card": params.card.as_json(),
        "seed": params.seed,
        "command": runtime.command,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": installed_versions(),
        "machine": describe_machine(),
        "questions": dict(questions),
        "models": [dict(model) for model in models],
        **({"shards": [dict(shard) for shard in runtime.shards]} if runtime.shards else {}),
    }


def write_calibration(context: StepContext[CalibrationParams, Nothing]) -> None:
    """Write calibration.json: the calibration cards of the run's probes."""
    write_json(context.folder / CALIBRATION, [dict(card) for card in context.params.cards])


def write_report(context: StepContext[ReportParams, Nothing]) -> None:
    """Write report.html from the files of the run."""
    from merkhet.reports.html_report import render_html
    from merkhet.reports.report_data import ReportData

    folder, params = context.folder, context.params
    questions = run_tables(folder).question_set
    release_tables(folder)  # Frees memory: the report reads the answers with all columns.
    record = read_json(folder / "run.json")
    data = ReportData(
        title=params.study.title or record["card"]["title"],
        study=params.study.model_dump(),
        record=record,
        suite=record["card"],
        scores=read_table(SCORES, folder / "scores.parquet"),
        questions=questions.questions,
        candidates=questions.candidate_sets(),
        premises=questions.premises,
        answers=read_table(ANSWERS, folder / "answers.parquet"),
        findings=read_json(folder / "findings.json"),
        analyses=read_json(folder / "analyses.json") if "analyses.json" in context.step.inputs else (),
        calibration=read_json(folder / CALIBRATION),
        controls=read_json(folder / CONTROL_SCORES)["scores"] if CONTROL_SCORES in context.step.inputs else (),
        domains=[str(name) for name in questions.about.get("domains") or ()],
    )
    write_text(folder / context.step.outputs[0], render_html(data))


def installed_versions() -> dict[str, str]:
    """Return the versions of the installed packages that can affect scores."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def describe_machine() -> dict[str, Any]:
    """Describe the system, architecture and cores of this machine, without its host name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"system": platform.system(), "architecture": platform.machine(), "cores": cores, "platform": sys.platform}
