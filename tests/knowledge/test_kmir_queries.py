"""The ready queries for KMIR's domains: each gives what a little Wikidata says of its domain, and all has words."""

# ruff: noqa: F401, F811
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from all_cases import check_all

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import ask, proxy, running, server, serving

import merkhet
from merkhet.knowledge.sparql_queries import bundled_queries, find_query
from merkhet.questions.schema import read_schema

SCHEMA = read_schema(Path(merkhet.__file__).parent / "suites/kmir/schema.yaml")

# A subject, what it is (a class by P31, an occupation by P106, a class above it by P279), a property and an object. A
# number has its unit behind it.
FACTS = {
    "physics": """
        newton | P31 Q47574 | P111 | force
        newton | P31 Q47574 | P138 | Isaac Newton
        force | P31 Q107715 | P8111 | newton
        law of gravitation | P31 Q408891 | P61 | Isaac Newton
        law of Ohm | P31 Q408891 | P138 | Georg Ohm
        Uranus | P31 Q634 | P397 | Sun
        Uranus | P31 Q634 | P61 | William Herschel
        Uranus | P31 Q634 | P2386 | 51118 Q828224
        Phobos | P31 Q2537 | P397 | Mars
        Phobos | P31 Q2537 | P138 | Phobos of myth
        iron | P31 Q11344 | P2101 | 1538 Q25267
        iron | P31 Q11344 | P2102 | 2862 Q25267
        iron | P31 Q11344 | P2054 | 7.87 Q13147228
    """,
    "chemistry": """
        polonium | P31 Q11344 | P61 | Marie Curie
        polonium | P31 Q11344 | P138 | Poland
        polonium | P31 Q11344 | P1086 | 84 Q199
        water | P31 Q11173 | P527 | oxygen
        water | P31 Q11173 | P366 | washing
        aspirin | P31 Q11173 | P61 | Felix Hoffmann
    """,
    "biology": """
        lion | P31 Q16521 | P171 | Panthera
        lion | P31 Q16521 | P105 | species
        lion | P31 Q16521 | P141 | Vulnerable
        lion | P31 Q16521 | P2974 | savanna
        giant panda | P31 Q16521 | P1034 | bamboo
        giant panda | P31 Q16521 | P183 | China
        retina | P31 Q4936952 | P361 | eye
        retina | P31 Q4936952 | P927 | head
    """,
    "medicine": """
        influenza | P31 Q12136 | P780 | fever
        influenza | P31 Q12136 | P828 | influenza virus
        influenza | P31 Q12136 | P2176 | oseltamivir
        influenza | P31 Q12136 | P1995 | infectious diseases
        influenza | P31 Q12136 | P1060 | airborne transmission
        appendicitis | P31 Q12136 | P924 | appendectomy
        appendicitis | P31 Q12136 | P927 | appendix
        ibuprofen | P31 Q12140 | P2175 | pain
    """,
    "history": """
        Crimean War | P31 Q198 | P276 | Crimea
        Crimean War | P31 Q198 | P710 | France
        Battle of Waterloo | P31 Q178561 | P361 | Napoleonic Wars
        Treaty of Ghent | P31 Q131569 | P276 | Ghent
        Mongol Empire | P31 Q3024240 | P112 | Genghis Khan
        Abraham Lincoln | P106 Q82955 | P39 | President of the United States | 1861-03-04 | 1865-04-15
        Abraham Lincoln | P106 Q82955 | P22 | Thomas Lincoln
        Abraham Lincoln | P106 Q82955 | P25 | Nancy Lincoln
        Abraham Lincoln | P106 Q82955 | P26 | Mary Todd Lincoln
        Abraham Lincoln | P106 Q82955 | P40 | Robert Todd Lincoln
        Abraham Lincoln | P106 Q82955 | P19 | Hodgenville
        Abraham Lincoln | P106 Q82955 | P20 | Washington
        Abraham Lincoln | P106 Q82955 | P27 | United States
        Woodrow Wilson | P106 Q82955 | P69 | Princeton University
    """,
    "law": """
        Civil Rights Act | P31 Q820655 | P467 | United States Congress
        Basic Law | P31 Q7755 | P1001 | Germany
        Brown v. Board of Education | P31 Q2334719 | P4884 | Supreme Court of the United States
        Brown v. Board of Education | P31 Q2334719 | P1594 | Earl Warren
        Treaty of Rome | P31 Q131569 | P1891 | Italy
        Norway | P31 Q3624078 | P194 | Storting
        Norway | P31 Q3624078 | P209 | Supreme Court of Norway
    """,
    "military": """
        Battle of Midway | P31 Q178561 | P276 | Pacific Ocean
        Battle of Midway | P31 Q178561 | P361 | Pacific War
        Battle of Midway | P31 Q178561 | P710 | Japan
        longbow | P31 Q728 | P495 | Wales
        T-34 | P31 Q12876 | P176 | Uralvagonzavod
        Spitfire | P31 Q11436 | P176 | Supermarine
        Horatio Nelson | P106 Q189290 | P241 | Royal Navy
        Horatio Nelson | P106 Q189290 | P410 | vice admiral
        Audie Murphy | P106 Q47064 | P607 | Second World War
    """,
    "music": """
        Abbey Road | P31 Q482994 | P175 | The Beatles
        Abbey Road | P31 Q482994 | P162 | George Martin
        Abbey Road | P31 Q482994 | P264 | Apple Records
        Yesterday | P31 Q7366 | P136 | pop
        Yesterday | P31 Q7366 | P676 | Paul McCartney
        The Magic Flute | P31 Q207628 | P86 | Mozart
        The Beatles | P31 Q215380 | P740 | Liverpool
        Ringo Starr | P106 Q639669 | P1303 | drum kit
        Ringo Starr | P106 Q639669 | P463 | The Beatles
        Maria Callas | P106 Q177220 | P19 | New York
        Clara Schumann | P106 Q36834 | P1303 | piano
        Clara Schumann | P106 Q36834 | P106 | pianist
    """,
    "film-tv": """
        Vertigo | P31 Q11424 | P57 | Alfred Hitchcock
        Vertigo | P31 Q11424 | P58 | Alec Coppel
        Vertigo | P31 Q11424 | P161 | Kim Novak
        Vertigo | P31 Q11424 | P86 | Bernard Herrmann
        Vertigo | P31 Q11424 | P364 | English
        Vertigo | P31 Q11424 | P495 | United States
        Jaws | P31 Q11424 | P162 | Richard Zanuck
        Jaws | P31 Q11424 | P272 | Universal Pictures
        Jaws | P31 Q11424 | P144 | a novel by Peter Benchley
        The Simpsons | P31 Q5398426 | P170 | Matt Groening
        The Simpsons | P31 Q5398426 | P449 | Fox
        The Simpsons | P31 Q5398426 | P136 | sitcom
        Kim Novak | P106 Q33999 | P27 | United States
        Alfred Hitchcock | P106 Q2526255 | P19 | London
        Kim Novak | P106 Q33999 | P106 | painter
    """,
    "commonsense": """
        hammer | P279 Q39546 | P366 | driving nails
        hammer | P279 Q39546 | P279 | hand tool
        chair | P279 Q14745 | P186 | wood
        sleeve | P279 Q11460 | P361 | shirt
        bicycle | P279 Q42889 | P527 | wheel
        drum | P279 Q34379 | P1542 | sound
        cup | P279 Q987767 | P366 | drinking
        sugar | P279 Q2095 | P1552 | sweetness
        bungalow | P279 Q41176 | P461 | tower block
    """,
    "geography": """
        Portugal | P31 Q3624078 | P36 | Lisbon
        Portugal | P31 Q3624078 | P30 | Europe
        Portugal | P31 Q3624078 | P38 | euro
        Portugal | P31 Q3624078 | P37 | Portuguese
        Portugal | P31 Q3624078 | P47 | Spain
        Portugal | P31 Q3624078 | P1082 | 10300000 Q199
        Portugal | P31 Q3624078 | P2046 | 92212 Q712226
        Porto | P31 Q515 | P17 | Portugal
        Porto | P31 Q515 | P131 | Norte Region
        Douro | P31 Q4022 | P403 | Atlantic Ocean
        Douro | P31 Q4022 | P2043 | 897 Q828224
        Aneto | P31 Q8502 | P4552 | Pyrenees
        Aneto | P31 Q8502 | P2044 | 3404 Q11573
    """,
}
PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> . @prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> . @prefix wikibase: <http://wikiba.se/ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def rows(domain: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in FACTS[domain].strip().splitlines()]


