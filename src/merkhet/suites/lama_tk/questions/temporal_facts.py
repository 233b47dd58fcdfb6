"""Temporal facts of a knowledge base at one granularity, without duplicates, and their symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.dates import format_date
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.recall_schemas import SYMBOLS
from merkhet.core.schemas import validate
from merkhet.knowledge.database import define_macros
from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.losses import Loss
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings

GRANULARITIES = ("year", "month", "day")
OPEN, CLOSE = "⟦", "⟧"
"""Brackets around a symbol in a sentence."""
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
    "year 0": "a time in the year 0, which does not exist",
    "end before start": "an end before their start",
    "without start": "no start",
    "without end": "no end",
    "coarse": "a time that is coarser than a {granularity}",
    "two times": "two times, but their relation allows one",
    "reserved": f"a name or an id with {SLOT}, {OPEN} or {CLOSE} in it",
}
"""Reasons for which facts are skipped, by the name of the count."""


@dataclass(frozen=True)
class TemporalFacts:
    """Distinct facts with times."""

    table: pa.Table
    """Facts with ``start`` and ``end`` at the granularity ("2009", "-0044"); a point in time has equal ones."""
    symbols: pa.Table
    """Symbols of all temporal facts of the knowledge base, even if ``table`` is a sample."""
    counts: Mapping[str, int]
    """Numbers of facts that were read, kept, and skipped for each reason."""
    remarks: tuple[str, ...]
    """Sentences that report the counts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the relations that have no wording."""
    left_out: tuple[Loss, ...] = ()
    """Facts that were skipped; the losses belong to every task."""
    all_facts: pa.Table | None = None
    """All facts, including those with an unknown time, which are needed to determine the order of facts."""


def extract_temporal_facts(
    knowledge: KnowledgeBase,
    *,
    granularity: str = "year",
    relations: Sequence[str] = (),
    language: str = "en",
    wordings: Wordings | None = None,
) -> TemporalFacts:
    """Extract the facts with times of a knowledge base.

    A fact is kept if its start and end are known at the granularity; for points in time, one time suffices. Facts that
    are equal at the granularity are merged. Entities are named by their label in ``language``, or by id without one.

    Args:
        relations: Names, predicates or labels of relations; empty for all.
        wordings: Wordings that assign predicates to relations. A predicate without a wording is a separate relation.

    Raises:
        InputError: The granularity or a relation is unknown, or no fact can be kept.
    """
    if granularity not in GRANULARITIES:
        raise InputError(f"unknown granularity {granularity!r}; {did_you_mean(granularity, GRANULARITIES)}")
    predicates = _find_predicates(knowledge, wordings or read_wordings(), relations, language)
    with open_workbench() as connection:
        _create_fact_tables(connection, knowledge, predicates, granularity, language)
        counts = _count_facts(connection)
        if not counts["kept"]:
            reasons = " ".join(_word_remarks(counts, granularity, ()))
            raise InputError(f"no fact of the knowledge base has times that can be asked about. {reasons}".strip())
        table = connection.sql(f"select {', '.join(_quoted(_FACTS.names))} from kept order by fact_id").to_arrow_table()
        all_facts = connection.sql(
            'select relation, subject, object, "start", "end", subject_name, object_name from placed order by all'
        ).to_arrow_table()
        symbols = _make_symbols(connection)
        left_out = tuple(_losses(connection, granularity))
        present = {row[0] for row in connection.execute("select distinct relation from kept").fetchall()}
    unworded = tuple(
        sorted(predicate.name for predicate in predicates if not predicate.worded and predicate.name in present)
    )
    counts = counts | {"unworded": len(unworded)}
    return TemporalFacts(
        table=table.cast(_FACTS),
        symbols=symbols,
        counts=counts,
        remarks=tuple(_word_remarks(counts, granularity, unworded)),
        left_out=left_out,
        labels={
            predicate.name: predicate.label
            for predicate in predicates
            if not predicate.worded and predicate.name in present
        },
        all_facts=all_facts,
    )


def sample_facts(facts: TemporalFacts, count: int | None, seed: int) -> TemporalFacts:
    """Sample ``count`` facts by seed and fact id.

    With the same seed, a larger sample contains the smaller ones. The symbols remain those of all facts. If there are
    fewer than ``count`` facts, all are returned with a remark.
    """
    if count is None or count == facts.table.num_rows:
        return facts
    if count < 1:
        raise InputError(f"the number of facts must be ≥ 1, got {count}")
    if count > facts.table.num_rows:
        return replace(facts, remarks=(*facts.remarks, shortage_remark(count, facts.table.num_rows)))
    with open_workbench(given=facts.table) as connection:
        table = connection.sql(
            f"select * from (from given order by {draw_sql(seed, 'fact_id')}, fact_id limit {count}) order by fact_id"
        ).to_arrow_table()
    return replace(facts, table=table)


def shortage_remark(requested: int, available: int, kind: str = "facts") -> str:
    """Return the remark that there are fewer facts than requested."""
    return f"{requested:,} {kind} were requested, but there are only {available:,}: all are used."


def draw_sql(seed: int, *parts: str) -> str:
    """Return SQL for a pseudorandom number in [0, 2^64) that depends on the seed and the SQL expressions ``parts``."""
    return f"md5_number_lower(concat_ws(chr(31), '{seed}', {', '.join(parts)}))"


@contextmanager
def open_workbench(**tables: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database with the given tables and the SQL macros for times."""
    with open_in_memory() as connection:
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


