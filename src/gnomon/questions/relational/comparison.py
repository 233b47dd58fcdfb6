"""Comparison: which of four has the most, or the least, of something that is measured in numbers."""

from __future__ import annotations

import pyarrow as pa

from gnomon.knowledge.numbers import UNITS
from gnomon.questions.relational.wording import enumerated, listed, quoted
from gnomon.questions.relational.workshop import Workshop, balanced
from gnomon.questions.schema import Comparison

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
    workshop.connection.register("given_units", units)
    workshop.run("create or replace temp table units as select * from given_units")
    workshop.connection.unregister("given_units")
    remarks = []
    for comparison in workshop.schema.comparisons.values():
        remarks += _of_quantity(workshop, comparison)
    return remarks


def _of_quantity(workshop: Workshop, comparison: Comparison) -> list[str]:
    """Subjects with one value each, in the unit (or the measure) that most values have."""
    domain = "f.domain" if comparison.domain is None else quoted(comparison.domain)
    workshop.run(
        f"""create or replace temp table measured as
        with valued as (
            select f.fact_id, n.name, coalesce(u.measures, 'unit ' || coalesce(f.unit, '')) as measures,
                f.value * coalesce(u.factor, 1) + coalesce(u.shift, 0) as amount, {domain} as domain,
                split_of(n.name, v.text) as split
            from facts f join named n on n.entity = f.subject join value_texts v on v.value = f.value
            left join units u on u.unit = f.unit
            where f.predicate in ({listed(comparison.predicates)}) and f.rule is null
        ), usual as (select measures from valued group by measures order by count(*) desc, measures limit 1)
        select name, min(fact_id) as fact_id, min(amount) as amount, min(domain) as domain,
            arg_min(split, fact_id) as split
        from valued join usual using (measures) group by name
        having max(amount) - min(amount) <= 1e-9 * abs(max(amount))"""
    )
    [(count,)] = workshop.rows("select count(*) from measured")
    if not count:
        return []
    _insert(workshop, comparison)
    if count < 4:
        return [f"the comparison {comparison.name!r} has {count} subjects with a number, and a question needs four"]
    return []


def _insert(workshop: Workshop, comparison: Comparison) -> None:
    workshop.show_names("select name from measured", comparison.form, "member_forms")
    for way, templates in (("most", comparison.most), ("least", comparison.least)):
        if not templates:
            continue
        best = "desc" if way == "most" else "asc"
        drawn = workshop.draw(quoted(f"compare {way}"), "round", "fact_id")
        workshop.run(
            f"""create or replace temp table compared as
            with placed as (
                select *, row_number() over (partition by round, split order by {drawn}, fact_id) - 1 as place
                from measured join member_forms using (name)
                cross join range({workshop.options.rounds}) as rounds(round)
            ), four as (
                select list(shown order by place) as names, list(fact_id order by amount {best}, fact_id) as facts,
                    list(shown order by amount {best}, fact_id) as ranked,
                    list(amount order by amount {best}, fact_id) as amounts, min(domain) as domain, split
                from placed group by round, split, place // 4 having count(*) = 4 and count(distinct shown) = 4
            )
            select *, ranked[1] as winner, md5(facts::varchar || {quoted(way)}) as id
            from (select names, ranked, amounts, domain, split, list_sort(facts) as facts from four)
            where abs(amounts[1] - amounts[2]) > {comparison.apart!r} * greatest(abs(amounts[1]), abs(amounts[2]))
            qualify row_number() over (partition by id order by names) = 1"""
        )
        which = workshop.draw("'template'", "id")
        members = enumerated([f"names[{place}]" for place in range(1, 5)])
        prompts = []
        for template in templates:
            before, _, after = template.partition("{members}")
            listing = f"({members})" if before else f"capital({members})"
            prompts.append(f"concat({quoted(before)}, {listing}, {quoted(after)})")
        numbers = [quoted(f"{comparison.name}/{way}-{number + 1}") for number in range(len(templates))]
        head = workshop.put(
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
        workshop.run(f"{head} compared")
