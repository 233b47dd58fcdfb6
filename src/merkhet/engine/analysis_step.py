"""The step that examines: the analyses that a suite names, over the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from merkhet.analysis import ANALYSES
from merkhet.analysis.analysis_options import opened
from merkhet.analysis.types import AnalysisInput
from merkhet.core.files import write_json
from merkhet.core.schemas import ANSWERS, SCORES, read_table
from merkhet.engine.plan import StepContext
from merkhet.engine.run_files import read_json
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import answer_rows
from merkhet.questions.question_files import QuestionSet, read_questions
from merkhet.suites.ontoprobe.premise_labels import read_settings


def examine(context: StepContext) -> None:
    """Write analyses.json: a list of what each analysis found; one that has nothing to say is left out."""
    params, folder = context.params, context.folder
    given = analysis_input(
        read_questions(folder),
        answers=answer_rows(read_table(ANSWERS, folder / "answers.parquet")),
        scores=read_table(SCORES, folder / "scores.parquet").to_pylist(),
        headline=[
            (entry["task"], get_metric(params["metrics"][entry["metric"]], context.home))
            for entry in params["headline"]
        ],
        baselines=frozenset(params["baselines"]),
        seed=params["seed"],
        settings=read_settings(context),
        learned=_learned(context),
        unusable_is_wrong=params.get("unusable_is_wrong", False),
        average_over=params.get("average_over"),
    )
    given = replace(given, options=opened(params["options"], params["analyses"], context.home))
    write_json(folder / "analyses.json", run_analyses(params["analyses"], given, context.home))


def _learned(context: StepContext) -> list[dict[str, Any]]:
    """What was learned in the run: by which model, for which task and kind of template, and how it went."""
    records = [name for name in context.step.inputs if name.endswith("/learned.json")]
    found = []
    for name, about in zip(records, context.params.get("learned") or (), strict=True):
        record = read_json(context.folder / name)
        kinds = ", ".join(kind for kind in about.get("kinds", ()) if kind != "soft")
        found.append(
            {
                "model": about["model"],
                "task": f"{about['task']} ({kinds})" if kinds else about.get("task"),
                "loss": record["settings"].get("loss"),
                "epochs": record.get("epochs", []),
                "kept_epoch": record.get("kept_epoch"),
                "objective": record.get("objective"),
                "curve": record.get("curve", []),
            }
        )
    return found


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
