"""Inference of facts to a fixpoint; every conclusion has its rule and premises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import duckdb
import pyarrow as pa

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.schemas import fact_id
from merkhet.knowledge import _iris as iris
from merkhet.knowledge.database import open_database, sql_literals
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.memory_limit import limited_memory
from merkhet.knowledge.predicate_labels import find_terms
from merkhet.knowledge.rules._contradictions import Contradiction, find_contradictions, find_cycles
from merkhet.knowledge.rules._fact_numbering import earliest_end, latest_start, number_facts, term_numbers
from merkhet.knowledge.rules._rule_compiler import MAX_PREMISES, Axioms, RuleCompiler, axiom_table, premise_columns
from merkhet.knowledge.rules._write_conclusions import store_conclusions
from merkhet.knowledge.rules.rule_files import DeclaredRules
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS, PLAIN_WORDS, ROLES, Rule, select_rules

_CLOSURE_RULES = {"subclass": "rdfs11", "subproperty": "rdfs5"}
_DECLARED_BY_SOURCE = "rules/declared by source"
_RULE_BITS, _PACKED_BITS = 8, 126
_SORT_PARTS = 256
"""The number of parts into which new facts are divided if they are too many for one sort."""


@dataclass(frozen=True)
class Inference:
    """The counts and findings of an inference."""

    stated: int
    inferred: int
    by_rule: dict[str, int]
    rounds: int
    contradictions: list[Contradiction] = field(default_factory=list)
    """The first thousand contradictions."""
    contradicted: int = 0
    """The number of all contradictions."""
    cycles: list[list[str]] = field(default_factory=list)
    """Cycles of subclasses or subproperties, each as a list of its members."""


def infer(
    store: Path,
    *,
    rules: Sequence[str] = (),
    declared: DeclaredRules | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Inference:
    """Infer all facts that follow from the stated facts by the rules, and add those that are not stated themselves.

    Earlier conclusions are deleted first, so the result depends only on the stated facts and the rules. A conclusion
    holds while all its premises hold: its time span is the intersection of their time spans. The knowledge base changes
    in one transaction.

    Args:
        store: The file of the knowledge base.
        rules: The names of the rules to apply; empty for all.
        declared: The content of a rules file.
        engine: The engine, DuckDB by default. Every engine gives the same conclusions.
        progress: Receiver of progress reports.
    """
    selected = select_rules(rules)
    declared = declared or DeclaredRules()
    memory = engine.memory if engine is not None else None
    with limited_memory(memory), open_database(store, read_only=False) as connection:
        connection.execute("begin")
        _delete_conclusions(connection)
        declared = _resolve_labels(connection, declared)
        _insert_declared_axioms(connection, declared)
        with open_tables(connection, engine, ("facts",)) as tables:
            reasoner = _Reasoner(tables, selected, declared, progress or SilentProgress())
            rounds = reasoner.run()
            store_conclusions(
                connection, tables, [rule.name for rule in selected], reasoner.premises, timed=reasoner.timed
            )
            result = reasoner.summarize(rounds)
        _record(connection, selected, declared, result)
        connection.execute("commit")
    return result


def _delete_conclusions(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "delete from facts where rule is not null or source = ? or source in (select declared from inferences)",
        [_DECLARED_BY_SOURCE],
    )


def _resolve_labels(connection: duckdb.DuckDBPyConnection, declared: DeclaredRules) -> DeclaredRules:
    """Replace the labels in a rules file by the ids of predicates and classes; ids stay as they are."""
    found = find_terms(connection, *declared.terms()) if declared.axioms or declared.vocabulary else {}
    return declared.renamed(found) if found else declared


def _insert_declared_axioms(connection: duckdb.DuckDBPyConnection, declared: DeclaredRules) -> None:
    """Insert the axioms of a rules file and the predicate declarations of sources as facts.

    As premises of conclusions, these axioms need fact ids.
    """
    axioms = [(*axiom, declared.source) for axiom in declared.axioms]
    predicates = connection.execute('select name, functional, "symmetric" from predicates order by name').fetchall()
    for name, functional, symmetric in predicates:
        axioms += [(name, iris.TYPE, iris.SYMMETRIC, _DECLARED_BY_SOURCE)] if symmetric else []
        axioms += [(name, iris.TYPE, iris.FUNCTIONAL, _DECLARED_BY_SOURCE)] if functional else []
    columns = ("subject", "predicate", "object", "source")
    rows = [dict(zip(columns, axiom, strict=True)) for axiom in axioms]
    if rows:
        axiom_facts = pa.Table.from_pylist([{"fact_id": fact_id(row), **row} for row in rows])
        connection.register("declared", axiom_facts)
        connection.execute(
            "insert into facts by name from declared anti join facts using (fact_id) "
            "qualify row_number() over (partition by fact_id order by source desc) = 1"
        )
        connection.unregister("declared")


class _Reasoner:
    """One inference: encoded facts, axioms, and the rounds of rule application."""

    def __init__(self, tables: Tables, rules: Sequence[Rule], declared: DeclaredRules, progress: Progress) -> None:
        self.tables = tables
        self.rules = rules
        self.codes = {rule.name: code for code, rule in enumerate(rules, 1)}  # 0 is for stated facts.
        self.roles = {role: (*names, *PLAIN_WORDS.get(role, ())) for role, names in declared.roles().items()}
        self.progress = progress
        chains = self._read_chains()
        self.premises = premise_columns(max([MAX_PREMISES, *[len(steps) + 1 for _, _, steps in chains]]))
        vocabulary = [name for names in self.roles.values() for name in names]
        steps = [name for _, _, names in chains for name in names]
        self.timed = number_facts(tables, [*vocabulary, *CHARACTERISTICS.values(), *steps], self.premises)
        self.numbers = term_numbers(tables, [*vocabulary, *CHARACTERISTICS.values(), *steps])
        self.compiler = RuleCompiler(len(self.premises), self.timed, tables.number)
        self.domains = tables.count("domains") > 0
        self.terms = tables.count("terms")
        self.last = tables.count("facts_now")
        self.type = self._type_predicate()
        self.chains = tuple(sorted({len(steps) for _, _, steps in chains}))
        self._make_chains(chains)

    def run(self) -> int:
        """Close the axioms and apply the rules until nothing new follows; repeat both steps if axioms were inferred.

        Returns:
            The number of rounds that gave new facts.
        """
        rounds = 0
        while True:
            axioms = self._make_axioms()
            rounds, axioms_inferred = self._run_rounds(axioms, rounds)
            if not axioms_inferred:
                return rounds
            columns = self._columns.replace("g,", "0 as g,")
            self.tables.make("facts_now", f"select {columns}, {', '.join(self.premises)} from facts_now")

    def summarize(self, rounds: int) -> Inference:
        """Count the facts and conclusions, and find contradictions and cycles."""
        counts = dict(self.tables.rows("select r, count(*) from facts_now group by r"))
        by_rule = {name: counts[code] for name, code in self.codes.items() if code in counts}
        contradictions, contradicted = find_contradictions(self.tables, self.roles, self.numbers, timed=self.timed)
        return Inference(
            stated=counts.get(0, 0),
            inferred=sum(by_rule.values()),
            by_rule=by_rule,
            rounds=rounds,
            contradictions=contradictions,
            contradicted=contradicted,
            cycles=find_cycles(self.tables, [*self.roles["subclass"], *self.roles["subproperty"]]),
        )

    def _ids(self, role: str) -> str:
        return ", ".join(str(self.numbers[name]) for name in self.roles[role])

    @property
    def _columns(self) -> str:
        return "n, s, p, o, a, b, d, g, r" if self.timed else "n, s, p, o, d, g, r"

    def _make_axioms(self) -> Axioms:
        """Create a table for each kind of axiom; subclass and subproperty axioms are transitively closed."""
        filled = {
            role
            for role in {rule.axiom for rule in self.rules} & {*ROLES}
            if self._make_axiom_table(role, f"p in ({self._ids(role)})")
        } | {
            kind
            for kind in {rule.axiom for rule in self.rules} & {*CHARACTERISTICS}
            if self._make_axiom_table(kind, f"p in ({self._ids('type')}) and o = {self.numbers[CHARACTERISTICS[kind]]}")
        }
        closed = {role for role, rule in _CLOSURE_RULES.items() if rule in self.codes}
        for role in closed & filled:
            self._close_axioms(role, self.codes[_CLOSURE_RULES[role]])
        return Axioms(
            filled=frozenset(filled),
            closed=frozenset(closed),
            chains=self.chains,
            types=tuple(self.numbers[name] for name in self.roles["type"]),
            type=self.type,
        )

    def _make_axiom_table(self, role: str, condition: str) -> int:
        # Skip axioms with a literal as object, which is neither a class nor a property.
        query = f"select {self._columns.replace('g,', '0 as g,')} from facts_now where {condition} and o > 0"
        table = axiom_table(role)
        self.tables.make(table, query)
        return self.tables.count(table)

    def _close_axioms(self, role: str, code: int) -> None:
        round_number = 0
        columns = f"{self._columns.replace('g,', '0 as g,')}, {', '.join(self.premises)}"
        while self._add_conclusions(
            [self.compiler.closure_query(role, code, round_number)], axiom_table(role), round_number + 1
        ):
            self.tables.add("facts_now", f"select {columns} from fresh")
            round_number += 1

    def _run_rounds(self, axioms: Axioms, rounds: int) -> tuple[int, bool]:
        round_number, axioms_inferred = 0, False
        while True:
            queries = [
                query
                for rule in self.rules
                for query in self.compiler.rule_queries(rule, self.codes[rule.name], axioms, round_number)
            ]
            added = self._add_conclusions(queries, "facts_now", round_number + 1) if queries else 0
            if not added:
                return rounds, axioms_inferred
            round_number, rounds = round_number + 1, rounds + 1
            self.progress.say(f"  round {rounds}: {added:,} new facts")
            axioms_inferred = axioms_inferred or self._has_inferred_axioms(round_number)

    def _has_inferred_axioms(self, round_number: int) -> bool:
        roles = [self.numbers[name] for role, names in self.roles.items() if role != "type" for name in names]
        kinds = [self.numbers[name] for name in CHARACTERISTICS.values()]
        return bool(
            self.tables.count(
                f"facts_now where g = {round_number} and (p in ({', '.join(map(str, roles))}) "
                f"or (p in ({self._ids('type')}) and o in ({', '.join(map(str, kinds))})))"
            )
        )

    def _add_conclusions(self, queries: Sequence[str], table: str, round_number: int) -> int:
        """Add the new conclusions of the queries to a table, each with one proof, and return their number.

        The new conclusions are also available in the table ``fresh``.
        """
        keys = ["s", "p", "o", *(("a", "b") if self.timed else ())]
        key = ", ".join(keys)
        pack, unpack = _proof_packing(self.premises, self.last, self.tables)
        union = " union all ".join(f"({query})" for query in queries)
        known = f"anti join {table} k on k.s = c.s and k.p = c.p and k.o = c.o"
        if self.timed:
            known += f" and k.a <= {latest_start('c.a')} and k.b >= {earliest_end('c.b')}"
        # The minimum, because the choice of the proof must not depend on the order of rows.
        proofs = f"select {key}, min({pack}) as proof from ({union}) q group by {key}"
        new = f"select {key}, {round_number} as g, {unpack} from ({proofs}) c {known}"
        # A conclusion has the domain of the fact that it follows from: the premise after the axiom, if there is one.
        source_fact = "f2" if table == "facts_now" else "f1"
        domain = f"join (select n as m, d from facts_now) m on m.m = f.{source_fact}" if self.domains else ""
        domain_column = "m.d" if domain else f"cast(null as {self.tables.number})"
        # In two steps: a single query would need memory for grouping, joining and sorting at the same time.
        self.tables.make("candidates", new)
        self.tables.number_rows(
            "fresh",
            f"select f.*, {domain_column} as d from candidates f {domain}",
            keys,
            first=self.last + 1,
            spread=f"s // {self.terms // _SORT_PARTS + 1}",
        )
        count = self.tables.count("fresh")
        self.last += count
        columns = self._columns if table != "facts_now" else f"{self._columns}, {', '.join(self.premises)}"
        if count:
            self.tables.add(table, f"select {columns} from fresh")
        return count

    def _type_predicate(self) -> int:
        """Return the number of the most frequent type predicate; of ``rdf:type`` if no fact states a type."""
        kinds = ", ".join(str(self.numbers[name]) for name in CHARACTERISTICS.values())
        rows = self.tables.rows(
            f"select p from facts_now where p in ({self._ids('type')}) and o not in ({kinds}) "
            f"group by p order by count(*) desc, case when p = {self.numbers[iris.TYPE]} then 0 else 1 end, p limit 1"
        )
        return int(rows[0][0]) if rows else self.numbers[iris.TYPE]

    def _read_chains(self) -> list[tuple[str, str, list[str]]]:
        rows = self.tables.rows(
            "select fact_id, subject, object from facts "
            f"where predicate in ({sql_literals(*self.roles['chain'])}) and object is not null order by fact_id"
        )
        chains = []
        for key, head, text in rows:
            try:
                steps = json.loads(text)
            except json.JSONDecodeError:
                steps = None
            if not isinstance(steps, list) or len(steps) < 2 or not all(isinstance(step, str) for step in steps):
                raise InputError(f'the property chain of {head!r} must be a list such as ["p", "q"], got {text!r}')
            chains.append((key, head, steps))
        return chains

    def _make_chains(self, chains: Sequence[tuple[str, str, list[str]]]) -> None:
        columns = ", ".join(f"f.{name}" for name in ("n", "s as head", *(("a", "b") if self.timed else ())))
        for length in self.chains:
            selected = [
                (key, [self.numbers[step] for step in names]) for key, _, names in chains if len(names) == length
            ]
            steps = {
                f"p{position + 1}": pa.array([names[position] for _, names in selected]) for position in range(length)
            }
            self.tables.load("chain_steps", pa.table({"fact_id": [key for key, _ in selected], **steps}))
            self.tables.make(
                f"chain_{length}",
                f"select {columns}, {', '.join(f'c.{name}' for name in steps)} from chain_steps c "
                "join ids i on i.fact_id = c.fact_id join facts_now f on f.n = i.n",
            )


def _proof_packing(premises: Sequence[str], last: int, tables: Tables) -> tuple[str, str]:
    """Return SQL that packs a rule code and premise numbers into one integer, and SQL that unpacks them.

    An integer is compared several times faster than a struct. A struct is used if the integer would be too large.
    """
    bits = last.bit_length()
    if tables.wide or _RULE_BITS + bits * len(premises) > _PACKED_BITS:
        fields = ["r := r", *(f"{name} := coalesce({name}, 0)" for name in premises)]
        return (
            f"struct_pack({', '.join(fields)})",
            ", ".join(["proof.r as r", *(f"nullif(proof.{name}, 0)::{tables.number} as {name}" for name in premises)]),
        )
    shifts = {name: bits * position for position, name in enumerate(reversed(premises))}
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
