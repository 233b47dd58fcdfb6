"""Steps of a memorizing run: store statements, recall them, score and analyze the recalls, write the record."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.memory_types import MemorizedModel, MemoryAnalysis, MemoryInput, run_memory_analyses
from merkhet.analysis.training_noise import TrainingScores, trainings
from merkhet.core.files import file_digest, write_json
from merkhet.core.ids import digest
from merkhet.core.recall_schemas import RECALLS, STATEMENTS, SYMBOLS
from merkhet.core.schemas import SCORES, make_table, read_table, write_table
from merkhet.engine._training_steps import planned_model
from merkhet.engine.asker import ModelRuntime
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.record_step import RecordParams, RecordRuntime, make_record
from merkhet.engine.run_files import ABOUT_FACTS, SYMBOLS_FILE, read_json
from merkhet.engine.score_step import score_objects
from merkhet.metrics.recall_scores import frequency_recalls, recall_values, score_recalls
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import require_models_extra
from merkhet.training.artifact import read_artifact

logger = logging.getLogger("merkhet.engine")

PROBE, METHOD = "recall", "symbols"


@dataclass(frozen=True)
class RecallPart:
    """One model asked one set of statements under one condition."""

    model: str
    """Name in tables."""
    base: str
    """Model that was trained."""
    stored: str
    """File of the statements that were stored."""
    asked: str
    """File of the statements that were asked."""
    task: str
    condition: str
    """Label of the condition."""
    about: Mapping[str, Any]
    """Settings of the condition: facts, conflict, static, dynamic."""
    recalls: str | None = None
    """File of the recalls; None for the baseline, whose recalls are computed from what was stored."""
    learned: str | None = None
    """Record of the training."""

    def as_json(self) -> dict[str, Any]:
        """Encode for run.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RecallPart:
        """Decode what run.json holds."""
        return cls(**content)


@dataclass(frozen=True)
class MemorizeParams:
    """Parameters of a training that memorizes."""

    name: str
    """Name of the trained model."""
    fingerprint: str
    kind: str
    dtype: str
    settings: Mapping[str, Any]
    """Settings of training that affect the result."""
    seed: int


@dataclass(frozen=True)
class MemorizeRuntime(ModelRuntime):
    """Location of the model, and settings of the processes."""

    processes: Mapping[str, Any]
    """Settings that do not affect the result."""


