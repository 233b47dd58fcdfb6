"""Going on with the pre-training of a masked model on a text corpus, by one of four objectives.

Everything drawn in a step (its examples, dropout) belongs to the seed, the number of the step and the example's place
in its batch: a run that was killed goes on from its last checkpoint and ends with the weights of an undisturbed one,
and several processes that share each batch learn what one does.
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
from merkhet.training._optimization import backward_in_parts, check_finite, linear_schedule, seeded
from merkhet.training._pretraining_examples import Example, Examples, Vocabulary, sequence_template
from merkhet.training._pretraining_objectives import Objective
from merkhet.training.artifact import (
    TrainingArtifact,
    check_process_counts,
    refuse_other_files,
    result_settings,
    save_model_artifact,
)
from merkhet.training.distributed._example_dropout import example_dropout
from merkhet.training.distributed._gradient_sync import GradientSum, single_thread
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.pretraining_settings import PretrainSettings, checked, make_pretrain_settings
from merkhet.training.text_corpus import corpus_digest, read_corpus

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"


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

    With a folder for ``checkpoints`` a run that was killed goes on where it was; they are removed at the end. Heads
    that an objective adds are trained from new and are not saved. On a CPU the same corpus, settings and seed give
    the same weights, killed or not: to the last bit by as many processes, or with ``parts``. Refuses another kind of
    model, and a corpus that the objective cannot use.
    """
    chosen = checked(settings) if isinstance(settings, PretrainSettings) else make_pretrain_settings(settings or {})
    refuse_other_files(folder)
    if not isinstance(model, MaskedModel):
        raise InputError(f"{model.name} is a {model.kind} model; only masked models go on with pre-training here")
    max_tokens = model.candidate_tokenizer.max_tokens
    if chosen.max_length > max_tokens:
        raise InputError(
            f"the setting max_length of learning is {chosen.max_length}, and {model.name} reads "
            f"{max_tokens} tokens at most; set it to {max_tokens} or less"
        )
    if chosen.processes > 1 and processes is None:
        from merkhet.training.distributed._jobs import train_together

        return train_together(
            *(PRETRAIN, model, folder),
            settings=chosen,
            seed=seed,
            progress=progress,
            checkpoints=checkpoints,
            device=model.model.device.type,
            corpus=corpus,
        )
    every = processes or ProcessGroup()
    check_process_counts(every.count, chosen.parts)
    content, text = corpus_digest(corpus), read_corpus(corpus, model.candidate_tokenizer.backend)
    vocabulary = Vocabulary.of(model.tokenizer, model.model.get_input_embeddings().weight.shape[0])
    examples = Examples(text, sequence_template(model.candidate_tokenizer.backend), vocabulary, chosen, seed)
    every.refuse_others({"model": model.fingerprint, "corpus": content, "settings": digest(result_settings(chosen))})
    identity = digest([PRETRAIN, model.fingerprint, content, result_settings(chosen), seed])
    checkpoint = checkpoints / CHECKPOINT if checkpoints else None
    with seeded(derived_seed(seed, PRETRAIN), exact=model.model.device.type == "cpu"), single_thread(chosen.parts > 1):
        training = _Pretraining(model, chosen, seed, examples, progress or SilentProgress(), every)
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
        "corpus": {"digest": content, **text.describe(), "chunks": len(examples.chunks)},
        "remarks": list(text.remarks),
        "tokens_seen": training.tokens,
        "rounds": round(chosen.steps * chosen.batch_size / len(examples.chunks), 3),
        "precision": "bfloat16" if training.objective.halved else "float32",
        "curve": training.curve,
        "seconds": round(training.seconds, 1),
    }
    if not every.first:
        return TrainingArtifact(folder, "", record)
    learned = save_model_artifact(model, model.kind, folder, record)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return learned


