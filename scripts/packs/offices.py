"""The `offices` pack: heads of state and of government, compiled by hand from the public record."""

from __future__ import annotations

from typing import Any

from . import licences
from .countries import COUNTRY_LABELS
from .writing import Fact, Pack, entity_id, read_table, split

DOMAIN = "history"


def build() -> Pack:
    pack = Pack(meta=_meta(), licence_text=licences.PUBLIC_RECORD_NOTICE)
    for row in read_table("office_titles.csv"):
        office = pack.name(f"office:{row['office']}", row["label"], split(row["aliases"]))
        country = pack.name(f"country:{row['country']}", COUNTRY_LABELS[row["country"]])
        pack.link(office, "office-of", country, domain=DOMAIN, source="record")
    for row in read_table("offices.csv"):
        person = pack.name(entity_id("person", row["person"]), row["person"], split(row["aliases"]))
        office = f"office:{row['office']}"
        term = Fact(person, "held-office", office, start=row["start"], end=row["end"], domain=DOMAIN, source="record")
        if term in pack.facts:
            raise ValueError(f"term listed twice: {term}")
        pack.facts.add(term)
    return pack


def _meta() -> dict[str, Any]:
    return {
        "name": "offices",
        "title": "Heads of state and of government",
        "description": "Terms of presidents, prime ministers and chancellors of many countries, in years. "
        "Acting and interim holders are mostly left out.",
        "domain": DOMAIN,
        "licence": "CC0-1.0",
        "sources": {
            "record": {
                "name": "public record, compiled for merkhet",
                "version": "2025",
                "licence": "CC0-1.0",
                "licence_file": "LICENSE.txt",
                "note": "Compiled by hand; an empty end means in office in 2025.",
            },
        },
        "predicates": {
            "held-office": {
                "label": "held the office of",
                "subject_kind": "person",
                "object_kind": "office",
                "functional": False,
                "symmetric": False,
                "complete": "both",
                "note": "One fact per unbroken term, consecutive terms merged; years only.",
            },
            "office-of": {
                "label": "is an office of",
                "subject_kind": "office",
                "object_kind": "country",
                "functional": True,
                "symmetric": False,
                "note": "",
            },
        },
    }
