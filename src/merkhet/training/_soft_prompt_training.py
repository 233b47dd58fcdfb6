"""Training task of soft prompts: examples, losses, and evaluation on dev questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch.nn import functional

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.core.settings import Bounds, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from merkhet.metrics.ranks import GoldRanks, expected_ranks
from merkhet.metrics.tie_expectations import expected_reciprocal_mean_rank
from merkhet.models.causal import CausalModel
from merkhet.models.extra_embeddings import get_extra_embeddings
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import FloatArray, IntArray
from merkhet.models.tokenize_candidates import TokenizedCandidates
from merkhet.training._soft_prompt_scoring import ScoringPlan, plan_scoring, score_candidates
from merkhet.training._training_task import AutogradTask
from merkhet.training.artifact import LearnerSettings

DEFAULT = -1
"""Setting value that selects the default for the kind of model."""

Embeddings = dict[str, torch.Tensor]
"""Input embeddings by soft token."""


@dataclass(frozen=True)
class SoftSettings(LearnerSettings):
    """Settings for learning soft prompts; the defaults for epochs, learning rate and loss are from OntoProbe."""

    epochs: PositiveInt = 100
    learning_rate: PositiveFloat = 0.5
    warmup: Share = 0.1
    """Share of all steps during which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 10
    largest_gradient: PositiveFloat = 1.0
    """Maximum gradient norm."""
    loss: Literal["bce", "nll"] = "bce"
    """Loss of the candidate scores s (log-probabilities, pooled by ``method``).

    ``bce``: mean binary cross-entropy of σ(s) over all candidates. Since s < 0, this loss raises gold answers about as
    much as cross-entropy does, and lowers wrong candidates in proportion to their probability.
    ``nll``: cross-entropy of softmax(s), with each gold answer as a separate example.
    """
    method: str = ""
    """Scoring method; by default ``multiple-mean`` for masked models and ``mean`` for causal models."""
    negatives: Annotated[int, Bounds(ge=DEFAULT)] = DEFAULT
    """Number of wrong candidates drawn for each question in each epoch; 0 uses all wrong candidates.

    The default is 0 for masked models and 31 for causal models.
    """
    dev_every: Literal[-1] | PositiveInt = DEFAULT
    """Number of epochs between evaluations on the dev questions, which use all candidates.

    The default is 5 for masked models and 10 for causal models.
    """
    pseudowords: NonNegativeInt = 0
    """Number of pseudoword pairs for [X] and [Y]; each epoch uses one pair, in turn."""
    alpha: PositiveFloat = 0.5
    """Distance of a pseudoword from its central token, as a share of the distance to the nearest word."""
    compat: Literal["", "paper"] = ""
    """``paper`` reproduces OntoProbe's published code.

    Dev questions are then scored by logits. For models without [MASK], pseudowords are drawn around the unknown token.
    """


@dataclass(frozen=True)
class Example:
    """A training question with its tokenized candidates."""

    question: Question
    candidates: TokenizedCandidates
    golds: IntArray
    """Indices of the gold candidates."""
    wrong: IntArray
    """Indices of the wrong candidates."""


@dataclass(frozen=True)
class _SampledExample:
    """An example restricted to the candidates that one epoch uses."""

    plan: ScoringPlan
    targets: torch.Tensor
    """1 for gold candidates, 0 for wrong candidates."""
    golds: int
    """Number of gold candidates."""


def make_examples(
    model: MaskedModel | CausalModel, questions: Sequence[Question]
) -> tuple[list[Example], Counter[str]]:
    """Return the examples of all usable questions, and the number of skipped questions by reason."""
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


