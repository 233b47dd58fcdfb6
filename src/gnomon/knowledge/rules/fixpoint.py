"""Inference: rules applied until nothing new follows, every conclusion with the rule and the premises it came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from gnomon.foundation import InputError, Progress
from gnomon.foundation.progress import SilentProgress
from gnomon.foundation.tables import fact_id
from gnomon.knowledge import iris
from gnomon.knowledge.database import connected
from gnomon.knowledge.rules.compiling import MOST_PREMISES, Axioms, closing, codes, names_of, statements
from gnomon.knowledge.rules.contradictions import Contradiction, find_contradictions, find_cycles
from gnomon.knowledge.rules.declared import Declared
from gnomon.knowledge.rules.numbering import earliest, latest, made, number_facts, numbers_of
from gnomon.knowledge.rules.rulebook import KINDS, ROLES, Rule, chosen_rules
from gnomon.knowledge.rules.wording import store_conclusions

_CLOSED_BY = {"subclass": "rdfs11", "subproperty": "rdfs5"}
_BY_SOURCE = "rules/declared by source"
_RULE_BITS, _PACKED_BITS = 8, 126


@dataclass(frozen=True)
class Inference:
    """What followed: how many facts by which rule, in how many rounds, and what does not fit together."""

    stated: int
    inferred: int
    by_rule: dict[str, int]
    rounds: int
    contradictions: list[Contradiction] = field(default_factory=list)
    contradicted: int = 0
    cycles: list[list[str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def infer(
    store: Path,
    *,
    rules: Sequence[str] = (),
    declared: Declared | None = None,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Inference:
    """Add every fact that follows by the rules from the stated facts and is not stated itself.

    What was inferred before is inferred anew, so that the result depends on the stated facts and the rules alone.
    A conclusion holds when all of its premises hold: its times are their intersection. One transaction: whole or
    not at all.
    """
    chosen = chosen_rules(rules)
    declared = declared or Declared()
    with connected(store, read_only=False) as connection:
        if memory:
            connection.execute(f"set memory_limit = '{memory}'")
        connection.execute("begin")
        _forget(connection)
        _declare(connection, declared)
        work = _Work(connection, chosen, declared, progress or SilentProgress())
        rounds = work.run()
        store_conclusions(connection, [rule.name for rule in chosen], work.premises, timed=work.timed)
        result = work.result(rounds)
        _record(connection, chosen, declared, result)
        connection.execute("commit")
    return result


def _forget(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "delete from facts where rule is not null or source = ? or source in (select declared from inferences)",
        [_BY_SOURCE],
    )


def _declare(connection: duckdb.DuckDBPyConnection, declared: Declared) -> None:
    """Axioms of a rules file, and what sources declared of their predicates, as facts: premises have ids."""
    axioms = [(*axiom, declared.source) for axiom in declared.axioms]
    kinds = connection.execute('select name, functional, "symmetric" from predicates order by name').fetchall()
    for name, functional, symmetric in kinds:
        axioms += [(name, iris.TYPE, iris.SYMMETRIC, _BY_SOURCE)] if symmetric else []
        axioms += [(name, iris.TYPE, iris.FUNCTIONAL, _BY_SOURCE)] if functional else []
    columns = ("subject", "predicate", "object", "source")
    rows = [dict(zip(columns, axiom, strict=True)) for axiom in axioms]
    if rows:
        given = pa.Table.from_pylist([{"fact_id": fact_id(row), **row} for row in rows])
        connection.register("declared", given)
        connection.execute(
            "insert into facts by name from declared anti join facts using (fact_id) "
            "qualify row_number() over (partition by fact_id order by source desc) = 1"
        )
        connection.unregister("declared")


class _Work:
    """One inference: the facts as numbers, the axioms among them, and the rounds."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule], declared: Declared, progress: Progress
    ) -> None:
        self.connection = connection
        self.rules = rules
        self.codes = codes(rules)
        self.roles = declared.roles()
        self.progress = progress
        chains = self._read_chains()
        self.premises = names_of(max([MOST_PREMISES, *[len(steps) + 1 for _, _, steps in chains]]))
        vocabulary = [name for names in self.roles.values() for name in names]
        steps = [name for _, _, names in chains for name in names]
        self.timed = number_facts(connection, [*vocabulary, *KINDS.values(), *steps], self.premises)
        self.numbers = numbers_of(connection, [*vocabulary, *KINDS.values(), *steps])
        self.domains = self._count("domains") > 0
        self.type = self._usual_type()
        self.chains = tuple(sorted({len(steps) for _, _, steps in chains}))
        self._make_chains(chains)

    def run(self) -> int:
        """Close the axioms, then apply the rules until nothing new follows; again if axioms followed. The rounds."""
        rounds = 0
        while True:
            axioms = self._axioms()
            rounds, axioms_followed = self._rounds(axioms, rounds)
            if not axioms_followed:
                return rounds
            self.connection.execute("update facts_now set g = 0")

    def result(self, rounds: int) -> Inference:
        """What is to be told."""
        counts = dict(self.connection.execute("select r, count(*) from facts_now group by r").fetchall())
        by_rule = {name: counts[code] for name, code in self.codes.items() if code in counts}
        found, contradicted = find_contradictions(self.connection, self.roles, self.numbers, timed=self.timed)
        return Inference(
            stated=counts.get(0, 0),
            inferred=sum(by_rule.values()),
            by_rule=by_rule,
            rounds=rounds,
            contradictions=found,
            contradicted=contradicted,
            cycles=find_cycles(self.connection, [*self.roles["subclass"], *self.roles["subproperty"]]),
        )

    def _ids(self, role: str) -> str:
        return ", ".join(str(self.numbers[name]) for name in self.roles[role])

    @property
    def _columns(self) -> str:
        return "n, s, p, o, a, b, d, g, r" if self.timed else "n, s, p, o, d, g, r"

    def _axioms(self) -> Axioms:
        """The axioms that hold now, each kind in a table of its own; subclasses and subproperties closed."""
        filled = {
            role
            for role in {rule.axiom for rule in self.rules} & {*ROLES}
            if self._table(role, f"p in ({self._ids(role)})")
        } | {
            kind
            for kind in {rule.axiom for rule in self.rules} & {*KINDS}
            if self._table(kind, f"p in ({self._ids('type')}) and o = {self.numbers[KINDS[kind]]}")
        }
        closed = {role for role, rule in _CLOSED_BY.items() if rule in self.codes}
        for role in closed & filled:
            self._close(role, self.codes[_CLOSED_BY[role]])
        return Axioms(
            filled=frozenset(filled),
            closed=frozenset(closed),
            chains=self.chains,
            types=tuple(self.numbers[name] for name in self.roles["type"]),
            type=self.type,
        )

    def _table(self, role: str, condition: str) -> int:
        # A literal is no class and no property: an axiom about it says nothing.
        query = f"select {self._columns.replace('g,', '0 as g,')} from facts_now where {condition} and o > 0"
        return made(self.connection, f"axiom_{role.replace(' ', '_')}", query)

    def _close(self, role: str, code: int) -> None:
        now = 0
        while self._add([closing(role, code, now, len(self.premises), timed=self.timed)], f"axiom_{role}", now + 1):
            self.connection.execute("insert into facts_now by name select * replace (0 as g) from fresh")
            now += 1

    def _rounds(self, axioms: Axioms, rounds: int) -> tuple[int, bool]:
        now, axioms_followed = 0, False
        while True:
            queries = [
                query
                for rule in self.rules
                for query in statements(rule, self.codes[rule.name], axioms, now, len(self.premises), timed=self.timed)
            ]
            added = self._add(queries, "facts_now", now + 1) if queries else 0
            if not added:
                return rounds, axioms_followed
            now, rounds = now + 1, rounds + 1
            self.progress.say(f"  round {rounds}: {added:,} new facts")
            axioms_followed = axioms_followed or self._has_axioms(now)

    def _has_axioms(self, now: int) -> bool:
        roles = [self.numbers[name] for role, names in self.roles.items() if role != "type" for name in names]
        kinds = [self.numbers[name] for name in KINDS.values()]
        return bool(
            self._count(
                f"facts_now where g = {now} and (p in ({', '.join(map(str, roles))}) "
                f"or (p in ({self._ids('type')}) and o in ({', '.join(map(str, kinds))})))"
            )
        )

    def _add(self, queries: Sequence[str], table: str, now: int) -> int:
        """Add what the queries find and the table has not, one proof each, numbered on; leaves it in ``fresh`` too."""
        key = "s, p, o, a, b" if self.timed else "s, p, o"
        [(last,)] = self.connection.execute("select coalesce(max(n), 0) from facts_now").fetchall()
        pack, unpack = _packing(self.premises, int(last))
        union = " union all ".join(f"({query})" for query in queries)
        known = f"anti join {table} k on k.s = c.s and k.p = c.p and k.o = c.o"
        if self.timed:
            known += f" and k.a <= {latest('c.a')} and k.b >= {earliest('c.b')}"
        # The least proof, so that it does not depend on the order in which rows were met.
        fresh = (
            f"select ({last} + row_number() over (order by {key}))::integer as n, {key}, {now} as g, {unpack} "
            f"from (select {key}, min({pack}) as proof from ({union}) group by {key}) c {known}"
        )
        # Its domain is that of the fact it follows from, which stands behind the axiom where there is one.
        data = "f2" if table == "facts_now" else "f1"
        domain = f"join (select n as m, d from facts_now) on m = {data}" if self.domains else ""
        count = made(
            self.connection, "fresh", f"select f.*, {'d' if domain else 'null::integer'} as d from ({fresh}) f {domain}"
        )
        columns = self._columns if table != "facts_now" else "*"
        self.connection.execute(f"insert into {table} by name select {columns} from fresh")
        return count

    def _usual_type(self) -> int:
        """The predicate that says a thing's type here: the one that most facts have, the standard one if none has."""
        kinds = ", ".join(str(self.numbers[name]) for name in KINDS.values())
        rows = self.connection.execute(
            f"select p from facts_now where p in ({self._ids('type')}) and o not in ({kinds}) "
            f"group by p order by count(*) desc, p = {self.numbers[iris.TYPE]} desc, p limit 1"
        ).fetchall()
        return int(rows[0][0]) if rows else self.numbers[iris.TYPE]

    def _read_chains(self) -> list[tuple[str, str, list[str]]]:
        rows = self.connection.execute(
            "select fact_id, subject, object from facts where list_contains($p, predicate) and object is not null "
            "order by fact_id",
            {"p": list(self.roles["chain"])},
        ).fetchall()
        chains = []
        for key, head, text in rows:
            try:
                steps = json.loads(text)
            except json.JSONDecodeError:
                steps = None
            if not isinstance(steps, list) or len(steps) < 2 or not all(isinstance(step, str) for step in steps):
                raise InputError(f'the property chain of {head!r} is {text!r}, and should be a list such as ["p", "q"]')
            chains.append((key, head, steps))
        return chains

    def _make_chains(self, chains: Sequence[tuple[str, str, list[str]]]) -> None:
        columns = ", ".join(f"facts_now.{name}" for name in ("n", "s as head", *(("a", "b") if self.timed else ())))
        for length in self.chains:
            steps = ", ".join(f"steps[{place}] as p{place}" for place in range(1, length + 1))
            given = [(key, [self.numbers[step] for step in names]) for key, _, names in chains if len(names) == length]
            self.connection.execute(
                f"create or replace temp table chain_{length} as select {columns}, {steps} from "
                "(select unnest($keys) as fact_id, unnest($steps) as steps) join ids using (fact_id) "
                "join facts_now using (n)",
                {"keys": [key for key, _ in given], "steps": [numbers for _, numbers in given]},
            )

    def _count(self, what: str) -> int:
        return int(self.connection.execute(f"select count(*) from {what}").fetchall()[0][0])


