"""The `names-zh` pack: Chinese names, from CLDR, of entities of the countries pack."""

from __future__ import annotations

from typing import Any

from babel import Locale
from babel.numbers import get_currency_name

from . import licences
from .writing import Pack

# Codes of the UN geoscheme under which CLDR names the continents.
CONTINENTS = {
    "africa": "002",
    "asia": "142",
    "europe": "150",
    "north-america": "003",
    "oceania": "009",
    "south-america": "005",
}

# The Zimbabwean gold of 2024 has no Chinese name in CLDR yet; this is the one in use.
CURRENCIES = {"ZWG": "津巴布韦金"}


def build(countries: Pack) -> Pack:
    pack = Pack(meta=_meta(), licence_text=licences.UNICODE_NOTICE)
    for entity, language in countries.names:
        label = _label(entity)
        if language == "en" and label:
            pack.name(entity, label, language="zh")
    return pack


def _label(entity: str) -> str:
    chinese = Locale("zh", script="Hans")
    kind, _, code = entity.partition(":")
    if kind == "country":
        return _bare(chinese.territories[code])
    if kind == "continent":
        return str(chinese.territories[CONTINENTS[code]])
    if kind == "currency":
        return CURRENCIES.get(code) or get_currency_name(code, locale=chinese)
    if kind == "language":
        return str(chinese.languages[code])
    return ""


def _bare(name: str) -> str:
    """A country's name without the bracketed remark that CLDR puts behind some."""
    return name.partition("（")[0].partition("(")[0].strip()


def _meta() -> dict[str, Any]:
    return {
        "name": "names-zh",
        "title": "Chinese names",
        "description": "Simplified Chinese names of the countries, continents, currencies and languages of the "
        "countries pack; it holds no facts of its own.",
        "domain": "geography",
        "licence": "Unicode-3.0",
        "sources": {
            "cldr": {
                "name": "Unicode CLDR, by way of Babel",
                "version": "Babel 2.18.0",
                "licence": "Unicode-3.0",
                "licence_file": "LICENSE.txt",
                "note": "Display names of the locale zh-Hans, without bracketed remarks.",
            },
        },
        "predicates": {},
    }
