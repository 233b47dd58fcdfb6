"""Measures by simulation how often 95% intervals hold the truth, and how often a test tells equal models apart."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from measuring import Table, arguments, finish, parse, ratio
from numpy.typing import NDArray

from merkhet.metrics._closed_form import robust_difference, robust_interval
from merkhet.metrics.bootstrap import Interval, PairedDifference, clustered_interval, paired_difference

FloatArray = NDArray[np.float64]
RUNS, QUICK_RUNS = 2000, 20
BEHIND = 0.05
"""How far the second model of a pair is behind the first in truth."""
WAYS = ("BCa", "robust", "difference", "robust difference")
FALSE = ("permutation", "robust test")


@dataclass(frozen=True)
class Design:
    """Questions about facts: their number, how many questions each has, how often a model is right, how alike they are.

    ``correlation`` is that of the hidden scores of two questions of one fact, which are right below a threshold.
    """

    share: float
    facts: int
    questions: tuple[int, int]
    correlation: float

    def __str__(self) -> str:
        least, most = self.questions
        asked = f"{least}" if least == most else f"{least}–{most}"
        return f"share {self.share:g}, {self.facts} facts × {asked}, correlation {self.correlation:g}"


REALISTIC = (
    Design(0.5, 100, (1, 1), 0.0),
    Design(0.1, 100, (1, 1), 0.0),
    Design(0.9, 100, (1, 4), 0.5),
    Design(0.7, 100, (4, 4), 0.8),
    Design(0.1, 200, (1, 4), 0.5),
    Design(0.3, 200, (2, 2), 0.3),
    Design(0.8, 200, (1, 4), 0.5),
    Design(0.9, 400, (1, 1), 0.0),
    Design(0.5, 400, (1, 4), 0.8),
    Design(0.1, 400, (4, 4), 0.3),
)
HARD = (
    Design(0.5, 10, (1, 4), 0.5),
    Design(0.5, 20, (1, 4), 0.5),
    Design(0.9, 20, (1, 4), 0.5),
    Design(0.9, 50, (1, 4), 0.5),
    Design(0.97, 50, (1, 1), 0.0),
    Design(0.97, 100, (1, 4), 0.5),
    Design(0.99, 100, (1, 1), 0.0),
    Design(0.99, 400, (1, 4), 0.5),
)
"""Few facts, or a model that is nearly always right."""


def draw(design: Design, generator: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The right and wrong answers of a model, of one as good and of one that is ``BEHIND``; and the facts' numbers.

    What is hard is so for all models, in part: half of what a fact and half of what a question adds is the same.
    """
    least, most = design.questions
    owners = np.repeat(np.arange(design.facts), generator.integers(least, most + 1, design.facts))

    def half_shared(size: int) -> FloatArray:
        drawn: FloatArray = np.sqrt(0.5) * (generator.normal(size=size) + generator.normal(size=(3, size)))
        return drawn

    hidden = np.sqrt(design.correlation) * half_shared(design.facts)[:, owners]
    hidden += np.sqrt(1.0 - design.correlation) * half_shared(len(owners))
    normal = statistics.NormalDist()
    thresholds = [normal.inv_cdf(share) for share in (design.share, design.share, design.share - BEHIND)]
    first, equal, behind = (hidden < np.array(thresholds)[:, None]).astype(np.float64)
    return first, equal, behind, owners


@dataclass
class Tally:
    """How often each way held the truth and how often each test was below 5% for equal models, with the seconds."""

    runs: int
    held: dict[str, int]
    false: dict[str, int]
    seconds: dict[str, float]

    def coverage(self, way: str) -> float:
        return self.held[way] / self.runs

    def false_rate(self, test: str) -> float:
        return self.false[test] / self.runs


