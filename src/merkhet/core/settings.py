"""Settings that are validated against their type annotations, without pydantic.

``Annotated[int, Bounds(ge=1)]`` corresponds to pydantic's ``Field(ge=1)``. :func:`describe_type` understands both
notations, which gives messages about settings of learners and options of suites the same form.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.text_formats import short_repr


@dataclass(frozen=True)
class Bounds:
    """Limits of a number, named as in annotated-types and pydantic."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None


@dataclass(frozen=True)
class Expected:
    """Description of valid values for messages, in singular and plural, used instead of the type's name."""

    singular: str
    plural: str = ""


PositiveInt = Annotated[int, Bounds(ge=1)]
NonNegativeInt = Annotated[int, Bounds(ge=0)]
PositiveFloat = Annotated[float, Bounds(gt=0)]
NonNegativeFloat = Annotated[float, Bounds(ge=0)]
Share = Annotated[float, Bounds(ge=0, le=1)]
YesNo = Literal["yes", "no"]

_COMPARISONS = {
    "ge": ("≥", operator.ge),
    "gt": (">", operator.gt),
    "le": ("≤", operator.le),
    "lt": ("<", operator.lt),
}
_NOUNS: Mapping[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("text", "texts"),
    Path: ("a path", "paths"),
    None: ("null", "null"),
    type(None): ("null", "null"),
    Any: ("a value", "values"),
}


@dataclass(frozen=True)
class Settings:
    """Base of frozen dataclasses whose fields are checked against their annotations."""

    place: ClassVar[str] = ""
    """Prefix of field names in messages, such as the section of the study file."""

    def __post_init__(self) -> None:
        """Raise InputError for an invalid value."""
        for name, hint in setting_types(type(self)).items():
            check_value(f"{self.place}{name}", hint, getattr(self, name))


SettingsType = TypeVar("SettingsType", bound=Settings)


def make_settings(kind: type[SettingsType], values: SettingsType | Mapping[str, Any] | None) -> SettingsType:
    """Make settings from a mapping, with defaults for missing names; return a settings object unchanged.

    Raises:
        InputError: A name is unknown, or a value is invalid.
    """
    if isinstance(values, kind):
        return values
    hints = setting_types(kind)
    content: dict[str, Any] = dict(values or {})  # type: ignore[arg-type]
    for name, value in content.items():
        check_name(kind.place, name, hints)
        if isinstance(value, bool) and "yes" in get_args(hints[name]):  # YAML reads yes and no as booleans.
            content[name] = "yes" if value else "no"
    return kind(**content)


