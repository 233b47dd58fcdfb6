"""What a study may say about lama-tk, checked before anything is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.engine.study import Study

TASKS = ("statement", "boundary", "implicit", "order")
GRANULARITIES = ("year", "month", "day")
EXPERIMENTS = ("storage", "boundary", "implicit")
CONFLICTS = ("with", "without")
ENTITIES = ("text", "symbols")
ALL = "all"

HELP = {
    "granularity": "how exact times are: year, month or day (year)",
    "relations": "relations that are asked about, by their names or predicates (all that have times and words)",
    "wordings": "a YAML file with your own words for relations",
    "candidates": "how many names a question offers, at most a tenth of them right (100; null: all of the relation)",
    "experiment": "memorize: what is stored and asked, storage, boundary or implicit (storage)",
    "sizes": "memorize, storage: how many facts are stored, numbers or all ([all])",
    "conflict": "memorize, storage: with or without the statements that have several right answers ([with, without])",
    "static": "memorize, storage: true: the same facts without their times besides",
    "facts": "memorize, boundary and implicit: how many facts are stored (all)",
    "relation": "memorize, boundary: the relation whose facts are stored (the most frequent)",
    "dynamic": "memorize, boundary: shares in percent of statements that lose their other time ([0, 10, 100])",
    "trainings": "memorize: how many times every model is trained, each time with another seed (1)",
    "entities": "memorize: entities and times stand in sentences as text or as symbols (text)",
}
FILES = ("wordings",)
"""Options that name files."""


@dataclass(frozen=True)
class LamaTkOptions:
    """The options of a study; see HELP. A size or a number of facts that is None means all."""

    granularity: str = "year"
    relations: tuple[str, ...] = ()
    wordings: Path | None = None
    candidates: int | None = 100
    experiment: str = "storage"
    sizes: tuple[int | None, ...] = (None,)
    conflict: tuple[str, ...] = CONFLICTS
    static: bool = False
    facts: int | None = None
    relation: str | None = None
    dynamic: tuple[int, ...] = (0, 10, 100)
    entities: str = "text"
    trainings: int = 1


def read_options(study: Study, home: Path) -> LamaTkOptions:
    """The options of a study, with paths relative to ``home``; refuses what cannot be meant."""
    given = study.options
    usual = LamaTkOptions()
    wordings = given.get("wordings")
    if wordings is not None and not (home / str(wordings)).is_file():
        raise InputError(f"there is no file {home / str(wordings)} (options.wordings)")
    relation = given.get("relation")
    if relation is not None and not isinstance(relation, str):
        raise InputError(f"the option relation is {relation!r}, and should be the name of a relation")
    static = given.get("static", usual.static)
    if not isinstance(static, bool):
        raise InputError(f"the option static is {static!r}, and should be true or false")
    sizes = given.get("sizes")
    return LamaTkOptions(
        granularity=_one(given, "granularity", GRANULARITIES, usual.granularity),
        relations=tuple(_texts("relations", given.get("relations"))),
        wordings=home / str(wordings) if wordings is not None else None,
        candidates=_candidates(given.get("candidates", usual.candidates)),
        experiment=_one(given, "experiment", EXPERIMENTS, usual.experiment),
        sizes=usual.sizes if sizes is None else tuple(_size("sizes", size) for size in _listed("sizes", sizes)),
        conflict=_conflict(given.get("conflict")),
        static=static,
        facts=_size("facts", given.get("facts", ALL)),
        relation=relation,
        dynamic=_shares(given.get("dynamic"), usual.dynamic),
        entities=_one(given, "entities", ENTITIES, usual.entities),
        trainings=_trainings(given.get("trainings", usual.trainings)),
    )


def _one(given: Mapping[str, Any], key: str, known: Sequence[str], usual: str) -> str:
    value = given.get(key)
    if value is None:
        return usual
    if value not in known:
        raise InputError(f"the option {key} cannot be {value!r}; {did_you_mean(str(value), known)}")
    return str(value)


def _listed(key: str, value: Any) -> list[Any]:
    found = [value] if isinstance(value, str | int) else value
    if not isinstance(found, list | tuple) or not found:
        raise InputError(f"the option {key} is {value!r}, and should be a list with something in it")
    return list(found)


def _texts(key: str, value: Any) -> list[str]:
    found = [] if value is None else _listed(key, value)
    for one in found:
        if not isinstance(one, str) or not one.strip():
            raise InputError(f"the option {key} has {one!r}, and should be a list of names")
    return list(dict.fromkeys(found))


def _candidates(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
        raise InputError(
            f"the option candidates is {value!r}, and should be a whole number from 2 on (a right answer, and what it "
            "can be mistaken for), or null for all"
        )
    return value


def _trainings(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100:
        raise InputError(f"the option trainings is {value!r}, and should be a whole number from 1 to 100")
    return value


def _size(key: str, value: Any) -> int | None:
    if value is None or value == ALL:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"the option {key} has {value!r}, and should have whole numbers above 0, or all")
    return value


def _conflict(value: Any) -> tuple[str, ...]:
    if value is None:
        return CONFLICTS
    found = _listed("conflict", value)
    for one in found:
        if one not in CONFLICTS:
            raise InputError(f"the option conflict cannot have {one!r}; {did_you_mean(str(one), CONFLICTS)}")
    return tuple(one for one in CONFLICTS if one in found)


def _shares(value: Any, usual: tuple[int, ...]) -> tuple[int, ...]:
    if value is None:
        return usual
    found = _listed("dynamic", value)
    for one in found:
        if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= 100:
            raise InputError(f"the option dynamic has {one!r}, and should have whole numbers from 0 to 100 (percent)")
    return tuple(dict.fromkeys(found))
