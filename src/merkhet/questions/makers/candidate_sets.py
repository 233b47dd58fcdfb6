"""Candidate sets of open questions: all answers of a relation's field, without other names of the right answers."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import candidate_set_id
from merkhet.questions.makers._template_sql import (
    answer_sql,
    case_sql,
    field_column,
    slot_form,
    sql_literal,
    sql_literals,
)
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation


def candidate_set_sql(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, source: str, alike: str | None
) -> str:
    """Return SQL for the id of each question's candidate set, and register all sets that occur.

    Args:
        source: SQL for the questions' rows, as written after ``from``.
        alike: SQL for a list of candidates to leave out, because a right answer is also called so; None for none. The
            masked answer always stays.
    """
    full = sql_literal(register_candidate_set(builder, relation, template, ask))
    if alike is None:
        return full
    answer = answer_sql(template, ask)
    left_out: dict[str, set[str]] = {}
    for target, name in builder.rows(
        f"""select distinct target, name from (select {answer} as target, unnest({alike}) as name from {source}) a
        where name != target order by target, name"""
    ):
        left_out.setdefault(target, set()).add(name)
    return case_sql(
        (
            (
                f"{answer} in ({sql_literals(sorted(targets))})",
                sql_literal(register_candidate_set(builder, relation, template, ask, frozenset(names))),
            )
            for targets, names in group_targets(left_out)
        ),
        full,
    )


def group_targets(left_out: Mapping[str, Set[str]]) -> list[tuple[set[str], set[str]]]:
    """Group masked answers that can share a candidate set, with the candidates that are left out of it.

    Each answer joins the first group whose answers may all stay, so that there are few groups: one candidate set per
    answer would take too much space if many names are alike.

    Args:
        left_out: The candidates to leave out, by masked answer.
    """
    groups: list[tuple[set[str], set[str]]] = []
    for target, names in left_out.items():
        for targets, all_names in groups:
            if target not in all_names and not names & targets:
                break
        else:
            groups.append((targets := set(), all_names := set()))
        targets.add(target)
        all_names |= names
    return groups


def register_candidate_set(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, left_out: frozenset[str] = frozenset()
) -> str:
    """Register the candidate set of a relation's field, inflected for the slot of ``template``; return its id.

    The set contains all answers that occur in the field ``ask``, except for those that are ``left_out``.
    """
    form, begins = slot_form(template, ask)
    slot = (relation.name, ask, form, begins)
    key, ids = (slot, left_out), builder.sets_by_form
    builder.slots.add(slot)
    if key not in ids:
        answer = answer_sql(template, ask)
        table = builder.tables.arrow(
            f"select distinct {answer} as shown from {builder.relation_rows(relation)} w "
            f"where {field_column(ask)} is not null and asked order by shown"
        )
        texts = table["shown"].combine_chunks()
        if left_out:
            texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(sorted(left_out), pa.string()))))
        ids[key] = candidate_set_id(f"{relation.name}-{ask}", texts.to_pylist())
        builder.candidate_sets[ids[key]] = texts
    return ids[key]
