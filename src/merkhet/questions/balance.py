"""Filters that balance a set of questions: common answers, large relations and large domains are thinned."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.questions.makers._template_sql import sql_literals
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


def balance_filter(relations: Mapping[str, float], largest: float, smallest: float, seed: int) -> Filter:
    """Return a filter that thins large relations and domains.

    Relations are thinned first, then domains, then the relations whose shares have grown. All questions of an item
    (``qset``) stay or go together. In a domain, each relation of each task gives an item before any gives a second one.
    Where there are too few relations or domains for a limit, it does not apply.

    Args:
        relations: Largest share of a relation (of one domain) in the questions of a task, or of one form of a task:
            ``reasoning/open`` or ``reasoning/choices``.
        largest: Largest share of a domain.
        smallest: Share that each domain should have; the other domains are thinned until it does.
    """

    def keep(table: pa.Table) -> pa.Array:
        with open_in_memory() as connection:
            columns = ["question_id", "task", "domain", "facts", "template", "qset", "choices"]
            connection.register("pool", table.select(columns))
            connection.execute(
                f"""create temp table kept as select question_id, task, domain,
                    split_part(coalesce(template, ''), '/', 1) as relation,
                    coalesce(qset, facts[1], question_id) as item,
                    if(task in ({sql_literals(relations)}), task,
                        concat_ws('/', task, if(choices is null, 'open', 'choices'))) as form,
                    concat_ws('/', domain, relation) as domain_relation, '' as everything from pool"""
            )
            forms = {form: (share, 0.0) for form, share in relations.items()}
            _thin(connection, "form", "domain_relation", forms, seed)
            _thin(connection, "everything", "domain", {"": (largest, smallest)}, seed)
            _thin(connection, "form", "domain_relation", forms, seed)
            kept = [row[0] for row in connection.execute("select question_id from kept").fetchall()]
        return pc.is_in(table["question_id"].combine_chunks(), pa.array(kept, pa.string()))

    shares = ", ".join(f"{share:.0%} of {form}" for form, share in relations.items())
    return Filter("balance", f"largest shares: of a relation {shares}; of a domain {largest:.0%}", keep)


def _thin(
    connection: duckdb.DuckDBPyConnection,
    whole: str,
    part: str,
    shares: Mapping[str, tuple[float, float]],
    seed: int,
) -> None:
    """Thin the parts of each whole in the table ``kept`` to the limits of shares.

    Args:
        whole: Column; the questions with one value are a whole.
        part: Column whose values divide a whole into parts.
        shares: Largest and smallest share of a part, by whole. Others are not thinned.
    """
    limits = []
    wholes = connection.execute(
        f"""select whole, list(size order by part) from (
            select {whole} as whole, {part} as part, count(*) as size from kept where {part} is not null group by all) s
        group by whole order by whole"""
    ).fetchall()
    for name, counts in wholes:
        limit = share_limit(np.array(counts, dtype=np.int64), *shares[name]) if name in shares else None
        if limit is not None:
            limits.append({"whole": name, "limit": limit})
    if not limits:
        return
    connection.register("limits", pa.Table.from_pylist(limits))
    connection.execute(
        f"""create or replace temp table removed as with asked as (
            select *, {whole} as whole, {part} as part from kept where {part} is not null
        ), items as (
            select whole, part, task, relation, item, count(*) as size from asked group by all
        ), turns as (
            select *, row_number() over (partition by whole, part, task, relation
                order by md5(concat_ws(chr(31), $seed, item)), item) as turn
            from items
        ), placed as (
            select *, sum(size) over (partition by whole, part
                order by turn, md5(task || relation), task, relation, item rows unbounded preceding) as total
            from turns
        ), excess as (
            select p.* from placed p join limits l on l.whole = p.whole where p.total > l."limit"
        )
        select question_id from asked a semi join excess r on r.whole = a.whole and r.part = a.part
            and r.task = a.task and r.relation = a.relation and r.item = a.item""",
        {"seed": str(seed)},
    )
    connection.execute("create or replace temp table kept as select * from kept anti join removed using (question_id)")


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
