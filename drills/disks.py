"""Small disks in memory (tmpfs) that can be resized and made read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = 4096


class Disk:
    """A mounted tmpfs."""

    def __init__(self, mount_point: Path) -> None:
        self.mount_point = mount_point

    def remount(self, options: str) -> None:
        """Change mount options, such as the size or read-only."""
        _mount("-o", f"remount,{options}", str(self.mount_point))


@contextmanager
def small_disk(mount_point: Path, size: int) -> Iterator[Disk]:
    """Mount a disk of ``size`` bytes at a folder; raise OSError if mounting is not allowed."""
    mount_point.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={max(PAGE, size)}", "tmpfs", str(mount_point))
    try:
        yield Disk(mount_point)
    finally:
        subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


def mount_error(mount_point: Path) -> str | None:
    """Return the reason why no disk can be mounted, or None."""
    try:
        with small_disk(mount_point, PAGE):
            return None
    except OSError as error:
        return str(error)


def disk_usage(folder: Path) -> int:
    """Return the bytes that the files of a folder need on a disk, in whole pages."""
    return sum(-(-file.stat().st_size // PAGE) * PAGE for file in folder.rglob("*") if file.is_file())


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError("there is no mount command") from error
    if done.returncode:
        raise OSError(done.stderr.strip() or "mounting is not allowed")
