"""Baseline that answers by word association: the similarity of names by a model's input embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from merkhet.core.errors import InputError
from merkhet.models.model_lookup import ModelSpec, ResolvedModel, require_models_extra, resolve_model
from merkhet.models.name_similarity import NameSimilarityBaseline
from merkhet.models.protocol import ASSOCIATION_PREFIX, FloatArray

if TYPE_CHECKING:
    from merkhet.models._input_embeddings import InputEmbeddings

DEFAULT_MODEL = "minilm-mlm"
_MAX_CACHED = 2**17
"""Maximum number of texts whose tokens are cached, and of token rows whose embeddings are."""


class AssociationBaseline(NameSimilarityBaseline):
    """Baseline that compares names by the input embeddings of a model, without a forward pass.

    What it gets right does not measure knowledge of a fact: the embeddings know which words occur together. The
    similarity of two names is the cosine of their embeddings. A name's embedding is the mean over its tokens, centred
    on the mean of the vocabulary, with each token's scaled to length 1.

    Args:
        model: The model whose embeddings are read; by default one that comes with merkhet.
        name: The baseline's name in tables.
    """

    def __init__(self, model: ResolvedModel | str = DEFAULT_MODEL, name: str = "association") -> None:
        resolved = resolve_model(ModelSpec(model)) if isinstance(model, str) else model
        if not has_embeddings(resolved):
            raise InputError(
                f"{ASSOCIATION_PREFIX}{resolved.spec.model}: {resolved.name} has no input embeddings that can be read; "
                "name a masked or causal model on this machine or on the hub"
            )
        super().__init__(name, "merkhet association baseline", 1, resolved.fingerprint)
        self.resolved = resolved
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._vectors: dict[tuple[int, ...], FloatArray] = {}

    @cached_property
    def embeddings(self) -> InputEmbeddings:
        """The embeddings, read on first use."""
        with require_models_extra():
            from merkhet.models._input_embeddings import InputEmbeddings

            return InputEmbeddings(self.resolved)

    def describe(self) -> dict[str, str | int | float]:
        """Describe the baseline by the model whose embeddings it reads."""
        return {"embeddings": self.resolved.name}

    def similarity_matrix(self, first: Sequence[str], second: Sequence[str]) -> FloatArray:
        """Return the cosine of each text in ``first`` with each in ``second``.

        Texts of the same tokens have the same similarities, to the last bit.
        """
        sides = []
        for texts in (first, second):
            rows = self._tokenize(texts)
            numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
            sides.append((self._embed(list(numbers)), np.array([numbers[row] for row in rows], dtype=np.int64)))
        (left, left_rows), (right, right_rows) = sides
        matrix: FloatArray = (left @ right.T)[np.ix_(left_rows, right_rows)]
        return matrix

    def _tokenize(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        if len(self._tokens) > _MAX_CACHED:
            self._tokens, new = {}, list(dict.fromkeys(texts))
        self._tokens.update(zip(new, self.embeddings.tokenize(new), strict=True))
        return [self._tokens[text] for text in texts]

    def _embed(self, rows: Sequence[tuple[int, ...]]) -> FloatArray:
        new = [row for row in rows if row not in self._vectors]
        if len(self._vectors) > _MAX_CACHED:
            self._vectors, new = {}, list(rows)
        self._vectors.update(zip(new, self.embeddings.embed(new), strict=True))
        return np.stack([self._vectors[row] for row in rows]) if rows else np.zeros((0, len(self.embeddings.mean)))


def has_embeddings(resolved: ResolvedModel) -> bool:
    """Return whether a model has input embeddings that can be read: it is a network in files."""
    return resolved.path is not None and resolved.kind in ("masked", "causal", "encoder")
