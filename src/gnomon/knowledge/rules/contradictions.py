"""What does not fit together: functional properties with two objects, things that are declared disjoint, circles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from gnomon.knowledge.rules.rulebook import KINDS

MOST_SHOWN = 1000


@dataclass(frozen=True)
class Contradiction:
    """Facts that cannot all be so, and the declaration that says it."""

    kind: str
    about: str
    facts: tuple[str, ...]


def find_contradictions(
    connection: duckdb.DuckDBPyConnection, roles: Mapping[str, Sequence[str]], numbers: Mapping[str, int], *, timed: bool
) -> tuple[list[Contradiction], int]:
    """Contradictions among stated and inferred facts (the first thousand), and how many there are.

    Two facts contradict each other only at a time when both hold for certain: of two office holders in one year,
    the one may have followed the other.
    """
    types = ", ".join(str(numbers[name]) for name in roles["type"])

    def declared(kind: str) -> str:
        return f"(select s from facts_now where p in ({types}) and o = {numbers[KINDS[kind]]})"

    def pairs(role: str) -> str:
        return f"(select s, o from facts_now where p in ({', '.join(str(numbers[name]) for name in roles[role])}))"

    both = f"and {_certainly_overlap('x', 'y')}" if timed else ""
    few = "select * from facts_now where p in {} qualify row_number() over (partition by {}, p order by n) <= 100"
    queries = {
        "functional": (
            f"with f as ({few.format(declared('functional'), 's')}) select x.p, x.n, y.n from f x join f y "
            f"on x.s = y.s and x.p = y.p and x.n < y.n and x.o != y.o {both}"
        ),
        "inverse functional": (
            f"with f as ({few.format(declared('inverse functional'), 'o')}) select x.p, x.n, y.n from f x join f y "
            f"on x.o = y.o and x.p = y.p and x.n < y.n and x.s != y.s {both}"
        ),
        "asymmetric": (
            f"with f as (select * from facts_now where p in {declared('asymmetric')}) select x.p, x.n, y.n "
            f"from f x join f y on x.s = y.o and x.o = y.s and x.p = y.p and x.n <= y.n {both}"
        ),
        "irreflexive": f"select p, n, n from facts_now where s = o and p in {declared('irreflexive')}",
        "disjoint properties": (
            f"select x.p, x.n, y.n from {pairs('disjoint properties')} d join facts_now x on x.p = d.s "
            f"join facts_now y on y.p = d.o and y.s = x.s and y.o = x.o {both}"
        ),
        "disjoint classes": (
            f"select d.s, x.n, y.n from {pairs('disjoint classes')} d join facts_now x on x.o = d.s and x.p in ({types}) "
            f"join facts_now y on y.o = d.o and y.p in ({types}) and y.s = x.s {both}"
        ),
    }
    found: list[Contradiction] = []
    count = 0
    for kind, query in queries.items():
        connection.execute(f"create or replace temp table clashes as select * from ({query}) clash(about, one, other)")
        count += int(connection.execute("select count(*) from clashes").fetchall()[0][0])
        rows = connection.execute(
            "select term, i.fact_id, j.fact_id from clashes join terms on terms.id = about "
            "join ids i on i.n = one join ids j on j.n = other order by all limit ?",
            [MOST_SHOWN],
        ).fetchall()
        found += [Contradiction(kind, about, tuple(dict.fromkeys((one, other)))) for about, one, other in rows]
    return found[:MOST_SHOWN], count


def find_cycles(connection: duckdb.DuckDBPyConnection, predicates: Sequence[str]) -> list[list[str]]:
    """Classes or properties that are each below the other: every circle of a hierarchy, its members in order."""
    rows = connection.execute(
        "with recursive edges as (select distinct subject as low, object as high, predicate from facts "
        "  where rule is null and list_contains($predicates, predicate) and object is not null and subject != object"
        "), both_ways as ("
        # Only what has an edge in and an edge out can be in a circle.
        "  select low, high, predicate from edges where low in (select high from edges) and high in (select low from edges)"
        "), above(low, high, predicate) as ("
        "  select low, high, predicate from both_ways"
        "  union select above.low, e.high, above.predicate from above join both_ways e "
        "    on e.low = above.high and e.predicate = above.predicate"
        ") select low, list(high order by high) from above x "
        "where exists (from above y where y.low = x.high and y.high = x.low and y.predicate = x.predicate) "
        "group by low, predicate order by low",
        {"predicates": list(predicates)},
    ).fetchall()
    return [list(members) for members in sorted({tuple(members) for _, members in rows})]


def _certainly_overlap(one: str, other: str) -> str:
    def latest(start: str) -> str:
        return f"{start} + case when {start} % 10000 = 0 then 9999 when {start} % 100 = 0 then 99 else 0 end"

    def earliest(end: str) -> str:
        return f"{end} - case when {end} % 10000 = 9999 then 9999 when {end} % 100 = 99 then 99 else 0 end"

    starts = f"greatest({latest(f'{one}.a')}, {latest(f'{other}.a')})"
    ends = f"least({earliest(f'{one}.b')}, {earliest(f'{other}.b')})"
    return f"{starts} < {ends}"
