"""What questions and answers cost at scale: seconds, memory and disk, at two numbers of each.

``python bench/questions_scale.py`` makes a knowledge base, builds kmir's questions of some of its facts and of ten
times as many, and has them answered by the baseline ``constant``, which costs little: what is left is what merkhet
does with a million answers, whoever gives them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from engines import prepare

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=1_000_000, help="facts of the knowledge base")
    parser.add_argument(
        "--asked", type=int, nargs=2, default=[50_000, 500_000], help="facts that questions are made of"
    )
    parser.add_argument("--folder", type=Path, help="where the knowledge base is kept [a temporary folder]")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--repeats", type=int, help="has no meaning here: each size is measured once")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="the folder for the JSON file")
    given = parser.parse_args()
    if given.quick:
        given.facts, given.asked = 4000, [300, 1500]
    with tempfile.TemporaryDirectory(prefix="merkhet-questions-") as temporary:
        folder = (given.folder or Path(temporary)) / str(given.facts)
        prepare(folder, given.facts)
        rows = []
        for asked in given.asked:
            rows.append({"facts": given.facts, "asked": asked, **measure(folder, asked)})
            print(described(rows[-1]), flush=True)
    conclude(*rows)
    given.results.mkdir(parents=True, exist_ok=True)
    (given.results / "questions_scale.json").write_text(json.dumps(rows, indent=2) + "\n")


def measure(folder: Path, asked: int) -> dict[str, Any]:
    """What building and answering take, with the most memory of each, and the steps of the second."""
    with tempfile.TemporaryDirectory(prefix="merkhet-questions-", dir=folder) as temporary:
        made, run = Path(temporary) / "questions", Path(temporary) / "run"
        few = ("--set", f"options.asked={asked}", "--set", "options.paraphrases=1")
        seconds, memory = command("build", "kmir", "--knowledge", folder / "given.duckdb", *few, "--out", made)
        found: dict[str, Any] = {"build": seconds, "build memory": memory, "questions bytes": size(made)}
        found["built"] = pq.read_metadata(made / "questions.parquet").num_rows
        every = ("--set", "limit=null", "--set", "options.split=null", "--set", "probes=[rank]")
        seconds, memory = command("run", "kmir", "--data", made, "--model", "constant", *every, "--out", run)
        steps = [(file.stem, json.loads(file.read_text())) for file in (run / ".merkhet/steps").glob("*.json")]
        found |= {"run": seconds, "run memory": memory, "answers bytes": (run / "answers.parquet").stat().st_size}
        found["steps"] = {name.split("-")[0]: step["seconds"] for name, step in steps}
        found["answers"] = pq.read_metadata(run / "answers.parquet").num_rows
    return found


def command(*arguments: Any) -> tuple[float, int]:
    """A command of merkhet in a process of its own: its seconds, and the most memory that it had."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "merkhet", *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"merkhet {arguments[0]} has failed")
    return time.perf_counter() - started, usage.ru_maxrss * 1024


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def described(row: dict[str, Any]) -> str:
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in row["steps"].items() if seconds >= 0.1)
    built = f"{row['build memory'] / 2**30:.2f} GiB, {row['questions bytes'] / 1e6:.0f} MB"
    answered = f"{row['run memory'] / 2**30:.2f} GiB, {row['answers bytes'] / 1e6:.0f} MB of answers"
    return (
        f"{row['asked']:>9,} of {row['facts']:,} facts: {row['built']:,} questions built in {row['build']:.1f} s "
        f"({built}); {row['answers']:,} answered in {row['run']:.1f} s: {steps} ({answered})"
    )


def conclude(less: dict[str, Any], more: dict[str, Any]) -> None:
    """What another million costs, and how it grows."""
    built, answered = more["built"] - less["built"], more["answers"] - less["answers"]
    print(
        f"a further million questions: {(more['build'] - less['build']) / built * 1e6:.0f} s, "
        f"{(more['build memory'] - less['build memory']) / built * 1e6 / 2**30:.1f} GiB of memory, "
        f"{(more['questions bytes'] - less['questions bytes']) / built:.0f} MB of disk"
    )
    whole = less["run"], more["run"]
    grown = math.log(whole[1] / whole[0]) / math.log(more["answers"] / less["answers"])
    print(
        f"a further million answers: {(whole[1] - whole[0]) / answered * 1e6:.0f} s (n^{grown:.2f}), "
        f"{(more['run memory'] - less['run memory']) / answered * 1e6 / 2**30:.1f} GiB of memory, "
        f"{(more['answers bytes'] - less['answers bytes']) / answered:.0f} MB of disk"
    )


if __name__ == "__main__":
    main()
