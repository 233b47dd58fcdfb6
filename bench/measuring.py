"""The shared parts of the benchmarks: ways timed in turn, children's memory, one table, one JSON file.

A results file holds ``name``, ``quick``, ``repeats``, ``environment`` (versions, processor, cores, date), ``timings``
(way -> all seconds, in order), ``ratios`` (label -> value, low, high), ``table`` (columns and rows as printed),
``notes`` and ``details`` (what is particular to the benchmark).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "pyarrow",
    "duckdb",
    "pydantic",
    "pyoxigraph",
    "rdflib",
)

Way = Callable[[], Any]


def interleave(ways: Mapping[str, Way], repeats: int, warmups: int = 1) -> dict[str, list[float]]:
    """Seconds of every way in every round, the ways taken in turn and each round begun with another one.

    A way that returns a float has timed itself. Warm-up rounds are not kept.
    """
    names = list(ways)
    timings: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-warmups, repeats):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            started = time.perf_counter()
            own = ways[name]()
            seconds = own if isinstance(own, float) else time.perf_counter() - started
            if number >= 0:
                timings[name].append(seconds)
    return timings


@dataclass(frozen=True)
class Ratio:
    """The ratio of two medians, with the smallest and the largest ratio of a single round."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """How many times as large the one is as the other, both measured in the same rounds."""
    rounds = [a / b for a, b in zip(above, below, strict=True)]
    return Ratio(statistics.median(above) / statistics.median(below), min(rounds), max(rounds))


def fitted_exponent(seconds: Mapping[int, float]) -> float:
    """The power of its size with which a time grows: the slope of a line through their logarithms, by least squares."""
    return statistics.linear_regression([math.log(size) for size in seconds], [math.log(t) for t in seconds.values()])[
        0
    ]


def median_with_spread(values: Sequence[float], digits: int = 3) -> str:
    """The median, with the smallest and the largest value."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


@dataclass(frozen=True)
class Child:
    """A process that has ended: its seconds from start to end, and its peak resident memory in megabytes."""

    seconds: float
    peak_mb: float


def run_child(command: Sequence[str], environment: Mapping[str, str], measures_memory: bool = False) -> Child:
    """Run a command to its end and measure it; refuses one that fails, with its last words.

    The kernel counts the memory that the parent had when it started the child as the child's own, so a parent that
    measures memory must be smaller than its children: this is checked.
    """
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()[-5:]
            raise RuntimeError(f"{Path(command[0]).name} ended with {process.returncode}: " + " | ".join(words))
    peak = _megabytes(usage.ru_maxrss)
    own = _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if measures_memory and peak <= own:
        raise RuntimeError(f"the child's peak of {peak:.0f} MB is hidden by its parent's own {own:.0f} MB")
    return Child(seconds, peak)


def _megabytes(peak: int) -> float:
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def child_environment() -> dict[str, str]:
    """The environment for a process that uses merkhet from this folder, and never asks the model hub."""
    given = [str(Path(place).resolve()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    path = os.pathsep.join(dict.fromkeys([str(ROOT / "src"), *given]))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


def environment() -> dict[str, Any]:
    """What the figures depend on: merkhet, Python, packages, processor, cores, system, and the date."""
    from merkhet import __version__

    return {
        "merkhet": __version__,
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(("model name", "hardware"))]
    return names[0] if names else platform.processor() or platform.machine()


@dataclass(frozen=True)
class Table:
    """What a benchmark prints."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]

        def aligned(line: Sequence[str]) -> str:
            first, *others = (
                text.rjust(w) if i else text.ljust(w) for i, (text, w) in enumerate(zip(line, widths, strict=True))
            )
            return "  ".join([first, *others]).rstrip()

        body = [aligned(line) for line in lines]
        body.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, "", *body, *(["", *self.notes] if self.notes else [])])


def arguments(about: str, repeats: int, models: Sequence[str] = (), peers: bool = True) -> argparse.ArgumentParser:
    """The options that every benchmark has; those that ask models have ``--models`` too."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument(
        "--repeats", type=int, default=None, help=f"rounds that are timed [{repeats}; quick and headline: 2]"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--headline", action="store_true", help="the sizes of 'make bench': minutes, not hours")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the JSON file")
    if peers:
        parser.add_argument("--no-peers", action="store_true", help="without the peers' environment")
    if models:
        parser.add_argument("--models", nargs="+", default=list(models), help=f"[{' '.join(models)}]")
    parser.set_defaults(usual_repeats=repeats)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options given, the number of repeats settled."""
    options = parser.parse_args()
    if options.repeats is None:
        options.repeats = 2 if options.quick or options.headline else options.usual_repeats
    if options.repeats < 1:
        parser.error("--repeats should be 1 or more")
    return options


def finish(
    name: str,
    options: argparse.Namespace,
    table: Table,
    timings: Mapping[str, Sequence[float]],
    ratios: Mapping[str, Ratio],
    details: Mapping[str, Any],
) -> None:
    """Print the table and write the results file."""
    content = {
        "name": name,
        "quick": options.quick,
        "repeats": options.repeats,
        "environment": environment(),
        "timings": {way: list(seconds) for way, seconds in timings.items()},
        "ratios": {label: asdict(one) for label, one in ratios.items()},
        "table": {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]},
        "notes": list(table.notes),
        "details": dict(details),
    }
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / f"{name}.json"
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table, flush=True)
