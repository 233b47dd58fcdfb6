"""How a run can be repeated: its command and study as a reader can use them, the models, the environment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import yaml

from merkhet.reports import formatting as show

SHORTENED = "…/"
_ABSOLUTE = re.compile(r"^(?:file:)?(?:~?/+[^/\s]|[A-Za-z]:[\\/]|\\\\)")
_INSIDE = re.compile(r"(?<=[=,\[\(\{\s'\"])(?:~?/[^\s,'\"\]\)\}]+|[A-Za-z]:[\\/][^\s,'\"\]\)\}]+)")


def public_text(text: str) -> str:
    """A text in which a place on somebody's machine is only its last part: ``…/my-model``."""
    if _ABSOLUTE.match(text):
        return _last(text)
    return _INSIDE.sub(lambda found: _last(found[0]), text)


def public_command(command: str) -> str:
    """A command as it was typed, but for absolute places, which name their user and mean nothing elsewhere."""
    try:
        parts = shlex.split(command)
    except ValueError:
        return show.printable(public_text(command))
    shown = [public_text(part) for part in parts]
    return show.printable(command if shown == parts else " ".join(_quoted(part) for part in shown))


def study_text(study: Mapping[str, Any]) -> str:
    """A study as YAML that can be saved and run; what a study leaves open anyway is left out."""
    if not study:
        return ""
    content = _public({key: _given(value, key) for key, value in study.items() if value is not None})
    return show.printable(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def is_shortened(*texts: str) -> bool:
    """Whether places were shortened in any of these."""
    return any(SHORTENED in text for text in texts)


def model_table(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """The models as they were run: where from, the weights' hash, size, speed."""
    return [
        {
            "name": show.printable(model.get("name", show.DASH)),
            "kind": show.printable(model.get("kind") or show.DASH),
            "source": show.printable(public_text(str(model.get("source") or show.DASH))),
            "probe": show.printable(model.get("probe") or show.DASH),
            "fingerprint": show.printable(model.get("fingerprint") or show.DASH),
            "parameters": show.count(model.get("parameters")),
            "dtype": show.printable(model.get("dtype") or (model.get("learned") or {}).get("precision") or show.DASH),
            "seconds": show.quantity(model.get("seconds")),
            "rate": show.quantity(model.get("questions_per_second")),
        }
        for model in record.get("models") or ()
    ]


def environment(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else the run depended on, as pairs of a name and a value."""
    questions = record.get("questions") or {}
    pairs: list[tuple[str, Any]] = [
        ("merkhet", record.get("merkhet")),
        ("Python", record.get("python")),
        ("seed", record.get("seed")),
        ("questions", show.count(questions.get("count")) if questions.get("count") is not None else None),
        ("questions’ digest", questions.get("digest")),
        ("facts", show.count(questions.get("facts")) if questions.get("facts") is not None else None),
    ]
    pairs += [(f"questions, {task}", show.count(size)) for task, size in (questions.get("by_task") or {}).items()]
    pairs += [(str(name), value) for name, value in _pairs(record.get("machine"), "machine")]
    pairs += [(str(name), value) for name, value in _pairs(record.get("versions"), "versions")]
    return [(show.printable(name), show.printable(value)) for name, value in pairs if value not in (None, "")]


def _pairs(content: Any, name: str) -> list[tuple[str, Any]]:
    if not isinstance(content, Mapping):
        return [] if content is None else [(name, content)]
    return [
        (str(key), json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else value)
        for key, value in content.items()
    ]


def _given(value: Any, key: str) -> Any:
    """The value without keys that hold nothing; in options and settings nothing may mean something."""
    if key in ("options", "settings"):
        return value
    if isinstance(value, Mapping):
        return {name: _given(one, str(name)) for name, one in value.items() if one is not None}
    return [_given(one, key) for one in value] if isinstance(value, list | tuple) else value


def _public(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _public(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_public(one) for one in value]
    if isinstance(value, str):
        return public_text(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _last(place: str) -> str:
    path = PureWindowsPath(place) if "\\" in place or place[1:2] == ":" else PurePosixPath(place)
    return f"{SHORTENED}{path.name}"


def _quoted(part: str) -> str:
    """A part of a command quoted where a shell needs it; … is a letter to it."""
    return part if shlex.quote(part.replace("…", "")) == part.replace("…", "") else shlex.quote(part)
