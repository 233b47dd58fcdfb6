"""Citations of a report: BibTeX entries of merkhet, the suite and the statistical methods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

_SOFTWARE = """@software{merkhet,
  author = {{The merkhet authors}},
  title = {merkhet: measuring what language models know}%s
}"""
_FIELD = re.compile(r'\b(author|title|year)\s*=\s*[{"](.*?)["}]\s*(?:,|\}|$)', re.DOTALL | re.IGNORECASE)
_SPECIAL = re.compile(r"[&%$#_]")


class StatisticsCiter:
    """In-text citations of statistical sources; collects the cited BibTeX keys in ``keys``."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}

    def __call__(self, key: str) -> str:
        """Return the in-text citation of a source, in the style of :func:`cite_in_text`."""
        self.keys[key] = None
        return _author_year(_statistics_entries()[key])


def bibliography(version: str, suite: str, citations: Iterable[str], statistics: Iterable[str]) -> list[str]:
    """Return the BibTeX entries of merkhet, the suite and the statistical sources, without duplicate keys.

    Args:
        citations: The suite's citations; a plain-text citation becomes a ``@misc`` entry with a note.
        statistics: BibTeX keys of the cited statistical sources.
    """
    software = _SOFTWARE % (f",\n  version = {{{version}}}" if version else "")
    suite_entries = [
        text.strip() if text.lstrip().startswith("@") else _misc_entry(f"{_key(suite)}-{number}", text)
        for number, text in enumerate(citations, 1)
    ]
    entries: dict[str, str] = {}
    for entry in (software, *suite_entries, *(_statistics_entries()[key] for key in statistics)):
        entries.setdefault(_entry_key(entry), entry)
    return list(entries.values())


def cite_in_text(citations: Sequence[str]) -> str:
    """Return the in-text citation of BibTeX entries, such as ``Gao et al., 2022; Heinzerling and Inui, 2021``.

    An entry without authors is cited by its title. Plain-text citations are skipped.
    """
    names = (_author_year(text) for text in citations if text.lstrip().startswith("@"))
    return "; ".join(cited for cited in names if cited)


@cache
def _statistics_entries() -> dict[str, str]:
    content = (files("merkhet.reports") / "templates" / "statistics.bib").read_text(encoding="utf-8")
    return {_entry_key(entry): entry for entry in content.strip().split("\n\n")}


def _entry_key(entry: str) -> str:
    return entry.partition(",")[0].partition("{")[2].strip()


def _author_year(entry: str) -> str:
    fields = {name.lower(): " ".join(value.split()) for name, value in _FIELD.findall(entry)}
    names = [_family_name(name) for name in fields["author"].split(" and ")] if "author" in fields else []
    if not names and "title" in fields:
        names = [f"“{fields['title'].replace('{', '').replace('}', '')}”"]
    if len(names) > 2:
        names = [f"{names[0]} et al."]
    return ", ".join(part for part in (" and ".join(names), fields.get("year", "")) if part)


def _family_name(name: str) -> str:
    if name.startswith("{"):
        return name.strip("{}")
    return name.partition(",")[0] if "," in name else name.rpartition(" ")[2]


def _key(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-").lower() or "suite"


def _misc_entry(key: str, text: str) -> str:
    """Make a BibTeX ``@misc`` entry from plain text; TeX markup is escaped or removed."""
    plain = _SPECIAL.sub(lambda match: "\\" + match[0], re.sub(r"[{}\\]", "", " ".join(text.split())))
    years = re.findall(r"\b(?:19|20)\d\d\b", plain)
    year = f",\n  year = {{{years[-1]}}}" if years else ""
    return f"@misc{{{key},\n  note = {{{plain}}}{year}\n}}"
