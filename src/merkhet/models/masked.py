"""Masked language models, which score candidates by token log-probabilities at masks.

Every method builds masked token rows from a sentence and reads log-probabilities at their masks. Equal rows go through
the network once for all candidates, prompts and methods. The head is run only at the masks that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models._mask_filling import SlotFiller
from merkhet.models._network import Network
from merkhet.models._text_generation import MASKED_METHODS, MaskWriter
from merkhet.models._vocabulary_filter import drop_unwritable, restore_dropped
from merkhet.models.lm_head import find_last_attention
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FilledSlot, FloatArray, IntArray, WrittenAnswer
from merkhet.models.row_scheduler import ReadPlan, RowScheduler
from merkhet.models.tokenize_candidates import TokenizedCandidate

_POOLINGS: dict[str, Callable[[FloatArray, Any], FloatArray]] = {
    "mean": lambda values, starts: np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values))),
    "sum": np.add.reduceat,
    "max": np.maximum.reduceat,
    "first": lambda values, starts: values[starts],
}
METHODS = {
    **{f"multiple-{pooling}": ("multiple", pooling) for pooling in _POOLINGS},
    **{f"single-{pooling}": ("single", pooling) for pooling in _POOLINGS},
    **{f"pll-{pooling}": ("pll", pooling) for pooling in ("sum", "mean")},
    **{f"pll-l2r-{pooling}": ("pll-l2r", pooling) for pooling in ("sum", "mean")},
    **{f"sentence-pll-{pooling}": ("sentence-pll", pooling) for pooling in ("sum", "mean")},
    **{f"sentence-pll-l2r-{pooling}": ("sentence-pll-l2r", pooling) for pooling in ("sum", "mean")},
}
"""For each method, its masking scheme and the pooling of the log-probabilities read at the masks."""


class MaskedModel(Network):
    """A masked language model from the Hugging Face library.

    The masking schemes are:

    * ``multiple`` replaces each token of the candidate by a mask, and scores each token at its mask.
    * ``single`` replaces the whole candidate by one mask, and scores every token at this mask.
    * ``pll`` (pseudo-log-likelihood) masks and scores one token of the candidate at a time.
    * ``pll-l2r`` is like ``pll``, but also masks the tokens of the same word to the right of the scored token.
    * ``sentence-pll`` and ``sentence-pll-l2r`` apply ``pll`` and ``pll-l2r`` to all tokens but special ones.
    """

    kind = "masked"
    methods: tuple[str, ...] = tuple(METHODS)
    writing_methods: tuple[str, ...] = MASKED_METHODS

    def __init__(
        self, name: str, fingerprint: str, model: Any, tokenizer: Any, *arguments: Any, **options: Any
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise InputError(
                f"{name}: its tokenizer has no mask token, which a masked model needs; give another kind in the study "
                "(kind: causal or kind: encoder)"
            )
        super().__init__(name, fingerprint, model, tokenizer, *arguments, **options)
        self.mask = int(tokenizer.mask_token_id)
        self.never_masked = self.special | self.input_only
        self.pick_after = find_last_attention(model)
        self.filler = SlotFiller(self)
        self.writer = MaskWriter(self)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the pooled log-probabilities of its tokens, for every method."""
        maskings = list(dict.fromkeys(METHODS[method][0] for method in methods))
        shortened, remaining = drop_unwritable(self.candidate_tokenizer, questions)
        usable, unusable = self.candidate_tokenizer.tokenize_questions(shortened)
        yield from unusable
        scheduler = RowScheduler()
        spans: dict[tuple[int, str], tuple[int, IntArray]] = {}
        for index, tokenized in usable.items():
            for masking in maskings:
                if masking.startswith("sentence"):
                    plan = self.plan_reads(tokenized, masking)
                    first = scheduler.add(plan)
                else:
                    windows = tokenized.windows
                    plan = windows.cached(masking, partial(self.plan_reads, windows.candidates, masking))
                    first = scheduler.add(plan, tokenized.prefix, tokenized.suffix)
                spans[index, masking] = first, plan.starts
        values = scheduler.run(self)
        self.count_rows(list(scheduler.rows))
        for index in usable:
            by_method = {}
            for method in methods:
                masking, pooling = METHODS[method]
                first, starts = spans[index, masking]
                one_row_each = masking in ("multiple", "single")
                self.work["rows_one_by_one"] += len(starts) - 1 if one_row_each else int(starts[-1])
                by_method[method] = _POOLINGS[pooling](values[first : first + starts[-1]], starts[:-1])
            count = len(questions[index].candidates)
            yield CandidateScores(index, restore_dropped(by_method, remaining.get(index), count))

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """Rank the whole vocabulary at a single mask in each question's slot."""
        yield from self.filler.fill(questions, count)

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Fill ``length`` masks in each question's slot with their likeliest tokens."""
        yield from self.writer.write(questions, length)

    def plan_reads(self, candidates: Iterable[TokenizedCandidate], masking: str) -> ReadPlan:
        """Plan the masked token rows of each candidate, and the tokens to score at their masks."""
        plan = ReadPlan()
        for candidate in candidates:
            self._plan_candidate(candidate, masking, plan)
            plan.end_candidate()
        return plan

    def _plan_candidate(self, candidate: TokenizedCandidate, masking: str, plan: ReadPlan) -> None:
        ids, start, stop = candidate.ids, candidate.start, candidate.stop
        if masking == "multiple":
            row = plan.add_row((*ids[:start], *[self.mask] * (stop - start), *ids[stop:]))
            plan.add_reads([row] * (stop - start), range(start, stop), ids[start:stop])
        elif masking == "single":
            row = plan.add_row((*ids[:start], self.mask, *ids[stop:]))
            plan.add_reads([row] * (stop - start), [start] * (stop - start), ids[start:stop])
        else:
            columns: Sequence[int] = range(start, stop)
            if masking.startswith("sentence"):
                columns = [column for column, token in enumerate(ids) if token not in self.never_masked]
            word_ends = _word_ends(candidate.continues_word) if masking.endswith("l2r") else None
            for column in columns:
                end = column + 1 if word_ends is None else min(word_ends[column], columns[-1] + 1)
                row = plan.add_row((*ids[:column], *[self.mask] * (end - column), *ids[end:]))
                plan.add_reads([row], [column], [ids[column]])


def _word_ends(continues_word: Sequence[bool]) -> list[int]:
    """Return for each token the position after the last token of its word."""
    ends = list(range(1, len(continues_word) + 1))
    for position in range(len(continues_word) - 1, 0, -1):
        if continues_word[position]:
            ends[position - 1] = ends[position]
    return ends
