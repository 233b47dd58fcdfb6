"""Small English: articles and capitals where a name goes into a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

_AN = re.compile(r"^(?:[aefilnorsx]\b|[aio]|e(?!u|w)|u(?!ni|s[aeiu]|r[aeio]|t[ei]|k|bi)|hon|hour|heir)", re.IGNORECASE)
_THE_WORDS = re.compile(r"\b(Republic|Kingdom|States|Islands|Emirates|Federation|Union|Soviet)\b")
_THE_NAMES = frozenset({"Netherlands", "Philippines", "Bahamas", "Gambia", "Maldives", "Seychelles", "Comoros"})


def indefinite(name: str) -> str:
    """The name with a or an: "an element", "a metal", "a European", "an hour"."""
    return f"{'an' if _AN.match(name) else 'a'} {name}"


def definite(name: str) -> str:
    """A proper name with "the" where English wants it: "the Netherlands", "the United States", but "France"."""
    if name.lower().startswith("the "):
        return name
    wants = bool(_THE_WORDS.search(name)) or name in _THE_NAMES
    return f"the {name}" if wants else name


def capitalised(text: str) -> str:
    """The text with its first letter in upper case, the rest untouched."""
    return text[:1].upper() + text[1:]


def number(value: float) -> str:
    """A number as people write it in a sentence: no trailing zeros, no exponent."""
    return str(int(value)) if value == int(value) else f"{value:.10f}".rstrip("0")


FORMS: dict[str, Callable[[str], str]] = {"": str, "a": indefinite, "the": definite}
"""What may stand before a placeholder's name, as in ``{a object}``."""
