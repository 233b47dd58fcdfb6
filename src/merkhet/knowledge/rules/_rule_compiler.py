"""Compilation of rules to SQL queries on facts that are encoded as integers.

Evaluation is semi-naive: each round joins only new facts with all facts. The columns of a fact are its number n,
subject s, predicate p, object o, start a, end b, domain d, and the round g and rule r that inferred it. Entities have
positive numbers, literals negative numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from merkhet.knowledge.rules.rulebook import Rule

MAX_PREMISES = 3  # For all rules except chains; a chain has one premise more than steps.
_IS_ENTITY = "f.o > 0"
# The queries of each rule shape. A query infers a conclusion from a fact f and an axiom x; it is given by subject,
# predicate and object of the conclusion, the join condition of f and x, and a further condition.
_SHAPES: dict[str, tuple[tuple[str, str, str, str, str], ...]] = {
    "turn": (("f.o", "f.p", "f.s", "x.s = f.p", _IS_ENTITY),),
    "swap": (("f.s", "x.o", "f.o", "x.s = f.p", "true"), ("f.s", "x.s", "f.o", "x.o = f.p", "true")),
    "turn swap": (("f.o", "x.o", "f.s", "x.s = f.p", _IS_ENTITY), ("f.o", "x.s", "f.s", "x.o = f.p", _IS_ENTITY)),
    "subject type": (("f.s", "{type}", "x.o", "x.s = f.p", "true"),),
    "object type": (("f.o", "{type}", "x.o", "x.s = f.p", _IS_ENTITY),),
    "raise": (("f.s", "x.o", "f.o", "x.s = f.p", "{not_raised}"),),
    "raise type": (("f.s", "f.p", "x.o", "x.s = f.o", "{is_type} and {not_raised}"),),
    "swap type": (("f.s", "f.p", "x.o", "x.s = f.o", "{is_type}"), ("f.s", "f.p", "x.s", "x.o = f.o", "{is_type}")),
}


@dataclass(frozen=True)
class Axioms:
    """A summary of the axioms that the rules use in a round."""

    filled: frozenset[str]
    """Roles and characteristics with at least one axiom."""
    closed: frozenset[str]
    """Roles whose axioms are transitively closed."""
    chains: tuple[int, ...]
    """The distinct lengths of property chains."""
    types: tuple[int, ...]
    """The numbers of the predicates that state a type."""
    type: int
    """The number of the predicate for inferred types."""


@dataclass(frozen=True)
class RuleCompiler:
    """A compiler of rules to queries.

    A query returns conclusions with their times, the code of the rule and the numbers of the premises.
    """

    premises: int
    """The number of premise columns."""
    timed: bool
    number: str
    """The SQL type of a fact number."""

    def rule_queries(self, rule: Rule, code: int, axioms: Axioms, round_number: int) -> Iterator[str]:
        """Yield queries for the conclusions of a rule that have a premise from the given round."""
        if rule.axiom not in axioms.filled:
            return
        join, new = f"facts_now f join {axiom_table(rule.axiom)} x on", f"f.g = {round_number}"
        parts = {
            "type": str(axioms.type),
            "is_type": f"f.p in ({', '.join(map(str, axioms.types))})",
            # With closed axioms, a fact from this rule adds nothing: its premise already gave the facts of all levels.
            "not_raised": f"f.r != {code}" if rule.axiom in axioms.closed else "true",
        }
        for *conclusion, on, condition in _SHAPES.get(rule.shape, ()):
            terms = [term.format(**parts) for term in conclusion]
            yield self._select(code, terms, f"{join} {on} where {new} and {condition.format(**parts)}", "x f")
        if rule.shape == "join":
            # Extend paths on the right by edges that this rule did not infer, which avoids repeated splits of a path.
            pair = f"{join} x.s = f.p join facts_now e on e.p = f.p and e.s = f.o and e.r != {code}"
            for age in (new, f"f.g < {round_number} and e.g = {round_number}"):
                yield self._select(code, ["f.s", "f.p", "e.o"], f"{pair} where {age}", "x f e")
        elif rule.shape == "chain":
            for length in axioms.chains:
                yield from self._chain_queries(code, length, round_number)

    def closure_query(self, role: str, code: int, round_number: int) -> str:
        """Return a query that extends the transitive closure of subclass or subproperty axioms by one stated axiom."""
        table = axiom_table(role)
        source = f"{table} f join {table} e on e.s = f.o and e.r != {code} where f.g = {round_number} and f.s != e.o"
        return self._select(code, ["f.s", "f.p", "e.o"], source, "f e")

    def _chain_queries(self, code: int, length: int, round_number: int) -> Iterator[str]:
        """Yield one query for each step of a property chain; the query matches new facts at that step.

        The query joins from that step to the right end of the chain, then to the left end. Each join is materialized,
        because a plan that joins both ends first would produce all pairs of ends.
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
                times = "greatest(x.a, f.a) as a, least(x.b, f.b) as b" if self.timed else ""
                dropped = "a, b, " * self.timed + ("low, high" if position else "")
                other_columns = f"x.* exclude ({dropped.rstrip(', ')})" if dropped else "x.*"
                source = f"{prefix}{position - 1}" if position else f"chain_{length}"
                columns = ", ".join(part for part in (other_columns, ends, times, f"f.n as n{step}") if part)
                parts.append(
                    f"{prefix}{position} as materialized (select {columns} from {source} x join facts_now f on {on})"
                )
            columns = ", ".join(["low as s", "head as p", "high as o", *(["a", "b"] if self.timed else [])])
            proof = self._proof(code, ["n", *(f"n{step}" for step in range(1, length + 1))])
            overlap = " where a <= b" if self.timed else ""
            yield f"with {', '.join(parts)} select {columns}, {proof} from {prefix}{length - 1}{overlap}"

    def _select(self, code: int, conclusion: Sequence[str], source: str, atoms: str) -> str:
        """Return the query for a conclusion.

        Args:
            code: The code of the rule.
            conclusion: SQL expressions for subject, predicate and object.
            source: The from clause that joins the premises; it must end with a where clause.
            atoms: The SQL aliases of the premises, separated by spaces.
        """
        names = atoms.split()
        columns = [f"{term} as {name}" for term, name in zip(conclusion, "spo", strict=True)]
        if self.timed:
            # The conclusion holds while all of its premises hold.
            start = f"greatest({', '.join(f'{name}.a' for name in names)})"
            end = f"least({', '.join(f'{name}.b' for name in names)})"
            columns += [f"{start} as a", f"{end} as b"]
            source += f" and {start} <= {end}"
        return f"select {', '.join(columns)}, {self._proof(code, [f'{name}.n' for name in names])} from {source}"

    def _proof(self, code: int, numbers: Sequence[str]) -> str:
        unused = [f"cast(null as {self.number})"] * (self.premises - len(numbers))
        columns = zip([*numbers, *unused], premise_columns(self.premises), strict=True)
        return ", ".join([f"{code} as r", *(f"{number} as {name}" for number, name in columns)])


def axiom_table(role: str) -> str:
    """Return the name of the table with the axioms of a role or characteristic."""
    return f"axiom_{role.replace(' ', '_')}"


def premise_columns(count: int) -> list[str]:
    """Return the names of ``count`` premise columns: f1, f2 and so on."""
    return [f"f{position}" for position in range(1, count + 1)]
