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

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.schemas import fact_id
from merkhet.knowledge import _iris as iris
from merkhet.knowledge.database import open_database
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.rules._contradictions import Contradiction, find_contradictions, find_cycles
from merkhet.knowledge.rules._fact_numbering import earliest, latest, number_facts, numbers_of
from merkhet.knowledge.rules._rule_compiler import MOST_PREMISES, Axioms, closing, codes, names_of, statements
from merkhet.knowledge.rules._write_conclusions import store_conclusions
from merkhet.knowledge.rules.rule_files import DeclaredRules
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS, ROLES, Rule, select_rules

_CLOSED_BY = {"subclass": "rdfs11", "subproperty": "rdfs5"}
_BY_SOURCE = "rules/declared by source"
_RULE_BITS, _PACKED_BITS = 8, 126
_PARTS = 256
"""Into how many parts new facts are divided where they are too many to be sorted at once."""


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
    declared: DeclaredRules | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Inference:
    """Add every fact that follows by the rules from the stated facts and is not stated itself.

    What was inferred before is inferred anew, so that the result depends on the stated facts and the rules alone.
    A conclusion holds when all of its premises hold: its times are their intersection. One transaction: whole or
    not at all. Another engine than DuckDB gets the facts as Parquet, infers the same, and gives its conclusions back.
    """
    chosen = select_rules(rules)
    declared = declared or DeclaredRules()
    with open_database(store, read_only=False) as connection:
        connection.execute("begin")
        _forget(connection)
        _declare(connection, declared)
        with open_tables(connection, engine, ("facts",)) as tables:
            work = _Work(tables, chosen, declared, progress or SilentProgress())
            rounds = work.run()
            store_conclusions(connection, tables, [rule.name for rule in chosen], work.premises, timed=work.timed)
            result = work.result(rounds)
        _record(connection, chosen, declared, result)
        connection.execute("commit")
    return result


def _forget(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "delete from facts where rule is not null or source = ? or source in (select declared from inferences)",
        [_BY_SOURCE],
    )


