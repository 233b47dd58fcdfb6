"""Facts as rows of numbers for the rules, and the way back to facts of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from gnomon.knowledge.database import FACT_COLUMNS, fact_id_sql

FIRST, LAST = -(10**15), 10**15
"""Before every start and after every end: what a fact without times has."""


def number_facts(connection: duckdb.DuckDBPyConnection, constants: Iterable[str], premises: Sequence[str]) -> bool:
    """Make ``facts_now`` of the stated facts, with the dictionaries ``terms`` and ``literals``; whether any has a time.

    Numbers follow the order of ids and texts, so that the same facts give the same proofs on every machine.
    """
    connection.execute(
        "create or replace temp table literals as select (-row_number() over (order by object, value, unit))::integer "
        "as id, object, value, unit from (select distinct object, value, unit from facts "
        "where value is not null or object[1] = '\"')"
    )
    connection.execute(
        "create or replace temp table terms as select (row_number() over (order by term))::integer as id, term from ("
        "select subject as term from facts union select predicate from facts "
        "union select object from facts where object is not null and object[1] != '\"' "
        "union select unnest($constants::varchar[]))",
        {"constants": sorted(set(constants))},
    )
    connection.execute(
        "create or replace temp table domains as select row_number() over (order by domain)::integer as id, domain "
        "from (select distinct domain from facts where domain is not null)"
    )
    timed = bool(
        connection.execute('select count(*) from facts where "start" is not null or "end" is not null').fetchall()[0][0]
    )
    times = (
        f'coalesce(time_key("start", 0), {FIRST}) as a, coalesce(time_key("end", 99), {LAST}) as b, ' if timed else ""
    )
    empty = ", ".join(f"null::integer as {name}" for name in premises)
    connection.execute(
        "create or replace temp table ids as select row_number() over (order by fact_id)::integer as n, fact_id from facts"
    )
    connection.execute(
        "create or replace temp table facts_now as "
        f"select ids.n, s.id as s, p.id as p, coalesce(o.id, l.id) as o, {times}domains.id as d, "
        f"0 as g, 0::utinyint as r, {empty} from facts "
        "join ids using (fact_id) join terms s on s.term = subject join terms p on p.term = predicate "
        "left join terms o on o.term = object "
        "left join literals l on l.object is not distinct from facts.object "
        "  and l.value is not distinct from facts.value and l.unit is not distinct from facts.unit "
        "left join domains on domains.domain = facts.domain"
        if connection.execute("select count(*) from literals").fetchall()[0][0]
        else "create or replace temp table facts_now as "
        f"select ids.n, s.id as s, p.id as p, o.id as o, {times}domains.id as d, "
        f"0 as g, 0::utinyint as r, {empty} from facts "
        "join ids using (fact_id) join terms s on s.term = subject join terms p on p.term = predicate "
        "join terms o on o.term = object left join domains on domains.domain = facts.domain"
    )
    return timed


def numbers_of(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> dict[str, int]:
    """The numbers of terms."""
    rows = connection.execute("select term, id from terms where list_contains($n, term)", {"n": list(names)}).fetchall()
    return {str(term): int(number) for term, number in rows}


def store_conclusions(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[str], premises: Sequence[str], *, timed: bool
) -> None:
    """Write what was inferred into the table of facts, with rule and premises; ``rules`` names the numbers."""
    start, end = "null", "null"
    times = ""
    if timed:
        # Texts as they stand in the premises: a conclusion's times are always some premise's.
        for name, column, missing in (("starts", '"start"', 0), ("ends", '"end"', 99)):
            connection.execute(
                f"create or replace temp table {name} as select time_key({column}, {missing}) as key, "
                f"min({column}) as text from facts where {column} is not null group by key"
            )
        start, end = "starts.text", "ends.text"
        times = "left join starts on starts.key = f.a left join ends on ends.key = f.b"
    connection.execute(
        "create or replace temp table worded as select f.n, s.term as subject, p.term as predicate, "
        "coalesce(o.term, l.object) as object, l.value as value, l.unit as unit, "
        f'{start}::varchar as "start", {end}::varchar as "end", domains.domain as domain, f.r, '
        f"{', '.join(f'f.{name}' for name in premises)} "
        f"from facts_now f join terms s on s.id = f.s join terms p on p.id = f.p left join terms o on o.id = f.o "
        f"left join literals l on l.id = f.o left join domains on domains.id = f.d {times} where f.r != 0"
    )
    columns = ("subject", "predicate", "object", "value", "unit", '"start"', '"end"')
    connection.execute(f"insert into ids select n, {fact_id_sql(*columns)} from worded")
    joins = " ".join(f"left join ids i_{name} on i_{name}.n = w.{name}" for name in premises)
    found = ", ".join(f"i_{name}.fact_id" for name in premises)
    names = "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in rules) + "]"
    connection.execute(
        f"insert into facts ({FACT_COLUMNS}) select own.fact_id, {', '.join(columns)}, domain, 'inferred', {names}[r], "
        f"list_filter([{found}], lambda id: id is not null) "
        f"from worded w join ids own on own.n = w.n {joins}"
    )
