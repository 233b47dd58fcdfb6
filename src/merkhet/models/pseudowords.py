"""Pseudowords: extra words without meaning that replace the entities of a hypothesis.

The embedding of a pseudoword is nearer to the mask's embedding than that of any vocabulary entry. Its distance is

.. math:: d = \\alpha \\cdot \\min_{t \\in V} \\lVert z_t - z_{[MASK]} \\rVert_2

with 0 < α < 1. The direction is random, and any two pseudowords are at least d apart. If a model has no mask token, the
mean of all embeddings replaces the mask's embedding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed, digest
from merkhet.core.records import Question
from merkhet.models.causal import CausalModel
from merkhet.models.extra_embeddings import get_base_embedding, with_extra_words
from merkhet.models.masked import MaskedModel
from merkhet.models.placeholders import PSEUDOWORD_MARKS, PseudowordSettings
from merkhet.models.protocol import CandidateScores, FloatArray

_MAX_DRAWS = 10_000


class PseudowordModel:
    """A model that scores a question with [X] or [Y] once per pair of pseudowords.

    Each pair replaces the two placeholders, and its number is the ``repeat`` of the scores. Questions without
    placeholders are scored once, unchanged.
    """

    def __init__(
        self,
        model: MaskedModel | CausalModel,
        settings: PseudowordSettings | None = None,
        words: dict[str, torch.Tensor] | None = None,
    ) -> None:
        self.settings = settings or PseudowordSettings()
        points = pseudoword_embeddings(model, self.settings)
        names = [_name(mark, pair) for pair in range(self.settings.pairs) for mark in PSEUDOWORD_MARKS]
        pseudowords = {name: torch.from_numpy(point).float() for name, point in zip(names, points, strict=True)}
        self.inner = with_extra_words(model, {**(words or {}), **pseudowords})
        self.name = model.name
        self.kind = model.kind
        self.methods = model.methods
        self.fingerprint = digest(["pseudowords", self.inner.fingerprint])

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each question with each pair of pseudowords."""
        asked: list[Question] = []
        origins: list[tuple[int, int | None]] = []
        for index, question in enumerate(questions):
            pairs = range(self.settings.pairs) if any(mark in question.prompt for mark in PSEUDOWORD_MARKS) else (None,)
            for pair in pairs:
                asked.append(question if pair is None else replace(question, prompt=_with_pair(question.prompt, pair)))
                origins.append((index, pair))
        for scores in self.inner.score_candidates(asked, methods):
            index, pair = origins[scores.index]
            yield replace(scores, index=index, repeat=pair)

    @property
    def work(self) -> dict[str, int]:
        """The work counters of the underlying model, for all pairs together."""
        return self.inner.work

    def describe(self) -> dict[str, str | int | float]:
        """Describe the underlying model and the settings of its pseudowords."""
        settings = self.settings
        return {**self.inner.describe(), "pseudoword_pairs": settings.pairs, "pseudoword_alpha": settings.alpha}


def pseudoword_embeddings(model: MaskedModel | CausalModel, settings: PseudowordSettings) -> FloatArray:
    """Draw the embeddings of two pseudowords per pair, in float64.

    They are equal on every machine for equal weights and settings.

    Raises:
        InputError: The embedding space has no room for so many pseudowords.
    """
    vocabulary = len((model.original or model).tokenizer)
    table = get_base_embedding(model).weight.detach().double().cpu().numpy()[:vocabulary]
    centre = _centre(model, table, settings.centre)
    distances = np.linalg.norm(table - centre, axis=1)
    positive = distances[distances > 0]
    if not len(positive):
        raise InputError(
            f"{model.name}: all its embeddings are equal, so there is no room for pseudowords; use a trained model"
        )
    radius = settings.alpha * float(positive.min())
    random = np.random.default_rng(derived_seed(settings.seed, "pseudowords"))
    points: list[FloatArray] = []
    for _ in range(_MAX_DRAWS):
        direction = random.standard_normal(table.shape[1])
        length = float(np.linalg.norm(direction))
        if length == 0:
            continue
        point = centre + radius * direction / length
        if all(np.linalg.norm(point - other) >= radius for other in points):
            points.append(point)
        if len(points) == 2 * settings.pairs:
            return np.stack(points)
    raise InputError(
        f"{model.name}: there is no room for {settings.pairs} pairs of pseudowords in {table.shape[1]} dimensions; "
        "ask for fewer pairs"
    )


def _centre(model: MaskedModel | CausalModel, table: FloatArray, centre_token: str) -> FloatArray:
    tokenizer = model.tokenizer
    token = tokenizer.mask_token_id if centre_token == "mask" else tokenizer.unk_token_id
    # The published code looks up "[MASK]" in every vocabulary and gets the unknown token if there is none.
    if centre_token == "unknown" and tokenizer.mask_token == "[MASK]":
        token = tokenizer.mask_token_id
    centre: FloatArray = table.mean(axis=0) if token is None else table[int(token)]
    return centre


def _name(mark: str, pair: int) -> str:
    return f"[{mark.strip('[]')}:{pair}]"


def _with_pair(prompt: str, pair: int) -> str:
    for mark in PSEUDOWORD_MARKS:
        prompt = prompt.replace(mark, _name(mark, pair))
    return prompt