def _declare(connection: duckdb.DuckDBPyConnection, declared: DeclaredRules) -> None:
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

    def __init__(self, tables: Tables, rules: Sequence[Rule], declared: DeclaredRules, progress: Progress) -> None:
        self.tables = tables
        self.rules = rules
        self.codes = codes(rules)
        self.roles = declared.roles()
        self.progress = progress
        chains = self._read_chains()
        self.premises = names_of(max([MOST_PREMISES, *[len(steps) + 1 for _, _, steps in chains]]))
        vocabulary = [name for names in self.roles.values() for name in names]
        steps = [name for _, _, names in chains for name in names]
        self.timed = number_facts(tables, [*vocabulary, *CHARACTERISTICS.values(), *steps], self.premises)
        self.numbers = numbers_of(tables, [*vocabulary, *CHARACTERISTICS.values(), *steps])
        self.domains = tables.count("domains") > 0
        self.terms = tables.count("terms")
        self.last = tables.count("facts_now")
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
            every = self._columns.replace("g,", "0 as g,")
            self.tables.make("facts_now", f"select {every}, {', '.join(self.premises)} from facts_now")

    def result(self, rounds: int) -> Inference:
        """What is to be told."""
        counts = dict(self.tables.rows("select r, count(*) from facts_now group by r"))
        by_rule = {name: counts[code] for name, code in self.codes.items() if code in counts}
        found, contradicted = find_contradictions(self.tables, self.roles, self.numbers, timed=self.timed)
        return Inference(
            stated=counts.get(0, 0),
            inferred=sum(by_rule.values()),
            by_rule=by_rule,
            rounds=rounds,
            contradictions=found,
            contradicted=contradicted,
            cycles=find_cycles(self.tables, [*self.roles["subclass"], *self.roles["subproperty"]]),
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
            for kind in {rule.axiom for rule in self.rules} & {*CHARACTERISTICS}
            if self._table(kind, f"p in ({self._ids('type')}) and o = {self.numbers[CHARACTERISTICS[kind]]}")
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
        table = f"axiom_{role.replace(' ', '_')}"
        self.tables.make(table, query)
        return self.tables.count(table)

    def _close(self, role: str, code: int) -> None:
        now, number = 0, self.tables.number
        every = f"{self._columns.replace('g,', '0 as g,')}, {', '.join(self.premises)}"
        while self._add(
            [closing(role, code, now, len(self.premises), timed=self.timed, number=number)], f"axiom_{role}", now + 1
        ):
            self.tables.add("facts_now", f"select {every} from fresh")
            now += 1

    def _rounds(self, axioms: Axioms, rounds: int) -> tuple[int, bool]:
        now, axioms_followed = 0, False
        while True:
            queries = [
                query
                for rule in self.rules
                for query in statements(
                    rule,
                    self.codes[rule.name],
                    axioms,
                    now,
                    len(self.premises),
                    timed=self.timed,
                    number=self.tables.number,
                )
            ]
            added = self._add(queries, "facts_now", now + 1) if queries else 0
            if not added:
                return rounds, axioms_followed
            now, rounds = now + 1, rounds + 1
            self.progress.say(f"  round {rounds}: {added:,} new facts")
            axioms_followed = axioms_followed or self._has_axioms(now)

    def _has_axioms(self, now: int) -> bool:
        roles = [self.numbers[name] for role, names in self.roles.items() if role != "type" for name in names]
        kinds = [self.numbers[name] for name in CHARACTERISTICS.values()]
        return bool(
            self.tables.count(
                f"facts_now where g = {now} and (p in ({', '.join(map(str, roles))}) "
                f"or (p in ({self._ids('type')}) and o in ({', '.join(map(str, kinds))})))"
            )
        )

    def _add(self, queries: Sequence[str], table: str, now: int) -> int:
        """Add what the queries find and the table has not, one proof each, numbered on; leaves it in ``fresh`` too."""
        keys = ["s", "p", "o", *(("a", "b") if self.timed else ())]
        key = ", ".join(keys)
        pack, unpack = _packing(self.premises, self.last, self.tables)
        union = " union all ".join(f"({query})" for query in queries)
        known = f"anti join {table} k on k.s = c.s and k.p = c.p and k.o = c.o"
        if self.timed:
            known += f" and k.a <= {latest('c.a')} and k.b >= {earliest('c.b')}"
        # The least proof, so that it does not depend on the order in which rows were met.
        proofs = f"select {key}, min({pack}) as proof from ({union}) q group by {key}"
        new = f"select {key}, {now} as g, {unpack} from ({proofs}) c {known}"
        # Its domain is that of the fact it follows from, which stands behind the axiom where there is one.
        data = "f2" if table == "facts_now" else "f1"
        domain = f"join (select n as m, d from facts_now) m on m.m = f.{data}" if self.domains else ""
        shown = "m.d" if domain else f"cast(null as {self.tables.number})"
        # In two steps: grouping, joining and sorting at once would need memory for all of them.
        self.tables.make("found", new)
        self.tables.number_rows(
            "fresh",
            f"select f.*, {shown} as d from found f {domain}",
            keys,
            first=self.last + 1,
            spread=f"s // {self.terms // _PARTS + 1}",
        )
        count = self.tables.count("fresh")
        self.last += count
        columns = self._columns if table != "facts_now" else f"{self._columns}, {', '.join(self.premises)}"
        if count:
            self.tables.add(table, f"select {columns} from fresh")
        return count

    def _usual_type(self) -> int:
        """The predicate that says a thing's type here: the one that most facts have, the standard one if none has."""
        kinds = ", ".join(str(self.numbers[name]) for name in CHARACTERISTICS.values())
        rows = self.tables.rows(
            f"select p from facts_now where p in ({self._ids('type')}) and o not in ({kinds}) "
            f"group by p order by count(*) desc, case when p = {self.numbers[iris.TYPE]} then 0 else 1 end, p limit 1"
        )
        return int(rows[0][0]) if rows else self.numbers[iris.TYPE]

    def _read_chains(self) -> list[tuple[str, str, list[str]]]:
        listed = ", ".join("'" + name.replace("'", "''") + "'" for name in self.roles["chain"])
        rows = self.tables.rows(
            f"select fact_id, subject, object from facts where predicate in ({listed}) and object is not null "
            "order by fact_id"
        )
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
        columns = ", ".join(f"f.{name}" for name in ("n", "s as head", *(("a", "b") if self.timed else ())))
        for length in self.chains:
            given = [(key, [self.numbers[step] for step in names]) for key, _, names in chains if len(names) == length]
            steps = {f"p{place + 1}": pa.array([names[place] for _, names in given]) for place in range(length)}
            self.tables.load("given_chains", pa.table({"fact_id": [key for key, _ in given], **steps}))
            self.tables.make(
                f"chain_{length}",
                f"select {columns}, {', '.join(f'c.{name}' for name in steps)} from given_chains c "
                "join ids i on i.fact_id = c.fact_id join facts_now f on f.n = i.n",
            )


def _packing(premises: Sequence[str], last: int, tables: Tables) -> tuple[str, str]:
    """SQL that makes one number of a rule and its premises' numbers, and SQL that takes it apart again.

    One number is compared several times faster than a row of them, which is what is left where it would not fit.
    """
    bits = last.bit_length()
    if tables.wide or _RULE_BITS + bits * len(premises) > _PACKED_BITS:
        fields = ["r := r", *(f"{name} := coalesce({name}, 0)" for name in premises)]
        return (
            f"struct_pack({', '.join(fields)})",
            ", ".join(["proof.r as r", *(f"nullif(proof.{name}, 0)::{tables.number} as {name}" for name in premises)]),
        )
    shifts = {name: bits * place for place, name in enumerate(reversed(premises))}
    parts = [f"(r::hugeint << {bits * len(premises)})"]
    parts += [f"(coalesce({name}, 0)::hugeint << {shift})" for name, shift in shifts.items()]
    unpacked = [f"(proof >> {bits * len(premises)})::tinyint as r"]
    unpacked += [f"nullif((proof >> {shifts[name]}) & {(1 << bits) - 1}, 0)::integer as {name}" for name in premises]
    return " + ".join(parts), ", ".join(unpacked)


def _record(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule], declared: DeclaredRules, result: Inference
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
