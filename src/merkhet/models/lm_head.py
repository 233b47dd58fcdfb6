"""Logits at selected positions; the language-model head is not run at other positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from merkhet.models.protocol import FloatArray

_LINES_IN_CACHE = 16


@contextmanager
def pick_positions(module: Any, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[None]:
    """Reduce a module's output to the positions (rows, columns), so that later modules process only these.

    The selected positions form a batch of one sequence.

    Raises:
        IndexError: The module is called twice in one forward pass, as in networks whose layers share weights.
    """
    called = False

    def pick(_module: Any, _arguments: Any, output: Any) -> Any:
        nonlocal called
        if called:
            # Indexing out of range on a GPU would make the device unusable.
            raise IndexError("positions cannot be picked twice")
        called = True
        if isinstance(output, tuple):
            return (output[0][rows, columns].unsqueeze(0), *output[1:])
        output.last_hidden_state = output.last_hidden_state[rows, columns].unsqueeze(0)
        return output

    handle = module.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()


def logits_at(
    model: Any, rows: torch.Tensor, columns: torch.Tensor, pick_after: Any = None, **inputs: Any
) -> torch.Tensor:
    """Return float32 logits of shape (positions, vocabulary) at the positions (rows, columns) of a batch.

    Modules after ``pick_after`` process only these positions. By default, ``pick_after`` is everything before the head.
    """
    with pick_positions(pick_after or model.base_model, rows, columns):
        logits: torch.Tensor = model(**inputs).logits
    return logits[0].float()


def find_last_attention(model: Any) -> Any:
    """Return the attention module of an encoder's last layer if later modules process each position separately.

    A test on two short sequences decides: selecting positions after this module must not change the logits. None if
    they change, or if the network has no such module.
    """
    layer_lists = [
        module for module in model.base_model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)
    ]
    attention = next((layers[-1].attention for layers in layer_lists if hasattr(layers[-1], "attention")), None)
    if attention is None:
        return None
    vocabulary = int(model.config.get_text_config().vocab_size)
    ids = (torch.arange(12, device=model.device).reshape(2, 6) * 7 + 5) % vocabulary
    rows, columns = (torch.tensor(indices, device=model.device) for indices in ([0, 1, 1], [4, 1, 5]))
    with torch.inference_mode():
        try:
            picked = logits_at(model, rows, columns, attention, input_ids=ids)
        except (TypeError, ValueError, RuntimeError, IndexError):
            return None
        expected = logits_at(model, rows, columns, input_ids=ids)
    tolerance = 1e-4 if model.dtype == torch.float32 else 0.05
    same = picked.shape == expected.shape and torch.allclose(picked, expected, atol=tolerance)
    return attention if same else None


def log_probabilities(logits: torch.Tensor, lines: torch.Tensor, tokens: torch.Tensor) -> FloatArray:
    """Return the log-probability of each token ``tokens[i]`` in row ``lines[i]`` of ``logits``."""
    # On a CPU, chunks of a few rows of logits stay in the processor's cache.
    chunks = logits.split(_LINES_IN_CACHE) if logits.device.type == "cpu" else (logits,)
    normalisers = torch.cat([torch.logsumexp(chunk, dim=1) for chunk in chunks])
    values: FloatArray = (logits[lines, tokens] - normalisers[lines]).double().cpu().numpy()
    return values
