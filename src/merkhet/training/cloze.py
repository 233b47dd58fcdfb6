"""Cloze tuning: a model learns to write the answers of questions, in the very form in which it will be asked.

A masked model sees the slot as masks and learns the answer's tokens there, followed by padding; a causal model sees
the text that it is asked with and learns the answer that follows and its end. Nothing else is learned: no token of
the question counts.
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
from merkhet.training._optimization import backward_in_parts, check_finite, check_settings, linear_schedule, seeded
from merkhet.training.artifact import TrainingArtifact, make_settings, refuse_other_files, save_model_artifact

logger = logging.getLogger(__name__)

BATCHES_SORTED_AT_ONCE = 32


@dataclass(frozen=True)
class ClozeSettings:
    """How a model is tuned; the defaults are what models of BERT's size are usually fine-tuned with.

    With dev questions (at most ``dev_limit``, drawn by the seed) the weights of the best epoch are kept, and tuning
    ends when so many epochs (``patience``) have brought nothing. ``method`` is the way a causal model is asked.
    """

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 5e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    patience: int = 2
    dev_limit: int = 500
    method: str = "continue"


@dataclass(frozen=True)
class Example:
    """A row of tokens and what is to be learned: the target at each of some columns."""

    question_id: str
    row: Row
    columns: tuple[int, ...]
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
    """Tune a loaded model on questions and save it; its weights are changed in place.

    Questions whose answer has too many pieces, or tokens that the model does not know, are left out and counted. On a
    CPU the same questions, settings and seed give the same weights, whatever the order of the questions. Refuses a
    model that has no weights to tune, and questions none of which can be learned.
    """
    chosen = settings if isinstance(settings, ClozeSettings) else make_settings(ClozeSettings, settings or {})
    _check(chosen)
    refuse_other_files(folder)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which has no weights to tune; leave it out of tuning")
    examples, skipped = make_examples(model, training, chosen)
    if not examples:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.items()) or "there is none"
        raise InputError(f"{model.name} can learn from none of the {len(training)} training questions: {reasons}")
    dev = sorted(dev, key=lambda one: (derived_seed(seed, "dev", one.question_id), one.question_id))[: chosen.dev_limit]
    with seeded(derived_seed(seed, "cloze"), exact=model.model.device.type == "cpu"):
        epochs, kept = _Tuning(model, chosen, seed, progress or SilentProgress()).run(examples, dev)
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
        "kept_epoch": kept,
    }
    return save_model_artifact(model, model.kind, folder, record)


def make_examples(
    model: MaskedModel | CausalModel, questions: Sequence[Question], settings: ClozeSettings
) -> tuple[list[Example], Counter[str]]:
    """What there is to learn in each question, and why some questions are left out, counted by reason."""
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
    row = (*prompt, *targets[:-1])  # The last token predicts nothing that is learned.
    return Example(question.question_id, row, tuple(range(len(prompt) - 1, len(row))), targets)


def _check(settings: ClozeSettings) -> None:
    check_settings(settings, ("epochs", "batch_size", "patience", "dev_limit", "learning_rate", "largest_gradient"))
    if settings.method not in CausalModel.writing_methods:
        raise InputError(f"the setting method of learning is {settings.method!r}, and should be continue or chat")


class _Tuning:
    """One tuning: the optimizer, where it stands in its schedule, and the best weights so far."""

    def __init__(
        self, model: MaskedModel | CausalModel, settings: ClozeSettings, seed: int, progress: Progress
    ) -> None:
        self.model = model
        self.network = model.model.float()
        self.settings = settings
        self.seed = seed
        self.progress = progress
        self.early = model.pick_after if isinstance(model, MaskedModel) else None
        self.pad = model.pad if isinstance(model, MaskedModel) else 0
        self.at_once = settings.batch_size
        decayed = [p for p in self.network.parameters() if p.requires_grad and p.ndim > 1]
        others = [p for p in self.network.parameters() if p.requires_grad and p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}],
            lr=settings.learning_rate,
        )
        self.step = 0

    def run(self, examples: Sequence[Example], dev: Sequence[Question]) -> tuple[list[dict[str, float]], int]:
        """Tune; returns each epoch's loss, and F1 on the dev questions, and the epoch whose weights were kept."""
        settings, label = self.settings, f"{self.model.name}: learning"
        self.progress.start(label, settings.epochs * len(examples), "questions")
        steps = settings.epochs * math.ceil(len(examples) / settings.batch_size)
        epochs: list[dict[str, float]] = []
        best: tuple[float, float] | None = None
        kept, weights, waited = 0, None, 0
        try:
            for epoch in range(1, settings.epochs + 1):
                epochs.append({"loss": self._epoch(examples, epoch, steps, label)})
                if not dev:
                    kept = epoch
                    continue
                epochs[-1]["dev_f1"] = self._f1(dev)
                found = (epochs[-1]["dev_f1"], -epochs[-1]["loss"])
                logger.info("%s, epoch %d: %s", label, epoch, epochs[-1])
                waited = 0 if best is None or found[0] > best[0] else waited + 1
                if best is None or found > best:
                    kept, best = epoch, found
                    weights = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
                if found[0] == 1.0 or (waited >= settings.patience and best[0] > 0):
                    break
        finally:
            self.network.eval()
            self.progress.finish(label)
        if weights is not None:
            self.network.load_state_dict(weights)
        return epochs, kept

    def _epoch(self, examples: Sequence[Example], epoch: int, steps: int, label: str) -> float:
        self.network.train()
        total, count = 0.0, 0
        for batch in batches_of(examples, self.settings.batch_size, derived_seed(self.seed, epoch)):
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * linear_schedule(self.step, steps, self.settings.warmup)
            total += self._backward(batch)
            count += sum(len(one.targets) for one in batch)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.largest_gradient)
            self.optimizer.step()
            self.step += 1
            self.progress.advance(label, len(batch))
        check_finite(total, label)
        return total / count

    def _backward(self, batch: Sequence[Example]) -> float:
        """The gradients of a batch; returns the sum of its losses."""
        count = sum(len(one.targets) for one in batch)
        losses, self.at_once = backward_in_parts(batch, self.at_once, self._loss, count, self.optimizer)
        return losses

    def _loss(self, some: Sequence[Example]) -> torch.Tensor:
        """The sum of the cross-entropies of all targets."""
        longest, device = max(len(one.row) for one in some), self.network.device
        ids = np.full((len(some), longest), self.pad, dtype=np.int64)
        seen = np.zeros((len(some), longest), dtype=np.int64)
        for line, one in enumerate(some):
            ids[line, : len(one.row)] = one.row
            seen[line, : len(one.row)] = 1
        lines = np.repeat(np.arange(len(some)), [len(one.columns) for one in some])
        columns = np.concatenate([one.columns for one in some]).astype(np.int64)
        options = {"use_cache": False} if self.model.kind == "causal" else {}
        logits = logits_at(
            self.network,
            torch.from_numpy(lines).to(device),
            torch.from_numpy(columns).to(device),
            self.early,
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=torch.from_numpy(seen).to(device),
            **options,
        )
        targets = torch.tensor([token for one in some for token in one.targets], device=device)
        return torch.nn.functional.cross_entropy(logits, targets, reduction="sum")

    def _f1(self, dev: Sequence[Question]) -> float:
        """Mean word F1 of what is written for the dev questions; what cannot be asked counts as 0."""
        self.network.eval()
        way = "masks" if self.model.kind == "masked" else self.settings.method
        written = self.model.write_answers(dev, (way,))
        values = [word_f1(one.text, dev[one.index].answers) for one in written if one.unusable is None]
        return sum(values) / len(dev)


def batches_of(examples: Sequence[Example], size: int, seed: int) -> list[list[Example]]:
    """Examples in batches of about equal lengths, in an order drawn by the seed and their ids alone."""

    def drawn(one: Example) -> tuple[int, str]:
        return derived_seed(seed, one.question_id), one.question_id

    order = sorted(examples, key=drawn)
    pool = size * BATCHES_SORTED_AT_ONCE
    batches = []
    for first in range(0, len(order), pool):
        some = sorted(order[first : first + pool], key=lambda one: (len(one.row), *drawn(one)))
        batches += [some[start : start + size] for start in range(0, len(some), size)]
    return sorted(batches, key=lambda batch: drawn(batch[0]))
