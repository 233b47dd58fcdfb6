"""Contextual embeddings of words in their sentences, and the cosines of these embeddings.

Every distinct sentence is tokenized once. Every distinct token row goes through the network once for all questions,
words and layers. Equal usages (the same word in the same sentence) share one embedding, so their scores are tied.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.layer_methods import expand_layers, list_layer_methods, parse_layer
from merkhet.models.lm_head import pick_positions
from merkhet.models.protocol import CandidateScores, FloatArray, IntArray
from merkhet.models.row_scheduler import Row, pad_rows
from merkhet.models.tokenize_candidates import UnusableError, check_length, token_span

if TYPE_CHECKING:
    from merkhet.models._network import Network

QUESTIONS_AT_ONCE = 512
"""The number of questions compared together, which limits the number of embeddings in memory."""

Span = tuple[Row, int, int]
"""The tokens of a sentence, and the start and stop positions of the compared word's tokens."""


class WordEmbeddings:
    """Comparison of words by one model's contextual embeddings of the words in their sentences.

    The method ``word`` embeds a word as the mean of the last layer's hidden states over the word's tokens. The method
    ``masked`` first replaces each of these tokens by a mask. A suffix such as ``@3`` selects another layer; layer 0 is
    the output of the embeddings.

    In a causal model an embedding does not depend on the text after the word. That text is cut off, so usages with the
    same text up to the word share one embedding.
    """

    def __init__(self, network: Network) -> None:
        self.network, self.model = network, network.model
        model, self.tokenizer = network.model, network.candidate_tokenizer
        self.mask: int | None = network.tokenizer.mask_token_id if network.compares_masked else None
        self.last_layer = int(getattr(model.config.get_text_config(), "num_hidden_layers", 0))
        self.methods = list_layer_methods(("word",) if self.mask is None else ("word", "masked"), self.last_layer)
        parameters = inspect.signature(model.base_model.forward).parameters
        self.options: dict[str, Any] = {"use_cache": False} if "use_cache" in parameters else {}

    def check_architecture(self) -> None:
        """Raise InputError for an encoder-decoder network, which has no single hidden state per token."""
        if getattr(self.model.config, "is_encoder_decoder", False):
            raise InputError(
                f"{self.network.name} is an encoder-decoder model ({type(self.model).__name__}), whose word embeddings "
                "cannot be compared; use a masked, causal or encoder model"
            )

    def compare(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Compute the cosine of the prompt's word with each candidate's word, for every question and method."""
        self.check_architecture()
        layer_of = {method: parse_layer(method, self.last_layer) for method in expand_layers(methods, self.methods)}
        for first in range(0, len(questions), QUESTIONS_AT_ONCE):
            usable, unusable = self._tokenize(questions[first : first + QUESTIONS_AT_ONCE])
            cosines_by: dict[str, dict[int, dict[int, FloatArray]]] = {}
            for input_form in {input_form for input_form, _ in layer_of.values()} if usable else ():
                layers = sorted({layer for form, layer in layer_of.values() if form == input_form})
                cosines_by[input_form] = self._cosines(usable, input_form, layers)
            self.network.work["rows_one_by_one"] += len(layer_of) * sum(map(len, usable.values()))
            scored = [
                CandidateScores(
                    index,
                    {method: cosines_by[input_form][layer][index] for method, (input_form, layer) in layer_of.items()},
                )
                for index in usable
            ]
            yield from (replace(result, index=first + result.index) for result in (*unusable, *scored))

    @cached_property
    def is_causal(self) -> bool:
        """Whether hidden states ignore later tokens, tested on two token rows with the same beginning."""
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        beginning, *ends = (torch.arange(9, device=self.model.device).reshape(3, 3) * 7 + 5) % vocabulary
        rows = torch.stack([torch.cat([beginning, end]) for end in ends])
        with torch.inference_mode():
            (states,) = self._hidden_states({"input_ids": rows}, [self.last_layer])
            return bool(torch.equal(states[0, :3], states[1, :3]))

    def _tokenize(self, questions: Sequence[Question]) -> tuple[dict[int, list[Span]], list[CandidateScores]]:
        """Return the tokenized usages by question index, and for each unusable question a result with the reason."""
        usages = [question.usages for question in questions]
        sentences = list(dict.fromkeys(sentence for question in usages for sentence, _, _ in question))
        encodings = dict(zip(sentences, self.tokenizer.encode(sentences), strict=True))
        usable: dict[int, list[Span]] = {}
        unusable: list[CandidateScores] = []
        for index, question_usages in enumerate(usages):
            try:
                usable[index] = [self._span(encodings[usage[0]], *usage) for usage in question_usages]
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable

    def _span(self, encoding: Any, sentence: str, first: int, last: int) -> Span:
        ids = tuple(encoding.ids)
        start, stop = token_span(encoding, first, last)
        if start == stop:
            raise UnusableError(f"the word {sentence[first:last]!r} has no token in this model's vocabulary")
        if self.tokenizer.unknown is not None and self.tokenizer.unknown in ids[start:stop]:
            raise UnusableError(f"the word {sentence[first:last]!r} holds a token that this model does not know")
        check_length(len(ids), self.tokenizer.model_max_tokens)
        return ids[:stop] if self.is_causal else ids, start, stop

    def _cosines(
        self, usable: dict[int, list[Span]], input_form: str, layers: Sequence[int]
    ) -> dict[int, dict[int, FloatArray]]:
        """Compute the cosines of each question's candidates by layer and question index.

        Each distinct pair of usages is computed once.
        """
        span_ids: dict[Span, int] = {}
        pair_ids: dict[tuple[int, int], int] = {}
        pairs_of: dict[int, list[int]] = {}
        for index, spans in usable.items():
            base, *others = (span_ids.setdefault(self._mask_span(span, input_form), len(span_ids)) for span in spans)
            pairs = ((min(base, other), max(base, other)) for other in others)
            pairs_of[index] = [pair_ids.setdefault(pair, len(pair_ids)) for pair in pairs]
        distinct_pairs = np.array(list(pair_ids), dtype=np.int64).reshape(-1, 2)
        by_layer = {}
        for layer, table in self._embed(list(span_ids), layers).items():
            values = cosines(table, distinct_pairs)
            by_layer[layer] = {index: values[np.array(ids, dtype=np.int64)] for index, ids in pairs_of.items()}
        return by_layer

    def _mask_span(self, span: Span, input_form: str) -> Span:
        if input_form == "word":
            return span
        ids, start, stop = span
        assert self.mask is not None
        return (*ids[:start], *[self.mask] * (stop - start), *ids[stop:]), start, stop

    def _embed(self, spans: Sequence[Span], layers: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Compute for each layer an array with the mean hidden state of each span, one span per row."""
        spans_of: dict[Row, list[int]] = defaultdict(list)
        for span_index, (ids, _, _) in enumerate(spans):
            spans_of[ids].append(span_index)
        rows = list(spans_of)
        self.network.count_rows(rows)
        embeddings: dict[int, NDArray[np.float32]] = {}
        device = self.model.device

        def forward(batch: list[int]) -> None:
            located = [(line, index) for line, row in enumerate(batch) for index in spans_of[rows[row]]]
            counts = np.array([spans[index][2] - spans[index][1] for _, index in located])
            lines = torch.from_numpy(np.repeat([line for line, _ in located], counts)).to(device)
            columns = torch.from_numpy(np.concatenate([np.arange(*spans[index][1:]) for _, index in located])).to(
                device
            )
            inputs = pad_rows([rows[row] for row in batch], self.network.pad, device)
            with torch.inference_mode():
                by_layer = [states.float().cpu().numpy() for states in self._states_at(lines, columns, inputs, layers)]
            starts, span_indices = np.cumsum(counts) - counts, [index for _, index in located]
            for layer, states in zip(layers, by_layer, strict=True):
                if layer not in embeddings:
                    embeddings[layer] = np.empty((len(spans), states.shape[1]), dtype=np.float32)
                embeddings[layer][span_indices] = np.add.reduceat(states, starts, axis=0) / counts[:, None]

        self.network.run_batches([len(row) for row in rows], forward)
        return embeddings

    def _states_at(
        self, lines: torch.Tensor, columns: torch.Tensor, inputs: dict[str, torch.Tensor], layers: Sequence[int]
    ) -> Iterator[torch.Tensor]:
        """Yield for each layer the hidden states at the positions (lines, columns) of a batch."""
        if self.network.pick_after is None:
            yield from (states[lines, columns] for states in self._hidden_states(inputs, layers))
            return
        with pick_positions(self.network.pick_after, lines, columns):
            by_layer = list(self._hidden_states(inputs, layers))
        for layer, states in zip(layers, by_layer, strict=True):
            yield states[0] if layer == self.last_layer else states[lines, columns]

    def _hidden_states(self, inputs: dict[str, torch.Tensor], layers: Sequence[int]) -> Iterator[torch.Tensor]:
        """Yield the hidden states of a batch in each layer; for the last layer, the states that a head would read."""
        inner_layers = any(layer != self.last_layer for layer in layers)
        output = self.model.base_model(**inputs, **self.options, output_hidden_states=inner_layers, return_dict=True)
        if inner_layers and len(output.hidden_states or ()) != self.last_layer + 1:
            raise InputError(
                f"{self.network.name} does not return the hidden states of its {self.last_layer} layers; "
                "use the method 'word'"
            )
        for layer in layers:
            yield output.last_hidden_state if layer == self.last_layer else output.hidden_states[layer]


def cosines(embeddings: NDArray[np.float32], pairs: IntArray) -> FloatArray:
    r"""Compute the cosine of each pair of embeddings, in float64.

    .. math:: \cos(u, v) = u \cdot v / (\lVert u \rVert \lVert v \rVert)

    The value is in [-1, 1], higher for more similar embeddings, and NaN if an embedding is zero or not finite.
    """
    table = embeddings.astype(np.float64)
    first, second = pairs.T
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", table, table))
        products = np.einsum("ij,ij->i", table[first], table[second])
        values: FloatArray = products / (norms[first] * norms[second])
    return values
