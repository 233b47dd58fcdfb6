"""The analysis step: run a suite's analyses on the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.analysis import ANALYSES
from merkhet.analysis.analysis_options import resolve_option_paths
from merkhet.analysis.types import AnalysisInput
from merkhet.core.files import write_json
from merkhet.core.schemas import ANSWERS, SCORES, read_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import read_json, read_premise_labels
from merkhet.engine.score_step import FindingsParams
from merkhet.metrics.score_table import scoring_rows
from merkhet.questions.question_files import QuestionSet, read_questions


@dataclass(frozen=True)
class TrainedModel:
    """A model that a run has trained."""

    model: str
    task: str | None
    kinds: tuple[str, ...] = ()
    """Kinds of templates it was trained on."""


@dataclass(frozen=True)
class AnalysisParams:
    """The analyses to make, and their options."""

    findings: FindingsParams
    analyses: tuple[str, ...]
    identities: tuple[str, ...]
    """Names of the analyses, with the hash of the file where one is a user's own."""
    options: Mapping[str, Any]
    """Options of the analyses, as the study has them."""
    contents: Mapping[str, Any]
    """Hashes of what the options name."""
    trained: tuple[TrainedModel, ...] = ()
    """Models that the run has trained, in the order of their records among the inputs."""


def write_analyses(context: StepContext[AnalysisParams, Nothing]) -> None:
    """Write analyses.json: a list of what each analysis found; one that has nothing to say is left out."""
    params, folder = context.params, context.folder
    given = analysis_input(
        read_questions(folder),
        answers=scoring_rows(read_table(ANSWERS, folder / "answers.parquet")),
        scores=read_table(SCORES, folder / "scores.parquet").to_pylist(),
        headline=params.findings.headline_metrics(context.home),
        baselines=frozenset(params.findings.baselines),
        seed=params.findings.seed,
        premise_settings=read_premise_labels(context),
        training_records=_learned(context),
        unusable_is_wrong=params.findings.scoring.unusable_is_wrong,
        average_over=params.findings.scoring.average_over,
    )
    given = replace(given, options=resolve_option_paths(params.options, params.analyses, context.home))
    write_json(folder / "analyses.json", run_analyses(params.analyses, given, context.home))


def _learned(context: StepContext[AnalysisParams, Nothing]) -> list[dict[str, Any]]:
    """Collect the training records of a run: model, task, loss, epochs and learning curve."""
    records = [name for name in context.step.inputs if name.endswith("/learned.json")]
    found = []
    for name, about in zip(records, context.params.trained, strict=True):
        record = read_json(context.folder / name)
        kinds = ", ".join(kind for kind in about.kinds if kind != "soft")
        found.append(
            {
                "model": about.model,
                "task": f"{about.task} ({kinds})" if kinds else about.task,
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
        questions_by_id=questions.by_id(),
        clusters=questions.clusters(),
        facts=questions.facts.select(["fact_id", "subject", "object", "domain"]).to_pylist(),
        data_card=questions.about,
        entities={row["question_id"]: tuple(row["entities"]) for row in questions.entities.to_pylist()},
        **rest,
    )


def run_analyses(names: Sequence[str], given: AnalysisInput, home: Path | None = None) -> list[dict[str, Any]]:
    """What each analysis found, as JSON."""
    found = (ANALYSES.get(name, home)(given) for name in names)
    return [analysis.as_json() for analysis in found if analysis is not None]
