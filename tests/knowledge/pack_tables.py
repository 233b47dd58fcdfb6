"""The embedded packs as plain tables: facts, names and what is said of a pack."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PACKS = ROOT / "src/merkhet/knowledge/packs"

Row = dict[str, str]


@cache
def read(pack: str, name: str) -> list[Row]:
    with (PACKS / pack / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def facts(pack: str) -> list[Row]:
    return read(pack, "facts.csv")


def names(pack: str) -> list[Row]:
    return read(pack, "names.csv")


def header(pack: str, name: str) -> list[str]:
    with (PACKS / pack / name).open(encoding="utf-8", newline="") as handle:
        return next(csv.reader(handle))


@cache
def meta(pack: str) -> dict:
    return yaml.safe_load((PACKS / pack / "pack.yaml").read_text(encoding="utf-8"))


def objects(pack: str, subject: str, predicate: str) -> set[str]:
    return {
        row["object"] or row["value"]
        for row in facts(pack)
        if row["subject"] == subject and row["predicate"] == predicate
    }
