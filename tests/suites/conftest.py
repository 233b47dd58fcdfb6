"""Questions and models that several suites share, made once per test run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

LONGEST = 300


@pytest.fixture(scope="session")
def kmir_few(made_once: Any) -> Path:
    """Questions of kmir on one small pack."""
    import merkhet

    return (
        made_once("kmir-few", lambda folder: merkhet.build("kmir", out=folder / "made", knowledge=["medicine"]))
        / "made"
    )


@pytest.fixture(scope="session")
def long_models(made_once: Any) -> dict[str, Path]:
    """A tiny masked and a tiny causal model that take texts of some length."""
    from tiny_models import FAMILIES, Family, build_models

    def longer(family: Family, **positions: int) -> Family:
        def tokenizer(texts: tuple[str, ...]) -> Any:
            made = family.tokenizer(texts)
            made.model_max_length = LONGEST
            return made

        return dataclasses.replace(family, tokenizer=tokenizer, settings={**family.settings, **positions})

    families = {
        "masked": longer(FAMILIES["roberta"], max_position_embeddings=LONGEST + 2),
        "causal": longer(FAMILIES["gpt2"], n_positions=LONGEST),
    }
    folder = made_once("long-models", lambda folder: build_models(folder, families))
    return {name: folder / name for name in families}
