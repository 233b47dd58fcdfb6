"""Choices that stand in the text of a question: the right answer among distractors that are known to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from merkhet.questions.makers._template_sql import (
    answer_sql,
    enumeration_sql,
    field_column,
    sentence_sql,
    slot_form,
    sql_literal,
    usable_sql,
)
from merkhet.questions.makers.distractors import draw_distractors
from merkhet.questions.makers.nearness import level_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

DISTRACTORS = 3


def pair_templates(relation: Relation) -> list[str]:
    """Return the templates that mention the subject, the object, and nothing else."""
    return [text for text in relation.templates if set(placeholder_names(text)) == {"subject", "object"}]


class ListedChoices:
    """Questions with choices about the facts of a table.

    Args:
        facts: Table of facts with the columns of ``worded``.
        prefix: Text that the names of the tables begin with: ``PREFIX_asked`` of the asked facts, ``PREFIX_wrong`` of
            their distractors, and ``PREFIX_offered_FORM`` of their inflected and shuffled choices.
    """

    def __init__(self, builder: QuestionBuilder, facts: str, prefix: str) -> None:
        self.builder, self.facts, self.prefix = builder, facts, prefix

    def create(self, relations: Sequence[Relation], condition: Callable[[Relation, str], str]) -> None:
        """Create the tables.

        Args:
            condition: Function that returns the SQL condition for the facts to ask, of a relation and an asked field.
        """
        builder, prefix = self.builder, self.prefix
        asked = [
            f"""select fact_id, rel, {sql_literal(ask)} as ask, {_context(ask)} as said, {field_column(ask)} as name,
                domain from {self.facts} c where rel = {builder.relation_numbers[relation.name]}
                and {condition(relation, ask)}"""
            for relation in relations
            for ask in relation.asks
        ]
        builder.create_table(
            f"{prefix}_asked",
            f"select concat_ws(chr(31), fact_id, ask, rel) as id, * from ({' union all '.join(asked)}) u",
        )
        draw_distractors(builder, f"{prefix}_asked", f"{prefix}_wrong", DISTRACTORS, "choices")
        forms = {
            slot_form(template, ask)[0]
            for relation in relations
            for ask in relation.asks
            for template in pair_templates(relation)
        }
        for form in sorted(forms):
            name, join = ("n.name", "") if not form else (f"f.shown_{form}", "join forms f on f.name = n.name")
            order = builder.draw_sql("'choice order'", "n.id", "n.name")
            builder.create_table(
                f"{prefix}_offered_{form or 'plain'}",
                f"""with n as (
                    select id, name, level from {prefix}_wrong
                    union all select id, name, 0 as level from {prefix}_asked
                ) select n.id, list({name} order by {order}, n.name) as names, {level_sql("max(level)")} as nearness
                from n {join} group by n.id
                having count(*) = {DISTRACTORS + 1} and count(distinct lower({name})) = {DISTRACTORS + 1}""",
            )

    def ask(
        self,
        relation: Relation,
        template: str,
        ask: str,
        label: str,
        condition: str,
        others: str = "",
        **columns: str,
    ) -> None:
        """Add the questions of a template that list their choices.

        Args:
            others: SQL that joins the facts ``c`` with other names of their answers, or nothing.
            columns: SQL of further columns of the questions.
        """
        builder = self.builder
        frames = builder.schema.frames.get("choices", ())
        if not frames:
            return
        form, begins = slot_form(template, ask)
        listing = enumeration_sql([f"names[{position}]" for position in range(1, DISTRACTORS + 2)], "or")
        prompts = [_frame_sql(frame, listing, sentence_sql(template, ask)) for frame in frames]
        source = f"""{self.facts} c join {self.prefix}_offered_{form or "plain"} o
            on o.id = concat_ws(chr(31), c.fact_id, {sql_literal(ask)}, c.rel){others}
            where rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)} and {condition}"""
        builder.add_questions(
            source,
            target=answer_sql(template, ask),
            template=sql_literal(label),
            entities=f"[{_context(ask)}]",
            prompt=pick_sql(prompts, builder.draw_sql("'frame'", "fact_id", sql_literal(label))),
            choices="list_transform(names, lambda x: capital(x))" if begins else "names",
            nearness="nearness",
            **columns,
        )


def _context(ask: str) -> str:
    return field_column("subject" if ask == "object" else "object")


def _frame_sql(frame: str, listing: str, statement: str) -> str:
    """Return SQL for a frame with its placeholders filled."""
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
    return f"capital({' || '.join(parts)})"
