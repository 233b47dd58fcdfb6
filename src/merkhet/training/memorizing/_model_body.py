"""Bodies of masked models, which compute the hidden states at the masks from which the head scores symbols.

Networks with the layout of BERT or RoBERTa use a fused body: one matrix product for queries, keys and values, the last
layer computed only at the masks, and no dropout. Before use, its hidden states are compared with those of the
transformers library. Networks with other layouts run through the library.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from merkhet.models.lm_head import pick_positions

logger = logging.getLogger(__name__)

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": functional.gelu, "relu": functional.relu}
MAX_KERNEL_TOKENS = 64


LayerParameters = list[list[torch.nn.Parameter]]
"""Parameters of a layer; the parameters of an inner list are concatenated."""
Lengths: TypeAlias = Tensor | None
"""Number of tokens of each sentence; None if no sentence is padded."""
Table: TypeAlias = torch.nn.Parameter | None
"""Table of symbol vectors; None if sentences do not contain symbols."""


class Body(ABC):
    """All layers of a masked model before its output vocabulary, which compute the hidden state at each mask.

    Call ``begin_step`` before the passes of a training step, and ``end_step`` after them.
    """

    def __init__(self, network: Any, dtype: torch.dtype, weights: BodyWeights | None = None) -> None:
        self.network, self.dtype, self.weights = network, dtype, weights

    def begin_step(self) -> None:
        """Load the parameters that the optimizer has updated."""
        if self.weights:
            self.weights.begin_step()

    def end_step(self) -> None:
        """Store the gradients in the parameters for the optimizer."""
        if self.weights:
            self.weights.end_step()

    @abstractmethod
    def __call__(self, ids: Tensor, lengths: Lengths, columns: Tensor, symbols: Table = None) -> Tensor:
        """Return the hidden state at the mask of each sentence, of shape (sentences, width).

        Args:
            ids: tokens of shape (sentences, tokens); ids beyond the vocabulary stand for rows of ``symbols``.
            lengths: number of tokens of each sentence; None if no sentence is padded.
            columns: position of each sentence's mask.
            symbols: table of symbol vectors; None if sentences do not contain symbols.
        """

    def embed(self, ids: Tensor, symbols: Table) -> Tensor:
        """Return the input embeddings of ``ids``: tokens or, beyond the vocabulary, symbols."""
        words = self.network.get_input_embeddings()
        if symbols is None:
            vectors: Tensor = words(ids)
            return vectors
        size = words.weight.shape[0]
        of_words = words(ids.clamp(max=size - 1))
        of_symbols = functional.embedding((ids - size).clamp(min=0), symbols)
        return torch.where((ids >= size)[..., None], of_symbols, of_words)


def make_body(
    network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None = None, *, recompute: bool = False
) -> Body:
    """Return a fused body if it is possible and correct for the network, else a body that runs the library's layers.

    ``recompute`` enables gradient checkpointing, which only the library's layers support.
    """
    fused = None if recompute else _fused_body(network, dtype, compile_with)
    return fused or LibraryBody(network, dtype, recompute=recompute)


class LibraryBody(Body):
    """A body for any masked model, which runs the layers of the transformers library."""

    def __init__(self, network: Any, dtype: torch.dtype, *, recompute: bool = False) -> None:
        super().__init__(network, dtype)
        self.words = network.get_output_embeddings()
        if recompute:
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def __call__(self, ids: Tensor, lengths: Lengths, columns: Tensor, symbols: Table = None) -> Tensor:
        """Return the hidden states at the masks before the output vocabulary, captured by a hook."""
        captured: list[Tensor] = []

        def capture(_module: Any, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            captured.append(arguments[0])
            return (arguments[0][:, :1],)  # The logits are not needed, so compute as few as possible.

        length = torch.full_like(columns, ids.shape[1]) if lengths is None else lengths
        attention = (torch.arange(ids.shape[1], device=ids.device)[None, :] < length[:, None]).long()
        inputs = {"input_ids": ids} if symbols is None else {"inputs_embeds": self.embed(ids, symbols)}
        handle = self.words.register_forward_pre_hook(capture)
        rows = torch.arange(len(ids), device=ids.device)
        try:
            halved = torch.autocast(ids.device.type, self.dtype, enabled=self.dtype != torch.float32)
            with halved, pick_positions(self.network.base_model, rows, columns):
                self.network(attention_mask=attention, **inputs)
        finally:
            handle.remove()
        return captured[0][0].to(self.dtype)


class FusedBody(Body):
    """A body for networks with the layout of BERT or RoBERTa, which uses few and large matrix products."""

    weights: BodyWeights

    def __init__(self, network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None = None) -> None:
        base, config = network.base_model, network.config
        super().__init__(network, dtype, make_weights(base.encoder.layer, *_transform(network), dtype))
        self.embeddings = base.embeddings
        self.depth = len(base.encoder.layer)
        self.heads, self.width = int(config.num_attention_heads), int(config.hidden_size)
        self.eps = float(config.layer_norm_eps)
        self.activation = _ACTIVATIONS[config.hidden_act]
        # RoBERTa's positions start after its padding index.
        offset = getattr(base.embeddings, "padding_idx", None)
        self.first_position = 0 if offset is None else int(offset) + 1
        self._compiled_after_attention = compile_with(self._after_attention) if compile_with else self._after_attention
        self._compiled_attend_from_mask = compile_with(attend_from_mask) if compile_with else attend_from_mask

    def __call__(self, ids: Tensor, lengths: Lengths, columns: Tensor, symbols: Table = None) -> Tensor:
        """Return the hidden states at the masks before the output vocabulary."""
        # Inference is not worth a second compilation.
        training = torch.is_grad_enabled()
        after_attention = self._compiled_after_attention if training else self._after_attention
        from_mask = self._compiled_attend_from_mask if training else attend_from_mask
        sentences, tokens = ids.shape
        states = self._embed(ids, symbols).flatten(0, 1)
        for number in range(self.depth - 1):
            projection, bias, *rest = self.weights.layer(number)
            projected = functional.linear(states, projection, bias).view(sentences, tokens, 3, self.heads, -1)
            states = after_attention(attend(projected, lengths), states, *rest)
        projection, bias, *rest = self.weights.layer(self.depth - 1)
        masks = states[torch.arange(sentences, device=ids.device) * tokens + columns]
        query = functional.linear(masks, projection[: self.width], bias[: self.width])
        keys_values = functional.linear(states, projection[self.width :], bias[self.width :])
        keys_values = keys_values.view(sentences, tokens, 2, self.heads, -1)
        gathered = from_mask(query.view(sentences, self.heads, -1), keys_values, lengths)
        states = after_attention(gathered, masks, *rest)
        weight, bias, norm, norm_bias = self.weights.transform
        return _layer_norm(self.activation(functional.linear(states, weight, bias)), norm, norm_bias, self.eps)

    def _embed(self, ids: Tensor, symbols: Table) -> Tensor:
        embeddings, tokens = self.embeddings, ids.shape[1]
        positions = embeddings.position_embeddings.weight[self.first_position : self.first_position + tokens]
        vectors = self.embed(ids, symbols) + (embeddings.token_type_embeddings.weight[0] + positions)
        return _layer_norm(vectors, embeddings.LayerNorm.weight, embeddings.LayerNorm.bias, self.eps).to(self.dtype)

    def _after_attention(self, gathered: Tensor, states: Tensor, *weights: Tensor) -> Tensor:
        """Compute the part of a layer after the attention: output projection, feed-forward network and norms."""
        out, out_bias, norm, norm_bias, up, up_bias, down, down_bias, last_norm, last_bias = weights
        middle = _layer_norm(functional.linear(gathered, out, out_bias) + states, norm, norm_bias, self.eps)
        wide = self.activation(functional.linear(middle, up, up_bias))
        return _layer_norm(functional.linear(wide, down, down_bias) + middle, last_norm, last_bias, self.eps)


def _layer_norm(states: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional.layer_norm(states, states.shape[-1:], weight, bias, eps)


def _transform(network: Any) -> tuple[Any, Any]:
    """Return the dense layer and the layer norm between the last layer and the output vocabulary."""
    if hasattr(network, "lm_head"):
        return network.lm_head.dense, network.lm_head.layer_norm
    transform = network.cls.predictions.transform
    return transform.dense, transform.LayerNorm


def _fused_body(network: Any, dtype: torch.dtype, compile_with: Callable[[Any], Any] | None) -> Body | None:
    """Return a fused body, or None if the network has another layout or the hidden states differ from the library's."""
    try:
        device, size = network.device, int(network.get_input_embeddings().weight.shape[0])
        ids = (torch.arange(12, device=device).reshape(2, 6) * 7 + 11) % size
        ids = torch.where(ids == network.config.pad_token_id, ids + 1, ids)
        lengths = torch.tensor([6, 4], dtype=torch.int32, device=device)
        columns = torch.tensor([4, 1], device=device)
        bodies = FusedBody(network, torch.float32), LibraryBody(network, torch.float32)
        with torch.inference_mode():
            fused, expected = (body(ids, lengths, columns) for body in bodies)
        agrees = torch.allclose(fused, expected, atol=1e-4, rtol=1e-3)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
        logger.info("%s cannot run fused: %s", type(network).__name__, error)
        return None
    return FusedBody(network, dtype, compile_with) if agrees else None


