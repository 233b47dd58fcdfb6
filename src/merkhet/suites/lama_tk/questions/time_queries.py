"""Queries in words that were never stored: when something began or ended, and what held in between."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.suites.lama_tk.questions.masked_statements import TARGET
from merkhet.suites.lama_tk.questions.statement_sql import Composer, composer
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, draw, time_name, too_few, workbench
from merkhet.suites.lama_tk.questions.wordings import Wordings

BOUNDARY = {"begin": ("start",), "finish": ("end",)}
IMPLICIT = {"within": ("object",), "paraphrase": ("object",)}


def boundary_queries(facts: TemporalFacts, wordings: Wordings, *, entities: str = "text") -> pa.Table:
    """When each fact began ("S was elected O in [MASK].") and ended; right are all starts or ends of S with O.

    Points have neither and are not asked about.
    """
    with composer(facts, wordings, entities) as one:
        one.put_patterns("patterns", "boundary", BOUNDARY)
        one.run(
            f"""insert into made select task, relation, template, mask, {one.said("text")}, null, {TARGET}, fact_id,
                not mirrored from worded join patterns using (relation, point)"""
        )
        _remark_unasked(one, "no sentence says when it began or ended")
        return one.finish()


def controlled(facts: TemporalFacts, count: int | None, seed: int) -> TemporalFacts:
    """Facts of which what held in between can be asked, with their controls: so many, with all facts of their subjects.

    A subject is taken whole if one of its facts has a time strictly inside and it has a control: a fact of the same
    relation with another object. All other facts of the subject are controls too. Subjects are drawn by the seed until
    ``count`` facts are together (the last one may bring a few more), so that a larger set holds the smaller ones.
    Refuses facts of which none has a control.
    """
    if count is not None and count < 1:
        raise InputError(f"{count} facts with controls were asked for; ask for at least 1")
    with workbench(facts=facts.table, symbols=facts.symbols) as bench:
        _put_insides(bench)
        bench.execute(
            f"""create temp table subjects as
            with asked as (
                select distinct a.subject from facts a join insides using (fact_id) join facts b
                on b.subject = a.subject and b.relation = a.relation and b.object != a.object
            ) select subject, count(*) as size, {draw(seed, "'controlled'", "subject")} as place
            from facts semi join asked using (subject) group by subject"""
        )
        found = int(bench.execute("select coalesce(sum(size), 0) from subjects").fetchall()[0][0])
        if not found:
            raise InputError(
                "no fact has a time strictly inside and a control, another fact of the same subject and relation with "
                "another object; give more facts"
            )
        table = bench.sql(
            f"""with taken as (
                select subject from subjects
                qualify coalesce(sum(size) over (order by place, subject rows between unbounded preceding
                    and 1 preceding), 0) < {found if count is None else count}
            ) select facts.* from facts semi join taken using (subject) order by fact_id"""
        ).to_arrow_table()
    remarks = (too_few(count, found, "facts with controls"),) if count is not None and count > found else ()
    return replace(facts, table=table.cast(facts.table.schema), remarks=(*facts.remarks, *remarks))


def implicit_queries(facts: TemporalFacts, wordings: Wordings, *, seed: int, entities: str = "text") -> pa.Table:
    """What held at a time strictly inside a fact's interval, in the words of training and in others: its object.

    The time is drawn by the seed among those that stand in some fact, so that it means something to a model that
    stored them; where there is none, any year inside (not with ``entities="symbols"``: it has no symbol). Right are
    all objects of the subject and relation whose interval holds that time, both ends included.
    """
    with composer(facts, wordings, entities) as one:
        one.put_patterns("patterns", "implicit", IMPLICIT)
        _put_insides(one.connection, seed, known=entities == "symbols")
        one.run(
            f"""create temp table chosen as select w.relation, w.point, w.s, w.fact_id, i.at,
                {"bracketed('@' || i.time)" if entities == "symbols" else "i.name"} as st
            from worded w join insides i using (fact_id) where not mirrored"""
        )
        one.run(
            f"""insert into made select p.task, p.relation, p.template, p.mask,
                {one.said("p.text", {"subject": "h.s", "time": "c.st"})}, null, h.object, c.fact_id,
                h.fact_id = c.fact_id and not h.mirrored
            from chosen c join patterns p using (relation, point)
            join worded h on h.relation = c.relation and h.point = c.point and h.s = c.s
                and h.starts <= c.at and c.at <= h.ends"""
        )
        _remark_unasked(one, "no time lies strictly inside, or no sentence says it")
        return one.finish()


def _put_insides(bench: duckdb.DuckDBPyConnection, seed: int = 0, known: bool = False) -> None:
    """Make the table ``insides``: facts that have a time strictly inside, with one that is drawn, its number and name.

    ``known`` takes none but times that stand in some fact.
    """
    # There is no year 0: 1 BC is followed by AD 1.
    bench.execute("create or replace temp macro year_at(t) as t::bigint + case when t::bigint < 0 then 1 else 0 end")
    chance = draw(seed, "'inside'", "fact_id")
    bench.execute(
        """create temp table times as select substr(symbol, 2) as time, name,
            row_number() over (order by time_key(substr(symbol, 2), 0)) as place from symbols where kind = 'time'"""
    )
    bench.execute(
        f"""create temp table drawn as
        with placed as (
            select fact_id, a.place + 1 as first, b.place - a.place - 1 as room,
                case when regexp_full_match("start", '-?\\d+') then year_at("start") + 1 end as year,
                case when regexp_full_match("start", '-?\\d+') then year_at("end") - year_at("start") - 1 end as years
            from facts join times a on a.time = "start" join times b on b.time = "end" where not point
        ) select fact_id, first + ({chance} % greatest(room, 1))::bigint as place, room > 0 as known,
            year + ({chance} % greatest(years, 1))::bigint as year
        from placed where room > 0 or ({"false" if known else "true"} and years > 0)"""
    )
    years = [row[0] for row in bench.execute("select distinct year from drawn where not known").fetchall()]
    texts = [f"{year:04d}" if year > 0 else f"-{1 - year:04d}" for year in years]
    names = [time_name(text) for text in texts]
    bench.register("years", pa.table({"year": pa.array(years, pa.int64()), "time": texts, "name": names}))
    bench.execute(
        """create temp table insides as select fact_id, time, name, time_key(time, 0) as at from (
            select fact_id, time, name from drawn join times using (place) where known union all
            select fact_id, time, name from drawn join years using (year) where not known)"""
    )


def _remark_unasked(one: Composer, why: str) -> None:
    missing = one.count("select count(*) from facts anti join (from made where asked) using (fact_id)")
    if missing:
        one.remarks.append(f"{missing:,} {'fact is' if missing == 1 else 'facts are'} not asked about: {why}.")
