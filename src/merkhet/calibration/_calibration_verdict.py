"""Requirements of calibration, their check, and the sentences of a calibration card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, World, WorldTexts
from merkhet.core.text import counted
from merkhet.training.calibration_models import LAYERS, WIDTH, ContentTraining

TRAINED, BAG, RANDOM = "trained", "bag of words", "random weights"
MODELS = (TRAINED, BAG, RANDOM)
MIN_SENSITIVITY = 0.9
MAX_LEAK = 0.1
"""Margin above chance that a score's interval must rule out."""
REQUIRE_SENSITIVE, REQUIRE_CHANCE = f"at least {MIN_SENSITIVITY:.0%}", "no more than chance"
ROLES = {MEMORIZED: "sensitivity", NEVER_SHOWN: "specificity", IN_OTHER_WORDS: "transfer"}
REQUIREMENTS = {
    (MEMORIZED, TRAINED): REQUIRE_SENSITIVE,
    (NEVER_SHOWN, TRAINED): REQUIRE_CHANCE,
    (NEVER_SHOWN, BAG): REQUIRE_CHANCE,
    (MEMORIZED, RANDOM): REQUIRE_CHANCE,
    (NEVER_SHOWN, RANDOM): REQUIRE_CHANCE,
}
_CONTROL_PHRASES = {
    BAG: "in a bag of words, which was not shown it either",
    RANDOM: "in random weights, which have learned nothing",
}
_TOO_FEW = "these are too few facts to"
_Z_95 = NormalDist().inv_cdf(0.975)
_Z_ABOVE_CHANCE = NormalDist().inv_cdf(0.9995)
_Z_POWER = NormalDist().inv_cdf(0.8)

Row = dict[str, Any]


def judge_score(content: str, model: str, score: Mapping[str, Any] | None, chance: float, facts: int) -> Row:
    """Return a row of a calibration card: a model's score on a set of facts, and whether it meets its requirement."""
    numbers: dict[str, Any] = {name: score[name] if score else None for name in ("value", "low", "high")}
    requirement = REQUIREMENTS.get((content, model)) if score else None
    return {
        "content": content,
        "model": model,
        "role": ROLES[content] if model == TRAINED else "control",
        **numbers,
        "chance": chance,
        "n": score["n"] if score else 0,
        "facts": facts if score else 0,
        "wanted": requirement,
        "passed": meets_requirement(requirement, **numbers, chance=chance) if requirement else None,
    }


def meets_requirement(requirement: str, value: float, low: float, high: float, chance: float) -> bool:
    """Return whether a score with its 95% interval meets a requirement.

    ``REQUIRE_SENSITIVE``: the lower end is at least 90%.

    ``REQUIRE_CHANCE``: the value is less than 3.3 standard errors above chance, and the upper end is less than ten
    points above chance. A valid probe fails the first condition once in 2,000 cases. The second condition makes sure
    that there are enough facts to reveal a leak.
    """
    if requirement == REQUIRE_SENSITIVE:
        return low >= MIN_SENSITIVITY
    return not _is_above_chance(value, low, chance) and high < chance + MAX_LEAK


def _is_above_chance(value: float, low: float, chance: float) -> bool:
    return value - _Z_ABOVE_CHANCE * (value - low) / _Z_95 > chance + 1e-9


def detectable_leak(row: Row) -> float:
    """Return the smallest leak (share of answers above chance) that a card row detects with a power of 80%.

    A probe with a true score p scores more than p minus 0.84 standard errors in 80% of cases. The standard error is
    proportional to the square root of p (1 - p), and equals the standard error of the row if p is at chance.
    """
    chance: float = row["chance"]
    deviation = math.sqrt(chance * (1 - chance))
    chance_error: float = max(deviation / math.sqrt(row["n"]), (row["high"] - row["low"]) / (2 * _Z_95))

    def error(share: float) -> float:
        return chance_error * math.sqrt(share * (1 - share)) / deviation

    for leak in (thousandth / 1000 for thousandth in range(1, 1000)):
        true_share = min(1.0, chance + leak)
        low_score = max(0.0, true_share - _Z_POWER * error(true_share))
        reach = _Z_95 * error(low_score)
        if not meets_requirement(REQUIRE_CHANCE, low_score, low_score - reach, low_score + reach, chance):
            return leak
    return 1 - chance


