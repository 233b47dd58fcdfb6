"""Train, dev and test splits by fact, without leakage between them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import pyarrow as pa

from merkhet.core.errors import MAX_FAULTS, FaultList, InputError
from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.knowledge.rules.rulebook import axiom_sql

_RESOLUTION = 2**52
_SEPARATOR = "chr(31)"


def split_sql(first: str, second: str, shares: Mapping[str, float], seed: int) -> str:
    r"""Return DuckDB SQL for the split of a fact, which depends on the unordered pair of its entities' names.

    .. math:: u = \mathrm{md5}(\mathit{seed}, \min(a, b), \max(a, b)) \in [0, 1)

    The interval [0, 1) is divided among the splits by their shares; u selects the split. Therefore, a fact, its inverse
    and all other facts about the same two entities are in one split. Names are compared in lower case; a missing name
    counts as empty.

    Raises:
        InputError: The shares are not positive or do not add up to 1.
    """
    return split_of_pair_sql(pair_sql(first, second), shares, seed)


def pair_sql(first: str, second: str) -> str:
    """Return SQL for the unordered pair of two names, as a text."""
    left, right = (f"lower(trim(coalesce(cast({text} as varchar), '')))" for text in (first, second))
    return f"least({left}, {right}) || {_SEPARATOR} || greatest({left}, {right})"


def split_of_pair_sql(pair: str, shares: Mapping[str, float], seed: int) -> str:
    """Return SQL for the split of a pair of :func:`pair_sql`.

    Raises:
        InputError: The shares are not positive or do not add up to 1.
    """
    _refuse_wrong_shares(shares)
    drawn = f"cast('0x' || left(md5('{int(seed)}' || {_SEPARATOR} || {pair}), 13) as bigint)"
    bounds = [round(bound * _RESOLUTION) for bound in accumulate(shares.values())]
    *head, last = shares
    cases = " ".join(f"when {drawn} < {bound} then {_text(name)}" for name, bound in zip(head, bounds, strict=False))
    return f"(case {cases} else {_text(last)} end)" if cases else _text(last)


def check_splits(questions: pa.Table, facts: pa.Table, *, pairs: bool = True, premises: bool = False) -> None:
    """Check that no fact, pair of entities or prompt has questions in different splits.

    All facts of a question are checked. A reasoning question about a conclusion lists the conclusion first, then its
    premises. Questions without a split are ignored.

    Args:
        pairs: Whether to check pairs of entities, in either order.
        premises: Whether to check also all facts of a conclusion's proof, stated or inferred, as if the question asked
            for them. Otherwise premises may be learnt in any split. Axioms are not checked.

    Raises:
        InputError: Questions in different splits share a fact, a pair of entities or a prompt.
    """
    with open_in_memory() as connection:
        connection.register("questions", questions.select(["question_id", "prompt", "facts", "rule", "split"]))
        columns = ["fact_id", "subject", "predicate", "object", "rule", "premises", "source"]
        connection.register("facts", facts.select(columns))
        connection.execute(
            """
            create temp table asked as
            select question_id, split, unnest(
                case when rule is null or rule = 'comparison' then facts else facts[:1] end
            ) as fact_id
            from questions where split is not null
            """
        )
        if premises:
            connection.execute(
                f"""
                insert into asked with recursive proofs as (
                    select question_id, split, fact_id from asked
                    union
                    select p.question_id, p.split, u.fact_id from proofs p
                    join (select fact_id, unnest(premises) as premise from facts where rule is not null) f
                    on f.fact_id = p.fact_id join facts u on u.fact_id = f.premise where not {axiom_sql("u")}
                )
                from proofs except select question_id, split, fact_id from asked
                """
            )
        _refuse_straddling(
            connection,
            "select fact_id as key, question_id, split, fact_id from asked",
            "a fact's questions belong to one split" + (", and so do those of its conclusions" if premises else ""),
        )
        if pairs:
            _refuse_straddling(
                connection,
                f"""
                select least(subject, object) || {_SEPARATOR} || greatest(subject, object) as key, question_id, split,
                    fact_id
                from asked join facts using (fact_id) where object is not null
                """,
                "facts about the same two entities in either order belong to one split",
            )
        _refuse_straddling(
            connection,
            r"""
            select trim(regexp_replace(lower(prompt), '\s+', ' ', 'g')) as key, question_id, split, null as fact_id
            from questions where split is not null
            """,
            "the same prompt belongs to one split",
        )


def _refuse_straddling(connection: Any, query: str, rule: str) -> None:
    """Raise an error that names two questions for each ``key`` of the rows of ``query`` that is in several splits."""
    place = "r.split, question_id"
    ends = ", ".join(
        f"{end}(q.prompt order by {place}), {end}(r.split order by {place}), "
        f"{end}(concat_ws(' ', f.subject, f.predicate, f.object) order by {place})"
        for end in ("first", "last")
    )
    connection.execute(
        # In two steps: ordering the questions of every key needs much more memory than comparing their splits.
        f"""create or replace temp table straddling as with rows as ({query}),
        mixed as (select key from rows group by key having min(split) <> max(split))
        select {ends} from rows r semi join mixed using (key)
        join questions q using (question_id) left join facts f using (fact_id)
        group by key order by all"""
    )
    [(count,)] = connection.execute("select count(*) from straddling").fetchall()
    rows = connection.execute(f"select * from straddling limit {MAX_FAULTS}").fetchall()
    faults = FaultList()
    faults.add_rows(
        range(count),
        lambda row: f"{_question(*rows[row][:3])} and {_question(*rows[row][3:])} are in different splits, but {rule}",
    )
    faults.refuse()


def _question(prompt: str, split: str, fact: str) -> str:
    return f"the question {prompt!r} in {split}" + (f" ({fact})" if fact else "")


def _refuse_wrong_shares(shares: Mapping[str, float]) -> None:
    if not shares or any(not share > 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        listing = ", ".join(f"{name} {share}" for name, share in shares.items()) or "nothing"
        raise InputError(f"the shares of splits must be above 0 and add up to 1, got {listing}")


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
