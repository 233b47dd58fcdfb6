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
from merkhet.questions.makers.evidence import DECLARED, disjoint_names_sql
from merkhet.questions.makers.nearness import RELATION, SIBLING, add_amounts, create_near_names
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation
from merkhet.questions.templates import PLACEHOLDERS

MAX_POOL_FACTS = 200_000
"""Approximate maximum number of facts of a relation that supply distractors."""
_FARTHEST = 1_000
"""Rank of names that were drawn at random."""


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
    builder.tables.map_batches(
        "pool_names",
        "select rel, ask, name, count(*) as frequency, min(other) as owner from pool group by rel, ask, name",
        add_amounts,
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
    """Draw distractors for each row of ``asked`` into a new table with the columns id, name, nth and level.

    A distractor comes from the same field of another fact of the relation. It does not occur in the sentence, does not
    make the sentence true by stated or inferred facts, and is not related to a right answer by kinship. If only
    disjoint classes are evidence, its class is disjoint with the other name of the sentence. Names near the right
    answer come first (:mod:`merkhet.questions.makers.nearness`). As far as possible, a random number of distractors
    are right more often elsewhere than the right answer, so that frequency does not reveal it. Where wrong names are
    only assumed to be wrong, they are drawn at random, from other domains if possible: near names are the likeliest to
    be right after all.

    Args:
        asked: Table with the columns id, rel, ask, said (the rest of the sentence), name (the right answer) and domain.
        into: Name of the new table.
        count: Maximum number of distractors per row.
        purpose: Text that is part of the random seed.
        tries: Number of random draws from a large pool.
    """
    draw = builder.draw_sql(sql_literal(purpose), "a.id", "k")
    builder.create_table(
        "random_names",
        f"""with places as (
            select distinct a.id, z.size,
                z.first_one + case when z.size <= {2 * tries} then k else ({draw} % z.size)::bigint end as place
            from {asked} a join pool_sizes z on z.rel = a.rel and z.ask = a.ask
            cross join (select unnest(range({2 * tries})) as k) numbers
            where k < case when z.size <= {2 * tries} then z.size else {tries} end
        )
        select t.id, p.name, {RELATION} as level, {_FARTHEST} as rank,
            case when max(t.size) <= {2 * tries} then count(*) else 1 end as weight,
            bool_or(p.domain = a.domain) as near
        from places t join pool p on p.n = t.place join {asked} a on a.id = t.id group by t.id, p.name""",
    )
    if builder.evidence.mode == DECLARED:
        create_near_names(builder, asked, "near_names", count)
        near = f"""union all select a.id, n.other as name, n.level, n.rank, 1 as weight, false as near
            from {asked} a join near_names n on n.rel = a.rel and n.ask = a.ask and n.name = a.name
            union all {_linked_names_sql(builder, asked)}"""
    else:
        near = ""
    apart = ""
    if builder.options.distinct_names:
        # The names of asked facts share no word, so a name that shares one with the sentence would be seen to be wrong.
        apart = "and not coalesce(list_has_any(name_stems(d.name), name_stems(a.said)), false)"
    builder.create_table(
        "tried",
        f"""with drawn as (
            select id, name, min(level) as level, min(rank) as rank, max(weight) as weight, bool_or(near) as near
            from (select * from random_names {near}) n group by id, name
        )
        select a.id, a.rel, a.ask, a.said, a.name as gold, d.name, d.level, d.rank, d.weight, d.near
        from drawn d join {asked} a on a.id = d.id
        where d.name != a.name and not list_contains(string_split(a.said, chr(31)), d.name) and not exists (
            select 1 from truths r where r.rel = a.rel and r.ask = a.ask and r.said = a.said and r.name = d.name)
            and not exists (select 1 from also_called c
                where c.rel = a.rel and c.ask = a.ask and c.said = a.said and c.name = d.name) {apart}""",
    )
    _drop_relatives(builder)
    _drop_possible_names(builder)
    _choose_distractors(builder, into, count, purpose)


def _linked_names_sql(builder: QuestionBuilder, asked: str) -> str:
    """Return SQL for the names that other facts link to the sentence, which are the nearest of all.

    If a sentence names a time, they are right for its other name at other times: former holders of the same office. If
    the knowledge states all true names of the asked field, they are the names of the right answer's kind that any fact
    links to the other name: another city of the country, where its capital is asked for. Transitive relations have
    none: "A tomcat is a kind of cat" is true, even if cats are not among the listed classes.
    """
    fields = [
        f"(a.rel = {builder.relation_numbers[relation.name]} and a.ask = '{place}')"
        for relation in builder.used_relations
        for place in ("object", "subject")
        if builder.evidence.states_all(relation, place) and not relation.transitive
    ]
    if not builder.has_table("kinds"):
        # Monaco is a country and a city, so its kind does not tell what is asked for.
        builder.create_table(
            "kinds",
            """select name, min(kind) as kind from named where kind is not null
            group by name having count(distinct kind) = 1""",
        )
    return f"""select a.id, l.other as name, {SIBLING} as level, 0 as rank, 1 as weight, false as near
        from {asked} a join steps l on l.name = split_part(a.said, chr(31), 1)
        join kinds x on x.name = a.name join kinds y on y.name = l.other and y.kind = x.kind
        semi join pool_names p on p.name = l.other
        where {" or ".join(fields) or "false"}
        union all select a.id, p.name, {SIBLING} as level, 0 as rank, 1 as weight, false as near
        from {asked} a join pool p on p.rel = a.rel and p.ask = a.ask and p.other = split_part(a.said, chr(31), 1)
        where contains(a.said, chr(31))"""


def _drop_relatives(builder: QuestionBuilder) -> None:
    """Remove the ancestors and descendants of right answers from ``tried``, for relations with a kinship predicate."""
    kinship = [relation for relation in builder.used_relations if relation.kinship]
    if not kinship:
        return
    builder.create_table(
        "relatives",
        f"""select distinct t.id, t.name from tried t join kin on kin.b = t.name join truths r
        on r.rel = t.rel and r.ask = t.ask and r.said = t.said and r.name = kin.a
        where t.rel in ({_numbers_sql(builder, kinship)})""",
    )
    builder.create_table("tried", "select t.* from tried t anti join relatives r on r.id = t.id and r.name = t.name")


def _drop_possible_names(builder: QuestionBuilder) -> None:
    """Remove the names from ``tried`` that only disjoint classes could show to be wrong, unless they do."""
    rules = builder.evidence
    by_classes = [relation for relation in builder.used_relations if rules.needs_disjoint_classes(relation)]
    if not by_classes:
        return
    taxonomy = case_sql(
        (f"rel = {builder.relation_numbers[relation.name]}", str(rules.taxonomy(relation))) for relation in by_classes
    )
    numbers = _numbers_sql(builder, by_classes)
    pairs = f"""(select id, {taxonomy} as taxonomy, split_part(said, chr(31), 1) as one, name as other
        from tried where rel in ({numbers}))"""
    builder.create_table("disjoint_names", disjoint_names_sql(pairs))
    builder.create_table(
        "tried",
        f"""select * from tried where rel not in ({numbers})
        union all select t.* from (select * from tried where rel in ({numbers})) t
        semi join disjoint_names d on d.id = t.id and d.other = t.name""",
    )


def _choose_distractors(builder: QuestionBuilder, into: str, count: int, purpose: str) -> None:
    """Choose ``count`` distractors for each id from the table ``tried``.

    The nearest level comes first. Of a level, a random number of names, from 0 to ``count``, may be right more often
    than the right answer, and the others less often, before the rest is taken; names that are right as often count on
    neither side. Then those come first that are right for different names, such as cities of different countries: if
    all were cities of one country, the right answer would be the odd one. Names that were drawn at random are taken in
    proportion to their weights (exponential race).
    """
    order = builder.draw_sql(sql_literal(purpose + " order"), "t.id", "t.name")
    quota = builder.draw_sql(sql_literal(purpose + " quota"), "id")
    race = f"-ln((({order} // 2048)::double + 1) / 9007199254740993.0) / t.weight"
    builder.create_table(
        into,
        f"""with compared as (
            select t.id, t.name, t.level, t.rank, {race} as race, coalesce(t.near, false) as near,
                f.owner, sign(coalesce(f.frequency, 0) - coalesce(g.frequency, 0)) as side
            from tried t left join pool_names f on f.rel = t.rel and f.ask = t.ask and f.name = t.name
            left join pool_names g on g.rel = t.rel and g.ask = t.ask and g.name = t.gold
        ), spread as (
            select *, row_number() over (
                partition by id, coalesce(owner, name), level order by rank, near, race, name) as turn
            from compared
        ), placed as (
            select *, row_number() over (partition by id, side order by level, turn, rank, near, race, name) as place,
                ({quota} % {count + 1})::bigint as above_count
            from spread
        )
        select * from (
            select id, name, level, row_number() over (partition by id order by level,
                rank > 0, place > case side when 0 then {count} when 1 then above_count else {count} - above_count end,
                turn, rank, near, race, name) as nth
            from placed
        ) n where nth <= {count}""",
    )


def _numbers_sql(builder: QuestionBuilder, relations: Iterable[Relation]) -> str:
    return ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations)
