"""Immediate and clean end of a command on SIGINT, SIGTERM or SIGHUP.

The handler raises nothing. An exception at an arbitrary bytecode breaks half-done imports, is swallowed by callbacks
and destructors, and waits for locks, queries and replies. Every command survives SIGKILL, so a signal ends the process
on the spot, after what a kill would leave behind is gone: child processes, temporary files, a hidden cursor.

Python runs handlers in the main thread, between two bytecodes. Native code may keep that thread for minutes, and some
libraries install handlers of their own. A second thread therefore reads the signals from the wakeup file descriptor,
and whichever of the two threads is first ends the process.
"""

from __future__ import annotations

import _thread
import atexit
import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # To import typing takes longer than all else that precedes install().
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

LINE = "Interrupted. Run the same command again to resume.\n"
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

before_exit: list[Callable[[], None]] = []
"""Functions that remove what a killed process would leave behind. They must not wait for locks."""

_TERM_SECONDS, _KILL_SECONDS, _WRITE_SECONDS = 2.0, 1.0, 1.0
"""Maximum seconds for children to end after SIGTERM and after SIGKILL, and for standard error to accept the line."""
_POLL_SECONDS = 0.02


class _Installation:
    """What :func:`install` has changed, and what the end of the process needs."""

    def __init__(self, line: str) -> None:
        self.line = line.encode()
        self.process = os.getpid()
        self.stderr = 2
        self.devnull = self.wakeup = -1


_installation: _Installation | None = None
_claim = _thread.RLock()
_ending = False
_exit_code: int | None = None
_terminal_reset = b""


def install(line: str = LINE) -> None:
    """Let SIGINT, SIGTERM and SIGHUP end this process with exit code 128 + signal, after ``line`` on standard error.

    A signal that is ignored (``nohup``, jobs in the background) stays ignored.
    """
    global _installation  # noqa: PLW0603
    if _installation is not None:
        return
    _installation = installed = _Installation(line)
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _handle)
    with suppress(OSError):  # A copy, because standard error may be redirected for a while.
        installed.stderr = os.dup(2)
    installed.devnull = os.open(os.devnull, os.O_RDWR)
    if os.name == "posix":  # Elsewhere, the wakeup file descriptor must be a socket.
        reader, installed.wakeup = os.pipe()
        os.set_blocking(installed.wakeup, False)
        signal.set_wakeup_fd(installed.wakeup, warn_on_full_buffer=False)
        _thread.start_new_thread(_watch, (reader,))
    atexit.register(_skip_teardown)  # Registered first, and therefore called last.


def install_again() -> None:
    """Take the signals back from a library that has installed handlers of its own; do nothing without handlers."""
    if _installation is not None:
        for number in SIGNALS:
            # Native code may have replaced the handler, which Python does not know.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _handle)


def set_exit_code(code: int) -> None:
    """Let this process exit with a code as soon as it has run its exit functions.

    Python would take up to seconds to free modules and their memory, and handles no signals during that time.
    """
    global _exit_code  # noqa: PLW0603
    _exit_code = code


def _skip_teardown() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if _ending:
        _wait_forever()
    if _exit_code is not None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_exit_code)


def hand_over() -> None:
    """Leave the signals to handlers that the caller installs next, such as those of a server."""
    if _installation is not None and _installation.wakeup >= 0:
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):  # A fork shares the file descriptor, and its signals are not those of this process.
    os.register_at_fork(after_in_child=hand_over)


def set_terminal_reset(sequence: str) -> None:
    """Set what precedes the line on the terminal, such as the end of a progress bar; empty for nothing."""
    global _terminal_reset  # noqa: PLW0603
    _terminal_reset = sequence.encode()


def end(code: int) -> None:
    """End this process with an exit code, its children, and its temporary files; write the line of :func:`install`.

    The function returns only if the same thread is already ending the process.
    """
    global _ending  # noqa: PLW0603
    if not _claim.acquire(blocking=False):
        _wait_forever()
    if _ending:  # Another signal has arrived in the thread that is ending the process.
        return
    _ending = True
    try:
        installed = _installation
        if installed is not None and installed.process != os.getpid():  # A copy made by fork owns nothing.
            return
        if installed is not None:
            _silence(installed)
        _end_children()
        for function in reversed(before_exit):
            with suppress(Exception):
                function()
        if installed is not None:
            _write_line(installed)
    finally:
        os._exit(code)


def _handle(number: int, _frame: FrameType | None) -> None:
    end(128 + number)


def _watch(reader: int) -> None:
    while content := os.read(reader, 1):
        if content[0] in SIGNALS:
            end(128 + content[0])
    os.close(reader)


def _wait_forever() -> None:
    while True:
        time.sleep(60)


def _silence(installed: _Installation) -> None:
    """Discard what other threads still print, such as progress bars or the errors of interrupted calls."""
    if installed.devnull >= 0:
        for descriptor in (1, 2):
            os.dup2(installed.devnull, descriptor)


def _write_line(installed: _Installation) -> None:
    with suppress(OSError, ValueError):  # Standard error may be closed or full.
        # A pipe that nobody reads would block; a writable one has room for a line.
        if installed.line and select.select([], [installed.stderr], [], _WRITE_SECONDS)[1]:
            # A terminal has echoed ^C at the start of the line.
            start = _terminal_reset or (b"\r" if os.isatty(installed.stderr) else b"")
            os.write(installed.stderr, start + installed.line)


def _end_children() -> None:
    """Terminate all processes that this process started, directly or not; kill those that do not end."""
    pids: set[int] = set()
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (getattr(signal, "SIGKILL", 0), _KILL_SECONDS)):
        deadline = time.monotonic() + seconds
        signalled: set[int] = set()
        while pids := _running(pids):
            for pid in pids - signalled:
                with suppress(OSError):
                    os.kill(pid, number)
            signalled |= pids
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)


def _running(known: Iterable[int]) -> set[int]:
    """Return the running ones of ``known`` and all running descendants; nothing where there is no /proc.

    On such systems, workers end because their standard input closes.
    """
    parents: dict[int, int] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
            with suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    parents[int(name)] = int(parent)
    running = parents.keys() & set(known)
    ancestors = {os.getpid(), *running}
    while descendants := {pid for pid, parent in parents.items() if parent in ancestors} - ancestors:
        ancestors |= descendants
        running |= descendants
    return running
