"""Test of whether a model likes a position among the options that questions show.

Options are shown in random order, so that a wrong choice is at every other position equally often, unless the model
likes a position. Right choices are where the right options are: they show no liking.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL, holm
from merkhet.metrics.ranks import FloatArray, IntArray

FEWEST_ERRORS = 20
"""Minimum number of wrong choices for a test."""
_ROUNDS = 4999
_DRAWS_AT_ONCE = 2**21
_NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True)
class ShownChoice:
    """A choice among the options that a question shows."""

    order: str
    """Order of options that several questions share: questions about one fact with the right option at one place."""
    chosen: int
    right: int
    count: int
    """Number of options."""


def find_preferences(
    answers: Sequence[Mapping[str, Any]],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    *,
    seed: int,
) -> list[Finding]:
    """Find which models like a position among shown options, by task, probe and method.

    P-values are Holm-corrected over all tests.

    Args:
        answers: Answers with the keys question_id, model, probe, method and prediction.
        clusters: Fact of each question, by question id.
    """
    by_line: dict[tuple[str, str, str, str], list[ShownChoice]] = defaultdict(list)
    positions: dict[str, dict[str, int] | None] = {}
    for row in answers:
        name = row["question_id"]
        question = questions[name]
        if name not in positions:
            positions[name] = shown_positions(question)
        shown = positions[name]
        if shown is None or row["prediction"] not in shown:
            continue
        right = [shown[answer] for answer in question.answers if answer in shown]
        if len(right) == 1:
            order = f"{clusters[name]}\x1f{right[0]}\x1f{len(shown)}"
            key = (row["model"], question.task, row["probe"], row["method"])
            by_line[key].append(ShownChoice(order, shown[row["prediction"]], right[0], len(shown)))
    findings, p_values = [], []
    for (model, task, probe, method), choices in by_line.items():
        if sum(choice.chosen != choice.right for choice in choices) < FEWEST_ERRORS:
            continue
        position, expected, p = preferred_position(choices, derived_seed(seed, "position", task, probe, method))
        share = float(np.mean([choice.chosen == position for choice in choices]))
        finding = Finding(
            Kind.POSITION,
            Verdict.NONE,
            model=model,
            task=task,
            probe=probe,
            method=method,
            group_column="position",
            group=_NAMES[position] if position < len(_NAMES) else f"{position + 1}th",
            value=share,
            reference=expected,
            n=len(choices),
            facts=len({choice.order.partition("\x1f")[0] for choice in choices}),
        )
        findings.append(finding)
        p_values.append(p)
    corrected = holm(np.array(p_values)) if p_values else ()
    return [
        replace(finding, p=float(p), verdict=Verdict.LIKED if p < SIGNIFICANCE_LEVEL else Verdict.NO_DIFFERENCE)
        for finding, p in zip(findings, corrected, strict=True)
    ]


def shown_positions(question: Question) -> dict[str, int] | None:
    """Return the position of each candidate among the options that the prompt lists; None if it does not list all."""
    if not 2 < len(question.candidates) <= len(_NAMES):
        return None
    prompt = question.prompt
    found: dict[str, int] = {}
    # A long option is looked for before a shorter one that is part of it.
    for text in sorted(question.candidates, key=len, reverse=True):
        match = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", prompt)
        if match is None:
            return None
        start = found[text] = match.start()
        prompt = prompt[:start] + "\0" * len(text) + prompt[start + len(text) :]
    return {text: place for place, text in enumerate(sorted(found, key=found.__getitem__))}


def preferred_position(choices: Sequence[ShownChoice], seed: int) -> tuple[int, float, float]:
    """Test whether wrong choices prefer a position, and return the most preferred one.

    The null hypothesis is that options are in random order: a random permutation of the positions of the wrong options
    leaves the distribution unchanged. Choices among options in the same order are permuted together. The statistic is
    Pearson's chi-square of the wrong choices at each position.

    Returns:
        The position; the share of all choices that is expected there; the p-value.
    """
    width = max(choice.count for choice in choices)
    observed = np.zeros(width)
    expected = np.zeros(width)
    units: dict[str, tuple[int, int, FloatArray]] = {}
    for choice in choices:
        if choice.chosen == choice.right:
            continue
        observed[choice.chosen] += 1
        others = [place for place in range(choice.count) if place != choice.right]
        expected[others] += 1.0 / len(others)
        unit = units.setdefault(choice.order, (choice.right, choice.count, np.zeros(choice.count)))
        unit[2][choice.chosen] += 1
    known = expected > 0.0

    def statistic(counts: FloatArray) -> FloatArray:
        values: FloatArray = (np.square(counts - expected)[..., known] / expected[known]).sum(axis=-1)
        return values

    limit = float(statistic(observed)) - 1e-9
    exceeding = sum(int(np.sum(statistic(drawn) >= limit)) for drawn in _permute(list(units.values()), width, seed))
    position = int(np.argmax(observed - expected))
    right = sum(choice.chosen == choice.right == position for choice in choices)
    return position, (right + float(expected[position])) / len(choices), (exceeding + 1) / (_ROUNDS + 1)


def _permute(units: Sequence[tuple[int, int, FloatArray]], width: int, seed: int) -> Iterator[FloatArray]:
    """Yield the counts of wrong choices by position after random permutations of wrong options in each order."""
    generator = np.random.default_rng(seed % 2**63)
    single: Counter[tuple[int, int]] = Counter()
    several: dict[tuple[int, int], list[FloatArray]] = defaultdict(list)
    for right, count, wrong in units:
        if wrong.sum() == 1.0:
            single[right, count] += 1
        else:
            several[right, count].append(np.delete(wrong, right))
    done = 0
    rows = max(1, _DRAWS_AT_ONCE // (len(units) * width))
    while done < _ROUNDS:
        size = min(rows, _ROUNDS - done)
        total = np.zeros((size, width))
        for (right, count), number in single.items():  # A permutation of one choice is a draw of its position.
            places = np.delete(np.arange(count), right)
            total[:, places] += generator.multinomial(number, np.full(count - 1, 1.0 / (count - 1)), size)
        for (right, count), counts in several.items():
            places = np.delete(np.arange(count), right)
            table = np.stack(counts)
            orders: IntArray = generator.random((size, *table.shape)).argsort(axis=-1)
            total[:, places] += np.take_along_axis(table[np.newaxis], orders, axis=-1).sum(axis=1)
        yield total
        done += size
