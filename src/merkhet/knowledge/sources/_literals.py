"""Conversion of RDF literals to objects, values and units, and of dates to their precision."""

from __future__ import annotations

import math
import re

from merkhet.core.dates import date_problem
from merkhet.knowledge._iris import PREFIXES, short_name

XSD = PREFIXES["xsd"]
STRING = XSD + "string"
_NUMBERS = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "float", "double", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_UNIT_NAMESPACE = PREFIXES["dbt"]
_YEAR, _MONTH, _DAY = r"(-?)([1-9][0-9]{4,}|[0-9]{4})", r"-([0-9]{2})", r"-([0-9]{2})"
_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_TIME = r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
# The groups are the part of the date that is stored, its sign, year, month and day.
_TIMES = {
    XSD + name: re.compile(pattern)
    for name, pattern in {
        "gYear": f"({_YEAR}){_ZONE}",
        "gYearMonth": f"({_YEAR}{_MONTH}){_ZONE}",
        "date": f"({_YEAR}{_MONTH}{_DAY}){_ZONE}",
        "dateTime": f"({_YEAR}{_MONTH}{_DAY}){_TIME}{_ZONE}",
        "dateTimeStamp": f"({_YEAR}{_MONTH}{_DAY}){_TIME}{_ZONE}",
    }.items()
}

YEAR_PRECISION, MONTH_PRECISION, DAY_PRECISION = 9, 10, 11

Literal = tuple[str, str, "str | None"]
"""An RDF literal: its text, the IRI of its datatype, and its language tag or None."""


def read_literal(literal: Literal) -> tuple[str | None, float | None, str | None]:
    """Convert a literal to the object, value and unit of a fact; either the object or the value is None.

    Raises:
        ValueError: A number is invalid or infinite, or a date is invalid or does not exist.
    """
    text, datatype, language = literal
    if language:
        return f'"{text}"@{language}', None, None
    if datatype == STRING:
        return f'"{text}"', None, None
    if datatype in _NUMBERS:
        return None, _number(text, datatype), None
    if datatype in _TIMES:
        match = _TIMES[datatype].fullmatch(text.strip())
        if not match:
            raise ValueError(f"{_quote(text)} is not a valid {short_name(datatype)}")
        date, sign, year, *rest = match.groups()
        month, day = (*rest, None, None)[:2]
        problem = date_problem(int(year), month, day, before_christ=sign == "-") if month else None
        if problem:
            raise ValueError(f"{_quote(text)} is not a valid {short_name(datatype)}: {problem}")
        return f'"{date}"', None, None
    if datatype.startswith(_UNIT_NAMESPACE):
        try:
            return None, _number(text, datatype), short_name(datatype)
        except ValueError:
            # Some of DBpedia's datatypes are enumerations: "OHC"^^dbt:valvetrain.
            return f'"{text}"', None, None
    return f'"{text}"', None, None


def date_text(sign: str, year: str, month: str | None, day: str | None, precision: int, *, julian: bool = False) -> str:
    """Format a date up to its Wikidata precision; a month or day of 00 or None is left out.

    Raises:
        ValueError: The month or day does not exist, in the Julian calendar if ``julian`` is set.
    """
    date = f"{'-' if sign == '-' else ''}{int(year):04d}"
    if precision < MONTH_PRECISION or month in (None, "00"):
        return date
    day = None if precision < DAY_PRECISION or day == "00" else day
    problem = date_problem(int(year), month, day, before_christ=sign == "-", julian=julian)
    date = "-".join(filter(None, (date, month, day)))
    if problem:
        raise ValueError(f"{date!r} is not a date: {problem}")
    return date


def _number(text: str, datatype: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # Python also accepts 1_000 and digits of other scripts, which RDF does not.
    if not math.isfinite(value) or "_" in text or not text.isascii():
        raise ValueError(f"{_quote(text)} is not a finite number ({short_name(datatype)})")
    return value


def _quote(text: str) -> str:
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'
