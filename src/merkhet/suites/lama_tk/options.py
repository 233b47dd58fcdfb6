"""Options of the LAMA-TK suite."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from merkhet.analysis.option_models import Several, StudyPath, Unique, in_order
from merkhet.core.settings import Expected
from merkhet.engine.suite_options import SuiteOptions

TASKS = ("statement", "boundary", "implicit", "order")
Conflict = Literal["with", "without"]


def _without_all(value: Any) -> Any:
    return None if value == "all" else value


FactCount = Annotated[
    Annotated[int, Field(ge=1)] | None,
    BeforeValidator(_without_all),
    Expected("an integer ≥ 1 or all", "integers ≥ 1 or all"),
]
"""Number of facts; None means all facts."""


class LamaTkOptions(SuiteOptions):
    """Options of a LAMA-TK study."""

    granularity: Literal["year", "month", "day"] = Field("year", description="granularity of times")
    relations: Annotated[tuple[Annotated[str, Field(pattern=r"\S")], ...], Several, Unique] = Field(
        (),
        description="relations that are asked about, by their names or predicates (all that have times and a wording)",
    )
    wordings: StudyPath | None = Field(None, description="a YAML file with your own wordings of relations")
    candidates: int | None = Field(
        100, ge=2, description="number of candidates of a question, at most a tenth of them right (null: all)"
    )
    experiment: Literal["storage", "boundary", "implicit"] = Field(
        "storage", description="memorize: the experiment to run"
    )
    sizes: Annotated[tuple[FactCount, ...], Several] = Field(
        (None,), min_length=1, description="memorize, storage: numbers of stored facts, or all ([all])"
    )
    conflict: Annotated[tuple[Conflict, ...], Several, in_order(Conflict)] = Field(
        ("with", "without"),
        min_length=1,
        description="memorize, storage: with or without the statements that have several right answers",
    )
    static: bool = Field(False, description="memorize, storage: store the same facts also without their times")
    facts: FactCount = Field(None, description="memorize, boundary and implicit: number of stored facts (all)")
    relation: str | None = Field(
        None, description="memorize, boundary: the relation whose facts are stored (the most frequent)"
    )
    dynamic: Annotated[tuple[Annotated[int, Field(ge=0, le=100)], ...], Several, Unique] = Field(
        (0, 10, 100),
        min_length=1,
        description="memorize, boundary: percentages of statements whose other time is left out",
    )
    trainings: int = Field(
        1, ge=1, le=100, description="memorize: number of trainings of every model, each with another seed"
    )
    entities: Literal["text", "symbols"] = Field(
        "text", description="memorize: how entities and times are written in sentences"
    )
