"""Conclusions from numbers back to facts: texts, ids and proofs looked up by number and written into the store.

Relationally in every engine; where DuckDB's numbers fit into memory, by arrays, which is several times faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.knowledge.database import FACT_COLUMNS
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.engines.relational_engine import Tables

MOST_IN_MEMORY = 8_000_000
"""Facts and terms that are turned into texts by arrays: some 60 bytes each."""
_ID_LENGTH = 22
_ROWS_AT_ONCE = 983_040  # Whole row groups of DuckDB: else they are written a second time at the end.
_BATCH = 61_440  # Several batches at once are written by several threads.
Numbers = NDArray[np.int64]


def store_conclusions(
    connection: duckdb.DuckDBPyConnection,
    tables: Tables,
    rules: Sequence[str],
    premises: Sequence[str],
    *,
    timed: bool,
) -> None:
    """Write what was inferred into the table of facts, with rule and premises; ``rules`` names the numbers."""
    if isinstance(tables, DuckTables) and tables.count("facts_now") + tables.count("terms") <= MOST_IN_MEMORY:
        _store_by_arrays(connection, rules, premises, timed=timed)
        return
    make_conclusions(tables, rules, premises, timed=timed)
    tables.run_in_duckdb("conclusions", connection, f"insert into facts select {FACT_COLUMNS} from {{rows}}")


def make_conclusions(tables: Tables, rules: Sequence[str], premises: Sequence[str], *, timed: bool) -> None:
    """Make a table of the conclusions as facts, and ``ids`` of all facts' ids."""
    named = " ".join(f"when {code} then '{name}'" for code, name in enumerate(rules, 1))
    joins, times, starts, ends = "", "',null,null'", "cast(null as varchar)", "cast(null as varchar)"
    if timed:
        # Texts as they stand in the premises: a conclusion's times are always some premise's.
        for table, column, missing in (("start_texts", '"start"', 0), ("end_texts", '"end"', 99)):
            tables.make(
                table,
                f"select time_key({column}, {missing}) as moment, min({column}) as text from facts "
                f"where {column} is not null group by time_key({column}, {missing})",
            )
        joins = "left join start_texts a on a.moment = f.a left join end_texts b on b.moment = f.b"
        starts, ends = "a.text", "b.text"
        times = "concat(',', coalesce(json_text(a.text), 'null'), ',', coalesce(json_text(b.text), 'null'))"
    object = "case when f.o > 0 then o.quoted || ',null,null' else l.quoted end"
    tables.make(
        "worded_conclusions",
        f"""select f.n, 'f_' || left(sha256(concat('[', s.quoted, ',', p.quoted, ',', {object}, {times}, ']')), 20)
            as fact_id, s.term as subject, p.term as predicate, coalesce(o.term, l.object) as object, l.value, l.unit,
            {starts} as "start", {ends} as "end", d.domain, 'inferred' as source, case f.r {named} end as rule,
            {", ".join(f"f.{name}" for name in premises)}
        from facts_now f join terms s on s.id = f.s join terms p on p.id = f.p left join terms o on o.id = f.o
        left join literals l on l.id = f.o left join domains d on d.id = f.d {joins} where f.r != 0""",
    )
    tables.add("ids", "select n, fact_id from worded_conclusions")
    known = " ".join(f"left join ids i_{name} on i_{name}.n = c.{name}" for name in premises)
    listed = ", ".join(f"i_{name}.fact_id" for name in premises)
    tables.make(
        "conclusions",
        f"""select c.fact_id, c.subject, c.predicate, c.object, c.value, c.unit, c."start", c."end", c.domain,
            c.source, c.rule, list_filter([{listed}], lambda x: x is not null) as premises
        from worded_conclusions c {known}""",
    )
    tables.drop("worded_conclusions")


def _store_by_arrays(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[str], premises: Sequence[str], *, timed: bool
) -> None:
    """The same from arrays. A premise comes before what follows from it, so ids are there when they are needed."""
    texts = _Texts(connection, rules, timed)
    stated = connection.sql("select fact_id from ids order by n").to_arrow_table()["fact_id"]
    [(last,)] = connection.execute("select coalesce(max(n), 0) from facts_now").fetchall()
    ids = np.zeros(int(last) + 1, dtype=f"S{_ID_LENGTH}")
    ids[1 : len(stated) + 1] = _fixed(stated)
    times = ["a", "b"] if timed else []
    wanted = ", ".join(["n", "s", "p", "o", "coalesce(d, 0) as d", "r", *times])
    proofs = ", ".join(f"coalesce({name}, 0) as {name}" for name in premises)
    for first in range(len(stated) + 1, int(last) + 1, _ROWS_AT_ONCE):
        rows = connection.sql(
            f"select {wanted}, {proofs} from facts_now where n between {first} and {first + _ROWS_AT_ONCE - 1} "
            "and r != 0"
        ).to_arrow_table()
        found = {name: rows[name].to_numpy().astype(np.int64) for name in rows.column_names}
        connection.register("chunk", pa.table(texts.hashed(found)))
        named = connection.sql(f"select n, {texts.fact_id} as fact_id from chunk").to_arrow_table()
        ids[named["n"].to_numpy()] = _fixed(named["fact_id"])
        matrix = np.stack([found[name] for name in premises], axis=1)
        columns = texts.worded(found) | {
            "fact_id": _strings(ids[found["n"]]),
            "premises": _lists(ids, matrix),
        }
        table = pa.table({name: columns[name] for name in FACT_COLUMNS.replace('"', "").split(", ")})
        connection.register("chunk", pa.Table.from_batches(list(_batches(table))))
        connection.execute(f"insert into facts select {FACT_COLUMNS} from chunk")
    connection.execute("create or replace temp table ids (n integer, fact_id varchar)")
    everything = pa.table({"n": pa.array(np.arange(1, len(ids), dtype=np.int32)), "fact_id": _strings(ids[1:])})
    connection.register("chunk", pa.Table.from_batches(list(_batches(everything))))
    connection.execute("insert into ids select * from chunk where fact_id != ''")
    connection.unregister("chunk")


