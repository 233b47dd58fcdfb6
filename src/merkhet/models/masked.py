"""Masked language models: candidates scored by the masks that stand for them.

Every method reads log-probabilities of tokens at masks of certain rows. Equal rows are computed once, whatever the
number of candidates, prompts and methods that read them; the head works at the masks that are read and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models._mask_filling import SlotFiller
from merkhet.models._text_generation import MASKED_METHODS, MaskWriter
from merkhet.models._vocabulary_filter import with_the_rest_last, without_unwritable
from merkhet.models._word_embeddings import WordStates
from merkhet.models.batching import usual_budget
from merkhet.models.lm_head import describe_weights, last_attention
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FilledSlot, FloatArray, IntArray, WrittenAnswer
from merkhet.models.row_scheduler import Plan, Reads
from merkhet.models.tokenize_candidates import IN_PLACE, CandidateTokenizer, TokenizedCandidate

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
"""Each method as a way of masking and a pooling of the log-probabilities that it reads."""


class MaskedModel:
    """A masked language model from the Hugging Face library.

    Ways of masking: ``multiple`` puts one mask in the place of each of the candidate's tokens and reads each token at
    its own; ``single`` puts one mask for the whole candidate and reads every token there; ``pll`` masks one token of
    the candidate after another, the others staying in place; ``pll-l2r`` masks with it the tokens to its right in
    the same word. ``sentence-pll`` and ``sentence-pll-l2r`` do so for all tokens of the sentence.

    ``unwritten`` are words, with their tokens, that the model reads and that no head can write: they are never masked;
    ``plain`` is the same model without them. ``work`` counts what was done for scores: rows that went through the
    network, their tokens, and the rows that one pass for each candidate, question and method would have needed.
    """

    kind = "masked"
    methods: tuple[str, ...] = tuple(METHODS)
    writing_methods: tuple[str, ...] = MASKED_METHODS
    original: MaskedModel | None = None

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: Any,
        tokenizer: Any,
        token_budget: int | None = None,
        candidates: str = IN_PLACE,
        unwritten: Mapping[str, int] | None = None,
        special_tokens: bool = True,
        longest: int | None = None,
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise InputError(f"{name}: its tokenizer has no mask token, so it cannot be asked as a masked model")
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.unwritten = frozenset((unwritten or {}).values())
        self.unmasked = frozenset(tokenizer.all_special_ids) | self.unwritten
        self.candidates = candidates
        self.candidate_tokenizer = CandidateTokenizer(
            name, tokenizer, model.config, candidates, self.unwritten, special_tokens, longest
        )
        self.pick_after = last_attention(model)
        self.filler = SlotFiller(model, tokenizer, self.candidate_tokenizer, self.pick_after)
        self.writer = MaskWriter(model, tokenizer, self.candidate_tokenizer, self.pick_after)
        self.token_budget = token_budget or usual_budget(model.device.type, on_cpu=2048)
        self.work = {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
        self.states = WordStates(name, model, tokenizer, self.candidate_tokenizer, self.work, early=self.pick_after)
        self.comparing_methods = self.states.methods

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Pooled log-probabilities of each candidate by every method, all from as few rows as there are."""
        ways = list(dict.fromkeys(METHODS[method][0] for method in methods))
        asked, kept = without_unwritable(self.candidate_tokenizer, questions)
        usable, unusable = self.candidate_tokenizer.tokenize_questions(asked)
        yield from unusable
        reads = Reads()
        spans: dict[tuple[int, str], tuple[int, IntArray]] = {}
        for index, placed in usable.items():
            for way in ways:
                if way.startswith("sentence"):
                    plan = self.plan_reads(placed, way)
                    first = reads.add(plan)
                else:
                    plan = placed.windows.kept(way, partial(self.plan_reads, placed.windows.candidates, way))
                    first = reads.add(plan, placed.prefix, placed.suffix)
                spans[index, way] = first, plan.starts
        values, self.token_budget = reads.values(self.model, self.pad, self.token_budget, self.pick_after)
        self.work["rows"] += len(reads.rows)
        self.work["tokens"] += sum(map(len, reads.rows))
        for index in usable:
            by_method = {}
            for method in methods:
                way, pooling = METHODS[method]
                first, starts = spans[index, way]
                self.work["rows_one_by_one"] += len(starts) - 1 if way in ("multiple", "single") else int(starts[-1])
                by_method[method] = _POOLINGS[pooling](values[first : first + starts[-1]], starts[:-1])
            count = len(questions[index].candidates)
            yield CandidateScores(index, with_the_rest_last(by_method, kept.get(index), count))

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """The likeliest pieces of the whole vocabulary at one mask in each slot."""
        filled, self.token_budget = self.filler.fill(questions, count, self.token_budget)
        yield from filled

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Cosines of the states of words, by every method."""
        compared, self.token_budget = self.states.compare(questions, methods, self.token_budget)
        yield from compared

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """The likeliest token at each of so many masks in the slot."""
        written, self.token_budget = self.writer.write(questions, length, self.token_budget)
        yield from written

    def plan_reads(self, candidates: Iterable[TokenizedCandidate], way: str) -> Plan:
        """Which rows a way of masking makes of candidates in place, and what it reads there."""
        plan = Plan()
        for one in candidates:
            self._read(one, way, plan)
            plan.begin_next()
        return plan

    def _read(self, one: TokenizedCandidate, way: str, plan: Plan) -> None:
        ids, start, stop = one.ids, one.start, one.stop
        if way == "multiple":
            row = plan.row((*ids[:start], *[self.mask] * (stop - start), *ids[stop:]))
            plan.read([row] * (stop - start), range(start, stop), ids[start:stop])
        elif way == "single":
            row = plan.row((*ids[:start], self.mask, *ids[stop:]))
            plan.read([row] * (stop - start), [start] * (stop - start), ids[start:stop])
        else:
            sentence = way.startswith("sentence")
            span = [i for i, token in enumerate(ids) if token not in self.unmasked] if sentence else range(start, stop)
            ends = _word_ends(one.joined) if way.endswith("l2r") else None
            for place in span:
                end = place + 1 if ends is None else min(ends[place], span[-1] + 1)
                row = plan.row((*ids[:place], *[self.mask] * (end - place), *ids[end:]))
                plan.read([row], [place], [ids[place]])


def _word_ends(joined: Sequence[bool]) -> list[int]:
    """For each token the place after the last token of its word."""
    ends = list(range(1, len(joined) + 1))
    for place in range(len(joined) - 1, 0, -1):
        if joined[place]:
            ends[place - 1] = ends[place]
    return ends
