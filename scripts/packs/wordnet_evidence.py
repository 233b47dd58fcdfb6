"""Evidence for compiled facts in WordNet: definitions, antonyms and relational adjectives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .wordnet import ANTONYM, SIMILAR, Synset, WordNet

PERTAINS = "\\"
_ENDINGS = ("ings", "ing", "ies", "ers", "es", "ed", "er", "s", "y", "e")
_STEM_LENGTH = 6
_EMPTY = frozenset(
    re.findall(
        "[a-z]+",
        "the a an of to in with its their and or at on up out from into for away someone whether one very things "
        "something people over by it across through under who that is be so",
    )
)


def defined_with(wordnet: WordNet, subject: str, target: str) -> bool:
    """Whether one definition of the subject names at least half of the object's words, or the other way round."""
    return any(
        2 * len(_stems(said) & _stems(synset_text)) >= len(_stems(said)) > 0
        for name, said in ((subject, target), (target, subject))
        for synset_text in _definitions(wordnet, name)
    )


def _definitions(wordnet: WordNet, name: str) -> Iterator[str]:
    """Definitions of a term in all of its senses; of a term that WordNet lacks, those of its last word."""
    term = re.sub(r"^(a|an|the)_", "", name.lower().replace(" ", "_"))
    spellings = (term, term.rstrip("s"), term.rpartition("_")[2])
    known = next((spelling for spelling in spellings if spelling in wordnet.senses), None)
    for sense in wordnet.senses[known] if known else ():
        yield _text(wordnet.synsets[sense.part_of_speech, sense.synset])


def _text(synset: Synset) -> str:
    return f"{synset.gloss} {' '.join(synset.lemmas).replace('_', ' ')}"


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in re.findall("[a-z']+", text.lower()) if word not in _EMPTY}


def _stem(word: str) -> str:
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
    return word[: len(word) - len(ending)][:_STEM_LENGTH]


def antonym_senses(wordnet: WordNet, first: str, second: str) -> list[tuple[Synset, Synset]]:
    """The pairs of senses in which WordNet lists two words as each other's antonyms."""
    found = []
    for sense in wordnet.senses.get(first, ()):
        synset = wordnet.synsets[sense.part_of_speech, sense.synset]
        for pointer in synset.pointers:
            if pointer.symbol == ANTONYM and synset.lemmas[pointer.source - 1].lower() == first:
                other = wordnet.synsets[pointer.part_of_speech, pointer.offset]
                if other.lemmas[pointer.target - 1].lower() == second:
                    found.append((synset, other))
    return found


def antonyms(wordnet: WordNet, word: str) -> set[str]:
    """All words that WordNet lists as antonyms of a word in any of its senses."""
    found = set()
    for sense in wordnet.senses.get(word, ()):
        synset = wordnet.synsets[sense.part_of_speech, sense.synset]
        for pointer in synset.pointers:
            if pointer.symbol == ANTONYM and synset.lemmas[pointer.source - 1].lower() == word:
                found.add(wordnet.synsets[pointer.part_of_speech, pointer.offset].lemmas[pointer.target - 1])
    return found


def near_synonyms(wordnet: WordNet, synset: Synset) -> set[str]:
    """The words of a synset and of the synsets that are similar to it."""
    return {lemma for other in (synset, *_linked(wordnet, synset, SIMILAR)) for lemma in other.lemmas}


def pertains_to(wordnet: WordNet, adjective: str, noun: str) -> bool:
    """Whether WordNet says that a relational adjective belongs to a noun."""
    for sense in wordnet.senses.get(adjective, ()):
        synset = wordnet.synsets[sense.part_of_speech, sense.synset]
        if any(noun in other.lemmas for other in _linked(wordnet, synset, PERTAINS)):
            return True
    return False


def _linked(wordnet: WordNet, synset: Synset, symbol: str) -> list[Synset]:
    return [wordnet.synsets[p.part_of_speech, p.offset] for p in synset.pointers if p.symbol == symbol]
