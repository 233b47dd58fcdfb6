"""Filters that balance a set of questions: common answers, large relations and large domains are thinned."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.questions.quality import Filter

_ITERATIONS = 100


def common_answer_filter(largest: float = 0.5) -> Filter:
    """Return a filter of questions whose answer is right for more than a share of the facts of its relation.

    Whoever always gives that answer would be right more often than not. Checking and distinction have balanced answers,
    and are kept.
    """
    return Filter(
        "common answers",
        f"the answer is right for at most {largest:.0%} of the facts that its relation asks about",
        lambda table: _is_uncommon(table, largest),
    )


def _is_uncommon(table: pa.Table, largest: float) -> pa.Array:
    with open_in_memory() as connection:
        connection.register("pool", table.select(["question_id", "task", "target", "facts", "template", "rule"]))
        rows = connection.execute(
            """with asked as (
                select question_id, task, target, facts[1] as fact,
                    split_part(coalesce(template, ''), '/', 1) as relation
                from pool where task in ('completion', 'reasoning') and coalesce(rule, '') != 'comparison'
            ), counts as (
                select task, relation, target, count(distinct fact) as size from asked group by all
            ), common as (
                select task, relation, target from counts
                qualify size > $largest * sum(size) over (partition by task, relation)
            )
            select question_id from asked semi join common using (task, relation, target)""",
            {"largest": largest},
        ).fetchall()
    return pc.invert(pc.is_in(table["question_id"].combine_chunks(), pa.array([row[0] for row in rows], pa.string())))


def relation_filter(largest: float, seed: int) -> Filter:
    """Return a filter that thins large relations, so that none has more than a share of a task's questions.

    All questions of an item (``qset``) stay or go together. In tasks with too few relations, nothing is removed.
    """
    return Filter(
        "relations",
        f"a relation has at most {largest:.0%} of the questions of a task",
        lambda table: _is_within_limits(table, "task", "relation", largest, 0.0, seed),
    )


def domain_filter(largest: float, smallest: float, seed: int) -> Filter:
    """Return a filter that thins large domains, so that none has more than a share of the questions.

    They are thinned further if a domain would have less than ``smallest`` of the questions. All questions of an item
    (``qset``) stay or go together. In a domain, each relation of each task gives an item before any gives a second one,
    so large relations are thinned first. If there are too few domains, nothing is removed.
    """
    return Filter(
        "domains",
        f"a domain has at most {largest:.0%} of the questions; items are drawn from relations in turn",
        lambda table: _is_within_limits(table, "''", "domain", largest, smallest, seed),
    )


def _is_within_limits(table: pa.Table, whole: str, part: str, largest: float, smallest: float, seed: int) -> pa.Array:
    """Return a mask of the questions that remain when the parts of each whole are thinned to the limits of shares.

    Args:
        whole: SQL expression of which the questions with one value are a whole, such as ``task``.
        part: Column whose values divide a whole into parts, ``relation`` or ``domain``.
    """
    with open_in_memory() as connection:
        columns = ["question_id", "task", "domain", "facts", "template", "qset"]
        connection.register("pool", table.select(columns))
        connection.execute(
            f"""create temp table asked as select *, {whole} as whole, {part} as part from (
                select question_id, task, domain, split_part(coalesce(template, ''), '/', 1) as relation,
                    coalesce(qset, facts[1], question_id) as item from pool
            ) p where {part} is not null"""
        )
        limits = []
        wholes = connection.execute(
            "select whole, list(size order by part) from (select whole, part, count(*) as size "
            "from asked group by all) s group by whole order by whole"
        ).fetchall()
        for name, counts in wholes:
            limit = share_limit(np.array(counts, dtype=np.int64), largest, smallest)
            if limit is not None:
                limits.append({"whole": name, "limit": limit})
        if not limits:
            return pa.array(np.ones(len(table), dtype=bool))
        connection.register("limits", pa.Table.from_pylist(limits))
        rows = connection.execute(
            """with items as (
                select whole, part, task, relation, item, count(*) as size from asked group by all
            ), turns as (
                select *, row_number() over (partition by whole, part, task, relation
                    order by md5(concat_ws(chr(31), $seed, item)), item) as turn
                from items
            ), placed as (
                select *, sum(size) over (partition by whole, part
                    order by turn, md5(task || relation), task, relation, item rows unbounded preceding) as total
                from turns
            ), removed as (
                select p.* from placed p join limits l on l.whole = p.whole where p.total > l."limit"
            )
            select question_id from asked a semi join removed r on r.whole = a.whole and r.part = a.part
                and r.task = a.task and r.relation = a.relation and r.item = a.item""",
            {"seed": str(seed)},
        ).fetchall()
    return pc.invert(pc.is_in(table["question_id"].combine_chunks(), pa.array([row[0] for row in rows], pa.string())))


def share_limit(counts: np.ndarray[tuple[int], np.dtype[np.int64]], largest: float, smallest: float) -> int | None:
    """Return the number of questions per part that keeps shares between ``smallest`` and ``largest``.

    Args:
        counts: Number of questions of each part.

    Returns:
        The limit; None if no part must be thinned, or if there are so few parts that no limit keeps the shares.
    """
    if len(counts) * largest < 1:
        return None
    limit = int(counts.max())
    for _ in range(_ITERATIONS):
        total = int(np.minimum(counts, limit).sum())
        lower = min(int(largest * total), limit)
        # A lower limit raises the share of the smallest part.
        if counts.min() < smallest * total:
            lower = min(lower, limit - max(1, limit // 50))
        if lower == limit:
            return limit if limit < counts.max() else None
        limit = lower
        if limit <= counts.min():
            break
    return max(limit, 1)
