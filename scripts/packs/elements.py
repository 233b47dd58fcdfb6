"""The `elements` pack: the periodic table from mendeleev, its history from a hand-compiled table."""

from __future__ import annotations

import warnings
from typing import Any

import mendeleev

from . import licences
from .countries import COUNTRY_LABELS
from .writing import Pack, entity_id, read_table, split

DOMAIN = "chemistry"
SPELLING = {"Aluminum": "aluminium", "Cesium": "caesium"}  # IUPAC spelling; the American one becomes an alias
EXTRA_ALIASES = {"aluminium": ["aluminum"], "caesium": ["cesium"], "sulfur": ["sulphur"], "mercury": ["quicksilver"]}

SERIES = {
    "Nonmetals": "nonmetal",
    "Noble gases": "noble gas",
    "Alkali metals": "alkali metal",
    "Alkaline earth metals": "alkaline earth metal",
    "Metalloids": "metalloid",
    "Halogens": "halogen",
    "Poor metals": "post-transition metal",
    "Transition metals": "transition metal",
    "Lanthanides": "lanthanide",
    "Actinides": "actinide",
}
# mendeleev files these three under another series than most textbooks do.
SERIES_CORRECTIONS = {84: "post-transition metal", 71: "lanthanide", 103: "actinide"}
GROUP_NAMES = {11: "coinage metal", 15: "pnictogen", 16: "chalcogen"}
NONMETALS = {"noble gas", "halogen"}  # series that are nonmetals as a whole, astatine being unsettled
CATEGORY_ALIASES = {
    "nonmetal": ["non-metal"],
    "post-transition metal": ["poor metal"],
    "lanthanide": ["lanthanoid"],
    "actinide": ["actinoid"],
    "alkaline earth metal": ["alkaline earth"],
}

LAST_KNOWN_CHEMISTRY = 108  # heavier elements have been placed in a series by prediction only
LAST_BULK_SAMPLE = 99  # melting points and densities of heavier elements are estimates
GROUP_UNSETTLED = {57, 71, 89, 103}  # textbooks differ on which of these stand in group 3 and in the d-block
CATEGORY_UNSETTLED = {30, 48, 80, 84, 85}  # group 12, polonium and astatine: textbooks differ on their series
ESTIMATED = {85, 87}  # astatine and francium: never seen in bulk
NO_MELTING = {6, 33}  # carbon and arsenic sublime at ordinary pressure
STANDARD_WEIGHT_THOUGH_RADIOACTIVE = {90, 91, 92}
# Common forms whose transition temperatures mendeleev lists by allotrope or leaves out.
STATE_BY_HAND = {2: "gas", 6: "solid", 15: "solid", 16: "solid", 33: "solid", 34: "solid", 50: "solid"}
ROOM_TEMPERATURE = 298.15
STATE_KIND = "state"

PLACE_KINDS = {"place", "body", "figure", "substance", "person"}
LABEL_FIXES = {"place:the-americas": "Americas"}
PERSON_ALIASES = {
    "Lord Rayleigh": ["John William Strutt", "John Strutt"],
    "Humphry Davy": ["Sir Humphry Davy"],
    "Hans Christian Ørsted": ["Hans Christian Oersted"],
    "Jöns Jacob Berzelius": ["Jöns Berzelius"],
    "Glenn T. Seaborg": ["Glenn Seaborg"],
    "Ida Noddack": ["Ida Tacke"],
    "Wilhelm Röntgen": ["Wilhelm Conrad Röntgen", "Wilhelm Roentgen"],
    "Georgy Flyorov": ["Georgy Flerov"],
    "Dmitri Mendeleev": ["Dmitry Mendeleev"],
    "Nicolaus Copernicus": ["Copernicus"],
    "Emilio Segrè": ["Emilio Segre"],
    "Ernest Lawrence": ["Ernest O. Lawrence"],
}


def build() -> Pack:
    pack = Pack(meta=_meta(), licence_text=_licence())
    for number in range(1, 119):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # elements with several allotropes warn on every access
            _add_element(pack, mendeleev.element(number))
    for row in read_table("elements_history.csv"):
        _add_history(pack, row)
    return pack


def _add_element(pack: Pack, source: Any) -> None:
    number: int = source.atomic_number
    label = SPELLING.get(source.name, source.name.lower())
    subject = pack.name(entity_id("element", label), label, EXTRA_ALIASES.get(label, []))

    def link(predicate: str, kind: str, name: str, aliases: list[str] | None = None, slug: str = "") -> None:
        target = f"{kind}:{slug}" if slug else entity_id(kind, name)
        pack.link(subject, predicate, pack.name(target, name, aliases or []), domain=DOMAIN, source="mendeleev")

    def measure(predicate: str, value: float, unit: str) -> None:
        pack.measure(subject, predicate, value, unit, domain=DOMAIN, source="mendeleev")

    link("symbol", "symbol", source.symbol, slug=source.symbol)
    if number not in GROUP_UNSETTLED:
        link("block", "block", f"{source.block}-block")
    measure("atomic-number", number, "1")
    measure("period", source.period, "1")
    if source.group_id and number not in GROUP_UNSETTLED:
        measure("group", source.group_id, "1")
    if number <= LAST_KNOWN_CHEMISTRY and number not in CATEGORY_UNSETTLED:
        series = SERIES_CORRECTIONS.get(number, SERIES[source.series])
        families = {series, GROUP_NAMES.get(source.group_id, series)}
        if series in NONMETALS and number not in ESTIMATED:
            families.add("nonmetal")
        for category in families:
            link("category", "category", category, CATEGORY_ALIASES.get(category))
    if not source.is_radioactive or number in STANDARD_WEIGHT_THOUGH_RADIOACTIVE:
        measure("atomic-weight", round(source.atomic_weight, 3), "u")
    if number <= LAST_BULK_SAMPLE and number not in ESTIMATED:
        _add_bulk(number, source, measure, link)


