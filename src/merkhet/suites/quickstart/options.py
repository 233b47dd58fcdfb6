"""Options of the quickstart suite."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from merkhet.core.errors import InputError
from merkhet.engine.study import Study


class QuickstartOptions(BaseModel):
    """Options of a quickstart study."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    choices: int = Field(10, ge=2, strict=True)
    """Number of candidates of a completion question."""
    templates: Path | None = None
    """A schema with other templates."""


def read_options(study: Study) -> QuickstartOptions:
    """Validate the options of a study."""
    try:
        return QuickstartOptions.model_validate(study.options)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        expected = {"choices": "an integer ≥ 2", "templates": "a path"}.get(key)
        if expected is None:
            raise InputError(f"quickstart has no option {key!r}; it has choices and templates") from error
        raise InputError(f"{key} must be {expected}, got {first['input']!r} (options.{key})") from error