def attend(projected: Tensor, lengths: Lengths) -> Tensor:
    """Return the attention outputs of all tokens, of shape (sentences × tokens, heads × width).

    ``projected`` holds queries, keys and values, and has the shape (sentences, tokens, 3, heads, width).
    """
    sentences, tokens, _, heads, width = projected.shape
    kernel = _attention_kernel(projected, tokens, width)
    if kernel is not None:
        if lengths is None:
            lengths = torch.full((sentences,), tokens, dtype=torch.int32, device=projected.device)
        gathered: Tensor = kernel(projected, lengths)
        return gathered.view(sentences * tokens, heads * width)
    query, key, value = projected.permute(2, 0, 3, 1, 4).unbind(0)
    mask = None
    if lengths is not None:
        mask = (torch.arange(tokens, device=projected.device)[None, :] < lengths[:, None])[:, None, None, :]
    gathered = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return gathered.transpose(1, 2).reshape(sentences * tokens, heads * width)


def attend_from_mask(query: Tensor, projected: Tensor, lengths: Lengths) -> Tensor:
    """Return the attention output of one token of each sentence, of shape (sentences, heads × width).

    ``query`` has the shape (sentences, heads, width). ``projected`` holds the keys and values of all tokens, of shape
    (sentences, tokens, 2, heads, width).
    """
    sentences, tokens, _, heads, width = projected.shape
    key, value = projected.unbind(2)
    scores = (query[:, None].float() * key.float()).sum(-1) / math.sqrt(width)
    if lengths is not None:
        padding = torch.arange(tokens, device=projected.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(padding[:, :, None], -torch.inf)
    weights = torch.softmax(scores, dim=1)
    gathered = (weights[..., None] * value.float()).sum(1)
    return gathered.to(query.dtype).reshape(sentences, heads * width)


def _attention_kernel(projected: Tensor, tokens: int, width: int) -> Any:
    """Return the attention kernel for short sentences, or None if it cannot be used here."""
    small = tokens <= MAX_KERNEL_TOKENS and width in (16, 32, 64, 128)
    if not small or projected.device.type != "cuda" or projected.dtype != torch.bfloat16:
        return None
    try:
        from merkhet.training.memorizing._short_attention import short_attention
    except ImportError:  # Triton is not installed.
        return None
    return short_attention


def make_weights(layers: Sequence[Any], dense: Any, norm: Any, dtype: torch.dtype) -> BodyWeights:
    """Return the weights of a fused body: the parameters themselves in float32, else half-precision copies."""
    parameters = [_layer_parameters(layer) for layer in layers]
    transform = [dense.weight, dense.bias, norm.weight, norm.bias]
    if dtype == torch.float32:
        return BodyWeights(parameters, transform)
    return HalfPrecisionWeights(parameters, transform, dtype)


def _layer_parameters(layer: Any) -> LayerParameters:
    attention, after, down = layer.attention.self, layer.attention.output, layer.output
    projections = [
        [getattr(module, name) for module in (attention.query, attention.key, attention.value)]
        for name in ("weight", "bias")
    ]
    modules = (after.dense, after.LayerNorm, layer.intermediate.dense, down.dense, down.LayerNorm)
    return [*projections, *([parameter] for module in modules for parameter in (module.weight, module.bias))]


class BodyWeights:
    """The parameters of the layers and of the transform between the last layer and the output vocabulary.

    Call ``begin_step`` before the passes of a training step, and ``end_step`` after them.
    """

    transform: Sequence[Tensor]
    """Weights and biases of the dense layer and of the layer norm before the output vocabulary."""

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter]) -> None:
        self.layers, self.transform = layers, transform

    def layer(self, number: int) -> Sequence[Tensor]:
        """Return the weights of the layer with index ``number``.

        First come weight and bias of the concatenated projections (queries, keys, values), then the weights and biases
        of the modules after the attention. Concatenation in each pass is cheap compared with the matrix products.
        """
        return [torch.cat(group) if len(group) > 1 else group[0] for group in self.layers[number]]

    def begin_step(self) -> None:
        """Do nothing: this body computes with the trained parameters and has no copies to refresh."""

    def end_step(self) -> None:
        """Do nothing: the parameters themselves receive the gradients."""


