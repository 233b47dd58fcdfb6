"""Asking of question blocks with a loaded model and a probe, in this process or on a worker."""

from __future__ import annotations

import dataclasses
import gc
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.answer_columns import make_answer_table
from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import MerkhetError
from merkhet.core.records import Answer, Question
from merkhet.core.text import counted
from merkhet.engine._shared_prompts import SHARING_PROBES, ask_once
from merkhet.models.association_baseline import AssociationBaseline
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, ResolvedModel, resolve_model
from merkhet.models.placeholders import PseudowordSettings, replace_pseudowords
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.probes.probe_support import Probe, bind_options
from merkhet.training.artifact import TrainingArtifact

logger = logging.getLogger("merkhet.engine")

_SECONDS_BETWEEN_REPORTS = 0.05
ASSOCIATION, SUBJECT_BLIND = "association", "subject-blind"
"""Controls: what the model's input embeddings get right, and what the model gets right if the subject is hidden."""
CONTROLS = (ASSOCIATION, SUBJECT_BLIND)


@dataclass(frozen=True)
class AskParams:
    """Parameters of an asking step."""

    name: str
    """Name of the model in tables."""
    kind: str
    """Kind of the model."""
    fingerprint: str
    """Hash of the model's weights before this run trains them."""
    dtype: str
    probe: str
    identity: str
    """Name of the probe; for a user-defined probe, with the hash of its file."""
    methods: tuple[str, ...] = ()
    """Methods of the probe; the model's default method if empty."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the probe, as written in the study."""
    matching_form_only: bool = False
    """Whether ``compare`` asks only word-sense questions, and other probes only the other questions."""
    tasks: tuple[str, ...] = ()
    """Tasks to ask; all tasks if empty."""
    kinds: tuple[str, ...] = ()
    """Kinds of templates to ask; all kinds except soft templates if empty."""
    soft: tuple[str, ...] = ()
    """Paths of the training records of soft prompts that the model reads."""
    learned: str | None = None
    """Path of the training record (``learned.json``) whose weights are used; None for the original weights."""
    pseudowords: PseudowordSettings | None = None
    needs_counts: bool = False
    """Whether only the tasks with answer counts are asked, because the model answers by these."""
    shard: tuple[int, int] | None = None
    """Number of the shard and number of shards; None if the step asks all questions."""
    control: str = ""
    """Control that the step asks in place of the questions; empty if it asks the questions."""

    @property
    def label(self) -> str:
        """The name of the model for progress messages, with the control."""
        return f"{self.name}, {self.control}" if self.control else self.name


@dataclass(frozen=True)
class ModelRuntime:
    """Specification and origin of the model of a step."""

    model: ModelSpec
    source: str
    """Origin of the model for the record, without a local path."""


@dataclass(frozen=True)
class AskRuntime(ModelRuntime):
    """Specification and origin of a model, and the engine that asks it."""

    engine: AskEngine | None = None
    """Cluster whose workers ask the model; None if this process asks it."""


@dataclass(frozen=True)
class AskJob:
    """Everything that is needed to ask a model, in a form that can be sent to another process."""

    params: AskParams
    model: ModelSpec
    folder: Path
    home: Path
    artifacts: tuple[str, ...] = ()
    """Paths, within the run's folder, of the training records that the model needs."""
    examples: tuple[Question, ...] = ()
    """Training questions that are shown as examples in prompts."""
    learned: TrainingArtifact | None = None

    def probe(self) -> Probe:
        """Load the probe, and bind its options and examples."""
        probe: Probe = PROBES.get(self.params.probe, self.home)
        options = dict(self.params.options)
        if self.examples:
            options["examples"] = list(self.examples)
        return bind_options(probe, options)

    def resolved(self) -> ResolvedModel:
        """Resolve the model to its trained weights, or to its planned weights if it was not trained.

        Raises:
            MerkhetError: The weights have changed since they were planned or trained.
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
    """Resolve a model, and check that its weights have the planned ``fingerprint``.

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
    """Description of an asked model, with times and counts, for the record of a run."""

    description: Mapping[str, Any] = field(default_factory=dict)
    """Result of the model's ``describe()``."""
    loading_seconds: float = 0.0
    asking_seconds: float = 0.0
    questions: int = 0
    """Number of questions asked."""
    counters: dict[str, int] = field(default_factory=dict)
    """The model's counters, such as the number of computed input rows."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys and values of the record."""

    def as_record(self) -> dict[str, Any]:
        """Return the statistics as keys and values of the model's record."""
        rate = round(self.questions / self.asking_seconds, 2) if self.asking_seconds else 0.0
        times = {"loading_seconds": round(self.loading_seconds, 3), "seconds": round(self.asking_seconds, 3)}
        return {**self.description, **times, "questions_per_second": rate, **self.counters, **self.extra}


