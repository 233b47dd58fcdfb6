"""Predicate reasoning: facts that were never stated but follow, asked openly or among four choices."""

from __future__ import annotations

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
from merkhet.questions.makers.completion import register_candidate_set
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

DISTRACTORS = 3


def make_reasoning(builder: QuestionBuilder) -> list[str]:
    """Reasoning questions of all conclusions that are in no stated fact; what could not be made, in words.

    Where the answer is unique among all that is stated or follows, it is asked openly; else with three choices that
    are verified to be wrong.
    """
    kmir = "case rule " + " ".join(
        f"when {sql_literal(name)} then {sql_literal(rule.alias)}" for name, rule in RULES.items() if rule.alias
    )
    builder.make(
        "concluded",
        f"""with first_ones as (
            select *, {kmir} else rule end as axiom from worded w where rule is not null and not over and asked
            and not exists (select 1 from worded x where x.stated and x.rel = w.rel and x.s = w.s and x.o = w.o)
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select c.*, f.premises from first_ones c join facts f on f.fact_id = c.fact_id""",
    )
    present = {row[0] for row in builder.rows("select distinct rel from concluded")}
    remarks = []
    for relation in builder.present:
        if builder.numbers[relation.name] in present:
            for ask in relation.asks:
                remarks += _of_place(builder, relation, ask)
    return remarks


def _of_place(builder: QuestionBuilder, relation: Relation, ask: str) -> list[str]:
    number = builder.numbers[relation.name]
    templates = [text for text in relation.templates if set(placeholder_names(text)) == {"subject", "object"}]
    other = field_column("subject" if ask == "object" else "object")
    builder.make(
        "unclear_asked",
        f"""select fact_id as id, rel, {sql_literal(ask)} as ask, {other} as said, domain
        from concluded c where rel = {number} and ({str(relation.closed).lower()} or {other} in (
            select {other} from worded where rel = {number}
            group by {other} having count(distinct {field_column(ask)}) > 1))""",
    )
    unclear = builder.tables.count("unclear_asked")
    if unclear:
        builder.wrong_names("unclear_asked", "wrong_choices", DISTRACTORS, f"choices {ask}")
        for form in sorted({slot_form(template, ask)[0] for template in templates}):
            _offer(builder, ask, form)
    for place, template in enumerate(templates):
        chosen = builder.chosen(ask, place, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        _open(builder, relation, template, ask, label, chosen)
        if unclear:
            _closed(builder, relation, template, ask, label, chosen)
    if not unclear:
        return []
    [(few, all_)] = builder.rows(
        f"""select count(*) filter (where n < {DISTRACTORS}), count(*) from (
        select a.id, count(w.name) as n from unclear_asked a left join wrong_choices w on w.id = a.id group by a.id
        ) counts"""
    )
    if few:
        return [
            f"{relation.name}, asked for its {ask}: {few:,} of {all_:,} conclusions have fewer than {DISTRACTORS} "
            "names that are certainly wrong; they are not asked"
        ]
    return []


def _put(builder: QuestionBuilder, source: str, template: str, ask: str, label: str, **own: str) -> None:
    """Add questions about conclusions."""
    builder.put(
        source,
        task="'reasoning'",
        answers=f"[{answer_sql(template, ask)}]",
        target=answer_sql(template, ask),
        facts="list_prepend(fact_id, premises)",
        rule="axiom",
        template=sql_literal(label),
        entities=f"[{field_column('subject' if ask == 'object' else 'object')}]",
        **own,
    )


def _open(builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, chosen: str) -> None:
    candidates = sql_literal(register_candidate_set(builder, relation, template, ask))
    source = f"""concluded c where rel = {builder.numbers[relation.name]} and {usable_sql(template)} and {chosen}
        and not exists (select 1 from unclear_asked u where u.id = c.fact_id)"""
    _put(builder, source, template, ask, label, prompt=sentence_sql(template, ask), candidate_set=candidates)


def _offer(builder: QuestionBuilder, ask: str, form: str) -> None:
    """The right answer and the wrong ones of each conclusion in a form, in an order that is drawn."""
    shown, join = ("n.name", "") if not form else (f"f.shown_{form}", "join forms f on f.name = n.name")
    order = builder.draw(sql_literal(f"choice order {ask}"), "n.id", "n.name")
    builder.make(
        f"offered_{form or 'plain'}",
        f"""with n as (
            select id, name from wrong_choices union all
            select c.fact_id as id, {field_column(ask)} as name from concluded c
            where fact_id in (select id from unclear_asked)
        ) select n.id, list({shown} order by {order}, n.name) as names from n {join} group by n.id
        having count(*) = {DISTRACTORS + 1} and count(distinct lower({shown})) = {DISTRACTORS + 1}""",
    )


def _closed(builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, chosen: str) -> None:
    frames = builder.schema.frames.get("choices", ())
    if not frames:
        return
    form, begins = slot_form(template, ask)
    listing = enumeration_sql([f"names[{place}]" for place in range(1, DISTRACTORS + 2)], "or")
    statement = sentence_sql(template, ask)
    drawn = builder.draw("'frame'", "fact_id", sql_literal(label))
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
        where rel = {builder.numbers[relation.name]} and {usable_sql(template)} and {chosen}"""
    _put(builder, source, template, ask, label, prompt=pick_sql(prompts, drawn), choices=choices)
