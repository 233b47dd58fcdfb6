"""Numbers and names as people read them; a missing number is a dash."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

DASH = "–"
_CAPITALS = re.compile(r"^(r|p|mrr|map|ndcg|f)(?=$|[@_\d])")
_NAME_LENGTH = 48
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = re.compile(r"[\u2028\u2029]")
_DIRECTIONS = re.compile(r"[\u202a-\u202c\u2066-\u2069]")


def finite(value: Any) -> float | None:
    """The value as a float, or None where there is none (null, NaN, infinity, text)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def metric_label(metric: str) -> str:
    """A metric's name as papers write it: ``r@1`` is R@1, ``mrr`` is MRR; words stay words."""
    return _CAPITALS.sub(lambda match: match.group().upper(), metric)


def score(value: Any, *, percent: bool = True) -> str:
    """A score with one decimal in percent, or three digits for a metric that is no share."""
    number = finite(value)
    if number is None:
        return DASH
    text = f"{100 * number:.1f}" if percent else f"{number:.3g}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def interval(low: Any, high: Any, *, percent: bool = True) -> str:
    """An interval such as ``[39.3, 43.0]``; nothing where an end is missing."""
    if finite(low) is None or finite(high) is None:
        return ""
    return f"[{score(low, percent=percent)}, {score(high, percent=percent)}]"


def span(values: list[float], *, percent: bool = True) -> str:
    """One number where all are shown alike, else the least and the greatest."""
    if not values:
        return DASH
    least, greatest = score(min(values), percent=percent), score(max(values), percent=percent)
    return least if least == greatest else f"{least}–{greatest}"


def difference(value: Any) -> str:
    """A difference of two shares in points, with its sign."""
    number = finite(value)
    if number is None:
        return DASH
    text = score(number)
    return text if text.startswith("-") or not text.strip("0.") else f"+{text}"


def number(value: Any, kind: str) -> str:
    """A number as tables of analyses show it.

    Kinds: count, share (in percent), points (a difference of shares), signed (another difference), p, correlation, and
    anything else as a number.
    """
    known = finite(value)
    if kind == "count":
        return count(known)
    if kind == "points":
        return difference(known)
    if kind == "p":
        return probability(known)
    if kind == "correlation":
        return DASH if known is None else f"{known:.2f}".replace("-0.00", "0.00")
    text = score(known, percent=kind == "share")
    return f"+{text}" if kind == "signed" and known is not None and known > 0 else text


def probability(value: Any) -> str:
    """A p value with three decimals, and not less than can be told."""
    number = finite(value)
    if number is None:
        return DASH
    return "< 0.001" if number < 0.001 else f"{number:.3f}"


def count(value: Any) -> str:
    """A whole number with its thousands parted."""
    number = finite(value)
    return DASH if number is None else f"{round(number):,}"


def quantity(value: Any) -> str:
    """A measured number with four significant digits: seconds, questions a second."""
    number = finite(value)
    if number is None:
        return DASH
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def rank(value: Any) -> str:
    """A rank; a tie has the mean of its places."""
    number = finite(value)
    return DASH if number is None else f"{number:,.2f}".rstrip("0").rstrip(".")


def printable(text: Any) -> str:
    """Text without characters that no document may hold, or that turn around the text after them; shown as �.

    Embeddings and isolates of right-to-left text are left out: whoever shows a text gives it a direction of its own.
    Unicode's own ends of lines and paragraphs, which no script may hold, become spaces.
    """
    return _LINE_ENDS.sub(" ", _CONTROL.sub("�", _DIRECTIONS.sub("", str(text))))


def file_name(*parts: Any) -> str:
    """A short name for a file, of small Latin letters, digits and hyphens, whatever the parts are made of.

    The same parts give the same name. Where letters of another script or the end of a long part are lost, a few digits
    of a hash stand for them.
    """
    whole = "-".join(str(part) for part in parts)
    plain = unicodedata.normalize("NFKD", whole.replace("@", "")).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    lost = any(ord(letter) > 127 and unicodedata.category(letter) in ("Lo", "Ll", "Lu", "Lt") for letter in whole)
    if len(name) > _NAME_LENGTH or not name or (lost and _letters(plain) < _letters(whole)):
        digits = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:6]
        name = f"{name[: _NAME_LENGTH - 7].strip('-')}-{digits}".strip("-")
    return name


def _letters(text: str) -> int:
    return sum(letter.isalnum() for letter in unicodedata.normalize("NFC", text))


def distinct(names: Iterable[str]) -> list[str]:
    """The names in order, a number behind those that were there before."""
    found: list[str] = []
    for name in names:
        number = 2
        fresh = name
        while fresh in found:
            fresh, number = f"{name}-{number}", number + 1
        found.append(fresh)
    return found
