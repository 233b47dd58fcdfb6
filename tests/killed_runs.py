"""Runs in processes that are killed: at a moment the run itself chooses, or by whoever started them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
_IMPORTS = (
    *("merkhet.api", "merkhet.suites.quickstart.suite", "merkhet.reports", "merkhet.models.loading"),
    *("duckdb", "pyarrow.parquet", "altair", "vl_convert", "pandas", "jinja2", "torch", "transformers"),
    "transformers.models.llama.modeling_llama",
)

_SUICIDE = """
import json, os, signal, sys
sys.path.insert(0, {tests!r})
import merkhet
from killed_runs import Killed
from pathlib import Path

given = json.loads(sys.argv[1])
merkhet.run(given.pop("study"), progress=Killed(**given.pop("killed")), **given)
"""


class Killed:
    """Kills its own process when ``label`` has advanced by ``after`` units and a file matches ``wait``, if given."""

    def __init__(self, label: str, after: int, wait: str | None = None) -> None:
        self.label, self.after, self.wait, self.done = label, after, wait, 0

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, label: str, done: int) -> None:
        self.done += done if label == self.label else 0
        if self.done >= self.after and (self.wait is None or any(Path().glob(self.wait))):
            os.kill(os.getpid(), signal.SIGKILL)

    def finish(self, label: str) -> None: ...

    def say(self, line: str) -> None: ...


def run_killed(study: str, killed: dict[str, Any], cwd: Path, **options: Any) -> None:
    """Run a study in a process of its own that kills itself, as :class:`Killed` says; refuse one that came through."""
    given = json.dumps({"study": study, "killed": killed, **options}, default=str)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _SUICIDE.format(tests=str(TESTS)), given]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def forked_server() -> Any:
    """Return a context of processes that begin with everything imported, so that kills fall into their work."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTS, "killed_runs"])
    return context


def run_quietly(study: str, options: dict[str, Any]) -> None:
    """Run a study: what a process of :func:`forked_server` does."""
    import torch

    import merkhet

    torch.set_num_threads(1)
    merkhet.run(study, **options)


def memorize_offices(folder: Path, work: Path, progress: Any) -> Any:
    """Memorize a small world of offices in 12 epochs of 160 statements, with a checkpoint after each."""
    from stored_facts import world

    from merkhet.models.loading import load_model
    from merkhet.models.model_lookup import ModelSpec, resolve_model
    from merkhet.training.memorizing.memorize import store_statements as memorize

    work.mkdir(exist_ok=True)
    settings = {"epochs": 12, "batch_size": 16, "learning_rate": 3e-3, "until": 0.0, "evaluate_every": 3}
    settings |= {"checkpoint_seconds": 0.0, "dynamic": 30, "copies": 4}
    start = load_model(resolve_model(ModelSpec("random:1x32")))
    statements, symbols = world(40, offices=10)
    return memorize(start, statements, symbols, folder, settings=settings, progress=progress, checkpoints=work)


def memorize_killed(folder: str, work: str, last: int) -> None:
    """Memorize in a process of :func:`forked_server`, killed after ``last`` statements (0: not at all)."""
    import torch

    torch.set_num_threads(1)
    place = Path(work)

    class Watch(Killed):
        def advance(self, label: str, done: int) -> None:
            if not self.done:
                (place / "first").write_text(str(done))
            self.label = label
            super().advance(label, done)

    memorize_offices(Path(folder), place, Watch("", last or 10**9))
