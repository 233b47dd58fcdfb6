"""Further pre-training of a masked model on a text corpus, with one of four objectives.

All random choices (examples, dropout) depend only on the seed, the step and the example's index in its batch. So a
killed run that resumes from its last checkpoint ends with the same weights as an uninterrupted run. Several processes
that share each batch train like a single process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.settings import make_settings
from merkhet.models.batching import single_thread
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import Model
from merkhet.training import PRETRAIN
from merkhet.training._optimization import seeded
from merkhet.training._pretraining_examples import Example, Examples, Vocabulary, sequence_template
from merkhet.training._pretraining_objectives import Objective
from merkhet.training._trainer import Trainer, make_shared_schedule
from merkhet.training._training_task import STEPS, AutogradTask, CurvePoint, TrainingState
from merkhet.training.artifact import (
    TrainingArtifact,
    check_artifact_folder,
    check_process_counts,
    save_model_artifact,
)
from merkhet.training.distributed._example_dropout import example_dropout
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.pretraining_settings import PretrainSettings
from merkhet.training.text_corpus import corpus_digest, read_corpus


def pretrain(
    model: Model,
    corpus: Path,
    folder: Path,
    *,
    settings: Mapping[str, Any] | PretrainSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    checkpoints: Path | None = None,
    processes: ProcessGroup | None = None,
) -> TrainingArtifact:
    """Continue the pre-training of a loaded masked model on a corpus, and save the model in ``folder``.

    The weights of ``model`` are changed in place. ``corpus`` is a text file or a folder of text files. An additional
    head of the objective is trained from scratch and not saved. A killed training resumes from the last checkpoint in
    the folder ``checkpoints``. On a CPU the same corpus, settings and seed give the same weights. The weights are
    bit-identical if the number of processes is the same too, or if the setting ``parts`` is used. The argument
    ``processes`` is only for the workers of a distributed job.

    Raises:
        InputError: the model is not masked, or the objective cannot use the corpus.
    """
    chosen = make_settings(PretrainSettings, settings)
    check_artifact_folder(folder)
    if not isinstance(model, MaskedModel):
        raise InputError(f"{model.name} is a {model.kind} model; only masked models can be pre-trained, choose one")
    max_tokens = model.candidate_tokenizer.max_tokens
    if chosen.max_length > max_tokens:
        raise InputError(
            f"learning.settings.max_length must be ≤ {max_tokens}, the maximum of {model.name}, got {chosen.max_length}"
        )
    if chosen.processes > 1 and processes is None:
        from merkhet.training.distributed._jobs import run_job

        options: dict[str, Any] = {"seed": seed, "progress": progress, "checkpoints": checkpoints}
        device = model.model.device.type
        return run_job(PRETRAIN, model, folder, settings=chosen, corpus=corpus, device=device, **options)
    processes = processes or ProcessGroup()
    check_process_counts(processes.count, chosen.parts)
    corpus_hash, text = corpus_digest(corpus), read_corpus(corpus, model.candidate_tokenizer.backend)
    vocabulary = Vocabulary.of(model.tokenizer, model.model.get_input_embeddings().weight.shape[0])
    examples = Examples(text, sequence_template(model.candidate_tokenizer.backend), vocabulary, chosen, seed)
    identity = (PRETRAIN, model.fingerprint, {"corpus": corpus_hash}, chosen, seed)
    schedule = make_shared_schedule(checkpoints, processes, *identity, every_steps=chosen.checkpoint_every)
    with seeded(derived_seed(seed, PRETRAIN), exact=model.model.device.type == "cpu"), single_thread(chosen.parts > 1):
        task = PretrainingTask(model, examples, chosen, seed)
        state = Trainer(task, progress, checkpoints=schedule, processes=processes, parts=chosen.parts).run()
    record = {
        "learner": PRETRAIN,
        "model": model.name,
        "kind": model.kind,
        "base": model.fingerprint,
        "objective": chosen.objective,
        "steps": chosen.steps,
        "settings": asdict(chosen),
        "seed": seed,
        "corpus": {"digest": corpus_hash, **text.describe(), "chunks": len(examples.chunks)},
        "remarks": list(text.remarks),
        "tokens_seen": state.tokens,
        "rounds": round(chosen.steps * chosen.batch_size / len(examples.chunks), 3),
        "precision": str(task.dtype).removeprefix("torch."),
        "curve": state.curve,
        "seconds": round(state.seconds, 1),
    }
    if not processes.is_main:
        return TrainingArtifact(folder, "", record)
    return save_model_artifact(model, folder, record, schedule)


@dataclass(frozen=True)
class PretrainingBatch:
    """The examples of a step, or some of them."""

    examples: Sequence[Example]
    dropout_seed: int
    masked: int
    """Number of masked tokens in the whole step, at least 1."""
    labelled: int
    """Number of targets of the additional head in the whole step, at least 1."""

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, rows: slice) -> PretrainingBatch:
        return replace(self, examples=self.examples[rows])


class PretrainingTask(AutogradTask[PretrainingBatch]):
    """The pre-training of a masked model with one objective, in epochs of ``log_every`` steps."""

    loss_count = 2

    def __init__(self, model: MaskedModel, examples: Examples, settings: PretrainSettings, seed: int) -> None:
        self.examples, self.seed, self.network = examples, seed, model.model.float()
        self.objective = Objective(self.network, settings.objective, model.pad)
        modules = {"network": self.network}
        if self.objective.head:
            modules["head"] = self.objective.head
        super().__init__(f"{model.name}: {settings.objective}", settings, modules, unit=STEPS, decay_vectors=False)
        self.epochs = math.ceil(settings.steps / settings.log_every)
        self.steps = self.total = settings.steps
        if settings.precision == "bfloat16" and self.device.type == "cuda":
            self.dtype = torch.bfloat16

    def batches(self, epoch: int, start: int) -> Iterator[PretrainingBatch]:
        """Yield the batch of each step of an epoch, without the first ``start`` steps."""
        every = self.settings.log_every
        for step in range((epoch - 1) * every + start, min(epoch * every, self.steps)):
            examples = self.examples.batch(step)
            masked, labelled = (max(1, count) for count in self.objective.counts(examples))
            yield PretrainingBatch(examples, derived_seed(self.seed, PRETRAIN, "dropout", step), masked, labelled)

    def weight(self, batch: PretrainingBatch) -> float:
        """Return 1, because the losses are already means."""
        return 1.0

    def loss(self, batch: PretrainingBatch) -> torch.Tensor:
        """Return the contributions of the examples to the two mean losses of their step: MLM and additional head."""
        with example_dropout(batch.dropout_seed, [example.slot for example in batch.examples]):
            losses = self.objective.losses(batch.examples)
        extra = torch.zeros_like(losses.mlm) if losses.extra is None else losses.extra
        return torch.stack([losses.mlm / batch.masked, extra / batch.labelled])

    def count_tokens(self, batch: PretrainingBatch) -> int:
        """Return the number of input tokens of a batch."""
        return sum(len(example.ids) for example in batch.examples)

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        """Return a curve point with the step and the mean losses since the previous point."""
        mlm, extra = losses
        extra_loss = extra if self.objective.head else None
        return {"step": state.step, "loss": mlm + extra, "mlm": mlm, "extra": extra_loss}
