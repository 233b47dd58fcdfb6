"""The `everyday` pack: what everyone knows of things, animals, jobs and words, as far as WordNet bears it out.

The facts of everyday.csv are compiled by hand; a fact is kept if WordNet vouches for it: a definition of one name uses
at least half of the words of the other one, and for opposites and adjectives, WordNet has the very relation.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import licences
from . import wordnet_evidence as evidence
from .compiled import Described, compiled_pack
from .wordnet import WordNet, load
from .writing import Fact, Pack

PREDICATES = {
    "opposite-of": Described(
        "is the opposite of", "word", "word", functional=True, complete="both", note="Each pair is stated once."
    ),
    "adjective-of": Described("is the adjective for", "adjective", "noun"),
    "used-for": Described("is used for", "thing", "activity", note="Typical uses; things have others."),
    "at-location": Described("is usually found in", "thing", "place", note="Typical places; things have others."),
    "made-of": Described("is usually made of", "thing", "material", note="Typical materials; things have others."),
    "comes-from": Described("comes from", "product", "source", note="Typical sources; products have others."),
    "young-of": Described("is a young", "animal", "animal", functional=True, complete="both"),
    "female-of": Described("is a female", "animal", "animal", functional=True, complete="both"),
    "male-of": Described("is a male", "animal", "animal", functional=True, complete="both"),
    "cry-of": Described("is the cry of", "cry", "animal", functional=True, complete="both"),
    "lives-in": Described("lives in", "animal", "home", note="Typical homes; animals have others."),
    "does-job": Described("has the job to", "profession", "work", note="The main work; professions have more."),
    "comes-before": Described(
        "comes within a year before", "month", "month", complete="both", note="The next month only."
    ),
}
SYMMETRIC = "opposite-of"
# WordNet files hot, in one of its senses, with fast.
NO_CLASH = {("slow", "hot")}
RELATIONAL = "adjective-of"
SOURCE = "wordnet"
_PREFIXES = "(un|in|im|il|ir|dis|non)"


def build(folder: Path, subtitles: Path) -> Pack:
    wordnet = load(folder, subtitles)
    pack = compiled_pack(
        name="everyday",
        title="Everyday knowledge",
        description="What everyone knows: opposites, what things are for, where they are, what they are made of, the "
        "sexes, young and cries of animals, and what people do for a living.",
        domain="commonsense",
        predicates=PREDICATES,
        note="",
    )
    pack.licence_text = licences.WORDNET_NOTICE
    pack.meta["licence"] = "WordNet-3.1"
    pack.meta["sources"] = {
        SOURCE: {
            "name": "WordNet, Princeton University",
            "version": "3.1",
            "licence": "WordNet-3.1",
            "licence_file": "LICENSE.txt",
            "note": "Definitions, antonyms and relational adjectives; worded by hand, as listed in "
            "scripts/packs/everyday.csv. What is usual, not what is without exception.",
        }
    }
    refused = [fact for fact in sorted(pack.facts) if not _is_borne_out(wordnet, pack, fact)]
    if refused:
        raise ValueError(
            f"WordNet does not bear out: {'; '.join(f'{f.predicate}: {_words(pack, f)}' for f in refused)}"
        )
    _check_opposites(wordnet, pack)
    pack.facts = {fact._replace(source=SOURCE) for fact in pack.facts}
    return pack


def _words(pack: Pack, fact: Fact) -> tuple[str, str]:
    return pack.names[fact.subject, "en"][0], pack.names[fact.object, "en"][0]


def _is_borne_out(wordnet: WordNet, pack: Pack, fact: Fact) -> bool:
    subject, target = _words(pack, fact)
    if fact.predicate == SYMMETRIC:
        return bool(evidence.antonym_senses(wordnet, subject, target))
    if fact.predicate == RELATIONAL:
        return evidence.pertains_to(wordnet, subject, target)
    return evidence.defined_with(wordnet, subject, target)


def _check_opposites(wordnet: WordNet, pack: Pack) -> None:
    """Refuse a pair if one of its words has a further opposite in the pack, or a near synonym of its opposite."""
    pairs = [_words(pack, fact) for fact in sorted(pack.facts) if fact.predicate == SYMMETRIC]
    words = {word for pair in pairs for word in pair}
    clashes = []
    for pair in pairs:
        for word, opposite in (pair, pair[::-1]):
            others = evidence.antonyms(wordnet, word)
            for _, opposed in evidence.antonym_senses(wordnet, word, opposite):
                others |= evidence.near_synonyms(wordnet, opposed)
            further = others & words - {opposite}
            clashes += [f"{word}: {other}" for other in sorted(further) if (word, other) not in NO_CLASH]
    if clashes:
        raise ValueError(f"words with several opposites: {'; '.join(clashes)}")
    made = [pair for pair in pairs if any(re.fullmatch(_PREFIXES + a, b) for a, b in (pair, pair[::-1]))]
    if made:
        raise ValueError(f"opposites that are made by a prefix tell nothing: {made}")
