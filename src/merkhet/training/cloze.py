"""Cloze tuning: fine-tuning of a model to write the answers to questions.

The prompts have the same form in training and in evaluation. A masked model reads masks in the slot, and learns to
predict the tokens of the answer there, followed by padding. A causal model reads the prompt, and learns to write the
answer and an end token. The tokens of the question do not contribute to the loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.records import Question
from merkhet.core.settings import NonNegativeFloat, PositiveFloat, PositiveInt, Share, make_settings
from merkhet.metrics.text_overlap import word_f1
from merkhet.models.causal import CausalModel
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import ANSWER_LENGTH, Model
from merkhet.models.tokenize_candidates import UnusableError
from merkhet.training._optimization import seeded
from merkhet.training._question_training import QuestionTraining
from merkhet.training._token_rows import TokenBatch, TokenRow
from merkhet.training._trainer import EarlyStopping, Trainer
from merkhet.training._training_task import AutogradTask
from merkhet.training.artifact import (
    LearnerSettings,
    TrainingArtifact,
    check_artifact_folder,
    save_model_artifact,
)

BATCHES_SORTED_AT_ONCE = 32
"""Number of batches whose examples are pooled and sorted by length."""


@dataclass(frozen=True)
class ClozeSettings(LearnerSettings):
    """Settings of cloze tuning; the defaults are common values for models of BERT's size."""

    epochs: PositiveInt = 10
    """Maximum number of epochs."""
    batch_size: PositiveInt = 32
    learning_rate: PositiveFloat = 5e-5
    warmup: Share = 0.1
    """Share of all steps during which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.01
    largest_gradient: PositiveFloat = 1.0
    """Maximum gradient norm."""
    patience: PositiveInt = 2
    """Number of epochs without a better score on the dev questions after which the training ends."""
    dev_limit: PositiveInt = 500
    """Maximum number of dev questions; if there are more, a random sample is used."""
    method: Literal["continue", "chat"] = "continue"
    """Form of the prompt for a causal model: text to continue, or a chat message."""


@dataclass(frozen=True)
class Example(TokenRow):
    """The tokens of a training question, with the tokens of its answer as targets."""

    question_id: str


def tune_cloze(
    model: Model,
    training: Sequence[Question],
    folder: Path,
    *,
    dev: Sequence[Question] = (),
    settings: Mapping[str, Any] | ClozeSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    checkpoints: Path | None = None,
) -> TrainingArtifact:
    """Fine-tune a loaded model on the ``training`` questions, and save it in ``folder``.

    The weights of ``model`` are changed in place. With ``dev`` questions, the weights of the best epoch are kept.
    Unusable questions (too many tokens, unknown tokens) are left out and counted. On a CPU the weights depend only on
    the questions, the settings and the seed, not on the order of the questions or on interruptions. ``checkpoints`` is
    a folder for the checkpoint, which is removed at the end.

    Raises:
        InputError: the model has no weights to tune, or no question is usable.
    """
    chosen = make_settings(ClozeSettings, settings)
    check_artifact_folder(folder)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which has no weights to tune; leave it out of learning")
    dev = sorted(dev, key=lambda question: (derived_seed(seed, "dev", question.question_id), question.question_id))
    run = QuestionTraining("cloze", model, training, dev[: chosen.dev_limit], chosen, seed)
    examples, skipped = make_examples(model, training, chosen)
    run.require_examples(examples, skipped)
    schedule = run.make_schedule(checkpoints)
    with seeded(derived_seed(seed, "cloze"), exact=model.model.device.type == "cpu"):
        state = Trainer(
            ClozeTask(model, examples, run.dev, chosen, seed),
            progress,
            stopping=EarlyStopping(until=1.0, patience=chosen.patience, keep_best=True),
            checkpoints=schedule,
        ).run()
    return save_model_artifact(model, folder, run.make_record(state, examples, skipped), schedule)


def make_examples(
    model: MaskedModel | CausalModel, questions: Sequence[Question], settings: ClozeSettings
) -> tuple[list[Example], Counter[str]]:
    """Return the examples of all usable questions, and the number of skipped questions by reason."""
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
        return Example(row, tuple(range(first, first + ANSWER_LENGTH)), targets, question.question_id)
    prompt, targets = model.writer.prompts.answer_tokens(question, settings.method, ANSWER_LENGTH)
    row = (*prompt, *targets[:-1])  # Nothing is predicted after the last target, so it is not an input.
    return Example(row, tuple(range(len(prompt) - 1, len(row))), targets, question.question_id)


class ClozeTask(AutogradTask[list[Example]]):
    """The fine-tuning of a model on cloze examples, evaluated on dev questions."""

    score_name = "dev_f1"

    def __init__(
        self,
        model: MaskedModel | CausalModel,
        examples: Sequence[Example],
        dev: Sequence[Question],
        settings: ClozeSettings,
        seed: int,
    ) -> None:
        self.model, self.examples, self.dev, self.seed = model, examples, dev, seed
        self.network = model.model.float()
        self.pick_after = model.pick_after if isinstance(model, MaskedModel) else None
        self.pad = model.pad if isinstance(model, MaskedModel) else 0
        super().__init__(
            *(f"{model.name}: learning", settings, {"network": self.network}),
            examples=len(examples),
            decay_vectors=False,
        )

    def batches(self, epoch: int, start: int) -> list[list[Example]]:
        """Return the batches of an epoch from the index ``start`` on, each with examples of similar length."""
        return make_batches(self.examples, self.batch_size, derived_seed(self.seed, epoch))[start:]

    def weight(self, batch: Sequence[Example]) -> float:
        """Return the number of target tokens in a batch."""
        return sum(len(example.targets) for example in batch)

    def loss(self, batch: Sequence[Example]) -> torch.Tensor:
        """Return the cross-entropy summed over all target tokens."""
        tokens = TokenBatch.pad(batch, self.pad, self.device)
        options = {"use_cache": False} if self.model.kind == "causal" else {}
        logits = tokens.logits(self.network, self.pick_after, **options)
        return torch.nn.functional.cross_entropy(logits, tokens.targets, reduction="sum")

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        """Return the mean word F1 of the model's answers to the dev questions, or None without dev questions.

        An unusable question counts as 0.
        """
        if not self.dev:
            return None
        method = "masks" if self.model.kind == "masked" else self.settings.method
        answers = self.model.write_answers(self.dev, (method,))
        values = [word_f1(answer.text, self.dev[answer.index].answers) for answer in answers if answer.unusable is None]
        return sum(values) / len(self.dev)


def make_batches(examples: Sequence[Example], size: int, seed: int) -> list[list[Example]]:
    """Group examples of similar length into batches of ``size``, in random order.

    The order depends only on the seed and the question ids, not on the order of ``examples``.
    """

    def draw_order(example: Example) -> tuple[int, str]:
        return derived_seed(seed, example.question_id), example.question_id

    ordered = sorted(examples, key=draw_order)
    pool_size = size * BATCHES_SORTED_AT_ONCE
    batches = []
    for first in range(0, len(ordered), pool_size):
        pool_examples = sorted(
            ordered[first : first + pool_size], key=lambda example: (len(example.ids), *draw_order(example))
        )
        batches += [pool_examples[start : start + size] for start in range(0, len(pool_examples), size)]
    return sorted(batches, key=lambda batch: draw_order(batch[0]))
