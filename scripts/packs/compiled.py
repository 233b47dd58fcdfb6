"""Packs compiled by hand: one table of predicate, subject and object, and a description of each predicate."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import licences
from .countries import COUNTRY_LABELS
from .writing import Pack, entity_id, read_table

SOURCE = "record"


@dataclass(frozen=True)
class Described:
    """A predicate of a compiled pack; one with a ``unit`` has numbers for objects."""

    label: str
    subject: str
    object: str = "number"
    unit: str = ""
    functional: bool = False
    note: str = ""
    complete: str = ""
    """Place for which the pack states all true facts of the predicate; a functional one is complete for its object."""


def compiled_pack(
    name: str,
    title: str,
    description: str,
    domain: str,
    predicates: Mapping[str, Described],
    note: str,
    domains: Mapping[str, str] | None = None,
) -> Pack:
    """The pack of the table NAME.csv; ``domains`` says which predicates belong to another domain than the pack's."""
    pack = Pack(meta=_meta(name, title, description, domain, predicates, note), licence_text=_LICENCE)
    rows = [(row["predicate"], row["subject"], row["object"]) for row in read_table(f"{name}.csv")]
    if len(set(rows)) != len(rows):
        raise ValueError(f"{name}.csv has a row twice")
    for predicate, subject, given in rows:
        about = predicates[predicate]
        place = (domains or {}).get(predicate, domain)
        entity = _entity(pack, about.subject, subject)
        if about.unit:
            pack.measure(entity, predicate, float(given), about.unit, domain=place, source=SOURCE)
        else:
            pack.link(entity, predicate, _entity(pack, about.object, given), domain=place, source=SOURCE)
    return pack


def _entity(pack: Pack, kind: str, label: str) -> str:
    if kind == "country":
        return pack.name(f"country:{label}", COUNTRY_LABELS[label])
    return pack.name(_SPECIAL.get(kind, entity_id)(kind, label), label)


def _sign_id(kind: str, label: str) -> str:
    """An id that tells m from M, and spells signs that have no ASCII form: Omega, h-WITH-STROKE."""
    spelled = (sign if sign.isascii() and sign.isalnum() else f" {unicodedata.name(sign)} " for sign in label)
    words = "".join(spelled).replace("GREEK ", "").replace("LATIN ", "").split()
    return f"{kind}:{'-'.join(re.sub('[^A-Za-z0-9]', '', word) for word in words)}"


_SPECIAL: Mapping[str, Callable[[str, str], str]] = {
    "sign": _sign_id,
    # The first sense of a noun, as the taxonomy pack calls it.
    "synset": lambda kind, label: f"{kind}:{label}-n-1",
}
_LICENCE = licences.PUBLIC_RECORD_NOTICE


def _meta(
    name: str, title: str, description: str, domain: str, predicates: Mapping[str, Described], note: str
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "domain": domain,
        "licence": "CC0-1.0",
        "sources": {
            SOURCE: {
                "name": "public record, compiled for merkhet",
                "version": "1",
                "licence": "CC0-1.0",
                "licence_file": "LICENSE.txt",
                "note": note,
            },
        },
        "predicates": {predicate: describe(about) for predicate, about in predicates.items()},
    }


def describe(about: Described) -> dict[str, Any]:
    """A predicate as pack.yaml says it."""
    return {
        "label": about.label,
        "subject_kind": about.subject,
        "object_kind": about.object,
        "functional": about.functional,
        "symmetric": False,
        **({"complete": about.complete} if about.complete else {}),
        "note": about.note,
    }
