"""Another knowledge base as a source: its facts with their proofs, names and details."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from merkhet.knowledge.chunk import Chunk, Predicate
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, open_database
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext


def read_store(place: Path, context: ReadContext) -> Iterator[Chunk]:
    """All that a store holds, or what the filters ask for."""
    context.check_options()
    wanted = "where list_contains($wanted, predicate)" if context.predicates else ""
    spoken = "where list_contains($wanted, language)" if context.languages else ""
    with open_database(place, read_only=True) as connection:
        declared = connection.execute('select name, label, functional, "symmetric" from predicates').fetchall()
        yield Chunk(predicates={row[0]: Predicate(*row) for row in declared})
        values = {"wanted": list(context.predicates)} if wanted else {}
        query = f"select {FACT_COLUMNS} from facts {wanted}"
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(facts=_table(batch))
        values = {"wanted": list(context.languages)} if spoken else {}
        for batch in connection.sql(
            f"select {NAME_COLUMNS} from names {spoken}", params=values or None
        ).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(names=_table(batch))
        query = (
            'select subject, predicate, object, value, unit, "start", "end", details.name, details.text '
            f"from details join facts using (fact_id) {wanted}"
        )
        values = {"wanted": list(context.predicates)} if wanted else {}
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(details=_table(batch))


def _table(batch: object) -> object:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
