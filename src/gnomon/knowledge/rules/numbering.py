"""Facts as rows of numbers for the rules, and the way back to facts of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

FIRST, LAST = -(10**15), 10**15
"""Before every start and after every end: what a fact without times has."""


def made(connection: duckdb.DuckDBPyConnection, table: str, query: str) -> int:
    """Make a temporary table of a query's rows; how many there are."""
    return int(connection.execute(f"create or replace temp table {table} as {query}").fetchall()[0][0])


def number_facts(connection: duckdb.DuckDBPyConnection, constants: Iterable[str], premises: Sequence[str]) -> bool:
    """Make ``facts_now`` of the stated facts, with the dictionaries ``terms`` and ``literals``; whether any has a time.

    Numbers follow the order of ids and texts, so that the same facts give the same proofs on every machine. The
    dictionaries also hold each text as it stands in what is hashed for an id.
    """
    literals = made(
        connection,
        "literals",
        "select (-row_number() over (order by object, value, unit))::integer as id, object, value, unit, "
        "coalesce(json_text(object), 'null') || ',' || coalesce(value::varchar, 'null') || ',' || coalesce(json_text(unit), 'null') as quoted "
        "from (select distinct object, value, unit from facts where value is not null or object[1] = '\"')",
    )
    connection.execute(
        "create or replace temp table terms as select (row_number() over (order by term))::integer as id, term, "
        "json_text(term) as quoted from ("
        "select subject as term from facts union select predicate from facts "
        "union select object from facts where object is not null and object[1] != '\"' "
        "union select unnest($constants::varchar[]))",
        {"constants": sorted(set(constants))},
    )
    made(
        connection,
        "domains",
        "select row_number() over (order by domain)::integer as id, domain "
        "from (select distinct domain from facts where domain is not null)",
    )
    timed = bool(
        connection.execute('select count(*) from facts where "start" is not null or "end" is not null').fetchall()[0][0]
    )
    times = (
        f'coalesce(time_key("start", 0), {FIRST}) as a, coalesce(time_key("end", 99), {LAST}) as b, ' if timed else ""
    )
    empty = ", ".join(f"null::integer as {name}" for name in premises)
    made(connection, "ids", "select row_number() over (order by fact_id)::integer as n, fact_id from facts")
    object = "coalesce(l.id, o.id)" if literals else "o.id"
    objects = (
        "left join terms o on o.term = object left join literals l on l.object is not distinct from facts.object "
        "and l.value is not distinct from facts.value and l.unit is not distinct from facts.unit "
        if literals
        else "join terms o on o.term = object "
    )
    made(
        connection,
        "facts_now",
        f"select ids.n, s.id as s, p.id as p, {object} as o, {times}domains.id as d, "
        f"0 as g, 0::utinyint as r, {empty} from facts "
        "join ids using (fact_id) join terms s on s.term = subject join terms p on p.term = predicate "
        f"{objects} left join domains on domains.domain = facts.domain",
    )
    return timed


def numbers_of(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> dict[str, int]:
    """The numbers of terms."""
    rows = connection.execute("select term, id from terms where list_contains($n, term)", {"n": list(names)}).fetchall()
    return {str(term): int(number) for term, number in rows}


def latest(start: str) -> str:
    """SQL for the last moment at which something may have begun: a year alone may mean its last day."""
    return f"{start} + case when {start} % 10000 = 0 then 9999 when {start} % 100 = 0 then 99 else 0 end"


def earliest(end: str) -> str:
    """SQL for the first moment at which something may have ended: a year alone may mean its first day."""
    # Years before Christ are negative, and so would be their remainders.
    of_year, of_month = f"({end} % 10000 + 10000) % 10000", f"({end} % 100 + 100) % 100"
    return f"{end} - case when {of_year} = 9999 then 9999 when {of_month} = 99 then 99 else 0 end"