class HalfPrecisionWeights(BodyWeights):
    """Half-precision copies of the parameters, used in the forward and backward passes.

    The parameters and their gradients stay in float32. All parameters are copied once before a step, and all gradients
    once after it, which is faster than a cast at each use.
    """

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter], dtype: torch.dtype) -> None:
        self.copies: list[Tensor] = []
        self.masters: list[torch.nn.Parameter] = []
        self.views: list[Tensor] = []
        self.slices: list[tuple[int, int, int]] = []
        self.layer_copies = [[self._copy(group, dtype) for group in parameters] for parameters in layers]
        self.transform = [self._copy([parameter], dtype) for parameter in transform]
        self.begin_step()

    def _copy(self, parameters: list[torch.nn.Parameter], dtype: torch.dtype) -> Tensor:
        rows = sum(len(parameter) for parameter in parameters)
        copy = torch.empty(rows, *parameters[0].shape[1:], dtype=dtype, device=parameters[0].device)
        start = 0
        for parameter in parameters:
            self.masters.append(parameter)
            self.views.append(copy[start : start + len(parameter)])
            self.slices.append((len(self.copies), start, start + len(parameter)))
            start += len(parameter)
        self.copies.append(copy.requires_grad_())
        return copy

    def layer(self, number: int) -> Sequence[Tensor]:
        """Return the half-precision weights of the layer with index ``number``."""
        return self.layer_copies[number]

    def begin_step(self) -> None:
        """Copy the parameters into the half-precision copies, and clear the gradients of the copies."""
        with torch.no_grad():
            torch._foreach_copy_(self.views, [parameter.detach() for parameter in self.masters])
        for copy in self.copies:
            copy.grad = None

    def end_step(self) -> None:
        """Copy the gradients of the half-precision copies to the parameters."""
        masters, gradients = [], []
        for master, (index, start, stop) in zip(self.masters, self.slices, strict=True):
            gradient = self.copies[index].grad
            if gradient is not None:
                master.grad = torch.empty_like(master) if master.grad is None else master.grad
                masters.append(master.grad)
                gradients.append(gradient[start:stop])
        with torch.no_grad():
            torch._foreach_copy_(masters, gradients)
