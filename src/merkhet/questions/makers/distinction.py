"""Questions of the task distinction: three members of a category and an odd one out, at a balanced position.

All hierarchies are processed together; in the tables, the column ``h`` is the number of the hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from merkhet.core.text import counted
from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.questions.english import FORMS
from merkhet.questions.makers._template_sql import case_sql, template_sql
from merkhet.questions.makers.evidence import DECLARED, disjoint_names_sql
from merkhet.questions.makers.name_aliases import create_subject_aliases, with_aliases_sql
from merkhet.questions.makers.nearness import KIND, RELATION, create_features, feature_sql, level_sql
from merkhet.questions.makers.premise_splits import move_pairs
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import NEARNESS, Hierarchy
from merkhet.questions.templates import PLACEHOLDER

_TRIES, _ROUNDS = 6, 8
"""Number of candidates for the odd one out that each round tries, and maximum number of rounds."""
_NEAR_FEATURES, _NEAR_MEMBERS = 8, 14
"""Number of features by which near names are looked for, and number of names tried by each."""


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
    rules = builder.evidence
    several = [
        h for h, (count, _, _) in categories.items() if count > 1 and rules.asks_with_distractors(hierarchies[h])
    ]
    if several:
        _create_trios(builder, several, [h for h in several if categories[h][2] > 0.1 * categories[h][0]])
        _find_odd_ones(builder, several, hierarchies)
        _add_questions(builder, hierarchies)
        trio_counts, odd_counts = (_count_by_hierarchy(builder, table) for table in ("trios", "odd_ones"))
    remarks = []
    for h, (count, example, _) in categories.items():
        name = hierarchies[h].name
        if not rules.asks_with_distractors(hierarchies[h]):
            continue
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


def _find_odd_ones(builder: QuestionBuilder, active: Sequence[int], hierarchies: Sequence[Hierarchy]) -> None:
    """Create the table ``odd_ones`` with an odd one out for each trio, if one is found.

    The odd one is outside the category of the trio, and in no category that contains exactly two of the three members.
    It is neither an ancestor nor a descendant of a member, nor another name of one. If only disjoint classes are
    evidence, it belongs to a class disjoint with the category. The nearest name is chosen: it shares features
    (:mod:`.nearness`) with most members. Trios without a suitable near name try random names in rounds; a hierarchy is
    given up if a round finds nothing.
    """
    builder.create_table(
        "pool_of_members",
        """select h, name, split, min(fact_id) as fact_id,
            row_number() over (partition by h, split order by md5(name), name) - 1 as place,
            count(*) over (partition by h, split) as size
        from grouped group by h, name, split""",
    )
    builder.create_table("trio_names", "select h, id, category, split, unnest(names) as name from trios")
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
    builder.create_table(
        "odd_ones", f"select cast(null as integer) as h, {nothing}, cast(null as bigint) as level where false"
    )
    if builder.evidence.mode == DECLARED:
        _try_near_names(builder)
        _accept_odd_ones(builder, hierarchies)
    previous = _count_by_hierarchy(builder, "odd_ones")
    for turn in range(_ROUNDS):
        if not active or sum(previous.values()) == builder.tables.count("trios"):
            break
        _try_random_names(builder, turn, active)
        _accept_odd_ones(builder, hierarchies)
        counts = _count_by_hierarchy(builder, "odd_ones")
        if turn:
            active = [h for h in active if counts.get(h) != previous.get(h)]
        previous = counts


def _try_near_names(builder: QuestionBuilder) -> None:
    """Create the table ``odd_tried`` of names that share a feature with the members of a trio."""
    if not builder.has_table("features"):
        create_features(builder)
    builder.create_table(
        "member_features",
        """with sized as (
            select p.h, p.split, p.name, p.fact_id, f.level, f.feature,
                count(*) over (partition by p.h, p.split, f.feature) as size
            from pool_of_members p join features f on f.name = p.name
        )
        select *, row_number() over (partition by h, split, feature order by md5(name), name) - 1 as n
        from sized where size > 3""",
    )
    draw = builder.draw_sql("'near odd'", "g.id", "g.feature")
    builder.create_table(
        "odd_tried",
        f"""with own as (
            select distinct c.h, c.name as category, {feature_sql("h.predicate || '>'", "c.name")} as feature
            from categories c join hierarchies h on h.h = c.h
        ), shared as (
            select t.h, t.id, t.category, t.split, f.feature, f.level, f.size, count(*) as members
            from trio_names t join member_features f on f.h = t.h and f.split = t.split and f.name = t.name
            group by t.h, t.id, t.category, t.split, f.feature, f.level, f.size
        ), ranked as (
            select s.*,
                row_number() over (partition by s.h, s.id order by s.level, -s.members, s.size, s.feature) as nth
            from shared s anti join own o on o.h = s.h and o.category = s.category and o.feature = s.feature
        ), places as (
            select g.h, g.id, g.category, g.split, g.feature, g.level, g.members,
                (({draw} % g.size)::bigint + k) % g.size as n
            from ranked g cross join (select unnest(range({_NEAR_MEMBERS})) as k) numbers
            where g.nth <= {_NEAR_FEATURES} and k < g.size
        )
        select p.h, p.id, p.category, m.name as odd, m.fact_id, min(p.level) as level,
            sum(p.members * ({KIND} - p.level)) as closeness
        from places p join member_features m
            on m.h = p.h and m.split = p.split and m.feature = p.feature and m.n = p.n
        group by p.h, p.id, p.category, m.name, m.fact_id""",
    )


def _try_random_names(builder: QuestionBuilder, turn: int, hierarchies: Sequence[int]) -> None:
    """Create the table ``odd_tried`` of the random names of round ``turn``, for all trios without an odd one."""
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
        select g.h, g.id, g.category, p.name as odd, p.fact_id, {RELATION} as level, 0 as closeness
        from places g join pool_of_members p on p.h = g.h and p.split = g.split and p.place = g.place""",
    )


