"""The training loop of soft prompts: examples, losses, steps, and the choice of the best epoch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.records import Question
from merkhet.metrics.ranks import expected_ranks
from merkhet.models.causal import CausalModel
from merkhet.models.extra_embeddings import get_extra_embeddings
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import FloatArray, IntArray
from merkhet.models.tokenize_candidates import TokenizedCandidates
from merkhet.training._optimization import accumulate_gradients, check_finite, linear_schedule
from merkhet.training._soft_prompt_scoring import ScoringPlan, plan_scoring, score_candidates

logger = logging.getLogger(__name__)

DEFAULT = -1
"""Stands for the default of the model's kind."""

Embeddings = dict[str, torch.Tensor]
"""The input embedding of each soft token."""


@dataclass(frozen=True)
class SoftSettings:
    """How soft prompts are learned; epochs, learning rate and loss are OntoProbe's."""

    epochs: int = 100
    learning_rate: float = 0.5
    warmup: float = 0.1
    """Share of all steps in which the learning rate rises."""
    weight_decay: float = 0.0
    batch_size: int = 10
    largest_gradient: float = 1.0
    """Maximum gradient norm."""
    loss: str = "bce"
    """Loss of the candidates' scores s (log-probabilities, pooled by ``method``).

    ``bce``: mean binary cross-entropy of σ(s) over all candidates. Since s < 0, it raises gold answers about as their
    own cross-entropy would, and lowers wrong ones as far as they are likely.
    ``nll``: cross-entropy of softmax(s), with each gold answer as an example.
    """
    method: str = ""
    """Scoring method; by default multiple-mean for masked models and mean for causal ones."""
    negatives: int = DEFAULT
    """Number of wrong candidates, drawn again for each question and epoch; 0 takes all. By default all for masked
    models, 31 for causal ones."""
    dev_every: int = DEFAULT
    """Number of epochs between evaluations on the dev questions with all candidates; by default 5 for masked models, 10
    for causal ones."""
    pseudowords: int = 0
    """Number of pairs of pseudowords for [X] and [Y], one pair an epoch."""
    alpha: float = 0.5
    """``alpha`` of the pseudowords."""
    compat: str = ""
    """``paper`` does as the code published with OntoProbe: the dev questions are scored by logits, and the pseudowords
    of models without a [MASK] lie around the unknown token."""


@dataclass(frozen=True)
class Example:
    """A question with its tokenized candidates."""

    question: Question
    candidates: TokenizedCandidates
    golds: IntArray
    """Numbers of the gold candidates."""
    wrong: IntArray
    """Numbers of the wrong candidates."""


@dataclass(frozen=True)
class _SampledExample:
    """An example with the candidates of one epoch."""

    plan: ScoringPlan
    targets: torch.Tensor
    """1 for gold candidates, 0 for wrong ones."""


def make_examples(
    model: MaskedModel | CausalModel, questions: Sequence[Question]
) -> tuple[list[Example], Counter[str]]:
    """Return the examples of all questions that can be learned, and the number of others by reason."""
    candidates_by_index, unusable = model.candidate_tokenizer.tokenize_questions(questions)
    skipped = Counter(str(result.unusable).partition(":")[0] for result in unusable)
    examples = []
    for index, candidates in candidates_by_index.items():
        is_gold = _is_gold(questions[index])
        if is_gold.any():
            examples.append(Example(questions[index], candidates, np.flatnonzero(is_gold), np.flatnonzero(~is_gold)))
        else:
            skipped["no right answer among the candidates"] += 1
    return examples, skipped


def _is_gold(question: Question) -> Any:
    answers = set(question.answers)
    return np.array([candidate in answers for candidate in question.candidates], dtype=np.bool_)


