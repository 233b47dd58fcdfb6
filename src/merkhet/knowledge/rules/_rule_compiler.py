"""Rules as SQL over numbered facts: each round joins what is new with what is there, never all with all again.

Facts are rows (n, s, p, o, a, b, d, g, r): number, subject, predicate, object, start and end as numbers that compare,
domain, the round they came in, the rule they came by. Entities are positive numbers, literals negative ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from merkhet.knowledge.rules.rulebook import Rule

MOST_PREMISES = 3  # Of all rules but chains, which have one more than steps.


@dataclass(frozen=True)
class Axioms:
    """Which axiom tables have rows, which are closed, how long chains are, and the predicates that say a type.

    ``type`` is the one of them that new type facts get.
    """

    filled: frozenset[str]
    closed: frozenset[str]
    chains: tuple[int, ...]
    types: tuple[int, ...]
    type: int


def width(axioms: Axioms) -> int:
    """How many premises a conclusion may have."""
    return max([MOST_PREMISES, *[length + 1 for length in axioms.chains]])


def statements(
    rule: Rule, code: int, axioms: Axioms, now: int, premises: int, *, timed: bool, number: str = "integer"
) -> Iterator[str]:
    """Queries whose rows are the rule's conclusions from facts that are new in this round, with their premises."""
    table = f"axiom_{rule.axiom.replace(' ', '_')}"
    if rule.axiom not in axioms.filled:
        return
    write = _Writer(code, premises, timed, number)
    types = f"f.p in ({', '.join(map(str, axioms.types))})"
    new = f"f.g = {now}"
    join = f"facts_now f join {table} x on "
    # Where the axioms are closed, what came by raising was raised as far as it goes when its premise was.
    fresh = f"f.r != {code}" if rule.axiom in axioms.closed else "true"
    if rule.shape == "turn":
        yield write("f.o", "f.p", "f.s", f"{join} x.s = f.p where {new} and f.o > 0", "x f")
    elif rule.shape == "swap":
        yield write("f.s", "x.o", "f.o", f"{join} x.s = f.p where {new}", "x f")
        yield write("f.s", "x.s", "f.o", f"{join} x.o = f.p where {new}", "x f")
    elif rule.shape == "turn swap":
        yield write("f.o", "x.o", "f.s", f"{join} x.s = f.p where {new} and f.o > 0", "x f")
        yield write("f.o", "x.s", "f.s", f"{join} x.o = f.p where {new} and f.o > 0", "x f")
    elif rule.shape == "subject type":
        yield write("f.s", str(axioms.type), "x.o", f"{join} x.s = f.p where {new}", "x f")
    elif rule.shape == "object type":
        yield write("f.o", str(axioms.type), "x.o", f"{join} x.s = f.p where {new} and f.o > 0", "x f")
    elif rule.shape == "raise":
        yield write("f.s", "x.o", "f.o", f"{join} x.s = f.p where {new} and {fresh}", "x f")
    elif rule.shape == "raise type":
        yield write("f.s", "f.p", "x.o", f"{join} x.s = f.o where {new} and {types} and {fresh}", "x f")
    elif rule.shape == "swap type":
        yield write("f.s", "f.p", "x.o", f"{join} x.s = f.o where {new} and {types}", "x f")
        yield write("f.s", "f.p", "x.s", f"{join} x.o = f.o where {new} and {types}", "x f")
    elif rule.shape == "join":
        # Left to right along the given edges: every path is found once for each of its last steps.
        pair = f"{join} x.s = f.p join facts_now e on e.p = f.p and e.s = f.o and e.r != {code}"
        yield write("f.s", "f.p", "e.o", f"{pair} where {new}", "x f e")
        yield write("f.s", "f.p", "e.o", f"{pair} where f.g < {now} and e.g = {now}", "x f e")
    elif rule.shape == "chain":
        for length in axioms.chains:
            yield from _chain(write, length, now)


