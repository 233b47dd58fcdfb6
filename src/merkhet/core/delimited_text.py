"""Delimited text (CSV, TSV): the delimiter of a file, and rows of small files."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from merkhet.core.errors import InputError
from merkhet.core.files import UTF_16_MARKS

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""Delimiters that are recognized, with their names."""
csv.field_size_limit(1 << 24)


def find_delimiter(
    header: str, where: str, known: Collection[str], *, default: str = ",", quoted: bool = True, remedy: str = ""
) -> str:
    """Return the delimiter of a header: comma, semicolon or tab.

    If several of them occur outside quotes, the delimiter that gives more columns with a known name is chosen.

    Args:
        known: Known names of columns, which are compared without regard to case.
        default: Delimiter if none occurs, or none gives a column with a known name.
        quoted: Whether cells may be in quotation marks.
        remedy: Advice at the end of the error message.

    Raises:
        InputError: Two delimiters give equally many columns with known names.
    """
    outside = "".join(header.split('"')[::2]) if quoted else header
    present = [delimiter for delimiter in DELIMITERS if delimiter in outside]
    if len(present) < 2:
        return present[0] if present else default
    names = {name.strip().lower() for name in known}
    matches = {delimiter: len(names & set(_cells(header, delimiter, quoted))) for delimiter in present}
    most = max(matches.values())
    best = [delimiter for delimiter in present if matches[delimiter] == most]
    if not most:
        return default
    if len(best) > 1:
        separators = " or by ".join(DELIMITERS[delimiter] for delimiter in best)
        raise InputError(f"{where}: the columns may be separated by {separators}. {remedy}".rstrip())
    return best[0]


def _cells(header: str, delimiter: str, quoted: bool) -> list[str]:
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    try:
        cells = next(csv.reader([header], delimiter=delimiter, quoting=quoting), [])
    except csv.Error:
        return []
    return [cell.strip().lower() for cell in cells]


def read_csv_rows(path: Path, known: Collection[str]) -> Any:
    """Return a csv.reader over a user's file, delimited by commas, semicolons or tabs.

    Args:
        known: Known names of columns, by which the delimiter is chosen if several are possible.
    """
    data = path.read_bytes()
    if data.startswith(UTF_16_MARKS):
        raise InputError(f"{path} is UTF-16 text. Save it as CSV UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as CSV UTF-8.") from error
    header = text.partition("\n")[0].rstrip("\r")
    delimiter = find_delimiter(header, f"{path}:1", known, remedy="Rename the columns, or save the file with commas.")
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
