"""The step that asks: questions in blocks, each block's answers on disk before the next is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.errors import InputError
from merkhet.core.files import write_json
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table, read_table, write_table
from merkhet.engine.asker import Asker, AskJob, AskParams, AskRuntime, Effort
from merkhet.engine.plan import StepContext
from merkhet.engine.run_files import read_json
from merkhet.models.model_lookup import CHAT_KIND, ResolvedModel
from merkhet.models.protocol import NeedsAllQuestions
from merkhet.probes import PROBES
from merkhet.questions.question_files import TRAINING_FILE, QuestionSet, read_questions
from merkhet.training.artifact import read_artifact

logger = logging.getLogger("merkhet.engine")

EFFORT = "effort.json"
"""What asking took, in the folder of unfinished work: where all answers are there already, no model is loaded."""
SMALLEST_BLOCK = 32
SMALLEST_BLOCK_OF_SENSES = 128
SMALLEST_BLOCK_OF_CHAT = 4096
"""An endpoint's replies are kept one by one; between blocks it would wait for the slowest of them."""
MOST_BLOCKS = 256


@dataclass(frozen=True)
class Asked:
    """The questions of a step: every one of the run, those that are asked, and these in blocks."""

    found: QuestionSet
    every: Sequence[Question]
    questions: Sequence[Question]
    blocks: Sequence[Sequence[Question]]

    def parts(self, work: Path) -> list[Path]:
        """Where the answers to each block are kept until all are there."""
        return [work / f"{number:05d}.parquet" for number in range(len(self.blocks))]


def ask(context: StepContext[AskParams, AskRuntime]) -> None:
    """Ask one model questions of the run by one probe, block by block.

    Blocks and the order within them depend on the questions alone, so that a resumed run, or one on many workers,
    computes what an undisturbed process would. The model is loaded only if a block has no answers yet.
    """
    params = context.params
    asked = asked_questions(context.folder, params, context.home)
    parts = asked.parts(context.work)
    job = _job(context)
    left = [number for number, part in enumerate(parts) if not _is_whole(part)]

    def begin() -> None:
        done = len(asked.questions) - sum(len(asked.blocks[number]) for number in left)
        context.progress.start(params.name, len(asked.questions), "questions")
        context.progress.advance(params.name, done)

    if left:
        effort = _ask_blocks(context, job, asked, left, begin)
        context.progress.finish(params.name)
        write_json(context.work / EFFORT, asdict(effort))
    answers_file, about_file = context.step.outputs
    _write_about(context, job, len(asked.questions), context.folder / about_file)
    tables = [pq.read_table(part) for part in parts] or [make_table(ANSWERS, [])]
    write_table(ANSWERS, pa.concat_tables(tables), context.folder / answers_file)


