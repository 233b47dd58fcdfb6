"""The learning of soft prompts itself: examples, losses, steps, and which epoch is kept."""

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
from merkhet.training._optimization import backward_in_parts, check_finite, linear_schedule
from merkhet.training._soft_prompt_scoring import Asked, ask, score

logger = logging.getLogger(__name__)

AS_USUAL = -1

Words = dict[str, torch.Tensor]


@dataclass(frozen=True)
class SoftSettings:
    """How soft prompts are learned; epochs, learning rate and loss are OntoProbe's.

    Scores s of the candidates are log-probabilities, pooled as ``method`` says (multiple-mean for masked models, mean
    for causal ones, unless it is given). ``bce`` is the mean of the binary cross-entropies of σ(s) with what is right,
    over all candidates: since s is below 0, it raises right answers about as their own cross-entropy would, and
    lowers wrong ones as far as they are likely. ``nll`` is the cross-entropy of softmax(s), each right answer of a
    question being an example. ``negatives`` is how many wrong candidates take part, drawn anew for each question and
    epoch (0: all; as usual: all for masked models, 31 for causal ones).

    Every ``dev_every`` epochs (as usual: 5 for masked models, 10 for causal ones) the dev questions are asked, with all
    their candidates. Questions about [X] and [Y] are learned with so many pairs of ``pseudowords``, one pair an epoch;
    ``alpha`` is theirs. ``compat`` "paper" does as the code published with OntoProbe did: the dev questions are scored
    by logits instead of log-probabilities, and pseudowords of models without a [MASK] lie around the unknown token.
    """

    epochs: int = 100
    learning_rate: float = 0.5
    warmup: float = 0.1
    weight_decay: float = 0.0
    batch_size: int = 10
    largest_gradient: float = 1.0
    loss: str = "bce"
    method: str = ""
    negatives: int = AS_USUAL
    dev_every: int = AS_USUAL
    pseudowords: int = 0
    alpha: float = 0.5
    compat: str = ""


@dataclass(frozen=True)
class Example:
    """A question with its candidates in place; the numbers of those that are right, and of the others."""

    question: Question
    placed: TokenizedCandidates
    golds: IntArray
    wrong: IntArray


@dataclass(frozen=True)
class _Drawn:
    """An example with the candidates that take part, and which of them are right (1, else 0)."""

    asked: Asked
    targets: torch.Tensor


def make_examples(worn: MaskedModel | CausalModel, questions: Sequence[Question]) -> tuple[list[Example], Counter[str]]:
    """The questions that can be learned, placed, and why others are left out, counted by reason."""
    usable, unusable = worn.candidate_tokenizer.tokenize_questions(questions)
    skipped = Counter(str(one.unusable).partition(":")[0] for one in unusable)
    examples = []
    for index, placed in usable.items():
        right = _right(questions[index])
        if right.any():
            examples.append(Example(questions[index], placed, np.flatnonzero(right), np.flatnonzero(~right)))
        else:
            skipped["no right answer among the candidates"] += 1
    return examples, skipped


def _right(question: Question) -> Any:
    answers = set(question.answers)
    return np.array([text in answers for text in question.candidates], dtype=np.bool_)


