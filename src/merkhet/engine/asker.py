"""A loaded model with the probe that it is asked by: what asks a block of questions, in this process or on a worker."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.errors import MerkhetError
from merkhet.core.records import Answer, Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.engine.plan import Step
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, ResolvedModel, resolve_model
from merkhet.models.placeholders import with_letters
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.probes.probe_support import Probe, with_options
from merkhet.training.artifact import Learned

logger = logging.getLogger("merkhet.engine")


@dataclass(frozen=True)
class AskJob:
    """What is asked of a model: the step, the folders it is about, and the questions that are shown as examples.

    Holds nothing that could not travel to another process.
    """

    step: Step
    folder: Path
    home: Path
    examples: tuple[Question, ...] = ()
    learned: Learned | None = None

    def probe(self) -> Probe:
        """The probe of the step, with its options, and with the examples that it shows if it is to show some."""
        probe: Probe = PROBES.get(self.step.params["probe"], self.home)
        options = dict(self.step.params.get("options") or {})
        if self.examples:
            options["examples"] = list(self.examples)
        return with_options(probe, options)

    def resolved(self) -> ResolvedModel:
        """The model of the step, with the very weights that it was planned with, or that were learned."""
        params, learned = self.step.params, self.learned
        spec = ModelSpec(**self.step.aside["model"])
        if learned is None:
            if params.get("soft"):
                spec = dataclasses.replace(spec, label=params["name"])
            resolved = resolve_model(spec, self.home)
            if resolved.fingerprint != params["fingerprint"]:
                raise MerkhetError(
                    f"the weights of {resolved.name} have changed since this run was planned; start it again"
                )
            return resolved
        name, kind = params["name"], params["kind"]
        own = dataclasses.replace(spec, model=str(learned.folder), label=name, kind=kind, revision=None)
        resolved = resolve_model(own)
        if resolve_model(own.read_as_usual).fingerprint != learned.fingerprint:
            raise MerkhetError(f"{learned.folder} is not what {name} has learned. Remove that folder, and start again.")
        return resolved


@dataclass
class Effort:
    """What is known of a model that was asked, and how long it took; for the record of a run."""

    described: Mapping[str, Any] = field(default_factory=dict)
    loading: float = 0.0
    asking: float = 0.0
    asked: int = 0
    work: dict[str, int] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> dict[str, Any]:
        """The same as a record has it."""
        rate = round(self.asked / self.asking, 2) if self.asking else 0.0
        times = {"loading_seconds": round(self.loading, 3), "seconds": round(self.asking, 3)}
        return {**self.described, **times, "questions_per_second": rate, **self.work, **self.more}


def put_together(efforts: Sequence[Effort], **more: Any) -> Effort:
    """The efforts of several processes as one: times and counts added up, of the rest what the first one says."""
    whole = Effort(more=more)
    for effort in efforts:
        whole.described = whole.described or effort.described
        whole.loading += effort.loading
        whole.asking += effort.asking
        whole.asked += effort.asked
        for key, value in effort.work.items():
            whole.work[key] = whole.work.get(key, 0) + value
        whole.more = {**effort.more, **whole.more}
    return whole


class Asker:
    """A loaded model with a probe. ``asked`` is told of each question that has an answer."""

    def __init__(self, job: AskJob, resolved: ResolvedModel, asked: Callable[[int], None] = lambda count: None) -> None:
        self.params = job.step.params
        self.probe = job.probe()
        self.asked = asked
        started = time.perf_counter()
        self.model: Model = self._dressed(load_model(resolved), job.folder)
        self.effort = Effort(self.model.describe(), time.perf_counter() - started)
        logger.info("%s loaded in %.1f s: %s", resolved.name, self.effort.loading, self.effort.described)

    def _dressed(self, model: Model, folder: Path) -> Model:
        """The model with the soft prompts and pseudowords of the step, where it has an embedding to give them to."""
        soft, pseudo = self.params.get("soft"), self.params.get("pseudowords")
        self.letters = bool(pseudo)
        if model.kind not in ("masked", "causal") or not (soft or pseudo):
            return model
        from merkhet.models.causal import CausalModel
        from merkhet.models.extra_embeddings import with_words
        from merkhet.models.masked import MaskedModel
        from merkhet.models.pseudowords import PseudowordSettings, WithPseudowords
        from merkhet.training.soft_prompts import soft_words_for

        if not isinstance(model, MaskedModel | CausalModel):
            return model  # A user's own, without an embedding that is known here.
        words = {}
        for file in soft or ():
            words.update(soft_words_for(model, folder / file))
        if pseudo and self.params["probe"] == "rank":
            self.letters = False
            return WithPseudowords(model, PseudowordSettings(**pseudo), words)
        return with_words(model, words) if words else model

    def ask(self, block: Sequence[Question]) -> pa.Table:
        """The answers to a block, in its order; refuses a probe that leaves a question without an answer."""
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
                self.asked(1)
        answers.sort(key=lambda answer: place[answer.question_id])
        self.effort.asking += time.perf_counter() - started
        self.effort.asked += len(block)
        self.effort.described = self.model.describe()
        self.effort.work = dict(getattr(self.model, "work", {}))
        missing = place.keys() - seen
        if missing:
            raise MerkhetError(f"the probe {self.params['probe']} gave no answer to {len(missing)} questions")
        return make_table(ANSWERS, [answer.as_row() for answer in answers])
