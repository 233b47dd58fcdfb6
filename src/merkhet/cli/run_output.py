"""Output of the commands ``merkhet run``, ``build`` and ``report``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from merkhet.cli.output import print_json, print_lines
from merkhet.core.text import counted
from merkhet.engine.run_folder import Run
from merkhet.engine.score_step import score_objects
from merkhet.questions.losses import summarize_losses
from merkhet.questions.question_files import QuestionSet
from merkhet.reports.report_data import ReportData
from merkhet.reports.tables import score_table

_MAX_REMARKS = 8
_MAX_SENTENCES = 20
"""Maximum number of printed sentences of one kind."""


def print_run(run: Run, *, as_json: bool) -> None:
    """Print the scores and findings of a run, and the paths of its files."""
    if as_json:
        print_json(score_objects(run.scores))
        return
    console = Console(highlight=False)
    console.print()
    baselines = [model["name"] for model in run.record["models"] if model["kind"] == "baseline"]
    card = run.record["card"]
    main_methods = card.get("main_methods") or ()
    models = [model["name"] for model in run.record["models"]]
    console.print(
        score_table(
            run.scores,
            card["headline"],
            width=console.width,
            baselines=baselines,
            main_methods=main_methods,
            models=models,
            controls=run.control_scores,
        )
    )
    console.print()
    where = "the report" if run.study.report != "none" else "findings.json and analyses.json"
    printed_analyses = [
        analysis["sentences"] for analysis in run.analyses if analysis["name"] in (card.get("printed_analyses") or ())
    ]
    for sentences in (run.findings["sentences"], *printed_analyses, _rows_saved(run.record["models"])):
        for sentence in sentences[:_MAX_SENTENCES]:
            console.print(sentence, markup=False)
        if len(sentences) > _MAX_SENTENCES:
            console.print(f"({len(sentences) - _MAX_SENTENCES} more of this kind in {where})")
    report = "" if run.study.report == "none" else f"Report: {run.report}    "
    console.print(f"{report}Scores: {run.folder / 'scores.json'}", soft_wrap=True, markup=False)
    console.print(f"Look closer: merkhet explore {shlex.quote(str(run.folder))}", markup=False, soft_wrap=True)


def _rows_saved(models: Sequence[dict[str, Any]]) -> list[str]:
    """Compare the number of input rows that each model computed with one row per candidate and method.

    Models that computed just as many rows are left out.
    """
    rows, plain = Counter[str](), Counter[str]()
    for model in models:
        rows[model["name"]] += model.get("rows", 0)
        plain[model["name"]] += model.get("rows_one_by_one", 0)
    return [
        f"{name} computed {counted(rows[name], 'row')}; one for each candidate and method would have been "
        f"{plain[name]:,}."
        for name in rows
        if plain[name] > rows[name] > 0
    ]


def print_build(questions: QuestionSet, folder: Path, *, as_json: bool) -> None:
    """Print the number of questions per task, remarks on the questions, and the path of their file."""
    tasks = Counter(questions.questions["task"].to_pylist())
    if as_json:
        counts = {"questions": questions.questions.num_rows, "by_task": dict(tasks)}
        entries = {name: questions.about.get(name) or [] for name in ("accounts", "losses")}
        print_json({"folder": str(folder), **counts, **entries})
        return
    console = Console(highlight=False)
    parts = ", ".join(f"{count:,} {task}" for task, count in tasks.items())
    origin = questions.about.get("origin") or {}
    source = origin["source"] if origin.get("kind") == "imported" else counted(questions.facts.num_rows, "fact")
    console.print(f"{counted(questions.questions.num_rows, 'question')} ({parts}) from {source}", markup=False)
    empty = list(questions.about.get("empty_domains") or ())
    if empty:
        console.print(f"No questions, because there are no facts: {', '.join(empty)}", soft_wrap=True)
    if unasked := summarize_losses(questions.about, str(folder / "CARD.md")):
        console.print(unasked, soft_wrap=True, markup=False)
    remarks = list(questions.about.get("remarks") or ())
    for remark in remarks[:_MAX_REMARKS]:
        console.print(remark, soft_wrap=True, markup=False)
    if len(remarks) > _MAX_REMARKS:
        console.print(f"{len(remarks) - _MAX_REMARKS} more remarks: {folder / 'CARD.md'}", soft_wrap=True)
    console.print(f"Questions: {folder / 'questions.parquet'}", soft_wrap=True)


def print_report(data: ReportData, file: Path, predictions: Sequence[Path] = (), *, as_json: bool) -> None:
    """Print the paths of the report and of the prediction files."""
    content: dict[str, Any] = {"report": str(file), "models": sorted(set(data.scores["model"].to_pylist()))}
    if predictions:
        content["predictions"] = [str(path) for path in predictions]
    print_lines([f"Report: {file}", *(f"Predictions: {path}" for path in predictions)], content, as_json=as_json)