def describe_verdict(probe: str, kind: str, rows: Sequence[Row]) -> str:
    """Return a sentence that says whether a probe passed, and why."""
    by_set = {(row["content"], row["model"]): row for row in rows}
    sensitivity, specificity = by_set[MEMORIZED, TRAINED], by_set[NEVER_SHOWN, TRAINED]
    failures = [row for row in rows if row["passed"] is False]
    failures.sort(key=lambda row: row["model"] != TRAINED)
    if not failures:
        return (
            f"{probe} passed on small {plural(kind)}: it finds {_format_score(sensitivity)} of the memorized content "
            f"and {_format_score(specificity)} of the content never shown, no more than chance "
            f"({_format_percent(specificity['chance'])})."
        )
    reasons = "; ".join(f"{row['role']}: it {_describe_failure(row)}" for row in failures)
    return f"FAILED: {probe} cannot be trusted on {plural(kind)}. {reasons[0].upper()}{reasons[1:]}."


def describe_findings(rows: Sequence[Row], texts: WorldTexts, train_accuracy: float | None, unusable: int) -> list[str]:
    """Return sentences on training accuracy, power, transfer and controls."""
    by_set = {(row["content"], row["model"]): row for row in rows}
    specificity, transfer = by_set[NEVER_SHOWN, TRAINED], by_set[IN_OTHER_WORDS, TRAINED]
    sentences = []
    if train_accuracy is not None:
        sentences.append(
            f"Measured in training, without a probe, the models know {_format_percent(train_accuracy)} of the "
            "memorized sentences."
        )
    sentences.append(
        f"The calibration has 80% power to detect a leak of {100 * detectable_leak(specificity):.0f} points above "
        "chance on content never shown."
    )
    if specificity["high"] < specificity["chance"]:
        sentences.append(
            f"The score on content never shown is below chance ({_format_score(specificity)} against "
            f"{_format_percent(specificity['chance'])}): the models generalize from what they have learned, and are "
            "wrong. This is not an error of the probe."
        )
    sentences.append(_describe_transfer(transfer, by_set.get((IN_OTHER_WORDS, BAG)), texts.transfer))
    sentences += [_describe_bag(by_set[MEMORIZED, BAG], texts.bag)] if (MEMORIZED, BAG) in by_set else []
    if unusable:
        sentences.append(
            f"{counted(unusable, 'question')} could not be asked and {'counts' if unusable == 1 else 'count'} as wrong."
        )
    return sentences


def _describe_transfer(row: Row, bag: Row | None, about: str) -> str:
    text = f"Transfer: it finds {_format_score(row)} of {about}."
    if row["low"] is None or bag is None or bag["value"] is None:
        return text
    share = f"a bag of words finds {_format_percent(bag['value'])}"
    if row["low"] > bag["value"]:
        return f"{text} This is more than word co-occurrence explains ({share})."
    return f"{text} Word co-occurrence explains as much ({share})."


def _describe_bag(row: Row, about: str) -> str:
    if row["value"] is None:
        return "This probe cannot ask a bag of words, so this control is missing."
    return f"A bag of words finds {_format_score(row)} of the memorized content: {about}"


def _describe_failure(row: Row) -> str:
    score = _format_score(row)
    if row["wanted"] == REQUIRE_SENSITIVE:
        text = f"finds {score} of the memorized content, where {REQUIRE_SENSITIVE} is required"
        if row["high"] < MIN_SENSITIVITY:
            return text
        return f"{text} at the lower end of the interval too ({_TOO_FEW} show that it finds as much)"
    content = "memorized content" if row["content"] == MEMORIZED else f"content {row['content']}"
    control = "" if row["model"] == TRAINED else f" {_CONTROL_PHRASES[row['model']]}"
    text = f"finds {score} of the {content}{control}, where chance is {_format_percent(row['chance'])}"
    if _is_above_chance(row["value"], row["low"], row["chance"]):
        return text
    return f"{text} (this may be chance, but {_TOO_FEW} rule out a leak of {100 * MAX_LEAK:.0f} points)"


def plural(kind: str) -> str:
    return {"encoder": "encoders"}.get(kind, f"{kind} models")


def _format_score(row: Row) -> str:
    if row["value"] is None:
        return "nothing"
    return f"{_format_percent(row['value'])} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def _format_percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def describe_world(kind: str, trainings: int, world: World, contents: Sequence[ContentTraining]) -> str:
    """Describe the trained models and the invented world that their training text is about."""
    models = plural(kind) if trainings > 1 else plural(kind).removesuffix("s")
    size = f"{LAYERS} layers of width {WIDTH}, about {round(contents[0].parameters, -3):,} parameters"
    return (
        f"{trainings} small {models} ({size}) {'were' if trainings > 1 else 'was'} trained from random weights, on "
        f"{len(world.sentences):,} sentences{' each' if trainings > 1 else ''} about an invented world of "
        f"{world.texts.description}"
    )
