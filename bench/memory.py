"""Measures peak memory and wall time of whole quickstart runs in fresh processes, against the plain way's script."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from material import MODELS
from measuring import (
    ROOT,
    Ratio,
    Table,
    arguments,
    child_environment,
    finish,
    interleave,
    median_with_spread,
    parse,
    ratio,
    run_child,
)

BASELINES = ("random", "frequency")
LIMIT, QUICK_LIMIT = 100, 6


def prepare(models: list[str], limit: int, place: Path) -> dict[str, Any]:
    """The questions and the models' folders, made by a child so that this process stays smaller than the measured."""
    command = [sys.executable, str(ROOT / "bench" / "material.py"), "--limit", str(limit), "--folder", str(place)]
    run_child([*command, "--models", *models], child_environment())
    about: dict[str, Any] = json.loads((place / "material.json").read_text(encoding="utf-8"))
    return about


class Measured:
    """A command that is run anew at each call, its peak memory kept."""

    def __init__(self, command: list[str], place: Path, out: str) -> None:
        self.command = command
        self.place = place
        self.out = out
        self.peaks: list[float] = []

    def __call__(self) -> float:
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            command = [*self.command, "--out", str(Path(folder) / self.out)]
            child = run_child(command, child_environment(), measures_memory=True)
        self.peaks.append(child.peak_mb)
        return child.seconds


def ways_to_measure(models: list[str], about: dict[str, Any], limit: int, place: Path) -> dict[str, Measured]:
    ways = {}
    for name in [*models, *BASELINES]:
        run = [sys.executable, "-m", "merkhet", "run", "quickstart", "--quiet", "--limit", str(limit), "--model", name]
        ways[f"{name}: merkhet run"] = Measured(run, place, "run")
        if name in about["models"]:
            kind, folder = about["models"][name]
            script = [sys.executable, str(ROOT / "bench" / "plain.py"), "--questions", str(place / "questions.json")]
            ways[f"{name}: plain"] = Measured([*script, "--model", folder, "--kind", kind], place, "scores.json")
    return ways


def main() -> None:
    options = parse(arguments(__doc__, repeats=3, models=MODELS, peers=False))
    limit = QUICK_LIMIT if options.quick else LIMIT
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        about = prepare(options.models, limit, place)
        ways = ways_to_measure(options.models, about, limit, place)
        timings = interleave(ways, options.repeats)
    peaks = {name: way.peaks[-options.repeats :] for name, way in ways.items()}
    ratios: dict[str, Ratio] = {}
    rows = []
    for name in ways:
        other = name.replace("merkhet run", "plain")
        compared = other != name and other in ways
        if compared:
            ratios[f"memory of {name} / plain"] = ratio(peaks[name], peaks[other])
            ratios[f"time of {name} / plain"] = ratio(timings[name], timings[other])
        rows.append(
            [
                name,
                median_with_spread(peaks[name], 0),
                str(ratios[f"memory of {name} / plain"]) if compared else "–",
                median_with_spread(timings[name], 2),
                str(ratios[f"time of {name} / plain"]) if compared else "–",
            ]
        )
    notes = [
        f"{about['questions']} questions with {about['candidates']:,} candidates. A run of merkhet also makes the "
        "questions, scores, compares and reports;",
        "the plain way gets the questions ready-made and writes bare scores. The baselines show what merkhet needs "
        "without a model.",
        "Median (smallest–largest); ratios of medians (smallest–largest of a round).",
    ]
    table = Table(
        f"Whole runs in fresh processes, {options.repeats} rounds",
        ("way", "peak MB", "× plain's memory", "seconds", "× plain's time"),
        rows,
        notes,
    )
    details = {"peak_mb": peaks, "questions": about["questions"], "candidates": about["candidates"], "limit": limit}
    finish("memory", options, table, timings, ratios, details)


if __name__ == "__main__":
    main()
