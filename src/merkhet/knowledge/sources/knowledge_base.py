"""A knowledge base as a source: facts with their proofs, names and details."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from merkhet.knowledge.chunk import Chunk, Predicate
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, open_database
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext


def read_store(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts, names and details of a store that pass the filters."""
    context.check_options()
    predicate_filter = "where list_contains($selected, predicate)" if context.predicates else ""
    language_filter = "where list_contains($selected, language)" if context.languages else ""
    with open_database(path, read_only=True) as connection:
        declared = connection.execute('select name, label, functional, "symmetric" from predicates').fetchall()
        yield Chunk(predicates={row[0]: Predicate(*row) for row in declared})
        values = {"selected": list(context.predicates)} if predicate_filter else {}
        query = f"select {FACT_COLUMNS} from facts {predicate_filter}"
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(facts=_table(batch))
        values = {"selected": list(context.languages)} if language_filter else {}
        for batch in connection.sql(
            f"select {NAME_COLUMNS} from names {language_filter}", params=values or None
        ).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(names=_table(batch))
        query = (
            'select subject, predicate, object, value, unit, "start", "end", details.name, details.text '
            f"from details join facts using (fact_id) {predicate_filter}"
        )
        values = {"selected": list(context.predicates)} if predicate_filter else {}
        for batch in connection.sql(query, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            yield Chunk(details=_table(batch))


def _table(batch: object) -> object:
    import pyarrow as pa

    return pa.Table.from_batches([batch])
