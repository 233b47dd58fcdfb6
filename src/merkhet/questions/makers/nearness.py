"""Names near a right answer: siblings under a shared category, cousins one level further, names of the same kind.

Only the structure of the knowledge decides. A model that took part would favour models unlike itself.
"""

from __future__ import annotations

import math
import re

import pyarrow as pa

from merkhet.questions.makers._template_sql import case_sql, sql_literal, sql_literals
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import NEARNESS

SIBLING, COUSIN, KIND, RELATION = range(4)
_FEATURES, _MEMBERS = 8, 14
"""Number of shared features by which near names are looked for, and least number of names tried by each."""
_ROOMY = 6
"""Number of names that a feature should be shared by: fewer leave no choice among distractors."""
_SIBLING_STEPS, _COUSIN_STEPS = 3, 8
"""Distances in the sorted values of a field within which numbers are siblings and cousins."""
_YEAR_BC = re.compile(r"(\d+) BC")


def level_sql(number: str) -> str:
    """Return SQL for the name of a level, from SQL for its number."""
    return case_sql((f"{number} = {level}", sql_literal(name)) for level, name in enumerate(NEARNESS))


def feature_sql(*parts: str) -> str:
    """Return SQL for the number of a feature, from SQL expressions of its parts."""
    return f"md5_number_lower(concat_ws(chr(31), {', '.join(parts)}))"


def create_features(builder: QuestionBuilder) -> None:
    """Create the table ``features`` of what stated facts say of each name: name, level and feature.

    Names with a common feature of level 0 are siblings: both have the same object, or are objects of the same subject,
    by one predicate. With a feature of level 1 they are cousins: their objects (or subjects) share an object, or
    objects of their objects do. Those of level 2 have the same kind. Features are hashed to 64 bits.
    """
    chosen = f"and f.predicate in ({sql_literals(builder.options.near)})" if builder.options.near else ""
    builder.create_table(
        "links",
        f"""select distinct f.predicate, a.name as s, b.name as o
        from facts f join named a on a.entity = f.subject join named b on b.entity = f.object
        where f.rule is null and a.name != b.name {chosen}""",
    )

    builder.create_table(
        "steps",
        """select s as name, predicate || '>' as step, o as other from links
        union all select o as name, predicate || '<' as step, s as other from links""",
    )
    builder.create_table(
        "two_steps",
        """select distinct a.name, concat_ws(chr(31), a.step, l.predicate) as step, l.o as other
        from steps a join links l on l.s = a.other where l.o != a.name""",
    )
    builder.create_table(
        "features",
        f"""select distinct name, {SIBLING} as level, {feature_sql("step", "other")} as feature from steps
        union all select name, {COUSIN} as level, {feature_sql("step", "other")} as feature from two_steps
        union all select distinct t.name, {COUSIN} as level, {feature_sql("t.step", "l.predicate", "l.o")} as feature
        from two_steps t join links l on l.s = t.other where l.o != t.name
        union all select name, {KIND} as level, {feature_sql("kind")} as feature from named where kind is not null""",
    )


def create_near_names(builder: QuestionBuilder, asked: str, into: str, count: int) -> None:
    """Create a table of names near the right answers: rel, ask, name, other, level and rank (small is near).

    Args:
        asked: Table with the columns rel, ask and name (the right answer).
        into: Name of the new table.
        count: Number of names that are needed.
    """
    members = max(_MEMBERS, 2 * count)
    if not builder.has_table("pool_features"):
        _create_pool_features(builder)
    draw = builder.draw_sql("'near'", "g.name", "g.feature")
    builder.create_table(
        into,
        f"""with golds as (select distinct rel, ask, name from {asked}),
        ranked as (
            select f.*, row_number() over (
                partition by f.rel, f.ask, f.name
                order by f.level, case when f.size < {_ROOMY} then 1 else 0 end, f.size, f.feature) as place
            from pool_features f join golds g on g.rel = f.rel and g.ask = f.ask and g.name = f.name
        ), tries as (
            select g.rel, g.ask, g.name, g.feature, g.level, g.place,
                (({draw} % g.size)::bigint + k) % g.size as n
            from ranked g cross join (select unnest(range({members})) as k) numbers
            where g.place <= {_FEATURES} and k < g.size
        )
        select t.rel, t.ask, t.name, m.name as other, min(t.level) as level,
            min(t.level * 100 + t.place) as rank
        from tries t join pool_features m on m.rel = t.rel and m.ask = t.ask and m.feature = t.feature and m.n = t.n
        where m.name != t.name group by t.rel, t.ask, t.name, m.name
        union all
        select g.rel, g.ask, g.name, m.name as other,
            case when abs(m.place - p.place) <= {_SIBLING_STEPS} then {SIBLING} else {COUSIN} end as level,
            abs(m.place - p.place) as rank
        from golds g join pool_numbers p on p.rel = g.rel and p.ask = g.ask and p.name = g.name
        join pool_numbers m on m.rel = p.rel and m.ask = p.ask
            and m.place between p.place - {_COUSIN_STEPS} and p.place + {_COUSIN_STEPS} and m.place != p.place""",
    )


def _create_pool_features(builder: QuestionBuilder) -> None:
    """Create ``pool_features`` (names of a field by shared feature) and ``pool_numbers`` (numbers in their order)."""
    create_features(builder)
    builder.create_table(
        "pool_features",
        """with sized as (
            select p.rel, p.ask, p.name, f.level, f.feature,
                count(*) over (partition by p.rel, p.ask, f.feature) as size
            from pool_names p join features f on f.name = p.name where p.amount is null
        )
        select rel, ask, name, level, feature, size,
            row_number() over (partition by rel, ask, feature order by md5(name), name) - 1 as n
        from sized where size > 1""",
    )
    builder.create_table(
        "pool_numbers",
        """select rel, ask, name, row_number() over (partition by rel, ask order by amount, name) as place
        from pool_names where amount is not null""",
    )


def add_amounts(batch: pa.Table) -> pa.Table:
    """Append the column ``amount`` to a batch: the number that a name such as "1,234.5" or "44 BC" is, or null."""
    return batch.append_column("amount", pa.array(map(_read_amount, batch["name"].to_pylist()), pa.float64()))


def _read_amount(name: str) -> float | None:
    before_christ = _YEAR_BC.fullmatch(name)
    if before_christ:
        return -float(before_christ[1])
    if not name[:1].isdigit() and name[:1] not in "-−":
        return None
    try:
        amount = float(name.replace(",", "").replace("−", "-"))
    except ValueError:
        return None
    return amount if math.isfinite(amount) else None
