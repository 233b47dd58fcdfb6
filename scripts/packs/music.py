"""The `music` pack: musicians, instruments, keys and intervals, national anthems and terms of music."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import factbook
from .calendars import births
from .compiled import Described
from .countries import COUNTRY_LABELS
from .glosses import Glosses, chosen_terms
from .people_facts import PEOPLE, add_people
from .sourced import SourcedPack
from .writing import fold

PREDICATES = {
    "instrument-family": Described("is a", "instrument", "family", functional=True),
    "anthem-of": Described("is the national anthem of", "anthem", "country", functional=True, note="As of 2015."),
    "relative-minor": Described("has the relative minor", "key", "key", functional=True),
    "key-signature": Described("has the key signature", "key", "signature", functional=True),
    "dominant-note": Described("has the dominant", "key", "note", functional=True),
    "leading-note": Described("has the leading note", "key", "note", functional=True, note="Major keys."),
    "interval-size": Described("spans", "interval", "size", functional=True),
    "chord-third": Described("has the third", "chord", "note", functional=True),
    "chord-fifth": Described("has the fifth", "chord", "note", functional=True),
    "music-term": Described("means", "term", "definition", functional=True, note="Definitions are glosses."),
    **PEOPLE,
}
_FAMILIES = {
    "bowed_stringed_instrument": "string instrument",
    "chordophone": "string instrument",
    "guitar": "string instrument",
    "harp": "string instrument",
    "lute": "string instrument",
    "stringed_instrument": "string instrument",
    "woodwind": "woodwind instrument",
    "brass": "brass instrument",
    "percussion_instrument": "percussion instrument",
    "keyboard_instrument": "keyboard instrument",
    "free-reed_instrument": "free-reed instrument",
}
_FAMILY_ALIASES = {"string instrument": ("stringed instrument",), "woodwind instrument": ("woodwind",)}
# Makers' names, metals, kinds of one instrument, and instruments of two families.
_NO_INSTRUMENT = frozenset(
    (
        *("Amati", "Guarnerius", "Stradavarius", "baby_grand", "concert_grand", "grand_piano"),
        *("mechanical_piano", "piano", "upright", "spinet", "clavier", "bowed_stringed_instrument"),
        *("chordophone", "beating-reed_instrument", "trigon", "double-reed_instrument"),
        *("single-reed_instrument", "free-reed", "free-reed_instrument", "bass_horn", "kettle", "latten"),
        *("ormolu", "gilding_metal", "alpha-beta_brass", "bearing_brass", "manganese_bronze", "bones", "chime"),
        *("clavichord", "harpsichord", "virginal", "piano_accordion", "button_accordion", "accordion"),
        *("American_organ", "bombardon", "tenoroon", "musette_pipe", "clarion", "sackbut", "serpent", "zill"),
        *("timbrel", "tambour", "drum", "celesta", "electric_organ", "pipe_organ", "organ", "synthesizer"),
        *("viola_da_braccio", "viola_d'amore", "lyre", "aeolian_harp", "hornpipe", "B-flat_clarinet"),
        *("lagerphone", "rain_stick", "tabor", "mandola", "baritone", "Chemnitzer_concertina"),
        *("English_concertina", "Anglo-German_concertina", "guitar", "Hawaiian_guitar", "bass", "alpha_brass"),
        *("cartridge_brass", "high_brass", "low_brass", "naval_brass", "red_brass", "psaltery", "heckelphone"),
    )
)
_INSTRUMENT_NAMES = {
    "sax": "saxophone",
    "uke": "ukulele",
    "bass_fiddle": "double bass",
    "samisen": "shamisen",
    "snare_drum": "snare drum",
}
_SIGNS = {"b": "-flat", "#": "-sharp"}
_INTERVALS = {
    "2m": "minor second", "2M": "major second", "3m": "minor third", "3M": "major third", "4P": "perfect fourth",
    "4A": "augmented fourth", "5P": "perfect fifth", "6m": "minor sixth", "6M": "major sixth", "7m": "minor seventh",
    "7M": "major seventh", "8P": "perfect octave", "9m": "minor ninth", "9M": "major ninth", "10m": "minor tenth",
    "10M": "major tenth",
}  # fmt: skip
_CHORDS = {"maj": "major chord", "m": "minor chord"}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")


def build(glosses: Glosses, factbook_folder: Path, calendar: Path, theory: Path, used: set[str]) -> SourcedPack:
    pack = SourcedPack(
        name="music",
        title="Music",
        description="Musicians with their years and nationalities, families of instruments, keys, intervals and "
        "chords, national anthems and terms of music.",
        domain="music",
        predicates=PREDICATES,
        sources=("wordnet", "calendar", "factbook", "tonal"),
    )
    _add_musicians(pack, glosses, dict(births(calendar)), used)
    _add_instruments(pack, glosses)
    for code, name, english in factbook.anthems(factbook.profiles(factbook_folder)):
        if code not in _NO_ANTHEM:
            anthem = pack.entity("anthem", name.replace('"', "'"), [english] if english else [])
            country = pack.pack.name(f"country:{code}", COUNTRY_LABELS[code])
            pack.link(anthem, "anthem-of", country, "factbook")
    _add_theory(pack, json.loads(theory.read_text(encoding="utf-8")))
    pack.define("music-term", chosen_terms(glosses, "music"), "wordnet")
    return pack


def _add_musicians(pack: SourcedPack, glosses: Glosses, years: dict[str, int], used: set[str]) -> None:
    by_initials = {_initials(name): year for name, year in years.items()}
    composers = glosses.people("composer", "conductor", "organist", "violinist")
    singers = [person for person in glosses.people("musician") if person not in composers]
    everyone = [*composers, *singers]
    doubted = {
        person.label for person in everyone if by_initials.get(_initials(person.label), person.born) != person.born
    }
    # Most of the other musicians are American, so that their nationality is no question.
    add_people(pack, composers, used, doubted=doubted)
    add_people(pack, singers, used, nationality=False, doubted=doubted)
    known = {_initials(person.label) for person in everyone}
    born = {(_initials(person.label)[0], person.born) for person in everyone}
    for name, year in sorted(years.items()):
        if name not in used and _initials(name) not in known and (_initials(name)[0], year) not in born:
            used.add(name)
            pack.measure(pack.entity("person", name, _plain(name)), "birth-year", year, "calendar")


def _initials(name: str) -> tuple[str, str]:
    """Last name and first letters, by which a person is known in spite of other spellings."""
    return fold(name).lower().split()[-1], fold(name).lower()[:2]


# Anthems that several countries share under other names, or whose entry is no name.
_NO_ANTHEM = frozenset(("IQ", "LY", "GB", "BO", "AF", "SL", "TO", "YE", "KR", "KP", "NP", "TZ", "AD"))


def _plain(name: str) -> list[str]:
    return [fold(name)] if fold(name) != name else []


def _add_instruments(pack: SourcedPack, glosses: Glosses) -> None:
    found: dict[str, set[str]] = {}
    names = {}
    for kind, family in _FAMILIES.items():
        for synset in glosses.descendants(kind):
            found.setdefault(synset.offset, set()).add(family)
            names[synset.offset] = synset
    for offset, families in sorted(found.items()):
        synset = names[offset]
        lemma = synset.lemmas[0]
        if lemma in _NO_INSTRUMENT or len(families) != 1 or synset.lexfile != _ARTIFACT:
            continue
        label = _INSTRUMENT_NAMES.get(lemma, lemma.replace("_", " "))
        aliases = [name for other in synset.lemmas if (name := other.replace("_", " ")) != label]
        family = families.pop()
        instrument = pack.entity("instrument", label, aliases)
        target = pack.entity("family", family, _FAMILY_ALIASES.get(family, ()))
        pack.link(instrument, "instrument-family", target, "wordnet")


_ARTIFACT = 6


def _note(name: str) -> str:
    return re.sub(r"(?<=^[A-G])[b#]", lambda sign: _SIGNS[sign[0]], name)


def _add_theory(pack: SourcedPack, theory: dict[str, Any]) -> None:
    for tonic, minor, alteration, scale in theory["major"]:
        major = _key(pack, tonic, "major")
        pack.link(major, "relative-minor", _key(pack, minor, "minor"), "tonal")
        _add_key(pack, major, alteration, scale)
        pack.link(major, "leading-note", _written(pack, scale[6]), "tonal")
    for tonic, alteration, scale in theory["minor"]:
        _add_key(pack, _key(pack, tonic, "minor"), alteration, scale)
    for short, semitones in theory["intervals"]:
        if semitones % 12 == 6:
            continue  # The augmented fourth is as wide as the diminished fifth.
        words = f"{semitones} semitone{'s' if semitones > 1 else ''}"
        pack.link(pack.entity("interval", _INTERVALS[short]), "interval-size", pack.entity("size", words), "tonal")
    for root, kind, notes in theory["chords"]:
        if kind in _CHORDS:
            chord = pack.entity("chord", f"{_note(root)} {_CHORDS[kind]}")
            pack.link(chord, "chord-third", _written(pack, notes[1]), "tonal")
            pack.link(chord, "chord-fifth", _written(pack, notes[2]), "tonal")


def _key(pack: SourcedPack, tonic: str, mode: str) -> str:
    return pack.entity("key", f"{_note(tonic)} {mode}")


def _written(pack: SourcedPack, note: str) -> str:
    sign = {"b": "♭", "#": "♯"}.get(note[1:], "")
    return pack.entity("note", _note(note), [f"{note[0]}{sign}", note] if sign else [])


def _add_key(pack: SourcedPack, key: str, alteration: int, scale: list[str]) -> None:
    sign = "flat" if alteration < 0 else "sharp"
    count = abs(alteration)
    words = f"{_NUMBERS[count]} {sign}{'' if count == 1 else 's'}" if count else "no sharps or flats"
    pack.link(key, "key-signature", pack.entity("signature", words), "tonal")
    pack.link(key, "dominant-note", _written(pack, scale[4]), "tonal")
