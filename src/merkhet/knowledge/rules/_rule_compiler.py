"""Compilation of rules to semi-naive SQL over numbered facts: each round joins only new facts with all facts.

Facts are rows (n, s, p, o, a, b, d, g, r): number, subject, predicate, object, start and end as comparable numbers,
domain, the round and the rule of the inference. Entities are positive numbers, literals negative ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from merkhet.knowledge.rules.rulebook import Rule

MAX_PREMISES = 3  # Of all rules except chains, which have one more than steps.


@dataclass(frozen=True)
class Axioms:
    """The axioms that hold in a round."""

    filled: frozenset[str]
    """Roles and characteristics whose axiom tables have rows."""
    closed: frozenset[str]
    """Roles whose axiom tables are transitively closed."""
    chains: tuple[int, ...]
    """The lengths of property chains."""
    types: tuple[int, ...]
    """The predicates that state a type."""
    type: int
    """The predicate of new type facts."""


def rule_queries(
    rule: Rule, code: int, axioms: Axioms, round_number: int, premises: int, *, timed: bool, number: str = "integer"
) -> Iterator[str]:
    """Yield queries for the conclusions of a rule from the facts of this round, with their premises."""
    table = f"axiom_{rule.axiom.replace(' ', '_')}"
    if rule.axiom not in axioms.filled:
        return
    write = _SelectWriter(code, premises, timed, number)
    types = f"f.p in ({', '.join(map(str, axioms.types))})"
    new = f"f.g = {round_number}"
    join = f"facts_now f join {table} x on "
    # With closed axioms, a raised fact was raised to every level together with its premise.
    not_raised = f"f.r != {code}" if rule.axiom in axioms.closed else "true"
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
        yield write("f.s", "x.o", "f.o", f"{join} x.s = f.p where {new} and {not_raised}", "x f")
    elif rule.shape == "raise type":
        yield write("f.s", "f.p", "x.o", f"{join} x.s = f.o where {new} and {types} and {not_raised}", "x f")
    elif rule.shape == "swap type":
        yield write("f.s", "f.p", "x.o", f"{join} x.s = f.o where {new} and {types}", "x f")
        yield write("f.s", "f.p", "x.s", f"{join} x.o = f.o where {new} and {types}", "x f")
    elif rule.shape == "join":
        # Extend paths by stated edges on the right: each path is found once for each of its last steps.
        pair = f"{join} x.s = f.p join facts_now e on e.p = f.p and e.s = f.o and e.r != {code}"
        yield write("f.s", "f.p", "e.o", f"{pair} where {new}", "x f e")
        yield write("f.s", "f.p", "e.o", f"{pair} where f.g < {round_number} and e.g = {round_number}", "x f e")
    elif rule.shape == "chain":
        for length in axioms.chains:
            yield from _chain_queries(write, length, round_number)


def closure_query(
    role: str, code: int, round_number: int, premises: int, *, timed: bool, number: str = "integer"
) -> str:
    """Return the query that extends the closure of an axiom table (subclass, subproperty) by one stated step."""
    write = _SelectWriter(code, premises, timed, number)
    table = f"axiom_{role}"
    source = f"{table} f join {table} e on e.s = f.o and e.r != {code} where f.g = {round_number} and f.s != e.o"
    return write("f.s", "f.p", "e.o", source, "f e")


def _chain_queries(write: _SelectWriter, length: int, round_number: int) -> Iterator[str]:
    """Yield one query for each step of a chain that may be new: from it to the right end, then to the left.

    Each join is materialized before the next: a plan that joins both ends first would meet all their pairs.
    """
    for fresh in range(1, length + 1):
        order = [*range(fresh, length + 1), *range(fresh - 1, 0, -1)]
        prefix = f"step_{length}_{fresh}_"
        parts = []
        for position, step in enumerate(order):
            age = "=" if step == fresh else "<" if step < fresh else "<="
            on = f"f.p = x.p{step} and f.g {age} {round_number}"
            if position == 0:
                ends = "f.s as low, f.o as high"
            elif step > fresh:
                on, ends = f"{on} and f.s = x.high", "x.low, f.o as high"
            else:
                on, ends = f"{on} and f.o = x.low", "f.s as low, x.high"
            times = "greatest(x.a, f.a) as a, least(x.b, f.b) as b" if write.timed else ""
            dropped = "a, b, " * write.timed + ("low, high" if position else "")
            other_columns = f"x.* exclude ({dropped.rstrip(', ')})" if dropped else "x.*"
            source = f"{prefix}{position - 1}" if position else f"chain_{length}"
            columns = ", ".join(part for part in (other_columns, ends, times, f"f.n as n{step}") if part)
            parts.append(
                f"{prefix}{position} as materialized (select {columns} from {source} x join facts_now f on {on})"
            )
        numbers = ["n", *[f"n{step}" for step in range(1, length + 1)]]
        yield f"with {', '.join(parts)} " + write.from_steps(numbers, f"{prefix}{length - 1}")


@dataclass(frozen=True)
class _SelectWriter:
    """Writes the select of a rule: the conclusion, its times, the rule's code and the premises' numbers."""

    code: int
    premises: int
    timed: bool
    number: str

    @property
    def null_premise(self) -> str:
        """SQL for an unused premise column."""
        return f"cast(null as {self.number})"

    def __call__(self, subject: str, predicate: str, object: str, source: str, atoms: str) -> str:
        names = atoms.split()
        numbers = [f"{name}.n" for name in names] + [self.null_premise] * (self.premises - len(names))
        columns = [f"{subject} as s", f"{predicate} as p", f"{object} as o"]
        where = ""
        if self.timed:
            # The conclusion holds while all of its premises hold.
            start = f"greatest({', '.join(f'{name}.a' for name in names)})"
            end = f"least({', '.join(f'{name}.b' for name in names)})"
            columns += [f"{start} as a", f"{end} as b"]
            where = (" and " if " where " in source else " where ") + f"{start} <= {end}"
        columns += [f"{self.code} as r", *[f"{number} as f{position}" for position, number in enumerate(numbers, 1)]]
        return f"select {', '.join(columns)} from {source}{where}"

    def from_steps(self, numbers: Sequence[str], source: str) -> str:
        """Return the select from a table that holds the conclusion as (low, head, high), its times and its premises."""
        numbers = [*numbers, *[self.null_premise] * (self.premises - len(numbers))]
        columns = ["low as s", "head as p", "high as o", *(["a", "b"] if self.timed else []), f"{self.code} as r"]
        columns += [f"{number} as f{position}" for position, number in enumerate(numbers, 1)]
        return f"select {', '.join(columns)} from {source}" + (" where a <= b" if self.timed else "")


def premise_columns(count: int) -> Sequence[str]:
    """Return the names of the premise columns."""
    return [f"f{position}" for position in range(1, count + 1)]


def rule_codes(rules: Sequence[Rule]) -> Mapping[str, int]:
    """Return the code of each rule; 0 is for stated facts."""
    return {rule.name: number for number, rule in enumerate(rules, 1)}
