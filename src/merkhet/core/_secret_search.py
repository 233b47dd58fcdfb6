"""Search for secrets in texts: whole or in part, escaped, encoded, or split over lines."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

Span = tuple[int, int]

_RUN = 12
"""Minimum length of a part of a secret that is found wherever it stands."""
EDGE = 8
"""Minimum length of the beginning or end of a secret, where the rest was cut off."""
_BLOCK = 6
"""Length of the substrings of a secret that a fast first search looks for; every match of ``_RUN`` contains one."""
_WINDOW = 1 << 16
"""Number of characters that are searched at once, which bounds the memory of a search."""
_CHARACTERS_PER_LETTER = 16
"""Maximum number of characters of a text that stand for one character of a secret: doubly escaped, with line breaks."""

_BACKSLASH = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,5}\}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|.)", re.DOTALL
)
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5}|amp|lt|gt|quot|apos);")
_ENTITY_LETTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REPEATED_ESCAPE = re.compile(r"(\\(?:u[0-9a-fA-F]{4}|.)|%[0-9a-fA-F]{2}|&[#a-zA-Z0-9]{1,8};)\1{2,}", re.DOTALL)
_WORD = re.compile(r"[a-z]{1,15}|[A-Z]{1,15}|[A-Z][a-z]{1,14}")


class _Notation(NamedTuple):
    """A notation of characters: the character it begins with, its pattern, and the function that decodes a match."""

    marker: str
    pattern: re.Pattern[str]
    decode: Callable[[str], str]

    def replace(self, text: str) -> str:
        """Decode all matches in a text."""
        return self.pattern.sub(lambda match: self.decode(match.group()), text)


def _decode_backslash(escape: str) -> str:
    if len(escape) > 2:
        return chr(int(escape[2:].strip("{}"), 16) if escape[1] in "uUx" else int(escape[1:], 8))
    return " " if escape[1] in "bfnrtv" else escape[1]


def _decode_entity(entity: str) -> str:
    name = entity[1:-1]
    if not name.startswith("#"):
        return _ENTITY_LETTERS[name]
    return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))


_JSON = _Notation("\\", _BACKSLASH, _decode_backslash)
_URL = _Notation("%", _PERCENT, lambda escape: chr(int(escape[1:], 16)))
_HTML = _Notation("&", _ENTITY, _decode_entity)
_READINGS_IN_STRING: tuple[tuple[_Notation, ...], ...] = ((), (_URL,), (_URL, _URL), (_HTML,))
_MAX_STRINGS = 3
"""Number of JSON strings within each other that are decoded."""


class _View:
    """A decoded text; each character has a start and an end in the source text."""

    def __init__(self, text: str, starts: list[int], ends: list[int]) -> None:
        self.text, self.starts, self.ends = text, starts, ends

    def decode(self, notation: _Notation) -> _View:
        letters: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for match in notation.pattern.finditer(self.text):
            begin, end = match.span()
            letters.append(self.text[position:begin])
            starts += self.starts[position:begin]
            ends += self.ends[position:begin]
            letters.append(notation.decode(match.group()))
            starts.append(self.starts[begin])
            ends.append(self.ends[end - 1])
            position = end
        letters.append(self.text[position:])
        return _View("".join(letters), starts + self.starts[position:], ends + self.ends[position:])

    def fold(self) -> _View:
        """Return the view in lower case without white space and invisible characters."""
        kept = [index for index, letter in enumerate(self.text) if letter != " " and letter.isprintable()]
        text = "".join(_lower(self.text[index]) for index in kept)
        return _View(text, [self.starts[index] for index in kept], [self.ends[index] for index in kept])


class SecretIndex:
    """Index of the substrings of all secrets, plain, Base64-encoded and in hexadecimal.

    A text is read as it stands and with escapes decoded (JSON, Python, HTML, percent-encoding, also one within
    another), without regard to case, white space and invisible characters, such as the zeros of UTF-16 that is read as
    UTF-8. It is searched for each secret itself, for its hexadecimal form, and for its Base64 form at any alignment.
    These parts are found:

    * at least 12 characters of a secret, or the whole secret if it is shorter, wherever they stand;
    * at least 8 characters from its beginning, unless a letter or digit follows them: the rest was cut off;
    * at least 8 characters from its end, unless a letter or digit precedes them.

    A beginning or end that looks like an ordinary word ("password") is not found on its own.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {_fold(form): form for secret in secrets for form in _forms(secret)}
        self._needles = {folded: form for folded, form in sorted(forms.items()) if len(folded) >= EDGE}
        self._grams: dict[int, set[str]] = {}
        blocks: set[str] = set()
        for needle in self._needles:
            size = min(_RUN, len(needle))
            self._grams.setdefault(size, set()).update(_parts(needle, size, 1))
            blocks.update(_parts(needle, _BLOCK, _RUN - _BLOCK + 1) if size == _RUN else [needle])
            blocks |= {needle[:EDGE], needle[-EDGE:]}
        self._blocks = sorted(blocks)
        self.reach = _CHARACTERS_PER_LETTER * max(map(len, self._needles), default=0)
        """Maximum number of characters in which a text writes a secret."""

    def __bool__(self) -> bool:
        return bool(self._needles)

    def find(self, text: str) -> list[Span]:
        """Return the spans of the text that hold secrets or parts of them, sorted and without overlaps."""
        if not self._needles or len(text) < EDGE:
            return []
        spans: list[Span] = []
        for start in range(0, len(text), _WINDOW):
            end = min(len(text), start + _WINDOW + self.reach)
            for reading, decoded in _decode(_shorten_repeats(text[start:end], self.reach)):
                folded = _visible(decoded.lower())
                if any(block in folded for block in self._blocks):
                    spans += self._find_in(text, start, end, reading)
        return _merge(spans)

    def _find_in(self, text: str, start: int, end: int, reading: Sequence[_Notation]) -> Iterator[Span]:
        view = _View(text[start:end], list(range(start, end)), list(range(start + 1, end + 1)))
        for notation in reading:
            view = view.decode(notation)
        view = view.fold()
        folded = view.text
        for size, grams in self._grams.items():
            for index in range(len(folded) - size + 1):
                if folded[index : index + size] in grams:
                    yield view.starts[index], view.ends[index + size - 1]
        for needle, form in self._needles.items():
            for first, last in _beginnings(folded, needle):
                after = view.ends[last - 1]
                if not is_word(form[: last - first]) and not text[after : after + 1].isalnum():
                    yield view.starts[first], after
            for first, last in _ends(folded, needle):
                before = view.starts[first]
                if not is_word(form[first - last :]) and not text[max(0, before - 1) : before].isalnum():
                    yield before, view.ends[last - 1]


