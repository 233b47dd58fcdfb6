"""Predicate reasoning: facts that were never stated but follow, asked openly or among four choices."""

from __future__ import annotations

from merkhet.knowledge.rules.rulebook import RULES
from merkhet.questions.makers._template_sql import (
    column,
    enumerated,
    form_in_slot,
    in_slot,
    places_of,
    quoted,
    sentence,
    usable,
)
from merkhet.questions.makers.completion import candidate_set
from merkhet.questions.makers.worded_facts import Workshop, balanced
from merkhet.questions.schema import Relation

WRONG = 3


def make_reasoning(workshop: Workshop) -> list[str]:
    """Reasoning questions of all conclusions that are in no stated fact; what could not be made, in words.

    Where the answer is unique among all that is stated or follows, it is asked openly; else with three choices that
    are verified to be wrong.
    """
    kmir = "case rule " + " ".join(
        f"when {quoted(name)} then {quoted(rule.also)}" for name, rule in RULES.items() if rule.also
    )
    workshop.make(
        "concluded",
        f"""with first_ones as (
            select *, {kmir} else rule end as axiom from worded w where rule is not null and not over and asked
            and not exists (select 1 from worded x where x.stated and x.rel = w.rel and x.s = w.s and x.o = w.o)
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select c.*, f.premises from first_ones c join facts f on f.fact_id = c.fact_id""",
    )
    present = {row[0] for row in workshop.rows("select distinct rel from concluded")}
    remarks = []
    for relation in workshop.present:
        if workshop.numbers[relation.name] in present:
            for ask in relation.asks:
                remarks += _of_place(workshop, relation, ask)
    return remarks


def _of_place(workshop: Workshop, relation: Relation, ask: str) -> list[str]:
    number = workshop.numbers[relation.name]
    templates = [text for text in relation.templates if set(places_of(text)) == {"subject", "object"}]
    other = column("subject" if ask == "object" else "object")
    workshop.make(
        "unclear_asked",
        f"""select fact_id as id, rel, {quoted(ask)} as ask, {other} as said, domain
        from concluded c where rel = {number} and ({str(relation.closed).lower()} or {other} in (
            select {other} from worded where rel = {number}
            group by {other} having count(distinct {column(ask)}) > 1))""",
    )
    unclear = workshop.tables.count("unclear_asked")
    if unclear:
        workshop.wrong_names("unclear_asked", "wrong_choices", WRONG, f"choices {ask}")
        for form in sorted({form_in_slot(template, ask)[0] for template in templates}):
            _offer(workshop, ask, form)
    for place, template in enumerate(templates):
        chosen = workshop.chosen(ask, place, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        _open(workshop, relation, template, ask, label, chosen)
        if unclear:
            _closed(workshop, relation, template, ask, label, chosen)
    if not unclear:
        return []
    [(few, all_)] = workshop.rows(
        f"""select count(*) filter (where n < {WRONG}), count(*) from (
        select a.id, count(w.name) as n from unclear_asked a left join wrong_choices w on w.id = a.id group by a.id
        ) counts"""
    )
    if few:
        return [
            f"{relation.name}, asked for its {ask}: {few:,} of {all_:,} conclusions have fewer than {WRONG} names that "
            "are certainly wrong; they are not asked"
        ]
    return []


def _put(workshop: Workshop, source: str, template: str, ask: str, label: str, **own: str) -> None:
    """Add questions about conclusions."""
    workshop.put(
        source,
        task="'reasoning'",
        answers=f"[{in_slot(template, ask)}]",
        target=in_slot(template, ask),
        facts="list_prepend(fact_id, premises)",
        rule="axiom",
        template=quoted(label),
        entities=f"[{column('subject' if ask == 'object' else 'object')}]",
        **own,
    )


def _open(workshop: Workshop, relation: Relation, template: str, ask: str, label: str, chosen: str) -> None:
    candidates = quoted(candidate_set(workshop, relation, template, ask))
    source = f"""concluded c where rel = {workshop.numbers[relation.name]} and {usable(template)} and {chosen}
        and not exists (select 1 from unclear_asked u where u.id = c.fact_id)"""
    _put(workshop, source, template, ask, label, prompt=sentence(template, ask), candidate_set=candidates)


def _offer(workshop: Workshop, ask: str, form: str) -> None:
    """The right answer and the wrong ones of each conclusion in a form, in an order that is drawn."""
    shown, join = ("n.name", "") if not form else (f"f.shown_{form}", "join forms f on f.name = n.name")
    order = workshop.draw(quoted(f"choice order {ask}"), "n.id", "n.name")
    workshop.make(
        f"offered_{form or 'plain'}",
        f"""with n as (
            select id, name from wrong_choices union all
            select c.fact_id as id, {column(ask)} as name from concluded c
            where fact_id in (select id from unclear_asked)
        ) select n.id, list({shown} order by {order}, n.name) as names from n {join} group by n.id
        having count(*) = {WRONG + 1} and count(distinct lower({shown})) = {WRONG + 1}""",
    )


def _closed(workshop: Workshop, relation: Relation, template: str, ask: str, label: str, chosen: str) -> None:
    frames = workshop.schema.frames.get("choices", ())
    if not frames:
        return
    form, begins = form_in_slot(template, ask)
    listing = enumerated([f"names[{place}]" for place in range(1, WRONG + 2)], "or")
    statement = sentence(template, ask)
    drawn = workshop.draw("'frame'", "fact_id", quoted(label))
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
                parts.append(quoted(text))
        prompts.append(f"capital({' || '.join(parts)})")
    choices = "list_transform(names, lambda x: capital(x))" if begins else "names"
    source = f"""concluded c join offered_{form or "plain"} o on o.id = c.fact_id
        where rel = {workshop.numbers[relation.name]} and {usable(template)} and {chosen}"""
    _put(workshop, source, template, ask, label, prompt=balanced(prompts, drawn), choices=choices)
