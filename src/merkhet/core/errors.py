"""Errors that a user reads: one line that names the thing, the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MerkhetError(Exception):
    """Something asked for could not be done (exit code 1)."""

    exit_code = 1


class InputError(MerkhetError):
    """What the user gave is wrong: a study, a file, a name (exit code 2)."""

    exit_code = 2


def first_line(error: BaseException) -> str:
    """What a foreign error says, in one line; its kind where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A clause for an error message: the nearest known name, or the names there are."""
    names = sorted(set(known))
    by_folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    if not names:
        return "there are none"
    shown = ", ".join(names[:12])
    return f"there are: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
