"""Proof trees of the facts behind a question, from conclusions down to premises that were not inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.core.text import finite_or_none
from merkhet.reports.explorer.run_tables import RunTables

_COLUMNS = ("fact_id", "subject", "predicate", "object", "value", "unit", "start", "end", "domain", "source", "rule")
_SELECT = ", ".join(f'"{name}"' for name in (*_COLUMNS, "premises"))
_MAX_FACTS = 300
"""Maximum number of facts in the proofs of a question."""


def build_proofs(tables: RunTables, fact_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Build the proof trees of facts; a fact's premises are expanded only at its first occurrence.

    A fact that was not found has only the keys ``fact_id``, ``missing`` and ``premises``. ``cut`` marks a fact with
    premises that were omitted to limit the number of facts. The search is iterative, because proofs can be deep or
    circular.
    """
    facts = _read_facts(tables, fact_ids)
    proved: set[str] = set()
    roots: list[dict[str, Any]] = []
    level: list[tuple[str, list[dict[str, Any]]]] = [(fact_id, roots) for fact_id in _root_ids(fact_ids, facts)]
    while level:
        next_level = []
        for fact_id, siblings in level:
            fact = facts.get(fact_id)
            if fact is None:
                siblings.append({"fact_id": fact_id, "missing": tables.has_facts, "premises": []})
                continue
            fields = {name: fact[name] for name in _COLUMNS}
            repeated, truncated = fact_id in proved, False
            premises: list[dict[str, Any]] = []
            if fact["premises"] and not repeated:
                truncated = any(premise not in facts for premise in fact["premises"]) and len(facts) >= _MAX_FACTS
                next_level += [(premise, premises) for premise in fact["premises"] if premise in facts or not truncated]
            proved.add(fact_id)
            repeated = repeated and bool(fact["premises"])
            siblings.append({**fields, "repeated": repeated, "cut": truncated, "premises": premises})
        level = next_level
    return roots


def _root_ids(fact_ids: Sequence[str], facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the ids in ``fact_ids`` that are not a direct or indirect premise of another id in ``fact_ids``."""
    descendants: set[str] = set()
    for fact_id in fact_ids:
        queue, visited = [fact_id], {fact_id}
        while queue:
            premises = (facts.get(queue.pop()) or {}).get("premises") or ()
            unvisited = [premise for premise in premises if premise not in visited]
            visited.update(unvisited)
            queue += unvisited
        descendants |= visited - {fact_id}
    return [fact_id for fact_id in dict.fromkeys(fact_ids) if fact_id not in descendants] or list(fact_ids[:1])


def _read_facts(tables: RunTables, fact_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read the facts and their direct and indirect premises breadth-first, at most ``_MAX_FACTS`` facts."""
    facts: dict[str, dict[str, Any]] = {}
    asked: set[str] = set()
    level = list(dict.fromkeys(fact_ids))
    while level and tables.has_facts and len(facts) < _MAX_FACTS:
        asked.update(level)
        rows = tables.query(
            f"select {_SELECT} from facts where fact_id in (select unnest($ids))",
            {"ids": level[: _MAX_FACTS - len(facts)]},
        )
        position = {fact_id: number for number, fact_id in enumerate(level)}
        rows.sort(key=lambda row: position[row["fact_id"]])
        facts.update({row["fact_id"]: {**row, "value": finite_or_none(row["value"])} for row in rows})
        level = [
            premise
            for premise in dict.fromkeys(p for row in rows for p in row["premises"] or ())
            if premise not in asked
        ]
    return facts
