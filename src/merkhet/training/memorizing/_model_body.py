"""The body of a masked model: the states from which the head reads, at the masks alone.

Networks of BERT's and RoBERTa's layout have a lean way: queries, keys and values by one product, the last layer at the
masks only, no dropout. It is tried against the library's own before it is trusted; other layouts go the library's way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn import functional

from merkhet.models.lm_head import pick_positions
from merkhet.training.memorizing._body_attention import attend, attend_from_one
from merkhet.training.memorizing._body_weights import Weights, weights_of

logger = logging.getLogger(__name__)

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"gelu": functional.gelu, "relu": functional.relu}


class Body(Protocol):
    """Gives the state at the mask of each sentence, as it enters the table of the vocabulary.

    ``begin`` and ``end`` stand around the passes of each step.
    """

    def begin(self) -> None:
        """Take over what the optimizer has changed."""

    def end(self) -> None:
        """Hand the gradients to the optimizer."""

    def __call__(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor | None,
        columns: torch.Tensor,
        symbols: torch.nn.Parameter | None = None,
    ) -> torch.Tensor:
        """States (sentences, width) for tokens (sentences, tokens) with masks at these columns.

        Sentences have so many tokens (all, where ``lengths`` is None). Numbers beyond the vocabulary are rows of
        ``symbols``.
        """


def body_of(
    network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None = None, *, recompute: bool = False
) -> Body:
    """The fastest body for a network that gives what its own layers give."""
    lean = None if recompute else _lean(network, dtype, compile_with)
    return lean or PlainBody(network, dtype, recompute=recompute)


def embed(network: Any, ids: torch.Tensor, symbols: torch.nn.Parameter | None) -> torch.Tensor:
    """Vectors of tokens, symbols among them."""
    words = network.get_input_embeddings()
    if symbols is None:
        vectors: torch.Tensor = words(ids)
        return vectors
    size = words.weight.shape[0]
    is_symbol = ids >= size
    of_words = words(ids.clamp(max=size - 1))
    of_symbols = functional.embedding((ids - size).clamp(min=0), symbols)
    return torch.where(is_symbol[..., None], of_symbols, of_words)


class PlainBody:
    """Any masked model of the library, through its own layers and the transform of its own head."""

    def __init__(self, network: Any, dtype: torch.dtype, *, recompute: bool = False) -> None:
        self.network, self.dtype = network, dtype
        self.words = network.get_output_embeddings()
        if recompute:
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def begin(self) -> None:
        """Nothing to do."""

    def end(self) -> None:
        """Nothing to do."""

    def __call__(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor | None,
        columns: torch.Tensor,
        symbols: torch.nn.Parameter | None = None,
    ) -> torch.Tensor:
        """The states that enter the table of the vocabulary, caught there."""
        caught: list[torch.Tensor] = []

        def catch(_module: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            caught.append(given[0])
            return (given[0][:, :1],)  # What the table would say is not needed.

        length = torch.full_like(columns, ids.shape[1]) if lengths is None else lengths
        attention = (torch.arange(ids.shape[1], device=ids.device)[None, :] < length[:, None]).long()
        given = {"input_ids": ids} if symbols is None else {"inputs_embeds": embed(self.network, ids, symbols)}
        handle = self.words.register_forward_pre_hook(catch)
        rows = torch.arange(len(ids), device=ids.device)
        try:
            halved = torch.autocast(ids.device.type, self.dtype, enabled=self.dtype != torch.float32)
            with halved, pick_positions(self.network.base_model, rows, columns):
                self.network(attention_mask=attention, **given)
        finally:
            handle.remove()
        return caught[0][0].to(self.dtype)


class LeanBody:
    """A network of BERT's or RoBERTa's layout, by as few and as large products as there can be."""

    def __init__(self, network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None = None) -> None:
        base, config = network.base_model, network.config
        self.network, self.dtype = network, dtype
        self.embeddings = base.embeddings
        self.depth = len(base.encoder.layer)
        self.heads, self.width = int(config.num_attention_heads), int(config.hidden_size)
        self.eps = float(config.layer_norm_eps)
        self.activation = _ACTIVATIONS[config.hidden_act]
        # RoBERTa counts positions from behind its padding.
        offset = getattr(base.embeddings, "padding_idx", None)
        self.first_position = 0 if offset is None else int(offset) + 1
        dense, norm = _transform(network)
        self.weights: Weights = weights_of(base.encoder.layer, dense, norm, dtype)
        self.compiled = compile_with is not None
        self._compiled_after = compile_with(self._after) if compile_with else self._after
        self._compiled_one = compile_with(attend_from_one) if compile_with else attend_from_one

    def begin(self) -> None:
        """Take over what the optimizer has changed."""
        self.weights.begin()

    def end(self) -> None:
        """Hand the gradients to the optimizer."""
        self.weights.end()

    def __call__(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor | None,
        columns: torch.Tensor,
        symbols: torch.nn.Parameter | None = None,
    ) -> torch.Tensor:
        """The states that enter the table of the vocabulary."""
        # Asking is not worth a second compilation.
        training = torch.is_grad_enabled()
        after = self._compiled_after if training else self._after
        from_one = self._compiled_one if training else attend_from_one
        sentences, tokens = ids.shape
        states = self._embedded(ids, symbols).flatten(0, 1)
        for number in range(self.depth - 1):
            own = self.weights.layer(number)
            projected = functional.linear(states, own.projection, own.projection_bias)
            gathered = attend(projected.view(sentences, tokens, 3, self.heads, -1), lengths)
            states = after(gathered, states, *own.behind)
        own = self.weights.layer(self.depth - 1)
        masks = states[torch.arange(sentences, device=ids.device) * tokens + columns]
        query = functional.linear(masks, own.projection[: self.width], own.projection_bias[: self.width])
        others = functional.linear(states, own.projection[self.width :], own.projection_bias[self.width :])
        others = others.view(sentences, tokens, 2, self.heads, -1)
        states = after(from_one(query.view(sentences, self.heads, -1), others, lengths), masks, *own.behind)
        weight, bias, norm, norm_bias = self.weights.transform()
        return _normed(self.activation(functional.linear(states, weight, bias)), norm, norm_bias, self.eps)

    def _embedded(self, ids: torch.Tensor, symbols: torch.nn.Parameter | None) -> torch.Tensor:
        own, tokens = self.embeddings, ids.shape[1]
        positions = own.position_embeddings.weight[self.first_position : self.first_position + tokens]
        vectors = embed(self.network, ids, symbols) + (own.token_type_embeddings.weight[0] + positions)
        return _normed(vectors, own.LayerNorm.weight, own.LayerNorm.bias, self.eps).to(self.dtype)

    def _after(
        self,
        gathered: torch.Tensor,
        states: torch.Tensor,
        out: torch.Tensor,
        out_bias: torch.Tensor,
        norm: torch.Tensor,
        norm_bias: torch.Tensor,
        up: torch.Tensor,
        up_bias: torch.Tensor,
        down: torch.Tensor,
        down_bias: torch.Tensor,
        last_norm: torch.Tensor,
        last_bias: torch.Tensor,
    ) -> torch.Tensor:
        """A layer behind its attention, token by token."""
        middle = _normed(functional.linear(gathered, out, out_bias) + states, norm, norm_bias, self.eps)
        wide = self.activation(functional.linear(middle, up, up_bias))
        return _normed(functional.linear(wide, down, down_bias) + middle, last_norm, last_bias, self.eps)


def _normed(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return functional.layer_norm(states, states.shape[-1:], weight, bias, eps)


def _transform(network: Any) -> tuple[Any, Any]:
    """The dense layer and the norm between the last layer and the table of the vocabulary."""
    if hasattr(network, "lm_head"):
        return network.lm_head.dense, network.lm_head.layer_norm
    own = network.cls.predictions.transform
    return own.dense, own.LayerNorm


def _lean(network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None) -> Body | None:
    """The lean body, if the network has such a layout and gives the same by it."""
    try:
        tried = LeanBody(network, torch.float32)
        size = int(network.get_input_embeddings().weight.shape[0])
        device = network.device
        ids = (torch.arange(12, device=device).reshape(2, 6) * 7 + 11) % size
        ids = torch.where(ids == network.config.pad_token_id, ids + 1, ids)
        lengths = torch.tensor([6, 4], dtype=torch.int32, device=device)
        columns = torch.tensor([4, 1], device=device)
        with torch.inference_mode():
            same = torch.allclose(
                tried(ids, lengths, columns),
                PlainBody(network, torch.float32)(ids, lengths, columns),
                atol=1e-4,
                rtol=1e-3,
            )
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
        logger.info("%s has no lean way: %s", type(network).__name__, error)
        return None
    return LeanBody(network, dtype, compile_with) if same else None
