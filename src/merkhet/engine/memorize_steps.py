"""The steps of a run in which models memorize: store statements, recall them, score what was recalled, tell of it."""

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
from merkhet.engine.record_step import RecordParams, RecordRuntime, run_record
from merkhet.engine.run_files import ABOUT_FACTS, SYMBOLS_FILE, read_json
from merkhet.engine.score_step import score_objects
from merkhet.metrics.recall_scores import frequency_recalls, recall_values, score_recalls
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import missing_models_extra
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
    """What conditions differ in: facts, conflict, static, dynamic."""
    recalls: str | None = None
    """File of what was recalled; None for the baseline, which is computed from what was stored."""
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
    """What a model memorizes, and how."""

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
    """Where the model is, and how processes share the work."""

    processes: Mapping[str, Any]


@dataclass(frozen=True)
class RecallParams:
    """The model that is asked."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class RecallParts:
    """Everything that was recalled in a run."""

    parts: tuple[RecallPart, ...]
    baselines: tuple[RecallPart, ...]
    further: tuple[RecallPart, ...] = ()
    """Parts of further trainings with other seeds."""


@dataclass(frozen=True)
class RecallScoreParams:
    """What is scored by which metrics."""

    suite: str
    seed: int
    metrics: tuple[str, ...]
    recalled: RecallParts


@dataclass(frozen=True)
class RecallAnalysisParams:
    """The analyses of an experiment."""

    experiment: str
    seed: int
    recalled: RecallParts
    analyses: tuple[MemoryAnalysis, ...]


@dataclass(frozen=True)
class RecallRecordParams(RecordParams):
    """What run.json says of a memorizing study."""

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
    try:
        from merkhet.training.memorizing.memorize import store_statements
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise
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
    for line in (_ended(learned.record), *(learned.record.get("remarks") or ())):
        context.progress.say(f"  {params.name}: {line}")
    logger.info("%s has memorized: %s", params.name, dict(learned.record))


def _ended(record: Mapping[str, Any]) -> str:
    """How the training of a model went, in a line."""
    shares = [entry["acc@1"] for entry in record.get("curve") or () if entry.get("acc@1") is not None]
    known = f"{100 * shares[-1]:.1f}% of the statements known by heart" if shares else "not asked yet"
    return f"{known} after {record['epochs']:,} epochs ({record['statements_per_second']:,.0f} statements/s)"


def recall(context: StepContext[RecallParams, ModelRuntime]) -> None:
    """Ask what was memorized the statements of each set; write how it ranked the symbols, and what is known of it."""
    from merkhet.training.memorizing.recall import load_memorized

    params, folder = context.params, context.folder
    record, *sets = (name for name in context.step.inputs if not name.endswith(".safetensors"))
    about_file, *files = context.step.outputs
    learned = read_artifact(folder / record)
    memory = load_memorized(learned.folder, context.runtime.model.device)
    seconds, asked = 0.0, 0
    for name, file in zip(sets, files, strict=True):
        statements = read_table(STATEMENTS, folder / name)
        started = time.perf_counter()
        if statements.num_rows:
            tasks = "/".join(sorted(set(statements["task"].to_pylist())))
            found = memory.recall(statements, context.progress, f"{params.name}: {tasks}")
        else:
            found = make_table(RECALLS, [])
        seconds, asked = seconds + time.perf_counter() - started, asked + statements.num_rows
        write_table(RECALLS, found, folder / file)
    write_json(
        folder / about_file,
        {
            "name": params.name,
            "kind": "masked",
            "source": context.runtime.source,
            "fingerprint": learned.fingerprint,
            "probe": PROBE,
            "parameters": learned.record.get("parameters"),
            "questions": asked,
            "seconds": round(seconds, 3),
            "questions_per_second": round(asked / seconds, 2) if seconds else 0.0,
            "learned": dict(learned.record),
        },
    )


class RecallReader:
    """What a run recalled: its parts with their statements and recalls, each file read once.

    A part says which model was asked which set under which condition; parts of the baseline have no file of recalls,
    and are worked out from what was stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.statements = cache(lambda name: read_table(STATEMENTS, folder / name))
        self.symbols = cache(lambda: read_table(SYMBOLS, folder / SYMBOLS_FILE))

    def parts(self, parts: Sequence[RecallPart]) -> Iterator[tuple[RecallPart, pa.Table, pa.Table]]:
        """Each part with what it was asked and what was recalled; one that was asked nothing is left out."""
        for part in parts:
            asked = self.statements(part.asked)
            if asked.num_rows:
                yield part, asked, self.recalls(part, asked)

    def recalls(self, part: RecallPart, asked: pa.Table) -> pa.Table:
        """What was recalled of the asked statements of a part."""
        if part.recalls:
            return read_table(RECALLS, self.folder / part.recalls)
        return frequency_recalls(self.statements(part.stored), asked, self.symbols())


