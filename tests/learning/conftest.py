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


@pytest.fixture(scope="module")
def folders(one_thread, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A masked and a causal model that know the kinds of some names."""
    folder = tmp_path_factory.mktemp("pretrained")
    return {name: pretrained(folder / name, name == "masked") for name in FAMILIES}
