"""Base class of models from the Hugging Face library, and encoders, which have no language-model head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any

from merkhet.core.records import Question
from merkhet.models._word_embeddings import WordEmbeddings
from merkhet.models.batching import run_batches
from merkhet.models.protocol import CandidateScores, refuse_questions
from merkhet.models.tokenize_candidates import IN_PLACE, CandidateTokenizer

TOKENS_ON_CPU, TOKENS_ON_GPU = 2048, 16384
"""The initial maximum number of tokens in a batch, on a CPU and on a GPU."""


class Network:
    """A network with its tokenizer, the token budget of its batches, and counters of its work.

    ``work`` counts the token rows that went through the network and their tokens. ``work["rows_one_by_one"]`` is the
    number of rows that a program without shared rows would need, for comparison.

    Args:
        name: The model's name in tables.
        fingerprint: A hash of everything that decides the model's answers.
        model: The network.
        tokenizer: The network's tokenizer.
        token_budget: The initial maximum number of tokens in a batch; by default it depends on the device.
        candidates: How candidates are tokenized, ``in place`` (in their sentence) or ``apart`` (alone).
        input_only_words: Token ids of added words, which the model can read but not predict; they are not scored.
        special_tokens: Whether the tokenizer's special tokens are added to sentences.
        max_tokens: The maximum number of tokens of a sentence with a candidate, if below the model's maximum.
    """

    kind: str
    methods: tuple[str, ...] = ()
    compares_masked = True
    """Whether the model can compare senses with masks in place of the word."""
    original: Any = None
    """This model without extra words; None if it has no extra words."""
    pick_after: Any = None
    """The module after which only selected positions are processed; see :func:`merkhet.models.lm_head.logits_at`."""

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
        """Describe the network: architecture, number of parameters, dtype, device and, on a CPU, number of threads."""
        import torch

        device = self.model.device.type
        return {
            "architecture": type(self.model).__name__,
            "parameters": int(sum(p.numel() for p in self.model.parameters())),
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": device,
            **({"threads": torch.get_num_threads()} if device == "cpu" else {}),
        }

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the cosine of its word's embedding with that of the prompt's word."""
        yield from self.word_embeddings.compare(questions, methods)

    def run_batches(self, lengths: Sequence[int], forward: Callable[[list[int]], None]) -> None:
        """Call ``forward`` with the indices of rows in each batch.

        If memory runs out, ``token_budget`` is reduced permanently.
        """
        self.token_budget = run_batches(lengths, self.token_budget, forward)

    def count_rows(self, rows: Sequence[Sized]) -> None:
        """Add token rows that go through the network to the counters in ``work``."""
        self.work["rows"] += len(rows)
        self.work["tokens"] += sum(map(len, rows))


class EncoderModel(Network):
    """A network without a language-model head, which can compare senses but not score candidates."""

    kind = "encoder"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.word_embeddings.check_architecture()

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable, because an encoder assigns no probabilities."""
        return refuse_questions(questions, "an encoder has no head to score candidates with")
