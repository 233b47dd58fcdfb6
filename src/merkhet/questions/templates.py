"""Sentence templates with placeholders.

The placeholders are ``{subject}``, ``{object}``, ``{start}`` and ``{end}``. A form may precede the placeholder's name:
``{a object}`` adds "a" or "an" to the name, ``{the object}`` adds "the" if a proper name needs it, and
``{plural object}`` is the plural. ``{start}`` is a year, and ``{date start}`` the day, if it is known. The template of
a statement contains both the subject and the object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.questions.english import FORMS

PLACEHOLDERS = ("subject", "object", "start", "end")
TIMES = ("start", "end")
DATE_FORM = "date"
"""Form of a time that says the day, if it is known: "20 July 1969" instead of "1969"."""
PLACEHOLDER = re.compile(r"\{(?:(\w+) )?(\w+)\}")


def placeholder_names(template: str) -> list[str]:
    """Return the names of the placeholders of a template, in their order."""
    return [match[2] for match in PLACEHOLDER.finditer(template)]


def check_placeholders(template: str, known: tuple[str, ...], required: set[str], where: str) -> None:
    """Check that a template has only known placeholders and forms, and each required placeholder exactly once.

    Raises:
        InputError: The check fails; ``where`` is the location for the message.
    """
    for match in PLACEHOLDER.finditer(template):
        if match[2] not in known:
            raise InputError(
                f"{where}: {match[0]} in {template!r} is not a placeholder; {did_you_mean(match[2], known)}"
            )
        if match[1] == DATE_FORM and match[2] in TIMES and known == PLACEHOLDERS:
            continue
        if (match[1] or "") not in FORMS:
            hint = did_you_mean(match[1], [form for form in FORMS if form])
            raise InputError(f"{where}: {match[1]!r} in {match[0]} is not a form; {hint}")
    stray = re.search(r"[{}]", PLACEHOLDER.sub("", template))
    if stray:
        raise InputError(f"{where}: {template!r} has a {stray[0]!r} outside of any placeholder; correct or remove it")
    for name in sorted(required):
        if placeholder_names(template).count(name) != 1:
            raise InputError(f"{where}: {template!r} must name {{{name}}} exactly once")


def refuse_unknown_keys(content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Raise an error for unknown keys, with the most similar known key as a suggestion for each."""
    faults = FaultList()
    for key in content:
        if key not in known:
            faults.add(f"{where}: there is no key {key!r}; {did_you_mean(str(key), known)}")
    faults.refuse()