def asked_questions(folder: Path, params: AskParams, home: Path) -> Asked:
    """Select the questions that a step asks from those in a run's folder."""
    found = read_questions(folder)
    every = sorted(found.as_questions(), key=lambda q: (len(q.prompt), q.question_id))
    questions = [question for question in every if is_asked(question, params.tasks, params.kinds)]
    compares = getattr(PROBES.get(params.probe, home), "compares_senses", False)
    if params.divided:
        questions = [question for question in questions if bool(question.words) == compares]
    talks = params.kind == CHAT_KIND
    smallest = SMALLEST_BLOCK_OF_SENSES if compares else SMALLEST_BLOCK
    size = max(SMALLEST_BLOCK_OF_CHAT if talks else smallest, -(-len(questions) // MOST_BLOCKS))
    if params.shard:
        number, count = params.shard
        # Whole blocks are dealt, so that each is read as it would be in one process; endpoints read one by one.
        dealt = list(_in_blocks(questions, smallest if talks else size))
        questions = [question for block in dealt[number - 1 :: count] for question in block]
    return Asked(found, every, questions, list(_in_blocks(questions, size)))


def _is_whole(part: Path) -> bool:
    """Whether the answers to a block are there; those in a file that a power cut has damaged are asked for again."""
    if not part.is_file():
        return False
    try:
        read_table(ANSWERS, part)
    except InputError:
        logger.warning("%s, unfinished work, was damaged: its questions are asked again", part.name)
        return False
    return True


def _in_blocks(questions: Sequence[Question], size: int) -> Iterable[Sequence[Question]]:
    return (questions[start : start + size] for start in range(0, len(questions), size))


def is_asked(question: Question, tasks: Sequence[str] | None, kinds: Sequence[str] | None) -> bool:
    """Whether a question is of one of these tasks (if any is named) and of one of these kinds of templates.

    Where no kind is named, soft templates are left out: only a model that has learned them can read them.
    """
    if tasks and question.task not in tasks:
        return False
    kind = (question.template or "").partition("/")[2]
    return kind in kinds if kinds else "soft" not in kind.split("-")


def _job(context: StepContext[AskParams, AskRuntime]) -> AskJob:
    params = context.params
    examples: tuple[Question, ...] = ()
    if params.options.get("shots"):
        found = read_questions(context.folder / TRAINING_FILE)
        training = QuestionSet(found.questions.filter(pc.equal(found.questions["split"], "train")), found.candidates)
        examples = tuple(one for one in training.as_questions() if is_asked(one, None, None))
    learned = read_artifact(context.folder / params.learned) if params.learned else None
    artifacts = tuple(name for name in context.step.inputs if name.endswith("learned.json"))
    return AskJob(params, context.runtime.model, context.folder, context.home, artifacts, examples, learned)


def _ask_blocks(
    context: StepContext[AskParams, AskRuntime],
    job: AskJob,
    asked: Asked,
    left: Sequence[int],
    begin: Callable[[], None],
) -> Effort:
    """Ask the blocks that have no answers yet: on workers, where the step says so and the model can go there.

    ``begin`` is called when a model is loaded and the first of them can be asked.
    """
    resolved, engine = job.resolved(), context.runtime.engine
    if engine is not None:
        why_here = reason_to_stay_local(resolved)
        if why_here is None:
            from merkhet.engine.distribute._ray_asking import ask_on_ray

            return ask_on_ray(context, engine, job, asked, left, begin)
        logger.info("%s is asked by this process and not on Ray: %s", resolved.name, why_here)
        if resolved.kind not in ("baseline", "predictions"):
            context.progress.say(f"  {resolved.name}: asked from here, not on Ray: {why_here}")
    if resolved.path is not None:
        context.progress.say(f"  {resolved.name}: loading")
    asker = Asker(job, resolved, lambda count: context.progress.advance(context.params.name, count))
    if isinstance(asker.model, NeedsAllQuestions):
        asker.model.prepare(asked.every, asked.found.frequencies.to_pylist())
    begin()
    parts = asked.parts(context.work)
    for number in left:
        write_table(ANSWERS, asker.ask(asked.blocks[number]), parts[number])
    return asker.effort


def reason_to_stay_local(resolved: ResolvedModel) -> str | None:
    """Why a model cannot be asked on workers; None if it can.

    What a worker can find by itself goes there: files of a model, and a model that a user's module makes.
    """
    if resolved.path is not None:
        return None
    if resolved.kind == CHAT_KIND:
        return "an endpoint has one rate and one budget, whoever asks"
    if resolved.kind in ("baseline", "predictions") or isinstance(resolved.instance, NeedsAllQuestions):
        return "it needs all the questions, and no time"
    if ":" not in resolved.spec.model:
        return "it is an object of this process; give it as MODULE:FUNCTION to have it made by each worker"
    return None


def _write_about(context: StepContext[AskParams, AskRuntime], job: AskJob, count: int, file: Path) -> None:
    """What is known of the model, beside its answers."""
    learned, params = job.learned, context.params
    about: dict[str, Any] = {
        "name": params.name,
        "kind": params.kind,
        "source": context.runtime.source,
        "fingerprint": learned.fingerprint if learned else params.fingerprint,
        "probe": params.probe,
        "questions": count,
    }
    if learned:
        about["learned"] = dict(learned.record)
    if (context.work / EFFORT).is_file():
        effort = read_json(context.work / EFFORT)
        about |= Effort(**effort).lines()
        about |= {"effort": effort} if params.shard else {}
    write_json(file, about)
