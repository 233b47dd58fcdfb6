"""Entry point of the command line, and the handling of its errors."""

from __future__ import annotations

import os
import sys

from merkhet.cli._standard_streams import flush_output, open_standard_streams
from merkhet.core import interrupts

# Busy-waiting OpenMP threads slow a loaded machine tenfold. Torch reads this variable when it is imported.
SPINS = ("GOMP_SPINCOUNT", "1000")
_MAX_MESSAGE = 2000
_INTERRUPTED = 130


def main() -> None:
    """Run the command line as the only task of this process. From here on, a signal ends the process."""
    open_standard_streams()
    interrupts.install()
    try:
        run_command()
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:  # Typer turns a KeyboardInterrupt of the user's code into this exit code.
            interrupts.end(_INTERRUPTED)
        if isinstance(stop.code, int):
            interrupts.set_exit_code(stop.code)
        raise


def run_command() -> None:
    """Run the command of ``sys.argv`` in a process that also does other work, and exit.

    A :class:`MerkhetError` is printed in one line per fault and sets the exit code. Output that cannot be written sets
    the exit code to 1.
    """
    os.environ.setdefault(*SPINS)
    from merkhet.cli.redacted_streams import redacted_streams

    with redacted_streams(sys.argv[1:]):
        code = _run()
    sys.exit(code if flush_output() else code or 1)


def _run() -> int | str | None:
    """Run the command, print its error if there is one, and return the exit code."""
    from merkhet.cli.app import app
    from merkhet.core.errors import FaultsError, MerkhetError

    try:
        app()
    except MerkhetError as error:
        lines = str(error).splitlines() if isinstance(error, FaultsError) else [error]
        sys.stderr.write("merkhet: " + "\n  ".join(map(_one_line, lines)) + "\n")
        return error.exit_code
    except SystemExit as stop:
        return stop.code
    return 0


def _one_line(error: Exception | str) -> str:
    """Return a message as one line; the middle of a long message becomes an ellipsis."""
    from merkhet.core.text import printable

    text = " ".join(printable(error).splitlines())
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE // 2]} … {text[-_MAX_MESSAGE // 2 :]}"


__all__ = ["main", "run_command"]
