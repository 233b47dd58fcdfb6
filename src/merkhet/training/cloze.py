"""Cloze tuning: a model is fine-tuned to write the answers of questions, in the form in which it will be asked.

A masked model reads the slot as masks and learns the answer's tokens there, followed by padding; a causal model reads
its prompt and learns the answer and its end. No token of the question contributes to the loss.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.records import Question
from merkhet.metrics.text_overlap import word_f1
from merkhet.models.causal import CausalModel
from merkhet.models.lm_head import logits_at
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import ANSWER_LENGTH, Model
from merkhet.models.row_scheduler import Row
from merkhet.models.tokenize_candidates import UnusableError
from merkhet.training._optimization import accumulate_gradients, check_finite, check_settings, linear_schedule, seeded
from merkhet.training.artifact import TrainingArtifact, check_artifact_folder, make_settings, save_model_artifact

logger = logging.getLogger(__name__)

BATCHES_SORTED_AT_ONCE = 32
"""Number of batches whose examples are sorted by length together."""


@dataclass(frozen=True)
class ClozeSettings:
    """How a model is tuned; the defaults are usual for models of BERT's size."""

    epochs: int = 10
    """Maximum number of epochs."""
    batch_size: int = 32
    learning_rate: float = 5e-5
    warmup: float = 0.1
    """Share of all steps in which the learning rate rises."""
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    """Maximum gradient norm."""
    patience: int = 2
    """Early stopping: number of epochs without a better score on the dev questions."""
    dev_limit: int = 500
    """Maximum number of dev questions, drawn by the seed."""
    method: str = "continue"
    """How a causal model is asked."""


@dataclass(frozen=True)
class Example:
    """A question as tokens."""

    question_id: str
    row: Row
    """Input tokens."""
    columns: tuple[int, ...]
    """Positions at which the targets are predicted."""
    targets: Row


def tune_cloze(
    model: Model,
    training: Sequence[Question],
    folder: Path,
    *,
    dev: Sequence[Question] = (),
    settings: Mapping[str, Any] | ClozeSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TrainingArtifact:
    """Fine-tune a loaded model on questions and save it; its weights are changed in place.

    With dev questions the weights of the best epoch are kept. Questions that cannot be learned (too many tokens,
    unknown tokens) are left out and counted. On a CPU the same questions, settings and seed give the same weights,
    whatever the order of the questions.

    Args:
        model: a masked or causal model.
        training: training questions.
        folder: where the artifact is saved.
        dev: dev questions for early stopping.
        settings: settings, or a mapping with some of them.
        seed: seed of the training.
        progress: receives the progress.

    Raises:
        InputError: the model has no weights to tune, or no question can be learned.
    """
    chosen = settings if isinstance(settings, ClozeSettings) else make_settings(ClozeSettings, settings or {})
    _check_settings(chosen)
    check_artifact_folder(folder)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which has no weights to tune; leave it out of learning")
    examples, skipped = make_examples(model, training, chosen)
    if not examples:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.items()) or "there is none"
        raise InputError(f"{model.name} can learn from none of the {len(training)} training questions: {reasons}")
    dev = sorted(dev, key=lambda question: (derived_seed(seed, "dev", question.question_id), question.question_id))
    dev = dev[: chosen.dev_limit]
    with seeded(derived_seed(seed, "cloze"), exact=model.model.device.type == "cpu"):
        epochs, best_epoch = _Tuning(model, chosen, seed, progress or SilentProgress()).run(examples, dev)
    record = {
        "learner": "cloze",
        "model": model.name,
        "kind": model.kind,
        "base": model.fingerprint,
        "settings": asdict(chosen),
        "seed": seed,
        "questions": len(training),
        "learned": len(examples),
        "skipped": dict(sorted(skipped.items())),
        "dev_questions": len(dev),
        "epochs": epochs,
        "kept_epoch": best_epoch,
    }
    return save_model_artifact(model, model.kind, folder, record)


def make_examples(
    model: MaskedModel | CausalModel, questions: Sequence[Question], settings: ClozeSettings
) -> tuple[list[Example], Counter[str]]:
    """Return the examples of all questions that can be learned, and the number of others by reason."""
    examples, skipped = [], Counter[str]()
    for question in questions:
        try:
            examples.append(_example(model, question, settings))
        except UnusableError as reason:
            skipped[str(reason).partition(":")[0]] += 1
    return examples, skipped


def _example(model: MaskedModel | CausalModel, question: Question, settings: ClozeSettings) -> Example:
    if isinstance(model, MaskedModel):
        prompts = model.writer.prompts
        row, first = prompts.mask_slot(question.prompt, ANSWER_LENGTH)
        targets = prompts.answer_tokens(question.prompt, question.target, ANSWER_LENGTH)
        return Example(question.question_id, row, tuple(range(first, first + ANSWER_LENGTH)), targets)
    prompt, targets = model.writer.prompts.answer_tokens(question, settings.method, ANSWER_LENGTH)
    row = (*prompt, *targets[:-1])  # The last target predicts nothing.
    return Example(question.question_id, row, tuple(range(len(prompt) - 1, len(row))), targets)


def _check_settings(settings: ClozeSettings) -> None:
    check_settings(settings, ("epochs", "batch_size", "patience", "dev_limit", "learning_rate", "largest_gradient"))
    if settings.method not in CausalModel.writing_methods:
        raise InputError(f"the setting method of learning is {settings.method!r}, and should be continue or chat")


