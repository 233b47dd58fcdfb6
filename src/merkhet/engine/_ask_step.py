"""The step that asks a model in blocks of questions, and writes the answers to each block before the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.errors import InputError
from merkhet.core.files import write_json
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table, read_table, write_table
from merkhet.engine.asker import ASSOCIATION, SUBJECT_BLIND, Asker, AskJob, AskParams, AskRuntime, AskStatistics
from merkhet.engine.plan import StepContext
from merkhet.engine.run_files import read_json
from merkhet.engine.shared_tables import run_tables
from merkhet.models.model_lookup import CHAT_KIND, ResolvedModel
from merkhet.models.protocol import NeedsAllQuestions, NeedsPairs
from merkhet.probes import PROBES
from merkhet.questions.question_files import TRAINING_FILE, QuestionSet, read_questions
from merkhet.training.artifact import read_artifact

logger = logging.getLogger("merkhet.engine")

STATISTICS_FILE = "effort.json"
"""File of the asking statistics in the work folder. A resumed step reads it instead of loading the model."""
MIN_BLOCK = 32
MIN_SENSE_BLOCK = 128
MIN_CHAT_BLOCK = 4096
"""Minimum number of questions in a block for a chat endpoint.

Blocks are large because replies are cached one by one, and because each block waits for its slowest reply.
"""
MAX_BLOCKS = 256
MAX_BASELINE_BLOCKS = 16
"""Maximum number of blocks for a baseline, which answers a block faster than its file is written."""


@dataclass(frozen=True)
class QuestionBlocks:
    """The questions of an asking step, divided into blocks."""

    question_set: QuestionSet
    """All questions of the run, with their candidates, facts and other tables."""
    run_questions: Sequence[Question]
    """All questions of the run, sorted in the order of asking."""
    questions: Sequence[Question]
    """Questions that the step asks, in the order of asking."""
    blocks: Sequence[Sequence[Question]]
    """The questions of ``questions``, divided into blocks."""

    def parts(self, work: Path) -> list[Path]:
        """Return the path of each block's answer file in the folder ``work``."""
        return [work / f"{number:05d}.parquet" for number in range(len(self.blocks))]


def ask(context: StepContext[AskParams, AskRuntime]) -> None:
    """Ask one model with one probe, block by block.

    The blocks and their order depend only on the questions. A resumed or distributed run therefore gives the same
    answers as one uninterrupted process. The model is loaded only if some block has no answers yet.
    """
    params = context.params
    selection = select_questions(context.folder, params, context.home)
    parts = selection.parts(context.work)
    job = _make_job(context)
    missing = [number for number, part in enumerate(parts) if not _is_readable(part)]

    def on_start() -> None:
        done = len(selection.questions) - sum(len(selection.blocks[number]) for number in missing)
        context.progress.start(params.label, len(selection.questions), "questions")
        context.progress.advance(params.label, done)

    if missing:
        statistics = _ask_blocks(context, job, selection, missing, on_start)
        context.progress.finish(params.label)
        write_json(context.work / STATISTICS_FILE, asdict(statistics))
    answers_file, record_file = context.step.outputs
    _write_model_record(context, job, len(selection.questions), context.folder / record_file)
    tables = [pq.read_table(part) for part in parts] or [make_table(ANSWERS, [])]
    write_table(ANSWERS, pa.concat_tables(tables), context.folder / answers_file)


