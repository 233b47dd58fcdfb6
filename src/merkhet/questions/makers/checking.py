"""Questions of the task checking: equally many true and corrupted statements."""

from __future__ import annotations

from collections.abc import Mapping

from merkhet.core import SLOT
from merkhet.core.text import counted
from merkhet.questions.english import capitalize
from merkhet.questions.makers._template_sql import sentence_sql, sql_literal, usable_templates_sql
from merkhet.questions.makers.distractors import draw_distractors, said_sql
from merkhet.questions.makers.nearness import level_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Relation

_OVERSAMPLING = 1.3
"""Oversampling factor, because some facts cannot be corrupted."""


def make_checks(builder: QuestionBuilder) -> list[str]:
    """Make checking questions, spread over the relations.

    In a corrupted statement, a distractor replaces the subject or object. The ``nearness`` of a true statement is that
    of the distractor that could have replaced its name.

    Returns:
        Remarks on facts that could not be checked.
    """
    relations = {
        builder.relation_numbers[relation.name]: relation
        for relation in builder.used_relations
        if relation.checking and builder.evidence.asks_with_distractors(relation)
    }
    frames = builder.schema.frames.get("checking", ())
    if not relations or not frames:
        return []
    numbers = ", ".join(map(str, relations))
    check_count, balanced = builder.options.checks, ""
    sample, first_truth, order, extra_true = int(check_count * _OVERSAMPLING) + 1, "1", "turn", 0
    if builder.options.limit is not None:
        # In a small sample, every second relation starts with a false statement, so the sample covers more relations.
        check_count = builder.options.limit
        sample, extra_true = 2 * (check_count + len(relations)), check_count % 2
        first_truth = f"list_position([{numbers}], rel)"
        order = f"2 * k - case when truth = ({first_truth} % 2 = 1) then 1 else 0 end, rel"
        # Each relation gets equally many true and false statements.
        balanced = """qualify k <= least(count(*) filter (truth) over (partition by rel),
            count(*) filter (not truth) over (partition by rel))"""
    builder.create_table(
        "to_check",
        f"""with drawn as (
            select rel, fact_id, s, o, "start", "end", start_date, end_date, domain, split, numeric,
                {builder.draw_sql("'check'", "fact_id")} as draw
            from worded where stated and asked and rel in ({numbers})
        ), facts_to_check as (
            select *, row_number() over (partition by rel order by draw, fact_id, s, o) as turn from drawn
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ), sample as (
            select * exclude (draw) from facts_to_check order by turn, draw, fact_id, rel limit {sample}
        ), asked_facts as (
            select *, case when numeric or {builder.draw_sql("'corrupt'", "fact_id")} % 2 = 0 then 'object'
                else 'subject' end as ask from sample
        )
        select *, fact_id as id, case when ask = 'object' then o else s end as name,
            case when ask = 'object' then {said_sql(builder, "object")} else {said_sql(builder, "subject")} end as said
        from asked_facts""",
    )
    draw_distractors(builder, "to_check", "corruptions", 1, "corruption")
    fitting = usable_templates_sql({rel: enumerate(relation.templates) for rel, relation in relations.items()})
    builder.create_table(
        "judged_plain",
        f"""with paired as (
            select t.* exclude (name), w.name as wrong, {level_sql("w.level")} as nearness,
                row_number() over (partition by rel order by turn) as nth, {fitting} as fitting
            from to_check t join corruptions w on w.id = t.fact_id
        ), judged_facts as (
            select *, (nth + {first_truth}) % 2 = 0 as truth from paired
        ), said as (
            select * exclude (s, o),
                case when not truth and ask = 'subject' then wrong else s end as s,
                case when not truth and ask = 'object' then wrong else o end as o
            from judged_facts
        ), distinct_ones as (
            select * from said qualify row_number() over (partition by rel, s, o order by turn, fact_id) = 1
        ), numbered as (
            select *, row_number() over (partition by rel, truth order by nth, fact_id) as k from distinct_ones
            where array_length(fitting) > 0 {balanced}
        ), ranked as (
            select *, row_number() over (partition by truth order by {order}, md5(fact_id), rel, s, o) as place
            from numbered
        ), sizes as (select least(min(n), {check_count} // 2) as size from (
            select count(*) as n from ranked group by truth having count(*) > 0) counts having count(*) = 2)
        select rel, fact_id, truth, "start", "end", start_date, end_date, domain, split, turn, s, o, nearness,
            fitting[({builder.draw_sql("'template'", "fact_id")} % array_length(fitting))::bigint + 1] as number
        from ranked, sizes
        where place <= size + case when truth and size = {check_count} // 2 then {extra_true} else 0 end""",
    )
    builder.add_forms("judged_plain", "judged")
    _add_questions(builder, relations)
    return _remarks(builder)


def _add_questions(builder: QuestionBuilder, relations: Mapping[int, Relation]) -> None:
    used = builder.rows("select distinct rel, number from judged order by rel, number")
    templates = {(rel, number): relations[rel].templates[number] for rel, number in used}
    draw = builder.draw_sql("'frame'", "fact_id")
    prompts, right, choices = [], [], []
    for frame in builder.schema.frames["checking"]:
        head, _, tail = frame.partition("{statement}")
        prompts.append(f"concat({sql_literal(head)}, sentence, {sql_literal(tail)})")
        yes, no = (capitalize(word) if _begins_sentence(frame) else word for word in builder.schema.verdicts)
        right.append(f"case when truth then {sql_literal(yes)} else {sql_literal(no)} end")
        choices.append(f"[{sql_literal(yes)}, {sql_literal(no)}]")
    answer = pick_sql(right, draw)
    builder.add_sentences(
        "judged",
        [
            (f"rel = {rel} and number = {number}", sentence_sql(template), f"{relations[rel].name}/{number + 1}")
            for (rel, number), template in templates.items()
        ],
        task="'checking'",
        prompt=pick_sql(prompts, draw),
        answers=f"[{answer}]",
        target=answer,
        choices=pick_sql(choices, draw),
        facts="[fact_id]",
        nearness="nearness",
        entities="[s, o]",
    )


def _begins_sentence(frame: str) -> bool:
    """Return whether the slot of a frame begins a sentence."""
    head = frame[: frame.index(SLOT)].rstrip(' "“”')
    return not head or head.endswith(("?", ".", "!", "}"))


def _remarks(builder: QuestionBuilder) -> list[str]:
    rows = builder.rows(
        """select rel, count(*) from to_check t where not exists (select 1 from corruptions w where w.id = t.fact_id)
        group by rel order by rel"""
    )
    names = list(builder.relations)
    return [
        f"{names[rel]}: {counted(count, 'fact is', 'facts are')} not checked: no wrong name is available"
        for rel, count in rows
    ]