class _Tuning:
    """One fine-tuning of a model."""

    def __init__(
        self, model: MaskedModel | CausalModel, settings: ClozeSettings, seed: int, progress: Progress
    ) -> None:
        self.model = model
        self.network = model.model.float()
        self.settings = settings
        self.seed = seed
        self.progress = progress
        self.pick_after = model.pick_after if isinstance(model, MaskedModel) else None
        self.pad = model.pad if isinstance(model, MaskedModel) else 0
        self.micro_batch = settings.batch_size
        matrices = [p for p in self.network.parameters() if p.requires_grad and p.ndim > 1]
        vectors = [p for p in self.network.parameters() if p.requires_grad and p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=settings.learning_rate,
        )
        self.step = 0

    def run(self, examples: Sequence[Example], dev: Sequence[Question]) -> tuple[list[dict[str, float]], int]:
        """Tune; return the loss and the dev F1 of each epoch, and the number of the epoch whose weights are kept."""
        settings, label = self.settings, f"{self.model.name}: learning"
        self.progress.start(label, settings.epochs * len(examples), "questions")
        steps = settings.epochs * math.ceil(len(examples) / settings.batch_size)
        epochs: list[dict[str, float]] = []
        best_score: tuple[float, float] | None = None
        best_epoch, best_weights, epochs_without_gain = 0, None, 0
        try:
            for epoch in range(1, settings.epochs + 1):
                epochs.append({"loss": self._train_epoch(examples, epoch, steps, label)})
                if not dev:
                    best_epoch = epoch
                    continue
                epochs[-1]["dev_f1"] = self._dev_f1(dev)
                score = (epochs[-1]["dev_f1"], -epochs[-1]["loss"])
                logger.info("%s, epoch %d: %s", label, epoch, epochs[-1])
                epochs_without_gain = 0 if best_score is None or score[0] > best_score[0] else epochs_without_gain + 1
                if best_score is None or score > best_score:
                    best_epoch, best_score = epoch, score
                    best_weights = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
                if score[0] == 1.0 or (epochs_without_gain >= settings.patience and best_score[0] > 0):
                    break
        finally:
            self.network.eval()
            self.progress.finish(label)
        if best_weights is not None:
            self.network.load_state_dict(best_weights)
        return epochs, best_epoch

    def _train_epoch(self, examples: Sequence[Example], epoch: int, steps: int, label: str) -> float:
        self.network.train()
        total, count = 0.0, 0
        for batch in make_batches(examples, self.settings.batch_size, derived_seed(self.seed, epoch)):
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * linear_schedule(self.step, steps, self.settings.warmup)
            total += self._backward(batch)
            count += sum(len(example.targets) for example in batch)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.largest_gradient)
            self.optimizer.step()
            self.step += 1
            self.progress.advance(label, len(batch))
        check_finite(total, label)
        return total / count

    def _backward(self, batch: Sequence[Example]) -> float:
        """Compute the gradients of a batch; return the sum of its losses."""
        count = sum(len(example.targets) for example in batch)
        losses, self.micro_batch = accumulate_gradients(batch, self.micro_batch, self._loss, count, self.optimizer)
        return losses

    def _loss(self, examples: Sequence[Example]) -> torch.Tensor:
        """Return the sum of the cross-entropies of all targets."""
        longest, device = max(len(example.row) for example in examples), self.network.device
        ids = np.full((len(examples), longest), self.pad, dtype=np.int64)
        attention = np.zeros((len(examples), longest), dtype=np.int64)
        for row, example in enumerate(examples):
            ids[row, : len(example.row)] = example.row
            attention[row, : len(example.row)] = 1
        rows = np.repeat(np.arange(len(examples)), [len(example.columns) for example in examples])
        columns = np.concatenate([example.columns for example in examples]).astype(np.int64)
        options = {"use_cache": False} if self.model.kind == "causal" else {}
        logits = logits_at(
            self.network,
            torch.from_numpy(rows).to(device),
            torch.from_numpy(columns).to(device),
            self.pick_after,
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=torch.from_numpy(attention).to(device),
            **options,
        )
        targets = torch.tensor([token for example in examples for token in example.targets], device=device)
        return torch.nn.functional.cross_entropy(logits, targets, reduction="sum")

    def _dev_f1(self, dev: Sequence[Question]) -> float:
        """Return the mean word F1 of the answers to the dev questions; an unusable question counts as 0."""
        self.network.eval()
        method = "masks" if self.model.kind == "masked" else self.settings.method
        answers = self.model.write_answers(dev, (method,))
        values = [word_f1(answer.text, dev[answer.index].answers) for answer in answers if answer.unusable is None]
        return sum(values) / len(dev)


def make_batches(examples: Sequence[Example], size: int, seed: int) -> list[list[Example]]:
    """Group examples into batches of similar length; the order depends on the seed and the ids alone."""

    def draw_order(example: Example) -> tuple[int, str]:
        return derived_seed(seed, example.question_id), example.question_id

    ordered = sorted(examples, key=draw_order)
    pool_size = size * BATCHES_SORTED_AT_ONCE
    batches = []
    for first in range(0, len(ordered), pool_size):
        pool_examples = sorted(
            ordered[first : first + pool_size], key=lambda example: (len(example.row), *draw_order(example))
        )
        batches += [pool_examples[start : start + size] for start in range(0, len(pool_examples), size)]
    return sorted(batches, key=lambda batch: draw_order(batch[0]))