class LittleWikidata:
    """The facts in Wikidata's layout, and each again of a subject that few know and of one without an English name."""

    def __init__(self, domain: str) -> None:
        self.ids: dict[str, str] = {}
        self.lines: list[str] = [PREFIXES]
        for number, row in enumerate(rows(domain)):
            self._tell(row, number, 300, row[0])
            self._tell(row, number, 1, f"little known {row[0]}")
            self._tell(row, number, 300, f"nameless {row[0]}")

    def item(self, label: str) -> str:
        if label not in self.ids:
            self.ids[label] = f"wd:Q{9_000_000 + len(self.ids)}"
            language = "fr" if label.startswith("nameless") else "en"
            self.lines.append(f'{self.ids[label]} rdfs:label "{label}"@{language}, "{label}"@de .')
        return self.ids[label]

    def _tell(self, row: list[str], number: int, links: int, name: str) -> None:
        about, relation, said = row[1], row[2], row[3]
        subject, (how, kind) = self.item(name), about.split()
        if how == "P31":
            # Every other subject is an instance of a class below the one that is asked for.
            between = self.item(f"kind of {kind}")
            self.lines.append(f"{subject} wdt:P31 {between if number % 2 else f'wd:{kind}'} .")
            self.lines.append(f"{between} wdt:P279 wd:{kind} .")
        else:
            self.lines.append(f"{subject} wdt:{how} wd:{kind} .")
        self.lines.append(f"{subject} wikibase:sitelinks {links} .")
        statement = f"wd:statement-{self.ids[name][3:]}-{number}"
        amount = re.fullmatch(r"([\d.]+) (Q\d+)", said)
        if amount:
            quantity = f"[ wikibase:quantityAmount {amount[1]} ; wikibase:quantityUnit wd:{amount[2]} ]"
            self.lines.append(f"{subject} p:{relation} {statement} ; wdt:{relation} {amount[1]} .")
            self.lines.append(f"{statement} a wikibase:BestRank ; psv:{relation} {quantity} .")
            return
        self.lines.append(f"{subject} wdt:{relation} {self.item(said)} ; p:{relation} {statement} .")
        self.lines.append(f"{statement} ps:{relation} {self.item(said)} ; wikibase:rank wikibase:NormalRank .")
        for qualifier, date in zip(("P580", "P582"), row[4:], strict=False):
            value = f'[ wikibase:timeValue "{date}T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 ]'
            self.lines.append(f"{statement} pqv:{qualifier} {value} .")

    def turtle(self) -> bytes:
        return "\n".join(self.lines).encode()