def _find_predicates(
    knowledge: KnowledgeBase, wordings: Wordings, relations: Sequence[str], language: str
) -> list[_Predicate]:
    """Find the predicates of the requested ``relations`` that have facts with times, and the relation of each."""
    declared = {name: predicate_info.label for name, predicate_info in knowledge.predicates.items()}
    timed = knowledge.connection.execute(
        """select predicate, min(label) from (
            select distinct predicate from facts where "start" is not null or "end" is not null
        ) left join names on entity = predicate and language = $language group by predicate order by predicate""",
        {"language": language},
    ).fetchall()
    predicates = []
    for predicate, entity_label in timed:
        label = entity_label or declared.get(predicate) or predicate
        wording = wordings.find(predicate, label)
        if wording is None:
            predicates.append(_Predicate(predicate, predicate, label, False, False))
        else:
            predicates.append(_Predicate(predicate, wording.name, label, wording.point, True))
    if not predicates:
        raise InputError("the knowledge base has no facts with times; give one with starts and ends")
    names = {
        text: predicate_info.name
        for predicate_info in predicates
        for text in (predicate_info.label, predicate_info.predicate, predicate_info.name)
    }
    requested = {_resolve_relation(name, names, wordings) for name in relations}
    return (
        [predicate_info for predicate_info in predicates if predicate_info.name in requested]
        if relations
        else predicates
    )


def _resolve_relation(requested: str, names: Mapping[str, str], wordings: Wordings) -> str:
    """Resolve a name, predicate or label to the name of a relation that has facts with times."""
    wording = wordings.find(requested)
    name = names.get(requested) or (names.get(wording.name) if wording else None)
    if name is None:
        raise InputError(
            f"no facts with times have the relation {requested!r}; {did_you_mean(requested, sorted(names))}"
        )
    return name


