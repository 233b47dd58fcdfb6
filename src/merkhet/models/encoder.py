"""Encoders: networks without a language-model head, which say nothing and can only be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from merkhet.core.records import Question
from merkhet.models._word_embeddings import WordStates, refuse_two_parts
from merkhet.models.batching import usual_budget
from merkhet.models.lm_head import describe_weights
from merkhet.models.protocol import CandidateScores
from merkhet.models.tokenize_candidates import CandidateTokenizer


class EncoderModel:
    """A network from the Hugging Face library that gives states of words, and no probabilities.

    It scores no candidates; only senses can be compared. ``work`` counts what was done for that.
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
        longest: int | None = None,
    ) -> None:
        refuse_two_parts(name, model)
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.token_budget = token_budget or usual_budget(model.device.type, on_cpu=2048)
        self.work = {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
        self.candidate_tokenizer = CandidateTokenizer(
            name, tokenizer, model.config, special_tokens=special_tokens, longest=longest
        )
        self.states = WordStates(name, model, tokenizer, self.candidate_tokenizer, self.work)
        self.comparing_methods = self.states.methods

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Nothing: the reason why, for each question."""
        for index in range(len(questions)):
            yield CandidateScores(index, unusable="an encoder has no head to score candidates with")

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Cosines of the states of words, by every method."""
        compared, self.token_budget = self.states.compare(questions, methods, self.token_budget)
        yield from compared
