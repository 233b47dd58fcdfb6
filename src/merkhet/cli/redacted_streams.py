"""Standard output and standard error without secrets."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from merkhet.core.credentials import register_credentials
from merkhet.core.redaction import redact_message


@contextmanager
def redacted_streams(arguments: Sequence[str]) -> Iterator[None]:
    """Remove secrets from all that this process prints, in usage errors, messages, progress, tables and tracebacks.

    Args:
        arguments: The words of the command line, whose passwords and keys are registered as secrets.
    """
    register_credentials(arguments)
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _RedactedStream(stdout), _RedactedStream(stderr)
    try:
        yield
    except Exception:
        # An error of the program itself. Python would print its traceback after the block.
        sys.stderr.write(traceback.format_exc())
        sys.exit(1)
    finally:
        sys.stdout, sys.stderr = stdout, stderr


class _RedactedStream:
    """A text stream that removes secrets from each text before it is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text without secrets."""
        self._stream.write(redact_message(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write lines without secrets."""
        self.write("".join(lines))
