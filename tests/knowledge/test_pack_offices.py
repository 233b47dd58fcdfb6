"""The offices of the embedded pack against an outside table, which is not part of the repository."""

from __future__ import annotations

import csv
import re
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pack_tables import ROOT, facts, names

POSITIONS = ROOT.parent / "shared/data/temporal/positions.tsv"
Term = tuple[str, str]

LETTERS = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d", "ß": "ss"})
# The outside table writes bare titles; together with the country of its row they name one office.
TITLES = {"president": "President", "prime-minister": "Prime Minister"}
SOURCE_COUNTRY = {"the-united-states": "us", "the-united-kingdom": "united-kingdom", "the-philippines": "philippines"}
# The table was taken in 2022: an open end there says no more than "still in office then".
OUTSIDE_YEAR = "2022"
# (person, office, start) of the outside table -> why the pack says otherwise. Unbroken terms that it splits at
# elections or reshuffles are allowed for by `merged`.
KNOWN_DIFFERENCES = {
    (
        "massimodalema",
        "office:prime-minister-of-italy",
        "1999",
    ): "it lists the second cabinet only; in office since 1998",
}


def folded(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.lower().translate(LETTERS)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z]", "", plain)


def outside_terms() -> dict[tuple[str, str], set[Term]]:
    """(folded person, office id) -> years of its terms in the outside table."""
    by_title = {}
    for row in facts("offices"):
        title, _, country = row["subject"].removeprefix("office:").partition("-of-")
        if row["predicate"] == "office-of" and title in TITLES:
            by_title[TITLES[title], SOURCE_COUNTRY.get(country, country)] = row["subject"]
    terms = defaultdict(set)
    with POSITIONS.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE):
            country = re.sub(r"-(cabinet|ministers)$", "", row["country_source"])
            office = by_title.get((row["position"], country))
            if office:
                terms[folded(row["subject"]), office].add((row["start"][:4], row["end"][:4]))
    return terms


def pack_terms() -> dict[tuple[str, str], set[Term]]:
    """The same of the pack, under every spelling of a person's name."""
    spellings = {row["entity"]: {row["label"], *filter(None, row["aliases"].split("|"))} for row in names("offices")}
    terms = defaultdict(set)
    for row in facts("offices"):
        if row["predicate"] == "held-office":
            for spelling in spellings[row["subject"]]:
                terms[folded(spelling), row["object"]].add((row["start"], row["end"]))
    return terms


def merged(terms: set[Term]) -> set[Term]:
    """Terms joined where one starts in the year in which the one before it ends, or overlaps it."""
    joined: list[Term] = []
    for start, end in sorted(terms, key=lambda term: (term[0], term[1] or "9999")):
        if joined and start <= (joined[-1][1] or "9999"):
            before = joined.pop()
            start, end = before[0], "" if "" in (before[1], end) else max(before[1], end)
        joined.append((start, end))
    return set(joined)


def matches(theirs: Term, ours: set[Term]) -> bool:
    start, end = theirs
    return theirs in ours or (not end and any(s == start and (not e or e >= OUTSIDE_YEAR) for s, e in ours))


def test_offices_agree_with_the_outside_table():
    if not POSITIONS.is_file():
        pytest.skip("the outside table of positions (shared/data/temporal/positions.tsv) is not here")
    ours, theirs = pack_terms(), outside_terms()
    covered, agreed, differ, missing = 0, 0, [], []
    for (person, office), terms in sorted(theirs.items()):
        if (person, office) not in ours:
            missing.append((person, office, sorted(terms)))
            continue
        whole = {term for term in merged(terms) if matches(term, ours[person, office])}
        for start, end in sorted(terms):
            covered += 1
            inside = any(s <= start and (end or "9999") <= (e or "9999") for s, e in whole)
            if inside or matches((start, end), ours[person, office]):
                agreed += 1
            elif (person, office, start) not in KNOWN_DIFFERENCES:
                differ.append((person, office, (start, end), sorted(ours[person, office])))
    print(f"{covered} terms covered, {agreed} agree; {len(missing)} holders only in the outside table: {missing}")
    assert covered >= 120
    assert differ == []
