"""User-facing errors: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class MerkhetError(Exception):
    """A requested operation failed (exit code 1)."""

    exit_code = 1


class InputError(MerkhetError):
    """The user's input, such as a study, a file or a name, is wrong (exit code 2)."""

    exit_code = 2


@contextmanager
def located(where: str) -> Iterator[None]:
    """Append the location of the input, such as a file and a key, to any InputError raised in the block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error} ({where})") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class name if the message is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message: the nearest known name, or a list of the known names."""
    names = sorted(set(known))
    by_folded = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    if not names:
        return "there are none"
    listing = ", ".join(names[:12])
    return f"there are: {listing}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
