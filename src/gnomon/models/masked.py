"""Masked language models: candidates scored by the masks that stand for them.

Every method reads log-probabilities of tokens at masks of certain rows. Equal rows are computed once, whatever the
number of candidates, prompts and methods that read them; the head works at the masks that are read and nowhere else.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from gnomon.foundation import InputError
from gnomon.foundation.records import Question
from gnomon.models.batching import run_batches, usual_budget
from gnomon.models.heads import describe_weights, log_probabilities, logits_at
from gnomon.models.placing import Placed, Placer
from gnomon.models.protocol import CandidateScores, FloatArray

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
    """

    kind = "masked"
    methods: tuple[str, ...] = tuple(METHODS)

    def __init__(
        self, name: str, fingerprint: str, model: Any, tokenizer: Any, token_budget: int | None = None
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise InputError(f"{name}: its tokenizer has no mask token, so it cannot be asked as a masked model")
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.mask = int(tokenizer.mask_token_id)
        self.special = frozenset(tokenizer.all_special_ids)
        self.placer = Placer(name, tokenizer, model.config)
        self.token_budget = token_budget or usual_budget(model.device.type, on_cpu=4096)

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Pooled log-probabilities of each candidate by every method, all from as few rows as there are."""
        ways = list(dict.fromkeys(METHODS[method][0] for method in methods))
        usable, unusable = self.placer.place(questions, words=any(way.endswith("l2r") for way in ways))
        yield from unusable
        reads = _Reads()
        spans: dict[tuple[int, str], list[int]] = {}
        for index, placed in usable.items():
            for way in ways:
                starts = [len(reads.tokens)]
                for one in placed:
                    self._read(one, way, reads)
                    starts.append(len(reads.tokens))
                spans[index, way] = starts
        values = self.read(reads)
        for index in usable:
            by_method = {}
            for method in methods:
                way, pooling = METHODS[method]
                starts = spans[index, way]
                own = values[starts[0] : starts[-1]]
                by_method[method] = _POOLINGS[pooling](own, np.array(starts[:-1]) - starts[0])
            yield CandidateScores(index, by_method)

    def _read(self, one: Placed, way: str, reads: _Reads) -> None:
        ids, start, stop = one.ids, one.start, one.stop
        if way == "multiple":
            row = reads.row((*ids[:start], *[self.mask] * (stop - start), *ids[stop:]))
            reads.add([row] * (stop - start), range(start, stop), ids[start:stop])
        elif way == "single":
            row = reads.row((*ids[:start], self.mask, *ids[stop:]))
            reads.add([row] * (stop - start), [start] * (stop - start), ids[start:stop])
        else:
            sentence = way.startswith("sentence")
            span = [i for i, token in enumerate(ids) if token not in self.special] if sentence else range(start, stop)
            ends = _word_ends(one.joined) if way.endswith("l2r") else None
            for place in span:
                end = place + 1 if ends is None else min(ends[place], span[-1] + 1)
                row = reads.row((*ids[:place], *[self.mask] * (end - place), *ids[end:]))
                reads.add([row], [place], [ids[place]])

    def read(self, reads: _Reads) -> FloatArray:
        """The log-probability of every token that is read, in the order of the reads."""
        rows = list(reads.rows)
        values = np.empty(len(reads.tokens))
        order = np.argsort(np.frombuffer(reads.numbers, dtype=np.int64), kind="stable") if rows else np.empty(0, int)
        columns = np.frombuffer(reads.columns, dtype=np.int64) if rows else order
        tokens = np.frombuffer(reads.tokens, dtype=np.int64) if rows else order
        counts = np.bincount(np.frombuffer(reads.numbers, dtype=np.int64), minlength=len(rows)) if rows else order
        firsts = np.concatenate([[0], np.cumsum(counts)])
        pad = self.tokenizer.pad_token_id or 0
        device = self.model.device

        def forward(batch: list[int]) -> None:
            longest = max(len(rows[i]) for i in batch)
            ids = np.full((len(batch), longest), pad, dtype=np.int64)
            seen = np.zeros((len(batch), longest), dtype=np.int64)
            for line, i in enumerate(batch):
                ids[line, : len(rows[i])] = rows[i]
                seen[line, : len(rows[i])] = 1
            own = np.concatenate([order[firsts[i] : firsts[i + 1]] for i in batch])
            lines = np.repeat(np.arange(len(batch)), [counts[i] for i in batch])
            # Several tokens may be read at one mask: the head works there once.
            flat, places = np.unique(lines * longest + columns[own], return_inverse=True)
            with torch.inference_mode():
                logits = logits_at(
                    self.model,
                    torch.from_numpy(flat // longest).to(device),
                    torch.from_numpy(flat % longest).to(device),
                    input_ids=torch.from_numpy(ids).to(device),
                    attention_mask=torch.from_numpy(seen).to(device),
                )
                values[own] = log_probabilities(
                    logits, torch.from_numpy(places).to(device), torch.from_numpy(tokens[own]).to(device)
                )

        self.token_budget = run_batches([len(row) for row in rows], self.token_budget, forward)
        return values


def _word_ends(joined: Sequence[bool]) -> list[int]:
    """For each token the place after the last token of its word."""
    ends = list(range(1, len(joined) + 1))
    for place in range(len(joined) - 1, 0, -1):
        if joined[place]:
            ends[place - 1] = ends[place]
    return ends


class _Reads:
    """Tokens to be read at columns of rows; equal rows are one."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, ...], int] = {}
        self.numbers = array("q")
        self.columns = array("q")
        self.tokens = array("q")

    def row(self, ids: tuple[int, ...]) -> int:
        """The number of a row of tokens."""
        return self.rows.setdefault(ids, len(self.rows))

    def add(self, numbers: Sequence[int], columns: Sequence[int], tokens: Sequence[int]) -> None:
        """Read tokens, each at its column of its row."""
        self.numbers.extend(numbers)
        self.columns.extend(columns)
        self.tokens.extend(tokens)