def _create_fact_tables(
    connection: duckdb.DuckDBPyConnection,
    knowledge: KnowledgeBase,
    predicates: Sequence[_Predicate],
    granularity: str,
    language: str,
) -> None:
    """Create the tables ``placed`` (all facts, with the reason why a fact is skipped) and ``kept``."""
    values = {"predicates": [predicate.predicate for predicate in predicates]}
    connection.register(
        "given",
        knowledge.query(
            'select fact_id, subject, predicate, object, "start", "end" from facts '
            "where list_contains($predicates, predicate)",
            values,
        ),
    )
    connection.register(
        "labels",
        knowledge.query(
            "select entity, min(label) as label from names where language = $language and entity in ("
            "select subject from facts where list_contains($predicates, predicate) union all "
            "select object from facts where list_contains($predicates, predicate)) group by entity",
            {**values, "language": language},
        ),
    )
    connection.register(
        "relations",
        pa.table(
            {
                "predicate": pa.array([predicate.predicate for predicate in predicates], pa.string()),
                "relation": pa.array([predicate.name for predicate in predicates], pa.string()),
                "point": pa.array([predicate.point for predicate in predicates], pa.bool_()),
            }
        ),
    )
    connection.execute(
        r"""create temp table named as
        select entity, trim(regexp_replace(label, '[\x00-\x20\x7f]+', ' ', 'g')) as name from labels where name != ''"""
    )
    parts = GRANULARITIES.index(granularity)
    rest = "".join(r"-\d\d" for _ in range(parts))
    connection.execute(
        rf"""create or replace temp macro cut(t) as case when regexp_matches(t, '^[+-]?\d+{rest}') then
            case when starts_with(t, '-') then '-' else '' end
            || format('{{:04d}}', regexp_extract(t, '^[+-]?(\d+)', 1)::bigint)
            || regexp_extract(t, '^[+-]?\d+({rest})', 1) end"""
    )
    connection.execute(
        r"create or replace temp macro is_zero(t) as coalesce(regexp_matches(t, '^[+-]?0+(-|$)'), false)"
    )
    reserved = rf"'[{OPEN}{CLOSE}\x{{E000}}-\x{{E0FF}}]|{re.escape(SLOT)}'"
    connection.execute(
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
    connection.execute(
        """create temp table kept as select * from placed where reason is null
        qualify row_number() over (partition by relation, subject, object, "start", "end" order by fact_id) = 1"""
    )


def _count_facts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Count the facts that were read, kept, and skipped for each reason, and special cases among the kept ones."""
    reasons = dict(
        connection.execute("select reason, count(*) from placed where reason is not null group by all").fetchall()
    )
    total, usable, kept, early = connection.execute(
        """select (select count(*) from placed), (select count(*) from placed where reason is null), count(*),
            count(*) filter (starts_with("start", '-') or starts_with("start", '0')) from kept"""
    ).fetchall()[0]
    shared, unnamed = connection.execute(
        """with entities as (
            select subject as entity, subject_name as name, subject_unnamed as unnamed from kept
            union select object, object_name, object_unnamed from kept
        ), names as (select name, count(*) as n from entities group by name)
        select (select count(*) from names where n > 1), count(*) filter (unnamed) from entities"""
    ).fetchall()[0]
    left_out = {name: int(reasons.get(name, 0)) for name in _LEFT_OUT}
    odd = {"merged": usable - kept, "early": early, "shared names": shared, "unnamed": unnamed}
    return {"facts": total, "kept": kept, **left_out, **odd}


def _losses(connection: duckdb.DuckDBPyConnection, granularity: str) -> Iterator[Loss]:
    """Yield the losses of facts that are skipped, or merged with another one, by relation and reason."""
    rows = connection.execute(
        """select relation, coalesce(reason, 'merged') as why, count(*), min(label), max(label) from (
            select *, coalesce(subject_name, subject) || ' – ' || coalesce(object_name, object, 'a number') as label
            from placed anti join kept using (fact_id)
        ) group by relation, why order by all"""
    ).fetchall()
    for relation, reason, count, *examples in rows:
        text = f"equal to another fact at the granularity {granularity}"
        if reason in _LEFT_OUT:
            text = f"the fact has {_LEFT_OUT[reason].format(granularity=granularity)}"
        yield Loss("", "facts", text, relation, count, tuple(dict.fromkeys(examples)))


def _word_remarks(counts: Mapping[str, int], granularity: str, unworded: Iterable[str]) -> Iterator[str]:
    for name, reason in _LEFT_OUT.items():
        if counts[name]:
            verb = "fact has" if counts[name] == 1 else "facts have"
            yield f"{counts[name]:,} {verb} {reason.format(granularity=granularity)}: left out."
    if counts["merged"]:
        merged = _count_phrase(counts["merged"], "fact")
        yield f"{merged} equal to another one at the granularity {granularity}: kept once."
    if counts["early"]:
        yield f"{_count_phrase(counts['early'], 'fact')} from before the year 1000: kept, written as AD 476 or 44 BC."
    if counts["shared names"]:
        yield (
            f"{_count_phrase(counts['shared names'], 'name')} shared by several entities: each "
            "entity that a sentence may mean is a right answer."
        )
    if counts["unnamed"]:
        entities = "entity has" if counts["unnamed"] == 1 else "entities have"
        yield f"{counts['unnamed']:,} {entities} no name: named by the id."
    names = list(unworded)
    if names:
        examples = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield f"{_count_phrase(len(names), 'relation')} worded by the label of the predicate alone: {examples}."


def _count_phrase(count: int, noun: str) -> str:
    return f"One {noun} is" if count == 1 else f"{count:,} {noun}s are"


def _make_symbols(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the table of symbols: entities ordered by id, then times in chronological order.

    Raises:
        InputError: An entity has the id of a time.
    """
    entities = connection.sql(
        """select subject as symbol, subject_name as name, 'entity' as kind from kept
        union select object, object_name, 'entity' from kept order by symbol"""
    ).to_arrow_table()
    times = [
        row[0]
        for row in connection.execute(
            """select t from (select "start" as t from kept union select "end" from kept) order by time_key(t, 0)"""
        ).fetchall()
    ]
    symbols = [f"@{time}" for time in times]
    clash = sorted(set(symbols) & set(entities["symbol"].to_pylist()))
    if clash:
        raise InputError(f"the entity id {clash[0]!r} is reserved for a time; give the entity another id")
    written = pa.table(
        {"symbol": symbols, "name": [format_date(time) for time in times], "kind": ["time"] * len(times)},
        schema=SYMBOLS.schema,
    )
    return validate(SYMBOLS, pa.concat_tables([entities.cast(SYMBOLS.schema), written]))


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]
