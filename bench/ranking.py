"""Measures how fast candidates are ranked: merkhet against one pass per candidate, LM Pub Quiz, minicons and lm-eval.

Every way runs in a process of its own and is timed in turn with the others. A slow way is given a few prompts a round,
other ones each time, and rates are compared: all of them ask prompt by prompt, so the rate does not depend on that.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from material import model_folder, quickstart_questions
from measuring import ROOT, Ratio, Table, arguments, child_environment, finish, interleave, parse, ratio
from peers import Peers, find_peers, peer_environment, peer_versions
from worker import Worker

SHARED = ROOT.parent / "shared" / "data" / "ontoprobe"
CANDIDATES = 783
TOLERANCE = 1e-3
PEERS = ("LM Pub Quiz", "minicons", "lm-eval")


@dataclass(frozen=True)
class Way:
    """A way: prompts a round, whether its scores follow merkhet's rule, and whether 'make bench' measures it."""

    name: str
    prompts: int
    same_rule: bool = True
    headline: bool = True


@dataclass(frozen=True)
class Job:
    """What is to be done, on which model, and by which ways; the first is merkhet's."""

    key: str
    name: str
    model: str
    prompts: int
    ways: tuple[Way, ...]
    ranks: bool = True


JOBS = (
    Job(
        "masks",
        "masked: mean over multiple masks",
        "minilm-mlm",
        200,
        (
            Way("merkhet multiple-mean", 200),
            Way("plain masked", 4),
            Way("LM Pub Quiz TyQ, defaults", 2, same_rule=False, headline=False),
            Way("LM Pub Quiz TyQ, float32, batches of 32", 20, same_rule=False),
        ),
    ),
    Job(
        "pll",
        "masked: PLL of the candidate, within-word l2r",
        "minilm-mlm",
        50,
        (
            Way("merkhet pll-l2r-sum", 20),
            Way("LM Pub Quiz, float32, batches of 32", 2),
            Way("minicons PLL", 2),
        ),
    ),
    Job(
        "causal",
        "causal: candidate and what follows",
        "smollm2-135m",
        50,
        (
            Way("merkhet sum", 20),
            Way("plain causal", 1),
            Way("lm-eval, defaults", 1, headline=False),
            Way("lm-eval, batches of 32", 1),
        ),
    ),
    Job(
        "vocabulary",
        "masked: slot over the whole vocabulary",
        "minilm-mlm",
        5000,
        (Way("merkhet fill", 5000), Way("fill-mask pipeline", 1000)),
        ranks=False,
    ),
)

HEADLINE_JOBS = ("masks", "causal")


@dataclass
class Outcome:
    """What was measured of one way in one job."""

    job: str
    way: str
    asked_each_round: int
    units: str
    rates: list[float] = field(default_factory=list)
    per_prompt: dict[str, float] = field(default_factory=dict)
    peak_mb: float = 0.0
    gpu_mb: float | None = None
    difference: float | None = None
    ratio: Ratio | None = None


def make_material(prompts: int, candidates: int) -> dict[str, Any]:
    """Prompts with right answers and one list of candidates: OntoProbe's classes where they are at hand."""
    classes = SHARED / "ontology" / "class.json"
    if classes.is_file():
        labels = [entry["rdfs:label"] for entry in json.loads(classes.read_text(encoding="utf-8"))]
        lines = (SHARED / "memorizing" / "type.jsonl").read_text(encoding="utf-8").splitlines()
        typed = [json.loads(line) for line in lines[:prompts]]
        asked = [(f"{one['uuu']} is a kind of [MASK].", one["xxx"]) for one in typed]
    else:
        questions = quickstart_questions({"completion": prompts})
        labels = sorted({text for question in questions for text in question.candidates})
        asked = [(question.prompt, list(question.answers)) for question in questions]
    return {
        "prompts": [prompt for prompt, _ in asked],
        "answers": [answers for _, answers in asked],
        "candidates": list(dict.fromkeys(labels))[:candidates],
    }


def measure(job: Job, folder: Path, material: Path, peers: Peers, repeats: int, quick: bool) -> list[Outcome]:
    """All the ways of one job: compared and counted once, then timed in turn."""
    content = json.loads(material.read_text(encoding="utf-8"))
    pairs = len(content["candidates"]) if job.ranks else 1
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as place:
        workers = []
        try:
            for way in job.ways:
                count = min(2 if quick else way.prompts, len(content["prompts"]))
                outcomes[way.name] = Outcome(job.name, way.name, count, "candidates" if job.ranks else "prompts")
                workers.append(start_worker(way, folder, material, peers, count, Path(place)))
            rounds = {worker.name: _Rounds(worker, len(content["prompts"]), pairs) for worker in workers}
            own = workers[0]
            for way, worker in zip(job.ways, workers, strict=True):
                found = worker.ask(range(worker.count), count=True, scores=worker is not own)
                outcomes[way.name].per_prompt = {key: n / worker.count for key, n in found["counts"].items()}
                if worker is not own and way.same_rule:
                    expected = own.ask(range(worker.count), scores=True)["scores"]
                    outcomes[way.name].difference = largest_difference(expected, found["scores"])
            timings = interleave(rounds, repeats, warmups=0)  # Counting was the warm-up.
            for worker in workers:
                one = outcomes[worker.name]
                one.rates = [1 / seconds for seconds in timings[worker.name]]
                one.peak_mb, one.gpu_mb = worker.peak_mb, worker.gpu_mb
                one.ratio = ratio(timings[worker.name], timings[own.name])
        finally:
            for worker in workers:
                worker.close()
    return list(outcomes.values())


