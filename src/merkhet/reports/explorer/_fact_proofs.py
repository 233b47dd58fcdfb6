"""The facts behind a question, and the proof of each: the tree from a conclusion down to what was stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.reports.explorer.run_tables import RunTables
from merkhet.reports.formatting import finite_or_none

_COLUMNS = ("fact_id", "subject", "predicate", "object", "value", "unit", "start", "end", "domain", "source", "rule")
_SELECTED = ", ".join(f'"{name}"' for name in (*_COLUMNS, "premises"))
_MOST = 300
"""Facts that one proof shows at most."""


def proofs(tables: RunTables, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """For each fact what it says, with its premises in the same form; a fact is proved where it first stands.

    A fact that the run does not hold has its id alone (``missing``); ``cut`` says that premises were left out because
    there are too many. Proofs may be deep or go in circles, so nothing here calls itself.
    """
    known = _read_all(tables, wanted)
    proved: set[str] = set()
    tops: list[dict[str, Any]] = []
    waiting: list[tuple[str, list[dict[str, Any]]]] = [(identity, tops) for identity in _tops(wanted, known)]
    while waiting:
        later = []
        for identity, into in waiting:
            fact = known.get(identity)
            if fact is None:
                into.append({"fact_id": identity, "missing": tables.has_facts, "premises": []})
                continue
            shown = {name: fact[name] for name in _COLUMNS}
            repeated, cut = identity in proved, False
            premises: list[dict[str, Any]] = []
            if fact["premises"] and not repeated:
                cut = any(one not in known for one in fact["premises"]) and len(known) >= _MOST
                later += [(one, premises) for one in fact["premises"] if one in known or not cut]
            proved.add(identity)
            repeated = repeated and bool(fact["premises"])
            into.append({**shown, "repeated": repeated, "cut": cut, "premises": premises})
        waiting = later
    return tops


def _tops(wanted: Sequence[str], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The facts that are no premise, near or far, of another one of them: those stand in its proof."""
    below: set[str] = set()
    for identity in wanted:
        waiting, seen = [identity], {identity}
        while waiting:
            premises = (known.get(waiting.pop()) or {}).get("premises") or ()
            further = [one for one in premises if one not in seen]
            seen.update(further)
            waiting += further
        below |= seen - {identity}
    return [identity for identity in dict.fromkeys(wanted) if identity not in below] or list(wanted[:1])


def _read_all(tables: RunTables, wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The facts and all that they come from, level by level, up to a limit."""
    known: dict[str, dict[str, Any]] = {}
    asked: set[str] = set()
    level = list(dict.fromkeys(wanted))
    while level and tables.has_facts and len(known) < _MOST:
        asked.update(level)
        found = tables.query(
            f"select {_SELECTED} from facts where fact_id in (select unnest($1))", [level[: _MOST - len(known)]]
        )
        place = {identity: number for number, identity in enumerate(level)}
        rows = sorted(
            (dict(zip((*_COLUMNS, "premises"), row, strict=True)) for row in found),
            key=lambda row: place[row["fact_id"]],
        )
        known.update({row["fact_id"]: {**row, "value": finite_or_none(row["value"])} for row in rows})
        level = [one for one in dict.fromkeys(p for row in rows for p in row["premises"] or ()) if one not in asked]
    return known
