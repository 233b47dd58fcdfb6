"""Models for soft prompts, made once for all that learn them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from soft_worlds import FAMILIES, pretrained


@pytest.fixture(scope="module")
def one_thread():
    """Threads only wait for each other where so little is to be done."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class SoftModels(dict[str, Path]):
    """Folders of models that soft prompts are learned for, each made when it is asked for."""

    def __init__(self, made_once, steps: int) -> None:
        self.made_once, self.steps = made_once, steps

    def __missing__(self, name: str) -> Path:
        assert name in FAMILIES

        def make(folder: Path) -> None:
            pretrained(folder / name, name == "masked", self.steps)

        self[name] = self.made_once(f"soft-{name}-{self.steps}", make) / name
        return self[name]


@pytest.fixture(scope="module")
def folders(one_thread, made_once) -> SoftModels:
    """A masked and a causal model that know the kinds of some names."""
    return SoftModels(made_once, steps=300)


@pytest.fixture(scope="module")
def unread(one_thread, made_once) -> SoftModels:
    """The same models, hardly trained: for what does not depend on what they know."""
    return SoftModels(made_once, steps=2)
