"""One difference between two models: whether it is clear, what could have been found, the same in words.

Comparisons are mappings with the keys of :class:`merkhet.analysis.comparison.Comparison`; keys that older runs lack may
be missing; ``share`` is false for a metric that is not told in points, ``higher_is_better`` for one of which
less is better (its difference is turned round: more is better), ``equal`` true where both models have the same values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from merkhet.analysis.comparison import Comparison, corrected
from merkhet.analysis.types import listed, name_label
from merkhet.metrics import paired_tests as power
from merkhet.metrics.corrections import CLEAR

Compared = Mapping[str, Any]
_TWO_SIDED = 1.959964
_POWER = _TWO_SIDED + 0.841621
"""Standard errors between no difference and one that is found in 80% of cases at 5%, two-sided."""
_SAME_TOO = 0.005
"""No difference to look for is smaller than half a point."""


def is_clear(one: Compared) -> bool:
    """Whether a comparison tells its models apart: by the corrected p, and by q within groups."""
    chance = finite(one.get("q")) if one.get("group_column") else None
    chance = finite(one.get("p")) if chance is None else chance
    return chance is not None and chance < CLEAR


def is_equal(one: Compared) -> bool:
    """Whether no question tells the models apart: all of their values are the same."""
    return bool(one.get("equal"))


def facts_behind(one: Compared) -> int:
    """The number of facts of a comparison, of questions where it is not told."""
    return int(one.get("facts") or one["n"])


def detectable(one: Compared) -> float | None:
    """The smallest true difference that is found in 80% of cases; where it is not told, from the interval's width."""
    least = finite(one.get("detectable"))
    if least is not None:
        return least
    low, high = finite(one.get("low")), finite(one.get("high"))
    return None if low is None or high is None or high <= low else _POWER * (high - low) / (2 * _TWO_SIDED)


def facts_needed(one: Compared) -> int | None:
    """How many facts would find a difference as large as the one seen, in 80% of cases at 5%; None where unknown.

    By the deviation between facts that the effect size tells; without it, by the interval: the error of a mean shrinks
    with the root of the number of facts.
    """
    seen, effect, least = abs(one["difference"]), finite(one.get("effect")), detectable(one)
    if seen < _SAME_TOO:
        return None
    if effect:
        return power.facts_needed(seen, seen / abs(effect))
    return None if least is None else math.ceil(facts_behind(one) * (least / seen) ** 2)


def corrected_anew(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Comparisons of several tables as one, with p and q corrected over all of it and nothing else."""
    return corrected([one if one.p_raw is None else replace(one, p=one.p_raw) for one in comparisons])


def turned(one: Compared) -> dict[str, Any]:
    """The same comparison told from the other model's side."""
    back: dict[str, Any] = {**one, "model": one["other"], "other": one["model"]}
    for name in ("difference", "effect"):
        if one.get(name) is not None:
            back[name] = 0.0 - one[name]
    back["low"], back["high"] = (None if one.get(end) is None else 0.0 - one[end] for end in ("high", "low"))
    if one.get("odds") is not None:
        back["odds"] = 1.0 / one["odds"] if one["odds"] else math.inf
    if "value" in one:
        back["value"], back["other_value"] = one["other_value"], one["value"]
    return back


def from_side(one: Compared, model: str) -> dict[str, Any]:
    """A comparison told from a model's side."""
    return dict(one) if one["model"] == model else turned(one)


def task_names(comparisons: Sequence[Compared]) -> dict[tuple[str, str], str]:
    """How each task is called: with its metric where it is scored by several."""
    places = dict.fromkeys((one["task"], one["metric"]) for one in comparisons)
    tasks = [task for task, _ in places]
    return {
        (task, metric): task if tasks.count(task) == 1 else f"{task} {name_label(metric)}" for task, metric in places
    }


def amount(one: Compared) -> str:
    """``+14.2 points [9.1, 19.4], p < 0.001``; by the metric where it is no share."""
    name, chance = ("q", one["q"]) if one.get("group_column") and one.get("q") is not None else ("p", one["p"])
    return f"{points(one)}, {name} {probability(chance)}"


def points(one: Compared) -> str:
    """``+14.2 points [9.1, 19.4]``."""
    ends = [finite(one.get(end)) for end in ("low", "high")]
    if not one.get("share", True):
        shown = [f"{end:.3g}" for end in ends if end is not None]
        size = f"{one['difference']:+.3g} in {name_label(one['metric'])}"
        size += "" if one.get("higher_is_better", True) else ", where less is better,"
    else:
        shown = [_decimal(100 * end) for end in ends if end is not None]
        size = f"{_decimal(100 * one['difference'], '+')} points"
    return f"{size} [{', '.join(shown)}]" if len(shown) == 2 else size


def size(share: float) -> str:
    """A size in points, without more digits than one would say."""
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def probability(value: float) -> str:
    """``< 0.001`` or ``= 0.043``."""
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def some_of(names: Sequence[str], most: int) -> str:
    """``a, b and c``: so many of them at most, and how many more there are."""
    return listed(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most:,} more"


def some_pairs(pairs: Sequence[str], most: int) -> str:
    """``a and b; c and d``: the same of what has an "and" of its own."""
    more = [f"{len(pairs) - most:,} more"] if len(pairs) > most else []
    return "; ".join([*pairs[:most], *more])


def finite(value: Any) -> float | None:
    """The number; None where there is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _decimal(value: float, sign: str = "") -> str:
    """One decimal, and no sign before a zero."""
    rounded = round(value, 1) + 0.0
    return f"{rounded:{sign if rounded else ''}.1f}"
