"""A knowledge pack of 50 facts, and finished quickstart runs on it.

Use it instead of the embedded packs (9,400 facts) wherever a test does not look at these::

    def test_something(made_once, tmp_path):
        pack = small_pack(made_once)                   # a folder: knowledge=[str(pack)]
        done = run_small(pack, tmp_path / "run")       # a run of the baselines, without a report
        run = shutil.copytree(small_run(made_once), tmp_path / "copy")  # a finished run, to be changed
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import merkhet

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

COUNTRIES = {
    "Austria": ("Vienna", "Europe", "euro"),
    "Bolivia": ("Sucre", "South America", "boliviano"),
    "Chad": ("N'Djamena", "Africa", "Central African franc"),
    "Denmark": ("Copenhagen", "Europe", "Danish krone"),
    "Ecuador": ("Quito", "South America", "United States dollar"),
    "Ghana": ("Accra", "Africa", "cedi"),
    "India": ("New Delhi", "Asia", "Indian rupee"),
    "Japan": ("Tokyo", "Asia", "yen"),
    "Kenya": ("Nairobi", "Africa", "Kenyan shilling"),
    "Laos": ("Vientiane", "Asia", "kip"),
    "Peru": ("Lima", "South America", "sol"),
    "Spain": ("Madrid", "Europe", "euro"),
}
ELEMENTS = {
    "lithium": ("Li", "alkali metal"),
    "sodium": ("Na", "alkali metal"),
    "potassium": ("K", "alkali metal"),
    "helium": ("He", "noble gas"),
    "neon": ("Ne", "noble gas"),
    "argon": ("Ar", "noble gas"),
    "iron": ("Fe", "transition metal"),
}
PREDICATES = {
    "capital": ("has the capital", "country", "city", "geography"),
    "continent": ("lies in", "country", "continent", "geography"),
    "currency": ("pays with", "country", "currency", "economics"),
    "symbol": ("has the chemical symbol", "element", "symbol", "chemistry"),
    "category": ("is a", "element", "category", "chemistry"),
}
BASELINES: tuple[Any, ...] = ("random", {"model": "random", "label": "coin"})
"""Baselines that can be asked everything."""


def facts() -> list[tuple[str, str, str]]:
    """Return subject, predicate and object of each fact, by name."""
    found = []
    for worded, values in (
        (("capital", "continent", "currency"), COUNTRIES),
        (("symbol", "category"), ELEMENTS),
    ):
        for subject, objects in values.items():
            found += [(subject, predicate, value) for predicate, value in zip(worded, objects, strict=True)]
    return found


def write_pack(folder: Path) -> Path:
    """Write the pack into a folder, as embedded packs are written."""
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, tuple[str, str]] = {}
    rows = ["subject,predicate,object,domain"]
    for subject, predicate, value in facts():
        _, subject_kind, object_kind, domain = PREDICATES[predicate]
        ids = []
        for name, kind in ((subject, subject_kind), (value, object_kind)):
            ids.append(f"{kind}:{name.lower().replace(' ', '-')}")
            names[ids[-1]] = (name, kind)
        rows.append(f"{ids[0]},{predicate},{ids[1]},{domain}")
    (folder / "facts.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    listed = [f"{entity},en,{name},{kind}" for entity, (name, kind) in sorted(names.items())]
    (folder / "names.csv").write_text("\n".join(["entity,language,label,kind", *listed]) + "\n", encoding="utf-8")
    content = {
        "name": "small",
        "title": "Fifty facts",
        "description": "Capitals, continents, currencies and elements.",
        "licence": "CC0-1.0",
        "domain": "geography",
        "predicates": {
            name: {"label": label, "subject_kind": subject_kind, "object_kind": object_kind}
            for name, (label, subject_kind, object_kind, _) in PREDICATES.items()
        },
    }
    (folder / "pack.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return folder


def run_small(pack: Path, out: Path, *models: Any, settings: Any = (), **options: Any) -> merkhet.Run:
    """Run quickstart on the pack, without a report unless the settings ask for one.

    Args:
        pack: The folder of the pack.
        out: The folder of the run.
        models: The models to ask; the baselines where none is named.
        settings: Further settings, such as ``["report=html"]``.
        options: What :func:`merkhet.run` takes.
    """
    given = ["report=none", *settings]
    return merkhet.run(
        "quickstart", models=models or BASELINES, knowledge=[str(pack)], settings=given, out=out, **options
    )


def small_pack(made_once: MadeOnce) -> Path:
    """Return the folder of the pack, written once per test run."""
    return made_once("small-pack", write_pack)


def small_run(made_once: MadeOnce, report: bool = False) -> Path:
    """Return the folder of a finished run of both baselines on the pack, made once per test run; do not change it."""
    pack = small_pack(made_once)
    name = "small-run-with-report" if report else "small-run"
    settings = ["report=html"] if report else []
    return made_once(name, lambda folder: run_small(pack, folder / "run", settings=settings)) / "run"
