"""Comparison: which of four has the most, or the least, of something that is measured in numbers."""

from __future__ import annotations

import pyarrow as pa

from merkhet.knowledge.quantities import UNITS
from merkhet.questions.makers._template_sql import enumerated, listed, quoted
from merkhet.questions.makers.worded_facts import Workshop, balanced
from merkhet.questions.schema import Comparison

RULE = "comparison"


def make_comparisons(workshop: Workshop) -> list[str]:
    """Comparison questions of all numeric facts; what could not be made, in words."""
    units = pa.table(
        {
            "unit": pa.array(list(UNITS), pa.string()),
            "measures": pa.array([one.measures for one in UNITS.values()], pa.string()),
            "factor": pa.array([one.factor for one in UNITS.values()], pa.float64()),
            "shift": pa.array([one.shift for one in UNITS.values()], pa.float64()),
        }
    )
    workshop.tables.load("units", units)
    remarks = []
    for comparison in workshop.schema.comparisons.values():
        remarks += _of_quantity(workshop, comparison)
    return remarks


def _of_quantity(workshop: Workshop, comparison: Comparison) -> list[str]:
    """Subjects with one value each, in the unit (or the measure) that most values have."""
    domain = "f.domain" if comparison.domain is None else quoted(comparison.domain)
    workshop.make(
        "measured",
        f"""with valued as (
            select f.fact_id, n.name, coalesce(u.measures, 'unit ' || coalesce(f.unit, '')) as measures,
                f.value * coalesce(u.factor, 1) + coalesce(u.shift, 0) as amount, {domain} as domain,
                split_of(n.name, v.text) as split
            from facts f join named n on n.entity = f.subject join value_texts v on v.value = f.value
            left join units u on u.unit = f.unit
            where f.predicate in ({listed(comparison.predicates)}) and f.rule is null
        ), usual as (select measures from valued group by measures order by count(*) desc, measures limit 1)
        select name, min(fact_id) as fact_id, min(amount) as amount, min(domain) as domain,
            arg_min(split, fact_id) as split
        from valued join usual on usual.measures = valued.measures group by name
        having max(amount) - min(amount) <= 1e-9 * abs(max(amount))""",
    )
    [(count,)] = workshop.rows("select count(*) from measured")
    if not count:
        return []
    _insert(workshop, comparison)
    if count < 4:
        return [f"the comparison {comparison.name!r} has {count} subjects with a number, and a question needs four"]
    return []


def _insert(workshop: Workshop, comparison: Comparison) -> None:
    workshop.show_names(f"select name from measured where {workshop.is_asked()}", comparison.form, "member_forms")
    for way, templates in (("most", comparison.most), ("least", comparison.least)):
        if not templates:
            continue
        amount = "-amount" if way == "most" else "amount"
        drawn = workshop.draw(quoted(f"compare {way}"), "round", "fact_id")
        workshop.make(
            "compared",
            f"""with placed as (
                select m.*, f.shown, round,
                    row_number() over (partition by round, split order by {drawn}, fact_id) - 1 as place
                from measured m join member_forms f on f.name = m.name
                cross join (select unnest(range({workshop.options.rounds})) as round) rounds
                where {workshop.is_asked()}
            ), four as (
                select list(shown order by place) as names, list(fact_id order by {amount}, fact_id) as facts,
                    list(shown order by {amount}, fact_id) as ranked,
                    list(amount order by {amount}, fact_id) as amounts, min(domain) as domain, split
                from placed group by round, split, place // 4 having count(*) = 4 and count(distinct shown) = 4
            ), named_fours as (
                select names, ranked, amounts, domain, split, list_sort(facts) as facts from four
            )
            select *, ranked[1] as winner, md5('[' || array_to_string(facts, ', ') || ']' || {quoted(way)}) as id
            from named_fours
            where abs(amounts[1] - amounts[2]) > {comparison.apart!r} * greatest(abs(amounts[1]), abs(amounts[2]))
            qualify row_number() over (
                partition by array_to_string(facts, ', ') order by names, ranked, domain, split) = 1""",
        )
        which = workshop.draw("'template'", "id")
        members = enumerated([f"names[{place}]" for place in range(1, 5)])
        prompts = []
        for template in templates:
            before, _, after = template.partition("{members}")
            listing = f"({members})" if before else f"capital({members})"
            prompts.append(f"concat({quoted(before)}, {listing}, {quoted(after)})")
        numbers = [quoted(f"{comparison.name}/{way}-{number + 1}") for number in range(len(templates))]
        workshop.put(
            "compared",
            task="'reasoning'",
            prompt=balanced(prompts, which),
            answers="[winner]",
            target="winner",
            choices="names",
            facts="facts",
            qset="id",
            rule=quoted(RULE),
            template=balanced(numbers, which),
            entities="names",
        )
