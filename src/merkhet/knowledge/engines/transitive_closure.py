"""The closure of a relation: who is above whom, however far, by joining what is new with the edges."""

from __future__ import annotations

from merkhet.knowledge.engines.relational_engine import Tables


def close_over(tables: Tables, edges: str, into: str) -> None:
    """Make a table (low, high) of all pairs that a way along the edges joins; a circle leads back to its start.

    ``edges`` is a query with the columns low and high.
    """
    tables.make(f"{into}_edges", f"select distinct low, high from ({edges}) e")
    tables.make(into, f"select low, high from {into}_edges")
    tables.make(f"{into}_new", f"select low, high from {into}_edges")
    while tables.count(f"{into}_new"):
        tables.make(
            f"{into}_new",
            f"""select distinct n.low, e.high from {into}_new n join {into}_edges e on e.low = n.high
            anti join {into} k on k.low = n.low and k.high = e.high""",
        )
        tables.add(into, f"select low, high from {into}_new")
    for name in ("edges", "new"):
        tables.drop(f"{into}_{name}")
