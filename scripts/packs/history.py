"""The `history` pack: wars, treaties and other events, inventors, founders, authors and the capitals of old realms."""

from __future__ import annotations

from .compiled import Described, compiled_pack
from .writing import Pack

PREDICATES = {
    "war-start": Described("began in the year", "event", unit="year", functional=True),
    "war-end": Described("ended in the year", "event", unit="year", functional=True),
    "event-year": Described("took place in the year", "event", unit="year", functional=True),
    "event-country": Described(
        "took place in what is now", "event", "country", functional=True, note="Present-day country of the place."
    ),
    "battle-of-war": Described(
        "was fought in", "event", "event", complete="both", note="Also in the larger war of which that war was a part."
    ),
    "war-of-series": Described("was a part of", "event", "event", functional=True),
    "treaty-ended": Described("ended", "event", "event", functional=True),
    "invented-by": Described("was invented by", "invention", "person", functional=True),
    "founded-by": Described("was founded by", "foundation", "person", functional=True),
    "written-by": Described("was written by", "book", "person", functional=True),
    "first-to": Described("was the first person to", "person", "deed", functional=True),
    "people-of": Described(
        "was born in what is now", "person", "country", functional=True, note="Present-day country of the birthplace."
    ),
    "empire-capital": Described("had the capital", "realm", "place", note="Several where it moved."),
}


def build() -> Pack:
    return compiled_pack(
        name="history",
        title="History",
        description="Wars, battles, treaties and other events with their years and places; inventors, founders, "
        "authors and pioneers; the capitals of states of the past.",
        domain="history",
        predicates=PREDICATES,
        note="Compiled by hand; left out where accounts differ.",
    )
