"""Further pre-training of a masked model on a text corpus, by one of four objectives.

All randomness of a step (its examples, dropout) depends on the seed, the step and the example's slot in its batch. A
killed run resumes from its last checkpoint and ends with the weights of an uninterrupted one, and several processes
that share each batch train as one does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed, digest
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import Model
from merkhet.training import PRETRAIN
from merkhet.training._checkpoints import load_checkpoint, save_checkpoint
from merkhet.training._optimization import accumulate_gradients, check_finite, linear_schedule, seeded
from merkhet.training._pretraining_examples import Example, Examples, Vocabulary, sequence_template
from merkhet.training._pretraining_objectives import Objective
from merkhet.training.artifact import (
    TrainingArtifact,
    check_artifact_folder,
    check_process_counts,
    result_settings,
    save_model_artifact,
)
from merkhet.training.distributed._example_dropout import example_dropout
from merkhet.training.distributed._gradient_sync import GradientSum, single_thread
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.pretraining_settings import PretrainSettings, check_pretrain_settings, make_pretrain_settings
from merkhet.training.text_corpus import corpus_digest, read_corpus

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
_STATE = ("step", "micro_batch", "tokens", "seconds", "curve", "recent_losses")
"""Attributes of a training that a checkpoint holds."""


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
    chosen = (
        check_pretrain_settings(settings)
        if isinstance(settings, PretrainSettings)
        else make_pretrain_settings(settings or {})
    )
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
    checkpoint = checkpoints / CHECKPOINT if checkpoints else None
    with seeded(derived_seed(seed, PRETRAIN), exact=model.model.device.type == "cpu"), single_thread(chosen.parts > 1):
        training = _Pretraining(model, chosen, seed, examples, progress or SilentProgress(), processes)
        if checkpoint:
            training.resume(checkpoint, identity)
        training.run(checkpoint, identity)
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
        "tokens_seen": training.tokens,
        "rounds": round(chosen.steps * chosen.batch_size / len(examples.chunks), 3),
        "precision": "bfloat16" if training.objective.halved else "float32",
        "curve": training.curve,
        "seconds": round(training.seconds, 1),
    }
    if not processes.is_main:
        return TrainingArtifact(folder, "", record)
    learned = save_model_artifact(model, model.kind, folder, record)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return learned


class _Pretraining:
    """One pre-training: the network, the objective, the optimizer, and the progress."""

    def __init__(
        self,
        model: MaskedModel,
        settings: PretrainSettings,
        seed: int,
        examples: Examples,
        progress: Progress,
        processes: ProcessGroup,
    ) -> None:
        self.label = f"{model.name}: {settings.objective}"
        self.network = model.model.float()
        self.settings, self.seed = settings, seed
        self.examples, self.processes = examples, processes
        self.progress = progress if processes.is_main else SilentProgress()
        self.objective = Objective(self.network, settings.objective, model.pad, settings.precision)
        heads = [self.objective.head] if self.objective.head else []
        self.parameters = [p for part in (self.network, *heads) for p in part.parameters() if p.requires_grad]
        matrices, vectors = ([p for p in self.parameters if (p.ndim > 1) is is_matrix] for is_matrix in (True, False))
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=settings.learning_rate,
        )
        self.gradients = GradientSum(self.parameters, processes, settings.parts)
        self.step = 0
        self.micro_batch = settings.batch_size
        self.tokens = 0
        self.seconds = 0.0
        self.curve: list[dict[str, float | None]] = []
        self.recent_losses: list[tuple[float, float]] = []
        """The two losses of each step since the last point of the curve."""

    def run(self, checkpoint: Path | None, identity: str) -> None:
        """Do all remaining steps, and write checkpoints."""
        settings, began = self.settings, time.perf_counter() - self.seconds
        self.progress.start(self.label, settings.steps, "steps")
        self.progress.advance(self.label, self.step)
        self.network.train()
        try:
            while self.step < settings.steps:
                self._train_step(self.examples.batch(self.step))
                self.step += 1
                self.progress.advance(self.label, 1)
                if self.step % settings.log_every == 0 or self.step == settings.steps:
                    self._log()
                self.seconds = time.perf_counter() - began
                if checkpoint and self.step % settings.checkpoint_every == 0 and self.step < settings.steps:
                    self._save(checkpoint, identity)
        finally:
            self.network.eval()
            self.progress.finish(self.label)

    def _train_step(self, batch: Sequence[Example]) -> None:
        """Take one step of the optimizer on a batch."""
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * linear_schedule(self.step, settings.steps, settings.warmup)
        masked, labelled = (max(1, count) for count in self.objective.counts(batch))
        seed = derived_seed(self.seed, PRETRAIN, "dropout", self.step)

        def backward(rows: slice) -> torch.Tensor:
            """Compute the gradients of some rows; return their shares of the two mean losses."""
            losses_by_slot: dict[int, torch.Tensor] = {}

            def loss_of(examples: Sequence[Example]) -> torch.Tensor:
                with example_dropout(seed, [example.slot for example in examples]):
                    losses = self.objective.losses(examples)
                extra = torch.zeros_like(losses.mlm) if losses.extra is None else losses.extra
                mean = torch.stack([losses.mlm / masked, extra / labelled])
                losses_by_slot[examples[0].slot] = mean.detach().float()
                return mean.sum()

            _, self.micro_batch = accumulate_gradients(batch[rows], self.micro_batch, loss_of, 1.0, self.optimizer)
            # Memory may have run out on the way: only the micro-batches of the last attempt count.
            micro_losses = [losses_by_slot[example.slot] for example in batch[rows][:: self.micro_batch]]
            return torch.stack([torch.zeros(2, device=self.network.device), *micro_losses]).sum(dim=0)

        mlm, extra = self.gradients(len(batch), backward).tolist()
        check_finite(mlm + extra, self.label)
        torch.nn.utils.clip_grad_norm_(self.parameters, settings.largest_gradient)
        self.optimizer.step()
        self.recent_losses.append((mlm, extra))
        self.tokens += sum(len(example.ids) for example in batch)

    def _log(self) -> None:
        """Add a point to the curve: the mean losses since the last one."""
        mlm, extra = (sum(values) / len(self.recent_losses) for values in zip(*self.recent_losses, strict=True))
        point: dict[str, float | None] = {"step": self.step, "loss": mlm + extra, "mlm": mlm, "extra": extra}
        self.curve.append(point if self.objective.head else {**point, "extra": None})
        self.recent_losses = []
        logger.info("%s: %s", self.label, self.curve[-1])

    def _save(self, file: Path, identity: str) -> None:
        """Write a checkpoint atomically."""
        head = self.objective.head
        content = {
            "network": self.network.state_dict(),
            "head": head.state_dict() if head else {},
            "optimizer": self.optimizer.state_dict(),
            "state": {name: getattr(self, name) for name in _STATE},
        }
        save_checkpoint(file, identity, content, self.processes)

    def resume(self, file: Path, identity: str) -> None:
        """Continue from a checkpoint of this training; ignore a damaged one or another training's."""
        content = load_checkpoint(file, identity, self.label, self.processes)
        if content is None:
            return
        self.network.load_state_dict(content["network"])
        if self.objective.head:
            self.objective.head.load_state_dict(content["head"])
        self.optimizer.load_state_dict(content["optimizer"])
        for name, value in content["state"].items():
            setattr(self, name, value)
        logger.info("%s: resuming after step %d", self.label, self.step)
