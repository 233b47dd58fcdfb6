"""Entity distinction: three members of a category and one odd one out, at a balanced position."""

from __future__ import annotations

from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.questions.makers._template_sql import enumeration_sql, sql_literal
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.schema import Hierarchy

_TRIES, _ROUNDS = 6, 8
"""Candidates for the odd one out per round, and the number of rounds."""


def make_distinctions(builder: QuestionBuilder) -> list[str]:
    """Make distinction questions of all hierarchies; return remarks on what could not be made."""
    remarks = []
    for hierarchy in builder.schema.hierarchies.values():
        remarks += _make_for_hierarchy(builder, hierarchy)
    return remarks


def _make_for_hierarchy(builder: QuestionBuilder, hierarchy: Hierarchy) -> list[str]:
    _create_members(builder, hierarchy)
    [(facts, categories, example)] = builder.rows(
        "select count(*), count(distinct category), min(category) from members"
    )
    if not facts:
        return []
    if categories < 2:
        return [
            f"the hierarchy {hierarchy.name!r} has one category only ({example}): nothing stands out, "
            "so no distinction questions are made of it"
        ]
    _create_trios(builder)
    _find_odd_ones(builder)
    _insert(builder, hierarchy)
    [(trio_count, odd_count)] = builder.rows("select (select count(*) from trios), (select count(*) from odd_ones)")
    if not trio_count:
        return [f"the hierarchy {hierarchy.name!r} has no category with three members: no distinction questions"]
    if odd_count < trio_count:
        return [
            f"{hierarchy.name}: {trio_count - odd_count:,} groups of three have nothing that clearly stands out; "
            "left out"
        ]
    return []


def _create_members(builder: QuestionBuilder, hierarchy: Hierarchy) -> None:
    """Create the tables of members with their categories, and of all ancestors, stated or inferred."""
    builder.create_named_facts(hierarchy.predicates, "categorized")
    domain = "domain" if hierarchy.domain is None else f"{sql_literal(hierarchy.domain)} as domain"
    builder.create_table(
        "members",
        f"""select fact_id, s as name, o as category, {domain}, split_of(s, o) as split
        from categorized where rule is null and s != o
        qualify row_number() over (partition by s, o order by fact_id) = 1""",
    )
    edges = """select name as low, category as high from members union
        select s as low, o as high from categorized where not numeric and o is not null"""
    make_transitive_closure(builder.tables, edges, "above")
    builder.tables.drop("categorized")


def _create_trios(builder: QuestionBuilder) -> None:
    """Group the members of each category and split by three.

    In a hierarchy of several levels only leaves are members, and top categories are too wide to group by: nobody
    thinks of a peg and an appliance as two devices.
    """
    builder.create_table("categories", "select distinct category as name from members")
    [(both, categories)] = builder.rows(
        """select count(distinct m.name), (select count(*) from categories)
        from members m semi join categories c on c.name = m.name"""
    )
    grouped = "select * from members"
    if both > 0.1 * categories:
        builder.create_table("low", "select c.name from categories c semi join above a on a.low = c.name")
        grouped = """select m.* from members m semi join low c on c.name = m.category
            anti join categories t on t.name = m.name"""
    builder.create_table("grouped", grouped)
    draw = builder.draw_sql("'trio'", "round", "fact_id")
    builder.create_table(
        "trios",
        f"""with placed as (
            select g.*, round,
                row_number() over (partition by round, category, split order by {draw}, fact_id) - 1 as place
            from grouped g cross join (select unnest(range({builder.options.rounds})) as round) rounds
            where {builder.asked_sql()}
        ), threes as (
            select category, split, list(name order by place) as names, list(fact_id order by place) as facts,
                array_to_string(list(name order by name), chr(31)) as together, min(domain) as domain
            from placed group by round, category, split, place // 3 having count(*) = 3
        )
        select md5(concat_ws(chr(31), category, together)) as id, category, split, names, facts, domain from threes
        qualify row_number() over (partition by category, together order by facts, split, domain) = 1""",
    )


def _find_odd_ones(builder: QuestionBuilder) -> None:
    """Find an odd one out for each trio: not in its category, not above it, in no category with just two of the three.

    Candidates are tried in rounds; the nearest that fits wins, which shares most categories with all three.
    """
    builder.create_table(
        "pool_of_members",
        """select name, split, min(fact_id) as fact_id,
            row_number() over (partition by split order by md5(name), name) - 1 as place,
            count(*) over (partition by split) as size
        from grouped group by name, split""",
    )
    builder.create_table("trio_names", "select id, unnest(names) as name from trios")
    builder.create_table(
        "trio_categories",
        "select t.id, a.high, count(*) as members from trio_names t join above a on a.low = t.name "
        "group by t.id, a.high",
    )
    builder.create_table("trio_below", "select distinct t.id, a.low from trio_names t join above a on a.high = t.name")
    nothing = ", ".join(f"cast(null as varchar) as {name}" for name in ("id", "odd", "fact_id"))
    builder.create_table("odd_ones", f"select {nothing} where false")
    previous = 0
    for turn in range(_ROUNDS):
        _try_odd_ones(builder, turn)
        count = builder.tables.count("odd_ones")
        if turn and previous == count:
            break
        previous = count


