"""Masked language models: candidates scored by the masks that stand for them.

One row for each distinct (prompt, number of masks), whatever the number of candidates; the head works at the masks
only; every pooling comes from the same pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from gnomon.foundation import InputError
from gnomon.foundation.records import Question
from gnomon.models.batching import fill_batches, run_batches
from gnomon.models.heads import describe_weights, log_probabilities, logits_at
from gnomon.models.placing import Placed, Placer
from gnomon.models.protocol import CandidateScores, FloatArray

POOLINGS: dict[str, Callable[[FloatArray], float]] = {
    "multiple-mean": lambda values: float(values.mean()),
    "multiple-sum": lambda values: float(values.sum()),
    "multiple-max": lambda values: float(values.max()),
    "multiple-first": lambda values: float(values[0]),
}
"""How the log-probabilities of a candidate's tokens become its score."""


class MaskedModel:
    """A masked language model from the Hugging Face library."""

    kind = "masked"
    methods: tuple[str, ...] = tuple(POOLINGS)

    def __init__(self, name: str, fingerprint: str, model: Any, tokenizer: Any, token_budget: int = 4096) -> None:
        if tokenizer.mask_token_id is None:
            raise InputError(f"{name}: its tokenizer has no mask token, so it cannot be asked as a masked model")
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.placer = Placer(name, tokenizer, model.config)
        self.token_budget = token_budget

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Pooled log-probabilities of each candidate's tokens, each at its own mask."""
        rows: dict[tuple[int, ...], list[tuple[int, int, Placed]]] = {}
        masks: dict[tuple[int, ...], tuple[int, int]] = {}
        sizes: dict[int, int] = {}
        usable, unusable = self.placer.place(questions)
        yield from unusable
        for index, placed in usable.items():
            sizes[index] = len(placed)
            for number, candidate in enumerate(placed):
                count = candidate.stop - candidate.start
                row = (
                    *candidate.ids[: candidate.start],
                    *[self.tokenizer.mask_token_id] * count,
                    *candidate.ids[candidate.stop :],
                )
                rows.setdefault(row, []).append((index, number, candidate))
                masks[row] = (candidate.start, count)
        scores = {index: {method: np.empty(size) for method in methods} for index, size in sizes.items()}
        self._fill(list(rows), masks, rows, scores)
        for index, by_method in scores.items():
            yield CandidateScores(index, by_method)

    def _fill(
        self,
        rows: list[tuple[int, ...]],
        masks: dict[tuple[int, ...], tuple[int, int]],
        wanted: dict[tuple[int, ...], list[tuple[int, int, Placed]]],
        scores: dict[int, dict[str, FloatArray]],
    ) -> None:
        pad = self.tokenizer.pad_token_id or 0

        def forward(batch: list[int]) -> None:
            longest = max(len(rows[i]) for i in batch)
            ids = torch.full((len(batch), longest), pad, dtype=torch.long)
            seen = torch.zeros((len(batch), longest), dtype=torch.long)
            lines: list[int] = []
            columns: list[int] = []
            tokens: list[int] = []
            for line, i in enumerate(batch):
                row = rows[i]
                ids[line, : len(row)] = torch.tensor(row)
                seen[line, : len(row)] = 1
                start, count = masks[row]
                lines += [line] * count
                columns += range(start, start + count)
            first = dict(zip(batch, np.cumsum([0, *[masks[rows[i]][1] for i in batch]]), strict=False))
            places: list[int] = []
            for i in batch:
                for _, _, candidate in wanted[rows[i]]:
                    tokens += candidate.ids[candidate.start : candidate.stop]
                    places += range(first[i], first[i] + candidate.stop - candidate.start)
            device = self.model.device
            with torch.inference_mode():
                logits = logits_at(
                    self.model,
                    torch.tensor(lines, device=device),
                    torch.tensor(columns, device=device),
                    input_ids=ids.to(device),
                    attention_mask=seen.to(device),
                )
                flat = log_probabilities(
                    logits, torch.tensor(places, device=device), torch.tensor(tokens, device=device)
                )
            done = 0
            for i in batch:
                for index, number, candidate in wanted[rows[i]]:
                    own = flat[done : done + candidate.stop - candidate.start]
                    done += len(own)
                    for method, array in scores[index].items():
                        array[number] = POOLINGS[method](own)

        run_batches(fill_batches([len(row) for row in rows], self.token_budget), forward)
