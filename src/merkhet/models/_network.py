"""Networks from the Hugging Face library, and encoders, which are networks without a language-model head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any

from merkhet.core.records import Question
from merkhet.models._word_embeddings import WordEmbeddings
from merkhet.models.batching import run_batches
from merkhet.models.protocol import CandidateScores, refuse_questions
from merkhet.models.tokenize_candidates import IN_PLACE, CandidateTokenizer

TOKENS_ON_CPU, TOKENS_ON_GPU = 2048, 16384
"""The initial token budget of a batch."""


class Network:
    """A network with its tokenizer, the token budget of its batches, and counters of its work.

    ``work`` counts the rows that went through the network, their tokens, and the rows that one pass per candidate,
    question and method would have needed.

    Args:
        name: The model's name in tables.
        fingerprint: A hash of everything that decides its answers.
        model: The network.
        tokenizer: Its tokenizer.
        token_budget: The maximum number of tokens in a batch; by default chosen for the device.
        candidates: How candidates are tokenized, ``in place`` or ``apart``.
        input_only_words: Words with their token ids that the model reads and cannot predict; they are never scored.
        special_tokens: Whether sentences are read with the model's special tokens.
        max_tokens: The maximum length of a sentence with a candidate, where it is below the model's own maximum.
    """

    kind: str
    methods: tuple[str, ...] = ()
    compares_masked = True
    """Whether masks may replace a word that is compared."""
    original: Any = None
    """The same model without extra words."""
    pick_after: Any = None
    """A module of the last layer after which positions are picked; see :func:`merkhet.models.lm_head.logits_at`."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: Any,
        tokenizer: Any,
        token_budget: int | None = None,
        candidates: str = IN_PLACE,
        input_only_words: Mapping[str, int] | None = None,
        special_tokens: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        self.name, self.fingerprint, self.model, self.tokenizer = name, fingerprint, model, tokenizer
        self.pad = int(tokenizer.pad_token_id or 0)
        self.special = frozenset(tokenizer.all_special_ids)
        self.candidates = candidates
        self.input_only_words = dict(input_only_words or {})
        self.input_only = frozenset(self.input_only_words.values())
        self.candidate_tokenizer = CandidateTokenizer(
            name, tokenizer, model.config, candidates, self.input_only, special_tokens, max_tokens
        )
        self.token_budget = token_budget or (TOKENS_ON_CPU if model.device.type == "cpu" else TOKENS_ON_GPU)
        self.work = {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
        self.word_embeddings = WordEmbeddings(self)
        self.comparing_methods = self.word_embeddings.methods

    def describe(self) -> dict[str, str | int | float]:
        """Describe architecture, parameters, dtype and device."""
        return {
            "architecture": type(self.model).__name__,
            "parameters": int(sum(p.numel() for p in self.model.parameters())),
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": self.model.device.type,
        }

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score candidates by the cosine of word embeddings, for every method."""
        yield from self.word_embeddings.compare(questions, methods)

    def run_batches(self, lengths: Sequence[int], forward: Callable[[list[int]], None]) -> None:
        """Run rows of these lengths in batches; a budget that does not fit into memory is reduced for good."""
        self.token_budget = run_batches(lengths, self.token_budget, forward)

    def count_rows(self, rows: Sequence[Sized]) -> None:
        """Count rows that go through the network, and their tokens."""
        self.work["rows"] += len(rows)
        self.work["tokens"] += sum(map(len, rows))


class EncoderModel(Network):
    """A network that has word embeddings and no probabilities: it compares senses, and scores no candidates."""

    kind = "encoder"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.word_embeddings.check_architecture()

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable."""
        return refuse_questions(questions, "an encoder has no head to score candidates with")
