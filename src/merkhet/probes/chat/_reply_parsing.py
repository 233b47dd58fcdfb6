"""Strict parsing of replies into answers, refusals and replies without an answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.models.chat.chat_messages import ChatReply

ANSWERED, NO_ANSWER, REFUSED = "answered", "no answer", "refused"

_REFUSAL = re.compile(
    r"^\W*(?:unfortunately,? )?(?:"
    r"i(?:'m| am) (?:sorry|unable|not able|afraid|not allowed)|sorry\b|i apologi[sz]e"
    r"|i (?:can(?:no|')t|can not|won't|will not) (?:answer|help|assist|provide|comply|choose|say|do|fulfill|respond)"
    r"|as an ai\b|as an? (?:large )?(?:ai )?language model"
    r"|抱歉|对不起|很遗憾|作为(?:一个|一名)?(?:ai|人工智能|语言模型)|我(?:无法|不能|不便)|无法回答|不能回答)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"^[\s*_`\"'“‘(\[（【]*([A-Z])[*_`\"'”’)\]）】]*\s*(?:$|[.:)、，,：．。\n])")
_LETTER_IN_SENTENCE = re.compile(
    r"(?:answer|choice|option|letter|答案|选项)(?:\s+(?:is|would be|to choose is))?\s*(?:是|为|应为|选)?\s*[:：]?\s*"
    r"[*_`\"'“‘(\[（【]*([A-Z])\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:the\s+)?(?:correct\s+|missing\s+|right\s+)?(?:answer|choice|option|word|blank)s?"
    r"(?:\s+(?:is|are|would be)\b\s*[:：]?|\s*[:：])\s*"
    r"|^(?:答案|空白处)(?:是|为)?\s*[:：]?\s*",
    re.IGNORECASE,
)
_MAX_CHARACTERS = 200
_MIN_CONTEXT = 5
"""The minimum number of characters around the blank for recognizing a reply that repeats the sentence."""


@dataclass(frozen=True)
class ParsedReply:
    """The outcome of a reply (answered, no answer, refused), and its answer or None."""

    outcome: str
    text: str | None = None


def is_refusal(reply: ChatReply) -> bool:
    """Return whether a reply declines to answer, according to the model's server or to the reply's text."""
    return reply.refused or bool(_REFUSAL.search(reply.text.strip()))


def parse_choice(
    reply: ChatReply, letters: Sequence[str], choices: Sequence[str], aliases: Mapping[str, str] | None = None
) -> ParsedReply:
    """Parse the choice that a reply names by its letter or by its text; if both are given, they must agree.

    A letter is recognized alone, before punctuation ("B.", "(B)", "B: Paris") or after "answer" ("The answer is B"). A
    reply that names no choice, or two choices, has no answer.

    Args:
        aliases: Choices by their other names.
    """
    text = reply.text.strip()
    by_text = {_normalize(alias): choice for alias, choice in (aliases or {}).items()}
    by_text |= {_normalize(choice): choice for choice in choices}
    named_choice = by_text.get(_normalize(_OPENING.sub("", text)))
    if named_choice is not None:
        return ParsedReply(ANSWERED, named_choice)
    letter = _LETTER.match(text)
    if letter and letter[1] in letters:
        choice = choices[list(letters).index(letter[1])]
        rest = _normalize(text[letter.end() :].splitlines()[0] if text[letter.end() :].strip() else "")
        if rest in by_text and by_text[rest] != choice:
            return ParsedReply(NO_ANSWER)
        return ParsedReply(ANSWERED, choice)
    if is_refusal(reply):
        return ParsedReply(REFUSED)
    # Whitespace is collapsed first: the pattern would backtrack quadratically over long runs of it.
    matches = _LETTER_IN_SENTENCE.finditer(" ".join(text.split()))
    named_letters = {match[1].upper() for match in matches} & set(letters)
    if len(named_letters) == 1:
        return ParsedReply(ANSWERED, choices[list(letters).index(named_letters.pop())])
    return ParsedReply(NO_ANSWER)


def parse_answer(reply: ChatReply, before: str = "", after: str = "") -> ParsedReply:
    """Parse the answer of a reply: its first line, without "The answer is" and surrounding punctuation.

    If the reply repeats the sentence, the texts ``before`` and ``after`` the blank are removed.
    """
    text = reply.text.strip()
    if is_refusal(reply):
        return ParsedReply(REFUSED)
    lines = [line.strip() for line in text.splitlines() if any(character.isalnum() for character in line)]
    if not lines:
        return ParsedReply(NO_ANSWER)
    line = _OPENING.sub("", lines[0]) or (lines[1] if len(lines) > 1 else "")
    line = _strip_marks(_extract_blank(_strip_marks(line), before, after))
    if not any(character.isalnum() for character in line) or len(line) > _MAX_CHARACTERS:
        return ParsedReply(NO_ANSWER)
    return ParsedReply(ANSWERED, line)


def _extract_blank(line: str, before: str, after: str) -> str:
    """Return the text that fills the blank if ``line`` repeats the sentence; otherwise return ``line``."""
    head, tail = (" ".join(part.split()).rstrip(".。") for part in (before, after))
    if len(head) + len(tail) < _MIN_CONTEXT:
        return line
    head_match = re.match(re.escape(head), line, re.IGNORECASE)
    rest = line[head_match.end() :] if head_match else ""
    if not rest:
        return line
    # No word may follow the tail, so its search starts near the end. A single pattern would need quadratic time.
    words_end = len(rest)
    while words_end and not (rest[words_end - 1].isalnum() or rest[words_end - 1] == "_"):
        words_end -= 1
    if not tail:
        return rest[: max(1, words_end)].strip()
    tail_match = re.compile(re.escape(tail), re.IGNORECASE).search(rest, max(1, words_end - len(tail)))
    return rest[: tail_match.start()].strip() if tail_match else line


def _strip_marks(line: str) -> str:
    return line.strip().strip("*_`\"'“”‘’「」《》 ").rstrip(".。").strip()


def parse_verdict(reply: ChatReply, verdicts: Sequence[Sequence[str]]) -> ParsedReply:
    """Parse the verdict at the beginning of a reply.

    Each verdict is a list of names; the result has the first name of the verdict that the reply names.
    """
    text = _normalize(_OPENING.sub("", reply.text.strip()))
    for names in verdicts:
        if text in {_normalize(name) for name in names}:
            return ParsedReply(ANSWERED, names[0])
    if is_refusal(reply):
        return ParsedReply(REFUSED)
    matches = [names[0] for names in verdicts if any(_begins_with(text, _normalize(name)) for name in names)]
    return ParsedReply(ANSWERED, matches[0]) if len(matches) == 1 else ParsedReply(NO_ANSWER)


def _begins_with(text: str, name: str) -> bool:
    """Return whether a text begins with ``name`` as a whole word; after a Chinese name any character may follow."""
    next_character = text[len(name) : len(name) + 1]
    return text.startswith(name) and not (next_character.isalnum() and name[-1:].isascii())


def _normalize(text: str) -> str:
    """Normalize Unicode, case and whitespace, and strip surrounding punctuation."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = " ".join(text.split())
    return text.strip(" \t.,;:!?\"'*_`()[]{}“”‘’。，；：！？、（）【】《》「」")
