"""Reading the WordNet 3.1 database files, and how often words are used in film subtitles."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HYPERNYM = "@"
PART_HOLONYM = "#p"
ANTONYM = "!"
SIMILAR = "&"
PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}


@dataclass(frozen=True)
class Pointer:
    symbol: str
    offset: str
    part_of_speech: str
    source: int
    """Number of the lemma that the pointer starts from, counted from 1; 0 for the whole synset."""
    target: int


@dataclass(frozen=True)
class Synset:
    offset: str
    part_of_speech: str
    lexfile: int
    lemmas: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    gloss: str
    """The definition and the examples."""

    @property
    def label(self) -> str:
        """The first lemma, with blanks."""
        return self.lemmas[0].replace("_", " ")

    @property
    def definition(self) -> str:
        """The gloss without its examples."""
        return self.gloss.split('; "')[0]

    def linked(self, symbol: str) -> Iterator[str]:
        return (pointer.offset for pointer in self.pointers if pointer.symbol == symbol)


@dataclass(frozen=True)
class Sense:
    synset: str
    part_of_speech: str
    number: int
    """Rank among the senses of the lemma in this part of speech, from 1."""
    tags: int
    """How often the sense was met in the sense-tagged texts behind WordNet."""


@dataclass(frozen=True)
class WordNet:
    synsets: dict[tuple[str, str], Synset]
    """Synsets by part of speech and offset."""
    senses: dict[str, list[Sense]]
    """Senses of a lemma in all parts of speech, the first of each part of speech first."""
    uses: Counter[str]
    """How often a word stands in film subtitles."""
    names: frozenset[str]
    """Words that are mostly written with a capital letter in the subtitles."""

    def noun(self, offset: str) -> Synset:
        return self.synsets["n", offset]

    def nouns(self) -> Iterator[Synset]:
        return (synset for (part_of_speech, _), synset in self.synsets.items() if part_of_speech == "n")

    def noun_senses(self, lemma: str) -> list[Sense]:
        return [sense for sense in self.senses.get(lemma, []) if sense.part_of_speech == "n"]

    def find(self, lemma: str, lexfile: int | None = None) -> Synset:
        """The first noun sense of a lemma, if a lexicographer file is given, within that file."""
        for sense in self.noun_senses(lemma.replace(" ", "_")):
            synset = self.noun(sense.synset)
            if lexfile in (None, synset.lexfile):
                return synset
        raise ValueError(f"WordNet has no noun {lemma!r} in the lexicographer file {lexfile}")

    @functools.cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        return {}

    def ancestors(self, offset: str, cut: Iterable[tuple[str, str]] = ()) -> frozenset[str]:
        """Everything above a noun synset; ``cut`` names links that are not followed, by their first lemmas."""
        known = self._ancestors
        if offset not in known:
            above: set[str] = set()
            for parent in self.noun(offset).linked(HYPERNYM):
                if (self.noun(offset).lemmas[0], self.noun(parent).lemmas[0]) not in cut:
                    above |= {parent} | self.ancestors(parent, cut)
            known[offset] = frozenset(above)
        return known[offset]


def load(folder: Path, subtitles: Path) -> WordNet:
    synsets = {}
    for name, part_of_speech in PARTS_OF_SPEECH.items():
        for line in _lines(folder / f"data.{name}"):
            head, _, gloss = line.partition(" | ")
            synset = _synset(head.split(), part_of_speech, gloss.strip())
            synsets[part_of_speech, synset.offset] = synset
    senses: dict[str, list[Sense]] = defaultdict(list)
    for line in _lines(folder / "index.sense"):
        key, offset, number, tags = line.split()
        lemma, _, rest = key.partition("%")
        senses[lemma].append(Sense(offset, _TYPES[rest[0]], int(number), int(tags)))
    for found in senses.values():
        found.sort(key=lambda sense: (sense.part_of_speech, sense.number))
    counts = json.loads(subtitles.read_text(encoding="utf-8"))
    uses = Counter({entry["word"].lower(): entry["count"] for entry in counts})
    names = frozenset(entry["word"].lower() for entry in counts if not entry["word"].islower())
    return WordNet(synsets, dict(senses), uses, names)


def _lines(path: Path) -> Iterator[str]:
    """Lines of a database file without the licence text at its head."""
    with path.open(encoding="utf-8", errors="replace") as handle:
        yield from (line.rstrip("\n") for line in handle if not line.startswith("  "))


def _synset(fields: list[str], part_of_speech: str, gloss: str) -> Synset:
    words = int(fields[3], 16)
    after_words = 4 + 2 * words
    starts = range(after_words + 1, after_words + 1 + 4 * int(fields[after_words]), 4)
    pointers = tuple(
        Pointer(
            fields[at],
            fields[at + 1],
            fields[at + 2].replace("s", "a"),
            int(fields[at + 3][:2], 16),
            int(fields[at + 3][2:], 16),
        )
        for at in starts
    )
    lemmas = tuple(re.sub(r"\((a|p|ip)\)$", "", fields[4 + 2 * index]) for index in range(words))
    return Synset(fields[0], part_of_speech, int(fields[1]), lemmas, pointers, gloss)
