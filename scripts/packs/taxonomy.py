"""The `taxonomy` pack: is-a and part-of facts about everyday things, from WordNet.

A noun is kept when its first lemma is a lower-case word, the synset is that word's first sense, it lies in a concrete
lexicographer file, and the word is well known: tagged in the sense-tagged texts behind WordNet and used in a gloss, or
used in several glosses. An is-a fact goes to the nearest hypernym that passes the same tests and is not one of the
abstract nodes of `taxonomy_tables.ABSTRACT`; steps in between are skipped. A second is-a fact leads to the folk class
(bird, tree, musical instrument ...) where that class lies farther up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import licences
from . import taxonomy_tables as tables
from .wordnet import HYPERNYM, PART_HOLONYM, Synset, WordNet, load
from .writing import Pack, slug


def build(folder: Path) -> Pack:
    wordnet = load(folder)
    pack = Pack(meta=_meta(), licence_text=licences.WORDNET_NOTICE)
    banned = _banned(wordnet)
    for synset in wordnet.nouns.values():
        if synset.offset in banned or not _presentable(wordnet, synset):
            continue
        if _familiar(wordnet, synset, tables.SUBJECT_GLOSSES.get(synset.lexfile, 3)):
            for target in _classes(wordnet, synset, banned):
                _add(pack, synset, "is-a", target)
        if _familiar(wordnet, synset, tables.PART_GLOSSES):
            for target in _wholes(wordnet, synset, banned):
                _add(pack, synset, "part-of", target)
    return pack


def _add(pack: Pack, subject: Synset, predicate: str, target: Synset) -> None:
    if (subject.label, target.label) in tables.DROPPED_PAIRS:
        return
    domain = "biology" if subject.lexfile in tables.LIVING else "commonsense"
    pack.link(_named(pack, subject), predicate, _named(pack, target), domain=domain, source="wordnet")


def _named(pack: Pack, synset: Synset) -> str:
    aliases = [lemma.replace("_", " ") for lemma in synset.lemmas[1:] if lemma == lemma.lower()]
    return pack.name(f"synset:{slug(synset.label)}-n-1", synset.label, aliases[:3])


def _presentable(wordnet: WordNet, synset: Synset) -> bool:
    return (
        synset.lexfile in tables.CONCRETE
        and wordnet.is_first_sense(synset)
        and re.fullmatch(r"[a-z][a-z' -]+", synset.label) is not None
        and synset.label not in tables.DROPPED_WORDS
        and not any(
            (synset.lexfile, other) in tables.OVERSHADOWED for other in wordnet.lexfiles.get(synset.lemmas[0], ())
        )
    )


def _familiar(wordnet: WordNet, synset: Synset, glosses: int) -> bool:
    """Tag counts alone mislead: the 3.1 files carry some that belong to other words, so glosses must bear them out."""
    tagged = wordnet.tag_count[synset.lemmas[0]] > 0
    return wordnet.gloss_count[synset.label] >= (tables.TAGGED_GLOSSES if tagged else glosses)


def _classes(wordnet: WordNet, synset: Synset, banned: set[str]) -> Iterator[Synset]:
    """The nearest well-known hypernyms, then the folk classes above them."""
    if synset.label in tables.ABSTRACT:
        return
    found: set[str] = set()
    for parent in synset.linked(HYPERNYM):
        nearest: Synset | None = wordnet.nouns[parent]
        while nearest is not None and not _good_class(wordnet, nearest, banned):
            nearest = next((wordnet.nouns[offset] for offset in nearest.linked(HYPERNYM)), None)
        if nearest is not None and nearest.label == "container" and _is_vehicle(wordnet, synset):
            continue
        if nearest is not None and nearest.offset not in found:
            found.add(nearest.offset)
            yield nearest
    yield from (folk for folk in _folk_classes(wordnet, synset, banned) if folk.offset not in found)


def _is_vehicle(wordnet: WordNet, synset: Synset) -> bool:
    """WordNet files wheeled vehicles under containers, which no reader would."""
    return any(ancestor.label == "wheeled vehicle" for ancestor in _ancestors(wordnet, synset))


def _folk_classes(wordnet: WordNet, synset: Synset, banned: set[str]) -> list[Synset]:
    """The folk classes above a synset; the widest ones (animal, plant) only where no narrower one is there."""
    above = [
        ancestor
        for ancestor in _ancestors(wordnet, synset)
        if ancestor.label in tables.FOLK_CLASSES and ancestor.offset not in banned and wordnet.is_first_sense(ancestor)
    ]
    narrow = [ancestor for ancestor in above if ancestor.label not in tables.WIDEST]
    return narrow or above


def _good_class(wordnet: WordNet, synset: Synset, banned: set[str]) -> bool:
    return (
        _presentable(wordnet, synset)
        and synset.label not in tables.ABSTRACT
        and synset.offset not in banned
        and (_familiar(wordnet, synset, tables.CLASS_GLOSSES) or synset.label in tables.FOLK_CLASSES)
    )


def _ancestors(wordnet: WordNet, synset: Synset) -> Iterator[Synset]:
    queue = list(synset.linked(HYPERNYM))
    seen: set[str] = set()
    while queue:
        offset = queue.pop(0)
        if offset not in seen:
            seen.add(offset)
            yield wordnet.nouns[offset]
            queue.extend(wordnet.nouns[offset].linked(HYPERNYM))


def _wholes(wordnet: WordNet, synset: Synset, banned: set[str]) -> Iterator[Synset]:
    for offset in synset.linked(PART_HOLONYM):
        whole = wordnet.nouns[offset]
        if offset in banned or whole.label in tables.ABSTRACT or not _presentable(wordnet, whole):
            continue
        if _familiar(wordnet, whole, tables.PART_GLOSSES):
            yield whole


def _banned(wordnet: WordNet) -> set[str]:
    """Vulgar, offensive, sexual and ethnic terms, and everything below the listed roots."""
    banned = set()
    for synset in wordnet.nouns.values():
        words = set(re.findall(r"[a-z]+", synset.gloss.lower()))
        lemmas = {lemma.lower().replace("_", " ") for lemma in synset.lemmas}
        concrete = synset.lexfile in tables.CONCRETE
        above = {ancestor.label for ancestor in _ancestors(wordnet, synset)} if concrete else set()
        if words & tables.BANNED_GLOSS_WORDS or lemmas & tables.BANNED_WORDS or above & tables.BANNED_ROOTS:
            banned.add(synset.offset)
    return banned


def _meta() -> dict[str, Any]:
    return {
        "name": "taxonomy",
        "title": "Everyday things",
        "description": "What kind of thing a thing is, and of what it is a part: animals, plants, food, artifacts, "
        "body parts and substances known to most people.",
        "domain": "commonsense",
        "licence": "WordNet-3.1",
        "sources": {
            "wordnet": {
                "name": "WordNet, Princeton University",
                "version": "3.1",
                "licence": "WordNet-3.1",
                "licence_file": "LICENSE.txt",
                "note": "First senses of well-known nouns; abstract intermediate classes are skipped.",
            },
        },
        "predicates": {
            "is-a": {
                "label": "is a kind of",
                "subject_kind": "synset",
                "object_kind": "synset",
                "functional": False,
                "symmetric": False,
                "note": "Nearest well-known class, and the folk class (bird, tree, vehicle ...) where it is another.",
            },
            "part-of": {
                "label": "is a part of",
                "subject_kind": "synset",
                "object_kind": "synset",
                "functional": False,
                "symmetric": False,
                "note": "Part holonyms only.",
            },
        },
    }
