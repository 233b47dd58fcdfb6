"""What WordNet's glosses say: definitions of terms; nationalities and years of people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .wordnet import HYPERNYM, Synset, WordNet
from .writing import read_table

INSTANCE = "@i"
_LONGEST_DEFINITION = 160

# Nationalities as glosses write them, and as questions do.
NATIONALITIES = {
    "United States": "American",
    **{name: name for name in ("French", "German", "Italian", "Russian", "Austrian", "Hungarian", "Czech", "Spanish")},
    **dict.fromkeys(("British", "English", "Scottish", "Welsh"), "British"),
    **{name: name for name in ("Swedish", "Norwegian", "Danish", "Dutch", "Belgian", "Swiss", "Polish", "Irish")},
    **{name: name for name in ("Canadian", "Australian", "Mexican", "Brazilian", "Japanese", "Chinese", "Indian")},
    **{name: name for name in ("Greek", "Roman", "Finnish", "Romanian", "Turkish", "Persian", "Carthaginian")},
}
# A second country in a gloss makes the nationality doubtful.
_DOUBTFUL = re.compile(
    r"\bborn (?:of|in|to) (?!\d)|\bborn (?:a|an) |naturali"
    r"|\b(?:moved|emigrated|exile|citizen|settled|immigra|expatriate)"
    r"|\b(?:Soviet|Confederate)|French-|-born|-American"
)
_LIFE = re.compile(r"\((\d{3,4})-(\d{3,4})\)$")
_BORN = re.compile(r"\(born (?:in )?(\d{4})\)$")
_TITLES = ("Sir ", "Dame ", "Saint ", "St. ", "Baron ", "Lord ", "Count ", "President ", "Pope ", "King ", "Marshal ")


@dataclass(frozen=True)
class Person:
    """A person of the database."""

    label: str
    aliases: tuple[str, ...]
    nationality: str
    born: int | None
    gloss: str


class Glosses:
    """Look-ups of synsets by lemma, by descent and by what their glosses say."""

    def __init__(self, wordnet: WordNet) -> None:
        self.nouns = {synset.offset: synset for synset in wordnet.nouns()}

    @cached_property
    def by_lemma(self) -> dict[str, list[Synset]]:
        """Synsets by first lemma, in the order of the database."""
        synsets: dict[str, list[Synset]] = {}
        for _, synset in sorted(self.nouns.items()):
            synsets.setdefault(synset.lemmas[0], []).append(synset)
        return synsets

    @cached_property
    def _below(self) -> dict[str, list[Synset]]:
        below: dict[str, list[Synset]] = {}
        for _, synset in sorted(self.nouns.items()):
            for offset in synset.linked(HYPERNYM):
                below.setdefault(offset, []).append(synset)
        return below

    @cached_property
    def _instances(self) -> dict[str, list[Synset]]:
        instances: dict[str, list[Synset]] = {}
        for _, synset in sorted(self.nouns.items()):
            for offset in synset.linked(INSTANCE):
                instances.setdefault(offset, []).append(synset)
        return instances

    @cached_property
    def _usual_names(self) -> dict[str, tuple[str, str]]:
        """Usual names by those of the database, and what is left out because it is wrong or doubtful."""
        return {row["database"]: (row["label"], row["leave_out"]) for row in read_table("people.csv")}

    @cached_property
    def _surnames(self) -> Counter[str]:
        return Counter(synset.lemmas[0] for synsets in self._instances.values() for synset in set(synsets))

    def descendants(self, *lemmas: str) -> list[Synset]:
        """All kinds of what the first lemmas name, in the order of the database."""
        reached: dict[str, Synset] = {}
        agenda = [synset for lemma in lemmas for synset in self.by_lemma.get(lemma, [])]
        while agenda:
            for synset in self._below.get(agenda.pop().offset, []):
                if synset.offset not in reached:
                    reached[synset.offset] = synset
                    agenda.append(synset)
        return [synset for _, synset in sorted(reached.items())]

    def instances(self, *lemmas: str) -> list[Synset]:
        """All individuals below what the first lemmas name, in the order of the database."""
        classes = [*(synset for lemma in lemmas for synset in self.by_lemma.get(lemma, [])), *self.descendants(*lemmas)]
        reached = {synset.offset: synset for above in classes for synset in self._instances.get(above.offset, [])}
        return [synset for _, synset in sorted(reached.items())]

    def parents(self, synset: Synset) -> Iterator[Synset]:
        return (self.nouns[offset] for offset in synset.linked(HYPERNYM))

    def ancestors(self, synset: Synset) -> frozenset[str]:
        """Offsets of all synsets above one."""
        reached: set[str] = set()
        agenda = [synset]
        while agenda:
            for above in self.parents(agenda.pop()):
                if above.offset not in reached:
                    reached.add(above.offset)
                    agenda.append(above)
        return frozenset(reached)

    def linked(self, synset: Synset, symbol: str) -> Iterator[Synset]:
        return (self.nouns[offset] for offset in synset.linked(symbol) if offset in self.nouns)

    def people(self, *lemmas: str) -> list[Person]:
        """The people who were one of the given things, but for those who share a name."""
        people = [person for synset in self.instances(*lemmas) if (person := self._person(synset)).label]
        labels = Counter(person.label for person in people)
        return [person for person in people if labels[person.label] == 1]

    def _person(self, synset: Synset) -> Person:
        names = [lemma.replace("_", " ") for lemma in synset.lemmas]
        surname = names[0]
        full = [name for name in names if " " in name and name[0].isupper() and not name.startswith(_TITLES)]
        ending = [name for name in full if name.endswith(surname)] or full
        if not ending:
            return Person("", (), "", None, "")
        label = min(ending, key=lambda name: name.count(" "))
        aliases = [name for name in full if name != label]
        if " " not in surname and self._surnames[synset.lemmas[0]] == 1:
            aliases.append(surname)
        gloss = first_part(synset.gloss)
        usual, left_out = self._usual_names.get(label, (label, ""))
        if usual != label:
            aliases.append(label)
        return Person(
            "" if left_out == "person" else usual,
            tuple(dict.fromkeys(aliases)),
            "" if left_out == "nationality" else _nationality(gloss),
            None if left_out == "year" else _birth(gloss),
            gloss,
        )


def first_part(gloss: str) -> str:
    """A gloss without its examples."""
    return re.split(r"; \"", gloss)[0].strip()


def definition(gloss: str) -> str:
    """The first clause of a gloss, without remarks in parentheses and examples."""
    plain = re.sub(r"^\([^)]*\) ", "", first_part(gloss))
    return re.sub(r" ?\([^)]*\)", "", plain).split(";")[0].strip()


def full_definition(gloss: str, names: Iterable[str]) -> str:
    """The first clause of a gloss, with the next one if both are short and the next one does not name the term."""
    plain = re.sub(r" ?\([^)]*\)", "", re.sub(r"^\([^)]*\) ", "", first_part(gloss)))
    first, *others = [clause.strip() for clause in plain.split(";") if clause.strip()]
    words = {word for name in names for word in name.lower().split() if len(word) > 3}
    if (
        not others
        or len(first) + len(others[0]) > _LONGEST_DEFINITION
        or words & set(re.findall(r"\w+", others[0].lower()))
    ):
        return first
    return f"{first}; {others[0]}"


def _nationality(gloss: str) -> str:
    """The nationality that a gloss opens with, if no other country is named."""
    if _DOUBTFUL.search(gloss):
        return ""
    opening = " ".join(gloss.split()[:4])
    named = {right for wrong, right in NATIONALITIES.items() if re.search(rf"\b{wrong}\b", opening)}
    mentioned = {right for wrong, right in NATIONALITIES.items() if re.search(rf"\b{wrong}\b", gloss)}
    return next(iter(named)) if len(named) == 1 and named == mentioned else ""


def _birth(gloss: str) -> int | None:
    """The year of birth, if the gloss is certain of it."""
    life = _LIFE.search(gloss) or _BORN.search(gloss)
    return int(life[1]) if life else None


class Term(NamedTuple):
    """A term of a domain, with the offsets of its synset, of those directly above it, and of all above it."""

    label: str
    aliases: tuple[str, ...]
    meaning: str
    offset: str
    parents: frozenset[str]
    ancestors: frozenset[str]


def chosen_terms(glosses: Glosses, domain: str) -> Iterator[Term]:
    """The terms of a domain that terms.csv chooses."""
    for row in read_table("terms.csv"):
        if row["domain"] == domain:
            synset = glosses.by_lemma[row["term"].replace(" ", "_")][int(row["synset"]) - 1]
            others = tuple(lemma.replace("_", " ") for lemma in synset.lemmas[1:])
            parents = frozenset(above.offset for above in glosses.parents(synset))
            ancestors = glosses.ancestors(synset)
            names = (row["term"], *others)
            yield Term(row["term"], others, full_definition(synset.gloss, names), synset.offset, parents, ancestors)