def _shorten_repeats(text: str, size: int) -> str:
    """Shorten repeats of one escape to at least ``size`` of them, because millions of escapes take long to decode.

    No secret covers more. Texts with few escapes are returned as they are.
    """
    if sum(map(text.count, "\\%&")) < len(text) // 8:
        return text
    return _REPEATED_ESCAPE.sub(lambda match: match.group() if len(match.group()) < size else match[1] * size, text)


def _decode(text: str) -> Iterator[tuple[tuple[_Notation, ...], str]]:
    """Yield the readings of a text that differ, each with the decoded text."""
    for depth in range(_MAX_STRINGS + 1):
        for reading in _READINGS_IN_STRING:
            decoded = text
            for notation in reading:
                # Without its marker, decoding changes nothing, and a shorter reading covers the text.
                if notation.marker not in decoded:
                    break
                decoded = notation.replace(decoded)
            else:
                yield (_JSON,) * depth + reading, decoded
        if _JSON.marker not in text:
            return
        text = _JSON.replace(text)


def is_word(text: str) -> bool:
    """Return whether a text is fewer than 16 letters in lower case, upper case or capitalized."""
    return _WORD.fullmatch(text) is not None


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret and its encoded forms without invisible characters; escapes are decoded in the text instead."""
    # A password may be written as percent-encoded UTF-8, and bodies are searched as Latin-1.
    data = secret.encode("utf-8", "replace")
    for text in {secret, unquote(secret), data.decode("latin-1")}:
        yield _visible(text)
        yield _visible(text.strip().replace(" ", "+"))
    yield data.hex()
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        # The characters at both ends also depend on the bytes before and after the secret.
        part = encoded[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6]
        yield part
        yield part.replace("+", "-").replace("/", "_")


def _visible(text: str) -> str:
    """Remove white space, and control and format characters."""
    text = "".join(text.split())
    return text if text.isprintable() else "".join(filter(str.isprintable, text))


def _fold(text: str) -> str:
    return "".join(map(_lower, text))


def _lower(letter: str) -> str:
    return letter.lower() if letter.isascii() else letter


def _parts(text: str, size: int, step: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text) - size + 1, step)]


def _beginnings(text: str, needle: str) -> Iterator[Span]:
    """Yield the spans where the text has the beginning of the needle, as far as it goes."""
    position = text.find(needle[:EDGE])
    while position >= 0:
        length = EDGE
        while length < len(needle) and text[position + length : position + length + 1] == needle[length]:
            length += 1
        yield position, position + length
        position = text.find(needle[:EDGE], position + 1)


def _ends(text: str, needle: str) -> Iterator[Span]:
    """Yield the spans where the text has the end of the needle, as far back as it goes."""
    last = text.find(needle[-EDGE:])
    while last >= 0:
        length = EDGE
        end = last + EDGE
        while length < min(end, len(needle)) and text[end - length - 1] == needle[-length - 1]:
            length += 1
        yield end - length, end
        last = text.find(needle[-EDGE:], last + 1)


def _merge(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
