"""Questions that compare senses as people read them: every sentence with its word in place, between brackets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from merkhet.core import SLOT

OPEN, CLOSE = "【", "】"


def bracketed_words(row: Mapping[str, Any]) -> dict[str, str]:
    """For each sentence of a row of questions (the prompt and the choices) the word that stands in its slot, bracketed.

    Empty for a question that does not compare senses.
    """
    words = row.get("words")
    if not words:
        return {}
    texts = (row["prompt"], *(row["choices"] or ()))
    every = words if len(words) > 1 else list(words) * len(texts)
    found: dict[str, str] = {}
    for text, word in zip(texts, every, strict=True):
        found.setdefault(text, f"{OPEN}{word}{CLOSE}")
    return found


def fill_word(text: str, words: Mapping[str, str]) -> str:
    """A sentence with its word in place: 还有上网【口】。 A text that has none stays as it is."""
    return text.replace(SLOT, words[text], 1) if text in words else text