def setting_types(kind: type[Settings]) -> dict[str, Any]:
    """Return the annotation of each field, including its constraints."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def check_name(place: str, name: Any, known: Collection[str]) -> None:
    """Raise InputError if ``name`` is not in ``known``."""
    if name not in known:
        raise InputError(f"{place}{name} does not exist; {did_you_mean(str(name), known)}")


def check_value(name: str, hint: Any, value: Any) -> None:
    """Raise InputError if ``value`` does not match the annotation ``hint``."""
    if not _fits(hint, value):
        raise InputError(refusal(name, hint, value))


def refusal(name: str, hint: Any, value: Any) -> str:
    """Return the error message for an invalid value: setting, valid values, value and nearest choice."""
    choices = [choice for choice in _choices(hint) if isinstance(choice, str)]
    entries = value if isinstance(value, list | tuple) else [value]
    wrong = next((entry for entry in entries if isinstance(entry, str) and entry not in choices), None)
    closest = did_you_mean(wrong, choices) if wrong and choices else ""
    suggestion = f"; {closest}" if closest.startswith("did") else ""
    return f"{name} must be {describe_type(hint)}, got {short_repr(value)}{suggestion}"


def describe_type(hint: Any) -> str:
    """Describe the valid values of an annotation, such as ``an integer ≥ 2 or null``."""
    return _describe(hint, (), plural=False)


def without_metadata(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split an ``Annotated`` annotation into the type and its constraints."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    base, *metadata = get_args(hint)
    inner, more = without_metadata(base)
    # A pydantic field holds its constraints in a list.
    parts = (part for entry in metadata for part in (getattr(entry, "metadata", None) or (entry,)))
    return inner, (*more, *parts)


def is_union(hint: Any) -> bool:
    """Return whether an annotation is a union."""
    return get_origin(hint) in (Union, types.UnionType)


def annotated(hint: Any, metadata: Sequence[Any]) -> Any:
    """Add constraints to an annotation."""
    return Annotated[(hint, *metadata)] if metadata else hint


def _describe(hint: Any, metadata: tuple[Any, ...], *, plural: bool) -> str:
    hint, more = without_metadata(hint)
    metadata = (*metadata, *more)
    for entry in metadata:
        if isinstance(entry, Expected):
            return entry.plural if plural else entry.singular
    arguments, kind = get_args(hint), get_origin(hint) or hint
    if is_union(hint):
        members = sorted(arguments, key=lambda member: member is type(None))
        return " or ".join(_describe(member, metadata, plural=plural) for member in members)
    if kind is Literal:
        names = ", ".join(map(str, arguments))
        return names if len(arguments) == 1 else f"{'some' if plural else 'one'} of {names}"
    if kind in _NOUNS:
        return " ".join([_NOUNS[kind][plural], *_describe_bounds(metadata if kind in (int, float) else ())])
    if isinstance(kind, type) and issubclass(kind, Mapping):
        value = f" of names to {_describe(arguments[1], (), plural=True)}" if arguments else ""
        return f"{'mappings' if plural else 'a mapping'}{value}"
    if isinstance(kind, type) and issubclass(kind, Sequence):
        item = _describe(arguments[0], (), plural=True) if arguments else "values"
        fullness = "non-empty " if any(getattr(entry, "min_length", None) for entry in metadata) else ""
        return f"{fullness}lists of {item}" if plural else f"a {fullness}list of {item}"
    keys = getattr(kind, "model_fields", None)
    return f"a mapping with {', '.join(keys)}" if keys else f"a {getattr(kind, '__name__', kind)}"


def _describe_bounds(metadata: tuple[Any, ...]) -> list[str]:
    bounds = _bounds(metadata)
    if set(bounds) == {"ge", "le"}:
        return [f"from {bounds['ge']:g} to {bounds['le']:g}"]
    text = " and ".join(f"{_COMPARISONS[name][0]} {bound:g}" for name, bound in bounds.items())
    return [text] if text else []


def _bounds(metadata: tuple[Any, ...]) -> dict[str, float]:
    bounds = ((name, getattr(entry, name, None)) for entry in metadata for name in _COMPARISONS)
    return {name: bound for name, bound in bounds if bound is not None}


def _choices(hint: Any) -> list[Any]:
    """Return the literal choices of an annotation, including those of list items."""
    hint, _ = without_metadata(hint)
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for member in get_args(hint) for choice in _choices(member)]


def _fits(hint: Any, value: Any) -> bool:
    hint, metadata = without_metadata(hint)
    arguments, kind = get_args(hint), get_origin(hint) or hint
    if is_union(hint):
        return any(_fits(annotated(member, metadata), value) for member in arguments)
    if kind is Any:
        return True
    if kind is Literal:
        return any(value == choice and type(value) is type(choice) for choice in arguments)
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        if not is_number or math.isnan(value):
            return False
        return all(_COMPARISONS[name][1](value, bound) for name, bound in _bounds(metadata).items())
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and all(_fits(arguments[1], item) for item in value.values() if arguments)
    if issubclass(kind, Sequence) and kind is not str:
        return isinstance(value, list | tuple) and all(_fits(arguments[0], item) for item in value if arguments)
    return isinstance(value, kind)
