"""Readable texts of questions that compare word senses, with the word in brackets in each sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from merkhet.core import SLOT

OPEN, CLOSE = "【", "】"


def bracketed_words(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the bracketed word for each sentence (prompt or choice) of a question that compares word senses.

    The result is empty for any other question.
    """
    words = row.get("words")
    if not words:
        return {}
    texts = (row["prompt"], *(row["choices"] or ()))
    slot_words = words if len(words) > 1 else list(words) * len(texts)
    by_sentence: dict[str, str] = {}
    for text, word in zip(texts, slot_words, strict=True):
        by_sentence.setdefault(text, f"{OPEN}{word}{CLOSE}")
    return by_sentence


def fill_word(text: str, words: Mapping[str, str]) -> str:
    """Fill the slot of a sentence with its bracketed word, as in 还有上网【口】。

    A text that is not a key of ``words`` is returned unchanged.
    """
    return text.replace(SLOT, words[text], 1) if text in words else text