def _packing(premises: Sequence[str], last: int) -> tuple[str, str]:
    """SQL that makes one number of a rule and its premises' numbers, and SQL that takes it apart again.

    One number is compared several times faster than a row of them, which is what is left where it would not fit.
    """
    bits = last.bit_length()
    if _RULE_BITS + bits * len(premises) > _PACKED_BITS:
        fields = ("r", *premises)
        return (
            f"struct_pack({', '.join(f'{name} := {name}' for name in fields)})",
            ", ".join(f"proof.{name} as {name}" for name in fields),
        )
    shifts = {name: bits * place for place, name in enumerate(reversed(premises))}
    parts = [f"(r::hugeint << {bits * len(premises)})"]
    parts += [f"(coalesce({name}, 0)::hugeint << {shift})" for name, shift in shifts.items()]
    unpacked = [f"(proof >> {bits * len(premises)})::utinyint as r"]
    unpacked += [f"nullif((proof >> {shifts[name]}) & {(1 << bits) - 1}, 0)::integer as {name}" for name in premises]
    return " + ".join(parts), ", ".join(unpacked)


def _record(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule], declared: Declared, result: Inference
) -> None:
    connection.execute("delete from inferences")
    connection.execute(
        "insert into inferences values (?, ?, ?, ?, ?, ?)",
        [
            json.dumps([rule.name for rule in rules]),
            declared.source if declared.axioms else None,
            result.stated,
            result.inferred,
            result.rounds,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
        ],
    )
