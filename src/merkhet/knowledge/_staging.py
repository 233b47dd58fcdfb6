"""Staging of imports: rows are checked, copied to a staging schema, and later merged into the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.dates import read_date
from merkhet.core.schemas import FACTS, NAMES
from merkhet.knowledge.chunk import DETAILS_SCHEMA, Chunk, Predicate, conform
from merkhet.knowledge.database import CONTENT_COLUMNS, KEY_COLUMNS, count_rows, fact_id_sql
from merkhet.knowledge.source_reader import ReadContext

# SQL for the first problem of a row in the chunk; null for a good row.
_PROBLEM = r"""
case when coalesce(subject, '') = '' then 'the subject is empty'
     when coalesce(predicate, '') = '' then 'the predicate is empty'
     when object = '' then 'the object is empty'
     when (object is null) = (value is null)
        then 'a fact has either an object or a value, and this one has both or neither'
     when not isfinite(value) then 'the value ' || value || ' is not finite'
     when subject[-1] != '"' and is_literal(subject)
        then 'the subject ' || subject || ' is a literal, and an entity is expected'
     when time_problem is not null then time_problem
     when time_key("start", 0) > time_key("end", 99)
        then 'end ' || "end" || ' is before start ' || "start" || ' for "' || subject || ' ' || predicate || ' '
             || coalesce(object, value::varchar) || '"'
