"""Statement checking: equally many true and corrupted statements; corrupted ones are neither stated nor inferred."""

from __future__ import annotations

from merkhet.core import SLOT
from merkhet.questions.makers._template_sql import sentence_sql, sql_literal, usable_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql

_OVERSAMPLING = 1.3
"""Oversampling factor: some facts cannot be corrupted."""


def make_checks(builder: QuestionBuilder) -> list[str]:
    """Make checking questions, spread over the relations.

    A corrupted statement replaces its subject or object by another name from the same field of the relation.

    Returns:
        Remarks on facts that could not be checked.
    """
    relations = [relation for relation in builder.used_relations if relation.checking and relation.completion]
    frames = builder.schema.frames.get("checking", ())
    if not relations or not frames:
        return []
    numbers = ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations)
    check_count = builder.options.checks
    builder.create_table(
        "to_check",
        f"""with facts_to_check as (
            select *, row_number() over (
                partition by rel order by {builder.draw_sql("'check'", "fact_id")}, fact_id, s, o) as turn
            from worded where stated and asked and rel in ({numbers})
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select *, case when numeric or {builder.draw_sql("'corrupt'", "fact_id")} % 2 = 0 then 'object'
                    else 'subject' end as ask from facts_to_check
        order by turn, {builder.draw_sql("'check'", "fact_id")}, fact_id, rel
        limit {int(check_count * _OVERSAMPLING) + 1}""",
    )
    builder.create_table(
        "to_corrupt",
        "select fact_id as id, rel, ask, case when ask = 'object' then s else o end as said, domain from to_check",
    )
    builder.draw_distractors("to_corrupt", "corruptions", 1, "corruption")
    templates = "\n".join(
        f"when {builder.relation_numbers[relation.name]} then list_filter(["
        f"{', '.join(_usable_numbers(relation.templates))}], lambda x: x is not null)"
        for relation in relations
    )
    builder.create_table(
        "judged_plain",
        f"""with paired as (
            select t.*, w.name as wrong,
                row_number() over (partition by rel order by turn) % 2 = 1 as truth,
                case rel {templates} end as fitting
            from to_check t join corruptions w on w.id = t.fact_id
        ), said as (
            select * exclude (s, o),
                case when not truth and ask = 'subject' then wrong else s end as s,
                case when not truth and ask = 'object' then wrong else o end as o
            from paired
        ), distinct_ones as (
            select * from said qualify row_number() over (partition by rel, s, o order by turn, fact_id) = 1
        ), ranked as (
            select *, row_number() over (partition by truth order by turn, md5(fact_id), rel, s, o) as place
            from distinct_ones where array_length(fitting) > 0
        ), sizes as (select least(min(n), {check_count} // 2) as size from (
            select count(*) as n from ranked group by truth having count(*) > 0) counts having count(*) = 2)
        select rel, fact_id, truth, "start", "end", domain, split, turn, s, o,
            fitting[({builder.draw_sql("'template'", "fact_id")} % array_length(fitting))::bigint + 1] as number
        from ranked, sizes where place <= size""",
    )
    builder.add_forms("judged_plain", "judged")
    used = {row[0] for row in builder.rows("select distinct rel from judged")}
    for relation in relations:
        if builder.relation_numbers[relation.name] not in used:
            continue
        for number, template in enumerate(relation.templates):
            _insert(
                builder,
                f"rel = {builder.relation_numbers[relation.name]} and number = {number}",
                relation.name,
                number,
                template,
            )
    return _remarks(builder)


def _usable_numbers(templates: tuple[str, ...]) -> list[str]:
    return [f"case when {usable_sql(template)} then {number} end" for number, template in enumerate(templates)]


def _insert(builder: QuestionBuilder, condition: str, relation: str, number: int, template: str) -> None:
    statement = sentence_sql(template)
    draw = builder.draw_sql("'frame'", "fact_id")
    frames = builder.schema.frames["checking"]
    prompts, right, choices = [], [], []
    for frame in frames:
        head, _, tail = frame.partition("{statement}")
        prompts.append(f"concat({sql_literal(head)}, {statement}, {sql_literal(tail)})")
        yes, no = ("Yes", "No") if _begins_sentence(frame) else ("yes", "no")
        right.append(f"case when truth then {sql_literal(yes)} else {sql_literal(no)} end")
        choices.append(f"[{sql_literal(yes)}, {sql_literal(no)}]")
    answer = pick_sql(right, draw)
    builder.add_questions(
        f"judged where {condition}",
        task="'checking'",
        prompt=pick_sql(prompts, draw),
        answers=f"[{answer}]",
        target=answer,
        choices=pick_sql(choices, draw),
        facts="[fact_id]",
        template=sql_literal(f"{relation}/{number + 1}"),
        entities="[s, o]",
    )


def _begins_sentence(frame: str) -> bool:
    """Tell whether the slot begins a sentence."""
    head = frame[: frame.index(SLOT)].rstrip(' "“”')
    return not head or head.endswith(("?", ".", "!", "}"))


def _remarks(builder: QuestionBuilder) -> list[str]:
    rows = builder.rows(
        """select rel, count(*) from to_check t where not exists (select 1 from corruptions w where w.id = t.fact_id)
        group by rel order by rel"""
    )
    names = list(builder.relations)
    return [f"{names[rel]}: {count:,} facts have no wrong name to put in; they are not checked" for rel, count in rows]
