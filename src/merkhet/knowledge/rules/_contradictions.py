"""What does not fit together: functional properties with two objects, things that are declared disjoint, circles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.rules._fact_numbering import earliest, latest
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS

MOST_SHOWN = 1000


@dataclass(frozen=True)
class Contradiction:
    """Facts that cannot all be so, and the declaration that says it."""

    kind: str
    about: str
    facts: tuple[str, ...]


def find_contradictions(
    tables: Tables,
    roles: Mapping[str, Sequence[str]],
    numbers: Mapping[str, int],
    *,
    timed: bool,
) -> tuple[list[Contradiction], int]:
    """Contradictions among stated and inferred facts (the first thousand), and how many there are.

    Two facts contradict each other only at a time when both hold for certain: of two office holders in one year,
    the one may have followed the other.
    """
    types = ", ".join(str(numbers[name]) for name in roles["type"])

    def declared(kind: str) -> str:
        return f"(select s from facts_now where p in ({types}) and o = {numbers[CHARACTERISTICS[kind]]})"

    def pairs(role: str) -> str:
        # What is declared both ways is one declaration.
        predicates = ", ".join(str(numbers[name]) for name in roles[role])
        return f"(select distinct least(s, o) as s, greatest(s, o) as o from facts_now where p in ({predicates}))"

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
            f"select d.s, x.n, y.n from {pairs('disjoint properties')} d join facts_now x on x.p = d.s "
            f"join facts_now y on y.p = d.o and y.s = x.s and y.o = x.o {both}"
        ),
        "disjoint classes": (
            f"select d.s, x.n, y.n from {pairs('disjoint classes')} d "
            f"join facts_now x on x.o = d.s and x.p in ({types}) "
            f"join facts_now y on y.o = d.o and y.p in ({types}) and y.s = x.s {both}"
        ),
    }
    found: list[Contradiction] = []
    count = 0
    for kind, query in queries.items():
        tables.make("clashes", f"select * from ({query}) as clash(about, one, other)")
        here = tables.count("clashes")
        count += here
        rows = (
            tables.rows(
                "select t.term, i.fact_id, j.fact_id from clashes c join terms t on t.id = c.about "
                "join ids i on i.n = c.one join ids j on j.n = c.other "
                f"order by t.term, i.fact_id, j.fact_id limit {MOST_SHOWN}"
            )
            if here
            else []
        )
        found += [Contradiction(kind, about, tuple(dict.fromkeys((one, other)))) for about, one, other in rows]
    return found[:MOST_SHOWN], count


def find_cycles(tables: Tables, predicates: Sequence[str]) -> list[list[str]]:
    """Classes or properties that are each below the other: every circle of a hierarchy, its members in order."""
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in predicates)
    tables.make(
        "hierarchy",
        "select distinct predicate, subject as low, object as high from facts "
        f"where rule is null and predicate in ({listed}) and object is not null and subject != object",
    )
    # Only what has an edge in and an edge out can be in a circle; once the rest is gone, that is true of fewer still.
    narrower = (
        "select h.predicate, h.low, h.high from hierarchy h "
        "semi join (select predicate, high from hierarchy) i on i.predicate = h.predicate and i.high = h.low "
        "semi join (select predicate, low from hierarchy) o on o.predicate = h.predicate and o.low = h.high"
    )
    before = -1
    while before != (left := tables.count("hierarchy")) and left:
        before = left
        tables.make("hierarchy", narrower)
    edges: dict[str, dict[str, list[str]]] = {}
    for predicate, low, high in tables.rows("select predicate, low, high from hierarchy order by predicate, low, high"):
        edges.setdefault(predicate, {}).setdefault(low, []).append(high)
    circles = {tuple(members) for one in edges.values() for members in _components(one)}
    return [list(members) for members in sorted(circles)]


def _components(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Sets of more than one node each of which leads to each other (Tarjan's algorithm, without recursion)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_nodes: list[str] = []
    is_open: set[str] = set()
    found = []
    for root in edges:
        path = [] if root in number else [(root, iter(edges[root]))]
        while path:
            node, further = path[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                open_nodes.append(node)
                is_open.add(node)
            for next_node in further:
                if next_node not in number:
                    path.append((next_node, iter(edges.get(next_node, ()))))
                    break
                if next_node in is_open:
                    lowest[node] = min(lowest[node], number[next_node])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    members = [open_nodes.pop()]
                    while members[-1] != node:
                        members.append(open_nodes.pop())
                    is_open.difference_update(members)
                    found += [sorted(members)] if len(members) > 1 else []
    return found


def _certainly_overlap(one: str, other: str) -> str:
    starts = f"greatest({latest(f'{one}.a')}, {latest(f'{other}.a')})"
    ends = f"least({earliest(f'{one}.b')}, {earliest(f'{other}.b')})"
    return f"{starts} < {ends}"
