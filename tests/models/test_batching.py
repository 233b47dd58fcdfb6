"""Batches: filled to the budget, halved when memory runs out, nothing left out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from frozen_heap import frozen_heap
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import MerkhetError
from merkhet.models.batching import fill_batches, run_batches


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> Iterator[None]:
    """Garbage is collected whenever memory runs out."""
    with frozen_heap():
        yield


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 50), max_size=60), budget=st.integers(1, 200))
def test_every_row_once_and_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = fill_batches(lengths, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= budget


@settings(deadline=None)
@given(rows=st.integers(1, 40), fits=st.integers(1, 40))
def test_out_of_memory_halves_until_it_fits(rows: int, fits: int) -> None:
    done: list[int] = []

    def forward(batch: list[int]) -> None:
        if len(batch) > fits:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        done.extend(batch)

    found = run_batches([3] * rows, 3 * rows, forward)
    assert done == list(range(rows))
    assert found <= 3 * rows
    assert found == 3 * rows or found // 3 <= fits


def test_a_single_row_that_does_not_fit_is_an_error() -> None:
    def forward(batch: list[int]) -> None:
        raise MemoryError

    with pytest.raises(MerkhetError, match="out of memory on a single row"):
        run_batches([1, 2, 3], 100, forward)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    calls = []

    def forward(batch: list[int]) -> None:
        calls.append(batch)
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        run_batches([1, 1], 100, forward)
    assert calls == [[0, 1]]


LIMITED = """
import logging, resource, sys
logging.basicConfig(level=logging.WARNING)
from merkhet.core.records import Question
from merkhet.models.loading import load_model

model = load_model(sys.argv[1])
words = [w for w in model.tokenizer.get_vocab() if w.isalpha()][:2]

def prompt(number):  # Every prompt is another one: equal rows would be computed once.
    return "the " * 40 + " ".join(words[number >> bit & 1] for bit in range(12)) + " [MASK]."

asked = [Question(str(i), "t", prompt(i), (words[0],), words[0], tuple(words)) for i in range(4000)]
plain = {r.index: r.by_method["multiple-mean"].tolist() for r in model.score_candidates(asked[:8], ["multiple-mean"])}
model.token_budget = 10**9
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + 150 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {r.index: r.by_method["multiple-mean"].tolist() for r in model.score_candidates(asked, ["multiple-mean"])}
assert len(found) == 4000
assert all(abs(a - b) < 1e-4 for i in plain for a, b in zip(plain[i], found[i]))
print("all asked")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's memory limits")
def test_real_lack_of_memory(model_folders: dict[str, Path]) -> None:
    """A process that may take 150 MiB more is given one batch that needs far more."""
    command = [sys.executable, "-c", LIMITED, str(model_folders["bert-uncased"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "all asked", done.stderr[-2000:]
    assert "out of memory with 4000 rows: retrying with 2000" in done.stderr