end"""
# Ids and IRIs do not serve as names: no question calls an entity Q42.
_IS_NAME = r"""not regexp_full_match({}, '[QPL][1-9]\d*|[A-Za-z][A-Za-z0-9+.-]*://.*|urn:.*|_:.*', 's')"""


@dataclass
class Staged:
    """Counts of staged and merged rows of a source, and the predicates that the source declares."""

    facts: int = 0
    """The number of good facts from the source."""
    repeated: int = 0
    """The number of duplicates among ``facts``."""
    added: int = 0
    """The number of facts that were new to the store."""
    names: int = 0
    """The number of names that were new to the store."""
    predicates: dict[str, Predicate] = field(default_factory=dict)


def stage_chunks(
    connection: duckdb.DuckDBPyConnection, area: str, chunks: Iterable[Chunk], context: ReadContext
) -> Staged:
    """Check all rows of the chunks and copy the good rows into the staging schema ``area``.

    Bad rows are passed to ``context.reject``.
    """
    connection.execute(f"create or replace schema {area}")
    connection.execute(
        f"create or replace table {area}.facts as "
        f"select {CONTENT_COLUMNS}, '' as named_by_id, '' as language from facts limit 0"
    )
    connection.execute(f"create or replace table {area}.names as select * from names limit 0")
    connection.execute(f"create or replace table {area}.details as select * from details limit 0")
    staged = Staged()
    context.collects_faults = True
    # Staged rows are read once: compressing them would cost more than it saves.
    connection.execute("set force_compression = 'uncompressed'")
    connection.execute("begin")
    with ThreadPoolExecutor(1) as worker:
        # DuckDB stages one chunk while Python reads the next.
        pending: list[Future[_StagedChunk]] = []
        for chunk in _finish_pending_first(chunks, pending, context):
            staged.predicates.update(chunk.predicates)
            staged.facts += _finish(pending, context)
            pending[:] = [worker.submit(_stage_chunk, connection, area, chunk, context)]
        staged.facts += _finish(pending, context)
    context.refuse_faults()
    connection.execute("commit")
    connection.execute("set force_compression = 'auto'")
    return staged


class _StagedChunk(NamedTuple):
    facts: int
    """Number of staged facts."""
    problems: Sequence[tuple[str, str]]
    """Location and problem of each bad row."""


def _finish(pending: list[Future[_StagedChunk]], context: ReadContext) -> int:
    """Wait for the pending chunks, reject their bad rows, and return the number of staged facts.

    Rows are rejected in the thread that reads, so that errors do not depend on the speed of staging.
    """
    facts = 0
    while pending:
        chunk = pending.pop(0).result()
        facts += chunk.facts
        for where, problem in chunk.problems:
            context.reject(where, problem)
    return facts


def _finish_pending_first(
    chunks: Iterable[Chunk], pending: list[Future[_StagedChunk]], context: ReadContext
) -> Iterator[Chunk]:
    """Yield the chunks; if reading fails, first finish the pending chunks, which may contain earlier bad rows."""
    try:
        yield from chunks
    except Exception:
        _finish(pending, context)
        context.refuse_faults()
        raise


def _stage_chunk(connection: duckdb.DuckDBPyConnection, area: str, chunk: Chunk, context: ReadContext) -> _StagedChunk:
    staged = _StagedChunk(0, ())
    if chunk.facts.num_rows:
        staged = _stage_facts(connection, area, chunk, context)
    if chunk.names.num_rows:
        _stage_names(connection, area, chunk.names, context)
    if chunk.details.num_rows:
        _stage_details(connection, area, chunk.details)
    return staged


def merge_staged(connection: duckdb.DuckDBPyConnection, area: str, staged: Staged) -> None:
    """Merge the staging schema ``area`` into the store; an inferred fact that is now stated becomes a stated fact."""
    with_ids = f"select {fact_id_sql(*KEY_COLUMNS)} as fact_id, {CONTENT_COLUMNS} from {area}.facts"
    # Among duplicates, prefer a stated fact, then the first by source, independent of the order of rows.
    firsts = "select arg_min(rowid, (rule is not null, source, rowid)) from {} group by fact_id"
    if not count_rows(connection, "facts"):
        connection.execute(f"insert into facts {with_ids}")
        if _has_duplicates(connection, "facts"):
            connection.execute(f"delete from facts where rowid not in ({firsts.format('facts')})")
        staged.added = count_rows(connection, "facts")
        staged.repeated = staged.facts - staged.added
    else:
        connection.execute(f"create or replace temp table fresh as {with_ids}")
        if _has_duplicates(connection, "fresh"):
            connection.execute(f"delete from fresh where rowid not in ({firsts.format('fresh')})")
        staged.repeated = staged.facts - count_rows(connection, "fresh")
        replaced = _affected_rows(
            connection,
            # Facts that were inferred or came from the rules file of the last inference, and are now stated.
            "delete from facts where (rule is not null or source in (select declared from inferences)) "
            "and fact_id in (select fact_id from fresh where rule is null)",
        )
        added = _affected_rows(connection, "insert into facts select * from fresh anti join facts using (fact_id)")
        staged.added = added - replaced
        connection.execute("drop table fresh")
    staged.names = _merge_names(connection, area)
    _merge_details(connection, area)
    for predicate in staged.predicates.values():
        connection.execute("delete from predicates where name = ?", [predicate.name])
        connection.execute(
            "insert into predicates values (?, ?, ?, ?, ?)",
            [predicate.name, predicate.label, predicate.functional, predicate.symmetric, predicate.complete],
        )


def _stage_facts(connection: duckdb.DuckDBPyConnection, area: str, chunk: Chunk, context: ReadContext) -> _StagedChunk:
    problems: list[tuple[str, str]] = []
    named = ",".join(chunk.named_by_id) if context.wants_language(chunk.language) else ""
    facts = _read_dates(conform(chunk.facts, FACTS.schema))
    with _registered(connection, facts):
        good = _affected_rows(
            connection,
            f"insert into {area}.facts select {CONTENT_COLUMNS}, $named, $language from chunk "
            f"where ({_PROBLEM}) is null",
            {"named": named, "language": chunk.language},
        )
    if good < facts.num_rows:
        with _registered(connection, facts.append_column("row_number", pa.array(range(facts.num_rows)))):
            bad = connection.execute(
                f"select row_number, problem from (select row_number, {_PROBLEM} as problem from chunk) "
                "where problem is not null order by row_number"
            ).fetchall()
        problems = [(chunk.where(row) if chunk.where else f"row {row + 1}", problem) for row, problem in bad]
    return _StagedChunk(good, problems)


def _read_dates(facts: pa.Table) -> pa.Table:
    """Convert the dates of facts to ISO form; the column ``time_problem`` describes the first wrong date of a fact."""
    problems = pa.nulls(facts.num_rows, pa.string())
    for name in ("end", "start"):
        if facts[name].null_count == facts.num_rows:
            continue
        encoded = pa.chunked_array([facts[name].combine_chunks()]).chunk(0).dictionary_encode()
        dates: list[str | None] = []
        reasons: list[str | None] = []
        for text in encoded.dictionary.to_pylist():
            try:
                dates.append(read_date(text))
                reasons.append(None)
            except ValueError as error:
                dates.append(text)
                reasons.append(f"{name} {error}")
        column = pa.array(dates, pa.string()).take(encoded.indices)
        facts = facts.set_column(facts.column_names.index(name), name, column)
        if any(reasons):
            problems = pc.coalesce(pa.array(reasons, pa.string()).take(encoded.indices), problems)
    return facts.append_column("time_problem", problems)


def _stage_names(connection: duckdb.DuckDBPyConnection, area: str, names: pa.Table, context: ReadContext) -> None:
    condition = "and list_contains($languages, lower(name_language))" if context.languages else ""
    with _registered(connection, conform(names, NAMES.schema)):
        connection.execute(
            f"insert into {area}.names select entity, coalesce(language, 'en') as name_language, "
            f"nullif(trim(label), ''), aliases, kind, 0 from chunk where entity != '' {condition}",
            {"languages": [language.lower() for language in context.languages]} if condition else None,
        )


def _stage_details(connection: duckdb.DuckDBPyConnection, area: str, details: pa.Table) -> None:
    with _registered(connection, conform(details, DETAILS_SCHEMA)):
        connection.execute(
            f"insert into {area}.details "
            f"select {fact_id_sql(*KEY_COLUMNS)}, name, text from chunk where text is not null"
        )


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """Register an Arrow table under the SQL name ``chunk`` within a ``with`` block."""
    connection.register("chunk", table)
    yield
    # Not in a finally clause, which would hide an error; after an error the connection is closed anyway.
    connection.unregister("chunk")


def _merge_names(connection: duckdb.DuckDBPyConnection, area: str) -> int:
    """Merge staged names into one row per entity and language, and return the number of new rows.

    An existing label from a source stays, and a new label becomes an alias. A label that was only an id or an alias is
    replaced by a label from the source.
    """
    count_before = count_rows(connection, "names")
    if count_rows(connection, f"{area}.names"):
        _merge_source_names(connection, area)
    for column in ("subject", "object"):
        connection.execute(
            f"insert into names select {column}, language, {column}, [], null, 1 from ("
            f"  select distinct {column}, language from {area}.facts where contains(named_by_id, '{column}')"
            f") called anti join names on names.entity = called.{column} and names.language = called.language "
            f"where {column} is not null and {_IS_NAME.format(column)}"
            # A subject is never a literal.
            + ("" if column == "subject" else " and not is_literal(object)")
        )
    return count_rows(connection, "names") - count_before


def _merge_source_names(connection: duckdb.DuckDBPyConnection, area: str) -> None:
    connection.execute(
        f"""create or replace temp table merged as
        with combined as (
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
            from combined group by entity, language
        ), labelled as (
            select entity, language, coalesce(label, texts[1]) as label, texts, kind, coalesce(worth, 2) as worth
            from gathered
        ) select entity, language, label, list_filter(texts, lambda text: text != label) as aliases, kind, worth
          from labelled where label is not null"""
    )
    if count_rows(connection, "names"):
        connection.execute(
            "delete from names using merged where names.entity = merged.entity and names.language = merged.language"
        )
    connection.execute("insert into names select * from merged")
    connection.execute("drop table merged")


def _merge_details(connection: duckdb.DuckDBPyConnection, area: str) -> None:
    if not count_rows(connection, f"{area}.details"):
        return
    connection.execute(
        f"delete from details using {area}.details fresh "
        "where details.fact_id = fresh.fact_id and details.name = fresh.name"
    )
    connection.execute(
        f"insert into details select fact_id, name, min(text) from {area}.details "
        "semi join facts using (fact_id) group by fact_id, name"
    )


def _has_duplicates(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    [(rows, distinct)] = connection.execute(f"select count(*), count(distinct fact_id) from {table}").fetchall()
    return bool(rows != distinct)


def _affected_rows(
    connection: duckdb.DuckDBPyConnection, statement: str, values: Mapping[str, str] | None = None
) -> int:
    return int(connection.execute(statement, values).fetchall()[0][0])