class _Texts:
    """The texts that numbers stand for: of terms and literals, domains, rules and times."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rules: Sequence[str], timed: bool) -> None:
        terms = connection.sql("select term, quoted from terms order by id").to_arrow_table().combine_chunks()
        literals = connection.sql("select * from literals order by id desc").to_arrow_table().combine_chunks()
        domains = connection.sql("select domain from domains order by id").to_arrow_table().combine_chunks()
        self.count = len(terms)
        self.literals = literals
        self.terms, self.quoted = _one(terms["term"]), _one(terms["quoted"])
        self.domains = _one(domains["domain"])
        self.rules = pa.array(rules, pa.string())
        self.timed = timed
        self.keys: dict[str, Numbers] = {}
        self.times: dict[str, pa.Array] = {}
        if timed:
            # Texts as they stand in the premises: a conclusion's times are always some premise's.
            for name, column, missing in (("a", '"start"', 0), ("b", '"end"', 99)):
                found = connection.sql(
                    f"select time_key({column}, {missing}) as key, min({column}) as text from facts "
                    f"where {column} is not null group by key order by key"
                ).to_arrow_table()
                self.keys[name] = found["key"].to_numpy().astype(np.int64)
                self.times[name] = _one(found["text"])

    @property
    def fact_id(self) -> str:
        """SQL for the id of a hashed row: what foundation.tables.fact_id hashes, from texts that were quoted once."""
        times = "concat(',', coalesce(to_json(a)::varchar, 'null'), ',', coalesce(to_json(b)::varchar, 'null'), ']')"
        # Without literals an object has neither value nor unit.
        rest = ("" if len(self.literals) else "',null,null', ") + (times if self.timed else "',null,null]'")
        return f"'f_' || left(sha256(concat('[', s, ',', p, ',', o, {rest})), 20)"

    def hashed(self, found: dict[str, Numbers]) -> dict[str, Any]:
        """What is hashed for the ids of some conclusions."""
        if len(self.literals):
            of_terms = pc.binary_join_element_wise(self.quoted, "null", "null", ",")
            everything = pa.concat_arrays([of_terms, _one(self.literals["quoted"])])
            objects = everything.take(pa.array(self._place(found["o"])))
        else:
            objects = _looked_up(found["o"], self.quoted)
        columns: dict[str, Any] = {
            "n": found["n"],
            "s": _looked_up(found["s"], self.quoted),
            "p": _looked_up(found["p"], self.quoted),
            "o": objects,
        }
        return columns | {name: self._time(name, found[name]) for name in self.times}

    def worded(self, found: dict[str, Numbers]) -> dict[str, Any]:
        """The columns of some conclusions but for ids and premises."""
        size = len(found["n"])
        nothing = pa.nulls(size, pa.string())
        columns: dict[str, Any] = {
            "subject": _looked_up(found["s"], self.terms),
            "predicate": _looked_up(found["p"], self.terms),
            "object": _looked_up(found["o"], self.terms),
            "value": pa.nulls(size, pa.float64()),
            "unit": nothing,
            "start": self._time("a", found["a"]) if self.timed else nothing,
            "end": self._time("b", found["b"]) if self.timed else nothing,
            "domain": _looked_up(found["d"], self.domains),
            "source": pa.repeat(pa.scalar("inferred"), size),
            "rule": _looked_up(found["r"], self.rules),
        }
        if len(self.literals):
            place = pa.array(self._place(found["o"]))
            for name, of_terms in (("object", self.terms), ("value", None), ("unit", None)):
                own = _one(self.literals[name])
                first = of_terms if of_terms is not None else pa.nulls(self.count, own.type)
                columns[name] = pa.concat_arrays([first, own]).take(place)
        return columns

    def _place(self, objects: Numbers) -> Numbers:
        """Where an object's text stands among those of all terms, then all literals."""
        places: Numbers = np.where(objects > 0, objects, self.count - objects) - 1
        return places

    def _time(self, name: str, keys: Numbers) -> pa.Array:
        known = self.keys[name]
        if not len(known):
            return pa.nulls(len(keys), pa.string())
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return self.times[name].take(pa.array(place, mask=known[place] != keys))


def _looked_up(numbers: Numbers, texts: pa.Array) -> pa.Array:
    """Texts by numbers from 1 on, 0 for none, without copying them."""
    if not len(texts):
        return pa.nulls(len(numbers), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.maximum(numbers, 1) - 1, pa.int32(), mask=numbers < 1), texts)


def _lists(ids: NDArray[np.bytes_], matrix: Numbers) -> pa.Array:
    given = matrix > 0
    offsets = np.concatenate([[0], np.cumsum(given.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _strings(ids[matrix[given]]))


def _fixed(texts: pa.ChunkedArray) -> NDArray[np.bytes_]:
    """Ids as an array of bytes of one width."""
    array = _one(texts)
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    if not len(array):
        return np.empty(0, dtype=f"S{_ID_LENGTH}")
    content = array.buffers()[2][int(offsets[0]) : int(offsets[-1])]
    return np.frombuffer(content, dtype=f"S{_ID_LENGTH}")


def _strings(ids: NDArray[np.bytes_]) -> pa.Array:
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * _ID_LENGTH
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(ids)))


def _one(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.combine_chunks().to_batches(max_chunksize=_BATCH)
