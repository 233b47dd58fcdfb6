"""Axis scales of figures: mapping of values to pixels, round ticks and tick labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MAX_INTERVALS = 7
_MIN_EXTENT = 1e-290
"""Smallest extent of an axis; steps of smaller ones would underflow."""


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from the values ``low`` to ``high`` onto the pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel position of ``value``; the middle of the pixel range if ``low`` equals ``high``."""
        low, high, position = (math.log(number) if self.log else number for number in (self.low, self.high, value))
        share = (position - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True)
class Axis:
    """An axis: range of values, ticks, tick labels and title."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    title: str = ""

    def scale(self, start: float, end: float) -> Scale:
        """Return the linear scale that maps the axis onto the pixels ``start`` to ``end``."""
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
    """Build an axis for the values from ``low`` to ``high``; an empty or tiny range is widened.

    Args:
        label: Function that formats the tick labels, such as :func:`percent_labels`.
        nice: Whether to extend the range to multiples of the tick step.
        integers: Whether all ticks must be integers.
    """
    if high - low < _MIN_EXTENT:
        low, high = (0.0, 1.0) if abs(low) < _MIN_EXTENT else (low - abs(low) / 10, low + abs(low) / 10)
    step = tick_step(high - low)
    if integers:
        step = max(1.0, step)
    if nice:
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(_round_tick(index * step, step) for index in range(first, last + 1))
    return Axis(low, high, ticks, tuple(label(ticks)), title)


def tick_step(extent: float, max_intervals: int = _MAX_INTERVALS) -> float:
    """Return the smallest tick step that divides ``extent`` into at most ``max_intervals`` intervals.

    A step is 1, 2 or 5 times a power of ten.
    """
    minimum = extent / max_intervals
    power = 10.0 ** math.floor(math.log10(minimum))
    return next(step * power for step in _STEPS if step * power >= minimum * (1 - 1e-9))


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between ``low`` and ``high``, and 2 and 5 times them if there are few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0,) if len(exponents) > 4 else _STEPS[:3]
    return [tick for power in exponents for factor in factors if low <= (tick := factor * 10.0**power) <= high]


def percent_labels(ticks: Sequence[float]) -> list[str]:
    """Format shares as percentages, with as many decimals as the ticks need."""
    decimals = max(0, _decimals(ticks) - 2)
    return [_with_minus_sign(f"{100 * tick:.{decimals}f}%") for tick in ticks]


def number_labels(ticks: Sequence[float]) -> list[str]:
    """Format numbers with as many decimals as the ticks need; very large and very small numbers get exponents."""
    if any(abs(tick) >= 1e7 for tick in ticks) or (any(ticks) and max(map(abs, ticks)) < 1e-4):
        return [_with_minus_sign(f"{tick:.6g}") for tick in ticks]
    decimals = _decimals(ticks)
    return [_with_minus_sign(f"{tick:,.{decimals}f}") for tick in ticks]


def signed_labels(ticks: Sequence[float]) -> list[str]:
    """Format differences with a plus or minus sign."""
    return [label if tick <= 0 else f"+{label}" for tick, label in zip(ticks, number_labels(ticks), strict=True)]


def si_labels(ticks: Sequence[float]) -> list[str]:
    """Format numbers with three significant digits and an SI prefix, such as ``31.6k``."""
    return [_with_prefix(tick) for tick in ticks]


def general_labels(ticks: Sequence[float]) -> list[str]:
    """Format each number with at most six significant digits and no trailing zeros."""
    return [_with_minus_sign(f"{tick:.6g}") for tick in ticks]


def _with_prefix(value: float) -> str:
    size = float(f"{abs(value):.3g}")
    unit, prefix = next(((unit, prefix) for unit, prefix in _PREFIXES if size >= unit), (1.0, ""))
    return _with_minus_sign(f"{float(f'{value:.3g}') / unit:.6g}{prefix}")


def _decimals(ticks: Sequence[float]) -> int:
    """Return the number of decimals, at most eight, that all ticks need to be exact."""
    return next(
        (decimals for decimals in range(8) if all(abs(tick - round(tick, decimals)) < 1e-9 for tick in ticks)),
        8,
    )


def _round_tick(value: float, step: float) -> float:
    return round(value, max(0, 1 - math.floor(math.log10(step))))


def _with_minus_sign(text: str) -> str:
    return text.replace("-", "−", 1) if text.strip("-0.%,") else text.lstrip("-")
