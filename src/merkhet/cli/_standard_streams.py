"""Standard streams that are closed, full, or read by nobody."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False  # To import typing would delay the handlers of signals.
if TYPE_CHECKING:
    from typing import Any, TextIO


class _LossyFile(io.FileIO):
    """A file that discards what cannot be written."""

    has_lost = False
    """Whether anything was discarded."""

    def write(self, content: Any) -> int:
        """Write bytes, and return the number of bytes written or discarded."""
        if not self.has_lost:
            try:
                return super().write(content)
            except OSError:
                self.has_lost = True
        return len(content)


def open_standard_streams() -> None:
    """Open the standard streams that are closed, and discard output that cannot be written.

    Otherwise, the next file to be opened takes the place of a closed stream, and receives its output.
    """
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            # This opens the lowest free number. Standard output refuses to be written to, as on a full disk.
            os.set_inheritable(os.open(os.devnull, flags), True)
    # A caller of main() may have replaced the streams.
    if sys.stdout is sys.__stdout__:
        sys.stdout = _lossy_stream(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _lossy_stream(2, sys.stderr)


def _lossy_stream(descriptor: int, stream: TextIO | None) -> TextIO:
    """Return a stream like ``stream``, which is None if it was closed when Python started."""
    like: Any = stream or io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    raw = _LossyFile(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        like.encoding,
        like.errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )


def flush_output() -> bool:
    """Flush standard output, and return whether all of it could be written."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not (isinstance(raw, _LossyFile) and raw.has_lost)