class _Pretraining:
    """One pre-training: the network, the head that the objective adds, the optimizer, and where it stands."""

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
        self.progress = progress if processes.first else SilentProgress()
        self.objective = Objective(self.network, settings.objective, model.pad, settings.precision)
        heads = [self.objective.head] if self.objective.head else []
        self.parameters = [p for part in (self.network, *heads) for p in part.parameters() if p.requires_grad]
        decayed, others = ([p for p in self.parameters if (p.ndim > 1) is matrix] for matrix in (True, False))
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}],
            lr=settings.learning_rate,
        )
        self.gradients = GradientSum(self.parameters, processes, settings.parts)
        self.step = 0
        self.at_once = settings.batch_size
        self.tokens = 0
        self.seconds = 0.0
        self.curve: list[dict[str, float | None]] = []
        self.told: list[tuple[float, float]] = []
        """The loss of masked tokens, and that of what the objective adds, of each step since the curve's last line."""

    def run(self, checkpoint: Path | None, identity: str) -> None:
        """Do all steps that are not done, writing checkpoints on the way."""
        settings, began = self.settings, time.perf_counter() - self.seconds
        self.progress.start(self.label, settings.steps, "steps")
        self.progress.advance(self.label, self.step)
        self.network.train()
        try:
            while self.step < settings.steps:
                self._learn(self.examples.batch(self.step))
                self.step += 1
                self.progress.advance(self.label, 1)
                if self.step % settings.log_every == 0 or self.step == settings.steps:
                    self._log()
                self.seconds = time.perf_counter() - began
                if checkpoint and self.step % settings.checkpoint_every == 0 and self.step < settings.steps:
                    self._write(checkpoint, identity)
        finally:
            self.network.eval()
            self.progress.finish(self.label)

    def _learn(self, batch: Sequence[Example]) -> None:
        """One step of the optimizer on a batch."""
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * linear_schedule(self.step, settings.steps, settings.warmup)
        masked, added = (max(1, count) for count in self.objective.counts(batch))
        seed = derived_seed(self.seed, PRETRAIN, "dropout", self.step)

        def learn(rows: slice) -> torch.Tensor:
            """Gradients of some examples of the batch; their shares of the two mean losses."""
            parts: dict[int, torch.Tensor] = {}

            def loss_of(some: Sequence[Example]) -> torch.Tensor:
                with example_dropout(seed, [one.slot for one in some]):
                    losses = self.objective.losses(some)
                extra = torch.zeros_like(losses.mlm) if losses.extra is None else losses.extra
                mean = torch.stack([losses.mlm / masked, extra / added])
                parts[some[0].slot] = mean.detach().float()
                return mean.sum()

            _, self.at_once = backward_in_parts(batch[rows], self.at_once, loss_of, 1.0, self.optimizer)
            # Memory may have run out on the way: the parts that count are those of the last try, and all its own.
            kept = [parts[one.slot] for one in batch[rows][:: self.at_once]]
            return torch.stack([torch.zeros(2, device=self.network.device), *kept]).sum(dim=0)

        mlm, extra = self.gradients(len(batch), learn).tolist()
        check_finite(mlm + extra, self.label)
        torch.nn.utils.clip_grad_norm_(self.parameters, settings.largest_gradient)
        self.optimizer.step()
        self.told.append((mlm, extra))
        self.tokens += sum(len(one.ids) for one in batch)

    def _log(self) -> None:
        """A line of the curve: the mean losses since the last one."""
        mlm, extra = (sum(values) / len(self.told) for values in zip(*self.told, strict=True))
        line: dict[str, float | None] = {"step": self.step, "loss": mlm + extra, "mlm": mlm, "extra": extra}
        self.curve.append(line if self.objective.head else {**line, "extra": None})
        self.told = []
        logger.info("%s: %s", self.label, self.curve[-1])

    def _write(self, file: Path, identity: str) -> None:
        """Write where the training stands; the file is there whole or as it was."""
        head = self.objective.head
        content = {
            "network": self.network.state_dict(),
            "head": head.state_dict() if head else {},
            "optimizer": self.optimizer.state_dict(),
            "place": {name: getattr(self, name) for name in ("step", "at_once", "tokens", "seconds", "curve", "told")},
        }
        save_checkpoint(file, identity, content, self.processes)

    def resume(self, file: Path, identity: str) -> None:
        """Go on from a checkpoint of this very training; one of another, or a damaged one, is left alone."""
        content = load_checkpoint(file, identity, self.label, self.processes)
        if content is None:
            return
        self.network.load_state_dict(content["network"])
        if self.objective.head:
            self.objective.head.load_state_dict(content["head"])
        self.optimizer.load_state_dict(content["optimizer"])
        for name, value in content["place"].items():
            setattr(self, name, value)
        logger.info("%s: going on after step %d", self.label, self.step)
