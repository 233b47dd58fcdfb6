"""Marks in prompts that are no words of any language: pseudowords and soft tokens."""

from __future__ import annotations

import re

MARKS = ("[X]", "[Y]")
"""What stands in a prompt for the two pseudowords of a pair."""
SOFT_TOKEN = re.compile(r"<[A-Za-z]+\d+>")
"""What stands in a prompt for an embedding that is learned."""


def with_letters(prompt: str) -> str:
    """A prompt for models that take text alone: X and Y stand for the pseudowords."""
    for mark in MARKS:
        prompt = prompt.replace(mark, mark.strip("[]"))
    return prompt
