"""Measures how fast baselines rank large sets of candidates, up to the files of answers.

``--against FOLDER`` names the ``src`` of another checkout, which is measured in turn with this one, on the same
questions. The clock counts the processor's seconds of the process, so that other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import (
    Ratio,
    Table,
    arguments,
    child_environment,
    finish,
    median_with_spread,
    parse,
    ratio,
    run_child,
)

WIDTH, QUESTIONS, SETS = 20_000, 50_000, 8
QUICK_WIDTH, QUICK_QUESTIONS = 500, 600
ORDERS = 20
"""Random orders of the baseline train-frequency, each of which is an answer."""
CASES = (
    ("frequency", 1),
    ("frequency", SETS),
    ("constant", 1),
    ("constant", SETS),
    ("random", 1),
    ("random", SETS),
    ("longest", 1),
    ("longest", SETS),
    ("train-frequency", 1),
    ("train-frequency", SETS),
    ("overlap", 1),
)
FEWER = {"train-frequency": 10, "overlap": 100}
"""Baselines that are slow, and what part of the questions they are asked."""


def make_questions(count: int, width: int, sets: int) -> tuple[list[Any], list[dict[str, Any]]]:
    """Questions that share some sets of candidates, every third with several answers, and the counts of answers."""
    from merkhet.core.records import Question

    draw = random.Random(1)
    names = [tuple(f"name {number}-{draw.randrange(10**9)}" for number in range(width)) for _ in range(sets)]
    questions = []
    for number in range(count):
        candidates = names[number % sets]
        answers = tuple(
            dict.fromkeys(candidates[int(width * draw.random() ** 3)] for _ in range(3 if number % 3 == 0 else 1))
        )
        template = f"relation-{number % sets}/1"
        prompt = f"The thing number {number} is [MASK]."
        questions.append(Question(f"q_{number}", "completion", prompt, answers, answers[0], candidates, "en", template))
    counts = [
        {
            "task": "completion",
            "relation": f"relation-{part}",
            "answer": names[part][number],
            "count": 1 + 999 // (number + 1),
        }
        for part in range(sets)
        for number in range(0, width, 3)
    ]
    return questions, counts


def measure(name: str, count: int, width: int, sets: int) -> float:
    """Processor seconds of asking all questions block by block and writing the answers."""
    from merkhet.core.schemas import ANSWERS, write_table
    from merkhet.engine import _ask_step
    from merkhet.engine.asker import Asker, AskJob, AskParams
    from merkhet.models.model_lookup import ModelSpec, resolve_model

    questions, counts = make_questions(count, width, sets)
    spec = ModelSpec(name)
    resolved = resolve_model(spec, Path())
    params = AskParams(name, resolved.kind, resolved.fingerprint, "", "rank", "rank")
    size = -(-QUESTIONS // getattr(_ask_step, "MAX_BASELINE_BLOCKS", 256))
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        asker = Asker(AskJob(params, spec, Path(folder), Path()), resolved)
        if hasattr(asker.model, "prepare"):
            asker.model.prepare(questions, counts)
        for start in range(0, count, size):
            write_table(ANSWERS, asker.ask(questions[start : start + size]), Path(folder) / f"{start}.parquet")
        return time.process_time() - started


def in_child(case: tuple[str, int], count: int, width: int, source: Path | None, place: Path) -> float:
    """Questions per second of a baseline in a process of its own."""
    name, sets = case
    environment = child_environment()
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    out = place / "seconds.json"
    options = ["--one", name, "--sets", str(sets), "--count", str(count), "--width", str(width), "--out", str(out)]
    run_child([sys.executable, __file__, *options], environment)
    return count / float(json.loads(out.read_text()))


def main() -> None:
    parser = arguments(__doc__, repeats=3, peers=False)
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="the src folder of another merkhet")
    for hidden in ("--one", "--sets", "--count", "--width", "--out"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parse(parser)
    if options.one:
        seconds = measure(options.one, int(options.count), int(options.width), int(options.sets))
        Path(options.out).write_text(json.dumps(seconds))
        return
    width = QUICK_WIDTH if options.quick else WIDTH
    rates: dict[str, list[float]] = {}
    older: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for _ in range(options.repeats):
            for name, sets in CASES:
                label = f"{name}, {sets} set{'s' if sets > 1 else ''}"
                count = QUICK_QUESTIONS if options.quick else QUESTIONS // FEWER.get(name, 1)
                rates.setdefault(label, []).append(in_child((name, sets), count, width, None, Path(temporary)))
                if options.against:
                    older.setdefault(label, []).append(
                        in_child((name, sets), count, width, options.against, Path(temporary))
                    )
    ratios: dict[str, Ratio] = {f"{label} / before": ratio(rates[label], older[label]) for label in older}
    first = next(iter(rates))
    ratios |= {f"{label} / {first}": ratio(rates[label], rates[first]) for label in rates if label != first}
    rows = [
        [
            label,
            median_with_spread(rates[label], 0),
            median_with_spread(older[label], 0) if label in older else "–",
            str(ratios[f"{label} / before"]) if label in older else "–",
        ]
        for label in rates
    ]
    notes = [
        f"{QUESTIONS:,} questions with {width:,} candidates, asked in blocks, answers written to Parquet; every third "
        "question has three answers. Processor seconds.",
        f"train-frequency gives {ORDERS} answers to each question; it is asked a tenth of the questions, overlap a "
        "hundredth. Nearly half of the candidates tie as the longest, and each answer lists them.",
    ]
    table = Table("Baselines that rank", ("baseline", "questions/s", "before", "÷ before"), rows, notes)
    seconds = {label: [1 / rate for rate in values] for label, values in rates.items()}
    finish("baselines", options, table, seconds, ratios, {"rates": rates, "before": older})


if __name__ == "__main__":
    main()
