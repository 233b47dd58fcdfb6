"""The step that scores the controls of models, and tests whether the models do better than these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.control_scores import ONCE_FOR_ALL, OTHER_CANDIDATES, compare_with_controls
from merkhet.analysis.finding_types import Finding
from merkhet.analysis.position_preference import find_preferences, shown_positions
from merkhet.core.files import write_json
from merkhet.core.schemas import ANSWERS, CONTROL_ANSWERS, SCORES, make_table, read_table, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import CONTROL_ANSWERS_FILE, CONTROL_SCORES
from merkhet.engine.score_step import FindingsParams, question_classes, question_groups, score_objects
from merkhet.engine.shared_tables import RunTables, run_tables
from merkhet.metrics.metrics import Metric
from merkhet.metrics.score_table import score_answers


@dataclass(frozen=True)
class ControlParams:
    """Parameters of the step that scores controls."""

    findings: FindingsParams
    controls: tuple[str, ...]
    """Control of each file of answers among the step's inputs, in their order."""


def write_control_scores(context: StepContext[ControlParams, Nothing]) -> None:
    """Write the answers of controls, their scores, and the findings on controls and liked positions."""
    params, folder = context.params.findings, context.folder
    tables = run_tables(folder)
    scores = read_table(SCORES, folder / "scores.parquet")
    headline = params.headline_metrics(tables.question_set.questions, scores, context.home)
    by_control = _read_controls(context)
    parts = [
        table.add_column(0, "control", pa.array([control] * len(table), pa.string()))
        for control, table in by_control.items()
    ]
    write_table(
        CONTROL_ANSWERS,
        pa.concat_tables([make_table(CONTROL_ANSWERS, []), *parts]),
        folder / CONTROL_ANSWERS_FILE,
    )
    options: dict[str, Any] = {"unusable_is_wrong": params.scoring.unusable_is_wrong}
    classes = question_classes(tables.question_set, params.scoring.average_over)
    findings: list[Finding] = []
    rows: list[Mapping[str, Any]] = []
    asked = {control: table for control, table in by_control.items() if len(table)}
    if asked:
        answers = read_table(ANSWERS, folder / "answers.parquet")
        findings += compare_with_controls(
            answers,
            asked,
            tables.questions,
            tables.clusters,
            headline,
            seed=params.seed,
            classes=classes,
            statements=params.scoring.statements,
            **options,
        )
        for control, table in asked.items():
            of_control = _score_control(control, table, tables, headline, params)
            rows += _by_ways_of_asking(of_control, scores.to_pylist()) if control == ONCE_FOR_ALL else of_control
    findings += find_preferences(
        _read_shown_choices(tables, folder / "answers.parquet", params.baselines),
        tables.questions,
        tables.clusters,
        seed=params.seed,
    )
    content = {"scores": rows, "findings": [finding.as_json() for finding in findings]}
    write_json(folder / CONTROL_SCORES, content)


def _read_controls(context: StepContext[ControlParams, Nothing]) -> dict[str, pa.Table]:
    """Read the answers of each control."""
    files = [name for name in context.step.inputs if name.startswith(".merkhet/controls/")]
    parts: dict[str, list[pa.Table]] = {}
    for control, name in zip(context.params.controls, files, strict=True):
        parts.setdefault(control, []).append(read_table(ANSWERS, context.folder / name))
    return {control: pa.concat_tables(tables) for control, tables in parts.items()}


def _score_control(
    control: str,
    answers: pa.Table,
    tables: RunTables,
    headline: Sequence[tuple[str, Metric]],
    params: FindingsParams,
) -> list[Mapping[str, Any]]:
    """Score the answers of a control as those of models are scored, by the headline metrics of each task."""
    scoring = params.scoring
    columns = [name for name in [scoring.average_over] if name]
    metrics = list({metric.name: metric for _, metric in headline}.values())
    table = score_answers(
        "",
        tables.questions,
        question_groups(tables.question_set, columns, scoring.statements),
        tables.clusters,
        answers,
        metrics,
        seed=params.seed,
        group_sets=tuple((name,) for name in columns),
        average_over=scoring.average_over,
        unusable_is_wrong=scoring.unusable_is_wrong,
        cluster_prompts=scoring.statements,
    )
    shown = {(task, metric.name) for task, metric in headline}
    return [
        {"control": control, **row}
        for row in score_objects(table)
        if (row["task"], row["metric"]) in shown and not any(name in row for name in columns)
    ]


def _by_ways_of_asking(
    rows: Sequence[Mapping[str, Any]], scores: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Repeat the scores of a control that was asked once for each probe and method that its model was asked by."""
    ways: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for score in scores:
        if score["probe"] not in OTHER_CANDIDATES:
            ways.setdefault((score["model"], score["task"]), {})[score["probe"], score["method"]] = None
    return [
        {**row, "probe": probe, "method": method}
        for row in rows
        for probe, method in ways.get((row["model"], row["task"]), {})
    ]


def _read_shown_choices(tables: RunTables, answers: Any, baselines: Sequence[str]) -> list[Mapping[str, Any]]:
    """Read the usable answers of models to questions that show their options; tied answers are left out."""
    questions = tables.question_set.questions
    with_choices = questions.filter(pc.is_valid(questions["choices"]))["question_id"].to_pylist()
    ids = [name for name in with_choices if shown_positions(tables.questions[name]) is not None]
    if not ids:
        return []
    names = ["question_id", "model", "probe", "method", "repeat", "prediction", "ranked", "unusable", "positions"]
    table = read_table(ANSWERS, answers, columns=names)
    keep = pc.is_in(table["question_id"], value_set=pa.array(ids))
    keep = pc.and_(keep, pc.invert(pc.is_in(table["model"], value_set=pa.array(list(baselines), pa.string()))))
    # Chat probes show options in orders of their own, whose positions the analysis of forms tests.
    for name in ("repeat", "unusable", "positions"):
        empty = pc.is_null(table[name])
        if name == "positions":
            empty = pc.or_(empty, pc.fill_null(pc.equal(pc.list_value_length(table[name]), 0), True))
        keep = pc.and_(keep, empty)
    rows = table.filter(keep).select(names).to_pylist()
    return [row for row in rows if not _is_tied(row["ranked"] or ())]


def _is_tied(ranked: Sequence[Mapping[str, Any]]) -> bool:
    return len(ranked) > 1 and ranked[0]["score"] == ranked[1]["score"]
