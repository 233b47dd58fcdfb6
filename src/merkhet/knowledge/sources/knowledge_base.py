"""Another knowledge base as a source: its facts with their proofs, names and details."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from merkhet.knowledge.chunk import Material, Predicate
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, connected
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, Reading


def read_store(place: Path, reading: Reading) -> Iterator[Material]:
    """All that a store holds, or what the filters ask for."""
    reading.knows()
    wanted = "where list_contains($wanted, predicate)" if reading.predicates else ""
    spoken = "where list_contains($wanted, language)" if reading.languages else ""
    with connected(place, read_only=True) as connection:
        declared = connection.execute('select name, label, functional, "symmetric" from predicates').fetchall()
        yield Material(predicates={row[0]: Predicate(*row) for row in declared})
        values = {"wanted": list(reading.predicates)} if wanted else {}
        query = f"select {FACT_COLUMNS} from facts {wanted}"
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Material(facts=_table(batch))
        values = {"wanted": list(reading.languages)} if spoken else {}
        for batch in connection.sql(
            f"select {NAME_COLUMNS} from names {spoken}", params=values or None
        ).to_arrow_reader(ROWS_IN_CHUNK):
            yield Material(names=_table(batch))
        query = (
            'select subject, predicate, object, value, unit, "start", "end", details.name, details.text '
            f"from details join facts using (fact_id) {wanted}"
        )
        values = {"wanted": list(reading.predicates)} if wanted else {}
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Material(details=_table(batch))


def _table(batch: object) -> object:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
