"""Answer counts for frequency baselines, from questions that share no fact with the questions asked."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import FREQUENCIES, make_table, validate
from merkhet.knowledge.memory_limit import open_in_memory

TRAINING_SPLITS = ("train", "dev")
NO_COUNTS = "answers are counted in training questions or in facts that no question asks about, and there are none"
BALANCED = "by design, right answers are equally frequent there"
"""Reason why a frequency baseline has no answers to count."""


def without_asked_training(frequencies: pa.Table, asked: pa.Table) -> pa.Table:
    """Return the answer counts of a question set, or none if training questions are asked, which they may include."""
    is_training = pc.is_in(asked["split"], value_set=pa.array(TRAINING_SPLITS))
    return frequencies.slice(0, 0) if pc.any(is_training).as_py() else frequencies


def add_unasked_counts(frequencies: pa.Table, pool: pa.Table, asked: pa.Table, facts: pa.Table) -> pa.Table:
    """Add answer counts for tasks without any: the answers of questions in ``pool`` that are not asked.

    No added count depends on the answers of the questions ``asked``.

    Args:
        frequencies: Answer counts of the question set.
        pool: All questions, asked or not.
        facts: Facts of the questions, with their premises.
    """
    splits = set(asked["split"].unique().to_pylist())
    others = pool.filter(pc.invert(pc.is_in(pool["task"], value_set=pc.unique(frequencies["task"]))))
    training = [name for name in TRAINING_SPLITS if name not in splits]
    return pa.concat_tables([frequencies, _count_unasked_answers(others, asked, facts, training)])


def _count_unasked_answers(pool: pa.Table, asked: pa.Table, facts: pa.Table, training: Collection[str]) -> pa.Table:
    """Count the targets of questions in ``pool`` that share nothing with a question in ``asked``.

    Excluded are questions that share a fact, a premise of a fact, a pair of entities (in either order), a question set
    or a prompt with a question in ``asked``. A question without facts is counted only if it belongs to one of the
    splits ``training``: otherwise nothing shows that it asks for another fact. Several questions about the same facts
    count once per answer.
    """
    is_asked = pc.is_in(pool["question_id"], value_set=asked["question_id"].combine_chunks())
    if not pool.num_rows or pc.all(is_asked).as_py():
        return make_table(FREQUENCIES, [])
    columns = ["question_id", "task", "prompt", "target", "facts", "qset", "template", "split", "words"]
    with open_in_memory() as connection:
        connection.register("asked", asked.select(columns))
        connection.register("unasked", pool.filter(pc.invert(is_asked)).select(columns))
        connection.register("facts", facts.select(["fact_id", "subject", "object", "value", "premises"]))
        prompt = r"trim(regexp_replace(lower(prompt), '\s+', ' ', 'g'))"
        table = connection.sql(
            f"""with recursive based as (
                select question_id, unnest(facts) as fact_id from (from asked select question_id, facts
                    union all from unasked select question_id, facts)
                union select b.question_id, unnest(f.premises) from based b join facts f using (fact_id)
            ), keyed as (
                select question_id, fact_id as key from based
                union select question_id, least(f.subject, f.other) || chr(31) || greatest(f.subject, f.other)
                    from based join (select fact_id, subject, coalesce(object, value::varchar) as other from facts) f
                    using (fact_id)
                union select question_id, chr(30) || qset from asked where qset is not null
                union select question_id, chr(30) || qset from unasked where qset is not null
                union select question_id, chr(29) || {prompt} from asked
                union select question_id, chr(29) || {prompt} from unasked
            ), shared as (
                select distinct question_id from keyed
                where key in (select key from keyed semi join asked using (question_id))
            )
            select task, coalesce(nullif(split_part(template, '/', 1), ''), task) as relation, target as answer,
                count(distinct coalesce(nullif(array_to_string(list_sort(facts), chr(31)), ''), qset, question_id))
                as count
            from unasked anti join shared using (question_id)
            where task in (select task from asked) and words is null
                and (len(facts) > 0 or list_contains($training, split))
            group by all order by all""",
            params={"training": list(training)},
        ).to_arrow_table()
    return validate(FREQUENCIES, table)
