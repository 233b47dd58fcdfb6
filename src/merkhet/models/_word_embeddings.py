"""States of words in their sentences, and how near they are to each other.

Every distinct sentence is tokenised once and every distinct row of tokens goes through the network once, whatever the
number of questions, words and layers that read it. Equal usages have one state, so that a real tie is a tie.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.batching import run_batches
from merkhet.models.layer_methods import expanded, layer_of, layered_methods
from merkhet.models.lm_head import pick_positions
from merkhet.models.protocol import CandidateScores, FloatArray, IntArray
from merkhet.models.row_scheduler import Row, padded
from merkhet.models.tokenize_candidates import CandidateTokenizer, UnusableError, refuse_too_long, touching

AT_ONCE = 512
"""Questions that are compared together: so many states are kept at a time."""

Span = tuple[Row, int, int]
"""Tokens of a sentence, and from where to where those of the word are."""


class WordStates:
    """Compares words by the states that one model has for them in their sentences.

    The state by ``word`` is the mean over the tokens that touch the word, in the last layer: what a head reads. By
    ``masked`` as many masks stand in the place of these tokens. ``@3`` names another layer, 0 is what the embeddings
    give. In a causal model the state of a word knows what stands before it, and nothing of what follows: there a row
    ends with the word, so that usages which are alike up to it are one.

    ``work`` counts what was done, beside what the model counts there itself: rows that went through the network, their
    tokens, and the rows that one pass for each usage and method would have needed. What follows an ``early`` module of
    the last layer is computed for the tokens of words alone.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: Any,
        candidate_tokenizer: CandidateTokenizer,
        work: dict[str, int],
        masks: bool = True,
        early: Any = None,
    ) -> None:
        self.name = name
        self.model = model
        self.early = early
        self.candidate_tokenizer = candidate_tokenizer
        self.work = work
        self.pad = int(tokenizer.pad_token_id or 0)
        self.mask: int | None = tokenizer.mask_token_id if masks else None
        self.last = int(getattr(model.config.get_text_config(), "num_hidden_layers", 0))
        self.methods = layered_methods(("word",) if self.mask is None else ("word", "masked"), self.last)
        taken = inspect.signature(model.base_model.forward).parameters
        self.options: dict[str, Any] = {"use_cache": False} if "use_cache" in taken else {}

    def compare(
        self, questions: Sequence[Question], methods: Sequence[str], budget: int
    ) -> tuple[list[CandidateScores], int]:
        """Cosines of each prompt's word with that of each candidate by every method, and the budget that was found."""
        refuse_two_parts(self.name, self.model)
        names = {method: layer_of(method, self.last) for method in expanded(methods, self.methods)}
        found: list[CandidateScores] = []
        for first in range(0, len(questions), AT_ONCE):
            usable, unusable = self._place(questions[first : first + AT_ONCE])
            by_way: dict[str, dict[int, dict[int, FloatArray]]] = {}
            for way in {way for way, _ in names.values()} if usable else ():
                layers = sorted({layer for own, layer in names.values() if own == way})
                by_way[way], budget = self._similarities(usable, way, layers, budget)
            self.work["rows_one_by_one"] += len(names) * sum(map(len, usable.values()))
            scored = [
                CandidateScores(index, {name: by_way[way][layer][index] for name, (way, layer) in names.items()})
                for index in usable
            ]
            found += [replace(one, index=first + one.index) for one in (*unusable, *scored)]
        return found, budget

    @cached_property
    def looks_back(self) -> bool:
        """Whether states know nothing of what follows: tried on two rows that begin alike, which then agree exactly."""
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        beginning, *ends = (torch.arange(9, device=self.model.device).reshape(3, 3) * 7 + 5) % vocabulary
        rows = torch.stack([torch.cat([beginning, end]) for end in ends])
        with torch.inference_mode():
            (states,) = self._layers({"input_ids": rows}, [self.last])
            return bool(torch.equal(states[0, :3], states[1, :3]))

    def _place(self, questions: Sequence[Question]) -> tuple[dict[int, list[Span]], list[CandidateScores]]:
        """The usages of each question that can be asked, by its index, and why the others cannot."""
        usages = [question.usages for question in questions]
        sentences = list(dict.fromkeys(sentence for own in usages for sentence, _, _ in own))
        encodings = dict(zip(sentences, self.candidate_tokenizer.encode(sentences), strict=True))
        usable: dict[int, list[Span]] = {}
        unusable: list[CandidateScores] = []
        for index, own in enumerate(usages):
            try:
                usable[index] = [self._span(encodings[usage[0]], *usage) for usage in own]
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable

    def _span(self, encoding: Any, sentence: str, first: int, last: int) -> Span:
        ids = tuple(encoding.ids)
        start, stop = touching(encoding, first, last)
        if start == stop:
            raise UnusableError(f"the word {sentence[first:last]!r} has no token in this model's vocabulary")
        if self.candidate_tokenizer.unknown is not None and self.candidate_tokenizer.unknown in ids[start:stop]:
            raise UnusableError(f"the word {sentence[first:last]!r} holds a token that this model does not know")
        refuse_too_long(len(ids), self.candidate_tokenizer.model_max_tokens)
        return ids[:stop] if self.looks_back else ids, start, stop

    def _similarities(
        self, usable: dict[int, list[Span]], way: str, layers: Sequence[int], budget: int
    ) -> tuple[dict[int, dict[int, FloatArray]], int]:
        """For each layer and question the cosines of its candidates; equal pairs of states have one cosine."""
        spans: dict[Span, int] = {}
        pairs: dict[tuple[int, int], int] = {}
        places: dict[int, list[int]] = {}
        for index, own in usable.items():
            base, *others = (spans.setdefault(self._read(span, way), len(spans)) for span in own)
            ordered = ((min(base, other), max(base, other)) for other in others)
            places[index] = [pairs.setdefault(pair, len(pairs)) for pair in ordered]
        states, budget = self._states(list(spans), layers, budget)
        chosen = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        found = {}
        for layer, table in states.items():
            values = cosines(table, chosen)
            found[layer] = {index: values[np.array(own, dtype=np.int64)] for index, own in places.items()}
        return found, budget

    def _read(self, span: Span, way: str) -> Span:
        if way == "word":
            return span
        ids, start, stop = span
        assert self.mask is not None
        return (*ids[:start], *[self.mask] * (stop - start), *ids[stop:]), start, stop

    def _states(
        self, spans: Sequence[Span], layers: Sequence[int], budget: int
    ) -> tuple[dict[int, NDArray[np.float32]], int]:
        """For each layer the mean state of each span, one a row, and the budget that was found."""
        numbers: dict[Row, list[int]] = defaultdict(list)
        for number, (ids, _, _) in enumerate(spans):
            numbers[ids].append(number)
        rows = list(numbers)
        self.work["rows"] += len(rows)
        self.work["tokens"] += sum(map(len, rows))
        states: dict[int, NDArray[np.float32]] = {}
        device = self.model.device

        def forward(batch: list[int]) -> None:
            own = [(line, number) for line, row in enumerate(batch) for number in numbers[rows[row]]]
            counts = np.array([spans[number][2] - spans[number][1] for _, number in own])
            lines = torch.from_numpy(np.repeat([line for line, _ in own], counts)).to(device)
            columns = torch.from_numpy(np.concatenate([np.arange(*spans[number][1:]) for _, number in own])).to(device)
            inputs = padded([rows[row] for row in batch], self.pad, device)
            with torch.inference_mode():
                read = [found.float().cpu().numpy() for found in self._read_at(lines, columns, inputs, layers)]
            starts, filled = np.cumsum(counts) - counts, [number for _, number in own]
            for layer, tokens in zip(layers, read, strict=True):
                if layer not in states:
                    states[layer] = np.empty((len(spans), tokens.shape[1]), dtype=np.float32)
                states[layer][filled] = np.add.reduceat(tokens, starts, axis=0) / counts[:, None]

        return states, run_batches([len(row) for row in rows], budget, forward)

    def _read_at(
        self, lines: torch.Tensor, columns: torch.Tensor, inputs: dict[str, torch.Tensor], layers: Sequence[int]
    ) -> Iterator[torch.Tensor]:
        """The states at some positions of a batch, one a line, in each layer asked for."""
        if self.early is None:
            yield from (found[lines, columns] for found in self._layers(inputs, layers))
            return
        with pick_positions(self.early, lines, columns):
            found = list(self._layers(inputs, layers))
        for layer, states in zip(layers, found, strict=True):
            yield states[0] if layer == self.last else states[lines, columns]

    def _layers(self, inputs: dict[str, torch.Tensor], layers: Sequence[int]) -> Iterator[torch.Tensor]:
        """The states of a batch in each layer asked for, from one pass; the last are those that a head reads."""
        below = any(layer != self.last for layer in layers)
        output = self.model.base_model(**inputs, **self.options, output_hidden_states=below, return_dict=True)
        if below and len(output.hidden_states or ()) != self.last + 1:
            raise InputError(f"{self.name} does not give the states of its {self.last} layers; ask it by 'word' alone")
        for layer in layers:
            yield output.last_hidden_state if layer == self.last else output.hidden_states[layer]


def cosines(states: NDArray[np.float32], pairs: IntArray) -> FloatArray:
    r"""Cosine of each pair of states, in float64.

    .. math:: \cos(u, v) = u \cdot v / (\lVert u \rVert \lVert v \rVert)

    In [-1, 1], higher for states that are more alike; not a number where one is zero or not finite.
    """
    table = states.astype(np.float64)
    first, second = pairs.T
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", table, table))
        products = np.einsum("ij,ij->i", table[first], table[second])
        found: FloatArray = products / (norms[first] * norms[second])
    return found


def refuse_two_parts(name: str, model: Any) -> None:
    """Refuse a network of an encoder and a decoder: it has no one state for a word of a sentence."""
    if getattr(model.config, "is_encoder_decoder", False):
        raise InputError(
            f"{name} is an encoder with a decoder ({type(model).__name__}), whose states merkhet does not compare; "
            "use a masked, causal or encoder model"
        )
