"""Facts about people of WordNet, which several packs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from .compiled import Described
from .glosses import Person
from .sourced import SourcedPack

PEOPLE = {
    "birth-year": Described("was born in the year", "person", unit="year", functional=True, note="Certain years only."),
    "has-nationality": Described(
        "had the nationality",
        "person",
        "nationality",
        functional=True,
        note="English, Scottish and Welsh people are British; none for people of two countries.",
    ),
}
_RARE = 3


def add_people(
    pack: SourcedPack,
    people: Iterable[Person],
    used: set[str],
    nationality: bool = True,
    doubted: Collection[str] = (),
) -> list[tuple[Person, str]]:
    """Add years of birth and nationalities of people that no other pack has ``used``; return them with their ids.

    Args:
        nationality: Whether nationalities are added.
        doubted: Labels of people whose year of birth another source gives differently.
    """
    added = [person for person in people if person.label not in used]
    used |= {person.label for person in added}
    counts = Counter(person.nationality for person in added if person.nationality and nationality)
    entities = []
    for person in added:
        is_common = counts[person.nationality] >= _RARE
        born = None if person.label in doubted else person.born
        if born is None and not is_common:
            continue
        entity = pack.entity("person", person.label, person.aliases)
        entities.append((person, entity))
        if born is not None:
            pack.measure(entity, "birth-year", born, "wordnet")
        if is_common:
            pack.link(entity, "has-nationality", pack.entity("nationality", person.nationality), "wordnet")
    return entities
