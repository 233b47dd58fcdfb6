"""Questions of the task reasoning: inferred facts, asked as open questions or with four choices."""

from __future__ import annotations

from merkhet.core.text import counted
from merkhet.knowledge.rules.rulebook import RULES
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
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

DISTRACTORS = 3


def make_reasoning(builder: QuestionBuilder) -> list[str]:
    """Make reasoning questions from all inferred facts (conclusions) that are not also stated.

    A question is open if its answer is unique among stated and inferred facts. Otherwise, or if the relation is
    ``closed``, it has four choices; the three distractors are verified to be wrong.

    Returns:
        Remarks on conclusions that are not asked.
    """
    axiom = "case rule " + " ".join(
        f"when {sql_literal(name)} then {sql_literal(rule.alias)}" for name, rule in RULES.items() if rule.alias
    )
    builder.create_table(
        "concluded",
        f"""with first_ones as (
            select *, {axiom} else rule end as axiom from worded w where rule is not null and not over and asked
            and not exists (select 1 from worded x where x.stated and x.rel = w.rel and x.s = w.s and x.o = w.o)
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select c.*, f.premises from first_ones c join facts f on f.fact_id = c.fact_id""",
    )
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
        and {condition} and not exists (select 1 from unclear_asked u where u.id = c.fact_id)"""
    candidates = candidate_set_sql(builder, relation, template, ask, source, "x.alike" if others else None)
    prompt = sentence_sql(template, ask)
    _add_questions(builder, source, template, ask, label, others, prompt=prompt, candidate_set=candidates)


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
    others = _other_names(builder, relation, template, ask)
    source = f"""concluded c join offered_{form or "plain"} o on o.id = c.fact_id{others}
        where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)} and {condition}"""
    _add_questions(builder, source, template, ask, label, others, prompt=pick_sql(prompts, draw), choices=choices)
