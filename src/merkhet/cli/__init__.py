"""Entry point of the command line, and the handling of its errors."""

from __future__ import annotations

import os
import sys

# Busy-waiting OpenMP threads slow a loaded machine tenfold. Torch reads this variable when it is imported.
SPINS = ("GOMP_SPINCOUNT", "1000")
_MAX_MESSAGE = 2000
_INTERRUPTED = 130


def main() -> None:
    """Run the command line. A :class:`MerkhetError` is printed in one line per fault and sets the exit code."""
    os.environ.setdefault(*SPINS)
    from merkhet.cli.app import app
    from merkhet.core.errors import FaultsError, MerkhetError

    try:
        app()
    except MerkhetError as error:
        lines = str(error).splitlines() if isinstance(error, FaultsError) else [error]
        sys.stderr.write("merkhet: " + "\n  ".join(map(_one_line, lines)) + "\n")
        sys.exit(error.exit_code)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:  # Typer turns an interrupt into this exit code without a message.
            sys.stderr.write("merkhet: stopped. Repeat the command to resume.\n")
        raise
    except BrokenPipeError:
        sys.stderr.close()  # The reader of the output is gone, so no message can be printed.
        sys.exit(1)


def _one_line(error: Exception | str) -> str:
    """Return a message as one line; the middle of a long message becomes an ellipsis."""
    from merkhet.core.text import printable

    text = " ".join(printable(error).splitlines())
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE // 2]} … {text[-_MAX_MESSAGE // 2 :]}"


__all__ = ["main"]