@dataclass(frozen=True)
class RecallParams:
    """The model whose recalls are written."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class RecallParts:
    """All recall parts of a run."""

    parts: tuple[RecallPart, ...]
    baselines: tuple[RecallPart, ...]
    repeated: tuple[RecallPart, ...] = ()
    """Parts of the repeated trainings with other seeds."""


@dataclass(frozen=True)
class RecallScoreParams:
    """Parameters of the scores of recalls."""

    suite: str
    seed: int
    metrics: tuple[str, ...]
    recalled: RecallParts


@dataclass(frozen=True)
class RecallAnalysisParams:
    """Parameters of the analyses of an experiment."""

    experiment: str
    seed: int
    recalled: RecallParts
    analyses: tuple[MemoryAnalysis, ...]


@dataclass(frozen=True)
class RecallRecordParams(RecordParams):
    """Parameters of the record of a memorizing run."""

    recalled: RecallParts


def memorize_statements(context: StepContext[MemorizeParams, MemorizeRuntime]) -> None:
    """Train a model to store the statements of a set; resume from the last checkpoint.

    The first output is the record, learned.json; the model lies beside it.
    """
    params = context.params
    symbols, statements = (
        read_table(kind, context.folder / name)
        for kind, name in zip((SYMBOLS, STATEMENTS), context.step.inputs, strict=True)
    )
    planned = planned_model(context.runtime.model, params.fingerprint, context.home)
    resolved = replace(planned, name=params.name)
    context.progress.say(f"  {params.name}: {statements.num_rows:,} statements to memorize")
    with require_models_extra():
        from merkhet.training.memorizing.memorize import store_statements
    learned = store_statements(
        replace(resolved.instance, name=resolved.name) if resolved.kind == "blank" else load_model(resolved),
        statements,
        symbols,
        (context.folder / context.step.outputs[0]).parent,
        settings={**params.settings, **context.runtime.processes},
        seed=params.seed,
        progress=context.progress,
        checkpoints=context.work,
        device=resolved.spec.device,
    )
    for line in (_training_summary(learned.record), *(learned.record.get("remarks") or ())):
        context.progress.say(f"  {params.name}: {line}")
    logger.info("%s has memorized: %s", params.name, dict(learned.record))


def _training_summary(record: Mapping[str, Any]) -> str:
    """Summarize a finished training in one line."""
    shares = [entry["acc@1"] for entry in record.get("curve") or () if entry.get("acc@1") is not None]
    accuracy = f"{100 * shares[-1]:.1f}% of the statements known by heart" if shares else "not asked yet"
    return f"{accuracy} after {record['epochs']:,} epochs ({record['statements_per_second']:,.0f} statements/s)"


def recall(context: StepContext[RecallParams, ModelRuntime]) -> None:
    """Ask a model that has memorized the statements of each set; write its rankings of symbols and its record."""
    from merkhet.training.memorizing.recall import load_memorized

    params, folder = context.params, context.folder
    record, *sets = (name for name in context.step.inputs if not name.endswith(".safetensors"))
    record_file, *files = context.step.outputs
    learned = read_artifact(folder / record)
    memory = load_memorized(learned.folder, context.runtime.model.device)
    seconds, question_count = 0.0, 0
    for name, file in zip(sets, files, strict=True):
        statements = read_table(STATEMENTS, folder / name)
        started = time.perf_counter()
        if statements.num_rows:
            tasks = "/".join(sorted(set(statements["task"].to_pylist())))
            recalls = memory.recall(statements, context.progress, f"{params.name}: {tasks}")
        else:
            recalls = make_table(RECALLS, [])
        seconds, question_count = seconds + time.perf_counter() - started, question_count + statements.num_rows
        write_table(RECALLS, recalls, folder / file)
    write_json(
        folder / record_file,
        {
            "name": params.name,
            "kind": "masked",
            "source": context.runtime.source,
            "fingerprint": learned.fingerprint,
            "probe": PROBE,
            "parameters": learned.record.get("parameters"),
            "questions": question_count,
            "seconds": round(seconds, 3),
            "questions_per_second": round(question_count / seconds, 2) if seconds else 0.0,
            "learned": dict(learned.record),
        },
    )


class RecallReader:
    """Reader of the statements and recalls of a run; each file of statements is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.statements = cache(lambda name: read_table(STATEMENTS, folder / name))
        self.symbols = cache(lambda: read_table(SYMBOLS, folder / SYMBOLS_FILE))

    def parts(self, parts: Sequence[RecallPart]) -> Iterator[tuple[RecallPart, pa.Table, pa.Table]]:
        """Yield each part with its statements and recalls; skip parts without statements."""
        for part in parts:
            asked = self.statements(part.asked)
            if asked.num_rows:
                yield part, asked, self.recalls(part, asked)

    def recalls(self, part: RecallPart, asked: pa.Table) -> pa.Table:
        """Return the recalls of a part; those of a baseline are computed from what was stored."""
        if part.recalls:
            return read_table(RECALLS, self.folder / part.recalls)
        return frequency_recalls(self.statements(part.stored), asked, self.symbols())


def write_recall_scores(context: StepContext[RecallScoreParams, Nothing]) -> None:
    """Score the recalls of all statements; write scores.parquet and scores.json.

    Recalls of conditions that are no longer in the study are removed.
    """
    params = context.params
    for file in (context.folder / "recalls").glob("*.parquet"):
        if f"recalls/{file.name}" not in context.step.inputs:
            file.unlink()
    rows: list[dict[str, Any]] = []
    for part, asked, recalls in RecallReader(context.folder).parts(
        [*params.recalled.parts, *params.recalled.baselines]
    ):
        rows += score_recalls(
            asked,
            recalls,
            suite=params.suite,
            model=part.model,
            seed=params.seed,
            probe=PROBE,
            method=METHOD,
        )
    table = make_table(SCORES, [row for row in rows if row["metric"] in params.metrics])
    write_table(SCORES, table, context.folder / "scores.parquet")
    write_json(context.folder / "scores.json", score_objects(table))


