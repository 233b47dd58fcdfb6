"""The rooms: private modules stay in their room, no string names a higher one, module names are unique."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import merkhet
from merkhet.analysis import ANALYSES
from merkhet.engine.suite import Suite
from merkhet.knowledge import SOURCES
from merkhet.metrics import METRICS
from merkhet.metrics.metrics import Metric
from merkhet.models import MODELS
from merkhet.probes import PROBES
from merkhet.suites import SUITES
from merkhet.training import LEARNERS

SOURCE = Path(merkhet.__file__).parent
LAYERS = (
    ("core",),
    ("models", "knowledge", "metrics"),
    ("probes", "training", "questions"),
    ("analysis", "calibration"),
    ("reports",),
    ("engine",),
    ("suites",),
    ("api",),
    ("cli",),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
SHARED_ROLES = {"suite", "options", "build", "plan", "published", "completion", "checking", "distinction"}
"""Module names that may occur once in a room and once in each suite."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts), ast.parse(path.read_text(encoding="utf-8"))


def room_of(module: str) -> str:
    return module.split(".", 1)[0]


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module below merkhet that may be imported, without the package's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("merkhet."):
            module = str(node.module).removeprefix("merkhet.")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("merkhet.") for alias in node.names if alias.name.startswith("merkhet.")
            )


def named(tree: ast.Module) -> Iterator[str]:
    """Every module below merkhet that a string names, docstrings aside."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            place = node.value.partition(":")[0]
            if place.startswith("merkhet.") and all(part.isidentifier() for part in place.split(".")):
                yield place.removeprefix("merkhet.")


def test_private_modules_are_imported_within_their_room() -> None:
    crossing = [
        f"{module} imports {other}"
        for module, tree in modules()
        for other in imported(tree)
        if any(part.startswith("_") and not part.startswith("__") for part in other.split(".")[:-1])
        or (other.split(".")[-1].startswith("_") and (SOURCE / f"{other.replace('.', '/')}.py").is_file())
        if room_of(module) != room_of(other)
    ]
    assert not crossing


def test_no_string_names_a_module_of_a_higher_room() -> None:
    upward = [
        f"{module} names {other}"
        for module, tree in modules()
        for other in named(tree)
        if module not in ("__init__", "__main__") and room_of(other) in RANK
        if RANK[room_of(module)] < RANK[room_of(other)]
    ]
    assert not upward


def test_module_names_are_unique() -> None:
    places = defaultdict(list)
    for module, _ in modules():
        name = module.split(".")[-1]
        if not name.startswith("__"):
            places[name].append(module)
    repeated = {name: found for name, found in places.items() if len(found) > 1 and name not in SHARED_ROLES}
    assert not repeated
    for name in SHARED_ROLES:
        assert sum(room_of(module) != "suites" for module in places[name]) <= 1, name


def test_every_registered_part_loads() -> None:
    for registry in (SOURCES, MODELS, PROBES, LEARNERS, METRICS, ANALYSES):
        for name in registry:
            part = registry.get(name)
            assert callable(part) or isinstance(part, Metric), f"{registry.kind} {name}"
    assert all(isinstance(SUITES.get(name), Suite) for name in SUITES)
