"""Base class and field types of pydantic models of options, with one-line messages for invalid values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.settings import Expected, annotated, is_union, refusal, without_metadata

Model = TypeVar("Model", bound=BaseModel)


class Options(BaseModel):
    """Base class of option models: frozen, without type conversions; null selects the default value."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        fields = named_fields(cls)
        return {
            key: value
            for key, value in values.items()
            if value is not None or key not in fields or _is_null_valid(fields[key].annotation)
        }


def named_fields(model: Any) -> dict[str, FieldInfo]:
    """Return the fields of a pydantic model by the keys that users write; empty for other objects."""
    return {field.alias or name: field for name, field in getattr(model, "model_fields", {}).items()}


def _is_null_valid(annotation: Any) -> bool:
    return type(None) in getattr(annotation, "__args__", ())


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _as_tuple_or_single(value: Any) -> Any:
    return (value,) if isinstance(value, str | int | Path) else _as_tuple(value)


def _as_path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) and value else value


def _without_repeats(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def in_order(choices: Any) -> AfterValidator:
    """Return a validator that sorts values in the order of the ``Literal`` ``choices`` and drops repeats."""
    order = get_args(choices)
    return AfterValidator(lambda values: tuple(choice for choice in order if choice in values))


Listed = BeforeValidator(_as_tuple)
"""Validator that converts a list to a tuple."""
Several = BeforeValidator(_as_tuple_or_single)
"""Validator that converts a list or a single value to a tuple."""
Unique = AfterValidator(_without_repeats)
"""Validator that drops repeated values."""
StudyPath = Annotated[Path, BeforeValidator(_as_path)]
"""A path relative to the study's folder."""


def validate(model: type[Model], content: Mapping[str, Any], place: str = "") -> Model:
    """Validate content against a pydantic model.

    Args:
        place: Key that holds the content, used as the prefix of keys in messages.

    Raises:
        InputError: Keys are unknown or missing, or values are invalid; all are named.
    """
    try:
        return model.model_validate(dict(content))
    except ValidationError as error:
        faults = FaultList()
        paths: list[str] = []
        for details in error.errors(include_url=False):
            path, message = _explain(details, model, content, place)
            # The types of a union have an error each; the first one counts, and those around or within it do not.
            if not any(f"{path}.".startswith(f"{known}.") or f"{known}.".startswith(f"{path}.") for known in paths):
                paths.append(path)
                faults.add(message)
        try:
            faults.refuse()
        except InputError as refused:
            raise refused from error
        raise


def _explain(details: Any, model: type[BaseModel], content: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Return the path of the key that one of pydantic's errors is about, and a message."""
    reason, location = f"{details['msg'][0].lower()}{details['msg'][1:]}", details["loc"]
    if not location:  # A key that is not valid text.
        return reason, f"a key is not valid: {reason}"
    last = str(location[-1])
    is_key_error = details["type"] == "extra_forbidden" or (details["type"] == "missing" and location[-1] == last)
    hint, value, names = _locate(model, content, location[:-1] if is_key_error else location)
    path = ".".join(filter(None, [place, *names]))
    if not is_key_error:
        return path, refusal(path, hint, value)
    key = ".".join(filter(None, [path, last]))
    if details["type"] == "missing":
        return key, f"the key {key!r} is missing"
    hint_text = did_you_mean(last, named_fields(_without_null(hint)))
    return key, f"there is no key {last!r}{f' in {path}' if path else ''}; {hint_text}"


def _locate(model: type[BaseModel], content: Any, location: Sequence[int | str]) -> tuple[Any, Any, list[str]]:
    """Return the annotation, the value and the keys at pydantic's error location.

    Stop early where the annotation or the content ends.
    """
    hint, value, names = model, content, []
    for part in location:
        if any(isinstance(entry, Expected) for entry in without_metadata(hint)[1]):
            break
        kind = _without_null(hint)
        fields = named_fields(kind)
        if part in fields and isinstance(value, Mapping):
            field = fields[part]
            hint, value = annotated(field.annotation, field.metadata), value.get(part)
        elif isinstance(part, int) and isinstance(value, list | tuple) and get_args(kind):
            hint, value = get_args(kind)[0], value[part]
        elif isinstance(value, Mapping) and get_origin(kind) is dict and part in value:
            hint, value = get_args(kind)[1], value[part]
        else:
            break
        names.append(str(part))
    return hint, value, names


def _without_null(hint: Any) -> Any:
    kind, _ = without_metadata(hint)
    members = [member for member in get_args(kind) if member is not type(None)] if is_union(kind) else []
    return without_metadata(members[0])[0] if len(members) == 1 else kind