class SoftLearning:
    """One learning: the table of embeddings, the optimizer and where it stands in its schedule."""

    def __init__(
        self,
        worn: MaskedModel | CausalModel,
        tokens: Sequence[str],
        pairs: torch.Tensor | None,
        settings: SoftSettings,
        seed: int,
        progress: Progress,
    ) -> None:
        self.worn = worn
        self.tokens = tokens
        self.pairs = pairs
        self.settings = settings
        self.seed = seed
        self.progress = progress
        self.table = get_extra_embeddings(worn).table
        self.at_once = settings.batch_size
        self.optimizer = torch.optim.AdamW([self.table], lr=settings.learning_rate, weight_decay=settings.weight_decay)
        self.step = 0
        self._whole: dict[tuple[str, str], _Drawn] = {}

    def run(self, examples: Sequence[Example], dev: Sequence[Question]) -> tuple[list[dict[str, float]], int, Words]:
        """Learn; returns each epoch's loss, and MRR_a on the dev questions, the epoch that was kept, and its words."""
        settings, label = self.settings, f"{self.worn.name}: learning"
        steps = settings.epochs * -(-len(examples) // settings.batch_size)
        epochs: list[dict[str, float]] = []
        best: tuple[float, float] | None = None
        kept, words = 0, self._words()
        self.progress.start(label, settings.epochs * len(examples), "questions")
        try:
            for epoch in range(1, settings.epochs + 1):
                epochs.append({"loss": self._epoch(examples, epoch, steps, label)})
                if not dev or (epoch % settings.dev_every and epoch < settings.epochs):
                    continue
                epochs[-1]["dev_mrr_a"] = self._mrr_a(dev)
                found = (epochs[-1]["dev_mrr_a"], -epochs[-1]["loss"])
                logger.info("%s, epoch %d: %s", label, epoch, epochs[-1])
                if best is None or found > best:
                    kept, best, words = epoch, found, self._words()
        finally:
            self.progress.finish(label)
        return epochs, kept or settings.epochs, words if dev else self._words()

    def _words(self) -> Words:
        """The tokens with their embeddings as they are now."""
        vectors = self.table.detach().cpu().clone()
        return {token: vectors[row].clone() for row, token in enumerate(self.tokens)}

    def _use(self, pair: int) -> None:
        """Let [X] and [Y] be this pair of pseudowords."""
        if self.pairs is not None:
            with torch.no_grad():
                self.table[len(self.tokens) :] = self.pairs[pair % len(self.pairs)].to(self.table.device)

    def _epoch(self, examples: Sequence[Example], epoch: int, steps: int, label: str) -> float:
        settings, total, weights = self.settings, 0.0, 0.0
        order = sorted(examples, key=lambda one: derived_seed(self.seed, epoch, one.question.question_id))
        for first in range(0, len(order), settings.batch_size):
            batch = [self._drawn(one, epoch) for one in order[first : first + settings.batch_size]]
            for group in self.optimizer.param_groups:
                group["lr"] = settings.learning_rate * linear_schedule(self.step, steps, settings.warmup)
            self._use(epoch - 1)
            weight = sum(float(one.targets.sum()) if settings.loss == "nll" else 1.0 for one in batch)
            loss, self.at_once = backward_in_parts(batch, self.at_once, self._loss, weight, self.optimizer)
            check_finite(loss, label)
            assert self.table.grad is not None
            self.table.grad[len(self.tokens) :] = 0.0
            torch.nn.utils.clip_grad_norm_([self.table], settings.largest_gradient)
            self.optimizer.step()
            self.step += 1
            total, weights = total + loss, weights + weight
            self.progress.advance(label, len(batch))
        return total / weights

    def _drawn(self, one: Example, epoch: int) -> _Drawn:
        """An example with the candidates of this epoch: all, or the right ones and some wrong ones."""
        few = self.settings.negatives
        name = one.question.question_id, one.question.prompt
        if 0 < few < len(one.wrong):
            draw = np.random.default_rng(derived_seed(self.seed, "negatives", epoch, *name))
            return self._with(one, np.sort(np.append(one.golds, draw.choice(one.wrong, few, replace=False))))
        if name not in self._whole:
            self._whole[name] = self._with(one, np.arange(len(one.placed)))
        return self._whole[name]

    def _with(self, one: Example, chosen: IntArray) -> _Drawn:
        targets = torch.from_numpy(np.isin(chosen, one.golds).astype(np.float32)).to(self.table.device)
        return _Drawn(ask(self.worn, one.placed, self.settings.method, chosen.tolist()), targets)

    def _loss(self, some: Sequence[_Drawn]) -> torch.Tensor:
        """The sum of the losses of some examples."""
        losses = []
        scores = score(self.worn, [one.asked for one in some], self.settings.method)
        for values, one in zip(scores, some, strict=True):
            if self.settings.loss == "bce":
                losses.append(functional.binary_cross_entropy_with_logits(values, one.targets))
            else:
                losses.append(-(torch.log_softmax(values, dim=0) * one.targets).sum())
        return torch.stack(losses).sum()

    def _mrr_a(self, dev: Sequence[Question]) -> float:
        """Mean over the dev questions of one over the mean rank of the right answers; what cannot be asked counts 0.

        Each question is asked with a pair of pseudowords of its own, the same in every epoch.
        """
        pairs = 1 if self.pairs is None else len(self.pairs)
        by_pair: dict[int, list[Question]] = {}
        for question in dev:
            by_pair.setdefault(derived_seed(self.seed, "pair", question.question_id) % pairs, []).append(question)
        total = 0.0
        for pair, some in sorted(by_pair.items()):
            self._use(pair)
            for index, scores in self._dev_scores(some):
                golds = np.flatnonzero(_right(some[index]))
                if len(golds) and np.all(np.isfinite(scores)):
                    total += 1.0 / float(expected_ranks(scores, golds)[0].mean())
        return total / len(dev)

    def _dev_scores(self, some: Sequence[Question]) -> Iterator[tuple[int, FloatArray]]:
        method = self.settings.method
        if self.settings.compat != "paper":
            for result in self.worn.score_candidates(some, (method,)):
                if result.by_method is not None:
                    yield result.index, result.by_method[method]
            return
        for index, placed in self.worn.candidate_tokenizer.tokenize_questions(some)[0].items():
            with torch.inference_mode():
                asked = ask(self.worn, placed, method, range(len(placed)))
                values = score(self.worn, [asked], method, raw=True)[0]
            yield index, values.double().cpu().numpy()
