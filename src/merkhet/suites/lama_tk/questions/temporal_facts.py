"""Facts with times as a knowledge base has them: at one granularity, each once, with the symbols for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.recall_schemas import SYMBOLS
from merkhet.core.schemas import validate
from merkhet.knowledge.database import define_macros
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings

GRANULARITIES = ("year", "month", "day")
OPEN, CLOSE = "⟦", "⟧"
"""What stands around a symbol in a sentence."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_TIME = re.compile(r"(-?)(\d+)(?:-(\d\d))?(?:-(\d\d))?")
_FACTS = pa.schema(
    [
        *[(name, pa.string()) for name in ("fact_id", "relation", "subject", "object", "start", "end")],
        ("point", pa.bool_()),
        *[(name, pa.string()) for name in ("subject_name", "object_name")],
    ]
)
_LEFT_OUT = {
    "values": "a number instead of an object",
    "without times": "neither a start nor an end",
    "year 0": "a time in the year 0, which there was not",
    "end before start": "an end before their start",
    "without start": "no start",
    "without end": "no end",
    "coarse": "a time that is coarser than a {granularity}",
    "two times": "two times, where their relation has one",
    "reserved": f"a name or an id with {SLOT}, {OPEN} or {CLOSE} in it",
}
"""Why facts are left out, by the name of the count."""


@dataclass(frozen=True)
class TemporalFacts:
    """Facts with times, each once: ``start`` and ``end`` at the granularity ("2009", "-0044"), the same for a point.

    ``symbols`` are those of all facts, also where these are some of them. ``counts`` says how many facts were there,
    kept and left out, and why; ``remarks`` says it in sentences. ``labels`` are what relations without a wording are
    called. ``known`` has all facts, also those with a time unknown: what comes first or next is not decided without
    them.
    """

    table: pa.Table
    symbols: pa.Table
    counts: Mapping[str, int]
    remarks: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    known: pa.Table | None = None


def temporal_facts(
    knowledge: KnowledgeBase,
    *,
    granularity: str = "year",
    relations: Sequence[str] = (),
    language: str = "en",
    wordings: Wordings | None = None,
) -> TemporalFacts:
    """The facts with times of a knowledge base, of all relations or of some (by name, predicate or its label).

    A fact is kept if both of its times are known at the granularity, or the one time of a relation of points; those
    equal at the granularity are one. An entity is called by its label in the language, without one by its id.
    ``wordings`` says which relations there are; a predicate that none of them stands for is its own. Refuses unknown
    relations, and knowledge without a fact that can be kept.
    """
    if granularity not in GRANULARITIES:
        raise InputError(f"there is no granularity {granularity!r}; {did_you_mean(granularity, GRANULARITIES)}")
    predicates = _predicates(knowledge, wordings or read_wordings(), relations, language)
    with workbench() as bench:
        _gather(bench, knowledge, predicates, granularity, language)
        counts = _counts(bench)
        if not counts["kept"]:
            told = " ".join(_remarks(counts, granularity, ()))
            raise InputError(f"no fact of the knowledge base has times that can be asked about. {told}".strip())
        table = bench.sql(f"select {', '.join(_quoted(_FACTS.names))} from kept order by fact_id").to_arrow_table()
        known = bench.sql(
            'select relation, subject, object, "start", "end", subject_name, object_name from placed order by all'
        ).to_arrow_table()
        symbols = _symbols(bench)
        present = {row[0] for row in bench.execute("select distinct relation from kept").fetchall()}
    unworded = tuple(sorted(one.name for one in predicates if not one.worded and one.name in present))
    counts = counts | {"unworded": len(unworded)}
    return TemporalFacts(
        table=table.cast(_FACTS),
        symbols=symbols,
        counts=counts,
        remarks=tuple(_remarks(counts, granularity, unworded)),
        labels={one.name: one.label for one in predicates if not one.worded and one.name in present},
        known=known,
    )


def subset(facts: TemporalFacts, count: int | None, seed: int) -> TemporalFacts:
    """So many of the facts, drawn by the seed and their ids: a larger subset of one seed holds the smaller ones.

    The symbols stay those of all. Where there are fewer than asked for, all are given and it is remarked.
    """
    if count is None or count == facts.table.num_rows:
        return facts
    if count < 1:
        raise InputError(f"a subset of {count} facts was asked for; ask for at least 1")
    if count > facts.table.num_rows:
        return replace(facts, remarks=(*facts.remarks, too_few(count, facts.table.num_rows)))
    with workbench(given=facts.table) as bench:
        table = bench.sql(
            f"select * from (from given order by {draw(seed, 'fact_id')}, fact_id limit {count}) order by fact_id"
        ).to_arrow_table()
    return replace(facts, table=table)


def too_few(asked: int, found: int, what: str = "facts") -> str:
    """The remark where there are fewer facts than asked for."""
    return f"{asked:,} {what} were asked for, and there are {found:,}: all of them are taken."


