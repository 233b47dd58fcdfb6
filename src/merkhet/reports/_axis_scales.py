"""Scales of figures: from values to pixels, with round ticks and their labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MAX_INTERVALS = 7


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map of the domain from `low` to `high` onto the pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; the middle if the domain is a single value."""
        low, high, position = (math.log(number) if self.log else number for number in (self.low, self.high, value))
        share = (position - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True)
class Axis:
    """A domain with its ticks, their labels and a title."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    title: str = ""

    def scale(self, start: float, end: float) -> Scale:
        """Return the linear scale from the domain onto these pixels."""
        return Scale(self.low, self.high, start, end)


def value_axis(
    low: float,
    high: float,
    label: Callable[[Sequence[float]], list[str]],
    *,
    title: str = "",
    nice: bool = True,
    integers: bool = False,
) -> Axis:
    """Build the axis of a domain; one without extent is widened.

    Args:
        label: Writes the ticks, such as `percent_labels`.
        nice: Whether the domain is widened to whole steps.
        integers: Whether ticks are integers.
    """
    if high <= low:
        low, high = (0.0, 1.0) if low == high == 0 else (low - abs(low) / 10, low + abs(low) / 10)
    step = tick_step(high - low)
    if integers:
        step = max(1.0, step)
    if nice:
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(_round_tick(index * step, step) for index in range(first, last + 1))
    return Axis(low, high, ticks, tuple(label(ticks)), title)


def tick_step(extent: float, max_intervals: int = _MAX_INTERVALS) -> float:
    """Return the smallest step of 1, 2 or 5 times a power of ten that makes at most `max_intervals` intervals."""
    minimum = extent / max_intervals
    power = 10.0 ** math.floor(math.log10(minimum))
    return next(step * power for step in _STEPS if step * power >= minimum * (1 - 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten in a domain, with their double and fivefold if there are few powers."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0,) if len(exponents) > 4 else _STEPS[:3]
    return [tick for power in exponents for factor in factors if low <= (tick := factor * 10.0**power) <= high]


def percent_labels(ticks: Sequence[float]) -> list[str]:
    """Label shares in percent, with as many decimals as they need."""
    decimals = max(0, _decimals(ticks) - 2)
    return [_with_minus_sign(f"{100 * tick:.{decimals}f}%") for tick in ticks]


def number_labels(ticks: Sequence[float]) -> list[str]:
    """Label numbers with as many decimals as they need; very large and very small numbers use exponents."""
    if any(abs(tick) >= 1e7 for tick in ticks) or (any(ticks) and max(map(abs, ticks)) < 1e-4):
        return [_with_minus_sign(f"{tick:.6g}") for tick in ticks]
    decimals = _decimals(ticks)
    return [_with_minus_sign(f"{tick:,.{decimals}f}") for tick in ticks]


def signed_labels(ticks: Sequence[float]) -> list[str]:
    """Label differences with their sign."""
    return [label if tick <= 0 else f"+{label}" for tick, label in zip(ticks, number_labels(ticks), strict=True)]


def si_labels(ticks: Sequence[float]) -> list[str]:
    """Label numbers with three digits and the prefix of their size: 31.6k."""
    return [_with_prefix(tick) for tick in ticks]


def general_labels(ticks: Sequence[float]) -> list[str]:
    """Label each number as short as its digits allow."""
    return [_with_minus_sign(f"{tick:.6g}") for tick in ticks]


def _with_prefix(value: float) -> str:
    size = float(f"{abs(value):.3g}")
    unit, prefix = next(((unit, prefix) for unit, prefix in _PREFIXES if size >= unit), (1.0, ""))
    return _with_minus_sign(f"{float(f'{value:.3g}') / unit:.6g}{prefix}")


def _decimals(ticks: Sequence[float]) -> int:
    """Return how many decimals write every tick exactly, up to eight."""
    return next(
        (decimals for decimals in range(8) if all(abs(tick - round(tick, decimals)) < 1e-9 for tick in ticks)),
        8,
    )


def _round_tick(value: float, step: float) -> float:
    return round(value, max(0, 1 - math.floor(math.log10(step))))


def _with_minus_sign(text: str) -> str:
    return text.replace("-", "−", 1) if text.strip("-0.%,") else text.lstrip("-")
