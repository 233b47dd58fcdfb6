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

from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import MerkhetError
from merkhet.core.records import Answer, Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, ResolvedModel, resolve_model
from merkhet.models.placeholders import PseudowordSettings, replace_pseudowords
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.probes.probe_support import Probe, bind_options
from merkhet.training.artifact import TrainingArtifact

logger = logging.getLogger("merkhet.engine")


@dataclass(frozen=True)
class AskParams:
    """What is asked of which model."""

    name: str
    """Name of the model in tables."""
    kind: str
    """Kind of the model."""
    fingerprint: str
    """Hash of the model's weights before any training of this run."""
    dtype: str
    probe: str
    identity: str
    """Name of the probe, with the hash of its file where it is a user's own."""
    methods: tuple[str, ...] = ()
    """Methods of the probe; the model's usual one if empty."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the probe, as the study has them."""
    divided: bool = False
    """Whether only questions of the probe's own form are asked: senses to ``compare``, all others to other probes."""
    tasks: tuple[str, ...] = ()
    """Tasks to ask; all if empty."""
    kinds: tuple[str, ...] = ()
    """Kinds of templates to ask; all that are not soft if empty."""
    soft: tuple[str, ...] = ()
    """Records of soft prompts that the model reads."""
    learned: str | None = None
    """Record of the training that made the model."""
    pseudowords: PseudowordSettings | None = None
    shard: tuple[int, int] | None = None
    """Number and count, where only one shard's share is asked."""


@dataclass(frozen=True)
class ModelRuntime:
    """Where a step finds its model."""

    model: ModelSpec
    source: str
    """Origin of the model without a path of this machine."""


@dataclass(frozen=True)
class AskRuntime(ModelRuntime):
    """Where a model is, and where it is asked."""

    engine: AskEngine | None = None


@dataclass(frozen=True)
class AskJob:
    """A model to ask, in a form that can be sent to another process."""

    params: AskParams
    model: ModelSpec
    folder: Path
    home: Path
    artifacts: tuple[str, ...] = ()
    """Records of trainings in the run's folder that the model needs."""
    examples: tuple[Question, ...] = ()
    """Questions shown as examples."""
    learned: TrainingArtifact | None = None

    def probe(self) -> Probe:
        """Return the probe with its options and examples."""
        probe: Probe = PROBES.get(self.params.probe, self.home)
        options = dict(self.params.options)
        if self.examples:
            options["examples"] = list(self.examples)
        return bind_options(probe, options)

    def resolved(self) -> ResolvedModel:
        """Return the model with the weights that it was planned with, or that were learned.

        Raises:
            MerkhetError: The weights have changed since.
        """
        params, learned, spec = self.params, self.learned, self.model
        if learned is None:
            if params.soft:
                spec = dataclasses.replace(spec, label=params.name)
            resolved = resolve_model(spec, self.home)
            if resolved.fingerprint != params.fingerprint:
                raise MerkhetError(
                    f"the weights of {resolved.name} have changed since this run was planned; start it again"
                )
            return resolved
        name, kind = params.name, params.kind
        own = dataclasses.replace(spec, model=str(learned.folder), label=name, kind=kind, revision=None)
        resolved = resolve_model(own)
        if resolve_model(own.with_default_reading).fingerprint != learned.fingerprint:
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
        self.params = job.params
        self.probe = job.probe()
        self.asked = asked
        started = time.perf_counter()
        self.model: Model = self._with_extra_words(load_model(resolved), job.folder)
        self.effort = Effort(self.model.describe(), time.perf_counter() - started)
        logger.info("%s loaded in %.1f s: %s", resolved.name, self.effort.loading, self.effort.described)

    def _with_extra_words(self, model: Model, folder: Path) -> Model:
        """Give the model the soft prompts and pseudowords of the step, if it has an embedding for them."""
        soft, pseudo = self.params.soft, self.params.pseudowords
        self.letters = bool(pseudo)
        if model.kind not in ("masked", "causal") or not (soft or pseudo):
            return model
        from merkhet.models.causal import CausalModel
        from merkhet.models.extra_embeddings import with_extra_words
        from merkhet.models.masked import MaskedModel
        from merkhet.models.pseudowords import PseudowordModel
        from merkhet.training.soft_prompts import load_soft_prompts

        if not isinstance(model, MaskedModel | CausalModel):
            return model  # A user's own, without an embedding that is known here.
        words = {}
        for file in soft:
            words.update(load_soft_prompts(model, folder / file))
        if pseudo and self.params.probe == "rank":
            self.letters = False
            return PseudowordModel(model, pseudo, words)
        return with_extra_words(model, words) if words else model

    def ask(self, block: Sequence[Question]) -> pa.Table:
        """The answers to a block, in its order; refuses a probe that leaves a question without an answer."""
        place = {question.question_id: number for number, question in enumerate(block)}
        if self.letters:
            block = [dataclasses.replace(question, prompt=replace_pseudowords(question.prompt)) for question in block]
        started = time.perf_counter()
        answers: list[Answer] = []
        seen: set[str] = set()
        for answer in self.probe(self.model, block, list(self.params.methods)):
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
            raise MerkhetError(f"the probe {self.params.probe} gave no answer to {len(missing)} questions")
        return make_table(ANSWERS, [answer.as_row() for answer in answers])
