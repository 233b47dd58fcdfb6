"""Reading the WordNet 3.1 database files: noun synsets, their frequencies, and how often glosses use a word."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HYPERNYM = "@"
PART_HOLONYM = "#p"
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")


@dataclass(frozen=True)
class Synset:
    offset: str
    lexfile: int
    lemmas: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]
    gloss: str

    @property
    def label(self) -> str:
        return self.lemmas[0].replace("_", " ")

    def linked(self, symbol: str) -> Iterator[str]:
        return (offset for pointer, offset in self.pointers if pointer == symbol)


@dataclass(frozen=True)
class WordNet:
    nouns: dict[str, Synset]
    first_sense: dict[str, str]
    tag_count: dict[str, int]
    lexfiles: dict[str, set[int]]
    gloss_count: Counter[str]

    def is_first_sense(self, synset: Synset) -> bool:
        """Whether the synset is what its first lemma usually means; such labels are unique."""
        lemma = synset.lemmas[0]
        return lemma == lemma.lower() and self.first_sense.get(lemma) == synset.offset


def load(folder: Path) -> WordNet:
    nouns: dict[str, Synset] = {}
    glosses: Counter[str] = Counter()
    for part_of_speech in PARTS_OF_SPEECH:
        for line in _lines(folder / f"data.{part_of_speech}"):
            head, _, gloss = line.partition(" | ")
            glosses.update(_words_and_pairs(gloss))
            if part_of_speech == "noun":
                synset = _synset(head.split(), gloss.strip())
                nouns[synset.offset] = synset
    first_sense: dict[str, str] = {}
    tag_count: dict[str, int] = {}
    lexfiles: dict[str, set[int]] = {}
    for line in _lines(folder / "index.sense"):
        key, offset, sense, tags = line.split()
        lemma, _, rest = key.partition("%")
        if rest.startswith("1:"):
            lexfiles.setdefault(lemma, set()).add(int(rest.split(":")[1]))
        if rest.startswith("1:") and sense == "1":
            first_sense[lemma] = offset
            tag_count[lemma] = int(tags)
    return WordNet(nouns, first_sense, tag_count, lexfiles, glosses)


def _lines(path: Path) -> Iterator[str]:
    """Lines of a database file without the licence text at its head."""
    with path.open(encoding="utf-8", errors="replace") as handle:
        yield from (line.rstrip("\n") for line in handle if not line.startswith("  "))


def _synset(fields: list[str], gloss: str) -> Synset:
    words = int(fields[3], 16)
    after_words = 4 + 2 * words
    pointers = [
        (fields[start], fields[start + 1])
        for start in range(after_words + 1, after_words + 1 + 4 * int(fields[after_words]), 4)
    ]
    lemmas = tuple(fields[4 + 2 * index] for index in range(words))
    return Synset(fields[0], int(fields[1]), lemmas, tuple(pointers), gloss)


def _words_and_pairs(gloss: str) -> set[str]:
    words = re.findall(r"[a-z']+", gloss.lower())
    return set(words) | {" ".join(pair) for pair in itertools.pairwise(words)}