def _add_bulk(number: int, source: Any, measure: Any, link: Any) -> None:
    """Melting point, boiling point, density and state: only for elements that exist in weighable amounts."""
    melting, boiling = source.melting_point, source.boiling_point
    if number not in NO_MELTING:
        if melting:
            measure("melting-point", round(melting, 1 if melting < 400 else 0), "K")
        if boiling:
            measure("boiling-point", round(boiling, 1 if boiling < 400 else 0), "K")
    state = STATE_BY_HAND.get(number)
    if state is None:
        gas = boiling is not None and boiling < ROOM_TEMPERATURE
        state = "gas" if gas else "liquid" if melting < ROOM_TEMPERATURE else "solid"
    link("state", STATE_KIND, state)
    if source.density and state != "gas":
        measure("density", float(f"{source.density:.3g}"), "g/cm3")


def _add_history(pack: Pack, row: dict[str, str]) -> None:
    subject = entity_id("element", row["element"])
    if (subject, "en") not in pack.names:
        raise ValueError(f"unknown element in elements_history.csv: {row['element']}")
    for person in split(row["discoverers"]):
        target = pack.name(entity_id("person", person), person, PERSON_ALIASES.get(person, []))
        pack.link(subject, "discovered-by", target, domain=DOMAIN, source="record")
    if row["year"]:
        pack.measure(subject, "discovery-year", int(row["year"]), "year", domain=DOMAIN, source="record")
    for code in split(row["countries"]):
        target = pack.name(f"country:{code}", COUNTRY_LABELS[code])
        pack.link(subject, "discovered-in", target, domain=DOMAIN, source="record")
    for reference in split(row["named_after"]):
        pack.link(subject, "named-after", _eponym(pack, reference), domain=DOMAIN, source="record")


def _eponym(pack: Pack, reference: str) -> str:
    kind, _, label = reference.partition(":")
    if kind == "country":
        return pack.name(reference, COUNTRY_LABELS[label])
    if kind == "continent":
        return pack.name(reference, label.capitalize())
    if kind not in PLACE_KINDS:
        raise ValueError(f"unknown kind of eponym: {reference}")
    target = entity_id(kind, label)
    return pack.name(target, LABEL_FIXES.get(target, label), PERSON_ALIASES.get(label, []))


def _predicate(label: str, object_kind: str, note: str = "", functional: bool = True) -> dict[str, Any]:
    return {
        "label": label,
        "subject_kind": "element",
        "object_kind": object_kind,
        "functional": functional,
        "symmetric": False,
        "complete": "both",
        "note": note,
    }


def _meta() -> dict[str, Any]:
    return {
        "name": "elements",
        "title": "Chemical elements",
        "description": "The chemical elements: symbols, places in the periodic table, physical properties, "
        "discoverers and namesakes.",
        "domain": DOMAIN,
        "licence": "MIT AND CC0-1.0",
        "sources": {
            "mendeleev": {
                "name": "mendeleev, the Python package by Lukasz Mentel",
                "version": "1.3.0",
                "licence": "MIT",
                "licence_file": "LICENSE.txt",
                "note": "Periodic table and physical properties. Predicted values are left out.",
            },
            "record": {
                "name": "public record, compiled for merkhet",
                "version": "1",
                "licence": "CC0-1.0",
                "licence_file": "LICENSE.txt",
                "note": "Discoverers, years, countries and namesakes; left empty where accounts differ.",
            },
        },
        "predicates": {
            "symbol": _predicate("has the chemical symbol", "symbol"),
            "atomic-number": _predicate("has the atomic number", "number"),
            "period": _predicate("stands in period", "number"),
            "group": _predicate("stands in group", "number", "Groups 1 to 18; none where it is disputed."),
            "block": _predicate("belongs to the block", "block", "None where textbooks differ."),
            "category": _predicate(
                "is a", "category", "Series and established group names; none where textbooks differ.", False
            ),
            "atomic-weight": _predicate("has the standard atomic weight", "number"),
            "melting-point": _predicate("melts at", "number", "Kelvin, at ordinary pressure."),
            "boiling-point": _predicate("boils at", "number", "Kelvin, at ordinary pressure."),
            "density": _predicate("has the density", "number", "Near room temperature; solids and liquids only."),
            "state": _predicate("is at room temperature a", "state"),
            "discovered-by": _predicate("was discovered by", "person", "Discoverers usually credited.", False),
            "discovery-year": _predicate("was discovered in the year", "number"),
            "discovered-in": _predicate("was discovered in", "country", "Present-day country of the place.", False),
            "named-after": _predicate(
                "is named after", "person, place, country, continent, body, figure, substance", "", False
            ),
        },
    }


def _licence() -> str:
    return licences.joined(
        licences.mit('Source "mendeleev": the Python package mendeleev.', "Copyright (c) 2015 Lukasz Mentel"),
        licences.PUBLIC_RECORD_NOTICE,
    )
