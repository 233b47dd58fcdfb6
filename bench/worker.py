"""One way to do a job, in a process of its own, so that its memory can be told apart: asked by lines of JSON.

A request names the prompts to be asked (``prompts``), and whether to count what goes through the model (``count``) and
to send the scores (``scores``). The answer holds ``seconds``, ``pairs``, ``counts``, ``peak_mb`` and ``scores``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from counting import Counter

Ask = Callable[[list[int]], Any]
"""Asks the prompts of these numbers; returns a list of scores for each."""


def serve(load: Callable[[], tuple[Ask, Any]]) -> None:
    """Load a way (what asks, and the network it asks), then answer requests until there are no more."""
    # What the libraries print goes to standard error; standard output holds the answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    ask, network = load()
    say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        with Counter(network) if request["count"] else nullcontext() as counter:
            started = time.perf_counter()
            scores = ask(request["prompts"])
            _finish_on_device()
            seconds = time.perf_counter() - started
        say(
            {
                "seconds": seconds,
                "counts": counter.counts() if counter else {},
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 / 1024),
                "gpu_mb": _gpu_peak(),
                "scores": scores if request["scores"] else None,
            }
        )


def _finish_on_device() -> None:
    torch = sys.modules["torch"]
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _gpu_peak() -> float | None:
    torch = sys.modules["torch"]
    return torch.cuda.max_memory_allocated() / 1e6 if torch.cuda.is_available() else None


class Worker:
    """A way in its own process, seen from the benchmark."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], count: int, place: Path
    ) -> None:
        self.name = name
        self.count = count
        self.errors = open(place / f"{name.replace(' ', '-')}.txt", "w+", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.peak_mb = 0.0
        self.gpu_mb: float | None = None
        self._answer()

    def ask(self, prompts: Sequence[int], count: bool = False, scores: bool = False) -> dict[str, Any]:
        """Ask some prompts; seconds and all."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"prompts": list(prompts), "count": count, "scores": scores}) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.peak_mb = max(self.peak_mb, answer["peak_mb"])
        self.gpu_mb = answer["gpu_mb"]
        return answer

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            words = self.errors.read().strip().splitlines() or ["ended without a word"]
            raise RuntimeError(f"{self.name}: {words[-1]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