def _nll(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return -(torch.log_softmax(scores, dim=0) * targets).sum()


def _is_gold(question: Question) -> Any:
    answers = set(question.answers)
    return np.array([candidate in answers for candidate in question.candidates], dtype=np.bool_)


class SoftPromptTask(AutogradTask[list[_SampledExample]]):
    """The training of soft-prompt embeddings for a frozen model, evaluated on dev questions."""

    score_name = "dev_mrr_a"

    def __init__(
        self,
        model: MaskedModel | CausalModel,
        tokens: Sequence[str],
        pairs: torch.Tensor | None,
        examples: Sequence[Example],
        dev: Sequence[Question],
        settings: SoftSettings,
        seed: int,
    ) -> None:
        self.model, self.tokens, self.pairs = model, tokens, pairs
        self.examples, self.dev, self.seed = examples, dev, seed
        self.table = get_extra_embeddings(model).table
        prompts = torch.nn.ParameterDict({"table": self.table})
        super().__init__(f"{model.name}: learning", settings, {"prompts": prompts}, examples=len(examples))
        self._full_examples: dict[tuple[str, str], _SampledExample] = {}

    def embeddings(self) -> Embeddings:
        """Return a copy of the current embeddings of all soft tokens."""
        vectors = self.table.detach().cpu().clone()
        return {token: vectors[row].clone() for row, token in enumerate(self.tokens)}

    def batches(self, epoch: int, start: int) -> Iterator[list[_SampledExample]]:
        """Yield the batches of an epoch, with the questions shuffled and their candidates drawn for this epoch.

        The pseudowords of the epoch are set before each batch.
        """
        ordered = sorted(self.examples, key=lambda e: derived_seed(self.seed, epoch, e.question.question_id))
        for first in range(start * self.batch_size, len(ordered), self.batch_size):
            self._set_pair(epoch - 1)
            yield [self.sample(example, epoch) for example in ordered[first : first + self.batch_size]]

    def weight(self, batch: Sequence[_SampledExample]) -> float:
        """Return the divisor of the summed loss: the number of gold answers (``nll``) or of questions (``bce``)."""
        return sum(sample.golds if self.settings.loss == "nll" else 1 for sample in batch)

    def loss(self, batch: Sequence[_SampledExample]) -> torch.Tensor:
        """Return the loss summed over the examples of ``batch``."""
        compute_loss = functional.binary_cross_entropy_with_logits if self.settings.loss == "bce" else _nll
        all_scores = score_candidates(self.model, [sample.plan for sample in batch], self.settings.method)
        pairs = zip(all_scores, batch, strict=True)
        return torch.stack([compute_loss(scores, sample.targets) for scores, sample in pairs]).sum()

    def backward(self, batch: list[_SampledExample], rows: slice, micro_batch: int) -> torch.Tensor:
        """Compute the gradients of the soft tokens, and set those of the pseudowords to 0."""
        losses = super().backward(batch, rows, micro_batch)
        if self.table.grad is not None:
            self.table.grad[len(self.tokens) :] = 0.0
        return losses

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        """Return MRR_a on the dev questions: the mean of 1 / (mean rank of the gold answers), expected over ties.

        Unusable questions count as 0. A question is scored with the same pair of pseudowords in all epochs. Return None
        if this epoch is not evaluated.
        """
        if not self.dev or (epoch % self.settings.dev_every and epoch < self.epochs):
            return None
        pairs = 1 if self.pairs is None else len(self.pairs)
        by_pair: dict[int, list[Question]] = {}
        for question in self.dev:
            by_pair.setdefault(derived_seed(self.seed, "pair", question.question_id) % pairs, []).append(question)
        ranks: list[list[float]] = []
        ties: list[list[int]] = []
        for pair, questions in sorted(by_pair.items()):
            self._set_pair(pair)
            for index, scores in self._dev_scores(questions):
                golds = np.flatnonzero(_is_gold(questions[index]))
                if len(golds) and np.all(np.isfinite(scores)):
                    gold_ranks, gold_ties = expected_ranks(scores, golds)
                    ranks.append(gold_ranks.tolist())
                    ties.append(gold_ties.tolist())
        return float(expected_reciprocal_mean_rank(GoldRanks.from_lists(ranks, ties)).sum()) / len(self.dev)

    def _set_pair(self, pair: int) -> None:
        """Set the embeddings of [X] and [Y] to the pseudoword pair with index ``pair``, modulo the number of pairs."""
        if self.pairs is not None:
            with torch.no_grad():
                self.table[len(self.tokens) :] = self.pairs[pair % len(self.pairs)].to(self.device)

    def sample(self, example: Example, epoch: int) -> _SampledExample:
        """Return an example with the candidates of an epoch: all, or the gold answers and ``negatives`` wrong ones."""
        negatives = self.settings.negatives
        key = example.question.question_id, example.question.prompt
        if 0 < negatives < len(example.wrong):
            generator = np.random.default_rng(derived_seed(self.seed, "negatives", epoch, *key))
            wrong = generator.choice(example.wrong, negatives, replace=False)
            return self._make_sample(example, np.sort(np.append(example.golds, wrong)))
        if key not in self._full_examples:
            self._full_examples[key] = self._make_sample(example, np.arange(len(example.candidates)))
        return self._full_examples[key]

    def _make_sample(self, example: Example, candidates: IntArray) -> _SampledExample:
        targets = torch.from_numpy(np.isin(candidates, example.golds).astype(np.float32)).to(self.device)
        plan = plan_scoring(self.model, example.candidates, self.settings.method, candidates.tolist())
        return _SampledExample(plan, targets, len(example.golds))

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
