"""Decoding of conclusions from integers to facts, and their storage in the knowledge base.

Every engine can decode by SQL joins. With DuckDB, NumPy arrays are several times faster if all numbers fit in memory.
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
from merkhet.knowledge.memory_limit import current_share

MAX_IN_MEMORY = 8_000_000
"""The maximum number of facts and terms for arrays, without a memory limit."""
_BYTES_EACH = 160
"""Memory that arrays need for each fact and term."""
_ID_LENGTH = 22
_CHUNK_ROWS = 983_040  # A multiple of DuckDB's row group size; partial row groups would be written twice.
_BATCH_ROWS = 61_440  # Several threads write several batches at once.
Numbers = NDArray[np.int64]


def store_conclusions(
    connection: duckdb.DuckDBPyConnection,
    tables: Tables,
    rules: Sequence[str],
    premises: Sequence[str],
    *,
    timed: bool,
) -> None:
    """Insert the conclusions into the table ``facts``, with their rules and premises.

    Args:
        connection: The connection to the knowledge base.
        tables: The engine that has the encoded facts.
        rules: The names of the rules; the first rule has code 1.
        premises: The names of the premise columns.
        timed: Whether any fact has a time.
    """
    share = current_share()
    most = MAX_IN_MEMORY if share is None else min(MAX_IN_MEMORY, share // 2 // _BYTES_EACH)
    if isinstance(tables, DuckTables) and tables.count("facts_now") + tables.count("terms") <= most:
        _store_from_arrays(connection, rules, premises, timed=timed)
        return
    make_conclusions(tables, rules, premises, timed=timed)
    tables.run_in_duckdb("conclusions", connection, f"insert into facts select {FACT_COLUMNS} from {{rows}}")


def make_conclusions(tables: Tables, rules: Sequence[str], premises: Sequence[str], *, timed: bool) -> None:
    """Create the table ``conclusions`` of decoded facts, and add their ids to the table ``ids``."""
    rule_cases = " ".join(f"when {code} then '{name}'" for code, name in enumerate(rules, 1))
    joins, times, starts, ends = "", "',null,null'", "cast(null as varchar)", "cast(null as varchar)"
    if timed:
        # A time of a conclusion is always that of a premise, so its text is among theirs.
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
        "decoded_conclusions",
        f"""select f.n, 'f_' || left(sha256(concat('[', s.quoted, ',', p.quoted, ',', {object}, {times}, ']')), 20)
            as fact_id, s.term as subject, p.term as predicate, coalesce(o.term, l.object) as object, l.value, l.unit,
            {starts} as "start", {ends} as "end", d.domain, 'inferred' as source, case f.r {rule_cases} end as rule,
            {", ".join(f"f.{name}" for name in premises)}
        from facts_now f join terms s on s.id = f.s join terms p on p.id = f.p left join terms o on o.id = f.o
        left join literals l on l.id = f.o left join domains d on d.id = f.d {joins} where f.r != 0""",
    )
    tables.add("ids", "select n, fact_id from decoded_conclusions")
    premise_joins = " ".join(f"left join ids i_{name} on i_{name}.n = c.{name}" for name in premises)
    premise_ids = ", ".join(f"i_{name}.fact_id" for name in premises)
    tables.make(
        "conclusions",
        f"""select c.fact_id, c.subject, c.predicate, c.object, c.value, c.unit, c."start", c."end", c.domain,
            c.source, c.rule, list_filter([{premise_ids}], lambda x: x is not null) as premises
        from decoded_conclusions c {premise_joins}""",
    )
    tables.drop("decoded_conclusions")


def _store_from_arrays(
    connection: duckdb.DuckDBPyConnection, rules: Sequence[str], premises: Sequence[str], *, timed: bool
) -> None:
    """Decode the conclusions with arrays and insert them into the table ``facts``.

    Conclusions are decoded in order of number: premises come first, so their ids are known.
    """
    texts = _TextLookup(connection, rules, timed)
    stated = connection.sql("select fact_id from ids order by n").to_arrow_table()["fact_id"]
    [(last,)] = connection.execute("select coalesce(max(n), 0) from facts_now").fetchall()
    ids = np.zeros(int(last) + 1, dtype=f"S{_ID_LENGTH}")
    ids[1 : len(stated) + 1] = _to_fixed_width(stated)
    times = ["a", "b"] if timed else []
    columns_sql = ", ".join(["n", "s", "p", "o", "coalesce(d, 0) as d", "r", *times])
    premises_sql = ", ".join(f"coalesce({name}, 0) as {name}" for name in premises)
    for first in range(len(stated) + 1, int(last) + 1, _CHUNK_ROWS):
        rows = connection.sql(
            f"select {columns_sql}, {premises_sql} from facts_now "
            f"where n between {first} and {first + _CHUNK_ROWS - 1} and r != 0"
        ).to_arrow_table()
        numbers = {name: rows[name].to_numpy().astype(np.int64) for name in rows.column_names}
        connection.register("chunk", pa.table(texts.hash_columns(numbers)))
        identified = connection.sql(f"select n, {texts.fact_id} as fact_id from chunk").to_arrow_table()
        ids[identified["n"].to_numpy()] = _to_fixed_width(identified["fact_id"])
        matrix = np.stack([numbers[name] for name in premises], axis=1)
        columns = texts.fact_columns(numbers) | {
            "fact_id": _to_strings(ids[numbers["n"]]),
            "premises": _premise_lists(ids, matrix),
        }
        table = pa.table({name: columns[name] for name in FACT_COLUMNS.replace('"', "").split(", ")})
        connection.register("chunk", pa.Table.from_batches(list(_batches(table))))
        connection.execute(f"insert into facts select {FACT_COLUMNS} from chunk")
    connection.execute("create or replace temp table ids (n integer, fact_id varchar)")
    all_ids = pa.table({"n": pa.array(np.arange(1, len(ids), dtype=np.int32)), "fact_id": _to_strings(ids[1:])})
    connection.register("chunk", pa.Table.from_batches(list(_batches(all_ids))))
    connection.execute("insert into ids select * from chunk where fact_id != ''")
    connection.unregister("chunk")


class _TextLookup:
    """A lookup of the texts for encoded terms, literals, domains, rules and times."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rules: Sequence[str], timed: bool) -> None:
        terms = connection.sql("select term, quoted from terms order by id").to_arrow_table().combine_chunks()
        literals = connection.sql("select * from literals order by id desc").to_arrow_table().combine_chunks()
        domains = connection.sql("select domain from domains order by id").to_arrow_table().combine_chunks()
        self.term_count = len(terms)
        self.literals = literals
        self.terms, self.quoted = _combine(terms["term"]), _combine(terms["quoted"])
        self.domains = _combine(domains["domain"])
        self.rules = pa.array(rules, pa.string())
        self.timed = timed
        self.keys: dict[str, Numbers] = {}
        self.times: dict[str, pa.Array] = {}
        if timed:
            # A time of a conclusion is always that of a premise, so its text is among theirs.
            for name, column, missing in (("a", '"start"', 0), ("b", '"end"', 99)):
                times = connection.sql(
                    f"select time_key({column}, {missing}) as key, min({column}) as text from facts "
                    f"where {column} is not null group by key order by key"
                ).to_arrow_table()
                self.keys[name] = times["key"].to_numpy().astype(np.int64)
                self.times[name] = _combine(times["text"])

    @property
    def fact_id(self) -> str:
        """SQL expression for the fact id of a row of ``hash_columns``; it equals ``core.schemas.fact_id``."""
        times = "concat(',', coalesce(to_json(a)::varchar, 'null'), ',', coalesce(to_json(b)::varchar, 'null'), ']')"
        # Without literals an object has neither value nor unit.
        rest = ("" if len(self.literals) else "',null,null', ") + (times if self.timed else "',null,null]'")
        return f"'f_' || left(sha256(concat('[', s, ',', p, ',', o, {rest})), 20)"

    def hash_columns(self, numbers: dict[str, Numbers]) -> dict[str, Any]:
        """Return the text columns that are hashed for the ids of conclusions."""
        if len(self.literals):
            of_terms = pc.binary_join_element_wise(self.quoted, "null", "null", ",")
            all_objects = pa.concat_arrays([of_terms, _combine(self.literals["quoted"])])
            objects = all_objects.take(pa.array(self._object_positions(numbers["o"])))
        else:
            objects = _dictionary_array(numbers["o"], self.quoted)
        columns: dict[str, Any] = {
            "n": numbers["n"],
            "s": _dictionary_array(numbers["s"], self.quoted),
            "p": _dictionary_array(numbers["p"], self.quoted),
            "o": objects,
        }
        return columns | {name: self._time(name, numbers[name]) for name in self.times}

    def fact_columns(self, numbers: dict[str, Numbers]) -> dict[str, Any]:
        """Return the decoded columns of conclusions, except ids and premises."""
        size = len(numbers["n"])
        nulls = pa.nulls(size, pa.string())
        columns: dict[str, Any] = {
            "subject": _dictionary_array(numbers["s"], self.terms),
            "predicate": _dictionary_array(numbers["p"], self.terms),
            "object": _dictionary_array(numbers["o"], self.terms),
            "value": pa.nulls(size, pa.float64()),
            "unit": nulls,
            "start": self._time("a", numbers["a"]) if self.timed else nulls,
            "end": self._time("b", numbers["b"]) if self.timed else nulls,
            "domain": _dictionary_array(numbers["d"], self.domains),
            "source": pa.repeat(pa.scalar("inferred"), size),
            "rule": _dictionary_array(numbers["r"], self.rules),
        }
        if len(self.literals):
            positions = pa.array(self._object_positions(numbers["o"]))
            for name, of_terms in (("object", self.terms), ("value", None), ("unit", None)):
                literal_column = _combine(self.literals[name])
                term_column = of_terms if of_terms is not None else pa.nulls(self.term_count, literal_column.type)
                columns[name] = pa.concat_arrays([term_column, literal_column]).take(positions)
        return columns

    def _object_positions(self, objects: Numbers) -> Numbers:
        """Return the positions of objects in the list of all terms followed by all literals."""
        positions: Numbers = np.where(objects > 0, objects, self.term_count - objects) - 1
        return positions

    def _time(self, name: str, keys: Numbers) -> pa.Array:
        known = self.keys[name]
        if not len(known):
            return pa.nulls(len(keys), pa.string())
        positions = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return self.times[name].take(pa.array(positions, mask=known[positions] != keys))


def _dictionary_array(numbers: Numbers, texts: pa.Array) -> pa.Array:
    """Look up texts by number without copying; number 1 is the first text, 0 is null."""
    if not len(texts):
        return pa.nulls(len(numbers), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.maximum(numbers, 1) - 1, pa.int32(), mask=numbers < 1), texts)


def _premise_lists(ids: NDArray[np.bytes_], matrix: Numbers) -> pa.Array:
    present = matrix > 0
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _to_strings(ids[matrix[present]]))


def _to_fixed_width(texts: pa.ChunkedArray) -> NDArray[np.bytes_]:
    """Convert fact ids to an array of byte strings of equal length."""
    array = _combine(texts)
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    if not len(array):
        return np.empty(0, dtype=f"S{_ID_LENGTH}")
    content = array.buffers()[2][int(offsets[0]) : int(offsets[-1])]
    return np.frombuffer(content, dtype=f"S{_ID_LENGTH}")


def _to_strings(ids: NDArray[np.bytes_]) -> pa.Array:
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * _ID_LENGTH
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(ids)))


def _combine(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
