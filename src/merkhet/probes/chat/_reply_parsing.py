"""What a reply says: strictly, so that a reply which does not answer counts as none, and a refusal as such."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
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
_SAID = re.compile(
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
_LONGEST = 200
_ENOUGH_AROUND = 5


@dataclass(frozen=True)
class Said:
    """What a reply comes to: an outcome, and where it answered, what it says."""

    outcome: str
    text: str | None = None


def is_refusal(reply: ChatReply) -> bool:
    """Whether a model declines: whoever serves it says so, or it does in words."""
    return reply.refused or bool(_REFUSAL.search(reply.text.strip()))


def chosen(reply: ChatReply, letters: Sequence[str], choices: Sequence[str]) -> Said:
    """The choice that a reply names, by its letter or in its own words; both must agree where both are there.

    A letter stands alone, before a mark ("B.", "(B)", "B: Paris") or after "answer" ("The answer is B"). A reply that
    names none, or two, gives no answer.
    """
    text = reply.text.strip()
    by_text = {_plain(choice): choice for choice in choices}
    whole = by_text.get(_plain(_OPENING.sub("", text)))
    if whole is not None:
        return Said(ANSWERED, whole)
    named = _LETTER.match(text)
    if named and named[1] in letters:
        choice = choices[list(letters).index(named[1])]
        rest = _plain(text[named.end() :].splitlines()[0] if text[named.end() :].strip() else "")
        if rest in by_text and by_text[rest] != choice:
            return Said(NO_ANSWER)
        return Said(ANSWERED, choice)
    if is_refusal(reply):
        return Said(REFUSED)
    # Of blanks one stands for all: over many, a pattern that may take them in several places tries every way.
    said = {found[1].upper() for found in _SAID.finditer(" ".join(text.split()))} & set(letters)
    if len(said) == 1:
        return Said(ANSWERED, choices[list(letters).index(said.pop())])
    return Said(NO_ANSWER)


def written(reply: ChatReply, before: str = "", after: str = "") -> Said:
    """The words that a reply answers with: its first line without "The answer is" and marks around it.

    ``before`` and ``after`` stand around the blank: of a reply that is the whole sentence, what fills the blank counts.
    """
    text = reply.text.strip()
    if is_refusal(reply):
        return Said(REFUSED)
    lines = [line.strip() for line in text.splitlines() if any(letter.isalnum() for letter in line)]
    if not lines:
        return Said(NO_ANSWER)
    line = _OPENING.sub("", lines[0]) or (lines[1] if len(lines) > 1 else "")
    line = _unmarked(_filled(_unmarked(line), before, after))
    if not any(letter.isalnum() for letter in line) or len(line) > _LONGEST:
        return Said(NO_ANSWER)
    return Said(ANSWERED, line)


def _filled(line: str, before: str, after: str) -> str:
    """What fills the blank, where the line is the sentence with the blank filled; else the line."""
    head, tail = (" ".join(part.split()).rstrip(".。") for part in (before, after))
    if len(head) + len(tail) < _ENOUGH_AROUND:
        return line
    begins = re.match(re.escape(head), line, re.IGNORECASE)
    rest = line[begins.end() :] if begins else ""
    if not rest:
        return line
    # What comes after the tail holds no word. Sought from there: one pattern for all would try every pair of places.
    words_end = len(rest)
    while words_end and not (rest[words_end - 1].isalnum() or rest[words_end - 1] == "_"):
        words_end -= 1
    if not tail:
        return rest[: max(1, words_end)].strip()
    ends = re.compile(re.escape(tail), re.IGNORECASE).search(rest, max(1, words_end - len(tail)))
    return rest[: ends.start()].strip() if ends else line


def _unmarked(line: str) -> str:
    return line.strip().strip("*_`\"'“”‘’「」《》 ").rstrip(".。").strip()


def decided(reply: ChatReply, names: Sequence[Sequence[str]]) -> Said:
    """Which of a few things a reply says first: each has its names, the first of which is returned."""
    text = _plain(_OPENING.sub("", reply.text.strip()))
    for own in names:
        if text in {_plain(name) for name in own}:
            return Said(ANSWERED, own[0])
    if is_refusal(reply):
        return Said(REFUSED)
    found = [own[0] for own in names if any(_begins(text, _plain(name)) for name in own)]
    return Said(ANSWERED, found[0]) if len(found) == 1 else Said(NO_ANSWER)


def _begins(text: str, name: str) -> bool:
    """Whether the text begins with a name that ends there; Chinese words are not set apart by blanks."""
    after = text[len(name) : len(name) + 1]
    return text.startswith(name) and not (after.isalnum() and name[-1:].isascii())


def _plain(text: str) -> str:
    """A text without case, marks around it and doubled blanks."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = " ".join(text.split())
    return text.strip(" \t.,;:!?\"'*_`()[]{}“”‘’。，；：！？、（）【】《》「」")
