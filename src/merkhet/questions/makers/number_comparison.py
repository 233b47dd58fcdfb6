"""Comparison: which of four has the most, or the least, of something that is measured in numbers."""

from __future__ import annotations

import pyarrow as pa

from merkhet.knowledge.quantities import UNITS
from merkhet.questions.makers._template_sql import enumeration_sql, sql_literal, sql_literals
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Comparison

RULE = "comparison"


def make_comparisons(builder: QuestionBuilder) -> list[str]:
    """Comparison questions of all numeric facts; what could not be made, in words."""
    units = pa.table(
        {
            "unit": pa.array(list(UNITS), pa.string()),
            "measures": pa.array([one.measures for one in UNITS.values()], pa.string()),
            "factor": pa.array([one.factor for one in UNITS.values()], pa.float64()),
            "shift": pa.array([one.shift for one in UNITS.values()], pa.float64()),
        }
    )
    builder.tables.load("units", units)
    remarks = []
    for comparison in builder.schema.comparisons.values():
        remarks += _of_quantity(builder, comparison)
    return remarks


def _of_quantity(builder: QuestionBuilder, comparison: Comparison) -> list[str]:
    """Subjects with one value each, in the unit (or the measure) that most values have."""
    domain = "f.domain" if comparison.domain is None else sql_literal(comparison.domain)
    builder.make(
        "measured",
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
    [(count,)] = builder.rows("select count(*) from measured")
    if not count:
        return []
    _insert(builder, comparison)
    if count < 4:
        return [f"the comparison {comparison.name!r} has {count} subjects with a number, and a question needs four"]
    return []


def _insert(builder: QuestionBuilder, comparison: Comparison) -> None:
    builder.show_names(f"select name from measured where {builder.is_asked()}", comparison.form, "member_forms")
    for way, templates in (("most", comparison.most), ("least", comparison.least)):
        if not templates:
            continue
        amount = "-amount" if way == "most" else "amount"
        drawn = builder.draw(sql_literal(f"compare {way}"), "round", "fact_id")
        builder.make(
            "compared",
            f"""with placed as (
                select m.*, f.shown, round,
                    row_number() over (partition by round, split order by {drawn}, fact_id) - 1 as place
                from measured m join member_forms f on f.name = m.name
                cross join (select unnest(range({builder.options.rounds})) as round) rounds
                where {builder.is_asked()}
            ), four as (
                select list(shown order by place) as names, list(fact_id order by {amount}, fact_id) as facts,
                    list(shown order by {amount}, fact_id) as ranked,
                    list(amount order by {amount}, fact_id) as amounts, min(domain) as domain, split
                from placed group by round, split, place // 4 having count(*) = 4 and count(distinct shown) = 4
            ), named_fours as (
                select names, ranked, amounts, domain, split, list_sort(facts) as facts from four
            )
            select *, ranked[1] as winner, md5('[' || array_to_string(facts, ', ') || ']' || {sql_literal(way)}) as id
            from named_fours
            where abs(amounts[1] - amounts[2]) > {comparison.apart!r} * greatest(abs(amounts[1]), abs(amounts[2]))
            qualify row_number() over (
                partition by array_to_string(facts, ', ') order by names, ranked, domain, split) = 1""",
        )
        which = builder.draw("'template'", "id")
        members = enumeration_sql([f"names[{place}]" for place in range(1, 5)])
        prompts = []
        for template in templates:
            before, _, after = template.partition("{members}")
            listing = f"({members})" if before else f"capital({members})"
            prompts.append(f"concat({sql_literal(before)}, {listing}, {sql_literal(after)})")
        numbers = [sql_literal(f"{comparison.name}/{way}-{number + 1}") for number in range(len(templates))]
        builder.put(
            "compared",
            task="'reasoning'",
            prompt=pick_sql(prompts, which),
            answers="[winner]",
            target="winner",
            choices="names",
            facts="facts",
            qset="id",
            rule=sql_literal(RULE),
            template=pick_sql(numbers, which),
            entities="names",
        )