def write_recall_scores(context: StepContext[RecallScoreParams, Nothing]) -> None:
    """Score what was recalled of all statements; write scores.parquet and scores.json.

    Recalls of conditions that the study had before and has no more are removed.
    """
    params = context.params
    for file in (context.folder / "recalls").glob("*.parquet"):
        if f"recalls/{file.name}" not in context.step.inputs:
            file.unlink()
    rows: list[dict[str, Any]] = []
    for part, asked, found in RecallReader(context.folder).parts([*params.recalled.parts, *params.recalled.baselines]):
        rows += score_recalls(
            asked,
            found,
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
    """Write analyses.json: what the analyses of the experiment find in what was recalled."""
    params, recalled = context.params, RecallReader(context.folder)
    by_model: dict[str, list[RecallPart]] = {}
    for part in params.recalled.parts:
        if recalled.statements(part.asked).num_rows:
            by_model.setdefault(part.model, []).append(part)
    given = MemoryInput(
        params.experiment,
        tuple(
            MemorizedModel(
                name,
                parts[0].base,
                parts[0].about,
                read_artifact(context.folder / str(parts[0].learned)).record,
                _Asked(recalled, {part.task: part for part in parts}),
            )
            for name, parts in by_model.items()
        ),
        read_table(SCORES, context.folder / "scores.parquet").to_pylist(),
        params.seed,
        recalled.symbols(),
    )
    found = [*run_memory_analyses(given, params.analyses)]
    every = [*params.recalled.parts, *params.recalled.further]
    repeated = trainings(_trained(recalled, every, given.metrics))
    found += [repeated] if repeated is not None else []
    write_json(context.folder / "analyses.json", [one.as_json() for one in found])


def _trained(recalled: RecallReader, parts: Sequence[RecallPart], metrics: Sequence[str]) -> list[TrainingScores]:
    """The scores of each model and task by training, trainings in their order."""
    together: dict[tuple[str, str], list[RecallPart]] = {}
    for part in parts:
        if recalled.statements(part.asked).num_rows:
            together.setdefault((part.model, part.task), []).append(part)
    found = []
    for (model, task), own in together.items():
        if len(own) < 2:
            continue
        tables = [recalled.recalls(part, recalled.statements(part.asked)) for part in own]
        scores = {metric: tuple(float(recall_values(table, metric).mean()) for table in tables) for metric in metrics}
        found.append(TrainingScores(model, own[0].base, own[0].about, task, scores))
    return found


class _Asked(Mapping[str, tuple[pa.Table, pa.Table]]):
    """The statements and recalls of each task that a model was asked, read when they are looked at."""

    def __init__(self, recalled: RecallReader, parts: Mapping[str, RecallPart]) -> None:
        self.recalled, self.parts = recalled, parts

    def __getitem__(self, task: str) -> tuple[pa.Table, pa.Table]:
        part = self.parts[task]
        asked = self.recalled.statements(part.asked)
        return asked, self.recalled.recalls(part, asked)

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def write_recall_record(context: StepContext[RecallRecordParams, RecordRuntime]) -> None:
    """Write run.json: as of any run, with all statements counted, and what the questions are a sample of."""
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
        "by_task": {task: len(found) for task, found in sorted(ids.items()) if found},
        "facts": len(facts),
        "knowledge": read_json(folder / ABOUT_FACTS)["facts"],
        "digest": digest([file_digest(folder / name) for name in sets]),
    }
    base = {part.model: part.base for part in [*params.recalled.parts, *params.recalled.baselines]}
    models = [read_json(folder / name) for name in context.step.inputs if name.startswith(".merkhet/recalls/")]
    names = dict.fromkeys(part.model for part in params.recalled.baselines)
    models += [{"name": name, "kind": "baseline", "source": "merkhet"} for name in names]
    models = [{**model, "base": base[model["name"]]} for model in models]
    content = run_record(params, context.runtime, asked, models)
    content["sampled"] = {
        "questions": read_json(folder / "about.json")["sampled"],
        "of": asked["count"],
        "all": "recalls",
    }
    content["recalls"] = [part.as_json() for part in params.recalled.parts]
    write_json(folder / "run.json", content)
