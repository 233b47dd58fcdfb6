"""Dates of facts: years, months and days in ISO form (1957, 1957-03, -0044-03-15), and as written in sentences."""

from __future__ import annotations

import re

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FIRST_GREGORIAN_YEAR = 1583
_ISO = re.compile(r"([+-]?)([0-9]{1,9})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_BEFORE_CHRIST = r"BCE?|B\.C\.(?:E\.)?"
_SINCE_CHRIST = r"AD|CE|A\.D\.|C\.E\."
_WRITTEN = re.compile(
    rf"(?:(?:(?P<day>[0-9]{{1,2}}) )?(?P<month>{'|'.join(MONTHS)}) )?"
    rf"(?P<era>(?:{_SINCE_CHRIST}) )?(?P<year>[0-9]{{1,9}})"
    rf"(?: (?:(?P<before>{_BEFORE_CHRIST})|(?P<since>{_SINCE_CHRIST})))?",
    re.IGNORECASE,
)


def read_date(text: str) -> str:
    """Return a date in ISO form.

    ISO dates are returned unchanged. Dates as :func:`format_date` writes them are converted: ``44 BC`` is ``-0044``,
    ``15 March 44 BC`` is ``-0044-03-15``, and ``AD 476`` is ``0476``.

    Raises:
        ValueError: The text is not a date, or the month or day does not exist.
    """
    if _ISO.fullmatch(text):
        check_iso_date(text)
        return text
    written = _WRITTEN.fullmatch(" ".join(text.split()))
    if not written or (written["era"] and (written["before"] or written["since"])):
        raise ValueError(f"{_shorten(text)!r} is not a date (1957, 1957-03, 1957-03-15 or 44 BC)")
    month = f"{_month_number(written['month']):02d}" if written["month"] else None
    day = f"{int(written['day']):02d}" if written["day"] else None
    year = int(written["year"])
    problem = (
        date_problem(year, month, day, before_christ=bool(written["before"])) if year else "there is no year 0 BC or AD"
    )
    if problem:
        raise ValueError(f"{text!r} is not a date: {problem}")
    return "-".join([f"{'-' if written['before'] else ''}{year:04d}", *filter(None, (month, day))])


def check_iso_date(text: str) -> None:
    """Raise ValueError for a date in ISO form whose month or day does not exist; ignore other texts."""
    iso = _ISO.fullmatch(text.partition("T")[0])
    if iso:
        sign, year, month, day = iso.groups()
        problem = date_problem(int(year), month, day, before_christ=sign == "-")
        if problem:
            raise ValueError(f"{text!r} is not a date: {problem}")


def format_date(date: str) -> str:
    """Write an ISO date as in a sentence: 2009, April 2009, 17 April 2009, AD 476, 44 BC.

    Raises:
        ValueError: The text is not an ISO date.
    """
    match = _ISO.fullmatch(date)
    if not match or (match[3] and not 1 <= int(match[3]) <= 12):
        raise ValueError(f"a time must be written like 2009, 2009-04 or 2009-04-17, got {date!r}")
    sign, year, month, day = match.groups()
    number = int(year)
    year_text = f"{number} BC" if sign == "-" else f"AD {number}" if number < 1000 else str(number)
    words = [str(int(day))] if day else []
    return " ".join([*words, *([MONTHS[int(month) - 1]] if month else []), year_text])


def say_date(text: str) -> str | None:
    """Write an ISO date in words, and a year BC as such: "20 July 1969", "July 1969", "44 BC"; None for other texts.

    A year since Christ is None, too: it is written as it is.
    """
    date = text.partition("T")[0]
    if not _ISO.fullmatch(date) or not (date.startswith("-") or "-" in date):
        return None
    try:
        check_iso_date(date)
        return format_date(date)
    except ValueError:
        return None


def date_problem(
    year: int, month: str | None, day: str | None, *, before_christ: bool = False, julian: bool = False
) -> str | None:
    """Describe why a month or day does not exist; return None if it does.

    Until 1582, and in every year if ``julian`` is set, February has a 29th day every four years.
    """
    if month is not None and not 1 <= int(month) <= 12:
        return f"there is no month {month}"
    if month is None or day is None:
        return None
    julian = julian or before_christ or year < _FIRST_GREGORIAN_YEAR
    # Some sources count 1 BC as year 0 and others as year -1; both give years BC a leap day that others lack.
    is_leap = (year % 4 == 0 and (julian or year % 100 != 0 or year % 400 == 0)) or (before_christ and year % 4 == 1)
    days = 29 if month == "02" and is_leap else _DAYS[int(month) - 1]
    if 1 <= int(day) <= days:
        return None
    return f"{MONTHS[int(month) - 1]} {year}{' BC' if before_christ else ''} has {days} days"


def _month_number(name: str) -> int:
    return [month.lower() for month in MONTHS].index(name.lower()) + 1


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