def _try_odd_ones(builder: QuestionBuilder, turn: int) -> None:
    """Try further candidates for the trios that have no odd one yet."""
    draw = builder.draw_sql("'odd'", "g.id", "k")
    first = turn * _TRIES
    builder.create_table(
        "odd_tried",
        f"""with sizes as (select split, max(size) as size from pool_of_members group by split),
        places as (
            select distinct g.id, g.category, g.split,
                case when z.size <= {_ROUNDS * _TRIES} then k else ({draw} % z.size)::bigint end as place
            from trios g join sizes z on z.split = g.split
            cross join (select unnest(range({first}, {first + _TRIES})) as k) numbers
            where not exists (select 1 from odd_ones o where o.id = g.id)
        )
        select g.id, g.category, p.name as odd, p.fact_id
        from places g join pool_of_members p on p.split = g.split and p.place = g.place""",
    )
    builder.create_table(
        "odd_found",
        f"""with fitting as (
            select * from odd_tried t where odd != category
            and not exists (select 1 from trio_names n where n.id = t.id and n.name = t.odd)
            and not exists (select 1 from above a where a.low = t.odd and a.high = t.category)
            and not exists (select 1 from above a where a.low = t.category and a.high = t.odd)
            and not exists (select 1 from trio_categories c where c.id = t.id and c.high = t.odd)
            and not exists (select 1 from trio_below b where b.id = t.id and b.low = t.odd)
        ), judged_odd as (
            select f.id, f.odd, f.fact_id, coalesce(bool_or(c.members = 2), false) as confusing,
                count(*) filter (where c.members = 3) as near
            from fitting f join above a on a.low = f.odd
            left join trio_categories c on c.id = f.id and c.high = a.high group by f.id, f.odd, f.fact_id
        )
        select id, odd, fact_id from judged_odd where not confusing
        qualify row_number() over (
            partition by id order by -near, {builder.draw_sql("'nearest'", "id", "odd")}, odd, fact_id) = 1""",
    )
    builder.tables.add("odd_ones", "select id, odd, fact_id from odd_found")


def _insert(builder: QuestionBuilder, hierarchy: Hierarchy) -> None:
    names = "select name from trio_names union all select odd as name from odd_ones"
    builder.create_name_forms(names, hierarchy.form, "member_forms")
    builder.tables.number_rows(
        "fours",
        f"""select g.id, g.names, g.facts, g.domain, g.split, o.odd, o.fact_id as odd_fact,
            {builder.draw_sql("'place'", "g.id")} as drawn
        from trios g join odd_ones o on o.id = g.id""",
        ["drawn", "id"],
        first=0,
    )
    builder.create_table(
        "quartets",
        """select q.id, q.facts, q.odd_fact, q.domain, q.split, q.n % 4 as place, f.shown as odd,
            a.shown as a, b.shown as b, c.shown as c
        from fours q join member_forms f on f.name = q.odd join member_forms a on a.name = q.names[1]
        join member_forms b on b.name = q.names[2] join member_forms c on c.name = q.names[3]""",
    )
    templates = hierarchy.templates or builder.schema.frames["distinction"]
    orders = [["odd", "a", "b", "c"], ["a", "odd", "b", "c"], ["a", "b", "odd", "c"], ["a", "b", "c", "odd"]]
    members = pick_sql([enumeration_sql(order) for order in orders], "place")
    draw = builder.draw_sql("'template'", "id")
    for number, template in enumerate(templates):
        text = template.replace("{aspect}", hierarchy.aspect)
        head, _, tail = text.partition("{members}")
        listing = f"({members})"
        if not head:
            listing = f"capital({members})"
        builder.add_questions(
            f"quartets where {draw} % {len(templates)} = {number}",
            task="'distinction'",
            prompt=f"concat({sql_literal(head)}, {listing}, {sql_literal(tail)})",
            answers="[odd]",
            target="odd",
            choices=pick_sql([f"[{', '.join(order)}]" for order in orders], "place"),
            facts="list_append(facts, odd_fact)",
            qset="id",
            template=sql_literal(f"{hierarchy.name}/{number + 1}"),
            entities="[odd, a, b, c]",
        )
