"""Sampling of questions by seed and content, and addition of the premise questions that a sample needs."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import QUESTIONS, validate


def draw_questions(questions: pa.Table, limit: int, seed: int) -> pa.Table:
    """Sample at most ``limit`` questions of each task; return them sorted by id.

    Questions about the same fact are drawn together, so consistency can be measured; the limit may cut off the last
    group. Domains take turns, and so do the relations in a domain. Questions that compare senses of a word are drawn
    one by one, so the sample covers many words. The sample does not depend on the order of ``questions``.
    """
    with duckdb.connect() as connection:
        connection.register("pool", questions)
        sample = connection.sql(
            """with asked as (
                select question_id, task, coalesce(domain, '') as domain, split_part(coalesce(template, ''), '/', 1)
                    as relation, coalesce(case when words is null then qset end, question_id) as qset from pool
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
            select pool.* from pool join drawn using (question_id) order by question_id""",
            params={"seed": str(seed), "limit": limit},
        ).to_arrow_table()
    return validate(QUESTIONS, sample)


def add_premise_questions(chosen: pa.Table, pool: pa.Table, premises: pa.Table) -> pa.Table:
    """Add the questions from ``pool`` that test whether a model knows the premises of the chosen questions."""
    chosen_premises = premises.filter(pc.is_in(premises["question_id"], chosen["question_id"].combine_chunks()))
    needed = {name for column in ("first", "second") for names in chosen_premises[column].to_pylist() for name in names}
    needed -= set(chosen["question_id"].to_pylist())
    if not needed:
        return chosen
    added = pool.filter(pc.is_in(pool["question_id"], pa.array(sorted(needed))))
    return pa.concat_tables([chosen, added])