def simulate(design: Design, *, runs: int, seed: int = 0, resamples: int = 2000, flips: int = 1999) -> Tally:
    """Draw answers again and again; every one gives an interval of each kind and a test of each kind."""
    generator = np.random.default_rng([seed, design.facts, round(1000 * design.share)])
    tally = Tally(runs, dict.fromkeys(WAYS, 0), dict.fromkeys(FALSE, 0), dict.fromkeys((*WAYS, *FALSE), 0.0))
    for number in range(runs):
        first, equal, behind, owners = draw(design, generator)
        drawn = partial(paired_difference, first, clusters=owners, seed=number)
        ways: dict[str, tuple[float, Callable[[], Interval | PairedDifference]]] = {
            "BCa": (design.share, partial(clustered_interval, first, owners, seed=number, resamples=resamples)),
            "robust": (design.share, partial(robust_interval, first, owners)),
            "difference": (BEHIND, partial(drawn, behind, resamples=resamples, flips=1)),
            "robust difference": (BEHIND, partial(robust_difference, first, behind, owners)),
        }
        tests: dict[str, Callable[[], PairedDifference]] = {
            "permutation": partial(drawn, equal, resamples=1, flips=flips),
            "robust test": partial(robust_difference, first, equal, owners),
        }
        for way, (truth, interval) in ways.items():
            started = time.perf_counter()
            found = interval()
            tally.seconds[way] += time.perf_counter() - started
            tally.held[way] += bool(found.low <= truth <= found.high)
        for test, difference in tests.items():
            started = time.perf_counter()
            p = difference().p
            tally.seconds[test] += time.perf_counter() - started
            tally.false[test] += p < 0.05
    return tally


def row(design: Design, tally: Tally) -> list[str]:
    return [
        str(design),
        *(f"{100 * tally.coverage(way):.1f}" for way in WAYS),
        *(f"{100 * tally.false_rate(test):.1f}" for test in FALSE),
    ]


def outside(tallies: Mapping[Design, Tally]) -> list[str]:
    """Which coverages are not between 93 and 97%."""
    return [
        f"{way} {100 * tally.coverage(way):.1f} ({design})"
        for design, tally in tallies.items()
        for way in WAYS
        if not 0.93 <= tally.coverage(way) <= 0.97
    ]


def main() -> None:
    parser = arguments(__doc__, repeats=1, peers=False)
    parser.add_argument("--runs", type=int, help=f"simulated runs of each design [{RUNS}; quick: {QUICK_RUNS}]")
    options = parse(parser)
    runs = options.runs or (QUICK_RUNS if options.quick else RUNS)
    designs = (REALISTIC[0], HARD[0]) if options.quick else (*REALISTIC, *HARD)
    options.repeats = len(designs)
    tallies = {design: simulate(design, runs=runs) for design in designs}
    timings = {way: [tally.seconds[way] / runs for tally in tallies.values()] for way in (*WAYS, *FALSE)}
    beyond = outside(tallies)
    notes = [
        f"{runs:,} simulated runs of each design, 2,000 resamples and 1,999 sign flips each. Coverage, in %: how often "
        f"the 95% interval held the true share (BCa, robust) or the true difference of {100 * BEHIND:.0f} points "
        "(difference, robust difference). False, in %: how often p < 0.05 for two models of the same share.",
        f"By chance a coverage of 95% comes out within ±{196 * (0.95 * 0.05 / runs) ** 0.5:.1f} nineteen times of "
        f"twenty. Outside 93–97%: {'; '.join(beyond) or 'none'}.",
    ]
    columns = ("design", *WAYS, *(f"{test} false" for test in FALSE))
    table = Table(
        "Coverage of 95% intervals", columns, [row(design, tally) for design, tally in tallies.items()], notes
    )
    details = {
        str(design): {
            "design": asdict(design),
            "coverage": {way: tally.coverage(way) for way in WAYS},
            "false": {test: tally.false_rate(test) for test in FALSE},
        }
        for design, tally in tallies.items()
    }
    ratios = {"BCa / robust": ratio(timings["BCa"], timings["robust"])}
    finish("interval_coverage", options, table, timings, ratios, {"runs": runs, "designs": details, "outside": beyond})


if __name__ == "__main__":
    main()
