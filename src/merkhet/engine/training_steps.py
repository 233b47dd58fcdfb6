"""The steps that change a model: it learns from questions of a task, or from a text, and is saved within the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Question
from merkhet.engine.ask_step import is_asked
from merkhet.engine.plan import StepContext
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, ResolvedModel, resolve_model
from merkhet.questions.question_files import TRAINING, QuestionSet, read_questions
from merkhet.training import LEARNERS
from merkhet.training.artifact import Learner
from merkhet.training.text_corpus import corpus_digest

logger = logging.getLogger("merkhet.engine")


def learn(context: StepContext) -> None:
    """Let a model learn from the training questions of a task (all, if none is named); those of dev say when to stop.

    ``kinds`` are the kinds of templates that are learned from (else all that are not soft), ``start`` records of
    what was learned before and is gone on from. The first output is the record, learned.json; what was learned lies
    beside it.
    """
    params = context.params
    found = read_questions(context.folder / TRAINING)
    training, dev = (_questions(found, split, params.get("task"), params.get("kinds")) for split in ("train", "dev"))
    if not training:
        of_task = f" of the task {params['task']}" if params.get("task") else ""
        raise InputError(f"there are no training questions{of_task} to tune {params['name']} on; ask it untuned")
    learner: Learner = LEARNERS.get(params["learner"], context.home)
    resolved = planned_model(context)
    context.progress.say(f"  {params['name']}: learning from {len(training)} questions")
    model = load_model(resolved)
    more = {"start": [context.folder / file for file in params["start"]]} if params.get("start") else {}
    learned = learner(
        model,
        training,
        (context.folder / context.step.outputs[0]).parent,
        dev=dev,
        settings=params.get("settings") or {},
        seed=params["seed"],
        progress=context.progress,
        **more,
    )
    logger.info("%s has learned: %s", params["name"], dict(learned.record))


def pretrain(context: StepContext) -> None:
    """Let a masked model go on with its pre-training on a corpus; killed, it goes on from its last checkpoint.

    The first output is the record, learned.json; the model lies beside it.
    """
    from merkhet.training.pretraining import pretrain as train

    params, corpus = context.params, Path(context.step.aside["corpus"])
    resolved = planned_model(context)
    if corpus_digest(corpus) != params["corpus"]:
        raise MerkhetError(f"the corpus {corpus.name} has changed since this run was planned; start it again")
    context.progress.say(f"  {params['name']}: {params['settings']['steps']} steps of pre-training on {corpus.name}")
    learned = train(
        load_model(resolved),
        corpus,
        (context.folder / context.step.outputs[0]).parent,
        settings={**params["settings"], **context.step.aside["together"]},
        seed=params["seed"],
        progress=context.progress,
        checkpoints=context.work,
    )
    for remark in learned.record["remarks"]:
        context.progress.say(f"  {remark}")
    logger.info("%s has learned: %s", params["name"], dict(learned.record))


def planned_model(context: StepContext) -> ResolvedModel:
    """The model of the step, with the very weights that it was planned with."""
    resolved = resolve_model(ModelSpec(**context.step.aside["model"]), context.home)
    if resolved.fingerprint != context.params["fingerprint"]:
        raise MerkhetError(f"the weights of {resolved.name} have changed since this run was planned; start it again")
    return resolved


def _questions(found: QuestionSet, split: str, task: str | None, kinds: Sequence[str] | None = None) -> list[Question]:
    chosen = pc.equal(found.questions["split"], split)
    if task:
        chosen = pc.and_(chosen, pc.equal(found.questions["task"], task))
    some = QuestionSet(found.questions.filter(chosen), found.candidates)
    return [question for question in some.as_questions() if is_asked(question, None, kinds)]
