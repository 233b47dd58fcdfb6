"""Steps that train models to memorize statements, make questions of the statements, and ask the models."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.core.files import write_json
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import ANSWERS, CANDIDATES, candidate_set_id, make_table, read_table, write_table
from merkhet.core.text import counted
from merkhet.engine._run_collection import concat_distinct
from merkhet.engine.asker import ModelRuntime, planned_model
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, SYMBOLS_FILE, read_json
from merkhet.engine.training_steps import WeightParams, WeightRuntime
from merkhet.metrics.recalls import PROBE, frequency_recalls, recall_answers
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import require_models_extra
from merkhet.questions.question_files import QuestionSet, write_questions
from merkhet.questions.statements import label_symbols, statement_facts, statement_question_ids, statement_questions
from merkhet.training.artifact import read_artifact

logger = logging.getLogger("merkhet.engine")


@dataclass(frozen=True)
class StatementQuestionParams:
    """Parameters of the step that makes questions of statements."""

    suite: str


@dataclass(frozen=True)
class RecallParams:
    """Parameters of the step that asks a trained model, or the baseline, to recall statements."""

    name: str
    """Name of the model in tables."""
    base: str
    """Name of the model before training."""
    condition: Mapping[str, Any]
    """Label and settings of the training condition."""
    asked: tuple[str, ...]
    """Files of the statement sets that the model is asked to recall."""
    stored: str
    """File of the statement set that the model was trained on, or whose targets the baseline counts."""
    fingerprint: str = ""
    kind: str = "masked"
    probe: str = PROBE


def memorize_statements(context: StepContext[WeightParams, WeightRuntime]) -> None:
    """Train a model to memorize the statements of a set, from the last checkpoint if there is one.

    The step's first output is the training record, learned.json; the model is written to the same folder.
    """
    params = context.params
    symbols, statements = (
        read_table(kind, context.folder / name)
        for kind, name in zip((SYMBOLS, STATEMENTS), context.step.inputs, strict=True)
    )
    planned = planned_model(context.runtime.model, params.fingerprint, context.home)
    resolved = replace(planned, name=params.name)
    context.progress.say(f"  {params.name}: {counted(statements.num_rows, 'statement')} to memorize")
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
    return (
        f"{accuracy} after {counted(record['epochs'], 'epoch')} ({record['statements_per_second']:,.0f} statements/s)"
    )


def write_statement_questions(context: StepContext[StatementQuestionParams, Nothing]) -> None:
    """Write the questions of all statement sets, and the facts that the statements come from."""
    folder, suite = context.folder, context.params.suite
    symbols = label_symbols(read_table(SYMBOLS, folder / SYMBOLS_FILE))
    labels = sorted(symbols["label"].to_pylist())
    candidate_set = candidate_set_id("symbols", labels)
    sets = [name for name in context.step.inputs if name.startswith(".merkhet/sets/")]
    questions = [
        statement_questions(read_table(STATEMENTS, folder / name), symbols, suite=suite, candidate_set=candidate_set)
        for name in sets
    ]
    remarks = [remark for file in (ABOUT_FACTS, ABOUT_SETS) for remark in read_json(folder / file)["remarks"]]
    question_set = QuestionSet(
        concat_distinct(questions, "question_id"),
        make_table(CANDIDATES, [{"candidate_set": candidate_set, "candidates": labels}]),
        statement_facts(pq.read_table(folder / FACTS_FILE)),
        about={"remarks": remarks},
    )
    write_questions(question_set, folder)


def recall(context: StepContext[RecallParams, ModelRuntime]) -> None:
    """Ask a trained model to recall the statements of each set, and write its answers and its record."""
    from merkhet.training.memorizing.recall import load_memorized

    params, folder = context.params, context.folder
    learned = read_artifact(folder / next(name for name in context.step.inputs if name.endswith("learned.json")))
    memory = load_memorized(learned.folder, context.runtime.model.device)
    seconds = 0.0

    def ask(statements: pa.Table) -> pa.Table:
        nonlocal seconds
        started = time.perf_counter()
        tasks = "/".join(sorted(set(statements["task"].to_pylist())))
        recalls = memory.recall(statements, context.progress, f"{params.name}: {tasks}")
        seconds += time.perf_counter() - started
        return recalls

    count = _write_answers(context, ask)
    record = {
        "source": context.runtime.source,
        "fingerprint": learned.fingerprint,
        "probe": PROBE,
        "parameters": learned.record.get("parameters"),
        "questions": count,
        "seconds": round(seconds, 3),
        "questions_per_second": round(count / seconds, 2) if seconds else 0.0,
        "learned": dict(learned.record),
    }
    _write_model_record(context, record)


def recall_by_frequency(context: StepContext[RecallParams, Nothing]) -> None:
    """Write the answers and the record of the frequency baseline.

    The baseline knows only how often each symbol is masked in statements of facts that no question asks about.
    """
    stored = read_table(STATEMENTS, context.folder / context.params.stored)
    symbols = read_table(SYMBOLS, context.folder / SYMBOLS_FILE)
    _write_answers(context, lambda statements: frequency_recalls(stored, statements, symbols))
    _write_model_record(context, {"source": "merkhet"})


def _write_answers(context: StepContext[RecallParams, Any], ask: Callable[[pa.Table], pa.Table]) -> int:
    """Call ``ask`` for each statement set, write all answers to the step's first output, and return their number."""
    params, folder = context.params, context.folder
    symbols = label_symbols(read_table(SYMBOLS, folder / SYMBOLS_FILE))
    parts = [ANSWERS.schema.empty_table()]
    for name in params.asked:
        statements = read_table(STATEMENTS, folder / name)
        if statements.num_rows:
            ids = statement_question_ids(statements)
            parts.append(recall_answers(statements, ask(statements), ids, symbols, params.name))
    answers = pa.concat_tables(parts)
    write_table(ANSWERS, answers, folder / context.step.outputs[0])
    return int(answers.num_rows)


def _write_model_record(context: StepContext[RecallParams, Any], record: Mapping[str, Any]) -> None:
    params = context.params
    head = {"name": params.name, "kind": params.kind}
    end = {"base": params.base, "condition": dict(params.condition)}
    write_json(context.folder / context.step.outputs[1], {**head, **record, **end})
