"""Questions of the task reasoning: inferred facts, asked as open questions or with four choices."""

from __future__ import annotations

from merkhet.core.text import counted
from merkhet.questions.makers._template_sql import (
    answer_sql,
    enumeration_sql,
    field_column,
    sentence_sql,
    slot_form,
    sql_literal,
    usable_sql,
)
from merkhet.questions.makers.completion import register_candidate_set
from merkhet.questions.makers.distractors import draw_distractors
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

DISTRACTORS = 3


def make_reasoning(builder: QuestionBuilder) -> list[str]:
    """Make reasoning questions from the conclusions in the table ``concluded``, inferred facts that are not stated.

    A question is open if its answer is unique among stated and inferred facts. Otherwise, or if the relation is
    ``closed``, it has four choices; the three distractors are verified to be wrong.

    Returns:
        Remarks on conclusions that are not asked.
    """
    concluded = {row[0] for row in builder.rows("select distinct rel from concluded")}
    remarks = []
    for relation in builder.used_relations:
        if builder.relation_numbers[relation.name] in concluded:
            for ask in relation.asks:
                remarks += _reason_about_field(builder, relation, ask)
    return remarks


def _reason_about_field(builder: QuestionBuilder, relation: Relation, ask: str) -> list[str]:
    number = builder.relation_numbers[relation.name]
    templates = [text for text in relation.templates if set(placeholder_names(text)) == {"subject", "object"}]
    context = field_column("subject" if ask == "object" else "object")
    builder.create_table(
        "unclear_asked",
        f"""select fact_id as id, rel, {sql_literal(ask)} as ask, {context} as said, domain
        from concluded c where rel = {number} and ({str(relation.closed).lower()} or {context} in (
            select {context} from worded where rel = {number}
            group by {context} having count(distinct {field_column(ask)}) > 1))""",
    )
    unclear_count = builder.tables.count("unclear_asked")
    if unclear_count:
        draw_distractors(builder, "unclear_asked", "wrong_choices", DISTRACTORS, f"choices {ask}")
        for form in sorted({slot_form(template, ask)[0] for template in templates}):
            _create_choices(builder, ask, form)
    for index, template in enumerate(templates):
        condition = builder.paraphrase_sql(ask, index, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        _ask_openly(builder, relation, template, ask, label, condition)
        if unclear_count:
            _ask_with_choices(builder, relation, template, ask, label, condition)
    if not unclear_count:
        return []
    [(dropped, total)] = builder.rows(
        f"""select count(*) filter (where n < {DISTRACTORS}), count(*) from (
        select a.id, count(w.name) as n from unclear_asked a left join wrong_choices w on w.id = a.id group by a.id
        ) counts"""
    )
    if dropped:
        return [
            f"{relation.name}, asked for its {ask}: left out {dropped:,} of {counted(total, 'conclusion')} for fewer "
            f"than {DISTRACTORS} names that are certainly wrong"
        ]
    return []


def _add_questions(builder: QuestionBuilder, source: str, template: str, ask: str, label: str, **columns: str) -> None:
    builder.add_questions(
        source,
        task="'reasoning'",
        answers=f"[{answer_sql(template, ask)}]",
        target=answer_sql(template, ask),
        facts="list_prepend(fact_id, premises)",
        rule="axiom",
        template=sql_literal(label),
        entities=f"[{field_column('subject' if ask == 'object' else 'object')}]",
        **columns,
    )


def _ask_openly(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, condition: str
) -> None:
    candidates = sql_literal(register_candidate_set(builder, relation, template, ask))
    source = f"""concluded c where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)}
        and {condition} and not exists (select 1 from unclear_asked u where u.id = c.fact_id)"""
    _add_questions(builder, source, template, ask, label, prompt=sentence_sql(template, ask), candidate_set=candidates)


def _create_choices(builder: QuestionBuilder, ask: str, form: str) -> None:
    """Create the table of the choices of conclusions: answer and distractors, inflected by ``form`` and shuffled."""
    name, join = ("n.name", "") if not form else (f"f.shown_{form}", "join forms f on f.name = n.name")
    order = builder.draw_sql(sql_literal(f"choice order {ask}"), "n.id", "n.name")
    builder.create_table(
        f"offered_{form or 'plain'}",
        f"""with n as (
            select id, name from wrong_choices union all
            select c.fact_id as id, {field_column(ask)} as name from concluded c
            where fact_id in (select id from unclear_asked)
        ) select n.id, list({name} order by {order}, n.name) as names from n {join} group by n.id
        having count(*) = {DISTRACTORS + 1} and count(distinct lower({name})) = {DISTRACTORS + 1}""",
    )


def _ask_with_choices(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, condition: str
) -> None:
    frames = builder.schema.frames.get("choices", ())
    if not frames:
        return
    form, begins = slot_form(template, ask)
    listing = enumeration_sql([f"names[{position}]" for position in range(1, DISTRACTORS + 2)], "or")
    statement = sentence_sql(template, ask)
    draw = builder.draw_sql("'frame'", "fact_id", sql_literal(label))
    prompts = []
    for frame in frames:
        parts = []
        for text in (
            frame.replace("{choices}", "\x1f{choices}\x1f").replace("{statement}", "\x1f{statement}\x1f").split("\x1f")
        ):
            if text == "{choices}":
                parts.append(f"({listing})")
            elif text == "{statement}":
                parts.append(statement)
            elif text:
                parts.append(sql_literal(text))
        prompts.append(f"capital({' || '.join(parts)})")
    choices = "list_transform(names, lambda x: capital(x))" if begins else "names"
    source = f"""concluded c join offered_{form or "plain"} o on o.id = c.fact_id
        where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)} and {condition}"""
    _add_questions(builder, source, template, ask, label, prompt=pick_sql(prompts, draw), choices=choices)