def _accept_odd_ones(builder: QuestionBuilder, hierarchies: Sequence[Hierarchy]) -> None:
    """Add the best suitable name of ``odd_tried`` to ``odd_ones``, for each trio."""
    rules = builder.evidence
    by_classes = {h: rules.taxonomy(part) for h, part in enumerate(hierarchies) if rules.needs_disjoint_classes(part)}
    if by_classes:
        taxonomy = case_sql((f"h = {h}", str(number)) for h, number in by_classes.items())
        numbers = _numbers(by_classes)
        pairs = f"""(select id, {taxonomy} as taxonomy, category as one, odd as other
            from odd_tried where h in ({numbers}))"""
        builder.create_table("disjoint_odd", disjoint_names_sql(pairs))
        builder.create_table(
            "odd_tried",
            f"""select * from odd_tried where h not in ({numbers})
            union all select t.* from (select * from odd_tried where h in ({numbers})) t
            semi join disjoint_odd d on d.id = t.id and d.other = t.odd""",
        )
    farthest = case_sql(
        ((f"t.h = {h}", str(NEARNESS.index(part.farthest))) for h, part in enumerate(hierarchies)), str(RELATION)
    )
    builder.create_table(
        "odd_found",
        f"""with fitting as (
            select * from odd_tried t where t.level <= {farthest}
            and not exists (select 1 from trio_categories c where c.h = t.h and c.id = t.id and c.high = t.odd)
            and not exists (select 1 from trio_below b where b.h = t.h and b.id = t.id and b.low = t.odd)
            and not exists (select 1 from trio_names n join alike l on l.name = n.name
                where n.h = t.h and n.id = t.id and l.other = t.odd)
        ), judged_odd as (
            select f.h, f.id, f.odd, f.fact_id, f.level, f.closeness,
                coalesce(bool_or(c.members = 2), false) as confusing,
                bool_or(a.high = f.category) as member, count(*) filter (where c.members = 3) as near
            from fitting f join above a on a.h = f.h and a.low = f.odd
            left join trio_categories c on c.h = f.h and c.id = f.id and c.high = a.high
            group by f.h, f.id, f.odd, f.fact_id, f.level, f.closeness
        )
        select h, id, odd, fact_id, level from judged_odd where not confusing and not member
        qualify row_number() over (
            partition by h, id order by level, -near, -closeness, {builder.draw_sql("'nearest'", "id", "odd")}, odd,
            fact_id) = 1""",
    )
    builder.tables.add("odd_ones", "select h, id, odd, fact_id, level from odd_found")


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
            select g.*, o.odd, o.fact_id as odd_fact, {level_sql("o.level")} as nearness,
                row_number() over (partition by g.h order by {builder.draw_sql("'place'", "g.id")}, g.id) - 1 as n
            from trios g join odd_ones o on o.h = g.h and o.id = g.id
        )
        select *, ({"n" if limit is None else "n + h"}) % 4 as place from numbered
        {"" if limit is None else f"order by n, h limit {limit}"}""",
        add_words,
    )
    create_subject_aliases(
        builder,
        "select distinct q.odd_fact as fact_id, i.form from quartets q join hierarchies i on i.h = q.h",
        "odd_aliases",
    )
    draw = builder.draw_sql("'template'", "id")
    used = {row[0] for row in builder.rows("select distinct h from quartets")}
    builder.add_sentences(
        "(select q.*, x.aliases from quartets q left join odd_aliases x on x.fact_id = q.odd_fact) named_quartets",
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
        answers=with_aliases_sql("[target]", "aliases"),
        target="target",
        choices="choices",
        facts="list_append(facts, odd_fact)",
        qset="id",
        nearness="nearness",
        entities="list_prepend(target, list_filter(choices, lambda x: x != target))",
    )


def _templates(builder: QuestionBuilder, hierarchy: Hierarchy) -> tuple[str, ...]:
    return hierarchy.templates or builder.schema.frames["distinction"]
