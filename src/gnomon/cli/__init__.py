"""The command line: thin; it parses, calls and prints."""

from __future__ import annotations

import os
import sys

# Threads that wait for each other by spinning bring a busy machine to a tenth of its speed. Read when torch is loaded.
SPINS = ("GOMP_SPINCOUNT", "1000")


def main() -> None:
    """Run the command line; errors that a user can mend are one line and exit code 1 or 2."""
    os.environ.setdefault(*SPINS)
    from gnomon.cli.app import app
    from gnomon.foundation import GnomonError

    try:
        app()
    except GnomonError as error:
        from gnomon.reports.formatting import printable

        sys.stderr.write(f"gnomon: {printable(error)}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("gnomon: stopped. The same command again goes on where it was.\n")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # Whoever read our output has gone; there is nobody to tell.
        sys.exit(1)


__all__ = ["main"]
