"""Questions of the task distinction: three members of a category and an odd one out, at a balanced position.

All hierarchies are processed together; in the tables, the column ``h`` is the number of the hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from merkhet.core.text import counted
from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.questions.english import FORMS
from merkhet.questions.makers._template_sql import template_sql
from merkhet.questions.makers.premise_splits import move_pairs
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Hierarchy
from merkhet.questions.templates import PLACEHOLDER

_TRIES, _ROUNDS = 6, 8
"""Number of candidates for the odd one out that each round tries, and maximum number of rounds."""


def make_distinctions(builder: QuestionBuilder) -> list[str]:
    """Make distinction questions from all hierarchies; return remarks on missing questions."""
    hierarchies = list(builder.schema.hierarchies.values())
    if not hierarchies:
        return []
    _create_members(builder, hierarchies)
    categories = {
        h: (count, example, count_below)
        for h, count, example, count_below in builder.rows(
            """select c.h, count(*), min(c.name), count(m.name) from categories c
            left join (select distinct h, name from members) m on m.h = c.h and m.name = c.name
            group by c.h order by c.h"""
        )
    }
    several = [h for h, (count, _, _) in categories.items() if count > 1]
    if several:
        _create_trios(builder, several, [h for h in several if categories[h][2] > 0.1 * categories[h][0]])
        _find_odd_ones(builder, several)
        _add_questions(builder, hierarchies)
        trio_counts, odd_counts = (_count_by_hierarchy(builder, table) for table in ("trios", "odd_ones"))
    remarks = []
    for h, (count, example, _) in categories.items():
        name = hierarchies[h].name
        if count < 2:
            remarks.append(
                f"the hierarchy {name!r} has only one category ({example}), so that there is no odd one out: "
                "no distinction questions"
            )
        elif not trio_counts.get(h):
            remarks.append(f"the hierarchy {name!r} has no category with three members: no distinction questions")
        elif missing := trio_counts[h] - odd_counts.get(h, 0):
            remarks.append(
                f"{name}: {counted(missing, 'group of three is', 'groups of three are')} left out: no odd one out that "
                "is certain"
            )
    return remarks


def _count_by_hierarchy(builder: QuestionBuilder, table: str) -> dict[int, int]:
    return dict(builder.rows(f"select h, count(*) from {table} group by h"))


def _create_members(builder: QuestionBuilder, hierarchies: list[Hierarchy]) -> None:
    """Create the tables ``members``, ``categories`` and ``above`` (all ancestors, stated or inferred)."""
    rows = [
        {"h": h, "predicate": predicate, "given_domain": hierarchy.domain, "form": hierarchy.form}
        for h, hierarchy in enumerate(hierarchies)
        for predicate in hierarchy.predicates
    ]
    columns = [("h", pa.int32()), ("predicate", pa.string()), ("given_domain", pa.string()), ("form", pa.string())]
    builder.tables.load("hierarchies", pa.Table.from_pylist(rows, pa.schema(columns)))
    builder.create_table(
        "categorized",
        """select h.h, f.fact_id, f.rule, coalesce(h.given_domain, f.domain) as domain, f.object is null as numeric,
            a.name as s, coalesce(b.name, v.text) as o
        from facts f join hierarchies h on h.predicate = f.predicate
        join named a on a.entity = f.subject
        left join named b on b.entity = f.object
        left join value_texts v on v.value = f.value""",
    )
    builder.create_table(
        "members",
        """select h, fact_id, s as name, o as category, domain, split_of(s, o) as split
        from categorized where rule is null and s != o
        qualify row_number() over (partition by h, s, o order by fact_id) = 1""",
    )
    move_pairs(builder, "members", "name", "category")
    builder.create_table("categories", "select distinct h, category as name from members")
    edges = """select h, name as low, category as high from members union
        select h, s as low, o as high from categorized where not numeric and o is not null"""
    make_transitive_closure(builder.tables, edges, "above", "h")
    builder.tables.drop("categorized")


def _create_trios(builder: QuestionBuilder, hierarchies: Sequence[int], deep: Sequence[int]) -> None:
    """Create the table ``trios``: random groups of three members of the same category and split.

    In hierarchies with several levels (``deep``), only leaves are members. Top categories of these are skipped, because
    they are too broad: a peg and an appliance are both devices, but have little in common.
    """
    flat = [h for h in hierarchies if h not in deep]
    builder.create_table(
        "grouped",
        f"""select * from members where h in ({_numbers(flat)})
        union all select m.* from (select * from members where h in ({_numbers(deep)})) m
            semi join (select c.h, c.name from categories c semi join above a on a.h = c.h and a.low = c.name) low
                on low.h = m.h and low.name = m.category
            anti join categories t on t.h = m.h and t.name = m.name""",
    )
    draw = builder.draw_sql("'trio'", "round", "fact_id")
    limit = builder.options.limit
    sampled = "" if limit is None else f"where turn <= {2 * limit}"
    distinct = "not contains(lower(name), lower(category))" if builder.options.distinct_names else "true"
    builder.create_table(
        "trios",
        f"""with placed as (
            select g.*, round,
                row_number() over (partition by h, round, category, split order by {draw}, fact_id) - 1 as place
            from grouped g cross join (select unnest(range({builder.options.rounds})) as round) rounds
            where {builder.asked_sql()} and {distinct}
        ), threes as (
            select h, category, split, list(name order by place) as names, list(fact_id order by place) as facts,
                array_to_string(list(name order by name), chr(31)) as together, min(domain) as domain
            from placed group by h, round, category, split, place // 3 having count(*) = 3
        ), distinct_threes as (
            select *, md5(concat_ws(chr(31), category, together)) as id from threes
            qualify row_number() over (partition by h, category, together order by facts, split, domain) = 1
        ), turns as (
            select *, row_number() over (partition by h order by {builder.draw_sql("'place'", "id")}, id) as turn
            from distinct_threes
        )
        select h, id, category, split, names, facts, domain from turns {sampled}""",
    )


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values)) or "-1"


def _find_odd_ones(builder: QuestionBuilder, hierarchies: list[int]) -> None:
    """Create the table ``odd_ones`` with an odd one out for each trio, if one is found.

    The odd one is outside the category of the trio, and in no category that contains exactly two of the three members.
    It is neither an ancestor nor a descendant of a member. Candidates are tried in rounds; among suitable ones, the one
    that shares most categories with all three members is chosen. After the first round, a hierarchy is given up if a
    round finds nothing.
    """
    builder.create_table(
        "pool_of_members",
        """select h, name, split, min(fact_id) as fact_id,
            row_number() over (partition by h, split order by md5(name), name) - 1 as place,
            count(*) over (partition by h, split) as size
        from grouped group by h, name, split""",
    )
    builder.create_table("trio_names", "select h, id, unnest(names) as name from trios")
    builder.create_table(
        "trio_categories",
        """select t.h, t.id, a.high, count(*) as members
        from trio_names t join above a on a.h = t.h and a.low = t.name group by t.h, t.id, a.high""",
    )
    builder.create_table(
        "trio_below",
        """select h, id, name as low from trio_names
        union select t.h, t.id, a.low from trio_names t join above a on a.h = t.h and a.high = t.name""",
    )
    nothing = ", ".join(f"cast(null as varchar) as {name}" for name in ("id", "odd", "fact_id"))
    builder.create_table("odd_ones", f"select cast(null as integer) as h, {nothing} where false")
    active = list(hierarchies)
    previous: dict[int, int] = {}
    for turn in range(_ROUNDS):
        _try_odd_ones(builder, turn, active)
        counts = _count_by_hierarchy(builder, "odd_ones")
        if turn:
            active = [h for h in active if counts.get(h) != previous.get(h)]
        if not active or sum(counts.values()) == builder.tables.count("trios"):
            break
        previous = counts


def _try_odd_ones(builder: QuestionBuilder, turn: int, hierarchies: list[int]) -> None:
    """Try the candidates of round ``turn`` for all trios that have no odd one yet."""
    draw = builder.draw_sql("'odd'", "g.id", "k")
    first = turn * _TRIES
    builder.create_table(
        "odd_tried",
        f"""with sizes as (select h, split, max(size) as size from pool_of_members group by h, split),
        places as (
            select distinct g.h, g.id, g.category, g.split,
                case when z.size <= {_ROUNDS * _TRIES} then k else ({draw} % z.size)::bigint end as place
            from trios g join sizes z on z.h = g.h and z.split = g.split
            cross join (select unnest(range({first}, {first + _TRIES})) as k) numbers
            where g.h in ({_numbers(hierarchies)})
            and not exists (select 1 from odd_ones o where o.h = g.h and o.id = g.id)
        )
        select g.h, g.id, g.category, p.name as odd, p.fact_id
        from places g join pool_of_members p on p.h = g.h and p.split = g.split and p.place = g.place""",
    )
    builder.create_table(
        "odd_found",
        f"""with fitting as (
            select * from odd_tried t
            where not exists (select 1 from trio_categories c where c.h = t.h and c.id = t.id and c.high = t.odd)
            and not exists (select 1 from trio_below b where b.h = t.h and b.id = t.id and b.low = t.odd)
        ), judged_odd as (
            select f.h, f.id, f.odd, f.fact_id, coalesce(bool_or(c.members = 2), false) as confusing,
                bool_or(a.high = f.category) as member, count(*) filter (where c.members = 3) as near
            from fitting f join above a on a.h = f.h and a.low = f.odd
            left join trio_categories c on c.h = f.h and c.id = f.id and c.high = a.high
            group by f.h, f.id, f.odd, f.fact_id
        )
        select h, id, odd, fact_id from judged_odd where not confusing and not member
        qualify row_number() over (
            partition by h, id order by -near, {builder.draw_sql("'nearest'", "id", "odd")}, odd, fact_id) = 1""",
    )
    builder.tables.add("odd_ones", "select h, id, odd, fact_id from odd_found")


def _add_questions(builder: QuestionBuilder, hierarchies: list[Hierarchy]) -> None:
    templates = [
        (h, [text.replace("{aspect}", hierarchy.aspect) for text in _templates(builder, hierarchy)])
        for h, hierarchy in enumerate(hierarchies)
    ]
    category_forms = {
        match[1] or ""
        for _, texts in templates
        for text in texts
        for match in PLACEHOLDER.finditer(text)
        if match[2] == "category"
    }
    forms = [FORMS[hierarchy.form] for hierarchy in hierarchies]

    def add_words(batch: pa.Table) -> pa.Table:
        rows = batch.select(["h", "names", "odd", "place"]).to_pylist()
        quartets = [[*row["names"][: row["place"]], row["odd"], *row["names"][row["place"] :]] for row in rows]
        choices = [list(map(forms[row["h"]], names)) for row, names in zip(rows, quartets, strict=True)]
        texts = {
            "choices": choices,
            "members": [f"{', '.join(names[:-1])}, and {names[-1]}" for names in choices],
            "target": [names[row["place"]] for row, names in zip(rows, choices, strict=True)],
            **{f"category_{form}": map(FORMS[form], batch["category"].to_pylist()) for form in category_forms},
        }
        for column, values in texts.items():
            kind = pa.list_(pa.string()) if column == "choices" else pa.string()
            batch = batch.append_column(column, pa.array(values, kind))
        return batch

    limit = builder.options.limit
    builder.tables.map_batches(
        "quartets",
        f"""with numbered as (
            select g.*, o.odd, o.fact_id as odd_fact,
                row_number() over (partition by g.h order by {builder.draw_sql("'place'", "g.id")}, g.id) - 1 as n
            from trios g join odd_ones o on o.h = g.h and o.id = g.id
        )
        select *, ({"n" if limit is None else "n + h"}) % 4 as place from numbered
        {"" if limit is None else f"order by n, h limit {limit}"}""",
        add_words,
    )
    draw = builder.draw_sql("'template'", "id")
    used = {row[0] for row in builder.rows("select distinct h from quartets")}
    builder.add_sentences(
        "quartets",
        [
            (
                f"h = {h} and {draw} % {len(texts)} = {number}",
                template_sql(text, lambda form, name: name if name == "members" else f"category_{form}"),
                f"{hierarchies[h].name}/{number + 1}",
            )
            for h, texts in templates
            for number, text in enumerate(texts)
            if h in used
        ],
        task="'distinction'",
        prompt="sentence",
        answers="[target]",
        target="target",
        choices="choices",
        facts="list_append(facts, odd_fact)",
        qset="id",
        entities="list_prepend(target, list_filter(choices, lambda x: x != target))",
    )


def _templates(builder: QuestionBuilder, hierarchy: Hierarchy) -> tuple[str, ...]:
    return hierarchy.templates or builder.schema.frames["distinction"]
