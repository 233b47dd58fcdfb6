"""From chunks of a source to the tables of a knowledge base: checked, staged aside, then merged in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from merkhet.core.schemas import FACTS, NAMES
from merkhet.knowledge.chunk import DETAILS_SCHEMA, Chunk, Predicate
from merkhet.knowledge.database import CONTENT_COLUMNS, KEY_COLUMNS, fact_id_sql
from merkhet.knowledge.source_reader import ReadContext

# What is wrong with a row, in the order in which it is said.
_PROBLEM = r"""
case when coalesce(subject, '') = '' then 'the subject is empty'
     when coalesce(predicate, '') = '' then 'the predicate is empty'
     when object = '' then 'the object is empty'
     when (object is null) = (value is null)
        then 'a fact has either an object or a value, and this one has both or neither'
     when not isfinite(value) then 'the value ' || value || ' is no number that can be compared'
     when subject[1] = '"' then 'the subject ' || subject || ' is a literal, and an entity is expected'
     when not is_time("start") then 'start ''' || "start" || ''' is no year, month or day (1957, 1957-03, 1957-03-15)'
     when not is_time("end") then 'end ''' || "end" || ''' is no year, month or day (1957, 1957-03, 1957-03-15)'
     when time_key("start", 0) > time_key("end", 99)
        then 'end ' || "end" || ' is before start ' || "start" || ' for "' || subject || ' ' || predicate || ' '
             || coalesce(object, value::varchar) || '"'
end"""
# Ids of knowledge bases are no names: nobody would ask about Q42 by that word.
_IS_NAME = r"""not regexp_full_match({}, '[QPL][1-9]\d*|[A-Za-z][A-Za-z0-9+.-]*://.*|urn:.*|_:.*|".*', 's')"""


@dataclass
class Staged:
    """What came of a source: how many facts and names it gave, and how many of them were new."""

    facts: int = 0
    repeated: int = 0
    added: int = 0
    stated_now: int = 0
    names: int = 0
    predicates: dict[str, Predicate] = field(default_factory=dict)


def stage(connection: duckdb.DuckDBPyConnection, area: str, chunks: Iterable[Chunk], context: ReadContext) -> Staged:
    """Take all chunks into a staging area (a schema), each row checked; a bad row is refused or counted."""
    connection.execute(f"create or replace schema {area}")
    connection.execute(
        f"create or replace table {area}.facts as "
        f"select {CONTENT_COLUMNS}, '' as named_by_id, '' as language from facts limit 0"
    )
    connection.execute(f"create or replace table {area}.names as select * from names limit 0")
    connection.execute(f"create or replace table {area}.details as select * from details limit 0")
    taken = Staged()
    # What is staged is read once: compressing it would cost more than it saves.
    connection.execute("set force_compression = 'uncompressed'")
    connection.execute("begin")
    with ThreadPoolExecutor(1) as worker:
        # While one chunk is taken in, the next is read: the one is DuckDB's work, the other Python's.
        waiting: list[Future[int]] = []
        for chunk in _after(chunks, waiting):
            taken.predicates.update(chunk.predicates)
            taken.facts += sum(one.result() for one in waiting)
            waiting[:] = [worker.submit(_stage_chunk, connection, area, chunk, context)]
        taken.facts += sum(one.result() for one in waiting)
    connection.execute("commit")
    connection.execute("set force_compression = 'auto'")
    return taken


def _after(chunks: Iterable[Chunk], waiting: Sequence[Future[int]]) -> Iterator[Chunk]:
    """The chunks; where reading fails, what was read before is taken in first, so that the first bad row is told."""
    try:
        yield from chunks
    except Exception:
        for one in waiting:
            one.result()
        raise


def _stage_chunk(connection: duckdb.DuckDBPyConnection, area: str, chunk: Chunk, context: ReadContext) -> int:
    facts = _stage_facts(connection, area, chunk, context) if chunk.facts.num_rows else 0
    if chunk.names.num_rows:
        _stage_names(connection, area, chunk.names, context)
    if chunk.details.num_rows:
        _stage_details(connection, area, chunk.details)
    return facts


def merge(connection: duckdb.DuckDBPyConnection, area: str, taken: Staged) -> None:
    """Bring what was staged into the tables. A fact that was inferred and is now stated becomes a stated one."""
    identified = f"select {fact_id_sql(*KEY_COLUMNS)} as fact_id, {CONTENT_COLUMNS} from {area}.facts"
    # Of the same fact twice, the stated one is kept, then the first by source: not what happened to come first.
    firsts = "select arg_min(rowid, (rule is not null, source, rowid)) from {} group by fact_id"
    if not _count(connection, "facts"):
        connection.execute(f"insert into facts {identified}")
        if _has_repeats(connection, "facts"):
            connection.execute(f"delete from facts where rowid not in ({firsts.format('facts')})")
        taken.added = _count(connection, "facts")
        taken.repeated = taken.facts - taken.added
    else:
        connection.execute(f"create or replace temp table fresh as {identified}")
        if _has_repeats(connection, "fresh"):
            connection.execute(f"delete from fresh where rowid not in ({firsts.format('fresh')})")
        taken.repeated = taken.facts - _count(connection, "fresh")
        stated_now = _changed(
            connection,
            # Inferred before, or declared by the last inference's file of rules; stated now.
            "delete from facts where (rule is not null or source in (select declared from inferences)) "
            "and fact_id in (select fact_id from fresh where rule is null)",
        )
        added = _changed(connection, "insert into facts select * from fresh anti join facts using (fact_id)")
        taken.added = added - stated_now
        connection.execute("drop table fresh")
    taken.names = _merge_names(connection, area)
    _merge_details(connection, area)
    for one in taken.predicates.values():
        connection.execute("delete from predicates where name = ?", [one.name])
        connection.execute(
            "insert into predicates values (?, ?, ?, ?)", [one.name, one.label, one.functional, one.symmetric]
        )


def _stage_facts(connection: duckdb.DuckDBPyConnection, area: str, chunk: Chunk, context: ReadContext) -> int:
    named = ",".join(chunk.named_by_id) if context.wants_language(chunk.language) else ""
    given = _conformed(chunk.facts, FACTS.schema)
    with _given(connection, given):
        good = _changed(
            connection,
            f"insert into {area}.facts select {CONTENT_COLUMNS}, $named, $language from chunk "
            f"where ({_PROBLEM}) is null",
            {"named": named, "language": chunk.language},
        )
    if good < given.num_rows:
        with _given(connection, given.append_column("place", pa.array(range(given.num_rows)))):
            bad = connection.execute(
                f"select place, problem from (select place, {_PROBLEM} as problem from chunk) "
                "where problem is not null order by place"
            ).fetchall()
        for place, problem in bad:
            context.reject(chunk.where(place) if chunk.where else f"row {place + 1}", problem)
    return good


def _stage_names(connection: duckdb.DuckDBPyConnection, area: str, names: pa.Table, context: ReadContext) -> None:
    wanted = "and list_contains($languages, lower(spoken))" if context.languages else ""
    with _given(connection, _conformed(names, NAMES.schema)):
        connection.execute(
            f"insert into {area}.names select entity, coalesce(language, 'en') as spoken, nullif(trim(label), ''), "
            f"aliases, kind, 0 from chunk where entity != '' {wanted}",
            {"languages": [language.lower() for language in context.languages]} if wanted else None,
        )


def _stage_details(connection: duckdb.DuckDBPyConnection, area: str, details: pa.Table) -> None:
    with _given(connection, _conformed(details, DETAILS_SCHEMA)):
        connection.execute(
            f"insert into {area}.details "
            f"select {fact_id_sql(*KEY_COLUMNS)}, name, text from chunk where text is not null"
        )


@contextmanager
def _given(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """A table that SQL knows as ``chunk``."""
    connection.register("chunk", table)
    yield
    # Not after an error: it would hide it, and the connection is closed then.
    connection.unregister("chunk")


def _merge_names(connection: duckdb.DuckDBPyConnection, area: str) -> int:
    """One row an entity and language, other names as its aliases.

    What it was called before stays its label, unless that was but an id or an alias and now there is a label.
    """
    before = _count(connection, "names")
    if _count(connection, f"{area}.names"):
        _merge_given_names(connection, area)
    for end in ("subject", "object"):
        connection.execute(
            f"insert into names select {end}, language, {end}, [], null, 1 from ("
            f"  select distinct {end}, language from {area}.facts where contains(named_by_id, '{end}')"
            f") called anti join names on names.entity = called.{end} and names.language = called.language "
            f"where {end} is not null and {_IS_NAME.format(end)}"
        )
    return _count(connection, "names") - before


def _merge_given_names(connection: duckdb.DuckDBPyConnection, area: str) -> None:
    connection.execute(
        f"""create or replace temp table merged as
        with given as (
            select *, false as fresh from names semi join {area}.names using (entity, language)
            union all select *, true from {area}.names
        ), gathered as (
            select entity, language,
                arg_min(label, (worth, fresh, kind is null, label)) filter (label is not null) as label,
                min(worth) filter (label is not null) as worth,
                list_sort(list_filter(list_distinct(flatten(array_agg(
                    coalesce(aliases, []) || case when label is null or worth = 1 then [] else [label] end))),
                    lambda text: trim(text) != '')) as texts,
                min(kind) as kind
            from given group by entity, language
        ), called as (
            select entity, language, coalesce(label, texts[1]) as label, texts, kind, coalesce(worth, 2) as worth
            from gathered
        ) select entity, language, label, list_filter(texts, lambda text: text != label) as aliases, kind, worth
          from called where label is not null"""
    )
    if _count(connection, "names"):
        connection.execute(
            "delete from names using merged where names.entity = merged.entity and names.language = merged.language"
        )
    connection.execute("insert into names select * from merged")
    connection.execute("drop table merged")


def _merge_details(connection: duckdb.DuckDBPyConnection, area: str) -> None:
    if not _count(connection, f"{area}.details"):
        return
    connection.execute(
        f"delete from details using {area}.details fresh "
        "where details.fact_id = fresh.fact_id and details.name = fresh.name"
    )
    connection.execute(
        f"insert into details select fact_id, name, min(text) from {area}.details "
        "semi join facts using (fact_id) group by fact_id, name"
    )


def _has_repeats(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    [(rows, distinct)] = connection.execute(f"select count(*), count(distinct fact_id) from {table}").fetchall()
    return bool(rows != distinct)


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[one.name].cast(one.type) if one.name in table.column_names else pa.nulls(table.num_rows, one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _count(connection: duckdb.DuckDBPyConnection, what: str) -> int:
    return int(connection.execute(f"select count(*) from {what}").fetchall()[0][0])


def _changed(connection: duckdb.DuckDBPyConnection, statement: str, values: Mapping[str, str] | None = None) -> int:
    return int(connection.execute(statement, values).fetchall()[0][0])