def draw(seed: int, *parts: str) -> str:
    """SQL for a number in [0, 2^64) that belongs to the seed and these expressions."""
    return f"md5_number_lower(concat_ws(chr(31), '{seed}', {', '.join(parts)}))"


def time_name(time: str) -> str:
    """A time as it is written in a sentence: 2009, April 2009, 17 April 2009, AD 476, 44 BC."""
    found = _TIME.fullmatch(time)
    if not found:
        raise InputError(f"{time!r} is no time such as 2009, 2009-04 or 2009-04-17")
    sign, year, month, day = found.groups()
    number = int(year)
    said = f"{number} BC" if sign else f"AD {number}" if number < 1000 else str(number)
    words = [str(int(day))] if day else []
    return " ".join([*words, *([_MONTHS[int(month) - 1]] if month else []), said])


@contextmanager
def workbench(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with these tables, which knows how to compare times."""
    with duckdb.connect() as connection:
        define_macros(connection)
        for name, table in tables.items():
            connection.register(name, table)
        yield connection


@dataclass(frozen=True)
class _Predicate:
    predicate: str
    name: str
    label: str
    point: bool
    worded: bool


def _predicates(
    knowledge: KnowledgeBase, wordings: Wordings, relations: Sequence[str], language: str
) -> list[_Predicate]:
    """The predicates that have facts with times, each with its relation; those that were asked for."""
    declared = {name: one.label for name, one in knowledge.predicates.items()}
    timed = knowledge.connection.execute(
        """select predicate, min(label) from (
            select distinct predicate from facts where "start" is not null or "end" is not null
        ) left join names on entity = predicate and language = $language group by predicate order by predicate""",
        {"language": language},
    ).fetchall()
    found = []
    for predicate, named in timed:
        label = named or declared.get(predicate) or predicate
        wording = wordings.find(predicate, label)
        if wording is None:
            found.append(_Predicate(predicate, predicate, label, False, False))
        else:
            found.append(_Predicate(predicate, wording.name, label, wording.point, True))
    if not found:
        raise InputError("the knowledge base has no fact with a time; give one with starts and ends")
    names = {text: one.name for one in found for text in (one.label, one.predicate, one.name)}
    wanted = {_relation(asked, names, wordings) for asked in relations}
    return [one for one in found if one.name in wanted] if relations else found


def _relation(asked: str, names: Mapping[str, str], wordings: Wordings) -> str:
    """The name of a relation by it, its predicate or its label; refuses one that has no facts with times."""
    wording = wordings.find(asked)
    name = names.get(asked) or (names.get(wording.name) if wording else None)
    if name is None:
        raise InputError(f"no facts with times have the relation {asked!r}; {did_you_mean(asked, sorted(names))}")
    return name


def _gather(
    bench: duckdb.DuckDBPyConnection,
    knowledge: KnowledgeBase,
    predicates: Sequence[_Predicate],
    granularity: str,
    language: str,
) -> None:
    """Make the tables ``placed`` (all facts, with why they are left out), and ``kept`` of them."""
    asked = {"predicates": [one.predicate for one in predicates]}
    bench.register(
        "given",
        knowledge.query(
            'select fact_id, subject, predicate, object, "start", "end" from facts '
            "where list_contains($predicates, predicate)",
            asked,
        ),
    )
    bench.register(
        "labels",
        knowledge.query(
            "select entity, min(label) as label from names where language = $language and entity in ("
            "select subject from facts where list_contains($predicates, predicate) union all "
            "select object from facts where list_contains($predicates, predicate)) group by entity",
            {**asked, "language": language},
        ),
    )
    bench.register(
        "relations",
        pa.table(
            {
                "predicate": pa.array([one.predicate for one in predicates], pa.string()),
                "relation": pa.array([one.name for one in predicates], pa.string()),
                "point": pa.array([one.point for one in predicates], pa.bool_()),
            }
        ),
    )
    bench.execute(
        r"""create temp table named as
        select entity, trim(regexp_replace(label, '[\x00-\x20\x7f]+', ' ', 'g')) as name from labels where name != ''"""
    )
    parts = GRANULARITIES.index(granularity)
    rest = "".join(r"-\d\d" for _ in range(parts))
    bench.execute(
        rf"""create or replace temp macro cut(t) as case when regexp_matches(t, '^[+-]?\d+{rest}') then
            case when starts_with(t, '-') then '-' else '' end
            || format('{{:04d}}', regexp_extract(t, '^[+-]?(\d+)', 1)::bigint)
            || regexp_extract(t, '^[+-]?\d+({rest})', 1) end"""
    )
    bench.execute(r"create or replace temp macro is_zero(t) as coalesce(regexp_matches(t, '^[+-]?0+(-|$)'), false)")
    reserved = rf"'[{OPEN}{CLOSE}\x{{E000}}-\x{{E0FF}}]|{re.escape(SLOT)}'"
    bench.execute(
        f"""create temp table placed as
        with said as (
            select fact_id, relation, point, subject, object, cut("start") as s, cut("end") as e,
                coalesce(a.name, subject) as subject_name, coalesce(b.name, object) as object_name,
                a.name is null as subject_unnamed, b.name is null as object_unnamed,
                case when object is null then 'values'
                     when "start" is null and "end" is null then 'without times'
                     when is_zero("start") or is_zero("end") then 'year 0'
                     when coalesce(time_key("start", 0) > time_key("end", 99), false) then 'end before start'
                     when not point and "start" is null then 'without start'
                     when not point and "end" is null then 'without end'
                     when "start" is not null and s is null or "end" is not null and e is null then 'coarse'
                     when point and s != e then 'two times'
                     when regexp_matches(concat_ws(' ', subject, object, subject_name, object_name), {reserved})
                        then 'reserved'
                end as reason
            from given join relations using (predicate)
            left join named a on a.entity = subject left join named b on b.entity = object
        ) select * exclude (s, e), coalesce(reason in ('year 0', 'end before start'), false) as wrong,
            case when wrong then null when point then coalesce(s, e) else s end as "start",
            case when wrong then null when point then coalesce(e, s) else e end as "end"
        from said"""
    )
    bench.execute(
        """create temp table kept as select * from placed where reason is null
        qualify row_number() over (partition by relation, subject, object, "start", "end" order by fact_id) = 1"""
    )


def _counts(bench: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many facts there were, were kept, and left out for each reason; and what is odd about those kept."""
    reasons = dict(
        bench.execute("select reason, count(*) from placed where reason is not null group by all").fetchall()
    )
    total, usable, kept, early = bench.execute(
        """select (select count(*) from placed), (select count(*) from placed where reason is null), count(*),
            count(*) filter (starts_with("start", '-') or starts_with("start", '0')) from kept"""
    ).fetchall()[0]
    shared, unnamed = bench.execute(
        """with entities as (
            select subject as entity, subject_name as name, subject_unnamed as unnamed from kept
            union select object, object_name, object_unnamed from kept
        ), names as (select name, count(*) as n from entities group by name)
        select (select count(*) from names where n > 1), count(*) filter (unnamed) from entities"""
    ).fetchall()[0]
    left_out = {name: int(reasons.get(name, 0)) for name in _LEFT_OUT}
    odd = {"merged": usable - kept, "early": early, "shared names": shared, "unnamed": unnamed}
    return {"facts": total, "kept": kept, **left_out, **odd}


def _remarks(counts: Mapping[str, int], granularity: str, unworded: Iterable[str]) -> Iterator[str]:
    for name, why in _LEFT_OUT.items():
        if counts[name]:
            have = "fact has" if counts[name] == 1 else "facts have"
            yield f"{counts[name]:,} {have} {why.format(granularity=granularity)}: left out."
    if counts["merged"]:
        yield f"{_many(counts['merged'], 'fact')} the same as another one when seen by the {granularity}: taken once."
    if counts["early"]:
        yield f"{_many(counts['early'], 'fact')} from before the year 1000: kept, written as AD 476 or 44 BC."
    if counts["shared names"]:
        yield (
            f"{_many(counts['shared names'], 'name')} shared by several entities: whoever a sentence may mean is a "
            "right answer."
        )
    if counts["unnamed"]:
        entities = "entity has" if counts["unnamed"] == 1 else "entities have"
        yield f"{counts['unnamed']:,} {entities} no name: called by the id."
    names = list(unworded)
    if names:
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield f"{_many(len(names), 'relation')} worded by the label of the predicate alone: {shown}."


def _many(count: int, what: str) -> str:
    return f"One {what} is" if count == 1 else f"{count:,} {what}s are"


def _symbols(bench: duckdb.DuckDBPyConnection) -> pa.Table:
    """Entities by id, then times in their order; refuses an entity that is called as a time is."""
    entities = bench.sql(
        """select subject as symbol, subject_name as name, 'entity' as kind from kept
        union select object, object_name, 'entity' from kept order by symbol"""
    ).to_arrow_table()
    times = [
        row[0]
        for row in bench.execute(
            """select t from (select "start" as t from kept union select "end" from kept) order by time_key(t, 0)"""
        ).fetchall()
    ]
    symbols = [f"@{time}" for time in times]
    clash = sorted(set(symbols) & set(entities["symbol"].to_pylist()))
    if clash:
        raise InputError(f"the entity {clash[0]!r} has the id that stands for a time; give it another id")
    written = pa.table(
        {"symbol": symbols, "name": [time_name(time) for time in times], "kind": ["time"] * len(times)},
        schema=SYMBOLS.schema,
    )
    return validate(SYMBOLS, pa.concat_tables([entities.cast(SYMBOLS.schema), written]))


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]
