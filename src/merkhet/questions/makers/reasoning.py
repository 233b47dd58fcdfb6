"""Questions of the task reasoning: inferred facts, asked as open questions or with four choices."""

from __future__ import annotations

from collections.abc import Sequence

from merkhet.core.text import counted
from merkhet.questions.makers._template_sql import answer_sql, field_column, sentence_sql, sql_literal, usable_sql
from merkhet.questions.makers.candidate_sets import candidate_set_sql
from merkhet.questions.makers.listed_choices import DISTRACTORS, ListedChoices, pair_templates
from merkhet.questions.makers.name_aliases import other_names_sql, with_aliases_sql
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation


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
    listed = ListedChoices(builder, "concluded", "conclusions")
    listed.create(relations, lambda relation, ask: _is_listed(builder, relation, ask))
    for relation in relations:
        for ask in relation.asks:
            _reason_about_field(builder, listed, relation, ask)
    return _remarks(builder, relations)


def _reason_about_field(builder: QuestionBuilder, listed: ListedChoices, relation: Relation, ask: str) -> None:
    templates = pair_templates(relation)
    for index, template in enumerate(templates):
        condition = builder.paraphrase_sql(ask, index, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        if builder.evidence.asks_openly(relation):
            _ask_openly(builder, relation, template, ask, label, condition)
        others = _other_names(builder, relation, template, ask)
        columns = _columns(template, ask, others)
        listed.ask(relation, template, ask, label, condition, others, **columns)


def _is_listed(builder: QuestionBuilder, relation: Relation, ask: str) -> str:
    """Return an SQL condition for the conclusions that are asked with choices."""
    if relation.closed or not builder.evidence.asks_openly(relation):
        return "true"
    context, name = field_column("subject" if ask == "object" else "object"), field_column(ask)
    return f"""{context} in (select {context} from worded where rel = {builder.relation_numbers[relation.name]}
        group by {context} having count(distinct {name}) > 1)"""


def _remarks(builder: QuestionBuilder, relations: Sequence[Relation]) -> list[str]:
    names = {builder.relation_numbers[relation.name]: relation.name for relation in relations}
    rows = builder.rows(
        f"""select rel, ask, count(*) filter (where n < {DISTRACTORS}), count(*) from (
            select a.id, a.rel, a.ask, count(w.name) as n from conclusions_asked a
            left join conclusions_wrong w on w.id = a.id group by a.id, a.rel, a.ask
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


def _columns(template: str, ask: str, others: str) -> dict[str, str]:
    """Return SQL for the columns that all reasoning questions of a template have."""
    answers = f"[{answer_sql(template, ask)}]"
    return {
        "task": "'reasoning'",
        "answers": with_aliases_sql(answers, "x.aliases") if others else answers,
        "facts": "list_prepend(fact_id, premises)",
        "rule": "axiom",
    }


def _ask_openly(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, condition: str
) -> None:
    others = _other_names(builder, relation, template, ask)
    source = f"""concluded c{others} where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)}
        and {condition} and not exists (
            select 1 from conclusions_asked u
            where u.fact_id = c.fact_id and u.rel = c.rel and u.ask = {sql_literal(ask)})"""
    candidates = candidate_set_sql(builder, relation, template, ask, source, "x.alike" if others else None)
    prompt = sentence_sql(template, ask)
    builder.add_questions(
        source,
        target=answer_sql(template, ask),
        template=sql_literal(label),
        entities=f"[{field_column('subject' if ask == 'object' else 'object')}]",
        prompt=prompt,
        candidate_set=candidates,
        **_columns(template, ask, others),
    )
