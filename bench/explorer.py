"""Measures the explorer over HTTP: every view on a run of a million answers, as a page in a browser asks for it.

Two made-up runs are written with a seed (250,000 questions asked of 4 models, 1,000,000 questions asked of one; ranked
lists of 25), the real server is started on each, and every view is asked for in turn, each time for something else.
Times are those of the client, from the request to the last byte. Some views are then asked for in turn with a plain
scan of the Parquet files (bench/explorer_plain.py), which must come to the same.

    python bench/explorer.py
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from explorer_plain import Scans
from measuring import Table, arguments, child_environment, finish, parse, ratio

if str(Path(__file__).resolve().parent.parent / "src") not in sys.path:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, QUESTIONS, SCORES, make_table, write_table

LIMIT = 0.3
"""Seconds that a view may take."""
SIZES = {"250,000 questions × 4 models": (250_000, 4), "1,000,000 questions × 1 model": (1_000_000, 1)}
HEADLINE = {name: size for name, size in SIZES.items() if size[1] > 1}
QUICK = {"2,000 questions × 2 models": (2_000, 2)}
RANKED, OFFERED, CHUNK = 25, 2_000, 8_192
TASKS, DOMAINS, RELATIONS, SPLITS = 4, 20, 120, 3


def texts(count: int, numbers: np.ndarray) -> pa.Array:
    """Prompts of eight made-up words; a word of them is rarer the higher its number."""
    words = np.array([f"{a}{b}{n}" for n in range(25) for a in ("ba", "ke", "li", "mo") for b in ("ran", "sel", "tin")])
    draw = np.random.default_rng(1)
    chosen = (len(words) * draw.random((count, 7)) ** 2).astype(np.int64)
    return pa.array([f"The {' '.join(row)} of {n} is [MASK]." for row, n in zip(words[chosen], numbers, strict=True)])


def write_run(folder: Path, questions: int, models: int) -> None:
    """A run as merkhet writes one, with answers drawn from a seed."""
    draw = np.random.default_rng(0)
    numbers = np.arange(questions)
    candidates = [f"candidate {number}" for number in range(OFFERED)]
    gold = draw.integers(0, OFFERED, questions)
    ids = pa.array([f"q_{number:020x}" for number in numbers])
    facts = [f"f_{number:020x}" for number in numbers // 4]
    relation = draw.integers(0, RELATIONS, questions)
    named = pa.array(candidates)
    columns = {
        "question_id": ids,
        "suite": pa.array(["bench"] * questions),
        "task": pa.array([f"task {number}" for number in draw.integers(0, TASKS, questions)]),
        "language": pa.array(["en"] * questions),
        "prompt": texts(questions, numbers),
        "answers": pa.ListArray.from_arrays(pa.array(np.arange(questions + 1), pa.int32()), named.take(pa.array(gold))),
        "target": named.take(pa.array(gold)),
        "candidate_set": pa.array(["all"] * questions),
        "facts": pa.ListArray.from_arrays(pa.array(np.arange(questions + 1), pa.int32()), pa.array(facts)),
        "qset": pa.array(facts),
        "domain": pa.array([f"domain {number}" for number in relation % DOMAINS]),
        "template": pa.array([f"relation {number}/{n}" for number, n in zip(relation, numbers % 3, strict=True)]),
        "split": pa.array([f"split {number}" for number in draw.integers(0, SPLITS, questions)]),
    }
    write_table(QUESTIONS, pa.table(columns), folder / "questions.parquet")
    write_table(
        CANDIDATES,
        make_table(CANDIDATES, [{"candidate_set": "all", "candidates": candidates}]),
        folder / "candidates.parquet",
    )
    _write_facts(folder, sorted(set(facts)))
    _write_answers(folder, ids, gold, named, models)
    names = [f"model {number}" for number in range(models)]
    write_table(SCORES, make_table(SCORES, []), folder / "scores.parquet")
    record = {"suite": "bench", "card": {"title": "A made-up run"}, "models": [{"name": name} for name in names]}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


def _write_facts(folder: Path, ids: list[str]) -> None:
    """Facts of which each but the first few comes from two that stand before it, some levels deep."""
    count = len(ids)
    premises = [None if number < 3 else [ids[number // 2], ids[number // 3]] for number in range(count)]
    columns = {
        "fact_id": pa.array(ids),
        "subject": pa.array([f"entity:{number}" for number in range(count)]),
        "predicate": pa.array([f"relation-{number % RELATIONS}" for number in range(count)]),
        "object": pa.array([f"entity:{number * 7 % count}" for number in range(count)]),
        "source": pa.array(["made up"] * count),
        "rule": pa.array([None if one is None else "chain" for one in premises], pa.string()),
        "premises": pa.array(premises, FACTS.schema.field("premises").type),
    }
    write_table(FACTS, pa.table(columns), folder / "facts.parquet")


def _write_answers(folder: Path, ids: pa.Array, gold: np.ndarray, candidates: pa.Array, models: int) -> None:
    """Answers of one model after another, in pieces of the size that merkhet's own writer makes."""
    with pq.ParquetWriter(folder / "answers.parquet", ANSWERS.schema, compression="zstd") as writer:
        for model in range(models):
            draw = np.random.default_rng([2, model])
            for start in range(0, len(ids), CHUNK):
                right = gold[start : start + CHUNK]
                writer.write_table(_answers(ids[start : start + CHUNK], right, candidates, model, draw))


