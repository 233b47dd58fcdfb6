"""Statement checking: as many true statements as corrupted ones, which are neither stated nor follow from what is."""

from __future__ import annotations

from merkhet.core import SLOT
from merkhet.questions.makers._template_sql import sentence_sql, sql_literal, usable_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql

_SPARE = 1.3
"""How many more facts are drawn than needed: some cannot be corrupted."""


def make_checks(builder: QuestionBuilder) -> list[str]:
    """Checking questions, spread over the relations; what could not be made, in words.

    A corrupted statement has another name of the same relation and place instead of its subject or its object.
    """
    relations = [one for one in builder.present if one.checking and one.completion]
    frames = builder.schema.frames.get("checking", ())
    if not relations or not frames:
        return []
    numbers = ", ".join(str(builder.numbers[one.name]) for one in relations)
    wanted = builder.options.checks
    builder.make(
        "to_check",
        f"""with facts_to_check as (
            select *, row_number() over (
                partition by rel order by {builder.draw("'check'", "fact_id")}, fact_id, s, o) as turn
            from worded where stated and asked and rel in ({numbers})
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select *, case when numeric or {builder.draw("'corrupt'", "fact_id")} % 2 = 0 then 'object'
                    else 'subject' end as ask from facts_to_check
        order by turn, {builder.draw("'check'", "fact_id")}, fact_id, rel limit {int(wanted * _SPARE) + 1}""",
    )
    builder.make(
        "to_corrupt",
        "select fact_id as id, rel, ask, case when ask = 'object' then s else o end as said, domain from to_check",
    )
    builder.wrong_names("to_corrupt", "corruptions", 1, "corruption")
    templates = "\n".join(
        f"when {builder.numbers[one.name]} then list_filter([{', '.join(_when_usable(one.templates))}], "
        "lambda x: x is not null)"
        for one in relations
    )
    builder.make(
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
        ), sizes as (select least(min(n), {wanted} // 2) as size from (
            select count(*) as n from ranked group by truth having count(*) > 0) counts having count(*) = 2)
        select rel, fact_id, truth, "start", "end", domain, split, turn, s, o,
            fitting[({builder.draw("'template'", "fact_id")} % array_length(fitting))::bigint + 1] as number
        from ranked, sizes where place <= size""",
    )
    builder.add_forms("judged_plain", "judged")
    used = {row[0] for row in builder.rows("select distinct rel from judged")}
    for relation in (one for one in relations if builder.numbers[one.name] in used):
        for number, template in enumerate(relation.templates):
            _insert(
                builder,
                f"rel = {builder.numbers[relation.name]} and number = {number}",
                relation.name,
                number,
                template,
            )
    return _remarks(builder)


def _when_usable(templates: tuple[str, ...]) -> list[str]:
    return [f"case when {usable_sql(template)} then {number} end" for number, template in enumerate(templates)]


def _insert(builder: QuestionBuilder, condition: str, relation: str, number: int, template: str) -> None:
    statement = sentence_sql(template)
    drawn = builder.draw("'frame'", "fact_id")
    frames = builder.schema.frames["checking"]
    prompts, right, choices = [], [], []
    for frame in frames:
        before, _, after = frame.partition("{statement}")
        prompts.append(f"concat({sql_literal(before)}, {statement}, {sql_literal(after)})")
        yes, no = ("Yes", "No") if _begins_sentence(frame) else ("yes", "no")
        right.append(f"case when truth then {sql_literal(yes)} else {sql_literal(no)} end")
        choices.append(f"[{sql_literal(yes)}, {sql_literal(no)}]")
    answer = pick_sql(right, drawn)
    builder.put(
        f"judged where {condition}",
        task="'checking'",
        prompt=pick_sql(prompts, drawn),
        answers=f"[{answer}]",
        target=answer,
        choices=pick_sql(choices, drawn),
        facts="[fact_id]",
        template=sql_literal(f"{relation}/{number + 1}"),
        entities="[s, o]",
    )


def _begins_sentence(frame: str) -> bool:
    """Whether the slot stands where a sentence begins."""
    before = frame[: frame.index(SLOT)].rstrip(' "“”')
    return not before or before.endswith(("?", ".", "!", "}"))


def _remarks(builder: QuestionBuilder) -> list[str]:
    rows = builder.rows(
        """select rel, count(*) from to_check t where not exists (select 1 from corruptions w where w.id = t.fact_id)
        group by rel order by rel"""
    )
    names = list(builder.relations)
    return [f"{names[rel]}: {count:,} facts have no wrong name to put in; they are not checked" for rel, count in rows]
