"""A process that tries some inputs of one reader: drawn by a seed, made by hypothesis, or led by coverage (atheris)."""

from __future__ import annotations

import base64
import os
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from fuzz.harness import LIMIT, try_input
from fuzz.oddities import common_bombs
from fuzz.status import Status
from fuzz.targets import Target, targets_of

_MEMORY = 12 << 30
_COMMANDS = 100
"""Of so many inputs one goes through the command line."""


class _Trying:
    """Tries inputs one after another and says what came of each; some go through the command line."""

    def __init__(self, target: Target, folder: Path, limit: float | None) -> None:
        self.target, self.limit = target, limit
        self.status = Status(folder)
        self.place = folder / "places"
        self.place.mkdir(exist_ok=True)
        self.count = 0
        self.parent = os.getppid()

    def one(self, data: bytes) -> None:
        """Try an input; nobody is left to hear of it if whoever started this process is gone."""
        if os.getppid() != self.parent:
            os._exit(1)
        self.count += 1
        self.status.begin(data)
        # Not where coverage leads: typer's commands are made by code that is not instrumented well.
        by_command = self.target.command is not None and self.limit is not None and self.count % _COMMANDS == 7
        outcome = try_input(self.target, data, self.place, limit=self.limit, command=by_command)
        self.status.end(outcome.kind, outcome.seconds)
        if outcome.is_finding:
            self.status.tell(
                {
                    "target": self.target.name,
                    "kind": outcome.kind,
                    "where": outcome.where,
                    "told": outcome.told,
                    "command": by_command,
                    "input": base64.b64encode(data).decode(),
                }
            )


def plain_inputs(trying: _Trying, count: int, seed: str) -> None:
    """Seeds and bombs first (by the first chunk), then seeds with some bytes changed."""
    target, draw = trying.target, random.Random(seed)
    ready = [*target.seeds, *(target.bombs or list)(), *common_bombs()] if seed.endswith(" 0") else []
    for data in ready[:count]:
        trying.one(data)
    for _ in range(count - len(ready)):
        from fuzz.mutations import mutated

        trying.one(mutated(target.seeds, target.words, draw))


def structured_inputs(trying: _Trying, count: int, seed: str) -> None:
    """Inputs that hypothesis makes of the target's grammar."""
    import hypothesis

    target = trying.target
    assert target.grammar is not None
    strategy = target.grammar(target.seeds)
    done = 0

    @hypothesis.seed(random.Random(seed).getrandbits(64))
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def each(data: bytes) -> None:
        nonlocal done
        if done < count:
            done += 1
            trying.one(data)

    each()


def guided_inputs(trying: _Trying, count: int, seed: str, seconds: float) -> None:
    """Inputs that atheris changes so that they reach further into the reader's code."""
    import atheris

    corpus = trying.place.parent / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(trying.target.seeds):
        (corpus / f"seed-{number}").write_bytes(data)
    words = trying.place.parent / "words"
    lines = (b"".join(b"\\x%02x" % byte for byte in word[:60]) for word in trying.target.words if word)
    words.write_bytes(b"".join(b'"%b"\n' % line for line in lines))
    # libFuzzer takes a timeout of 0 as one second, which a busy machine may need for any input.
    options = [
        f"-atheris_runs={count}",
        f"-seed={random.Random(seed).getrandbits(30) + 1}",
        f"-max_total_time={seconds:.0f}",
        *([f"-dict={words}"] if trying.target.words else []),
        *("-max_len=6000", "-timeout=3600", "-rss_limit_mb=0", "-verbosity=0", "-print_final_stats=0"),
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], trying.one)
    atheris.Fuzz()


def main() -> None:
    """``python -m fuzz.worker FOLDER MODULE TARGET WAY COUNT SEED SECONDS``."""
    folder, module, name, way, count, seed, seconds = sys.argv[1:8]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own = Path(folder)
    os.environ["MERKHET_CACHE"] = str(own / "cache")
    os.environ["HF_HUB_OFFLINE"] = "1"
    (own / "home").mkdir(exist_ok=True)
    os.chdir(own / "home")
    if way == "guided":
        import atheris

        with atheris.instrument_imports(include=["merkhet", module]):
            target = targets_of([module])[name]
    else:
        target = targets_of([module])[name]
    # libFuzzer has the alarm to itself; there, only the watcher ends what hangs.
    trying = _Trying(target, own, None if way == "guided" else LIMIT)
    ways: dict[str, Callable[[], None]] = {
        "plain": lambda: plain_inputs(trying, int(count), seed),
        "structured": lambda: structured_inputs(trying, int(count), seed),
        "guided": lambda: guided_inputs(trying, int(count), seed, float(seconds)),
    }
    ways[way]()


if __name__ == "__main__":
    main()
