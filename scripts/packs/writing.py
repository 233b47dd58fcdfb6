"""Facts, names and the files of one pack: shared by the modules that build the packs."""

from __future__ import annotations

import csv
import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FACT_HEADER = ("subject", "predicate", "object", "value", "unit", "start", "end", "domain", "source")
NAME_HEADER = ("entity", "language", "label", "aliases", "kind")
_PLANETS = frozenset(("mercury", "venus", "earth", "mars", "jupiter", "saturn", "uranus", "neptune"))
HERE = Path(__file__).parent

# Letters that have no decomposition and would otherwise vanish from an ASCII slug.
_PLAIN = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "Æ": "Ae"})


class Fact(NamedTuple):
    """One row of facts.csv; exactly one of object and value is filled."""

    subject: str
    predicate: str
    object: str = ""
    value: str = ""
    unit: str = ""
    start: str = ""
    end: str = ""
    domain: str = ""
    source: str = ""


@dataclass
class Pack:
    """Everything that is written to one pack folder."""

    meta: dict[str, Any]
    licence_text: str
    facts: set[Fact] = field(default_factory=set)
    names: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def name(self, entity: str, label: str, aliases: Iterable[str] = (), language: str = "en") -> str:
        """Record a name and return the entity id; a second call must agree on the label and adds its aliases."""
        known = self.names.get((entity, language))
        if known is not None and known[0] != label:
            raise ValueError(f"{entity} is called both {known[0]!r} and {label!r}")
        merged = dict.fromkeys([*(known[1] if known else ()), *aliases])
        merged.pop(label, None)
        merged.pop("", None)
        self.names[entity, language] = (label, tuple(merged))
        return entity

    def link(self, subject: str, predicate: str, target: str, *, domain: str, source: str) -> None:
        self.facts.add(Fact(subject, predicate, object=target, domain=domain, source=source))

    def measure(self, subject: str, predicate: str, value: float, unit: str, *, domain: str, source: str) -> None:
        self.facts.add(Fact(subject, predicate, value=number(value), unit=unit, domain=domain, source=source))


def number(value: float) -> str:
    """A number without binary dust: whole numbers as integers, others with up to 12 significant digits."""
    text = f"{value:.12g}"
    return str(int(value)) if float(value).is_integer() else text


def fold(text: str) -> str:
    """ASCII form of a name: accents dropped, case kept."""
    return unicodedata.normalize("NFKD", text.translate(_PLAIN)).encode("ascii", "ignore").decode("ascii")


def slug(text: str) -> str:
    """Lower-case ASCII words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", fold(text).lower().replace("'", "")).strip("-")


def entity_id(kind: str, label: str) -> str:
    return f"{kind}:{slug(label)}"


def kind_of(entity: str) -> str:
    """The kind of an entity: its prefix, or planet or moon for such bodies."""
    prefix, _, name = entity.partition(":")
    if prefix != "body":
        return prefix
    return "planet" if name in _PLANETS else "moon" if name in _moons() else prefix


@functools.cache
def _moons() -> frozenset[str]:
    return frozenset(slug(row["subject"]) for row in read_table("physics.csv") if row["predicate"] == "orbits")


def read_table(name: str) -> list[dict[str, str]]:
    """Rows of a hand-compiled CSV file that lies beside this module."""
    with (HERE / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def split(cell: str) -> list[str]:
    return [part.strip() for part in cell.split("|") if part.strip()]


def write_pack(pack: Pack, folder: Path) -> None:
    """Write pack.yaml, facts.csv, names.csv and LICENSE.txt, sorted so that two runs give the same bytes."""
    _check(pack)
    folder.mkdir(parents=True, exist_ok=True)
    _write_csv(folder / "facts.csv", FACT_HEADER, sorted(pack.facts))
    rows = [
        (entity, language, label, "|".join(aliases), kind_of(entity))
        for (entity, language), (label, aliases) in sorted(pack.names.items())
    ]
    _write_csv(folder / "names.csv", NAME_HEADER, rows)
    text = yaml.safe_dump(pack.meta, sort_keys=False, allow_unicode=True, width=110)
    (folder / "pack.yaml").write_text(text, encoding="utf-8", newline="\n")
    (folder / "LICENSE.txt").write_text(pack.licence_text.strip() + "\n", encoding="utf-8", newline="\n")


def shared_labels(pack: Pack, language: str = "en") -> dict[tuple[str, str], list[str]]:
    """Labels that two or more entities of one kind share: (kind, label) -> entities."""
    owners: dict[tuple[str, str], list[str]] = {}
    for (entity, lang), (label, _) in sorted(pack.names.items()):
        if lang == language:
            owners.setdefault((entity.partition(":")[0], label), []).append(entity)
    return {key: entities for key, entities in owners.items() if len(entities) > 1}


def _check(pack: Pack) -> None:
    predicates: Mapping[str, Any] = pack.meta["predicates"]
    named = {entity for entity, language in pack.names if language == "en"}
    for fact in sorted(pack.facts):
        if fact.predicate not in predicates:
            raise ValueError(f"undeclared predicate in {fact}")
        if bool(fact.object) == bool(fact.value):
            raise ValueError(f"exactly one of object and value must be given in {fact}")
        if fact.source not in pack.meta["sources"]:
            raise ValueError(f"undeclared source in {fact}")
        for entity in filter(None, (fact.subject, fact.object)):
            if entity not in named:
                raise ValueError(f"{entity} has no English name")


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
