"""Inference: rules applied until nothing new follows, every conclusion with the rule and the premises it came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb

from gnomon.foundation import InputError, Progress
from gnomon.foundation.progress import SilentProgress
from gnomon.foundation.tables import fact_id
from gnomon.knowledge import iris
from gnomon.knowledge.database import connected
from gnomon.knowledge.rules.compiling import MOST_PREMISES, Axioms, closing, codes, names_of, statements
from gnomon.knowledge.rules.contradictions import Contradiction, find_contradictions, find_cycles
from gnomon.knowledge.rules.declared import Declared
from gnomon.knowledge.rules.numbering import FIRST, LAST, number_facts, numbers_of, store_conclusions
from gnomon.knowledge.rules.rulebook import KINDS, ROLES, Rule, chosen_rules

_CLOSED_BY = {"subclass": "rdfs11", "subproperty": "rdfs5"}


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
    connection.execute("delete from facts where rule is not null or starts_with(source, 'rules/')")


def _declare(connection: duckdb.DuckDBPyConnection, declared: Declared) -> None:
    """Axioms of a rules file, and what sources declared of their predicates, as facts: premises have ids."""
    axioms = [(*axiom, declared.source) for axiom in declared.axioms]
    kinds = connection.execute('select name, functional, "symmetric" from predicates').fetchall()
    for name, functional, symmetric in kinds:
        axioms += [(name, iris.TYPE, iris.SYMMETRIC, "rules/declared by source")] if symmetric else []
        axioms += [(name, iris.TYPE, iris.FUNCTIONAL, "rules/declared by source")] if functional else []
    for subject, predicate, object, source in axioms:
        key = fact_id({"subject": subject, "predicate": predicate, "object": object})
        connection.execute(
            "insert into facts (fact_id, subject, predicate, object, source) select ?, ?, ?, ?, ? "
            "where not exists (from facts where fact_id = ?)",
            [key, subject, predicate, object, source, key],
        )


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
        self._make_chains(chains)
        self.chains = tuple(sorted({len(steps) for _, _, steps in chains}))

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
        counted = self.connection.execute("select rule, count(*) from facts where rule is not null group by rule").fetchall()
        by_rule = {rule.name: dict(counted).get(rule.name, 0) for rule in self.rules}
        [(stated,)] = self.connection.execute("select count(*) from facts where rule is null").fetchall()
        self._axioms()
        found, contradicted = find_contradictions(self.connection, self.roles, self.numbers, timed=self.timed)
        return Inference(
            stated=stated,
            inferred=sum(by_rule.values()),
            by_rule={name: count for name, count in by_rule.items() if count},
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
        filled, closed = set(), set()
        for role in ROLES:
            self._table(role, f"p in ({self._ids(role)})")
        for kind in ("symmetric", "transitive"):
            self._table(kind, f"p in ({self._ids('type')}) and o = {self.numbers[KINDS[kind]]}")
        for role, rule in _CLOSED_BY.items():
            if rule in self.codes:
                self._close(role, self.codes[rule])
                closed.add(role)
        for role in (*ROLES, "symmetric", "transitive"):
            if self._count(f"axiom_{role.replace(' ', '_')}"):
                filled.add(role)
        return Axioms(
            filled=frozenset(filled),
            closed=frozenset(closed),
            chains=self.chains,
            types=tuple(self.numbers[name] for name in self.roles["type"]),
            type=self._usual_type(),
        )

    def _table(self, role: str, condition: str) -> None:
        self.connection.execute(
            f"create or replace temp table axiom_{role.replace(' ', '_')} as "
            f"select {self._columns.replace('g,', '0 as g,')} from facts_now where {condition}"
        )

    def _close(self, role: str, code: int) -> None:
        now = 0
        while self._add([closing(role, code, now, timed=self.timed)], f"axiom_{role}", now + 1):
            self.connection.execute(
                f"insert into facts_now by name select * replace (0 as g) from fresh"
            )
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
        premises = names_of(max(query.count(" as f") for query in queries))
        fields = ", ".join(f"{name} := {name}" for name in ("r", *premises, "d"))
        union = " union all ".join(f"({query})" for query in queries)
        # The least proof, so that it does not depend on the order in which rows were met.
        self.connection.execute(
            f"create or replace temp table found as select {key}, min(struct_pack({fields})) as proof "
            f"from ({union}) group by {key}"
        )
        known = (
            f"anti join {table} k on k.s = c.s and k.p = c.p and k.o = c.o and {_covers('k', 'c')}"
            if self.timed
            else f"anti join {table} k on k.s = c.s and k.p = c.p and k.o = c.o"
        )
        [(last,)] = self.connection.execute("select coalesce(max(n), 0) from facts_now").fetchall()
        times = "a, b, " if self.timed else ""
        rest = [f"null::integer as {name}" for name in self.premises if name not in premises]
        proof = ", ".join([*[f"proof.{name} as {name}" for name in premises], *rest])
        self.connection.execute(
            f"create or replace temp table fresh as select ({last} + row_number() over (order by {key}))::integer as n, "
            f"s, p, o, {times}proof.d as d, {now} as g, proof.r::utinyint as r, {proof} from found c {known}"
        )
        columns = self._columns if table != "facts_now" else "*"
        self.connection.execute(f"insert into {table} by name select {columns} from fresh")
        return self._count("fresh")

    def _usual_type(self) -> int:
        """The predicate that says a type here: the one that most facts have, the standard one if none has any."""
        rows = self.connection.execute(
            f"select p from facts_now where p in ({self._ids('type')}) group by p order by count(*) desc, p limit 1"
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
                raise InputError(f"the property chain of {head!r} is {text!r}, and should be a list such as [\"p\", \"q\"]")
            chains.append((key, head, steps))
        return chains

    def _make_chains(self, chains: Sequence[tuple[str, str, list[str]]]) -> None:
        times = f", {FIRST}::bigint as a, {LAST}::bigint as b" if self.timed else ""
        for length in {len(steps) for _, _, steps in chains}:
            columns = ", ".join(f"p{place} integer" for place in range(1, length + 1))
            self.connection.execute(f"create or replace temp table chain_{length} (n integer, head integer, {columns})")
        for key, head, steps in chains:
            [(number,)] = self.connection.execute("select n from ids where fact_id = ?", [key]).fetchall()
            found = numbers_of(self.connection, [head])
            self.connection.execute(
                f"insert into chain_{len(steps)} values ({', '.join('?' * (len(steps) + 2))})",
                [number, found[head], *[self.numbers[step] for step in steps]],
            )
        for length in {len(steps) for _, _, steps in chains} if times else ():
            self.connection.execute(
                f"create or replace temp table chain_{length} as select *{times} from chain_{length}"
            )

    def _count(self, what: str) -> int:
        return int(self.connection.execute(f"select count(*) from {what}").fetchall()[0][0])


def _covers(known: str, new: str) -> str:
    """Whether what is known holds, as far as its precision tells, at least as long as what is new."""
    late = f"{new}.a + case when {new}.a % 10000 = 0 then 9999 when {new}.a % 100 = 0 then 99 else 0 end"
    early = f"{new}.b - case when {new}.b % 10000 = 9999 then 9999 when {new}.b % 100 = 99 then 99 else 0 end"
    return f"{known}.a <= {late} and {known}.b >= {early}"


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
