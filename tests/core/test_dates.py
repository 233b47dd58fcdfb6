"""Dates: which exist, and that every date is read as it is written."""

from __future__ import annotations

import calendar
from datetime import date, timedelta

import pytest
from all_cases import check_all

from merkhet.core.dates import MONTHS, format_date, read_date


def dates_of(year: int) -> list[str]:
    text = f"{'-' if year < 0 else ''}{abs(year):04d}"
    return [text, f"{text}-{abs(year) % 12 + 1:02d}", f"{text}-03-{abs(year) % 31 + 1:02d}"]


def test_every_date_is_read_as_it_is_written() -> None:
    years = [year for year in range(-9999, 10_000) if year]
    for text in (text for year in years for text in dates_of(year)):
        assert read_date(format_date(text)) == text
        assert read_date(text) == text


def test_the_days_of_a_year_are_those_of_the_calendar() -> None:
    for year in (1583, 1700, 1900, 2000, 2020, 2021, 2100, 9999):
        days = {(date(year, 1, 1) + timedelta(day)).isoformat() for day in range(365 + calendar.isleap(year))}
        for month in range(14):
            for day in range(33):
                text = f"{year}-{month:02d}-{day:02d}"
                if text in days:
                    assert read_date(text) == text
                else:
                    with pytest.raises(ValueError, match="is not a date: "):
                        read_date(text)


def test_dates_in_words_have_many_forms() -> None:
    def check(text: str, iso: str) -> None:
        assert read_date(text) == iso

    written = {
        "-0044": ["44 BC", "44 BCE", "44 B.C.", "44 bc", "044 B.C.E.", "44\xa0BC"],
        "-0013": ["13 BC", "13  BCE"],
    }
    written |= {"0476": ["AD 476", "476 AD", "476 CE", "A.D. 476", "476 c.e."], "1957": ["1957 CE"]}
    written |= {"-0044-03-15": ["15 March 44 BC", "15 march 44 BCE"], "1957-03": ["March 1957"], "-13": ["-13"]}
    check_all(check, [(text, iso) for iso, texts in written.items() for text in texts])


def test_other_texts_are_refused_with_the_reason() -> None:
    def check(text: str, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            read_date(text)

    no_date = [
        "",
        "soon",
        "BC",
        "44 BC AD",
        "AD 44 BC",
        "c. 44 BC",
        "15.3.1957",
        "1957-3",
        "١٩٥٧",
        "15 1957",
        "1957-03-15T",
    ]
    cases = [(text, r"is not a date \(1957, 1957-03, 1957-03-15 or 44 BC\)") for text in [*no_date, "x" * 10_000]]
    impossible = {"2020-02-30": "February 2020 has 29 days", "2021-02-29": "February 2021 has 28 days"}
    impossible |= {"1900-02-29": "has 28 days", "2020-13-01": "there is no month 13", "2020-00": "there is no month 00"}
    impossible |= {"-0044-02-30": "February 44 BC has 28 days|29 days", "31 April 1957": "April 1957 has 30 days"}
    impossible |= {"0 BC": "there is no year 0", "AD 0": "there is no year 0", "0 March 1957": "March 1957 has 31 days"}
    check_all(check, [*cases, *impossible.items()])
    # The Julian calendar has these days, and before 1583 a source may use either calendar.
    for text in ("1500-02-29", "-0045-02-29", "-0044-02-29"):
        assert read_date(text) == text


def test_a_month_that_does_not_exist_is_not_written() -> None:
    assert len(MONTHS) == 12
    for text in ("1957-13", "44 BC", "1957-00-01", "soon"):
        with pytest.raises(ValueError, match="a time must be written like"):
            format_date(text)
