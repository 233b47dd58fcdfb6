"""Further pre-training of a masked model on a text corpus, by one of four objectives.

All randomness of a step (its examples, dropout) depends on the seed, the step and the example's slot in its batch. A
killed run resumes from its last checkpoint and ends with the weights of an uninterrupted one, and several processes
that share each batch train as one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed, digest
from merkhet.core.progress import Progress
from merkhet.core.settings import make_settings
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import Model
from merkhet.training import PRETRAIN
from merkhet.training._optimization import OptimizerSettings, seeded
from merkhet.training._pretraining_examples import Example, Examples, Vocabulary, sequence_template
from merkhet.training._pretraining_objectives import Objective
from merkhet.training._trainer import CheckpointSchedule, Trainer
from merkhet.training._training_task import STEPS, AutogradTask, CurvePoint, TrainingState
from merkhet.training.artifact import (
    TrainingArtifact,
    check_artifact_folder,
    check_process_counts,
    result_settings,
    save_model_artifact,
)
from merkhet.training.distributed._example_dropout import example_dropout
from merkhet.training.distributed._gradient_sync import single_thread
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
    """Train a loaded masked model further on a corpus and save it; its weights are changed in place.

    Heads that an objective adds are trained from scratch and are not saved. On a CPU the same corpus, settings and seed
    give the same weights, killed or not: to the last bit with as many processes, or with ``parts``.

    Args:
        model: a loaded masked model.
        corpus: a text file or a folder of text files.
        folder: where the artifact is saved.
        settings: settings, or a mapping with some of them.
        seed: seed of the training.
        progress: receives the progress.
        checkpoints: folder for checkpoints, which are removed at the end.
        processes: the processes that train together, inside a distributed job.

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
            f"the setting max_length of learning is {chosen.max_length}, and {model.name} reads "
            f"{max_tokens} tokens at most; set it to {max_tokens} or less"
        )
    if chosen.processes > 1 and processes is None:
        from merkhet.training.distributed._jobs import run_job

        return run_job(
            *(PRETRAIN, model, folder),
            settings=chosen,
            seed=seed,
            progress=progress,
            checkpoints=checkpoints,
            device=model.model.device.type,
            corpus=corpus,
        )
    processes = processes or ProcessGroup()
    check_process_counts(processes.count, chosen.parts)
    corpus_hash, text = corpus_digest(corpus), read_corpus(corpus, model.candidate_tokenizer.backend)
    vocabulary = Vocabulary.of(model.tokenizer, model.model.get_input_embeddings().weight.shape[0])
    examples = Examples(text, sequence_template(model.candidate_tokenizer.backend), vocabulary, chosen, seed)
    processes.require_agreement(
        {"model": model.fingerprint, "corpus": corpus_hash, "settings": digest(result_settings(chosen))}
    )
    identity = digest([PRETRAIN, model.fingerprint, corpus_hash, result_settings(chosen), seed])
    schedule = CheckpointSchedule(checkpoints, identity, chosen.checkpoint_every) if checkpoints else None
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
    learned = save_model_artifact(model, model.kind, folder, record)
    if schedule:
        schedule.remove()
    return learned


@dataclass(frozen=True)
class PretrainingBatch:
    """Some examples of a step."""

    examples: Sequence[Example]
    dropout_seed: int
    masked: int
    """Number of masked tokens of the whole step, at least 1."""
    labelled: int
    """Number of targets of the added head in the whole step, at least 1."""

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, rows: slice) -> PretrainingBatch:
        return replace(self, examples=self.examples[rows])


class PretrainingTask(AutogradTask[PretrainingBatch]):
    """The pre-training of a masked model by an objective; an epoch is ``log_every`` steps."""

    loss_count = 2

    def __init__(self, model: MaskedModel, examples: Examples, settings: PretrainSettings, seed: int) -> None:
        self.examples, self.settings, self.seed = examples, settings, seed
        self.network = model.model.float()
        self.objective = Objective(self.network, settings.objective, model.pad)
        self.label, self.unit, self.total = f"{model.name}: {settings.objective}", STEPS, settings.steps
        self.epochs, self.steps = math.ceil(settings.steps / settings.log_every), settings.steps
        self.batch_size, self.device = settings.batch_size, self.network.device
        self.dtype = (
            torch.bfloat16 if settings.precision == "bfloat16" and self.device.type == "cuda" else torch.float32
        )
        self.modules = {"network": self.network}
        if self.objective.head:
            self.modules["head"] = self.objective.head
        self.parameters = [p for module in self.modules.values() for p in module.parameters() if p.requires_grad]
        self.optimizer = OptimizerSettings(
            settings.learning_rate,
            settings.weight_decay,
            settings.warmup,
            settings.largest_gradient,
            decay_vectors=False,
        )

    def batches(self, epoch: int, start: int) -> Iterator[PretrainingBatch]:
        """Yield the examples of each step."""
        every = self.settings.log_every
        for step in range((epoch - 1) * every + start, min(epoch * every, self.steps)):
            examples = self.examples.batch(step)
            masked, labelled = (max(1, count) for count in self.objective.counts(examples))
            yield PretrainingBatch(examples, derived_seed(self.seed, PRETRAIN, "dropout", step), masked, labelled)

    def weight(self, batch: PretrainingBatch) -> float:
        """Return 1: the losses are means already."""
        return 1.0

    def loss(self, batch: PretrainingBatch) -> torch.Tensor:
        """Return the shares of some examples in the two mean losses of their step."""
        with example_dropout(batch.dropout_seed, [example.slot for example in batch.examples]):
            losses = self.objective.losses(batch.examples)
        extra = torch.zeros_like(losses.mlm) if losses.extra is None else losses.extra
        return torch.stack([losses.mlm / batch.masked, extra / batch.labelled])

    def set_training(self, training: bool) -> None:
        """Switch dropout on or off."""
        self.network.train(training)

    def count_tokens(self, batch: PretrainingBatch) -> int:
        """Return the number of input tokens."""
        return sum(len(example.ids) for example in batch.examples)

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        """Return the mean losses since the last point."""
        mlm, extra = losses
        return {
            "step": state.step,
            "loss": mlm + extra,
            "mlm": mlm,
            "extra": extra if self.objective.head else None,
        }
