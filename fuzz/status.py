"""What a worker is at, in a file that outlives it: whoever watches sees a hang, and counts what a dead one did."""

from __future__ import annotations

import json
import mmap
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FORM = struct.Struct("dqqqd")  # When the input began (0: none), inputs, accepted, refused, seconds of the slowest.
FIELDS = ("began", "inputs", "accepted", "refused", "slowest")


class Status:
    """A worker's side: says what it begins and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "status"
        if not file.exists():
            file.write_bytes(bytes(_FORM.size))
        with open(file, "r+b") as handle:
            self._map = mmap.mmap(handle.fileno(), _FORM.size)
        self._counts = list(_FORM.unpack(self._map[:]))

    def begin(self, data: bytes) -> None:
        """An input is tried from now on."""
        (self.folder / "current").write_bytes(data)
        self._counts[0] = time.time()
        self._write()

    def end(self, kind: str, seconds: float) -> None:
        """What came of it."""
        self._counts[0] = 0.0
        self._counts[1] += 1
        self._counts[2] += kind == "accepted"
        self._counts[3] += kind == "refused"
        self._counts[4] = max(self._counts[4], seconds)
        self._write()

    def tell(self, finding: dict[str, Any]) -> None:
        """Keep a finding."""
        with open(self.folder / "findings.jsonl", "a", encoding="utf-8") as handle:
            handle.write(json.dumps(finding) + "\n")

    def _write(self) -> None:
        self._map[:] = _FORM.pack(*self._counts)


def read_status(folder: Path) -> dict[str, Any]:
    """The watcher's side: what a worker is at."""
    try:
        return dict(zip(FIELDS, _FORM.unpack((folder / "status").read_bytes()), strict=True))
    except (OSError, struct.error):
        return dict(zip(FIELDS, (0.0, 0, 0, 0, 0.0), strict=True))


def told_findings(folder: Path) -> Iterator[dict[str, Any]]:
    """The findings that a worker has told."""
    file = folder / "findings.jsonl"
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