def write_recall_analyses(context: StepContext[RecallAnalysisParams, Nothing]) -> None:
    """Write analyses.json: the analyses of the experiment and of the training noise."""
    params, reader = context.params, RecallReader(context.folder)
    by_model: dict[str, list[RecallPart]] = {}
    for part in params.recalled.parts:
        if reader.statements(part.asked).num_rows:
            by_model.setdefault(part.model, []).append(part)
    memory_input = MemoryInput(
        params.experiment,
        tuple(
            MemorizedModel(
                name,
                parts[0].base,
                parts[0].about,
                read_artifact(context.folder / str(parts[0].learned)).record,
                _RecallsByTask(reader, {part.task: part for part in parts}),
            )
            for name, parts in by_model.items()
        ),
        read_table(SCORES, context.folder / "scores.parquet").to_pylist(),
        params.seed,
        reader.symbols(),
    )
    analyses = [*run_memory_analyses(memory_input, params.analyses)]
    all_parts = [*params.recalled.parts, *params.recalled.repeated]
    repeated = trainings(_repeated_trainings(reader, all_parts, memory_input.metrics))
    analyses += [repeated] if repeated is not None else []
    write_json(context.folder / "analyses.json", [analysis.as_json() for analysis in analyses])


def _repeated_trainings(
    reader: RecallReader, parts: Sequence[RecallPart], metrics: Sequence[str]
) -> list[TrainingScores]:
    """Collect the scores of each model and task that was trained several times, in the order of trainings."""
    parts_by_task: dict[tuple[str, str], list[RecallPart]] = {}
    for part in parts:
        if reader.statements(part.asked).num_rows:
            parts_by_task.setdefault((part.model, part.task), []).append(part)
    trained = []
    for (model, task), task_parts in parts_by_task.items():
        if len(task_parts) < 2:
            continue
        tables = [reader.recalls(part, reader.statements(part.asked)) for part in task_parts]
        scores = {metric: tuple(float(recall_values(table, metric).mean()) for table in tables) for metric in metrics}
        trained.append(TrainingScores(model, task_parts[0].base, task_parts[0].about, task, scores))
    return trained


class _RecallsByTask(Mapping[str, tuple[pa.Table, pa.Table]]):
    """Statements and recalls by task of one model, read on access."""

    def __init__(self, reader: RecallReader, parts: Mapping[str, RecallPart]) -> None:
        self.reader, self.parts = reader, parts

    def __getitem__(self, task: str) -> tuple[pa.Table, pa.Table]:
        part = self.parts[task]
        asked = self.reader.statements(part.asked)
        return asked, self.reader.recalls(part, asked)

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def write_recall_record(context: StepContext[RecallRecordParams, RecordRuntime]) -> None:
    """Write run.json: the usual record with counts of all statements, the size of the sample and the recall parts."""
    params, folder = context.params, context.folder
    sets = {part.asked: part.task for part in params.recalled.parts}
    ids: dict[str, set[str]] = {}
    facts: set[str] = set()
    for name, task in sets.items():
        table = read_table(STATEMENTS, folder / name)
        ids.setdefault(task, set()).update(table["statement_id"].to_pylist())
        facts.update(pc.unique(table["fact_id"]).drop_null().to_pylist())
    asked = {
        "count": sum(map(len, ids.values())),
        "by_task": {task: len(task_ids) for task, task_ids in sorted(ids.items()) if task_ids},
        "facts": len(facts),
        "knowledge": read_json(folder / ABOUT_FACTS)["facts"],
        "digest": digest([file_digest(folder / name) for name in sets]),
    }
    base = {part.model: part.base for part in [*params.recalled.parts, *params.recalled.baselines]}
    models = [read_json(folder / name) for name in context.step.inputs if name.startswith(".merkhet/recalls/")]
    names = dict.fromkeys(part.model for part in params.recalled.baselines)
    models += [{"name": name, "kind": "baseline", "source": "merkhet"} for name in names]
    models = [{**model, "base": base[model["name"]]} for model in models]
    content = make_record(params, context.runtime, asked, models)
    content["sampled"] = {
        "questions": read_json(folder / "about.json")["sampled"],
        "of": asked["count"],
        "all": "recalls",
    }
    content["recalls"] = [part.as_json() for part in params.recalled.parts]
    write_json(folder / "run.json", content)
