"""Strict decoding of JSON: no NaN, no infinite numbers, no repeated keys."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_TOKEN = re.compile(
    r""""(?P<text>(?:[^"\\]|\\.)*)"|(?P<constant>-?Infinity|NaN)|(?P<number>-?\d[\d.eE+-]*)|(?P<mark>[{}\[\]:,])""",
    re.DOTALL,
)
_MAY_OVERFLOW = re.compile(r"[eE]\+?0*[1-9]\d{2}|\d{309}")
"""A large exponent or a long number; no other number is read as infinity."""


class _StrictnessError(ValueError):
    """Something that the json module accepts and JSON does not."""


def decode_json(text: str) -> Any:
    """Decode JSON as the standard defines it.

    The json module also accepts NaN and Infinity, reads 1e999 as infinity, and keeps the last of several equal keys.

    Raises:
        json.JSONDecodeError: The text is not JSON, or has one of these; the error has the position.
        ValueError: An integer has too many digits.
        RecursionError: The JSON is too deeply nested.
    """
    try:
        content = _DECODER.decode(text)
    except _StrictnessError as error:
        raise _find_fault(text) or json.JSONDecodeError(str(error), text, 0) from None
    if _MAY_OVERFLOW.search(text):
        fault = _find_fault(text)
        if fault is not None:
            raise fault
    return content


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _StrictnessError("a repeated key")
    return content


def _refuse_constant(name: str) -> Any:
    raise _StrictnessError(f"{name} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)


def _find_fault(text: str) -> json.JSONDecodeError | None:
    """Return the first fault of a text that the json module accepts, with its position."""
    open_: list[set[str] | None] = []
    """Keys of each open object; None for a list."""
    expects_key = False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "mark":
            mark = token["mark"]
            if mark in "{[":
                open_.append(set() if mark == "{" else None)
            elif mark in "}]" and open_:
                open_.pop()
            expects_key = mark in "{," and bool(open_) and open_[-1] is not None
        elif kind == "text" and expects_key and open_ and open_[-1] is not None:
            key = json.loads(token[0], strict=False)
            if key in open_[-1]:
                return json.JSONDecodeError(f"the key {_short(key)} is repeated", text, token.start())
            open_[-1].add(key)
            expects_key = False
        elif kind == "constant":
            return json.JSONDecodeError(f"{token[0]} is not a number in JSON", text, token.start())
        elif kind == "number" and _MAY_OVERFLOW.search(token[0]) and _is_infinite(token[0]):
            return json.JSONDecodeError("the number is too large", text, token.start())
    return None


def _is_infinite(number: str) -> bool:
    # An integer has any number of digits; only fractions and powers become infinity.
    try:
        return not number.removeprefix("-").isdigit() and math.isinf(float(number))
    except ValueError:
        return False


def _short(key: str) -> str:
    text = ascii(key) if any("\ud800" <= letter <= "\udfff" for letter in key) else repr(key)
    return text if len(text) <= 60 else f"{text[:57]}..."