def start_worker(way: Way, folder: Path, material: Path, peers: Peers, count: int, place: Path) -> Worker:
    foreign = way.name.startswith(PEERS)
    python = str(peers.python) if foreign else sys.executable
    script = str(ROOT / "bench" / "ranking_ways.py")
    environment = peer_environment() if foreign else child_environment()
    return Worker(way.name, [python, script, way.name, str(folder), str(material)], environment, count, place)


class _Rounds:
    """A worker asked anew each round, with other prompts; gives the seconds of one candidate (or prompt)."""

    def __init__(self, worker: Worker, prompts: int, pairs: int) -> None:
        self.worker = worker
        self.prompts = prompts
        self.pairs = pairs
        self.next = 0

    def __call__(self) -> float:
        numbers = [(self.next + i) % self.prompts for i in range(self.worker.count)]
        self.next += self.worker.count
        seconds: float = self.worker.ask(numbers)["seconds"]
        return seconds / (self.worker.count * self.pairs)


def largest_difference(some: Sequence[Sequence[float] | None], others: Sequence[Sequence[float]]) -> float:
    """The largest difference between two scores of the same candidate; what could not be asked is left out."""
    return max(
        abs(a - b)
        for row, other in zip(some, others, strict=True)
        if row is not None
        for a, b in zip(row, other, strict=True)
    )


def row_of(one: Outcome) -> list[str]:
    return [
        f"  {one.way}",
        f"{one.asked_each_round:,}",
        f"{statistics.median(one.rates):,.0f} ({min(one.rates):,.0f}–{max(one.rates):,.0f})",
        *(f"{one.per_prompt[key]:,.0f}" for key in ("rows", "tokens", "head_positions")),
        f"{one.peak_mb:,.0f}" + (f" + {one.gpu_mb:,.0f} GPU" if one.gpu_mb is not None else ""),
        "–" if one.difference is None else f"{one.difference:.0e}",
        "1" if one.ratio is None or one.way.startswith("merkhet") else str(one.ratio),
    ]


def main() -> int:
    parser = arguments(__doc__, repeats=3)
    parser.add_argument("--jobs", nargs="+", choices=[job.key for job in JOBS], help="[all]")
    parser.add_argument("--folders", nargs="+", default=[], metavar="MODEL=FOLDER", help="where a model is")
    parser.add_argument("--material", type=Path, help="ask what this JSON file holds, not newly made prompts")
    parser.add_argument("--write-material", type=Path, help="write the prompts and candidates to this file, and end")
    options = parse(parser)
    peers = find_peers(not options.no_peers)
    folders = {name: Path(place) for name, place in (given.split("=", 1) for given in options.folders)}
    rows: list[list[str]] = []
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as place:
        wanted = options.jobs or (HEADLINE_JOBS if options.headline else [job.key for job in JOBS])
        for job in [job for job in JOBS if job.key in wanted]:
            ways = tuple(way for way in job.ways if peers.python or not way.name.startswith(PEERS))
            ways = tuple(way for way in ways if way.headline or not options.headline)
            material = Path(place) / "material.json"
            if options.material:
                content = json.loads(options.material.read_text(encoding="utf-8"))
            else:
                content = make_material(max(job.prompts for job in JOBS), CANDIDATES)
            if options.write_material:
                options.write_material.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
                return 0
            limit = 2 if options.quick else job.prompts
            content["candidates"] = content["candidates"][: 40 if options.quick else CANDIDATES]
            content["prompts"], content["answers"] = content["prompts"][:limit], content["answers"][:limit]
            material.write_text(json.dumps(content), encoding="utf-8")
            folder = folders[job.model] if job.model in folders else model_folder(job.model)[1]
            chosen = replace(job, ways=ways)
            found = measure(chosen, folder, material, peers, options.repeats, options.quick)
            outcomes += found
            asked = f" × {len(content['candidates'])} candidates" if job.ranks else ""
            rows.append([f"{job.name} ({job.model}, {len(content['prompts']):,} prompts{asked})", *[""] * 8])
            rows += [row_of(one) for one in found]
    unequal = [one.way for one in outcomes if one.difference is not None and not one.difference <= TOLERANCE]
    notes = [
        "Candidates (for the vocabulary, prompts) a second: median (slowest–fastest round). For one prompt, rows and",
        "tokens (padding included) that go through the model, and positions at which its head works. Peak resident",
        "memory of the way's process. Largest difference of a score from merkhet's.",
        "TyQ has a rule of its own: special tokens count as the candidate's, and every token is read at every mask.",
        "By default LM Pub Quiz computes in the precision of the weights (here float16), row by row. Its PLL is far",
        "slower so, and is given float32 and batches.",
        *([f"Peers not installed: {peers.reason}"] if peers.python is None else []),
        *(f"UNEQUAL SCORES: {name} differs from merkhet by more than {TOLERANCE}" for name in unequal),
    ]
    columns = ("way", "prompts a round", "a second", "rows", "tokens", "at the head", "peak MB", "difference")
    table = Table(f"Ranking candidates, {options.repeats} rounds", (*columns, "× merkhet's time"), rows, notes)
    timings = {f"{one.job}: {one.way}": [1 / rate for rate in one.rates] for one in outcomes}
    ratios = {f"{one.job}: {one.way} / merkhet": one.ratio for one in outcomes if one.ratio and one.ratio.value != 1}
    details = {
        "outcomes": [asdict(one) for one in outcomes],
        "equal": not unequal,
        "tolerance": TOLERANCE,
        "peers": peer_versions(peers),
    }
    finish("ranking", options, table, timings, ratios, details)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
