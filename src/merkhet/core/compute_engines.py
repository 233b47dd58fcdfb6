"""Compute engines that build questions (DuckDB, Spark) or ask models (this process, Ray)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from merkhet.core.errors import InputError, did_you_mean

BUILD_ENGINES, ASK_ENGINES = ("duckdb", "spark"), ("here", "ray")
"""Engines that build questions, and engines that ask them; the first engine of each tuple is the default."""

_PACKAGES = {"spark": "pyspark", "ray": "ray"}


@dataclass(frozen=True)
class Engine:
    """A compute engine, its cluster and its memory limit."""

    name: str
    address: str | None = None
    """Address of the cluster; None starts the engine on this machine."""
    memory: str | None = None
    """Memory limit of an engine on this machine, such as ``4GB``; data beyond the limit spill to disk."""

    def __str__(self) -> str:
        if self.address is None:
            return self.name
        return self.address if "://" in self.address else f"{self.name}:{self.address}"


@dataclass(frozen=True)
class Engines:
    """The engine that builds questions and the engine that asks them."""

    build: Engine = Engine(BUILD_ENGINES[0])
    ask: Engine = Engine(ASK_ENGINES[0])


@dataclass(frozen=True)
class AskEngine:
    """A Ray cluster that asks questions."""

    name: str
    address: str | None
    """Address of the cluster; None starts a cluster on this machine."""
    workers: int | None
    cores: int | None
    """Cores per worker."""


def parse_memory(text: str) -> str:
    """Check an amount of memory such as ``4GB`` or ``512 MiB`` and return it without surrounding blanks.

    Raises:
        InputError: The text is not an amount of memory.
    """
    if not re.fullmatch(r"\d+(\.\d+)?\s*[kKMGT]i?B", text.strip()):
        raise InputError(f"memory must be an amount such as 4GB or 512MB, got {text!r}")
    return text.strip()


def parse_engine(text: str) -> Engine:
    """Parse the name of an engine, with or without an address.

    Valid texts are a name (``spark``, ``ray``), the address of a cluster (``spark://host:7077``), or a name with any
    address that the engine accepts (``spark:yarn``, ``spark:local[4]``, ``ray:auto``).

    Raises:
        InputError: The engine is unknown, or its package is not installed.
    """
    name, colon, address = text.partition(":")
    known = (*BUILD_ENGINES, *ASK_ENGINES)
    if name not in known:
        raise InputError(f"unknown engine {text!r}; {did_you_mean(name, known)}")
    if colon and (not address.strip("/") or name not in _PACKAGES):
        raise InputError(f"the engine {text!r} has no valid address; write {name!r} alone")
    package = _PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        raise InputError(
            f"the engine {name} needs the package {package}; install it with: pip install 'merkhet[{name}]'"
        )
    if not colon:
        return Engine(name)
    return Engine(name, text if address.startswith("//") else address)


def choose_engines(texts: Iterable[str], memory: str | None = None) -> Engines:
    """Choose at most one engine for building and at most one for asking; ``memory`` limits the one for building."""
    chosen: dict[str, Engine] = {}
    for text in texts:
        engine = parse_engine(text)
        role = "build" if engine.name in BUILD_ENGINES else "ask"
        if role in chosen and chosen[role] != engine:
            raise InputError(f"both {chosen[role]} and {engine} are named as the engine to {role}; name only one")
        chosen[role] = engine
    engines = Engines(**chosen)
    return engines if memory is None else replace(engines, build=replace(engines.build, memory=parse_memory(memory)))


def choose_build_engine(text: str | None, memory: str | None = None) -> Engine:
    """Choose the engine of a command that builds questions or infers facts without asking models.

    Raises:
        InputError: The chosen engine can only ask models.
    """
    engines = choose_engines([text] if text else [], memory)
    if engines.ask.name != ASK_ENGINES[0]:
        raise InputError(
            f"the engine {engines.ask} asks questions, and this command builds; choose {' or '.join(BUILD_ENGINES)}"
        )
    return engines.build
