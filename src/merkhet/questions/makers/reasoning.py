"""Questions of the task reasoning: inferred facts, asked as open questions or with four choices."""

from __future__ import annotations

from collections.abc import Sequence

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
from merkhet.questions.makers.candidate_sets import candidate_set_sql
from merkhet.questions.makers.distractors import draw_distractors
from merkhet.questions.makers.name_aliases import other_names_sql, with_aliases_sql
from merkhet.questions.makers.nearness import level_sql
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
    relations = [
        relation
        for relation in builder.used_relations
        if builder.relation_numbers[relation.name] in concluded and builder.evidence.asks_with_distractors(relation)
    ]
    if not relations:
        return []
    _create_choices(builder, relations)
    for relation in relations:
        for ask in relation.asks:
            _reason_about_field(builder, relation, ask)
    return _remarks(builder, relations)


def _reason_about_field(builder: QuestionBuilder, relation: Relation, ask: str) -> None:
    templates = _pair_templates(relation)
    for index, template in enumerate(templates):
        condition = builder.paraphrase_sql(ask, index, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        if builder.evidence.asks_openly(relation):
            _ask_openly(builder, relation, template, ask, label, condition)
        _ask_with_choices(builder, relation, template, ask, label, condition)


def _pair_templates(relation: Relation) -> list[str]:
    """Return the templates that mention the subject, the object, and nothing else."""
    return [text for text in relation.templates if set(placeholder_names(text)) == {"subject", "object"}]


def _create_choices(builder: QuestionBuilder, relations: Sequence[Relation]) -> None:
    """Create the tables ``unclear_asked`` of the conclusions with choices, and ``offered_…`` of their choices.

    The choices, the right answer and the distractors, are inflected by the form in the table's name, and shuffled.
    """
    unclear = []
    for relation in relations:
        number = builder.relation_numbers[relation.name]
        is_closed = relation.closed or not builder.evidence.asks_openly(relation)
        for ask in relation.asks:
            context, name = field_column("subject" if ask == "object" else "object"), field_column(ask)
            several = f"""{context} in (select {context} from worded where rel = {number}
                group by {context} having count(distinct {name}) > 1)"""
            unclear.append(
                f"""select fact_id, rel, {sql_literal(ask)} as ask, {context} as said, {name} as name, domain
                from concluded c where rel = {number} and {"true" if is_closed else several}"""
            )
    builder.create_table(
        "unclear_asked",
        f"select concat_ws(chr(31), fact_id, ask, rel) as id, * from ({' union all '.join(unclear)}) u",
    )
    draw_distractors(builder, "unclear_asked", "wrong_choices", DISTRACTORS, "choices")
    forms = {
        slot_form(template, ask)[0]
        for relation in relations
        for ask in relation.asks
        for template in _pair_templates(relation)
    }
    for form in sorted(forms):
        name, join = ("n.name", "") if not form else (f"f.shown_{form}", "join forms f on f.name = n.name")
        order = builder.draw_sql("'choice order'", "n.id", "n.name")
        builder.create_table(
            f"offered_{form or 'plain'}",
            f"""with n as (
                select id, name, level from wrong_choices
                union all select id, name, 0 as level from unclear_asked
            ) select n.id, list({name} order by {order}, n.name) as names, {level_sql("max(level)")} as nearness
            from n {join} group by n.id
            having count(*) = {DISTRACTORS + 1} and count(distinct lower({name})) = {DISTRACTORS + 1}""",
        )


def _remarks(builder: QuestionBuilder, relations: Sequence[Relation]) -> list[str]:
    names = {builder.relation_numbers[relation.name]: relation.name for relation in relations}
    rows = builder.rows(
        f"""select rel, ask, count(*) filter (where n < {DISTRACTORS}), count(*) from (
            select a.id, a.rel, a.ask, count(w.name) as n from unclear_asked a
            left join wrong_choices w on w.id = a.id group by a.id, a.rel, a.ask
        ) counts group by rel, ask having count(*) filter (where n < {DISTRACTORS}) > 0 order by rel, ask"""
    )
    return [
        f"{names[rel]}, asked for its {ask}: left out {dropped:,} of {counted(total, 'conclusion')} for fewer than "
        f"{DISTRACTORS} names that are certainly wrong"
        for rel, ask, dropped, total in rows
    ]


def _other_names(builder: QuestionBuilder, relation: Relation, template: str, ask: str) -> str:
    """Return SQL that joins the conclusions ``c`` with the other names of their answers, if there are any."""
    number = builder.relation_numbers[relation.name]
    names = (
        f"select distinct {field_column(ask)} as ctx, {field_column(ask)} as name from concluded where rel = {number}"
    )
    query = other_names_sql(builder, relation, template, ask, names)
    return f" left join ({query}) x on x.ctx = c.{field_column(ask)}" if query else ""


def _add_questions(
    builder: QuestionBuilder, source: str, template: str, ask: str, label: str, others: str, **columns: str
) -> None:
    answers = f"[{answer_sql(template, ask)}]"
    builder.add_questions(
        source,
        task="'reasoning'",
        answers=with_aliases_sql(answers, "x.aliases") if others else answers,
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
    others = _other_names(builder, relation, template, ask)
    source = f"""concluded c{others} where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)}
        and {condition} and not exists (
            select 1 from unclear_asked u
            where u.fact_id = c.fact_id and u.rel = c.rel and u.ask = {sql_literal(ask)})"""
    candidates = candidate_set_sql(builder, relation, template, ask, source, "x.alike" if others else None)
    prompt = sentence_sql(template, ask)
    _add_questions(builder, source, template, ask, label, others, prompt=prompt, candidate_set=candidates)


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
    others = _other_names(builder, relation, template, ask)
    source = f"""concluded c join offered_{form or "plain"} o
        on o.id = concat_ws(chr(31), c.fact_id, {sql_literal(ask)}, c.rel){others}
        where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)} and {condition}"""
    _add_questions(
        builder,
        source,
        template,
        ask,
        label,
        others,
        prompt=pick_sql(prompts, draw),
        choices=choices,
        nearness="nearness",
    )
