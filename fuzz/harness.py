"""One input through one reader: what came of it, how long it took, and what was left behind."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fuzz.targets import Place, Target

LIMIT = float(os.environ.get("FUZZ_LIMIT", "5"))
"""Seconds that an input may take."""
_BUSY = 4
LONGEST_LINE = 4000
ACCEPTED, REFUSED = "accepted", "refused"
_TEMPORARY = (".tmp", ".importing", ".part", ".wal")


class TooSlowError(BaseException):
    """An input took longer than it may; no handler of a reader's should catch it."""


@dataclass(frozen=True)
class Outcome:
    """What came of an input: accepted, refused, or what kind of finding; ``where`` tells findings of a kind apart."""

    kind: str
    seconds: float
    where: str = ""
    told: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it should not be."""
        return self.kind not in (ACCEPTED, REFUSED)


def try_input(
    target: Target, data: bytes, folder: Path, *, limit: float | None = LIMIT, command: bool = False
) -> Outcome:
    """Read an input in a folder of its own; slow ones are tried twice, as others use the machine too."""
    outcome = _try_once(target, data, folder, limit, command)
    return _try_once(target, data, folder, limit, command) if outcome.kind == "slow" else outcome


def _try_once(target: Target, data: bytes, folder: Path, limit: float | None, command: bool) -> Outcome:
    own = Path(tempfile.mkdtemp(dir=folder))
    place = Place(own)
    place.out.mkdir()
    began = time.perf_counter()
    try:
        kind, where, told = _read(target, data, place, limit, command)
        seconds = time.perf_counter() - began
        if kind in (ACCEPTED, REFUSED):
            left = _left_behind(place, refused=kind == REFUSED)
            if left:
                kind, where, told = "left behind", Path(left).suffix or left, f"{left} was left behind ({kind})"
        return Outcome(kind, seconds, where, told)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _read(target: Target, data: bytes, place: Place, limit: float | None, command: bool) -> tuple[str, str, str]:
    from merkhet.core.errors import MerkhetError

    try:
        with _alarm(limit):
            if command and target.command is not None:
                return _commanded(target.command(data, place))
            target.read(data, place)
        return ACCEPTED, "", ""
    except MerkhetError as error:
        return REFUSED, "", str(error)[:300]
    except TooSlowError as error:
        return "slow", _frame(error), _traced(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Panics of parsers written in Rust are no Exceptions.
        return type(error).__name__, _frame(error), _traced(error)


def _commanded(arguments: Sequence[str]) -> tuple[str, str, str]:
    """What the command line says: exit code 1 or 2 and one line for each fault on stderr, if it refuses."""
    from merkhet.cli import run_command
    from merkhet.core.errors import MAX_FAULTS

    out, told, before = io.StringIO(), io.StringIO(), sys.argv
    code = 0
    sys.argv = ["merkhet", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            run_command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    finally:
        sys.argv = before
    text = told.getvalue()
    lines = [line for line in text.splitlines() if line.strip()]
    if code == 0:
        return ACCEPTED, "", ""
    if code not in (1, 2) or "Traceback" in text:
        return "exit code", str(code), text[-2000:]
    errors = [line for line in lines if line.startswith("merkhet: ")]
    if not errors:
        return ("refused", "", text) if lines and lines[0].startswith("Usage:") else ("no word", str(code), text[:2000])
    refusal = lines[lines.index(errors[-1]) :]
    # Each further fault has a line of its own, and the count of others and the remedy may have one.
    if len(refusal) > MAX_FAULTS + 2 or not all(line.startswith("  ") for line in refusal[1:]):
        return "several lines", "", text[:2000]
    longest = max(refusal, key=len)
    if len(longest) > LONGEST_LINE:
        return "long line", "", f"{len(longest)} characters: {longest[:2000]}"
    return REFUSED, "", refusal[0][:300]


def _left_behind(place: Place, *, refused: bool) -> str | None:
    """A file or folder that should not be there: any after a refusal, and temporary ones always."""
    for root, folders, files in os.walk(place.folder):
        for name in (*files, *folders):
            path = Path(root) / name
            if path in place.given or path == place.out or path == place.folder / "in":
                continue
            if name.endswith(_TEMPORARY) or (refused and place.out in path.parents):
                return str(path.relative_to(place.folder))
            if place.out not in path.parents and path.is_file():
                return str(path.relative_to(place.folder))
    return None


@contextlib.contextmanager
def _alarm(limit: float | None) -> Iterator[None]:
    if limit is None:
        yield
        return

    began, spent = time.monotonic(), time.process_time()

    def ring(_number: int, _frame: FrameType | None) -> None:
        # On a busy machine a process waits for its turn, which is no fault of the reader's.
        busy = os.getloadavg()[0] > (os.cpu_count() or 1) + 1
        if busy and time.process_time() - spent < limit and time.monotonic() - began < _BUSY * limit:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            return
        raise TooSlowError(f"longer than {limit:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _frame(error: BaseException) -> str:
    """The last place of merkhet's that an error came through: what tells findings apart."""
    found = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in found if f"{os.sep}merkhet{os.sep}" in frame.filename]
    last = (own or found)[-1] if found else None
    return f"{Path(last.filename).name}:{last.name}" if last else "?"


def _traced(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(error)
    except Exception:
        lines = [repr(error)]
    text = "".join(line[:1500] for line in lines)
    return text if len(text) < 8000 else f"{text[:3000]}\n...\n{text[-4000:]}"


def input_name(target: str, data: bytes) -> str:
    """What the file of an input is called."""
    plain = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")
    return f"{plain}-{hashlib.sha256(data).hexdigest()[:10]}"
