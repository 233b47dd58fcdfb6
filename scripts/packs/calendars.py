"""Births of musicians in the calendar of the BSD systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# Names as the file writes them, and usual ones; "" leaves out who is no musician, or whose year is doubtful.
_NAMES = {
    "Steven Stills": "Stephen Stills",
    "James Patrick Page": "Jimmy Page",
    "John Towner Williams": "John Williams",
    "Charlie Mingus": "Charles Mingus",
    "Eduardo Lalo": "Édouard Lalo",
    "Wilhelm Furtwangler": "Wilhelm Furtwängler",
    "Witold Lutoslawski": "Witold Lutosławski",
    "Reinhold Gliere": "Reinhold Glière",
    "Maurice Durufle": "Maurice Duruflé",
    "Cesar Cui": "César Cui",
    "Felix Mendelssohn Bartholdy": "Felix Mendelssohn",
    "Francis Jean Poulenc": "Francis Poulenc",
    "William Robinson": "Smokey Robinson",
    "Sir Malcolm Arnold": "Malcolm Arnold",
    "Franz von Suppe": "Franz von Suppé",
    "Jean Francaix": "Jean Françaix",
    "Gabriel Faure": "Gabriel Fauré",
    "Isaac Albeniz": "Isaac Albéniz",
    "Leos Janacek": "Leoš Janáček",
    "Zoltan Kodaly": "Zoltán Kodály",
    "Oliver Messiaen": "Olivier Messiaen",
    "Edward William Elgar": "Edward Elgar",
    "Erich Korngold": "Erich Wolfgang Korngold",
    "William Howard Schuman": "William Schuman",
    "JJ Cale": "J. J. Cale",
    "Bobby Bland": "Bobby Bland",
    "Ferde Grofe": "Ferde Grofé",
    "Ron McKernan": "",
    "Carol Burnett": "",
    "Aretha Franklin": "",
    "Muddy Waters": "",
    "Hildegard von Bingen": "",
    "Yoko Ono Lennon": "",
    "Edward Kennedy Ellington": "",
    "Maurice Greene": "",
    "Country Joe McDonald": "",
    "Richard Rogers": "",
    "Jean-Joseph Mouret": "",
    "Thomas Tallis": "",
    "Francois Charpentier": "",
    "Giovanni Pierluigi da Palestrina": "",
    "Michael Praetorius": "",
}


def births(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the year of each birth that the file dates."""
    text = path.read_text(encoding="utf-8").replace("\n\t", " ")
    for line in text.splitlines():
        match = re.match(r"\d\d/\d\d\*?\t(.+?),? (?:is |was )?born\b.*?(\d{4})$", line)
        if match is None or "?" in line or "circa" in line or "uncertain" in line:
            continue
        name = re.sub(r"\([^)]*\)|\"[^\"]*\"", " ", match[1])
        name = " ".join(name.split()).strip(" ,")
        usual = _NAMES.get(name, name)
        if re.fullmatch(r"[A-Z][^\s]*(?: (?:[A-Z][^\s]*|de|da|di|von|van|der|la|del|d'[A-Z]\w+))+", usual):
            yield usual, int(match[2])
