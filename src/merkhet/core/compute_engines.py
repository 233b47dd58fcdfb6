"""Engines: where work is done beyond this process, named by a word or by the address of a cluster."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from merkhet.core.errors import InputError, did_you_mean

BUILD_ENGINES, ASK_ENGINES = ("duckdb", "spark"), ("here", "ray")
"""Engines that build, and engines that ask; the first of each is the usual one."""

_PACKAGES = {"spark": "pyspark", "ray": "ray"}


@dataclass(frozen=True)
class Engine:
    """An engine and the cluster it runs on; without an address it is started on this machine.

    ``memory`` is how much of it an engine on this machine may use (``4GB``); what does not fit goes to disk.
    """

    name: str
    address: str | None = None
    memory: str | None = None

    def __str__(self) -> str:
        if self.address is None:
            return self.name
        return self.address if "://" in self.address else f"{self.name}:{self.address}"


@dataclass(frozen=True)
class Engines:
    """The engine that builds and the one that asks."""

    build: Engine = Engine(BUILD_ENGINES[0])
    ask: Engine = Engine(ASK_ENGINES[0])


@dataclass(frozen=True)
class AskEngine:
    """Ray cluster that asks."""

    name: str
    address: str | None
    """Address of the cluster; None starts one on this machine."""
    workers: int | None
    cores: int | None
    """Cores per worker."""


def parse_memory(text: str) -> str:
    """An amount of memory such as ``4GB`` or ``512 MiB``; refuses what is none."""
    if not re.fullmatch(r"\d+(\.\d+)?\s*[kKMGT]i?B", text.strip()):
        raise InputError(f"the memory is {text!r}, and should be an amount such as 4GB or 512MB")
    return text.strip()


def parse_engine(text: str) -> Engine:
    """An engine: ``spark``, ``ray``, a cluster's address (``spark://host:7077``, ``ray://host:10001``), or a name and
    whatever that engine takes for an address (``spark:yarn``, ``spark:local[4]``, ``ray:auto``).

    Refuses an unknown one, and one whose package is not installed.
    """
    name, colon, rest = text.partition(":")
    known = (*BUILD_ENGINES, *ASK_ENGINES)
    if name not in known:
        raise InputError(f"there is no engine {text!r}; {did_you_mean(name, known)}")
    if colon and (not rest.strip("/") or name not in _PACKAGES):
        raise InputError(f"the engine {text!r} has no address that it could run at; write {name} alone")
    package = _PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        raise InputError(
            f"the engine {name} needs the package {package}; install it with: pip install 'merkhet[{name}]'"
        )
    if not colon:
        return Engine(name)
    return Engine(name, text if rest.startswith("//") else rest)


def choose_engines(texts: Iterable[str], memory: str | None = None) -> Engines:
    """The engines that were asked for, one that builds and one that asks at most; the usual ones for the rest.

    The one that builds may use so much memory.
    """
    chosen: dict[str, Engine] = {}
    for text in texts:
        engine = parse_engine(text)
        part = "build" if engine.name in BUILD_ENGINES else "ask"
        if part in chosen and chosen[part] != engine:
            raise InputError(f"both {chosen[part]} and {engine} are asked for, and only one of them can {part}")
        chosen[part] = engine
    engines = Engines(**chosen)
    return engines if memory is None else replace(engines, build=replace(engines.build, memory=parse_memory(memory)))


def choose_build_engine(text: str | None, memory: str | None = None) -> Engine:
    """The engine that builds, where no questions are asked; refuses one that only asks."""
    engines = choose_engines([text] if text else [], memory)
    if engines.ask.name != ASK_ENGINES[0]:
        raise InputError(f"{engines.ask} asks questions, and none are asked here; choose {' or '.join(BUILD_ENGINES)}")
    return engines.build
