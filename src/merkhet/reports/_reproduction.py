"""Reproduction section of a report: command, study file, models and environment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import yaml

from merkhet.core import text as fmt

_ELLIPSIS = "…/"
_ABSOLUTE = re.compile(r"^(?:file:)?(?:~?/+[^/\s]|[A-Za-z]:[\\/]|\\\\)")
_EMBEDDED = re.compile(r"(?<=[=,\[\(\{\s'\"])(?:~?/[^\s,'\"\]\)\}]+|[A-Za-z]:[\\/][^\s,'\"\]\)\}]+)")


def public_text(text: str) -> str:
    """Shorten each absolute path in the text to its last component, such as ``…/my-model``."""
    if _ABSOLUTE.match(text):
        return _last_part(text)
    return _EMBEDDED.sub(lambda match: _last_part(match[0]), text)


def public_command(command: str) -> str:
    """Shorten the absolute paths in a shell command, because they reveal user names."""
    try:
        parts = shlex.split(command)
    except ValueError:
        return fmt.printable(public_text(command))
    public_parts = [public_text(part) for part in parts]
    return fmt.printable(command if public_parts == parts else " ".join(_quote_part(part) for part in public_parts))


def study_text(study: Mapping[str, Any]) -> str:
    """Format a study as runnable YAML without null values; empty if there is no study."""
    if not study:
        return ""
    content = _publish({key: _without_nulls(value, key) for key, value in study.items() if value is not None})
    return fmt.printable(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def is_shortened(*texts: str) -> bool:
    """Return whether any of the texts contains a shortened path."""
    return any(_ELLIPSIS in text for text in texts)


def model_table(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row per model with its source, weights fingerprint, size and speed, all as text."""
    return [
        {
            "name": fmt.printable(model.get("name", fmt.DASH)),
            "kind": fmt.printable(model.get("kind") or fmt.DASH),
            "source": fmt.printable(public_text(str(model.get("source") or fmt.DASH))),
            "probe": fmt.printable(model.get("probe") or fmt.DASH),
            "fingerprint": fmt.printable(model.get("fingerprint") or fmt.DASH),
            "parameters": fmt.count(model.get("parameters")),
            "dtype": fmt.printable(model.get("dtype") or (model.get("learned") or {}).get("precision") or fmt.DASH),
            "seconds": fmt.quantity(model.get("seconds")),
            "rate": fmt.quantity(model.get("questions_per_second")),
        }
        for model in record.get("models") or ()
    ]


def environment(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return versions, machine, seed and question counts as pairs of name and value."""
    questions = record.get("questions") or {}
    pairs: list[tuple[str, Any]] = [
        ("merkhet", record.get("merkhet")),
        ("Python", record.get("python")),
        ("seed", record.get("seed")),
        ("questions", fmt.count(questions.get("count")) if questions.get("count") is not None else None),
        ("questions’ digest", questions.get("digest")),
        ("facts", fmt.count(questions.get("facts")) if questions.get("facts") is not None else None),
    ]
    pairs += [(f"questions, {task}", fmt.count(size)) for task, size in (questions.get("by_task") or {}).items()]
    pairs += [(str(name), value) for name, value in _pairs(record.get("machine"), "machine")]
    pairs += [(str(name), value) for name, value in _pairs(record.get("versions"), "versions")]
    return [(fmt.printable(name), fmt.printable(value)) for name, value in pairs if value not in (None, "")]


def _pairs(content: Any, name: str) -> list[tuple[str, Any]]:
    if not isinstance(content, Mapping):
        return [] if content is None else [(name, content)]
    return [
        (str(key), json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else value)
        for key, value in content.items()
    ]


def _without_nulls(value: Any, key: str) -> Any:
    # In options and settings, null can have a meaning.
    if key in ("options", "settings"):
        return value
    if isinstance(value, Mapping):
        return {name: _without_nulls(item, str(name)) for name, item in value.items() if item is not None}
    return [_without_nulls(item, key) for item in value] if isinstance(value, list | tuple) else value


def _publish(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _publish(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_publish(item) for item in value]
    if isinstance(value, str):
        return public_text(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _last_part(text: str) -> str:
    path = PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePosixPath(text)
    return f"{_ELLIPSIS}{path.name}"


def _quote_part(part: str) -> str:
    # A shell treats … as a letter, but shlex would quote it.
    return part if shlex.quote(part.replace("…", "")) == part.replace("…", "") else shlex.quote(part)
