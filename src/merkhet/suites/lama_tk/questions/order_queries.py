"""Queries about the order of facts: who held a position first or last, who came before or after somebody."""

from __future__ import annotations

import pyarrow as pa

from merkhet.suites.lama_tk.questions.statement_sql import Composer, composer
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts
from merkhet.suites.lama_tk.questions.wordings import Wordings

TEMPLATES = ("first", "last", "before", "after")
HOLDERS = 3
"""Who was first or last is asked where so many subjects are known."""
_NEVER = 1_000_000_000_000_000
_REASONS = {
    "overlap": "somebody else's time overlaps, or is not known",
    "again": "the one who is named held it more than once",
    "gap": "more than a year lies between",
    "none": "nobody is known who came before or after",
    "unknown": "the one who came before or after is not among the facts",
    "few": f"fewer than {HOLDERS} are known",
}


def order_queries(facts: TemporalFacts, wordings: Wordings, *, entities: str = "text") -> pa.Table:
    """Who held O first and last, and who came immediately before and after S; the subject is asked for.

    It is decided by all facts that the knowledge base has of O, also those with a time unknown, and asked only where
    it is decided: nobody else's time overlaps with those of the two (the one may end when the other begins). First and
    last are asked where at least three subjects are known; before and after where S held O once and no more than a
    year lies between. Asked is of facts in ``facts`` alone: the answer and S are among them.
    """
    with composer(facts, wordings, entities) as one:
        one.put_patterns("patterns", "order", dict.fromkeys(TEMPLATES, ("subject",)))
        _put_terms(one, entities)
        _ask_ends(one)
        _ask_neighbours(one)
        return one.finish()


def _put_terms(one: Composer, entities: str) -> None:
    """Make the table ``terms``: all times of an object in order, each with whether it is clear of the others."""
    known = one.facts.known if one.facts.known is not None else one.facts.table
    one.connection.register("known", known)
    s, o = ("subject_name", "object_name") if entities == "text" else ("bracketed(subject)", "bracketed(object)")
    one.run(
        f"""create temp table terms as
        with ordered as (
            select distinct relation, {o} as o, subject, {s} as s, coalesce(time_key("start", 0), -{_NEVER}) as starts,
                coalesce(time_key("end", 0), {_NEVER}) as ends
            from known where object is not null and relation in (select relation from patterns)
        ), beside as (
            select *, row_number() over around as place, count(*) over (partition by relation, o) as places,
                count(*) over (partition by relation, o, s) as times,
                max(ends) over (around rows between unbounded preceding and 1 preceding) as ended,
                lag(starts) over around = starts and lag(ends) over around = ends as tie_before,
                lead(starts) over around as next_starts, lead(ends) over around as next_ends
            from ordered window around as (partition by relation, o order by starts, ends, subject)
        ) select relation, o, subject, s, starts, ends, place, places, times,
            coalesce(ended <= starts, true) and coalesce(ends <= next_starts, true) and not coalesce(tie_before, false)
                and not coalesce(next_starts = starts and next_ends = ends, false) as clear
        from beside"""
    )
    # The facts of terms; of two that read the same, the first by id.
    one.run(
        """create temp table held as select t.*, w.* exclude (relation, o, subject, s, starts, ends, mirrored)
        from terms t join worded w using (relation, o, subject, s, starts, ends) where not mirrored
        qualify row_number() over (partition by t.relation, t.o, subject, t.place order by fact_id) = 1"""
    )
    one.run("create temp macro year_of(k) as floor(k / 10000) + case when k < 0 then 1 else 0 end")


def _ask_ends(one: Composer) -> None:
    one.run(
        f"""create temp table at_ends as
        with counted as (
            select relation, o, count(distinct subject) as holders from worded where not mirrored group by all
        ) select h.*, p.task, p.template, p.mask, p.text, case when holders < {HOLDERS} then 'few'
            when not clear then 'overlap' end as reason
        from held h join patterns p using (relation, point) join counted using (relation, o)
        where p.template = 'first' and place = 1 or p.template = 'last' and place = places"""
    )
    one.run(
        f"""insert into made select task, relation, template, mask, {one.said("text", {"object": "o"})}, null, subject,
            fact_id, true from at_ends where reason is null"""
    )
    _remark(one, "at_ends", "Who was first or last")


def _ask_neighbours(one: Composer) -> None:
    one.run(
        """create temp table beside as
        select x.*, p.task, p.template, p.mask, p.text, t.subject as target, n.fact_id as target_fact,
            case when t.subject is null then 'none' when not x.clear or not t.clear then 'overlap'
                 when x.times > 1 then 'again'
                 when year_of(greatest(x.starts, t.starts)) - year_of(least(x.ends, t.ends)) > 1 then 'gap'
                 when n.fact_id is null then 'unknown' end as reason
        from held x join patterns p using (relation, point)
        left join terms t on t.relation = x.relation and t.o = x.o
            and t.place = x.place + case p.template when 'before' then -1 else 1 end
        left join held n on n.relation = t.relation and n.o = t.o and n.place = t.place
        where p.template in ('before', 'after')"""
    )
    one.run(
        f"""insert into made select task, relation, template, mask, {one.said("text", {"object": "o", "other": "s"})},
            null, target, target_fact, true from beside where reason is null"""
    )
    _remark(one, "beside", "Who came before or after")


def _remark(one: Composer, table: str, what: str) -> None:
    counts = dict(
        one.connection.execute(
            f"select reason, count(*) from {table} where reason is not null group by reason"
        ).fetchall()
    )
    if counts:
        total = sum(counts.values())
        told = "; ".join(f"in {counts[name]:,} {why}" for name, why in _REASONS.items() if name in counts)
        one.remarks.append(f"{what} is not asked in {total:,} {'case' if total == 1 else 'cases'}: {told}.")