def closing(role: str, code: int, now: int, premises: int, *, timed: bool, number: str = "integer") -> str:
    """The query that closes an axiom table (subclass, subproperty) over itself, one step along the stated ones."""
    write = _Writer(code, premises, timed, number)
    table = f"axiom_{role}"
    source = f"{table} f join {table} e on e.s = f.o and e.r != {code} where f.g = {now} and f.s != e.o"
    return write("f.s", "f.p", "e.o", source, "f e")


def _chain(write: _Writer, length: int, now: int) -> Iterator[str]:
    """One query for each step of the chain that may be the new one: from it to the right end, then to the left.

    Each join is written out before the next, since a plan that joins both ends first meets all their pairs.
    """
    for fresh in range(1, length + 1):
        order = [*range(fresh, length + 1), *range(fresh - 1, 0, -1)]
        step_of = f"step_{length}_{fresh}_"
        parts = []
        for place, step in enumerate(order):
            age = "=" if step == fresh else "<" if step < fresh else "<="
            on = f"f.p = x.p{step} and f.g {age} {now}"
            if place == 0:
                ends = "f.s as low, f.o as high"
            elif step > fresh:
                on, ends = f"{on} and f.s = x.high", "x.low, f.o as high"
            else:
                on, ends = f"{on} and f.o = x.low", "f.s as low, x.high"
            times = "greatest(x.a, f.a) as a, least(x.b, f.b) as b" if write.timed else ""
            dropped = "a, b, " * write.timed + ("low, high" if place else "")
            kept = f"x.* exclude ({dropped.rstrip(', ')})" if dropped else "x.*"
            source = f"{step_of}{place - 1}" if place else f"chain_{length}"
            columns = ", ".join(part for part in (kept, ends, times, f"f.n as n{step}") if part)
            parts.append(
                f"{step_of}{place} as materialized (select {columns} from {source} x join facts_now f on {on})"
            )
        numbers = ["n", *[f"n{step}" for step in range(1, length + 1)]]
        yield f"with {', '.join(parts)} " + write.given(numbers, f"{step_of}{length - 1}")


@dataclass(frozen=True)
class _Writer:
    """Writes the select of a rule: the conclusion, when it holds, the rule's number, the premises' numbers."""

    code: int
    premises: int
    timed: bool
    number: str

    @property
    def nothing(self) -> str:
        """A premise that there is none of."""
        return f"cast(null as {self.number})"

    def __call__(self, subject: str, predicate: str, object: str, source: str, atoms: str) -> str:
        names = atoms.split()
        numbers = [f"{name}.n" for name in names] + [self.nothing] * (self.premises - len(names))
        columns = [f"{subject} as s", f"{predicate} as p", f"{object} as o"]
        where = ""
        if self.timed:
            # It holds when all of its premises hold.
            start = f"greatest({', '.join(f'{name}.a' for name in names)})"
            end = f"least({', '.join(f'{name}.b' for name in names)})"
            columns += [f"{start} as a", f"{end} as b"]
            where = (" and " if " where " in source else " where ") + f"{start} <= {end}"
        columns += [f"{self.code} as r", *[f"{number} as f{place}" for place, number in enumerate(numbers, 1)]]
        return f"select {', '.join(columns)} from {source}{where}"

    def given(self, numbers: Sequence[str], source: str) -> str:
        """The same from a table that holds the conclusion as (low, head, high), its times and its premises."""
        numbers = [*numbers, *[self.nothing] * (self.premises - len(numbers))]
        columns = ["low as s", "head as p", "high as o", *(["a", "b"] if self.timed else []), f"{self.code} as r"]
        columns += [f"{number} as f{place}" for place, number in enumerate(numbers, 1)]
        return f"select {', '.join(columns)} from {source}" + (" where a <= b" if self.timed else "")


def names_of(premises: int) -> Sequence[str]:
    """The columns that hold premises."""
    return [f"f{place}" for place in range(1, premises + 1)]


def codes(rules: Sequence[Rule]) -> Mapping[str, int]:
    """A number for each rule; 0 is for what is stated."""
    return {rule.name: number for number, rule in enumerate(rules, 1)}