class SoftPromptTraining:
    """One training of soft prompts: the table of embeddings and its optimizer."""

    def __init__(
        self,
        model: MaskedModel | CausalModel,
        tokens: Sequence[str],
        pairs: torch.Tensor | None,
        settings: SoftSettings,
        seed: int,
        progress: Progress,
    ) -> None:
        self.model = model
        self.tokens = tokens
        self.pairs = pairs
        self.settings = settings
        self.seed = seed
        self.progress = progress
        self.table = get_extra_embeddings(model).table
        self.micro_batch = settings.batch_size
        self.optimizer = torch.optim.AdamW([self.table], lr=settings.learning_rate, weight_decay=settings.weight_decay)
        self.step = 0
        self._full_examples: dict[tuple[str, str], _SampledExample] = {}

    def run(
        self, examples: Sequence[Example], dev: Sequence[Question]
    ) -> tuple[list[dict[str, float]], int, Embeddings]:
        """Train.

        Returns:
            The loss and dev MRR_a of each epoch, the number of the epoch that is kept, and its embeddings.
        """
        settings, label = self.settings, f"{self.model.name}: learning"
        steps = settings.epochs * -(-len(examples) // settings.batch_size)
        epochs: list[dict[str, float]] = []
        best_score: tuple[float, float] | None = None
        best_epoch, embeddings = 0, self._embeddings()
        self.progress.start(label, settings.epochs * len(examples), "questions")
        try:
            for epoch in range(1, settings.epochs + 1):
                epochs.append({"loss": self._train_epoch(examples, epoch, steps, label)})
                if not dev or (epoch % settings.dev_every and epoch < settings.epochs):
                    continue
                epochs[-1]["dev_mrr_a"] = self._dev_mrr(dev)
                score = (epochs[-1]["dev_mrr_a"], -epochs[-1]["loss"])
                logger.info("%s, epoch %d: %s", label, epoch, epochs[-1])
                if best_score is None or score > best_score:
                    best_epoch, best_score, embeddings = epoch, score, self._embeddings()
        finally:
            self.progress.finish(label)
        return epochs, best_epoch or settings.epochs, embeddings if dev else self._embeddings()

    def _embeddings(self) -> Embeddings:
        """Return a copy of the current embeddings."""
        vectors = self.table.detach().cpu().clone()
        return {token: vectors[row].clone() for row, token in enumerate(self.tokens)}

    def _set_pair(self, pair: int) -> None:
        """Set the embeddings of [X] and [Y] to a pair of pseudowords."""
        if self.pairs is not None:
            with torch.no_grad():
                self.table[len(self.tokens) :] = self.pairs[pair % len(self.pairs)].to(self.table.device)

    def _train_epoch(self, examples: Sequence[Example], epoch: int, steps: int, label: str) -> float:
        settings, loss_sum, weight_sum = self.settings, 0.0, 0.0
        ordered = sorted(examples, key=lambda example: derived_seed(self.seed, epoch, example.question.question_id))
        for first in range(0, len(ordered), settings.batch_size):
            batch = [self._sample(example, epoch) for example in ordered[first : first + settings.batch_size]]
            for group in self.optimizer.param_groups:
                group["lr"] = settings.learning_rate * linear_schedule(self.step, steps, settings.warmup)
            self._set_pair(epoch - 1)
            weight = sum(float(sample.targets.sum()) if settings.loss == "nll" else 1.0 for sample in batch)
            loss, self.micro_batch = accumulate_gradients(batch, self.micro_batch, self._loss, weight, self.optimizer)
            check_finite(loss, label)
            assert self.table.grad is not None
            self.table.grad[len(self.tokens) :] = 0.0
            torch.nn.utils.clip_grad_norm_([self.table], settings.largest_gradient)
            self.optimizer.step()
            self.step += 1
            loss_sum, weight_sum = loss_sum + loss, weight_sum + weight
            self.progress.advance(label, len(batch))
        return loss_sum / weight_sum

    def _sample(self, example: Example, epoch: int) -> _SampledExample:
        """Return an example with the candidates of an epoch: all, or the gold ones and some wrong ones."""
        negatives = self.settings.negatives
        key = example.question.question_id, example.question.prompt
        if 0 < negatives < len(example.wrong):
            generator = np.random.default_rng(derived_seed(self.seed, "negatives", epoch, *key))
            return self._make_sample(
                example, np.sort(np.append(example.golds, generator.choice(example.wrong, negatives, replace=False)))
            )
        if key not in self._full_examples:
            self._full_examples[key] = self._make_sample(example, np.arange(len(example.candidates)))
        return self._full_examples[key]

    def _make_sample(self, example: Example, candidates: IntArray) -> _SampledExample:
        targets = torch.from_numpy(np.isin(candidates, example.golds).astype(np.float32)).to(self.table.device)
        return _SampledExample(
            plan_scoring(self.model, example.candidates, self.settings.method, candidates.tolist()), targets
        )

    def _loss(self, samples: Sequence[_SampledExample]) -> torch.Tensor:
        """Return the summed loss of some examples."""
        losses = []
        all_scores = score_candidates(self.model, [sample.plan for sample in samples], self.settings.method)
        for scores, sample in zip(all_scores, samples, strict=True):
            if self.settings.loss == "bce":
                losses.append(functional.binary_cross_entropy_with_logits(scores, sample.targets))
            else:
                losses.append(-(torch.log_softmax(scores, dim=0) * sample.targets).sum())
        return torch.stack(losses).sum()

    def _dev_mrr(self, dev: Sequence[Question]) -> float:
        """Return MRR_a: the mean of 1 / (mean rank of the gold answers); unusable questions count as 0.

        Each question has its own pair of pseudowords, the same in every epoch.
        """
        pairs = 1 if self.pairs is None else len(self.pairs)
        by_pair: dict[int, list[Question]] = {}
        for question in dev:
            by_pair.setdefault(derived_seed(self.seed, "pair", question.question_id) % pairs, []).append(question)
        total = 0.0
        for pair, questions in sorted(by_pair.items()):
            self._set_pair(pair)
            for index, scores in self._dev_scores(questions):
                golds = np.flatnonzero(_is_gold(questions[index]))
                if len(golds) and np.all(np.isfinite(scores)):
                    total += 1.0 / float(expected_ranks(scores, golds)[0].mean())
        return total / len(dev)

    def _dev_scores(self, questions: Sequence[Question]) -> Iterator[tuple[int, FloatArray]]:
        method = self.settings.method
        if self.settings.compat != "paper":
            for result in self.model.score_candidates(questions, (method,)):
                if result.by_method is not None:
                    yield result.index, result.by_method[method]
            return
        for index, candidates in self.model.candidate_tokenizer.tokenize_questions(questions)[0].items():
            with torch.inference_mode():
                plan = plan_scoring(self.model, candidates, method, range(len(candidates)))
                values = score_candidates(self.model, [plan], method, raw=True)[0]
            yield index, values.double().cpu().numpy()
