"""Asking a baseline pauses the search for reference cycles, and only while it lasts."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from merkhet.engine.asker import collection_paused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Collect before and after each test."""
    gc.enable()
    yield
    gc.enable()


def test_collection_goes_on_after_a_block_and_after_an_error() -> None:
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), collection_paused():
        raise ValueError("broken")
    assert gc.isenabled()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_pauses_that_overlap_end_with_collection() -> None:
    first, second = collection_paused(), collection_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled()
