"""Small disks of memory (tmpfs) for drills: as large as wanted, made larger, read-only, gone at the end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = 4096


class Disk:
    """A mounted tmpfs."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def remount(self, options: str) -> None:
        """Change its size, or whether it can be written to."""
        _mount("-o", f"remount,{options}", str(self.place))


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Disk]:
    """A disk of so many bytes at a folder; raises OSError where mounting is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={max(PAGE, size)}", "tmpfs", str(place))
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def why_not(place: Path) -> str | None:
    """Why no disk can be mounted here; None where it can."""
    try:
        with small_disk(place, PAGE):
            return None
    except OSError as error:
        return str(error)


def used(folder: Path) -> int:
    """How much room the files of a folder need on such a disk, in whole pages."""
    return sum(-(-file.stat().st_size // PAGE) * PAGE for file in folder.rglob("*") if file.is_file())


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError("there is no mount command") from error
    if done.returncode:
        raise OSError(done.stderr.strip() or "mounting is not allowed")
