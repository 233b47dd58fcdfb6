"""The step that asks: questions in blocks, each block's answers on disk before the next is asked."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gnomon.foundation import GnomonError, write_json
from gnomon.foundation.records import Answer, Question
from gnomon.foundation.tables import ANSWERS, make_table, write_table
from gnomon.learning import Learned, read_learned
from gnomon.models import Model, ModelSpec, NeedsAllQuestions, ResolvedModel, load_model, resolve_model
from gnomon.models.marks import with_letters
from gnomon.probes import PROBES, Probe, with_options
from gnomon.questions import QuestionSet, read_questions
from gnomon.runs.plan import StepContext

logger = logging.getLogger("gnomon.runs")

TRAINING = "training.parquet"
SMALLEST_BLOCK = 32
SMALLEST_BLOCK_OF_SENSES = 128
SMALLEST_BLOCK_OF_CHAT = 4096
"""An endpoint's replies are kept one by one; between blocks it would wait for the slowest of them."""
MOST_BLOCKS = 256


def ask(context: StepContext) -> None:
    """Ask one model the questions of the run by one probe: all, or those of some tasks and kinds of templates.

    A model that the run itself has tuned is named by its record (``learned``), an input of this step; so are soft
    prompts that it has learned (``soft``). Where the run is ``divided``, questions that compare senses are asked by a
    probe that does so, and no others are. Blocks and the order within them depend on the questions alone, so a resumed
    run computes what an undisturbed one would have. The model is loaded only if a block is without answers.
    """
    params = context.params
    found = read_questions(context.folder)
    every = sorted(found.as_questions(), key=lambda q: (len(q.prompt), q.question_id))
    probe = _probe(context)
    questions = [question for question in every if is_asked(question, params.get("tasks"), params.get("kinds"))]
    compares = getattr(probe, "compares", False)
    if params.get("divided"):
        questions = [question for question in questions if bool(question.words) == compares]
    learned = read_learned(context.folder / params["learned"]) if params.get("learned") else None
    smallest = SMALLEST_BLOCK_OF_SENSES if compares else SMALLEST_BLOCK
    smallest = SMALLEST_BLOCK_OF_CHAT if params["kind"] == "chat" else smallest
    size = max(smallest, -(-len(questions) // MOST_BLOCKS))
    blocks = [questions[start : start + size] for start in range(0, len(questions), size)]
    label = params["name"]
    parts = [context.work / f"{number:05d}.parquet" for number in range(len(blocks))]
    asker: _Asker | None = None
    if not all(part.is_file() for part in parts):
        asker = _Asker(context, every, found.frequencies.to_pylist(), probe, learned)
    if questions:
        context.progress.start(label, len(questions), "questions")
    for block, part in zip(blocks, parts, strict=True):
        if asker and not part.is_file():
            asker.ask(block, part)
        else:
            context.progress.advance(label, len(block))
    if questions:
        context.progress.finish(label)
    answers_file, about_file = context.step.outputs
    _write_about(context, asker, len(questions), context.folder / about_file, learned)
    tables = [pq.read_table(part) for part in parts] or [make_table(ANSWERS, [])]
    write_table(ANSWERS, pa.concat_tables(tables), context.folder / answers_file)


def _probe(context: StepContext) -> Probe:
    """The probe of the step, with its options, and with the examples that it shows if it is to show some."""
    params = context.params
    probe: Probe = PROBES.get(params["probe"], context.home)
    options = dict(params.get("options") or {})
    if options.get("shots"):
        found = read_questions(context.folder / TRAINING)
        training = QuestionSet(found.questions.filter(pc.equal(found.questions["split"], "train")), found.candidates)
        options["examples"] = [one for one in training.as_questions() if is_asked(one, None, None)]
    return with_options(probe, options)


def is_asked(question: Question, tasks: Sequence[str] | None, kinds: Sequence[str] | None) -> bool:
    """Whether a question is of one of these tasks (if any is named) and of one of these kinds of templates.

    Where no kind is named, soft templates are left out: only a model that has learned them can read them.
    """
    if tasks and question.task not in tasks:
        return False
    kind = (question.template or "").partition("/")[2]
    return kind in kinds if kinds else "soft" not in kind.split("-")


class _Asker:
    """A loaded model with a probe."""

    def __init__(
        self,
        context: StepContext,
        questions: Sequence[Question],
        frequencies: list[dict[str, Any]],
        probe: Probe,
        learned: Learned | None,
    ) -> None:
        self.params = context.params
        self.progress = context.progress
        self.probe = probe
        resolved = _resolved(context, learned)
        if resolved.path is not None:
            context.progress.say(f"  {resolved.name}: loading")
        started = time.perf_counter()
        self.model: Model = self._dressed(load_model(resolved), context)
        self.loading = time.perf_counter() - started
        logger.info("%s loaded in %.1f s: %s", resolved.name, self.loading, self.model.describe())
        if isinstance(self.model, NeedsAllQuestions):
            self.model.prepare(questions, frequencies)
        self.asking = 0.0
        self.asked = 0

    def _dressed(self, model: Model, context: StepContext) -> Model:
        """The model with the soft prompts and pseudowords of the step, where it has an embedding to give them to."""
        soft, pseudo = self.params.get("soft"), self.params.get("pseudowords")
        self.letters = bool(pseudo)
        if model.kind not in ("masked", "causal") or not (soft or pseudo):
            return model
        from gnomon.learning.soft import soft_words_for
        from gnomon.models.causal import CausalModel
        from gnomon.models.made_words import with_words
        from gnomon.models.masked import MaskedModel
        from gnomon.models.pseudowords import PseudowordSettings, WithPseudowords

        if not isinstance(model, MaskedModel | CausalModel):
            return model  # A user's own, without an embedding that is known here.
        words = {}
        for file in soft or ():
            words.update(soft_words_for(model, context.folder / file))
        if pseudo and self.params["probe"] == "rank":
            self.letters = False
            return WithPseudowords(model, PseudowordSettings(**pseudo), words)
        return with_words(model, words) if words else model

    def ask(self, block: Sequence[Question], part: Path) -> None:
        """Ask a block and write its answers; refuses a probe that leaves a question without an answer."""
        place = {question.question_id: number for number, question in enumerate(block)}
        if self.letters:
            block = [dataclasses.replace(question, prompt=with_letters(question.prompt)) for question in block]
        started = time.perf_counter()
        answers: list[Answer] = []
        seen: set[str] = set()
        for answer in self.probe(self.model, block, self.params["methods"]):
            answers.append(answer)
            if answer.question_id not in seen:
                seen.add(answer.question_id)
                self.progress.advance(self.params["name"], 1)
        answers.sort(key=lambda answer: place[answer.question_id])
        self.asking += time.perf_counter() - started
        self.asked += len(block)
        missing = place.keys() - seen
        if missing:
            raise GnomonError(f"the probe {self.params['probe']} gave no answer to {len(missing)} questions")
        write_table(ANSWERS, make_table(ANSWERS, [answer.as_row() for answer in answers]), part)


def _resolved(context: StepContext, learned: Learned | None) -> ResolvedModel:
    """The model of the step, with the very weights that it was planned with, or that were learned."""
    spec = ModelSpec(**context.step.aside["model"])
    if learned is None:
        if context.params.get("soft"):
            spec = dataclasses.replace(spec, label=context.params["name"])
        resolved = resolve_model(spec, context.home)
        if resolved.fingerprint != context.params["fingerprint"]:
            raise GnomonError(f"the weights of {resolved.name} have changed since this run was planned; start it again")
        return resolved
    name, kind = context.params["name"], context.params["kind"]
    own = dataclasses.replace(spec, model=str(learned.folder), label=name, kind=kind, revision=None)
    resolved = resolve_model(own)
    if resolve_model(own.read_as_usual).fingerprint != learned.fingerprint:
        raise GnomonError(f"{learned.folder} is not what {name} has learned. Remove that folder, and start again.")
    return resolved


def _write_about(
    context: StepContext, asker: _Asker | None, count: int, file: Path, learned: Learned | None = None
) -> None:
    """What is known of the model, beside its answers; kept apart from the parts so that a resumed run has it too."""
    about: dict[str, Any] = {
        "name": context.params["name"],
        "kind": context.params["kind"],
        "source": context.step.aside["source"],
        "fingerprint": learned.fingerprint if learned else context.params["fingerprint"],
        "probe": context.params["probe"],
        "questions": count,
    }
    if learned:
        about["learned"] = dict(learned.record)
    if asker is not None:
        about |= asker.model.describe()
        about |= {"loading_seconds": round(asker.loading, 3), "seconds": round(asker.asking, 3)}
        about["questions_per_second"] = round(asker.asked / asker.asking, 2) if asker.asking else 0.0
        about |= getattr(asker.model, "work", {})
    write_json(file, about)
