"""Encoding of facts as integers, on which the rules operate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from merkhet.knowledge.engines.relational_engine import Tables

FIRST, LAST = -(10**15), 10**15
"""The start and end of facts without times: earlier and later than every date."""


def number_facts(tables: Tables, constants: Iterable[str], premises: Sequence[str]) -> bool:
    """Encode the stated facts as the table ``facts_now``; the tables ``terms``, ``literals`` and ``domains`` decode it.

    Numbers follow the order of fact ids and of hashed terms, so the same facts give the same proofs on every machine.
    ``terms`` and ``literals`` also contain the JSON text that is hashed for fact ids.

    Args:
        tables: The engine that has the table ``facts``.
        constants: Terms that get a number even if no fact contains them.
        premises: The names of the premise columns, which are null for stated facts.

    Returns:
        Whether any fact has a time.
    """
    _number_literals(tables)
    literals = tables.count("literals")
    tables.load("constants", pa.table({"term": pa.array(sorted(set(constants)), pa.string())}))
    tables.number_rows(
        "numbered_terms",
        "select subject as term from facts union select predicate as term from facts "
        "union select object as term from facts where object is not null and not is_literal(object) "
        "union select term from constants",
        ["md5(term)", "term"],
        spread="left(md5(term), 2)",
    )
    tables.make("terms", "select n as id, term, json_text(term) as quoted from numbered_terms")
    tables.drop("numbered_terms")
    tables.number_rows("numbered_domains", "select distinct domain from facts where domain is not null", ["domain"])
    tables.make("domains", "select n as id, domain from numbered_domains")
    timed = tables.count('facts where "start" is not null or "end" is not null') > 0
    times = (
        f'coalesce(time_key("start", 0), {FIRST}) as a, coalesce(time_key("end", 99), {LAST}) as b, ' if timed else ""
    )
    empty = ", ".join(f"cast(null as {tables.number}) as {name}" for name in premises)
    tables.number_rows("ids", "select fact_id from facts", ["fact_id"], spread="left(fact_id, 4)")
    object = "coalesce(l.id, o.id)" if literals else "o.id"
    objects = (
        "left join terms o on o.term = f.object left join literals l on l.object is not distinct from f.object "
        "and l.value is not distinct from f.value and l.unit is not distinct from f.unit "
        if literals
        else "join terms o on o.term = f.object "
    )
    tables.make(
        "facts_now",
        f"select i.n, s.id as s, p.id as p, {object} as o, {times}d.id as d, "
        f"0 as g, 0::tinyint as r, {empty} from facts f "
        "join ids i on i.fact_id = f.fact_id join terms s on s.term = f.subject join terms p on p.term = f.predicate "
        f"{objects} left join domains d on d.domain = f.domain",
    )
    return timed


def _number_literals(tables: Tables) -> None:
    tables.map_batches(
        "number_texts",
        "select distinct value from facts where value is not null",
        lambda batch: batch.append_column("text", pa.array(map(repr, batch["value"].to_pylist()), pa.string())),
    )
    tables.number_rows(
        "numbered_literals",
        "select distinct object, value, unit from facts where value is not null or is_literal(object)",
        ["md5(coalesce(object, ''))", "object", "value", "unit"],
        spread="left(md5(coalesce(object, '')), 2)",
    )
    tables.make(
        "literals",
        f"select (-l.n)::{tables.number} as id, l.object, l.value, l.unit, "
        "coalesce(json_text(l.object), 'null') || ',' || coalesce(t.text, 'null') || ',' || "
        "coalesce(json_text(l.unit), 'null') as quoted "
        "from numbered_literals l left join number_texts t on t.value = l.value",
    )
    tables.drop("numbered_literals")


def term_numbers(tables: Tables, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of the terms in ``names``; terms without a number are missing."""
    tables.load("selected_terms", pa.table({"term": pa.array(sorted(set(names)), pa.string())}))
    rows = tables.rows("select t.term, t.id from terms t join selected_terms w on w.term = t.term")
    return {str(term): int(number) for term, number in rows}


def latest_start(start: str) -> str:
    """Return SQL for the latest possible start date: the last day of a year or month without a day."""
    return f"{start} + case when {start} % 10000 = 0 then 9999 when {start} % 100 = 0 then 99 else 0 end"


def earliest_end(end: str) -> str:
    """Return SQL for the earliest possible end date: the first day of a year or month without a day."""
    # Years BC are negative, and their remainders would be negative too.
    of_year, of_month = f"({end} % 10000 + 10000) % 10000", f"({end} % 100 + 100) % 100"
    return f"{end} - case when {of_year} = 9999 then 9999 when {of_month} = 99 then 99 else 0 end"
