"""Sampling of items by seed and content, and addition of the premise questions that a sample needs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import QUESTIONS, validate
from merkhet.knowledge.memory_limit import open_in_memory


def draw_questions(questions: pa.Table, limit: int, seed: int) -> pa.Table:
    """Draw at most ``limit`` items of each task; return all of their questions, sorted by id.

    An item is what questions have in common: the question set (``qset``), else the first fact, else the question
    itself. All questions of a drawn item are drawn: its paraphrases, masked names and premise settings. Questions that
    compare senses of a word are items of their own, so the sample covers many words.

    Each domain gets an item before any domain gets a second one, and each relation gets an item before any relation
    gets a second one. After that, domains take turns, and so do the relations in a domain. A sample contains every
    smaller sample, and does not depend on the order of ``questions``.
    """
    with open_in_memory() as connection:
        connection.register("pool", questions)
        sample = connection.sql(
            """with asked as (
                select question_id, task, coalesce(domain, '') as domain,
                    split_part(coalesce(template, ''), '/', 1) as relation,
                    coalesce(case when words is null then coalesce(qset, facts[1]) end, question_id) as item from pool
            ), items as (
                select task, item, min(domain) as domain, min(relation) as relation from asked group by task, item
            ), turns as (
                select *, row_number() over (partition by task, domain, relation
                    order by md5(concat_ws(chr(31), $seed, item)), item) as turn
                from items
            ), placed as (
                select *, row_number() over (partition by task, domain order by turn, md5(relation), relation) as later
                from turns
            ), drawn as (
                select task, item from placed qualify row_number() over (
                    partition by task order by turn > 1, later, md5(domain), domain, relation, item) <= $limit
            )
            select pool.* from pool join asked using (question_id) semi join drawn
                on drawn.task = asked.task and drawn.item = asked.item
            order by question_id""",
            params={"seed": str(seed), "limit": limit},
        ).to_arrow_table()
    return validate(QUESTIONS, sample)


def add_premise_questions(chosen: pa.Table, pool: pa.Table, premise_questions: pa.Table) -> pa.Table:
    """Add the questions from ``pool`` that test whether a model knows the premises of the chosen questions."""
    is_chosen = pc.is_in(premise_questions["question_id"], chosen["question_id"].combine_chunks())
    chosen_premises = premise_questions.filter(is_chosen)
    needed = {name for column in ("first", "second") for names in chosen_premises[column].to_pylist() for name in names}
    needed -= set(chosen["question_id"].to_pylist())
    if not needed:
        return chosen
    added = pool.filter(pc.is_in(pool["question_id"], pa.array(sorted(needed))))
    return pa.concat_tables([chosen, added])


def add_premise_facts(chosen: pa.Table, pool: pa.Table, premises: pa.Table) -> pa.Table:
    """Add the completion questions from ``pool`` about the premises of the chosen conclusions."""
    is_chosen = pc.is_in(premises["question_id"], chosen["question_id"].combine_chunks())
    facts = premises.filter(is_chosen)["fact_id"].combine_chunks()
    is_new = pc.invert(pc.is_in(pool["question_id"], chosen["question_id"].combine_chunks()))
    unasked = pool.filter(pc.and_(pc.equal(pool["task"], "completion"), is_new))
    lists = unasked["facts"].combine_chunks()
    rows = pc.list_parent_indices(lists).filter(pc.is_in(pc.list_flatten(lists), facts))
    return pa.concat_tables([chosen, unasked.take(pc.unique(rows))])
