"""Formatting of numbers, names and lists for readers; a missing number becomes a dash."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

DASH = "–"
_CAPITALS = re.compile(r"^(r|p|mrr|map|ndcg|f)(?=$|[@_\d])")
_NAME_LENGTH = 48
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = re.compile(r"[\u2028\u2029]")
_HIDDEN = re.compile(
    # Control characters, soft hyphens, fillers, zero-width and direction characters, line separators, byte order marks,
    # surrogates, and tags.
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
_DIRECTIONS = re.compile(r"[\u202a-\u202c\u2066-\u2069]")


def finite_or_none(value: Any) -> float | None:
    """Return the value as a float, or None for anything but a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def metric_label(metric: str) -> str:
    """Write a metric's name as papers do: ``r@1`` becomes R@1, ``mrr`` becomes MRR; other names are unchanged."""
    return _CAPITALS.sub(lambda match: match.group().upper(), metric)


def score(value: Any, *, percent: bool = True) -> str:
    """Format a score: percent with one decimal, or three significant digits for a metric that is not a share."""
    number = finite_or_none(value)
    if number is None:
        return DASH
    text = f"{100 * number:.1f}" if percent else f"{number:.3g}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def interval(low: Any, high: Any, *, percent: bool = True) -> str:
    """Format an interval such as ``[39.3, 43.0]``; empty if an end is missing."""
    if finite_or_none(low) is None or finite_or_none(high) is None:
        return ""
    return f"[{score(low, percent=percent)}, {score(high, percent=percent)}]"


def value_range(values: list[float], *, percent: bool = True) -> str:
    """Format the minimum and maximum of ``values``, or one number if the two look the same."""
    if not values:
        return DASH
    lowest, highest = score(min(values), percent=percent), score(max(values), percent=percent)
    return lowest if lowest == highest else f"{lowest}–{highest}"


def difference(value: Any) -> str:
    """Format a difference of two shares in percentage points, with its sign."""
    number = finite_or_none(value)
    if number is None:
        return DASH
    text = score(number)
    return text if text.startswith("-") or not text.strip("0.") else f"+{text}"


def number(value: Any, kind: str) -> str:
    """Format a number for a table.

    Args:
        kind: count, share (in percent), points (a difference of shares), signed (any other difference), p,
            correlation, effect (Cohen's d) or ratio; any other kind is a plain number.
    """
    if kind == "ratio" and value == math.inf:
        return "∞"
    number_or_none = finite_or_none(value)
    if kind == "count":
        return count(number_or_none)
    if kind == "points":
        return difference(number_or_none)
    if kind == "p":
        return p_value(number_or_none)
    if kind == "correlation":
        return DASH if number_or_none is None else f"{number_or_none:.2f}".replace("-0.00", "0.00")
    if kind == "effect":
        return DASH if number_or_none is None else f"{number_or_none:+.2f}" if round(number_or_none, 2) else "0.00"
    if kind == "ratio":
        return DASH if number_or_none is None else f"{number_or_none:,.{2 if number_or_none < 100 else 0}f}"
    text = score(number_or_none, percent=kind == "share")
    return f"+{text}" if kind == "signed" and number_or_none is not None and number_or_none > 0 else text


def p_value(value: Any) -> str:
    """Format a p-value with three decimals, or as ``< 0.001``."""
    number = finite_or_none(value)
    if number is None:
        return DASH
    return "< 0.001" if number < 0.001 else f"{number:.3f}"


def quantity(value: Any) -> str:
    """Format a measured quantity (seconds, questions per second) with four significant digits."""
    number = finite_or_none(value)
    if number is None:
        return DASH
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def rank(value: Any) -> str:
    """Format a rank with up to two decimals; ranks of tied candidates are means."""
    number = finite_or_none(value)
    return DASH if number is None else f"{number:,.2f}".rstrip("0").rstrip(".")


def count(value: Any) -> str:
    """Format an integer with thousands separators; a missing number becomes a dash."""
    number = finite_or_none(value)
    return DASH if number is None else f"{round(number):,}"


def counted(number: float, singular: str, plural: str = "") -> str:
    """Format a number with its noun: ``1 fact``, ``2,000 facts``."""
    return f"{count(number)} {singular if number == 1 else plural or f'{singular}s'}"


def percent(value: float, decimals: int = 1) -> str:
    """Format a share in percent."""
    return f"{100 * value:.{decimals}f}%"


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: ``a, b and c``."""
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases as in ``a, b and c``, or with semicolons if any of three or more phrases contains a comma."""
    if len(phrases) > 2 and any("," in phrase for phrase in phrases):
        return f"{'; '.join(phrases[:-1])}; and {phrases[-1]}"
    return join_names(phrases)


def join_some(names: Sequence[str], limit: int) -> str:
    """Join at most ``limit`` names and count the rest: ``a, b and 3 more``."""
    return join_names(names) if len(names) <= limit else f"{', '.join(names[:limit])} and {len(names) - limit:,} more"


def join_pairs(pairs: Sequence[str], limit: int) -> str:
    """Join at most ``limit`` pairs of the form "a and b" and count the rest: ``a and b; c and d; 3 more``."""
    rest = [f"{len(pairs) - limit:,} more"] if len(pairs) > limit else []
    return "; ".join([*pairs[:limit], *rest])


def quote_name(name: str) -> str:
    """Put a name in quotation marks if it contains a comma."""
    return f"“{name}”" if "," in name else name


def truncate(text: str, limit: int) -> str:
    """Truncate a text to ``limit`` characters, with an ellipsis at the end."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: Any) -> str:
    """Replace control characters and direction overrides by �.

    Directional embeddings and isolates are removed, because the HTML element around a text sets the direction. Unicode
    line and paragraph separators, which are invalid in scripts, become spaces.
    """
    return _LINE_ENDS.sub(" ", _CONTROL.sub("�", _DIRECTIONS.sub("", str(text))))


def show_hidden(text: str) -> str:
    """Write control, zero-width and direction characters visibly, by their code: ``‹U+202E›``."""
    return _HIDDEN.sub(lambda match: f"‹U+{ord(match[0]):04X}›", text)


def file_slug(*parts: Any) -> str:
    """Make a short file name of lowercase Latin letters, digits and hyphens from any parts.

    Equal parts give equal names. A short hash is appended if letters of another script or the end of a long name are
    lost.
    """
    joined = "-".join(str(part) for part in parts)
    plain = unicodedata.normalize("NFKD", joined.replace("@", "")).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    lost = any(ord(letter) > 127 and unicodedata.category(letter) in ("Lo", "Ll", "Lu", "Lt") for letter in joined)
    if len(name) > _NAME_LENGTH or not name or (lost and _letters(plain) < _letters(joined)):
        digits = hashlib.sha256(joined.encode("utf-8", "replace")).hexdigest()[:6]
        name = f"{name[: _NAME_LENGTH - 7].strip('-')}-{digits}".strip("-")
    return name


def _letters(text: str) -> int:
    return sum(letter.isalnum() for letter in unicodedata.normalize("NFC", text))


def unique_names(names: Iterable[str]) -> list[str]:
    """Make names unique by appending a number to repeated names."""
    unique: list[str] = []
    for name in names:
        number = 2
        candidate = name
        while candidate in unique:
            candidate, number = f"{name}-{number}", number + 1
        unique.append(candidate)
    return unique
