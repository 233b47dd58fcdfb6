"""Steps that train a model on questions, or continue its pre-training on a corpus."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Question
from merkhet.core.text import counted
from merkhet.engine._ask_step import is_selected
from merkhet.engine.asker import ModelRuntime, planned_model
from merkhet.engine.plan import StepContext
from merkhet.models.loading import load_model
from merkhet.questions.question_files import TRAINING_FILE, QuestionSet, read_questions
from merkhet.training import LEARNERS
from merkhet.training.artifact import Learner
from merkhet.training.text_corpus import corpus_digest

logger = logging.getLogger("merkhet.engine")


@dataclass(frozen=True)
class WeightParams:
    """Parameters that all training steps share."""

    name: str
    """Name of the trained model in tables."""
    kind: str
    fingerprint: str
    dtype: str
    settings: Mapping[str, Any]
    """Settings of the learner that affect the result."""
    seed: int


@dataclass(frozen=True)
class TrainParams(WeightParams):
    """Parameters of the step that trains a model on questions."""

    task: str | None
    learner: str
    identity: str
    """Name of the learner; for a user-defined learner, with the hash of its file."""
    kinds: tuple[str, ...] = ()
    """Kinds of templates to train on; all kinds except soft templates if empty."""
    start: tuple[str, ...] = ()
    """Paths of the training records (``learned.json``) to start from."""


@dataclass(frozen=True)
class WeightRuntime(ModelRuntime):
    """Model of a training step, and training settings that do not affect the result."""

    processes: Mapping[str, Any]
    """Training settings that do not affect the result."""


@dataclass(frozen=True)
class PretrainParams(WeightParams):
    """Parameters of the step that continues pre-training."""

    corpus: str
    """Hash of the corpus."""


@dataclass(frozen=True)
class PretrainRuntime(WeightRuntime):
    """Model and corpus of continued pre-training, and settings that do not affect the result."""

    corpus: str
    """Path of the corpus."""


def learn(context: StepContext[TrainParams, ModelRuntime]) -> None:
    """Train a model on the training questions of a task, or of all tasks; dev questions decide when to stop.

    Training resumes from the last checkpoint if the learner supports checkpoints. The step's first output is the
    training record, learned.json; the weights are written to the same folder.
    """
    params = context.params
    question_set = read_questions(context.folder / TRAINING_FILE)
    training, dev = (_select_questions(question_set, split, params.task, params.kinds) for split in ("train", "dev"))
    if not training:
        of_task = f" of the task {params.task}" if params.task else ""
        raise InputError(f"there are no training questions{of_task} to tune {params.name} on; ask it without training")
    learner: Learner = LEARNERS.get(params.learner, context.home)
    resolved = planned_model(context.runtime.model, params.fingerprint, context.home)
    context.progress.say(f"  {params.name}: learning from {counted(len(training), 'question')}")
    model = load_model(resolved)
    extra: dict[str, Any] = {"start": [context.folder / file for file in params.start]} if params.start else {}
    if "checkpoints" in signature(learner).parameters:  # User-defined learners may lack this parameter.
        extra["checkpoints"] = context.work
    learned = learner(
        model,
        training,
        (context.folder / context.step.outputs[0]).parent,
        dev=dev,
        settings=params.settings,
        seed=params.seed,
        progress=context.progress,
        **extra,
    )
    logger.info("%s has learned: %s", params.name, dict(learned.record))


def pretrain(context: StepContext[PretrainParams, PretrainRuntime]) -> None:
    """Continue the pre-training of a masked model on a corpus, from the last checkpoint if there is one.

    The step's first output is the training record, learned.json; the model is written to the same folder.
    """
    from merkhet.training.pretraining import pretrain as train

    params, corpus = context.params, Path(context.runtime.corpus)
    resolved = planned_model(context.runtime.model, params.fingerprint, context.home)
    if corpus_digest(corpus) != params.corpus:
        raise MerkhetError(f"the corpus {corpus.name} has changed since this run was planned; start the run again")
    context.progress.say(
        f"  {params.name}: {counted(params.settings['steps'], 'step')} of pre-training on {corpus.name}"
    )
    learned = train(
        load_model(resolved),
        corpus,
        (context.folder / context.step.outputs[0]).parent,
        settings={**params.settings, **context.runtime.processes},
        seed=params.seed,
        progress=context.progress,
        checkpoints=context.work,
    )
    for remark in learned.record["remarks"]:
        context.progress.say(f"  {remark}")
    logger.info("%s has learned: %s", params.name, dict(learned.record))


def _select_questions(
    question_set: QuestionSet, split: str, task: str | None, kinds: Sequence[str] | None = None
) -> list[Question]:
    is_chosen = pc.equal(question_set.questions["split"], split)
    if task:
        is_chosen = pc.and_(is_chosen, pc.equal(question_set.questions["task"], task))
    subset = QuestionSet(question_set.questions.filter(is_chosen), question_set.candidates)
    return [question for question in subset.as_questions() if is_selected(question, None, kinds)]
