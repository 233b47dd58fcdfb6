"""Temporary content that moves from memory to disk when it grows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import is_disk_full


class SpooledFile:
    """Bytes in memory up to a size, and beyond it in a file without a name, which not even a killed process leaves.

    The content is removed by ``close``, at the end of a ``with`` block, or with the object.

    Args:
        max_memory: Maximum bytes in memory.
    """

    def __init__(self, max_memory: int) -> None:
        # The caller closes it: the file outlives this function.
        self._file = tempfile.SpooledTemporaryFile(max_memory)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """Append ``data``.

        Raises:
            InputError: The temporary folder is full, or cannot be written to.
        """
        with _explain_errors():
            self._file.write(data)

    def read(self) -> bytes:
        """Return the whole content."""
        with _explain_errors():
            self._file.seek(0)
            return self._file.read()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the content; other calls in between do no harm."""
        position = 0
        while True:
            with _explain_errors():
                self._file.seek(position)
                line = self._file.readline()
            if not line:
                return
            position += len(line)
            yield line

    def close(self) -> None:
        """Remove the content."""
        self._file.close()

    def __del__(self) -> None:
        """Remove the content."""
        self.close()

    def __enter__(self) -> SpooledFile:
        """Return the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the content."""
        self.close()


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # The folder itself may be what is missing.
        folder = tempfile.tempdir or "the temporary folder"
        if is_disk_full(error):
            raise InputError(
                f"{folder}: the disk is full. Free some space there, or set TMPDIR to another folder."
            ) from error
        raise InputError(
            f"{folder} cannot hold temporary files ({first_line(error)}). Set TMPDIR to a folder that can."
        ) from error
