"""What the commands print when they are done."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from merkhet.engine.run_folder import Run
from merkhet.engine.score_step import score_objects
from merkhet.questions.question_files import QuestionSet
from merkhet.reports.report_data import ReportData
from merkhet.reports.tables import score_table


def print_run(run: Run, *, as_json: bool) -> None:
    """The table of scores, what it says in words, and where to look."""
    if as_json:
        print_json(score_objects(run.scores))
        return
    console = Console(highlight=False)
    console.print()
    baselines = [model["name"] for model in run.record["models"] if model["kind"] == "baseline"]
    card = run.record["card"]
    main_methods = card.get("main_methods") or ()
    console.print(
        score_table(run.scores, card["headline"], width=console.width, baselines=baselines, main_methods=main_methods)
    )
    console.print()
    where = "the report" if run.study.report != "none" else "findings.json and analyses.json"
    told = [one["sentences"] for one in run.analyses if one["name"] in (card.get("told") or ())]
    for sentences in (run.findings["sentences"], *told, _work(run.record["models"])):
        for sentence in sentences[:_MOST_SENTENCES]:
            console.print(sentence, markup=False)
        if len(sentences) > _MOST_SENTENCES:
            console.print(f"({len(sentences) - _MOST_SENTENCES} more of this kind in {where})")
    report = "" if run.study.report == "none" else f"Report: {run.report}    "
    console.print(f"{report}Scores: {run.folder / 'scores.json'}", soft_wrap=True, markup=False)
    console.print(f"Look closer: merkhet explore {shlex.quote(str(run.folder))}", markup=False, soft_wrap=True)


def _work(models: Sequence[dict[str, Any]]) -> list[str]:
    """How many rows each model computed, against one row for every candidate and method."""
    rows, plain = Counter[str](), Counter[str]()
    for model in models:
        rows[model["name"]] += model.get("rows", 0)
        plain[model["name"]] += model.get("rows_one_by_one", 0)
    return [
        f"{name} computed {rows[name]:,} rows; one for each candidate and method would have been {plain[name]:,}."
        for name in rows
        if plain[name] > rows[name] > 0
    ]


_MOST_REMARKS = 8
_MOST_SENTENCES = 20
"""Of one kind: where there are many models a run has more to say than one reads on a terminal."""


def print_build(questions: QuestionSet, folder: Path, *, as_json: bool) -> None:
    """How many questions of each task were made, and where they are."""
    tasks = Counter(questions.questions["task"].to_pylist())
    if as_json:
        print_json({"folder": str(folder), "questions": questions.questions.num_rows, "by_task": dict(tasks)})
        return
    console = Console(highlight=False)
    parts = ", ".join(f"{count:,} {task}" for task, count in tasks.items())
    console.print(f"{questions.questions.num_rows:,} questions ({parts}) from {questions.facts.num_rows:,} facts")
    empty = list(questions.about.get("empty_domains") or ())
    if empty:
        console.print(f"No facts, and so no questions: {', '.join(empty)}", soft_wrap=True)
    remarks = list(questions.about.get("remarks") or ())
    for remark in remarks[:_MOST_REMARKS]:
        console.print(remark, soft_wrap=True, markup=False)
    if len(remarks) > _MOST_REMARKS:
        console.print(f"{len(remarks) - _MOST_REMARKS} more remarks: {folder / 'CARD.md'}", soft_wrap=True)
    console.print(f"Questions: {folder / 'questions.parquet'}", soft_wrap=True)


def print_report(data: ReportData, file: Path, predictions: Sequence[Path] = (), *, as_json: bool) -> None:
    """Where the report is, and the files of predictions if there are any."""
    content: dict[str, Any] = {"report": str(file), "models": sorted(set(data.scores["model"].to_pylist()))}
    if predictions:
        content["predictions"] = [str(path) for path in predictions]
    print_lines([f"Report: {file}", *(f"Predictions: {path}" for path in predictions)], content, as_json=as_json)


def print_lines(lines: Sequence[str], content: Any, *, as_json: bool) -> None:
    """Lines for people, or the same as JSON."""
    if as_json:
        print_json(content)
        return
    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def print_section(console: Console, section: Mapping[str, Any]) -> None:
    """What an analysis found, as the report says it: tables and sentences."""
    console.print()
    console.print(section["title"], style="bold", markup=False)
    for shown in section["tables"]:
        console.print()
        console.print(shown["caption"], markup=False)
        console.print(_section_table(shown, console.width))
    console.print()
    for sentence in section["sentences"]:
        console.print(sentence, markup=False)


def _section_table(shown: Mapping[str, Any], width: int) -> Table:
    """A table of a section; where it is too wide, with its columns as rows."""
    names = [column["name"] for column in shown["columns"]]
    cells = [[f"{cell['text']} {cell['interval']}".strip() for cell in row] for row in shown["rows"]]
    right = [column["number"] for column in shown["columns"]]
    if sum(2 + max(map(len, column)) for column in zip(names, *cells, strict=True)) > width and len(cells) < len(names):
        names, *cells = [list(row) for row in zip(names, *cells, strict=True)]
        right = [False, *[True] * (len(names) - 1)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for name, number in zip(names, right, strict=True):
        table.add_column(Text(name), justify="right" if number else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def print_json(content: Any) -> None:
    """Content for programs."""
    Console(soft_wrap=True).out(json.dumps(content, ensure_ascii=False, indent=2), highlight=False)
