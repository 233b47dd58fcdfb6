"""What classes, properties and instances are called: their labels, or identifiers that can be read as words."""

from __future__ import annotations

import re
from urllib.parse import unquote

# A new word begins at a capital: soccerPlayer, TVSeries, 3DModel.
_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=\d+[A-Z])|[_\s]+")
_NUMBERED = re.compile(r"[A-Za-z]{0,6}[_-]?\d+(-[a-z])?|.*\d{5,}")


def local_name(entity: str) -> str:
    """The last part of an identifier: SoccerPlayer of ``dbo:SoccerPlayer`` and of ``http://e.org/x#SoccerPlayer``."""
    return unquote(re.split(r"[/#:]", entity.rstrip("/#:"))[-1])


def words_of(identifier: str) -> str:
    """An identifier as words, in lower case but for abbreviations: ``TV series`` for TVSeries."""
    words = [word for word in _BORDER.split(identifier.replace("-", " ")) if word]
    # One capital between words is an article or an initial: only what has several is spelt by letters.
    return " ".join(
        word if sum(map(str.isupper, word)) > 1 or re.match(r"\d", word) else word.lower() for word in words
    )


def term_name(entity: str, label: str | None, language: str) -> str | None:
    """What a class or a property is called, or None if neither a label nor the identifier tells it.

    An English label that only repeats the identifier (``CreativeWork``, as schema.org has them) is read as one.
    """
    label = " ".join((label or "").split())
    local = local_name(entity)
    if label and not (label == local and language.startswith("en")):
        return label
    return None if not label and _is_number(local) else words_of(local) or None


def instance_name(entity: str, label: str | None) -> str | None:
    """What an instance is called: its label, or its identifier with blanks for underscores, as DBpedia has them."""
    label = " ".join((label or "").split())
    local = local_name(entity)
    return label or (None if _is_number(local) else " ".join(local.replace("_", " ").split()) or None)


def _is_number(local: str) -> bool:
    """Whether an identifier is a number rather than a name: Q42, IAO_0000115, 00001740-n."""
    return _NUMBERED.fullmatch(local) is not None
