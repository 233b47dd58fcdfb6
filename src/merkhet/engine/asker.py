"""A loaded model with its probe, which asks blocks of questions in this process or on a worker."""

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
    """Parameters of an asking step."""

    name: str
    """Name of the model in tables."""
    kind: str
    """Kind of the model."""
    fingerprint: str
    """Hash of the model's weights before any training of this run."""
    dtype: str
    probe: str
    identity: str
    """Name of the probe, with the hash of its file if it is user-defined."""
    methods: tuple[str, ...] = ()
    """Methods of the probe; the model's usual one if empty."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the probe, as written in the study."""
    matching_form_only: bool = False
    """Whether to ask only questions of the probe's form: word senses by ``compare``, all others by other probes."""
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
    """Number of the shard and count of shards, if the step asks only one shard."""


@dataclass(frozen=True)
class ModelRuntime:
    """Location of a step's model."""

    model: ModelSpec
    source: str
    """Origin of the model without a path of this machine."""


@dataclass(frozen=True)
class AskRuntime(ModelRuntime):
    """Location of a model, and the engine that asks it."""

    engine: AskEngine | None = None
    """Cluster that asks; None for this process."""


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
        """Return the model with its planned weights, or with those of its training.

        Raises:
            MerkhetError: The weights have changed since the run was planned or trained.
        """
        params, learned, spec = self.params, self.learned, self.model
        if learned is None:
            if params.soft:
                spec = dataclasses.replace(spec, label=params.name)
            return planned_model(spec, params.fingerprint, self.home)
        name, kind = params.name, params.kind
        trained = dataclasses.replace(spec, model=str(learned.folder), label=name, kind=kind, revision=None)
        resolved = resolve_model(trained)
        if resolve_model(trained.with_default_reading).fingerprint != learned.fingerprint:
            raise MerkhetError(
                f"{learned.folder} does not hold the trained weights of {name}; remove that folder and start the run "
                "again"
            )
        return resolved


def planned_model(spec: ModelSpec, fingerprint: str, home: Path) -> ResolvedModel:
    """Return a model with the weights that it was planned with.

    Raises:
        MerkhetError: The weights have changed since the run was planned.
    """
    resolved = resolve_model(spec, home)
    if resolved.fingerprint != fingerprint:
        raise MerkhetError(
            f"the weights of {resolved.name} have changed since this run was planned; start the run again"
        )
    return resolved


@dataclass
class AskStatistics:
    """Description of a model that was asked, with times and counts, for the record of a run."""

    description: Mapping[str, Any] = field(default_factory=dict)
    """The model's description of itself."""
    loading_seconds: float = 0.0
    asking_seconds: float = 0.0
    questions: int = 0
    """Number of questions asked."""
    counters: dict[str, int] = field(default_factory=dict)
    """The model's counters, such as the number of computed rows."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys of the record."""

    def as_record(self) -> dict[str, Any]:
        """Encode for the model's record."""
        rate = round(self.questions / self.asking_seconds, 2) if self.asking_seconds else 0.0
        times = {"loading_seconds": round(self.loading_seconds, 3), "seconds": round(self.asking_seconds, 3)}
        return {**self.description, **times, "questions_per_second": rate, **self.counters, **self.extra}


def merge_statistics(parts: Sequence[AskStatistics], **extra: Any) -> AskStatistics:
    """Merge the statistics of several processes: add up times and counts, take the rest from the first."""
    merged = AskStatistics(extra=extra)
    for part in parts:
        merged.description = merged.description or part.description
        merged.loading_seconds += part.loading_seconds
        merged.asking_seconds += part.asking_seconds
        merged.questions += part.questions
        for key, count in part.counters.items():
            merged.counters[key] = merged.counters.get(key, 0) + count
        merged.extra = {**part.extra, **merged.extra}
    return merged


class Asker:
    """A loaded model with a probe."""

    def __init__(
        self, job: AskJob, resolved: ResolvedModel, on_answer: Callable[[int], None] = lambda count: None
    ) -> None:
        """Load the model of a job.

        Args:
            on_answer: Called with 1 for each question that is answered.
        """
        self.params = job.params
        self.probe = job.probe()
        self.on_answer = on_answer
        started = time.perf_counter()
        self.model: Model = self._with_extra_words(load_model(resolved), job.folder)
        self.statistics = AskStatistics(self.model.describe(), time.perf_counter() - started)
        logger.info(
            "%s loaded in %.1f s: %s", resolved.name, self.statistics.loading_seconds, self.statistics.description
        )

    def _with_extra_words(self, model: Model, folder: Path) -> Model:
        """Add the step's soft prompts and pseudowords to a model that has an embedding for them."""
        soft, pseudo = self.params.soft, self.params.pseudowords
        self.spell_pseudowords = bool(pseudo)
        if model.kind not in ("masked", "causal") or not (soft or pseudo):
            return model
        from merkhet.models.causal import CausalModel
        from merkhet.models.extra_embeddings import with_extra_words
        from merkhet.models.masked import MaskedModel
        from merkhet.models.pseudowords import PseudowordModel
        from merkhet.training.soft_prompts import load_soft_prompts

        if not isinstance(model, MaskedModel | CausalModel):
            return model  # A user's model, whose embedding is not known.
        words = {}
        for file in soft:
            words.update(load_soft_prompts(model, folder / file))
        if pseudo and self.params.probe == "rank":
            self.spell_pseudowords = False
            return PseudowordModel(model, pseudo, words)
        return with_extra_words(model, words) if words else model

    def ask(self, block: Sequence[Question]) -> pa.Table:
        """Ask a block of questions.

        Returns:
            The answers, in the order of the block.

        Raises:
            MerkhetError: The probe gave no answer to a question.
        """
        position = {question.question_id: number for number, question in enumerate(block)}
        if self.spell_pseudowords:
            block = [dataclasses.replace(question, prompt=replace_pseudowords(question.prompt)) for question in block]
        started = time.perf_counter()
        answers: list[Answer] = []
        answered: set[str] = set()
        for answer in self.probe(self.model, block, list(self.params.methods)):
            answers.append(answer)
            if answer.question_id not in answered:
                answered.add(answer.question_id)
                self.on_answer(1)
        answers.sort(key=lambda answer: position[answer.question_id])
        self.statistics.asking_seconds += time.perf_counter() - started
        self.statistics.questions += len(block)
        self.statistics.description = self.model.describe()
        self.statistics.counters = dict(getattr(self.model, "work", {}))
        missing = position.keys() - answered
        if missing:
            raise MerkhetError(
                f"the probe {self.params.probe} gave no answer to {len(missing)} questions; "
                "it must return an answer, or the reason as unusable, for each question"
            )
        return make_table(ANSWERS, [answer.as_row() for answer in answers])
