"""The step that examines: the analyses that a suite names, over the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnomon.analysis import ANALYSES, AnalysisInput
from gnomon.analysis.options import opened
from gnomon.foundation import write_json
from gnomon.foundation.tables import ANSWERS, SCORES, read_table
from gnomon.questions import QuestionSet, read_questions
from gnomon.runs.plan import StepContext
from gnomon.scores import get_metric


def examine(context: StepContext) -> None:
    """Write analyses.json: a list of what each analysis found; one that has nothing to say is left out."""
    params, folder = context.params, context.folder
    given = analysis_input(
        read_questions(folder),
        answers=read_table(ANSWERS, folder / "answers.parquet").to_pylist(),
        scores=read_table(SCORES, folder / "scores.parquet").to_pylist(),
        headline=[
            (entry["task"], get_metric(params["metrics"][entry["metric"]], context.home))
            for entry in params["headline"]
        ],
        baselines=frozenset(params["baselines"]),
        seed=params["seed"],
    )
    given = replace(given, options=opened(params["options"], params["analyses"], context.home))
    write_json(folder / "analyses.json", run_analyses(params["analyses"], given, context.home))


def analysis_input(questions: QuestionSet, **rest: Any) -> AnalysisInput:
    """What analyses get, from a question set and the rest of a run."""
    return AnalysisInput(
        questions=questions.questions.to_pylist(),
        asked=questions.by_id(),
        clusters=questions.clusters(),
        facts=questions.facts.select(["fact_id", "subject", "object", "domain"]).to_pylist(),
        about=questions.about,
        entities={row["question_id"]: tuple(row["entities"]) for row in questions.entities.to_pylist()},
        **rest,
    )


def run_analyses(names: Sequence[str], given: AnalysisInput, home: Path | None = None) -> list[dict[str, Any]]:
    """What each analysis found, as JSON."""
    found = (ANALYSES.get(name, home)(given) for name in names)
    return [analysis.as_json() for analysis in found if analysis is not None]
