"""User-facing errors: one line for each fault that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from merkhet.core.redaction import redact_message

MAX_FAULTS = 20
"""Maximum number of faults that one error describes."""


class MerkhetError(Exception):
    """A requested operation failed (exit code 1). The message shows no secret."""

    exit_code = 1

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redact_message(text) if isinstance(text, str) else text for text in arguments))


class InputError(MerkhetError):
    """The user's input, such as a study, a file or a name, is wrong (exit code 2)."""

    exit_code = 2


class FaultsError(InputError):
    """The user's input has several faults; the message has one line for each of the first, and the number of others."""

    def __init__(self, faults: Sequence[str], count: int, remedy: str = "") -> None:
        """Create the error.

        Args:
            faults: Descriptions of the first faults.
            count: Number of all faults.
            remedy: Advice for all faults, as the last line.
        """
        self.faults, self.count, self.remedy = tuple(map(redact_message, faults)), count, redact_message(remedy)
        super().__init__(self.faults, count, self.remedy)

    def __str__(self) -> str:
        lines = [" ".join(fault.splitlines()) for fault in self.faults[:MAX_FAULTS]]
        if self.count > len(lines):
            lines.append(f"… and {self.count - len(lines):,} more")
        return "\n".join([*lines, *([self.remedy] if self.remedy else [])])


class FaultList:
    """Collector of the faults of one input, which are refused together."""

    def __init__(self) -> None:
        self._faults: list[tuple[tuple[str, int], str]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, fault: str, *, origin: str = "", row: int = 0) -> None:
        """Add a fault; faults are sorted by origin and row."""
        self._faults.append(((origin, row), fault))
        self._count += 1

    def add_rows(self, rows: Sequence[int], describe: Callable[[int], str]) -> None:
        """Add the same kind of fault in several rows, in increasing order; only the first are described."""
        self._faults += [(("", row), describe(row)) for row in rows[:MAX_FAULTS]]
        self._count += len(rows)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Add any InputError that is raised in the block."""
        try:
            yield
        except FaultsError as error:
            self._faults += [(("", 0), fault) for fault in error.faults]
            self._count += error.count
        except InputError as error:
            self.add(str(error))

    def refuse(self, remedy: str = "") -> None:
        """Raise an error that describes the faults, if there are any."""
        faults = [fault for _, fault in sorted(self._faults, key=lambda entry: entry[0])]
        if self._count == 1:
            raise InputError(f"{faults[0]} {remedy}".rstrip())
        if faults:
            raise FaultsError(faults[:MAX_FAULTS], self._count, remedy)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Append the location of the input, such as a file and a key, to any InputError raised in the block."""
    try:
        yield
    except FaultsError as error:
        raise FaultsError([f"{fault} ({where})" for fault in error.faults], error.count, error.remedy) from error
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
