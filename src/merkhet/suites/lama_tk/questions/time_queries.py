"""Queries for the start and end of a fact, and for its object at a time in between."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa

from merkhet.core.dates import format_date
from merkhet.core.errors import InputError
from merkhet.suites.lama_tk.questions.masked_statements import TARGET
from merkhet.suites.lama_tk.questions.statement_sql import Composer, open_composer
from merkhet.suites.lama_tk.questions.temporal_facts import (
    TemporalFacts,
    draw_sql,
    open_workbench,
    shortage_remark,
)
from merkhet.suites.lama_tk.questions.wordings import Wordings

BOUNDARY = {"begin": ("start",), "finish": ("end",)}
IMPLICIT = {"within": ("object",), "paraphrase": ("object",)}


def make_boundary_queries(facts: TemporalFacts, wordings: Wordings, *, entities: str = "text") -> pa.Table:
    """Make queries for when each fact began ("S was elected O in [MASK].") and ended.

    All starts (ends) of the same subject with the same object are right. Facts with a single point in time are skipped.
    """
    with open_composer(facts, wordings, entities) as composer:
        composer.create_patterns("patterns", "boundary", BOUNDARY)
        composer.run(
            f"""insert into made select task, relation, template, mask,
                {composer.sentence_sql("text")}, null, {TARGET}, fact_id,
                not mirrored from worded join patterns using (relation, point)"""
        )
        reason = "no sentence says when it began or ended"
        _remark_skipped(composer, reason)
        return composer.finish(otherwise=reason)


def select_controlled(facts: TemporalFacts, count: int | None, seed: int) -> TemporalFacts:
    """Select facts for implicit queries together with their control facts.

    A control is a fact of the same subject and relation with another object. A subject qualifies if one of its facts
    has a control and a time strictly inside its interval; then all facts of the subject are selected. Subjects are
    drawn by the seed until there are at least ``count`` facts. With the same seed, a larger selection contains the
    smaller ones.

    Raises:
        InputError: No fact has a control, or ``count`` is below 1.
    """
    if count is not None and count < 1:
        raise InputError(f"the number of facts with controls must be ≥ 1, got {count}")
    with open_workbench(facts=facts.table, symbols=facts.symbols) as bench:
        _create_insides(bench)
        bench.execute(
            f"""create temp table subjects as
            with asked as (
                select distinct a.subject from facts a join insides using (fact_id) join facts b
                on b.subject = a.subject and b.relation = a.relation and b.object != a.object
            ) select subject, count(*) as size, {draw_sql(seed, "'controlled'", "subject")} as place
            from facts semi join asked using (subject) group by subject"""
        )
        available = int(bench.execute("select coalesce(sum(size), 0) from subjects").fetchall()[0][0])
        if not available:
            raise InputError(
                "no fact has both a time strictly inside its interval and a control (a fact of the same subject and "
                "relation with another object); give more facts"
            )
        table = bench.sql(
            f"""with taken as (
                select subject from subjects
                qualify coalesce(sum(size) over (order by place, subject rows between unbounded preceding
                    and 1 preceding), 0) < {available if count is None else count}
            ) select facts.* from facts semi join taken using (subject) order by fact_id"""
        ).to_arrow_table()
    remarks = (
        (shortage_remark(count, available, "facts with controls"),) if count is not None and count > available else ()
    )
    return replace(facts, table=table.cast(facts.table.schema), remarks=(*facts.remarks, *remarks))


def make_implicit_queries(facts: TemporalFacts, wordings: Wordings, *, seed: int, entities: str = "text") -> pa.Table:
    """Make queries for the object at a time strictly inside a fact's interval, in the trained and in an unseen wording.

    The time is drawn by the seed from the times that occur in facts, because models that memorize facts know them. If
    none of these lies inside, any year inside is drawn, except with ``entities="symbols"``: such a year has no symbol.
    All objects of the subject and relation are right whose interval, including both ends, contains the time.
    """
    with open_composer(facts, wordings, entities) as composer:
        composer.create_patterns("patterns", "implicit", IMPLICIT)
        _create_insides(composer.connection, seed, known_only=entities == "symbols")
        composer.run(
            f"""create temp table chosen as select w.relation, w.point, w.s, w.fact_id, i.at,
                {"bracketed('@' || i.time)" if entities == "symbols" else "i.name"} as st
            from worded w join insides i using (fact_id) where not mirrored"""
        )
        composer.run(
            f"""insert into made select p.task, p.relation, p.template, p.mask,
                {composer.sentence_sql("p.text", {"subject": "h.s", "time": "c.st"})}, null, h.object, c.fact_id,
                h.fact_id = c.fact_id and not h.mirrored
            from chosen c join patterns p using (relation, point)
            join worded h on h.relation = c.relation and h.point = c.point and h.s = c.s
                and h.starts <= c.at and c.at <= h.ends"""
        )
        reason = "no time lies strictly inside, or no sentence says it"
        _remark_skipped(composer, reason)
        return composer.finish(otherwise=reason)


def _create_insides(connection: duckdb.DuckDBPyConnection, seed: int = 0, known_only: bool = False) -> None:
    """Create the table ``insides``: for each fact, a random time strictly inside its interval, with sort key and name.

    Args:
        known_only: Draw only from the times that occur in facts.
    """
    # There is no year 0: 1 BC is followed by AD 1.
    connection.execute(
        "create or replace temp macro year_at(t) as t::bigint + case when t::bigint < 0 then 1 else 0 end"
    )
    random_sql = draw_sql(seed, "'inside'", "fact_id")
    connection.execute(
        """create temp table times as select substr(symbol, 2) as time, name,
            row_number() over (order by time_key(substr(symbol, 2), 0)) as place from symbols where kind = 'time'"""
    )
    connection.execute(
        f"""create temp table drawn as
        with placed as (
            select fact_id, a.place + 1 as first, b.place - a.place - 1 as room,
                case when regexp_full_match("start", '-?\\d+') then year_at("start") + 1 end as year,
                case when regexp_full_match("start", '-?\\d+') then year_at("end") - year_at("start") - 1 end as years
            from facts join times a on a.time = "start" join times b on b.time = "end" where not point
        ) select fact_id, first + ({random_sql} % greatest(room, 1))::bigint as place, room > 0 as known,
            year + ({random_sql} % greatest(years, 1))::bigint as year
        from placed where room > 0 or ({"false" if known_only else "true"} and years > 0)"""
    )
    years = [row[0] for row in connection.execute("select distinct year from drawn where not known").fetchall()]
    texts = [f"{year:04d}" if year > 0 else f"-{1 - year:04d}" for year in years]
    names = [format_date(text) for text in texts]
    connection.register("years", pa.table({"year": pa.array(years, pa.int64()), "time": texts, "name": names}))
    connection.execute(
        """create temp table insides as select fact_id, time, name, time_key(time, 0) as at from (
            select fact_id, time, name from drawn join times using (place) where known union all
            select fact_id, time, name from drawn join years using (year) where not known)"""
    )


def _remark_skipped(composer: Composer, why: str) -> None:
    missing = composer.count("select count(*) from facts anti join (from made where asked) using (fact_id)")
    if missing:
        composer.remarks.append(f"{missing:,} {'fact is' if missing == 1 else 'facts are'} not asked about: {why}.")
