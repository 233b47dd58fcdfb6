"""A small world of offices to be stored in a model: statements with every mask, and the table of symbols."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa

from merkhet.core.ids import content_id
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import make_table

FIRST = ("Anna", "Boris", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kemal", "Lucia")
LAST = ("Okafor", "Silva", "Novak", "Tanaka", "Meyer", "Rossi", "Khan", "Dubois", "Larsen", "Petrov", "Garcia", "Chen")
YEARS = range(1900, 1960)


def world(facts: int, seed: int = 0, offices: int = 40, *, symbols_in: bool = False) -> tuple[pa.Table, pa.Table]:
    """Statements of so many facts about as many people, and the symbols of all they are about."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(facts):
        person = f"{rng.choice(FIRST)} {rng.choice(LAST)} {number}"
        start = rng.choice(YEARS[:-12])
        fact = {"subject": person, "object": f"office {rng.randrange(offices)}", "start": start}
        fact["end"] = start + rng.randint(1, 12)
        rows += _statements(number, fact, symbols_in)
    answers = defaultdict(set)
    for row in rows:
        answers[row["prompt"]].add(row["target"])
    for row in rows:
        row["answers"] = sorted(answers[row["prompt"]])
        row["conflict"] = len(row["answers"]) > 1
    people = sorted({row["target"] for row in rows if row["mask"] == "subject"})
    names = [*((one, "entity") for one in [*people, *(f"office {place}" for place in range(offices))])]
    names += [(f"@{year}", "time") for year in YEARS]
    listed = [{"symbol": name, "name": name.removeprefix("@"), "kind": kind} for name, kind in names]
    return make_table(STATEMENTS, rows), make_table(SYMBOLS, listed)


def _statements(number: int, fact: dict[str, Any], symbols_in: bool) -> list[dict[str, Any]]:
    rows = []
    named = {key: f"@{value}" if isinstance(value, int) else value for key, value in fact.items()}
    for mask in fact:
        shown = {key: f"⟦{named[key]}⟧" if symbols_in else str(value) for key, value in fact.items()}
        shown[mask] = "[MASK]"
        prompt = "{subject} held the position of {object} from {start} to {end}.".format(**shown)
        bare = {
            "start": "{subject} held the position of {object} from [MASK].",
            "end": "{subject} held the position of {object} until [MASK].",
        }.get(mask)
        rows.append(
            {
                "statement_id": content_id("s", prompt, named[mask]),
                "task": "statement",
                "relation": "position held",
                "template": "statement",
                "mask": mask,
                "prompt": prompt,
                "bare_prompt": bare.format(**shown) if bare else None,
                "target": named[mask],
                "cardinality": "1-1",
                "fact_id": f"f{number}",
            }
        )
    return rows
