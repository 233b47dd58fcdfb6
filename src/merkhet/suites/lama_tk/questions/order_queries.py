"""Order queries: first and last holders of a position, predecessors and successors."""

from __future__ import annotations

import pyarrow as pa

from merkhet.suites.lama_tk.questions.statement_sql import Composer, open_composer
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts
from merkhet.suites.lama_tk.questions.wordings import Wordings

TEMPLATES = ("first", "last", "before", "after")
HOLDERS = 3
"""Minimum number of known subjects for asking who was first or last."""
_NEVER = 1_000_000_000_000_000
_REASONS = {
    "overlap": "somebody else's time overlaps, or is not known",
    "again": "the one who is named held it more than once",
    "gap": "more than a year lies between",
    "none": "nobody is known who came before or after",
    "unknown": "the one who came before or after is not among the facts",
    "few": f"fewer than {HOLDERS} are known",
}


def make_order_queries(facts: TemporalFacts, wordings: Wordings, *, entities: str = "text") -> pa.Table:
    """Make queries for the first and last subject of an object, and for those immediately before and after a subject.

    The order is determined by all facts of the knowledge base about the object, including facts with an unknown time.
    Ambiguous queries are skipped: no other interval may overlap with those of the named subject and of the answer,
    although one may end when the next begins. ``first`` and ``last`` need at least three known subjects. ``before`` and
    ``after`` need a subject with a single interval and a gap of at most one year. The answer and the named subject are
    always among ``facts``.
    """
    with open_composer(facts, wordings, entities) as composer:
        composer.create_patterns("patterns", "order", dict.fromkeys(TEMPLATES, ("subject",)))
        _create_terms(composer, entities)
        _add_first_and_last(composer)
        _add_before_and_after(composer)
        texts = " ".join(f"when {_quoted(name)} then {_quoted(text)}" for name, text in _REASONS.items())
        told, unordered = (
            f"case reason {texts} end",
            _quoted("the relation has no sentence about the order of its facts"),
        )
        return composer.finish(
            otherwise=_REASONS["none"],
            reasons=f"""select fact_id, {told} as reason from at_ends where reason is not null
            union all select target_fact, {told} from beside where reason is not null and target_fact is not null
            union all select fact_id, {unordered} from facts anti join patterns using (relation, point)""",
        )


def _create_terms(composer: Composer, entities: str) -> None:
    """Create the table ``terms`` of the intervals of each object in order, and ``held``, the facts behind them.

    The column ``clear`` states that no other interval of the object overlaps.
    """
    all_facts = composer.facts.all_facts if composer.facts.all_facts is not None else composer.facts.table
    composer.connection.register("known", all_facts)
    subject_text, object_text = (
        ("subject_name", "object_name") if entities == "text" else ("bracketed(subject)", "bracketed(object)")
    )
    composer.run(
        f"""create temp table terms as
        with ordered as (
            select distinct relation, {object_text} as o, subject, {subject_text} as s,
                coalesce(time_key("start", 0), -{_NEVER}) as starts,
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
    # Of several facts with the same text, the first by id represents the interval.
    composer.run(
        """create temp table held as select t.*, w.* exclude (relation, o, subject, s, starts, ends, mirrored)
        from terms t join worded w using (relation, o, subject, s, starts, ends) where not mirrored
        qualify row_number() over (partition by t.relation, t.o, subject, t.place order by fact_id) = 1"""
    )
    composer.run("create temp macro year_of(k) as floor(k / 10000) + case when k < 0 then 1 else 0 end")


def _add_first_and_last(composer: Composer) -> None:
    composer.run(
        f"""create temp table at_ends as
        with counted as (
            select relation, o, count(distinct subject) as holders from worded where not mirrored group by all
        ) select h.*, p.task, p.template, p.mask, p.text, case when holders < {HOLDERS} then 'few'
            when not clear then 'overlap' end as reason
        from held h join patterns p using (relation, point) join counted using (relation, o)
        where p.template = 'first' and place = 1 or p.template = 'last' and place = places"""
    )
    composer.run(
        f"""insert into made select task, relation, template, mask,
            {composer.sentence_sql("text", {"object": "o"})}, null, subject,
            fact_id, true from at_ends where reason is null"""
    )
    _remark_skipped(composer, "at_ends", "Who was first or last")


def _add_before_and_after(composer: Composer) -> None:
    composer.run(
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
    composer.run(
        f"""insert into made select task, relation, template, mask,
            {composer.sentence_sql("text", {"object": "o", "other": "s"})},
            null, target, target_fact, true from beside where reason is null"""
    )
    _remark_skipped(composer, "beside", "Who came before or after")


def _remark_skipped(composer: Composer, table: str, subject_phrase: str) -> None:
    counts = dict(
        composer.connection.execute(
            f"select reason, count(*) from {table} where reason is not null group by reason"
        ).fetchall()
    )
    if counts:
        total = sum(counts.values())
        reasons = "; ".join(f"in {counts[name]:,} {reason}" for name, reason in _REASONS.items() if name in counts)
        composer.remarks.append(
            f"{subject_phrase} is not asked in {total:,} {'case' if total == 1 else 'cases'}: {reasons}."
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