def _answers(ids: pa.Array, gold: np.ndarray, candidates: pa.Array, model: int, draw: np.random.Generator) -> pa.Table:
    count = len(ids)
    rank = np.minimum(1 + draw.geometric(0.25, count) * (draw.random(count) < 0.6), OFFERED).astype(np.float64)
    first = (gold[:, None] + 1 + draw.integers(0, 40, (count, RANKED)).cumsum(axis=1)) % OFFERED
    inside = np.flatnonzero(rank <= RANKED)
    first[inside, rank[inside].astype(np.int64) - 1] = gold[inside]
    scores = -draw.random((count, RANKED)).cumsum(axis=1)
    offsets, single = pa.array(np.arange(count + 1) * RANKED, pa.int32()), pa.array(np.arange(count + 1), pa.int32())
    items = [candidates.take(pa.array(first.ravel())), pa.array(scores.ravel())]
    columns = {
        "question_id": ids,
        "model": pa.array([f"model {model}"] * count),
        "probe": pa.array(["rank"] * count),
        "method": pa.array(["mean"] * count),
        "prediction": candidates.take(pa.array(first[:, 0])),
        "ranked": pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(items, ["candidate", "score"])),
        "golds": pa.ListArray.from_arrays(single, candidates.take(pa.array(gold))),
        "gold_ranks": pa.ListArray.from_arrays(single, pa.array(rank)),
        "gold_ties": pa.ListArray.from_arrays(single, pa.array(1 + (draw.random(count) < 0.1), pa.int32())),
        "unusable": pa.array(np.where(draw.random(count) < 0.02, "too long", None), pa.string()),
    }
    return pa.table(
        {name: columns.get(name, pa.nulls(count, ANSWERS.schema.field(name).type)) for name in ANSWERS.schema.names}
    )


@contextmanager
def explorer(folder: Path) -> Iterator[tuple[int, int, float]]:
    """The server as a user starts it: its port, its process, and the seconds until the page is there."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "merkhet", "explore", str(folder), "--port", "0"]
    process = subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE, text=True)
    try:
        said = [process.stdout.readline() for _ in range(2)]
        port = int(re.search(r":(\d+)/", said[1]).group(1))
        yield port, process.pid, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait(30)


def memory(process: int) -> dict[str, float]:
    """Resident memory now and at its peak, in megabytes; nothing where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {name: int(re.search(rf"{name}:\s+(\d+)", lines).group(1)) / 1e3 for name in ("VmRSS", "VmHWM")}


