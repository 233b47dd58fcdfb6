"""Plain Python wording of templates: the oracle for sentences made by SQL."""

from __future__ import annotations

import re

from merkhet.core import SLOT
from merkhet.questions.english import FORMS, capitalize
from merkhet.questions.templates import PLACEHOLDER


def fill_template(template: str, values: dict[str, str], asked: str | None = None) -> str:
    """Fill the placeholders of a template, the asked one with the slot, and capitalize the sentence."""

    def replace(match: re.Match[str]) -> str:
        return SLOT if match[2] == asked else FORMS[match[1] or ""](values[match[2]])

    return capitalize(PLACEHOLDER.sub(replace, template))


def format_answer(template: str, asked: str, name: str) -> str:
    """Format a name for the slot: in its form, and capitalized at the start of the sentence."""
    (match,) = [match for match in PLACEHOLDER.finditer(template) if match[2] == asked]
    formed = FORMS[match[1] or ""](name)
    return capitalize(formed) if match.start() == 0 else formed
