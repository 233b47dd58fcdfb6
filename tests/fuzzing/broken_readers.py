"""Readers with faults of every kind that the fuzzer should find, each by some of its inputs alone."""

from __future__ import annotations

import os
import signal
import time

from fuzz.targets import Place, Target
from merkhet.core.errors import InputError


class Panic(BaseException):
    """As parsers written in Rust have it: no Exception."""


def key_error(data: bytes, place: Place) -> None:
    if b"b" not in data:
        {}[data]


def sleeps(data: bytes, place: Place) -> None:
    if len(data) > 2:
        time.sleep(60)


def deaf(data: bytes, place: Place) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(60)


def dies(data: bytes, place: Place) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def panics(data: bytes, place: Place) -> None:
    raise Panic("x")


def litters(data: bytes, place: Place) -> None:
    (place.out / ".x.tmp").write_bytes(data)


def half_written(data: bytes, place: Place) -> None:
    (place.out / "result").write_bytes(data)
    raise InputError("no")


def empty_folder(data: bytes, place: Place) -> None:
    (place.out / "questions").mkdir()
    raise InputError("no")


def beside(data: bytes, place: Place) -> None:
    place.file("given", data).with_name("given.bak").write_bytes(data)


def hidden(data: bytes, place: Place) -> None:
    """Found only by an input that takes one step after another."""
    if len(data) < 2 or data[0] != ord("G"):
        return
    if data[1] == ord("N"):
        raise RuntimeError("found")


def good(data: bytes, place: Place) -> None:
    place.file("given", data)
    if len(data) > 3:
        raise InputError("too long")
    (place.out / "result").write_bytes(data)


def targets() -> list[Target]:
    faults = (key_error, sleeps, deaf, dies, panics, litters, half_written, empty_folder, beside)
    return [
        *(Target(one.__name__, one, (b"abc", b"b"), guided=False) for one in faults),
        Target("good", good, (b"abc", b"abcd"), guided=False),
        Target("hidden", hidden, (b"aaaa",)),
    ]
