"""Measures how long it takes to make KMIR's questions from a generated knowledge base, up to ten times the paper's."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from kmir_world import ENTITIES, TRIPLES
from measuring import ROOT, Child, Ratio, Table, arguments, child_environment, finish, fitted_exponent, parse, run_child

SCALES = (0.25, 1.0, 4.0, 10.0)
HEADLINE_SCALES = (0.25, 1.0)
QUICK_SCALES = (0.002, 0.005)
NEEDED, MOST_SECONDS, MOST_MB = 184_348, 60, 2 * 1024**3 / 1e6


def build(scale: float, paraphrases: int | None, place: Path, repeats: int, *, quick: bool) -> tuple[list[Child], dict]:
    """``merkhet build kmir`` of a world of this size, each time in a fresh process; what its card counts."""
    import json

    every_fact = ("--set", f"options.asked={10**9}")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        world, out = Path(folder) / "world", Path(folder) / "questions"
        make = [sys.executable, str(ROOT / "bench" / "kmir_world.py"), "--folder", str(world), "--scale", str(scale)]
        run_child(make, child_environment())
        command = [sys.executable, "-m", "merkhet", "build", "kmir", "--knowledge", str(world), "--out", str(out)]
        command += every_fact
        command += ["--set", f"options.paraphrases={paraphrases}"] if paraphrases else []
        children = [run_child(command, child_environment(), measures_memory=not quick) for _ in range(repeats)]
        card = json.loads((out / "card.json").read_text(encoding="utf-8"))
        return children, {"questions": card["questions"], **card["by_task"]}


def main() -> None:
    options = parse(arguments(__doc__, repeats=1, peers=False))
    scales = QUICK_SCALES if options.quick else HEADLINE_SCALES if options.headline else SCALES
    jobs: list[tuple[float, int | None]] = [(scale, 1) for scale in scales]
    jobs += [] if options.headline else [(scales[-1] if options.quick else 1.0, None)]
    timings: dict[str, list[float]] = {}
    rows, peaks, counts, growth = [], {}, {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        for scale, paraphrases in jobs:
            children, counted = build(scale, paraphrases, Path(temporary), options.repeats, quick=options.quick)
            triples = round(TRIPLES * scale)
            name = f"{triples:,} triples, {'one template a fact' if paraphrases else 'all templates'}"
            timings[name] = [child.seconds for child in children]
            seconds = statistics.median(timings[name])
            peaks[name] = max(child.peak_mb for child in children)
            counts[name] = counted
            if paraphrases:
                growth[triples] = seconds
            rate = f"{counted['questions'] / seconds:,.0f}"
            rows.append([name, f"{counted['questions']:,}", f"{seconds:.1f}", rate, f"{peaks[name]:.0f}"])
    exponent = fitted_exponent(growth)
    largest, smallest = max(growth), min(growth)
    ratios = {
        f"{largest:,} / {smallest:,} triples": Ratio(*[growth[largest] / growth[smallest]] * 3),
    }
    notes = [
        f"`merkhet build kmir` in a fresh process from reading Parquet to writing the questions: import, rules, four "
        f"question types, quality control, splits and their check. The world has {ENTITIES:,} entities at the "
        f"paper's size. Time grows with the triples to the power of {exponent:.2f}.",
        f"Needed: {NEEDED:,} questions from {TRIPLES:,} triples within {MOST_SECONDS} s and {MOST_MB:.0f} MB.",
    ]
    table = Table("KMIR's questions", ("what", "questions", "seconds", "questions/s", "peak MB"), rows, notes)
    finish("kmir", options, table, timings, ratios, {"peak_mb": peaks, "counts": counts, "exponent": exponent})


if __name__ == "__main__":
    main()
