"""Citations of a report as BibTeX: merkhet, the suite, and the statistics used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

EFRON, HESTERBERG, CAMERON = "efron1987", "hesterberg2015", "cameron2011"
HOLM, BENJAMINI, MCNEMAR, OBUCHOWSKI = "holm1979", "benjamini1995", "mcnemar1947", "obuchowski1998"
_TITLE = "merkhet: measuring what language models know"
_AUTHORS = "The merkhet authors"
_STATISTICS = {
    EFRON: """@article{efron1987,
  author = {Efron, Bradley},
  title = {Better Bootstrap Confidence Intervals},
  journal = {Journal of the American Statistical Association},
  volume = {82},
  number = {397},
  pages = {171--185},
  year = {1987}
}""",
    HESTERBERG: """@article{hesterberg2015,
  author = {Hesterberg, Tim C.},
  title = {What Teachers Should Know About the Bootstrap: Resampling in the Undergraduate Statistics Curriculum},
  journal = {The American Statistician},
  volume = {69},
  number = {4},
  pages = {371--386},
  year = {2015}
}""",
    OBUCHOWSKI: """@article{obuchowski1998,
  author = {Obuchowski, Nancy A.},
  title = {On the Comparison of Correlated Proportions for Clustered Data},
  journal = {Statistics in Medicine},
  volume = {17},
  number = {13},
  pages = {1495--1507},
  year = {1998}
}""",
    HOLM: """@article{holm1979,
  author = {Holm, Sture},
  title = {A Simple Sequentially Rejective Multiple Test Procedure},
  journal = {Scandinavian Journal of Statistics},
  volume = {6},
  number = {2},
  pages = {65--70},
  year = {1979}
}""",
    BENJAMINI: """@article{benjamini1995,
  author = {Benjamini, Yoav and Hochberg, Yosef},
  title = {Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple Testing},
  journal = {Journal of the Royal Statistical Society: Series B},
  volume = {57},
  number = {1},
  pages = {289--300},
  year = {1995}
}""",
    MCNEMAR: """@article{mcnemar1947,
  author = {McNemar, Quinn},
  title = {Note on the Sampling Error of the Difference between Correlated Proportions or Percentages},
  journal = {Psychometrika},
  volume = {12},
  number = {2},
  pages = {153--157},
  year = {1947}
}""",
    CAMERON: """@article{cameron2011,
  author = {Cameron, A. Colin and Gelbach, Jonah B. and Miller, Douglas L.},
  title = {Robust Inference with Multiway Clustering},
  journal = {Journal of Business \\& Economic Statistics},
  volume = {29},
  number = {2},
  pages = {238--249},
  year = {2011}
}""",
}
_FIELD = re.compile(r'\b(author|title|year)\s*=\s*[{"](.*?)["}]\s*(?:,|\}|$)', re.DOTALL | re.IGNORECASE)
_SPECIAL = re.compile(r"[&%$#_]")


def bibliography(version: str, suite: str, citations: Iterable[str], statistics: Iterable[str]) -> list[str]:
    """Return the BibTeX entries of all citations, one for each key; a plain-text citation becomes a note."""
    suite_entries = [
        text.strip() if text.lstrip().startswith("@") else _misc_entry(f"{_key(suite)}-{number}", text)
        for number, text in enumerate(citations, 1)
    ]
    entries: dict[str, str] = {}
    for entry in (_software_entry(version), *suite_entries, *(_STATISTICS[name] for name in statistics)):
        entries.setdefault(entry.partition(",")[0].partition("{")[2].strip(), entry)
    return list(entries.values())


def cite_in_text(citations: Sequence[str]) -> str:
    """Cite BibTeX entries as in ``Gao et al., 2022; Heinzerling and Inui, 2021``.

    An entry without authors is cited by its title. Plain-text citations are skipped.
    """
    names = (_author_year(text) for text in citations if text.lstrip().startswith("@"))
    return "; ".join(cited for cited in names if cited)


def cite_statistics(name: str) -> str:
    """Cite a source of the statistics by its BibTeX key, as :func:`cite_in_text` does."""
    return _author_year(_STATISTICS[name])


def _software_entry(version: str) -> str:
    number = f",\n  version = {{{version}}}" if version else ""
    return f"@software{{merkhet,\n  author = {{{{{_AUTHORS}}}}},\n  title = {{{_TITLE}}}{number}\n}}"


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
    """Make a BibTeX entry of plain text; TeX markup is escaped or removed."""
    plain = _SPECIAL.sub(lambda match: "\\" + match[0], re.sub(r"[{}\\]", "", " ".join(text.split())))
    years = re.findall(r"\b(?:19|20)\d\d\b", plain)
    year = f",\n  year = {{{years[-1]}}}" if years else ""
    return f"@misc{{{key},\n  note = {{{plain}}}{year}\n}}"
