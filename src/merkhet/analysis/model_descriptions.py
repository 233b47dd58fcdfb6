"""Descriptions of models for tables: size and training corpus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelDescription:
    """Size and training corpus of an asked model, where they are known."""

    parameters: int | None = None
    """Number of parameters of the loaded model."""
    corpus: str | None = None
    """Training corpus, as the study names it."""

    @property
    def size(self) -> str | None:
        """The number of parameters as in papers: 110M, 1.5B; None if it is unknown."""
        return None if self.parameters is None else format_size(self.parameters)


def format_size(parameters: int) -> str:
    """Round a number of parameters to millions or billions: 125M, 1.5B; numbers below a million are written out."""
    if parameters < 999_500:
        return f"{parameters:,}"
    if parameters < 9_950_000:
        return f"{parameters / 1e6:.1f}".removesuffix(".0") + "M"
    if parameters < 999_500_000:
        return f"{parameters / 1e6:.0f}M"
    return f"{parameters / 1e9:.1f}".removesuffix(".0") + "B"
