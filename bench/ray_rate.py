"""Measures how fast questions are asked on Ray by one and two workers of one core, against one process on one thread.

All ways ask the same model the same questions through ``merkhet.run``, in turn, and must give the same scores, byte for
byte. A rate without loading counts from when the first worker has its model; one with loading, from when the workers
are asked for. Ray is started before, and how long that took is said apart.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is loaded.

from measuring import Table, arguments, finish, interleave, median_with_spread, parse, ratio

MODEL = "minilm-mlm"
SIZE, QUICK = 800, 20
ALONE, ONE, TWO = "one process", "Ray, 1 worker", "Ray, 2 workers"
WORKERS = {ALONE: 0, ONE: 1, TWO: 2}


def ask(data: Path, out: Path, model: str, workers: int) -> Any:
    """A run in a new folder: in this process, or on so many workers of one core."""
    import merkhet

    on_ray = {"engines": ["ray"], "workers": workers, "cores": 1} if workers else {}
    return merkhet.run("quickstart", data=data, models=[model], out=out, **on_ray)


def main() -> int:
    options = parse(arguments(__doc__, repeats=3, models=(MODEL,), peers=False))
    if importlib.util.find_spec("ray") is None:
        print("ray_rate: Ray is not installed (pip install 'merkhet[ray]'), nothing was measured")
        return 0
    import torch

    import merkhet
    from merkhet.engine.distribute.ray_cluster import connect, disconnect

    torch.set_num_threads(1)
    model = options.models[0]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        merkhet.build("quickstart", out=place / "questions", limit=QUICK if options.quick else SIZE)
        started = time.perf_counter()
        connect(None)
        starting = time.perf_counter() - started
        with_loading: dict[str, list[float]] = {name: [] for name in WORKERS}
        scores: set[bytes] = set()
        count, number = 0, 0

        def timed(name: str) -> float:
            nonlocal count, number
            number += 1
            run = ask(place / "questions", place / f"run-{number}", model, WORKERS[name])
            about = run.record["models"][0]
            scores.add((run.folder / "scores.parquet").read_bytes())
            count = about["questions"]
            with_loading[name].append(about["loading_seconds"] + about["seconds"])
            return float(about["seconds"])

        try:
            ways = {name: (lambda name=name: timed(name)) for name in WORKERS}
            timings = interleave(ways, options.repeats, warmups=1)
        finally:
            disconnect()
    with_loading = {name: seconds[1:] for name, seconds in with_loading.items()}
    if len(scores) != 1:
        print("ray_rate: the ways have different scores", file=sys.stderr)
        return 1
    ratios = {f"{name} / {ALONE}": ratio(timings[ALONE], timings[name]) for name in (ONE, TWO)}
    ratios |= {f"{TWO} / {ONE}": ratio(timings[ONE], timings[TWO])}
    ratios |= {f"{name} / {ALONE}, with loading": ratio(with_loading[ALONE], with_loading[name]) for name in (ONE, TWO)}
    rows = []
    for name in WORKERS:
        rates = [[count / seconds for seconds in one[name]] for one in (timings, with_loading)]
        against = [ratios.get(f"{name} / {ALONE}{end}") for end in ("", ", with loading")]
        rows.append([name, *(median_with_spread(one, 1) for one in rates), *(str(one or "1") for one in against)])
    notes = [
        f"{count:,} questions to {model}, one thread a worker, {os.cpu_count()} cores; the load of the machine was "
        f"{os.getloadavg()[0]:.1f} at the end. All ways have the same scores, byte for byte.",
        "Questions a second, median (smallest–largest), and times the rate of one process. "
        f"Starting Ray took {starting:.1f} s.",
    ]
    columns = ("way", "rate", "rate with loading", f"× {ALONE}", "× with loading")
    table = Table(f"Asking on Ray, {options.repeats} rounds", columns, rows, notes)
    details = {"questions": count, "model": model, "starting": starting, "load": os.getloadavg()}
    finish("ray_rate", options, table, timings, ratios, details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
