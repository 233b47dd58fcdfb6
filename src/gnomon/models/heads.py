"""The language-model head where it is needed: logits at chosen positions only."""

from __future__ import annotations

from typing import Any

import torch

from gnomon.models.protocol import FloatArray


def logits_at(model: Any, rows: torch.Tensor, columns: torch.Tensor, **inputs: Any) -> torch.Tensor:
    """Logits at the positions (rows, columns) of a batch, in float32, one line a position.

    The hidden states are picked out between the body and the head, whatever the architecture: the head then works
    on the chosen positions alone.
    """

    def pick(_module: Any, _arguments: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0][rows, columns].unsqueeze(0), *output[1:])
        output.last_hidden_state = output.last_hidden_state[rows, columns].unsqueeze(0)
        return output

    handle = model.base_model.register_forward_hook(pick)
    try:
        logits: torch.Tensor = model(**inputs).logits
    finally:
        handle.remove()
    return logits[0].float()


def log_probabilities(logits: torch.Tensor, lines: torch.Tensor, tokens: torch.Tensor) -> FloatArray:
    """Log-probability of each token at its line of logits, without a second table of the vocabulary's size."""
    normalisers = torch.logsumexp(logits, dim=1)
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
