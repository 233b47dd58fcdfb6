"""The language-model head where it is needed: logits at chosen positions only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from merkhet.models.protocol import FloatArray

_LINES_IN_CACHE = 16


@contextmanager
def pick_positions(module: Any, rows: torch.Tensor, columns: torch.Tensor) -> Iterator[None]:
    """Pick the positions (rows, columns) of a batch out of what a module gives: all that follows works on them alone.

    They then are one row of positions. A module that is passed several times (layers that share their weights) raises
    IndexError.
    """
    passed = False

    def pick(_module: Any, _arguments: Any, output: Any) -> Any:
        nonlocal passed
        if passed:
            raise IndexError("positions cannot be picked twice")  # Said here: a GPU would be lost by trying.
        passed = True
        if isinstance(output, tuple):
            return (output[0][rows, columns].unsqueeze(0), *output[1:])
        output.last_hidden_state = output.last_hidden_state[rows, columns].unsqueeze(0)
        return output

    handle = module.register_forward_hook(pick)
    try:
        yield
    finally:
        handle.remove()


def logits_at(model: Any, rows: torch.Tensor, columns: torch.Tensor, early: Any = None, **inputs: Any) -> torch.Tensor:
    """Logits at the positions (rows, columns) of a batch, in float32, one line a position.

    The hidden states are picked out between the body and the head, whatever the architecture; picked after an ``early``
    module of the body, all that follows it works on the chosen positions alone too.
    """
    with pick_positions(early or model.base_model, rows, columns):
        logits: torch.Tensor = model(**inputs).logits
    return logits[0].float()


def last_attention(model: Any) -> Any:
    """The attention of an encoder's last layer, if what follows it works position by position; else None.

    Tried on two rows: with positions picked after it, the logits must be the same as with all of them.
    """
    lists = [part for part in model.base_model.modules() if isinstance(part, torch.nn.ModuleList) and len(part)]
    found = next((part[-1].attention for part in lists if hasattr(part[-1], "attention")), None)
    if found is None:
        return None
    vocabulary = int(model.config.get_text_config().vocab_size)
    ids = (torch.arange(12, device=model.device).reshape(2, 6) * 7 + 5) % vocabulary
    rows, columns = (torch.tensor(places, device=model.device) for places in ([0, 1, 1], [4, 1, 5]))
    with torch.inference_mode():
        try:
            picked = logits_at(model, rows, columns, found, input_ids=ids)
        except (TypeError, ValueError, RuntimeError, IndexError):
            return None
        whole = logits_at(model, rows, columns, input_ids=ids)
    tolerance = 1e-4 if model.dtype == torch.float32 else 0.05
    return found if picked.shape == whole.shape and torch.allclose(picked, whole, atol=tolerance) else None


def log_probabilities(logits: torch.Tensor, lines: torch.Tensor, tokens: torch.Tensor) -> FloatArray:
    """Log-probability of each token at its line of logits, without a second table of the vocabulary's size."""
    # A CPU works on few lines at a time in its cache, and on all of them in memory.
    parts = logits.split(_LINES_IN_CACHE) if logits.device.type == "cpu" else (logits,)
    normalisers = torch.cat([torch.logsumexp(part, dim=1) for part in parts])
    values: FloatArray = (logits[lines, tokens] - normalisers[lines]).double().cpu().numpy()
    return values


def describe_weights(model: Any) -> dict[str, str | int | float]:
    """Architecture, parameters, dtype and device, for the record of a run."""
    return {
        "architecture": type(model).__name__,
        "parameters": int(sum(p.numel() for p in model.parameters())),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": model.device.type,
    }
