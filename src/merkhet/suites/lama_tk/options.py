"""Options of the LAMA-TK suite."""

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
    """The options of a study; see HELP. None as a size or a number of facts means all."""

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
    """Read the options of a study, with paths relative to ``home``.

    Raises:
        InputError: A value is invalid.
    """
    options = study.options
    defaults = LamaTkOptions()
    wordings = options.get("wordings")
    if wordings is not None and not (home / str(wordings)).is_file():
        raise InputError(f"there is no file {home / str(wordings)} (options.wordings)")
    relation = options.get("relation")
    if relation is not None and not isinstance(relation, str):
        raise InputError(f"the option relation is {relation!r}, and should be the name of a relation")
    static = options.get("static", defaults.static)
    if not isinstance(static, bool):
        raise InputError(f"the option static is {static!r}, and should be true or false")
    sizes = options.get("sizes")
    return LamaTkOptions(
        granularity=_choice(options, "granularity", GRANULARITIES, defaults.granularity),
        relations=tuple(_names("relations", options.get("relations"))),
        wordings=home / str(wordings) if wordings is not None else None,
        candidates=_candidates(options.get("candidates", defaults.candidates)),
        experiment=_choice(options, "experiment", EXPERIMENTS, defaults.experiment),
        sizes=defaults.sizes
        if sizes is None
        else tuple(_fact_count("sizes", size) for size in _as_list("sizes", sizes)),
        conflict=_conflict(options.get("conflict")),
        static=static,
        facts=_fact_count("facts", options.get("facts", ALL)),
        relation=relation,
        dynamic=_percentages(options.get("dynamic"), defaults.dynamic),
        entities=_choice(options, "entities", ENTITIES, defaults.entities),
        trainings=_trainings(options.get("trainings", defaults.trainings)),
    )


def _choice(options: Mapping[str, Any], key: str, allowed: Sequence[str], default: str) -> str:
    value = options.get(key)
    if value is None:
        return default
    if value not in allowed:
        raise InputError(f"the option {key} cannot be {value!r}; {did_you_mean(str(value), allowed)}")
    return str(value)


def _as_list(key: str, value: Any) -> list[Any]:
    values = [value] if isinstance(value, str | int) else value
    if not isinstance(values, list | tuple) or not values:
        raise InputError(f"the option {key} is {value!r}, and should be a list with something in it")
    return list(values)


def _names(key: str, value: Any) -> list[str]:
    names = [] if value is None else _as_list(key, value)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"the option {key} has {name!r}, and should be a list of names")
    return list(dict.fromkeys(names))


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


def _fact_count(key: str, value: Any) -> int | None:
    if value is None or value == ALL:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"the option {key} has {value!r}, and should have whole numbers above 0, or all")
    return value


def _conflict(value: Any) -> tuple[str, ...]:
    if value is None:
        return CONFLICTS
    values = _as_list("conflict", value)
    for conflict in values:
        if conflict not in CONFLICTS:
            raise InputError(f"the option conflict cannot have {conflict!r}; {did_you_mean(str(conflict), CONFLICTS)}")
    return tuple(conflict for conflict in CONFLICTS if conflict in values)


def _percentages(value: Any, default: tuple[int, ...]) -> tuple[int, ...]:
    if value is None:
        return default
    percentages = _as_list("dynamic", value)
    for percentage in percentages:
        if not isinstance(percentage, int) or isinstance(percentage, bool) or not 0 <= percentage <= 100:
            raise InputError(
                f"the option dynamic has {percentage!r}, and should have whole numbers from 0 to 100 (percent)"
            )
    return tuple(dict.fromkeys(percentages))