def select_questions(folder: Path, params: AskParams, home: Path) -> QuestionBlocks:
    """Select the questions of a run that a step asks, and divide them into blocks."""
    question_set = run_tables(folder).question_set
    run_questions = sorted(question_set.as_questions(), key=lambda q: (len(q.prompt), q.question_id))
    questions = [question for question in run_questions if is_selected(question, params.tasks, params.kinds)]
    if params.needs_counts:
        counted = set(question_set.frequencies["task"].to_pylist())
        questions = [question for question in questions if question.task in counted]
    compares_senses = getattr(PROBES.get(params.probe, home), "compares_senses", False)
    if params.matching_form_only:
        questions = [question for question in questions if bool(question.words) == compares_senses]
    is_blind = params.control == SUBJECT_BLIND
    if is_blind:
        questions = _hide_subjects(questions, question_set)
    min_block = MIN_SENSE_BLOCK if compares_senses else MIN_BLOCK
    is_chat = params.kind == CHAT_KIND
    max_blocks = MAX_BASELINE_BLOCKS if params.kind == "baseline" else MAX_BLOCKS
    size = max(MIN_CHAT_BLOCK if is_chat else min_block, -(-len(questions) // max_blocks))
    if params.shard:
        number, count = params.shard
        # A shard gets whole blocks, which keeps the batches of a single process. Endpoints and baselines have none.
        dealt_size = min_block if is_chat else max(min_block, -(-len(questions) // MAX_BLOCKS))
        dealt = list(_in_blocks(questions, dealt_size, whole=is_blind))
        questions = [question for block in dealt[number - 1 :: count] for question in block]
    return QuestionBlocks(question_set, run_questions, questions, list(_in_blocks(questions, size, whole=is_blind)))


def _hide_subjects(questions: Sequence[Question], question_set: QuestionSet) -> list[Question]:
    """Return the questions that have control prompts, with these prompts; equal prompts follow each other."""
    columns = (question_set.controls[name].to_pylist() for name in ("question_id", "control", "prompt"))
    prompts = {name: prompt for name, control, prompt in zip(*columns, strict=True) if control == SUBJECT_BLIND}
    known = (question for question in questions if question.question_id in prompts)
    hidden = [replace(question, prompt=prompts[question.question_id]) for question in known]
    return sorted(hidden, key=lambda question: (len(question.prompt), question.prompt, question.question_id))


def _is_readable(part: Path) -> bool:
    """Check whether the answer file of a block can be read; warn if the file is damaged."""
    if not part.is_file():
        return False
    try:
        read_table(ANSWERS, part)
    except InputError:
        logger.warning("%s (unfinished work) is damaged; its questions are asked again", part.name)
        return False
    return True


def _in_blocks(questions: Sequence[Question], size: int, *, whole: bool = False) -> Iterable[Sequence[Question]]:
    """Divide questions into blocks of ``size``.

    Args:
        whole: Whether to keep adjacent questions with the same prompt in one block, which may be larger.
    """
    start = 0
    while start < len(questions):
        stop = start + size
        while whole and stop < len(questions) and questions[stop].prompt == questions[stop - 1].prompt:
            stop += 1
        yield questions[start:stop]
        start = stop


def is_selected(question: Question, tasks: Sequence[str] | None, kinds: Sequence[str] | None) -> bool:
    """Check whether a question belongs to one of ``tasks`` and uses one of ``kinds`` of templates.

    Args:
        tasks: Tasks; every task if empty.
        kinds: Kinds of templates. If empty, every kind except soft templates, which only a model trained on them
            can read.
    """
    if tasks and question.task not in tasks:
        return False
    kind = (question.template or "").partition("/")[2]
    return kind in kinds if kinds else "soft" not in kind.split("-")


def _make_job(context: StepContext[AskParams, AskRuntime]) -> AskJob:
    params = context.params
    examples: tuple[Question, ...] = ()
    if params.options.get("shots"):
        training_set = read_questions(context.folder / TRAINING_FILE)
        training = QuestionSet(
            training_set.questions.filter(pc.equal(training_set.questions["split"], "train")), training_set.candidates
        )
        examples = tuple(question for question in training.as_questions() if is_selected(question, None, None))
    learned = read_artifact(context.folder / params.learned) if params.learned else None
    artifacts = tuple(name for name in context.step.inputs if name.endswith("learned.json"))
    return AskJob(params, context.runtime.model, context.folder, context.home, artifacts, examples, learned)


def _ask_blocks(
    context: StepContext[AskParams, AskRuntime],
    job: AskJob,
    selection: QuestionBlocks,
    missing: Sequence[int],
    on_start: Callable[[], None],
) -> AskStatistics:
    """Ask the blocks that have no answers yet, on Ray workers or in this process.

    Workers are used if the step has an engine and workers can load the model.

    Args:
        missing: Indices of the blocks without answers.
        on_start: Called when a model is loaded and the first block can be asked.
    """
    resolved, engine, params = job.resolved(), context.runtime.engine, context.params
    if engine is not None and params.control != ASSOCIATION:
        reason = reason_to_stay_local(resolved)
        if reason is None:
            from merkhet.engine.distribute._ray_asking import ask_on_ray

            return ask_on_ray(context, engine, job, selection, missing, on_start)
        logger.info("%s is asked in this process and not on Ray: %s", resolved.name, reason)
        if resolved.kind not in ("baseline", "predictions"):
            context.progress.say(f"  {resolved.name}: asked in this process, not on Ray: {reason}")
    if resolved.path is not None:
        context.progress.say(f"  {params.label}: loading")
    asker = Asker(job, resolved, lambda count: context.progress.advance(context.params.label, count))
    if isinstance(asker.model, NeedsAllQuestions):
        asker.model.prepare(selection.run_questions, selection.question_set.frequencies.to_pylist())
    if isinstance(asker.model, NeedsPairs):
        asker.model.prepare_pairs(selection.question_set.pairs.to_pylist())
    on_start()
    parts = selection.parts(context.work)
    for number in missing:
        write_table(ANSWERS, asker.ask(selection.blocks[number]), parts[number])
    return asker.statistics


def reason_to_stay_local(resolved: ResolvedModel) -> str | None:
    """Return why a model cannot be asked on workers; None if it can be asked there.

    A worker can load a model from files, or call a function of a user's module that creates the model.
    """
    if resolved.path is not None:
        return None
    if resolved.kind == CHAT_KIND:
        return "an endpoint has one rate limit and one budget for all processes"
    if resolved.kind in ("baseline", "predictions") or isinstance(resolved.instance, NeedsAllQuestions):
        return "it needs all questions at once, and takes almost no time"
    if ":" not in resolved.spec.model:
        return "it is an object of this process; name it as MODULE:FUNCTION, so that each worker can make it"
    return None


def _write_model_record(context: StepContext[AskParams, AskRuntime], job: AskJob, count: int, path: Path) -> None:
    """Write the model's record as JSON to ``path``: name, fingerprint, probe, number of questions and statistics."""
    learned, params = job.learned, context.params
    record: dict[str, Any] = {
        "name": params.name,
        "kind": params.kind,
        "source": context.runtime.source,
        "fingerprint": learned.fingerprint if learned else params.fingerprint,
        "probe": params.probe,
        "questions": count,
    }
    if learned:
        record["learned"] = dict(learned.record)
    if learned or params.soft:
        record["trained"] = True
    if (context.work / STATISTICS_FILE).is_file():
        statistics = read_json(context.work / STATISTICS_FILE)
        record |= AskStatistics(**statistics).as_record()
        record |= {"effort": statistics} if params.shard else {}
    write_json(path, record)
