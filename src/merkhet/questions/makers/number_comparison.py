"""Comparison questions: which of four entities has the highest or the lowest value."""

from __future__ import annotations

import pyarrow as pa

from merkhet.core.text import counted
from merkhet.knowledge.quantities import UNITS
from merkhet.questions.makers._template_sql import enumeration_sql, sql_literal, sql_literals
from merkhet.questions.makers.name_aliases import create_subject_aliases, with_aliases_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Comparison


def make_comparisons(builder: QuestionBuilder) -> list[str]:
    """Make the questions of all comparisons in the schema; return remarks on missing questions."""
    units = pa.table(
        {
            "unit": pa.array(list(UNITS), pa.string()),
            "measures": pa.array([unit.measures for unit in UNITS.values()], pa.string()),
            "factor": pa.array([unit.factor for unit in UNITS.values()], pa.float64()),
            "shift": pa.array([unit.shift for unit in UNITS.values()], pa.float64()),
        }
    )
    builder.tables.load("units", units)
    remarks = []
    for number, comparison in enumerate(builder.schema.comparisons.values()):
        remarks += _make_for_comparison(builder, comparison, number)
    return remarks


def _make_for_comparison(builder: QuestionBuilder, comparison: Comparison, number: int) -> list[str]:
    """Make the questions of one comparison; return remarks.

    Only subjects with exactly one value of the most frequent quantity are compared. The subjects remain in a table
    ``measured_NUMBER``, and the groups of four in ``fours_most_NUMBER`` and ``fours_least_NUMBER``.
    """
    measured = f"measured_{number}"
    domain = "f.domain" if comparison.domain is None else sql_literal(comparison.domain)
    builder.create_table(
        measured,
        f"""with valued as (
            select f.fact_id, n.name, coalesce(u.measures, 'unit ' || coalesce(f.unit, '')) as measures,
                f.value * coalesce(u.factor, 1) + coalesce(u.shift, 0) as amount, {domain} as domain,
                split_of(n.name, v.text) as split
            from facts f join named n on n.entity = f.subject join value_texts v on v.value = f.value
            left join units u on u.unit = f.unit
            where f.predicate in ({sql_literals(comparison.predicates)}) and f.rule is null
        ), usual as (select measures from valued group by measures order by count(*) desc, measures limit 1)
        select name, min(fact_id) as fact_id, min(amount) as amount, min(domain) as domain,
            arg_min(split, fact_id) as split
        from valued join usual on usual.measures = valued.measures group by name
        having max(amount) - min(amount) <= 1e-9 * abs(max(amount))""",
    )
    [(count,)] = builder.rows(f"select count(*) from {measured}")
    if not count:
        return []
    _insert(builder, comparison, number)
    if count < 4:
        return [
            f"the comparison {comparison.name!r} has {counted(count, 'subject')} with a number; a question needs four"
        ]
    return []


def _insert(builder: QuestionBuilder, comparison: Comparison, number: int) -> None:
    builder.create_name_forms(
        f"select name, {sql_literal(comparison.form)} as form from measured_{number} where {builder.asked_sql()}",
        "member_forms",
    )
    for direction, templates in (("most", comparison.most), ("least", comparison.least)):
        if not templates:
            continue
        amount = "-amount" if direction == "most" else "amount"
        draw = builder.draw_sql(sql_literal(f"compare {direction}"), "round", "fact_id")
        fours = f"fours_{direction}_{number}"
        builder.create_table(
            fours,
            f"""with placed as (
                select m.*, f.shown, round,
                    row_number() over (partition by round, split order by {draw}, fact_id) - 1 as place
                from measured_{number} m join member_forms f on f.name = m.name
                cross join (select unnest(range({builder.options.rounds})) as round) rounds
                where {builder.asked_sql()}
            ), four as (
                select list(shown order by place) as names, list(fact_id order by {amount}, fact_id) as facts,
                    list(shown order by {amount}, fact_id) as ranked,
                    list(name order by {amount}, fact_id) as ranked_names,
                    list(amount order by {amount}, fact_id) as amounts, min(domain) as domain, split
                from placed group by round, split, place // 4 having count(*) = 4 and count(distinct shown) = 4
            )
            select names, ranked, ranked_names, amounts, domain, split, facts[1] as winner_fact,
                list_sort(facts) as facts
            from four""",
        )
        builder.create_table(
            "compared",
            f"""select *, ranked[1] as winner,
                md5('[' || array_to_string(facts, ', ') || ']' || {sql_literal(direction)}) as id
            from {fours} f
            where not exists (
                select 1 from alike l where l.name = f.ranked_names[1] and list_contains(f.ranked_names, l.other))
            and abs(amounts[1] - amounts[2]) > {comparison.apart!r} * greatest(abs(amounts[1]), abs(amounts[2]))
            qualify row_number() over (
                partition by array_to_string(facts, ', ') order by names, ranked, domain, split) = 1""",
        )
        create_subject_aliases(
            builder, f"select winner_fact as fact_id, {sql_literal(comparison.form)} as form from compared", "winners"
        )
        template_draw = builder.draw_sql("'template'", "id")
        members = enumeration_sql([f"names[{position}]" for position in range(1, 5)])
        prompts = []
        for template in templates:
            head, _, tail = template.partition("{members}")
            listing = f"({members})" if head else f"capital({members})"
            prompts.append(f"concat({sql_literal(head)}, {listing}, {sql_literal(tail)})")
        labels = [sql_literal(f"{comparison.name}/{direction}-{place + 1}") for place in range(len(templates))]
        builder.add_questions(
            "compared c left join winners w on w.fact_id = c.winner_fact",
            task="'reasoning'",
            prompt=pick_sql(prompts, template_draw),
            answers=with_aliases_sql("[winner]", "w.aliases"),
            target="winner",
            choices="names",
            facts="facts",
            qset="id",
            rule=sql_literal("comparison"),
            template=pick_sql(labels, template_draw),
            entities="names",
        )
