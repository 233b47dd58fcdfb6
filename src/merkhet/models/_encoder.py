"""Encoders: networks without a language-model head, whose word embeddings can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from merkhet.core.records import Question
from merkhet.models._word_embeddings import WordEmbeddings, check_not_encoder_decoder
from merkhet.models.batching import default_budget
from merkhet.models.lm_head import describe_weights
from merkhet.models.protocol import CandidateScores
from merkhet.models.tokenize_candidates import CandidateTokenizer


class EncoderModel:
    """A network from the Hugging Face library that has word embeddings and no probabilities.

    It scores no candidates; it only compares senses. ``work`` counts the work for that.
    """

    kind = "encoder"
    methods: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: Any,
        tokenizer: Any,
        token_budget: int | None = None,
        special_tokens: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        check_not_encoder_decoder(name, model)
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.token_budget = token_budget or default_budget(model.device.type, on_cpu=2048)
        self.work = {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
        self.candidate_tokenizer = CandidateTokenizer(
            name, tokenizer, model.config, special_tokens=special_tokens, max_tokens=max_tokens
        )
        self.word_embeddings = WordEmbeddings(name, model, tokenizer, self.candidate_tokenizer, self.work)
        self.comparing_methods = self.word_embeddings.methods

    def describe(self) -> dict[str, str | int | float]:
        """Describe architecture, parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable."""
        for index in range(len(questions)):
            yield CandidateScores(index, unusable="an encoder has no head to score candidates with")

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score candidates by the cosine of word embeddings, for every method."""
        compared, self.token_budget = self.word_embeddings.compare(questions, methods, self.token_budget)
        yield from compared
