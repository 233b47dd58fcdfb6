"""Detection of contradictory facts and of cycles in hierarchies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.knowledge.database import sql_literals
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.rules._fact_numbering import earliest_end, latest_start
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS

MAX_LISTED = 1000


@dataclass(frozen=True)
class Contradiction:
    """Facts that cannot all be true because of an axiom."""

    kind: str
    """The kind of the violated axiom, such as ``functional`` or ``disjoint classes``."""
    about: str
    """The property or class that the axiom is about."""
    facts: tuple[str, ...]
    """The ids of the contradictory facts."""


def find_contradictions(
    tables: Tables,
    roles: Mapping[str, Sequence[str]],
    numbers: Mapping[str, int],
    *,
    timed: bool,
) -> tuple[list[Contradiction], int]:
    """Find contradictions among stated and inferred facts.

    Two facts contradict each other only if their times certainly overlap. Two office holders in the same year do not
    contradict each other, since one may have succeeded the other.

    Returns:
        The first thousand contradictions, and the number of all contradictions.
    """
    types = ", ".join(str(numbers[name]) for name in roles["type"])

    def declared(kind: str) -> str:
        return f"(select s from facts_now where p in ({types}) and o = {numbers[CHARACTERISTICS[kind]]})"

    def pairs(role: str) -> str:
        # A declaration in both directions counts once.
        predicates = ", ".join(str(numbers[name]) for name in roles[role])
        return f"(select distinct least(s, o) as s, greatest(s, o) as o from facts_now where p in ({predicates}))"

    overlap = f"and {_certainly_overlap('x', 'y')}" if timed else ""
    limited = "select * from facts_now where p in {} qualify row_number() over (partition by {}, p order by n) <= 100"
    queries = {
        "functional": (
            f"with f as ({limited.format(declared('functional'), 's')}) select x.p, x.n, y.n from f x join f y "
            f"on x.s = y.s and x.p = y.p and x.n < y.n and x.o != y.o {overlap}"
        ),
        "inverse functional": (
            f"with f as ({limited.format(declared('inverse functional'), 'o')}) select x.p, x.n, y.n from f x join f y "
            f"on x.o = y.o and x.p = y.p and x.n < y.n and x.s != y.s {overlap}"
        ),
        "asymmetric": (
            f"with f as (select * from facts_now where p in {declared('asymmetric')}) select x.p, x.n, y.n "
            f"from f x join f y on x.s = y.o and x.o = y.s and x.p = y.p and x.n <= y.n {overlap}"
        ),
        "irreflexive": f"select p, n, n from facts_now where s = o and p in {declared('irreflexive')}",
        "disjoint properties": (
            f"select d.s, x.n, y.n from {pairs('disjoint properties')} d join facts_now x on x.p = d.s "
            f"join facts_now y on y.p = d.o and y.s = x.s and y.o = x.o {overlap}"
        ),
        "disjoint classes": (
            f"select d.s, x.n, y.n from {pairs('disjoint classes')} d "
            f"join facts_now x on x.o = d.s and x.p in ({types}) "
            f"join facts_now y on y.o = d.o and y.p in ({types}) and y.s = x.s {overlap}"
        ),
    }
    contradictions: list[Contradiction] = []
    total = 0
    for kind, query in queries.items():
        tables.make("clashes", f"select * from ({query}) as clash(about, left_fact, right_fact)")
        clashes = tables.count("clashes")
        total += clashes
        rows = (
            tables.rows(
                "select t.term, i.fact_id, j.fact_id from clashes c join terms t on t.id = c.about "
                "join ids i on i.n = c.left_fact join ids j on j.n = c.right_fact "
                f"order by t.term, i.fact_id, j.fact_id limit {MAX_LISTED}"
            )
            if clashes
            else []
        )
        contradictions += [
            Contradiction(kind, about, tuple(dict.fromkeys((first, second)))) for about, first, second in rows
        ]
    return contradictions[:MAX_LISTED], total


def find_cycles(tables: Tables, predicates: Sequence[str]) -> list[list[str]]:
    """Find cycles among the stated facts of each predicate; return the sorted members of each cycle."""
    tables.make(
        "hierarchy",
        "select distinct predicate, subject as low, object as high from facts "
        f"where rule is null and predicate in ({sql_literals(*predicates)}) "
        "and object is not null and subject != object",
    )
    # Only nodes with incoming and outgoing edges can be in a cycle; prune other nodes until none is left to prune.
    narrower = (
        "select h.predicate, h.low, h.high from hierarchy h "
        "semi join (select predicate, high from hierarchy) i on i.predicate = h.predicate and i.high = h.low "
        "semi join (select predicate, low from hierarchy) o on o.predicate = h.predicate and o.low = h.high"
    )
    previous = -1
    while previous != (remaining := tables.count("hierarchy")) and remaining:
        previous = remaining
        tables.make("hierarchy", narrower)
    edges: dict[str, dict[str, list[str]]] = {}
    for predicate, low, high in tables.rows("select predicate, low, high from hierarchy order by predicate, low, high"):
        edges.setdefault(predicate, {}).setdefault(low, []).append(high)
    cycles = {tuple(members) for graph in edges.values() for members in _strong_components(graph)}
    return [list(members) for members in sorted(cycles)]


def _strong_components(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Find strongly connected components with at least two nodes, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low_link: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components = []
    for root in edges:
        path = [] if root in index else [(root, iter(edges[root]))]
        while path:
            node, successors = path[-1]
            if node not in index:
                index[node] = low_link[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for next_node in successors:
                if next_node not in index:
                    path.append((next_node, iter(edges.get(next_node, ()))))
                    break
                if next_node in on_stack:
                    low_link[node] = min(low_link[node], index[next_node])
            else:
                path.pop()
                if path:
                    low_link[path[-1][0]] = min(low_link[path[-1][0]], low_link[node])
                if low_link[node] == index[node]:
                    members = [stack.pop()]
                    while members[-1] != node:
                        members.append(stack.pop())
                    on_stack.difference_update(members)
                    components += [sorted(members)] if len(members) > 1 else []
    return components


def _certainly_overlap(first: str, second: str) -> str:
    starts = f"greatest({latest_start(f'{first}.a')}, {latest_start(f'{second}.a')})"
    ends = f"least({earliest_end(f'{first}.b')}, {earliest_end(f'{second}.b')})"
    return f"{starts} < {ends}"
