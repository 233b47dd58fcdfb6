"""The World Factbook: what its profiles say of parliaments, constitutions, armed forces and anthems."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .countries import COUNTRY_LABELS

# Names that the Factbook writes differently; the codes are those of the countries pack.
_OTHER_NAMES = {
    "Burma": "MM",
    "Cabo Verde": "CV",
    "Congo (Brazzaville)": "CG",
    "DRC": "CD",
    "Cote d'Ivoire": "CI",
    "Czech Republic": "CZ",
    "Macedonia": "MK",
    "Swaziland": "SZ",
    "The Bahamas": "BS",
    "The Gambia": "GM",
    "Holy See (Vatican City)": "VA",
    "Korea, North": "KP",
    "Korea, South": "KR",
    "North Korea": "KP",
    "South Korea": "KR",
    "Timor-Leste": "TL",
    "Turkey": "TR",
    "Sao Tome and Principe": "ST",
}


Profile = Mapping[str, Any]


def profiles(folder: Path) -> dict[str, Profile]:
    """Profiles of the countries of the countries pack, by code."""
    codes = {label: code for code, label in COUNTRY_LABELS.items()} | _OTHER_NAMES
    found: dict[str, Profile] = {}
    for path in sorted(folder.glob("*/*.json")):
        profile = json.loads(path.read_text(encoding="utf-8"))
        name = _text(profile, "Government", "Country name", "conventional short form")
        if name in codes:
            found[codes[name]] = profile
    return found


def _text(profile: Profile, *keys: str) -> str:
    value: Any = profile
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("text")
    return " ".join(str(value or "").split())


def constitutions(found: Mapping[str, Profile]) -> Iterator[tuple[str, int]]:
    """Years in which the constitution in force was adopted, where one year is named."""
    for code, profile in found.items():
        text = _text(profile, "Government", "Constitution")
        latest = text.split("latest", 1)[1] if "latest" in text else text
        clause = re.split(r"; (?:amended|note|revised|suspended)|amended|\(20\d\d\)$|;", latest)[0]
        years = set(re.findall(r"\b(1[789]\d\d|20\d\d)\b", clause))
        if len(years) == 1 and not re.search(r"unwritten|interim|draft|not fully|suspend", text[:200]):
            yield code, int(years.pop())


def legal_systems(found: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """Legal systems of one kind: civil law or common law."""
    for code, profile in found.items():
        text = _text(profile, "Government", "Legal system").lower()
        is_other = re.search(
            r"mixed|islamic|sharia|customary|religious|tribal|hindu|buddhist|influence|both|communist", text
        )
        is_civil, is_common = bool(re.search(r"\bcivil (?:law|legal)", text)), "common law" in text
        if not is_other and is_civil != is_common:
            yield code, "civil law" if is_civil else "common law"


def legislature(profile: Profile) -> str:
    """What the profile says of the legislative branch."""
    return _text(profile, "Government", "Legislative branch", "description")


def parliaments(found: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """Names of parliaments in the language of the country."""
    named = []
    for code, profile in found.items():
        text = legislature(profile)
        match = re.match(r"(?:the )?(?:uni|bi)cameral ([^;(]*?)(?: consists|,| \(|;)", text)
        own = _own_name(match[1]) if match else ""
        if own:
            named.append((code, own))
    yield from _unshared(named)


def chambers(found: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """Names of chambers of parliaments in the language of the country."""
    named = []
    for code, profile in found.items():
        text = legislature(profile)
        if not re.match(r"(?:the )?bicameral", text) or " consists of " not in text:
            continue
        for phrase in re.findall(r"the ([A-Z][^;()]*?) \((?:as of|[\d,-]+ seats|[\d,-]+ )", text):
            own = _own_name(phrase)
            if own:
                named.append((code, own))
    yield from _unshared(named)


def _own_name(phrase: str) -> str:
    names = [part.strip() for part in re.split(r" or | also ", phrase)]
    own = names[-1]
    plain = len(names) == 2 and re.fullmatch(r"[A-Z][A-Za-z' -]{3,40}", own)
    return own if plain and not re.search(r"\b(?:and|the|formerly|of)\b|Parliament|Assembly|Council", own) else ""


def forces(found: Mapping[str, Profile]) -> Iterator[tuple[str, str]]:
    """Names of branches of armed forces in the language of the country."""
    named = []
    for code, profile in found.items():
        text = _text(profile, "Military", "Military branches") or _text(
            profile, "Military and Security", "Military branches"
        )
        for phrase in re.findall(r"\(([^()]*)\)", text):
            own = re.split(r"[,;]", phrase)[0].strip()
            stem = COUNTRY_LABELS[code][:4].lower()
            is_english = re.search(
                r"\b(?:includes?|and|the|of|also|Air|Army|Navy|Force|Forces|Guard|Command|National|Corps|Defense)\b|\d",
                own,
            )
            if re.fullmatch(r"[A-Z][A-Za-z' -]{6,45}", own) and not is_english and stem not in own.lower():
                named.append((code, own))
    yield from _unshared(named)


def anthems(found: Mapping[str, Profile]) -> Iterator[tuple[str, str, str]]:
    """Names of national anthems that do not give the country away, with their English names."""
    named = []
    for code, profile in found.items():
        text = _text(profile, "Government", "National anthem", "name")
        match = re.match(r'"([^"]+)"(?: \(([^)]*)\))?', text)
        if not match:
            continue
        name, english = match[1].strip(" ,"), (match[2] or "").strip()
        whole = f"{name} {english}".lower()
        stem = COUNTRY_LABELS[code][:4].lower()
        if re.search(r"national anthem|himno|hymn|anthem", whole) or stem in whole or len(name) > 45:
            continue
        named.append((code, name, english))
    counts = Counter(name for _, name, _ in named) + Counter(english for _, _, english in named if english)
    yield from (
        (code, name, english if counts[english] == 1 else "") for code, name, english in named if counts[name] == 1
    )


def _unshared(named: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pairs whose name belongs to one country."""
    owners: dict[str, set[str]] = {}
    for code, name in named:
        owners.setdefault(name.lower(), set()).add(code)
    yield from dict.fromkeys((code, name) for code, name in named if len(owners[name.lower()]) == 1)