def merge_statistics(parts: Sequence[AskStatistics], **extra: Any) -> AskStatistics:
    """Merge the statistics of several processes.

    Times and counts are added up; the description is that of the first process. ``extra`` adds keys to the record.
    """
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


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for reference cycles; other objects are still freed at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Asker:
    """A loaded model, and the probe that asks it."""

    def __init__(
        self, job: AskJob, resolved: ResolvedModel, on_answer: Callable[[int], None] = lambda count: None
    ) -> None:
        """Load the model of a job.

        Args:
            on_answer: Called with the number of questions that were answered since its last call.
        """
        self.params = job.params
        self.probe = job.probe()
        self.on_answer = on_answer
        started = time.perf_counter()
        self.spell_pseudowords = False
        if job.params.control == ASSOCIATION:
            self.model: Model = AssociationBaseline(resolved, job.params.name)
        else:
            self.model = self._with_extra_words(load_model(resolved), job.folder)
        self.statistics = AskStatistics(self.model.describe(), time.perf_counter() - started)
        logger.info(
            "%s loaded in %.1f s: %s", resolved.name, self.statistics.loading_seconds, self.statistics.description
        )

    def _with_extra_words(self, model: Model, folder: Path) -> Model:
        """Add the embeddings of the step's soft prompts and pseudowords to a masked or causal model.

        Other models, and user-defined models, are returned unchanged.
        """
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
            return model  # The embedding layer of a user-defined model is unknown.
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
            The answers, in the order of the questions.

        Raises:
            MerkhetError: The probe gave no answer to a question.
        """
        # A baseline's answers are so many small objects that searching them for cycles takes a third of its time.
        with collection_paused() if self.model.kind == "baseline" else nullcontext():
            return self._ask(block)

    def _ask(self, block: Sequence[Question]) -> pa.Table:
        position = {question.question_id: number for number, question in enumerate(block)}
        if self.spell_pseudowords:
            block = [dataclasses.replace(question, prompt=replace_pseudowords(question.prompt)) for question in block]
        started = time.perf_counter()
        answers: list[Answer] = []
        answered: set[str] = set()
        reported, reported_at = 0, started
        for answer in self._answer(block):
            answers.append(answer)
            answered.add(answer.question_id)
            # A report takes longer than a baseline's answer.
            if len(answered) > reported and (now := time.perf_counter()) - reported_at >= _SECONDS_BETWEEN_REPORTS:
                self.on_answer(len(answered) - reported)
                reported, reported_at = len(answered), now
        self.on_answer(len(answered) - reported)
        answers.sort(key=lambda answer: position[answer.question_id])
        self.statistics.asking_seconds += time.perf_counter() - started
        self.statistics.questions += len(block)
        self.statistics.description = self.model.describe()
        self.statistics.counters = dict(getattr(self.model, "work", {}))
        missing = position.keys() - answered
        if missing:
            raise MerkhetError(
                f"the probe {self.params.probe} gave no answer to {counted(len(missing), 'question')}; "
                "it must return an answer, or the reason as unusable, for each question"
            )
        return make_answer_table(answers)

    def _answer(self, block: Sequence[Question]) -> Iterable[Answer]:
        """Ask a block by the probe; control prompts that coincide are asked once."""

        def ask(questions: Sequence[Question]) -> Iterable[Answer]:
            answers: Iterable[Answer] = self.probe(self.model, questions, list(self.params.methods))
            return answers

        shares = self.params.control == SUBJECT_BLIND and self.params.probe in SHARING_PROBES
        return ask_once(block, ask) if shares else ask(block)
