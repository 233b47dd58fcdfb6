"""Counts what goes through a network: rows, tokens (padding included) and positions at which the head works."""

from __future__ import annotations

from typing import Any


class Counter:
    """Within a ``with`` block, counts every forward pass of a Hugging Face network with a language-model head."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.passes = self.rows = self.tokens = self.head_positions = 0

    def __enter__(self) -> Counter:
        self.handle = self.network.register_forward_hook(self._count, with_kwargs=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.handle.remove()

    def _count(self, _network: Any, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        ids = named["input_ids"] if "input_ids" in named else given[0]
        logits = output.logits if hasattr(output, "logits") else output[0]
        self.passes += 1
        self.rows += ids.shape[0]
        self.tokens += ids.numel()
        self.head_positions += logits.shape[:-1].numel()

    def counts(self) -> dict[str, int]:
        """The counts so far."""
        return {
            "passes": self.passes,
            "rows": self.rows,
            "tokens": self.tokens,
            "head_positions": self.head_positions,
        }
