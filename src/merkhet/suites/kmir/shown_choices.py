"""Choices that published questions show in their text, such as "Among A, B, C, and D, [MASK] is the outlier"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from merkhet.core import SLOT

CHOICES = 4
"""Number of choices that a published question shows."""

# A comma between two digits is part of a name (1,2-dichloroethane), and so is one before "Jr." or "Inc.".
_SEPARATOR = re.compile(
    r"\s*(?:(?<!\d),|,(?!\d))(?!\s*(?:Jr|Sr|Inc|Ltd|LLC|Co|D\.C|II|III|IV)\b)\s*|\s*[;，；、|]\s*|\s+/\s+|\s*\n\s*"
)
_REGION_END = re.compile(rf"{re.escape(SLOT)}|\?\s|\?$|:\s|[\[\](){{}}]|\.\s(?=[A-Z])|\.$")
_LAST = re.compile(r"^(?:and|or|&)\s+", re.IGNORECASE)
_LAST_WITHIN = re.compile(r"\s+(?:and|or|&)\s+", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:(?:please\s+)?(?:choose|pick|select)\s+)?(?:one\s+)?(?:out\s+)?(?:among|amongst|of|from|between)\s+"
    r"(?:the\s+following\s+(?:\w+\s+)?|these\s+)?|^(?:choices|options)\s+",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?:^|(?<=[\s,;(]))\(?([A-Ha-h])[.)](?=\s)\s*")
_CLAIMS = re.compile(
    r"\bfollowing\b|^(?:among|choose|pick|select)\b|\bchoices\b|\boptions\b|\boutlier\b|\bdifferent (?:with|from)\b"
    r"|^(?:which|what|who)\b.*,\s*(?:and|or)\s",
    re.IGNORECASE | re.DOTALL,
)
_PROTECTED = "\ue000{}\ue001"
_PROTECTED_NAME = re.compile("\ue000(\\d+)\ue001")


def claims_choices(prompt: str) -> bool:
    """Return whether the words of a prompt announce choices, as in "which of the following"."""
    return bool(_CLAIMS.search(prompt.strip()))


def find_choices(prompt: str, answers: Sequence[str], names: Collection[str] = ()) -> tuple[str, ...] | None:
    """Find the choices in the text of a prompt.

    The choices are a list, before or after the question, with a right answer in it: separated by commas, semicolons
    or lines, with or without "and" or "or", or lettered. A name may contain a comma: the right answers and ``names``
    are kept whole, and the list must have four items, or fewer if it stands alone.

    Args:
        names: Names with separators in them, which are not cut.

    Returns:
        The choices in their order, a right answer spelled as in ``answers``; None if no list is certain.
    """
    text, kept = _protect(prompt, [*answers, *names])
    right = {answer.casefold(): answer for answer in reversed(answers)}

    def restore(piece: str) -> str:
        whole = _PROTECTED_NAME.sub(lambda match: kept[int(match[1])], piece.strip(" \"'“”"))
        return right.get(whole.casefold()) or right.get(whole.rstrip(".").casefold()) or whole

    lists = [*_lettered_lists(text), *(pieces for region in _regions(text) for pieces in _lists(*region))]
    for pieces in lists:
        choices = tuple(restore(piece) for piece in pieces)
        distinct = {choice.casefold() for choice in choices}
        if all(choices) and len(distinct) == len(choices) and distinct & right.keys():
            return choices
    return None


def has_separator(name: str) -> bool:
    """Return whether a name contains text that separates choices or ends a list."""
    return bool(_SEPARATOR.search(name) or _LAST_WITHIN.search(name) or _REGION_END.search(name))


def _protect(prompt: str, names: Iterable[str]) -> tuple[str, list[str]]:
    """Replace names that contain separators by placeholders, the longest first."""
    kept: list[str] = []
    lower = prompt.lower()
    present = {name for name in names if has_separator(name) and name.lower() in lower}
    for name in sorted(present, key=lambda name: (-len(name), name)):
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        prompt, count = pattern.subn(_PROTECTED.format(len(kept)), prompt)
        if count:
            kept.append(name)
    return prompt, kept


def _regions(text: str) -> list[tuple[str, bool, bool]]:
    """Cut a text at slots, question marks, colons, brackets and full stops.

    Returns:
        Each region with text, whether it stands alone after a question mark, colon or bracket, and whether it begins
        the text.
    """
    regions, start, alone = [], 0, False
    for match in [*_REGION_END.finditer(text), None]:
        region = text[start : match.start() if match else len(text)].strip(" ,;\n")
        if region:
            regions.append((region, alone, start == 0))
        if match:
            start, alone = match.end(), match[0].strip() in ("?", ":", "(", "[", "{")
    return regions


def _lists(region: str, alone: bool, first: bool) -> Iterable[list[str]]:
    """Yield the lists that a region may contain, the most certain first."""
    pieces = [piece.strip() for piece in _SEPARATOR.split(region) if piece.strip()]
    end = next((index for index, piece in enumerate(pieces) if _LAST.match(piece)), None)
    if end is not None:
        pieces = [*pieces[:end], _LAST.sub("", pieces[end]), *pieces[end + 1 :]]
        yield from _windows(pieces, end, alone, first)
        return
    if pieces and _LAST_WITHIN.search(pieces[-1]):
        # "A, B, C and D"; the last "and" separates, because earlier ones are more often part of a name.
        *_, match = _LAST_WITHIN.finditer(pieces[-1])
        split = [*pieces[:-1], pieces[-1][: match.start()], pieces[-1][match.end() :]]
        yield from _windows(split, len(split) - 1, alone, first)
    yield from _windows(pieces, len(pieces) - 1, alone, first)


def _windows(pieces: list[str], end: int, alone: bool, first: bool) -> Iterable[list[str]]:
    head = pieces[: end + 1]
    lead = _LEAD.match(head[0]) if head else None
    if lead:
        head = [head[0][lead.end() :], *head[1:]]
    begins = alone or bool(lead) or (first and end < len(pieces) - 1)
    if len(head) == CHOICES:
        yield head
    elif begins:
        # The list has no words before it: more pieces than choices are names that contain a comma.
        if 1 < len(head) < CHOICES:
            yield head
    elif len(head) == CHOICES + 1:
        yield head[1:]  # The first piece is the question: "Which person can hold a concert, A, B, C, or D?"


def _lettered_lists(text: str) -> Iterable[list[str]]:
    """Yield the list of a text with lettered choices such as "A. iron B. gold"."""
    matches = list(_LETTER.finditer(text))
    start = next((index for index, match in enumerate(matches) if match[1].upper() == "A"), None)
    if start is None:
        return
    run = [matches[start]]
    for match in matches[start + 1 :]:
        if ord(match[1].upper()) == ord(run[-1][1].upper()) + 1:
            run.append(match)
    if len(run) < 2:
        return
    ends = [match.start() for match in run[1:]]
    rest = text[run[-1].end() :]
    stop = _REGION_END.search(rest)
    ends.append(run[-1].end() + (stop.start() if stop else len(rest)))
    bodies = [
        _LAST.sub("", text[match.end() : end].strip(" ,;")).strip(" ,;") for match, end in zip(run, ends, strict=True)
    ]
    yield [re.sub(r"[,;]?\s+(?:and|or)$", "", body) for body in bodies]
    yield [match[1] for match in run]
