"""The `law` pack: parliaments, constitutions, circuits, jurists and terms of the law."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import factbook
from .compiled import Described
from .countries import COUNTRY_LABELS
from .glosses import Glosses, chosen_terms
from .people_facts import PEOPLE, add_people
from .sourced import SourcedPack
from .writing import fold, read_table

PREDICATES = {
    "parliament": Described("has the parliament", "country", "parliament", functional=True, note="Own names only."),
    "chamber-of": Described("is a chamber of the parliament of", "chamber", "country", functional=True),
    "constitution-year": Described(
        "had a constitution adopted in the year",
        "country",
        unit="year",
        functional=True,
        note="The constitution in force in 2015.",
    ),
    "federal-circuit": Described(
        "belongs to the federal judicial circuit called", "state", "circuit", functional=True, note="States of the US."
    ),
    "legal-system": Described(
        "has a legal system of", "country", "system", functional=True, note="Systems of one kind only, not mixed ones."
    ),
    "law-term": Described("means", "term", "definition", functional=True, note="Definitions are glosses."),
    "birth-year": PEOPLE["birth-year"],
}
# Constitutions whose year is disputed, or that the Factbook dates by another act than the adoption.
_NO_YEAR = frozenset(
    (
        *("AU", "BO", "CG", "CM", "DK", "DZ", "GN", "KP", "KR", "LU", "MX"),
        *("NP", "NR", "PA", "RW", "SE", "SG", "SM", "ST", "TM", "TO", "VU", "WS"),
    )
)
_NO_PARLIAMENT = frozenset(
    (
        *("Bundesversammlung", "Bundesversammlung - in German", "Majlis", "Congreso", "Congreso Nacional"),
        *("Parlamento", "Chambre des Deputes", "Parlimen", "Congreso de la Republica del Peru"),
        *("Antenimierampirenena", "Fono", "Assemblee Nationale Populaire", "Asemblea Nacional", "Kongreso"),
        *("Barlamane", "Landtag", "Majlis al-'Umma", "Majlis al-Umma", "Nationale Assemblee"),
        *("Asamblea General", "Conseil National", "Sakartvelos Parlamenti", "Pyidaungsu"),
        *("Congreso de la Republica", "Congresso Nacional", "Assembleia Nacional Popular", "Fale I Fono"),
        *("Sambidhan Sabha", "Jogorku Kengesh", "Golaha Shacabka Soomaaliya", "Hrvatski Sabor", "Majlis Oman"),
    )
)
_NO_CHAMBER = frozenset(
    (
        "Nationalrat",
        *("Majlis al Nuwab", "Majlis al Shura", "Majlis al-Shura", "Majlis Alshoora", "Majlis al Nuwaab"),
        *("Senado Federal", "Chambre des Deputes", "Chambre des Communes", "Majlis Weleyat", "Majlis Watani"),
        *("Nitijela", "Al Jamiya Al Wataniya", "Majlis al-Shuyukh", "Majlis al-Dawla"),
        *("Camara de Representantes del Pueblo",),
    )
)
_CIRCUITS = (
    "",
    "First",
    "Second",
    "Third",
    "Fourth",
    "Fifth",
    "Sixth",
    "Seventh",
    "Eighth",
    "Ninth",
    "Tenth",
    "Eleventh",
)
_STATES = """
    al:Alabama ak:Alaska az:Arizona ar:Arkansas ca:California co:Colorado ct:Connecticut de:Delaware fl:Florida
    ga:Georgia hi:Hawaii id:Idaho il:Illinois in:Indiana ia:Iowa ks:Kansas ky:Kentucky la:Louisiana me:Maine
    md:Maryland ma:Massachusetts mi:Michigan mn:Minnesota ms:Mississippi mo:Missouri mt:Montana ne:Nebraska nv:Nevada
    nh:New_Hampshire nj:New_Jersey nm:New_Mexico ny:New_York nc:North_Carolina nd:North_Dakota oh:Ohio ok:Oklahoma
    or:Oregon pa:Pennsylvania ri:Rhode_Island sc:South_Carolina sd:South_Dakota tn:Tennessee tx:Texas ut:Utah
    vt:Vermont va:Virginia wa:Washington wv:West_Virginia wi:Wisconsin wy:Wyoming
"""
STATES = {code: name.replace("_", " ") for code, name in (pair.split(":") for pair in _STATES.split())}


def build(glosses: Glosses, factbook_folder: Path, reporters: Path, used: set[str]) -> SourcedPack:
    pack = SourcedPack(
        name="law",
        title="Law",
        description="Parliaments and their chambers, years of constitutions, judicial circuits of the United States, "
        "jurists and terms of the law.",
        domain="law",
        predicates=PREDICATES,
        sources=("factbook", "reporters", "wordnet"),
    )
    profiles = factbook.profiles(factbook_folder)
    _add_parliaments(pack, profiles)
    for code, year in factbook.constitutions(profiles):
        if code not in _NO_YEAR:
            pack.measure(_country(pack, code), "constitution-year", year, "factbook")
    for code, system in factbook.legal_systems(profiles):
        pack.link(_country(pack, code), "legal-system", pack.entity("system", system), "factbook")
    _add_circuits(pack, reporters)
    pack.define("law-term", chosen_terms(glosses, "law"), "wordnet")
    # Nearly all are American, so that their nationality is no question.
    add_people(pack, glosses.people("lawyer", "jurist", "judge", "chief_justice"), used, nationality=False)
    return pack


def _country(pack: SourcedPack, code: str) -> str:
    return pack.pack.name(f"country:{code}", COUNTRY_LABELS[code])


def _add_parliaments(pack: SourcedPack, profiles: dict[str, factbook.Profile]) -> None:
    names = {code: name for code, name in factbook.parliaments(profiles) if name not in _NO_PARLIAMENT}
    # Usual spellings of names that the Factbook gives.
    for row in read_table("parliaments.csv"):
        if fold(row["parliament"]).lower() in fold(factbook.legislature(profiles[row["country"]])).lower():
            names[row["country"]] = row["parliament"]
    for code, name in sorted(names.items()):
        label = re.sub(r"^Las ", "", name)
        pack.link(_country(pack, code), "parliament", pack.entity("parliament", label), "factbook")
    for code, name in factbook.chambers(profiles):
        if name not in _NO_CHAMBER:
            pack.link(pack.entity("chamber", name), "chamber-of", _country(pack, code), "factbook")


def _add_circuits(pack: SourcedPack, reporters: Path) -> None:
    series = json.loads(reporters.read_text(encoding="utf-8"))["F. Supp."]
    codes = " ".join(code for entry in series for code in entry["mlz_jurisdiction"])
    for circuit, state in sorted(set(re.findall(r"us:c(\d+):([a-z]{2})\b", codes))):
        if state in STATES:
            name = f"{_CIRCUITS[int(circuit)]} Circuit"
            target = pack.entity("circuit", name)
            pack.link(pack.entity("state", STATES[state]), "federal-circuit", target, "reporters")
