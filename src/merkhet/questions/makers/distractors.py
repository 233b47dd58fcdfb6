"""Right answers of sentences, and distractors that are certainly wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.questions.makers._template_sql import (
    case_sql,
    context_fields,
    context_sql,
    field_column,
    sql_literal,
    sql_literals,
)
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation
from merkhet.questions.templates import PLACEHOLDERS

MAX_POOL_FACTS = 200_000
"""Approximate maximum number of facts of a relation that supply distractors."""


def create_truths(builder: QuestionBuilder) -> None:
    """Create the tables ``pairs`` (true pairs of names), ``truths`` (right answers), ``also_called`` and ``kin``.

    True pairs are stated, inferred, or follow from a transitive relation. ``kin`` contains the ancestors and
    descendants of each name; it is created only if a relation declares a kinship predicate.
    """
    builder.create_table("pairs", "select distinct rel, s, o from worded")
    for relation in builder.used_relations:
        if relation.transitive:
            number = builder.relation_numbers[relation.name]
            make_transitive_closure(
                builder.tables, f"select s as low, o as high from pairs where rel = {number}", "reached"
            )
            builder.create_table(
                "further_pairs",
                f"""select {number} as rel, r.low as s, r.high as o from reached r
                anti join pairs p on p.rel = {number} and p.s = r.low and p.o = r.high where r.low != r.high""",
            )
            builder.tables.add("pairs", "select rel, s, o from further_pairs")
    builder.create_table("truths", " union all ".join(_truth_queries(builder)))
    # Names that a right answer is also called, or that are also called like it: not right, and never offered as wrong.
    builder.create_table(
        "also_called",
        "select distinct r.rel, r.ask, r.said, l.other as name from truths r join alike l on l.name = r.name",
    )
    predicates = sorted({relation.kinship for relation in builder.used_relations if relation.kinship})
    if predicates:
        edges = f"""select x.name as low, y.name as high from facts f
            join named x on x.entity = f.subject join named y on y.entity = f.object
            where f.predicate in ({sql_literals(predicates)})"""
        make_transitive_closure(builder.tables, edges, "related")
        builder.create_table(
            "kin", "select low as a, high as b from related union select high as a, low as b from related"
        )


def _truth_queries(builder: QuestionBuilder) -> Iterator[str]:
    """Yield SQL queries for the right answers of each field, given the rest of the sentence (``said``)."""
    for ask, said, name in (("object", "s", "o"), ("subject", "o", "s")):
        timed = ", ".join(str(rel) for rel, _ in _timed_contexts(builder, ask)) or "-1"
        yield f"select rel, '{ask}' as ask, {said} as said, {name} as name from pairs where rel not in ({timed})"
    for ask in PLACEHOLDERS:
        for rel, context in _timed_contexts(builder, ask):
            name = field_column(ask)
            yield f"""select distinct rel, '{ask}' as ask, {context} as said, {name} as name from worded
                where rel = {rel} and {name} is not null"""


def _timed_contexts(builder: QuestionBuilder, ask: str) -> list[tuple[int, str]]:
    """Return the relations whose sentences have several other fields besides ``ask``, with SQL for these fields.

    Empty if questions have no choices.
    """
    if builder.options.choices is None:
        return []
    return [
        (builder.relation_numbers[relation.name], context_sql(relation.templates, ask))
        for relation in builder.used_relations
        if (ask in relation.asks or ask in ("subject", "object")) and len(context_fields(relation.templates, ask)) > 1
    ]


def said_sql(builder: QuestionBuilder, ask: str) -> str:
    """Return SQL for the rest of a sentence without the asked field: the other name and the times mentioned."""
    other = {"object": "s", "subject": "o"}.get(ask, "null")
    return case_sql(((f"rel = {rel}", context) for rel, context in _timed_contexts(builder, ask)), other)


def create_pool(builder: QuestionBuilder) -> None:
    """Create the table ``pool`` of potential distractors: one row per fact and field, with the name in this field.

    Names that are often right are also drawn often as distractors, so frequency does not reveal the answer. Very large
    relations are sampled by name, which preserves relative frequencies.
    """
    fields = [("object", "o", "s"), ("subject", "s", "o")]
    if builder.options.choices is not None:
        asked = {ask for relation in builder.used_relations for ask in relation.asks}
        fields += [(time, f'"{time}"', "s") for time in ("start", "end") if time in asked]
    condition = _pool_condition(builder)
    names = " union all ".join(
        f"""select distinct rel, '{ask}' as ask, {name} as name, {other} as other, domain from worded
        where {condition} and {name} is not null"""
        for ask, name, other in fields
    )
    columns = ["rel", "ask", "key", "name", "other", "domain"]
    builder.tables.number_rows(
        "pool",
        f"select rel, ask, md5(name || chr(31) || other) as key, name, other, domain from ({names}) n",
        columns,
        spread="lpad(rel::varchar, 6, '0') || ask || left(key, 2)",
    )
    builder.create_table(
        "pool_sizes", "select rel, ask, count(*) as size, min(n) as first_one from pool group by rel, ask"
    )


def _pool_condition(builder: QuestionBuilder) -> str:
    """Return an SQL condition for the facts that supply distractors, about ``MAX_POOL_FACTS`` per relation at most."""
    if builder.fact_count <= MAX_POOL_FACTS:
        return "true"
    sizes = builder.rows(
        f"select rel, count(*) from worded group by rel having count(*) > {MAX_POOL_FACTS} order by rel"
    )
    if not sizes:
        return "true"
    shares = " ".join(f"when {rel} then {MAX_POOL_FACTS * 2**53 // size}" for rel, size in sizes)
    return f"{builder.draw_sql(sql_literal('pool'), 's', 'o')} // 2048 < case rel {shares} else {2**53} end"


def draw_distractors(
    builder: QuestionBuilder, asked: str, into: str, count: int, purpose: str, tries: int = 24
) -> None:
    """Draw distractors for each row of the table ``asked`` into a new table with the columns id, name and nth.

    A distractor comes from the same field of another fact of the relation. It does not occur in the sentence, does not
    make the sentence true by stated or inferred facts, and is not related to a right answer by kinship. Names of small
    pools are all tried; large pools are sampled.

    Args:
        asked: Table with the columns id, rel, ask, said (the rest of the sentence) and domain.
        into: Name of the new table.
        count: Maximum number of distractors per row.
        purpose: Text that is part of the random seed.
        tries: Number of draws from a large pool.
    """
    draw = builder.draw_sql(sql_literal(purpose), "a.id", "k")
    order = builder.draw_sql(sql_literal(purpose + " order"), "t.id", "t.name")
    used = builder.used_relations
    kinship = [relation for relation in used if relation.kinship]
    contrasting = [relation for relation in used if relation.contrast]
    near, far = ([relation for relation in used if relation.wrong == distance] for distance in ("near", "far"))
    unsaid, same_other, more_places = "p.name != t.said", "false", ""
    if contrasting:
        # ``said`` may contain several names.
        unsaid = "not list_contains(string_split(t.said, chr(31)), p.name)"
        same_other = "p.other = split_part(t.said, chr(31), 1)"
        contrasted = " or ".join(
            f"(t.rel = {builder.relation_numbers[relation.name]} and t.ask != '{relation.contrast}')"
            for relation in contrasting
        )
        more_places = f"""union select t.id, t.rel, t.ask, t.said, t.domain, z.size, p.n as place
            from {asked} t join pool p on p.rel = t.rel and p.ask = t.ask and {same_other}
            join pool_sizes z on z.rel = t.rel and z.ask = t.ask where {contrasted}"""
    later = case_sql(
        [
            (f"t.rel in ({_numbers_sql(builder, relations)})", condition)
            for relations, condition in (
                (near, "not bool_or(p.domain = t.domain)"),
                (far, "bool_or(p.domain = t.domain)"),
                (contrasting, f"not bool_or({same_other})"),
            )
            if relations
        ],
        "false",
    )
    builder.create_table(
        "tried",
        f"""with places as (
            select distinct a.id, a.rel, a.ask, a.said, a.domain, z.size,
                z.first_one + case when z.size <= {2 * tries} then k else ({draw} % z.size)::bigint end as place
            from {asked} a join pool_sizes z on z.rel = a.rel and z.ask = a.ask
            cross join (select unnest(range({2 * tries})) as k) numbers
            where k < case when z.size <= {2 * tries} then z.size else {tries} end
            {more_places}
        )
        select t.id, t.rel, t.ask, t.said, p.name, max(t.size) <= {2 * tries} as whole, count(*) as weight,
            {later} as later
        from places t join pool p on p.n = t.place
        where {unsaid} and not exists (
            select 1 from truths r where r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = p.name)
            and not exists (select 1 from also_called c
                where c.rel = t.rel and c.ask = t.ask and c.said = t.said and c.name = p.name)
        group by t.id, t.rel, t.ask, t.said, p.name""",
    )
    related = ""
    if kinship:
        builder.create_table(
            "relatives",
            f"""select distinct t.id, t.name from tried t join kin on kin.b = t.name join truths r
            on r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = kin.a
            where t.rel in ({_numbers_sql(builder, kinship)})""",
        )
        related = "anti join relatives r on r.id = t.id and r.name = t.name"
    # If all names of a pool were tried, they are drawn in proportion to their weights (exponential race).
    builder.create_table(
        into,
        f"""select * from (
            select t.id, t.name, row_number() over (partition by t.id order by coalesce(later, false),
                -ln((({order} // 2048)::double + 1) / 9007199254740993.0) / case when whole then weight else 1 end,
                t.name) as nth
            from tried t {related}
        ) n where nth <= {count}""",
    )


def _numbers_sql(builder: QuestionBuilder, relations: Iterable[Relation]) -> str:
    return ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations)
