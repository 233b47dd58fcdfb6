"""The step that runs a suite's analyses on the tables of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from merkhet.analysis import ANALYSES
from merkhet.analysis.analysis_options import AnalysisOptions, select_options
from merkhet.analysis.model_descriptions import ModelDescription
from merkhet.analysis.option_models import validate
from merkhet.analysis.types import AnalysisInput
from merkhet.core.files import write_json
from merkhet.core.records import Question
from merkhet.core.schemas import SCORES, read_table
from merkhet.engine.plan import PACKAGE, Nothing, StepContext
from merkhet.engine.run_files import read_json, read_premise_labels
from merkhet.engine.score_step import FindingsParams
from merkhet.engine.shared_tables import run_tables
from merkhet.engine.training_answers import read_repeated
from merkhet.metrics.answer_table import LazyRows
from merkhet.questions.question_files import QuestionSet

ANSWERS_FOLDER = ".merkhet/answers/"
"""Folder of the answers and of the record of each asked model, in the folder of a run."""


@dataclass(frozen=True)
class TrainedModel:
    """Name, task and template kinds of a model that a run has trained."""

    model: str
    task: str | None
    kinds: tuple[str, ...] = ()
    """Kinds of templates that the model was trained on."""


@dataclass(frozen=True)
class AnalysisParams:
    """Parameters of the analysis step."""

    findings: FindingsParams
    analyses: tuple[str, ...]
    identities: tuple[str, ...]
    """Names of the analyses. The name of a user-defined analysis includes the hash of its file."""
    options: Mapping[str, Any]
    """Options of the analyses, as written in the study."""
    contents: Mapping[str, Any]
    """Hashes of the files and folders that the options name, as part of the cache key."""
    trained: tuple[TrainedModel, ...] = ()
    """Models that the run has trained, in the order of their training records among the step's inputs."""
    corpora: Mapping[str, str] = field(default_factory=dict)
    """Training corpus of each model for which the study names one, by name."""


def write_analyses(context: StepContext[AnalysisParams, Nothing]) -> None:
    """Run the suite's analyses and write analyses.json."""
    params, folder = context.params, context.folder
    tables = run_tables(folder)
    scores = read_table(SCORES, folder / "scores.parquet")
    inputs = make_analysis_input(
        tables.question_set,
        questions_by_id=tables.questions,
        answers=tables.answers.rows(),
        scores=scores.to_pylist(),
        headline=params.findings.headline_metrics(tables.question_set.questions, scores, context.home),
        baselines=frozenset(params.findings.baselines),
        seed=params.findings.seed,
        premise_settings=read_premise_labels(context),
        training_records=_training_records(context),
        unusable_is_wrong=params.findings.scoring.unusable_is_wrong,
        average_over=params.findings.scoring.average_over,
        conditions=params.findings.conditions,
        repeated_answers=read_repeated(folder, context.step.inputs),
        models=_describe_models(context),
        trained=frozenset(params.findings.trained),
    )
    options = validate(AnalysisOptions, select_options(params.options, params.analyses), "options")
    inputs = replace(inputs, options=options.at(context.home))
    write_json(folder / "analyses.json", run_analyses(params.analyses, inputs, context.home))


def _describe_models(context: StepContext[AnalysisParams, Nothing]) -> dict[str, ModelDescription]:
    """Describe the models by the number of parameters in their records, and by the corpora that the study names."""
    names = [name for name in context.step.inputs if name.startswith(ANSWERS_FOLDER) and name.endswith(".json")]
    records = [read_json(context.folder / name) for name in names]
    sizes = {record["name"]: record["parameters"] for record in records if record.get("parameters")}
    corpora = context.params.corpora
    return {name: ModelDescription(sizes.get(name), corpora.get(name)) for name in dict.fromkeys([*sizes, *corpora])}


def _training_records(context: StepContext[AnalysisParams, Nothing]) -> list[dict[str, Any]]:
    """Read model, task, loss, epochs and learning curve of each training of a run."""
    records = [name for name in context.step.inputs if name.endswith("/learned.json")]
    trainings = []
    for name, trained in zip(records, context.params.trained, strict=True):
        record = read_json(context.folder / name)
        kinds = ", ".join(kind for kind in trained.kinds if kind != "soft")
        trainings.append(
            {
                "learner": record.get("learner"),
                "model": trained.model,
                "task": f"{trained.task} ({kinds})" if kinds else trained.task,
                "loss": record["settings"].get("loss"),
                "epochs": record.get("epochs", []),
                "kept_epoch": record.get("kept_epoch"),
                "objective": record.get("objective"),
                "curve": record.get("curve", []),
                **{key: record[key] for key in ("seconds", "statements") if key in record},
            }
        )
    return trainings


def make_analysis_input(
    questions: QuestionSet, *, questions_by_id: Mapping[str, Question] | None = None, **fields: Any
) -> AnalysisInput:
    """Make the input of analyses from a question set; ``fields`` are the remaining fields of the input."""
    facts = questions.facts.select(["fact_id", "subject", "object", "domain", "rule"])
    return AnalysisInput(
        questions=LazyRows(questions.questions.num_rows, questions.questions.to_pylist),
        questions_by_id=questions.by_id() if questions_by_id is None else questions_by_id,
        clusters=questions.clusters(),
        facts=LazyRows(facts.num_rows, facts.to_pylist),
        data_card=questions.about,
        premises=_premises_by_question(questions),
        entities={row["question_id"]: tuple(row["entities"]) for row in questions.entities.to_pylist()},
        **fields,
    )


def _premises_by_question(questions: QuestionSet) -> dict[str, tuple[tuple[str, str], ...]]:
    table = questions.premises
    premises: dict[str, list[tuple[str, str]]] = defaultdict(list)
    columns = (table[name].to_pylist() for name in ("question_id", "fact_id", "axiom"))
    for question_id, fact_id, axiom in zip(*columns, strict=True):
        premises[question_id].append((fact_id, axiom))
    return {question_id: tuple(facts) for question_id, facts in premises.items()}


def is_available_analysis(name: str) -> bool:
    """Return whether an analysis can be run without importing foreign code: it is registered, or merkhet's own."""
    return ANALYSES.is_available(name) or (name.startswith(PACKAGE) and ".analyses." in name)


def run_analyses(names: Sequence[str], inputs: AnalysisInput, home: Path | None = None) -> list[dict[str, Any]]:
    """Run analyses and return their results as JSON objects, without analyses that have nothing to report."""
    analyses = (ANALYSES.get(name, home)(inputs) for name in names)
    return [analysis.as_json() for analysis in analyses if analysis is not None]