def expected(domain: str) -> set[tuple[object, ...]]:
    """The facts of a domain in plain words: subject, property, object or number, unit, start and end."""
    told: set[tuple[object, ...]] = set()
    for name, _, relation, said, *times in rows(domain):
        amount = re.fullmatch(r"([\d.]+) (Q\d+)", said)
        if amount:
            unit = None if amount[2] == "Q199" else amount[2]
            told.add((name, relation, float(amount[1]), unit, None, None))
        else:
            told.add((name, relation, said, None, *(times or (None, None))))
    return told


def properties(text: str) -> set[str]:
    """The properties whose facts a query gives."""
    return {*re.findall(r'\(wd:Q\d+ "\w+" wdt:(P\d+)', text), *re.findall(r"^ +wdt:(P\d+) ", text, re.M)} | set(
        re.findall(r"BIND\(wdt:(P\d+) AS \?predicate\)", text)
    )


def test_there_is_a_query_for_every_domain_of_the_schema():
    assert {name.removeprefix("kmir-") for name in bundled_queries() if name.startswith("kmir-")} == set(SCHEMA.domains)
    assert set(FACTS) == set(SCHEMA.domains)


def test_a_query_gives_the_facts_of_its_domain(ask):
    def check(domain):
        little = LittleWikidata(domain)
        names = {identity.removeprefix("wd:"): label for label, identity in little.ids.items()}
        with serving(little.turtle()) as address:
            facts, named, _ = ask(f"kmir-{domain}", address, page=7)
        called = {one["entity"]: one["label"] for one in named}
        found = {
            (
                names[one["subject"]],
                one["predicate"],
                called.get(one["object"], one["object"]) if one["value"] is None else one["value"],
                one["unit"],
                one["start"],
                one["end"],
            )
            for one in facts
        }
        # Classes and occupations have no names here, so that what makes a subject one of the domain is no fact.
        assert found == expected(domain)
        assert {one["domain"] for one in facts} == {domain}
        assert {one["label"] for one in named if one["kind"]} >= {row[0] for row in rows(domain)}

    check_all(check, FACTS)


def test_every_property_is_tried_and_has_words():
    def check(domain):
        text = find_query(f"kmir-{domain}")[1]
        worded = {predicate for relation in SCHEMA.relations.values() for predicate in relation.predicates}
        assert properties(text) == {row[2] for row in rows(domain)}
        assert properties(text) <= worded
        asked = set(re.findall(r"wd:(Q\d+)", text.partition("FILTER(isIRI")[0]))
        assert asked == {row[1].split()[1] for row in rows(domain)}

    check_all(check, FACTS)


def test_kinds_of_objects_tell_countries_cities_and_people(ask):
    little = LittleWikidata("history")
    kinds = {"Hodgenville": "Q515", "United States": "Q3624078", "Thomas Lincoln": "Q5"}
    for label, kind in kinds.items():
        little.lines.append(f"{little.item(label)} wdt:P31 wd:{kind} .")
    with serving(little.turtle()) as address:
        named = ask("kmir-history", address)[1]
    assert {one["label"]: one["kind"] for one in named if one["label"] in kinds} == {
        "Hodgenville": "city",
        "United States": "country",
        "Thomas Lincoln": "person",
    }


def test_a_class_narrows_a_query(ask):
    with serving(LittleWikidata("film-tv").turtle()) as address:
        facts = ask("kmir-film-tv", address, **{"class": "Q5398426"})[0]
    assert {one["predicate"] for one in facts} == {"P170", "P449", "P136"}