def processor_time(process: int) -> float:
    """Seconds that all threads of a process have computed; NaN where the system does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


class Page:
    """Asks as a page does, over one connection."""

    def __init__(self, port: int, questions: int, models: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.host, self.questions, self.models = f"127.0.0.1:{port}", questions, models
        self.draw = random.Random(0)
        self.last: dict[str, object] = {}

    def get(self, view: str, **params: object) -> float:
        """Seconds until the last byte of a view is there."""
        started = time.perf_counter()
        self.connection.request("GET", f"/api/{view}?{urlencode(params, doseq=True)}", headers={"Host": self.host})
        answer = self.connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - started
        if answer.status != 200:
            raise RuntimeError(f"{view} {params}: {answer.status} {body[:200]!r}")
        self.last = json.loads(body)
        return seconds

    def views(self) -> dict[str, Callable[[], float]]:
        """Each view with choices that are drawn anew for every call."""
        some, pages = self.draw, self.questions // 25
        words = ("a", "b")

        def model() -> str:
            return f"model {some.randrange(self.models)}"

        def pair() -> dict[str, str]:
            first, second = some.sample(range(self.models), 2)
            return {"first": f"model {first}", "second": f"model {second}"}

        def rare() -> str:
            return f"of {some.randrange(self.questions)} is"

        def chosen() -> dict[str, object]:
            return {
                "task": [f"task {n}" for n in some.sample(range(TASKS), 2)],
                "domain": [f"domain {n}" for n in some.sample(range(DOMAINS), 5)],
                "model": model(),
                "result": "wrong",
            }

        ways = {
            "questions, first page": lambda: self.get("questions"),
            "questions, a page far down": lambda: self.get("questions", page=some.randrange(pages // 2, pages)),
            "by task": lambda: self.get("questions", task=f"task {some.randrange(TASKS)}"),
            "by domain": lambda: self.get("questions", domain=f"domain {some.randrange(DOMAINS)}"),
            "by relation": lambda: self.get("questions", relation=f"relation {some.randrange(RELATIONS)}"),
            "by template": lambda: self.get("questions", template=f"relation {some.randrange(RELATIONS)}/1"),
            "by split": lambda: self.get("questions", split=f"split {some.randrange(SPLITS)}"),
            "by model and result": lambda: self.get("questions", model=model(), result=some.choice(("right", "wrong"))),
            "by any model, tied": lambda: self.get("questions", result="tied"),
            "by rank": lambda: self.get("questions", low=some.randrange(2, 6), high=20),
            "many filters, hardest first": lambda: self.get("questions", sort="hardest", **chosen()),
            "hardest first, a page far down": lambda: self.get(
                "questions", sort="hardest", page=some.randrange(pages // 2, pages)
            ),
            "rank of the right answer, far down": lambda: self.get(
                "questions", sort="rank", page=some.randrange(pages // 2, pages)
            ),
            "by text, far down": lambda: self.get("questions", sort="text", page=some.randrange(pages // 2, pages)),
            "search, few hits": lambda: self.get("questions", search=f'"{rare()}"'),
            "search, many hits": lambda: self.get("questions", search=f"{some.choice(words)} {some.randrange(10)}"),
            "search, many hits, hardest first": lambda: self.get(
                "questions", search=f"{some.choice(words)} T{some.randrange(10)}", sort="hardest"
            ),
            "search, no hit": lambda: self.get("questions", search=f"nowhere{some.random()}"),
            "facets": lambda: self.get("facets"),
            "facets, many filters": lambda: self.get("facets", **chosen()),
            "facets, search and filters": lambda: self.get("facets", search=f"n {some.randrange(1000)}", **chosen()),
            "question": lambda: self.get("question", id=f"q_{some.randrange(self.questions):020x}"),
        }
        if self.models > 1:
            ways |= {
                "compare": lambda: self.get("compare", **pair()),
                "compare, many filters": lambda: self.get("compare", **pair(), **chosen()),
                "compare, list by difference": lambda: self.get("questions", sort="difference", cell="first", **pair()),
            }
        return ways

    def beside(self, scans: Scans, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
        """Seconds of some views and of plain scans for the same, taken in turn; refuses what does not agree."""
        some = self.draw

        def listed() -> list[object]:
            return [self.last["total"], [row["id"] for row in self.last["questions"]]]

        def counted() -> list[object]:
            facets = [self.last["facets"][name]["values"] for name in ("task", "domain", "split")]
            return [{one["value"]: one["count"] for one in values} for values in facets]

        def first_said() -> list[object]:
            return [{f"model {one['way']}": one["ranked"][0]["text"] for one in self.last["model_answers"]}]

        def cells() -> list[object]:
            return [[self.last["counts"][name] for name in ("both", "first", "second", "neither")]]

        def model() -> dict[str, str]:
            return {"model": f"model {some.randrange(self.models)}", "result": "right"}

        pairs = {
            "by task": ("questions", lambda: {"task": f"task {some.randrange(TASKS)}"}, scans.task, listed),
            "search, few hits": (
                *("questions", lambda: {"search": f'"of {some.randrange(self.questions)} is"'}),
                *(scans.search, listed),
            ),
            "by model and result": ("questions", model, scans.result, listed),
            "facets": ("facets", dict, scans.facets, counted),
            "question": (
                *("question", lambda: {"id": f"q_{some.randrange(self.questions):020x}"}),
                *(scans.question, first_said),
            ),
        }
        if self.models > 1:
            two = {"first": "model 0", "second": "model 1"}
            pairs["compare"] = ("compare", lambda: two, scans.compare, cells)
        timings: dict[str, tuple[list[float], list[float]]] = {}
        for name, (view, chosen, scan, seen) in pairs.items():
            own, plain = timings.setdefault(name, ([], []))
            for _ in range(rounds):
                params = chosen()
                own.append(self.get(view, **params))
                started = time.perf_counter()
                found = scan(params)
                plain.append(time.perf_counter() - started)
                if found != seen():
                    raise RuntimeError(f"{name} {params}: the explorer and a plain scan do not agree")
        return timings


def measure(
    label: str, questions: int, models: int, repeats: int
) -> tuple[dict[str, list[float]], dict[str, object], dict[str, tuple[list[float], list[float]]]]:
    folder = Path(tempfile.mkdtemp(prefix="merkhet-explorer-"))
    try:
        write_run(folder, questions, models)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        with explorer(folder) as (port, process, loading):
            page = Page(port, questions, models)
            timings: dict[str, list[float]] = {}
            computed: dict[str, float] = {}
            for name, ask in page.views().items():
                ask()
                before = processor_time(process)
                timings[f"{label}: {name}"] = [ask() for _ in range(repeats)]
                computed[f"{label}: {name}"] = (processor_time(process) - before) / repeats
            about = {"seconds until the page is there": loading, "megabytes on disk": size, **memory(process)}
            about["processor time"] = computed
            beside = page.beside(Scans(folder), max(3, repeats // 4))
    finally:
        shutil.rmtree(folder)
    return timings, about, {f"{label}: {name}": pair for name, pair in beside.items()}


def main() -> None:
    options = parse(arguments(__doc__, repeats=20, peers=False))
    sizes = QUICK if options.quick else HEADLINE if options.headline else SIZES
    timings: dict[str, list[float]] = {}
    computed: dict[str, float] = {}
    details: dict[str, object] = {"plain": {}, "processor time": computed}
    ratios = {}
    rounds = max(3, options.repeats // 4)
    notes = [
        f"Milliseconds over HTTP, {options.repeats} calls of each view after one that is not counted; computed: the "
        "mean of the server's processor time, which tells more than the clock where other programs run. The last "
        f"column: how many times as long a plain scan of the Parquet files took, {rounds} rounds in turn, same results."
    ]
    for label, (questions, models) in sizes.items():
        found, about, beside = measure(label, questions, models, options.repeats)
        timings |= found
        details[label] = about
        computed |= about.pop("processor time")
        details["plain"] |= {name: {"explorer": own, "plain": plain} for name, (own, plain) in beside.items()}
        ratios |= {f"{name}: plain / explorer": ratio(plain, own) for name, (own, plain) in beside.items()}
        told = ", ".join(f"{name} {value:,.1f}" for name, value in about.items())
        notes.append(f"{label}: {told}")
    rows = []
    for name, seconds in timings.items():
        ordered = sorted(1000 * one for one in seconds)
        late = ordered[math.ceil(0.95 * len(ordered)) - 1]
        median = statistics.median(ordered)
        times = [f"{value:.1f}" for value in (median, late, ordered[-1], 1000 * computed[name])]
        rows.append([name, *times, str(ratios.get(f"{name}: plain / explorer", ""))])
    slow = [name for name, seconds in timings.items() if max(seconds) > LIMIT]
    details["over the limit"] = slow
    notes.append(f"Over {1000 * LIMIT:.0f} ms at least once: {', '.join(slow) or 'none'}. {os.cpu_count()} cores.")
    columns = ("view", "median", "p95", "worst", "computed", "plain / explorer")
    finish(
        "explorer", options, Table("The explorer on a million answers", columns, rows, notes), timings, ratios, details
    )


if __name__ == "__main__":
    main()
