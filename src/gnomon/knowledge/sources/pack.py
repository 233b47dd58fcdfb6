"""Knowledge packs: a folder with pack.yaml, facts.csv and names.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gnomon.foundation.tables import FACTS, NAMES, make_table
from gnomon.knowledge.embedded import read_about
from gnomon.knowledge.material import Material, Predicate
from gnomon.knowledge.sources.table import read_rows


def read_pack(folder: Path) -> Material:
    """All facts and names of a pack; a fact without a domain gets the pack's."""
    about: dict[str, Any] = read_about(folder)
    facts, fact_line = read_rows(folder / "facts.csv", FACTS)
    for row in facts:
        row.setdefault("domain", about.get("domain"))
        row["source"] = f"{about['name']}/{row['source']}" if row.get("source") else about["name"]
    names = read_rows(folder / "names.csv", NAMES)[0] if (folder / "names.csv").is_file() else []
    predicates = {
        name: Predicate(
            name=name,
            label=declared.get("label", name),
            functional=bool(declared.get("functional")),
            symmetric=bool(declared.get("symmetric")),
        )
        for name, declared in (about.get("predicates") or {}).items()
    }
    return Material(make_table(FACTS, facts, fact_line), make_table(NAMES, names), predicates)
