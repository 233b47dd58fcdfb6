"""Sampling of questions by seed and content, with the premise questions they depend on."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import QUESTIONS, validate


def draw_questions(questions: pa.Table, limit: int, seed: int) -> pa.Table:
    """At most so many questions of each task, by id; does not depend on the order of the rows.

    Questions of one fact are taken together, so that one can see whether a model answers them all; of the last fact
    as many as there is room for. Domains take turns, and within a domain its relations. Questions that compare senses
    of one word are drawn one by one: few words would say little of all.
    """
    with duckdb.connect() as connection:
        connection.register("given", questions)
        found = connection.sql(
            """with asked as (
                select question_id, task, coalesce(domain, '') as domain, split_part(coalesce(template, ''), '/', 1)
                    as relation, coalesce(case when words is null then qset end, question_id) as qset from given
            ), sets as (
                select task, domain, relation, qset, row_number() over (partition by task, domain, relation
                    order by md5(concat_ws(chr(31), $seed, qset)), qset) as turn
                from asked group by task, domain, relation, qset
            ), placed as (
                select *, row_number() over (partition by task, domain order by turn, md5(relation), relation) as later
                from sets
            ), drawn as (
                select question_id from asked join placed using (task, domain, relation, qset)
                qualify row_number() over (
                    partition by task order by later, md5(domain), domain, relation, qset, question_id) <= $limit
            )
            select given.* from given join drawn using (question_id) order by question_id""",
            params={"seed": str(seed), "limit": limit},
        ).to_arrow_table()
    return validate(QUESTIONS, found)


def add_premise_questions(chosen: pa.Table, every: pa.Table, premises: pa.Table) -> pa.Table:
    """The chosen questions, and all those that decide whether a model knows a premise of theirs."""
    own = premises.filter(pc.is_in(premises["question_id"], chosen["question_id"].combine_chunks()))
    needed = {name for column in ("first", "second") for names in own[column].to_pylist() for name in names}
    needed -= set(chosen["question_id"].to_pylist())
    if not needed:
        return chosen
    more = every.filter(pc.is_in(every["question_id"], pa.array(sorted(needed))))
    return pa.concat_tables([chosen, more])
