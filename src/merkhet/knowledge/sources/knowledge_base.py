"""Source for another knowledge base: facts with their proofs, names and details."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from merkhet.knowledge.chunk import Chunk, Predicate
from merkhet.knowledge.database import DETAIL_COLUMNS, FACT_COLUMNS, NAME_COLUMNS, open_database
from merkhet.knowledge.predicate_labels import find_predicates
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext


def read_store(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts, names and details of a knowledge base that pass the filters, and all predicate declarations."""
    context.check_options()
    if context.predicates:
        with open_database(path, read_only=True) as connection:
            found = find_predicates(connection, context.predicates)
        context.predicate_ids |= {name for names in found.values() for name in names}
    queries = {
        "facts": (f"select {FACT_COLUMNS} from facts", "predicate", context.predicate_spellings),
        "names": (f"select {NAME_COLUMNS} from names", "language", context.languages),
        "details": (
            f"select {DETAIL_COLUMNS} from details join facts using (fact_id)",
            "predicate",
            context.predicate_spellings,
        ),
    }
    with open_database(path, read_only=True) as connection:
        declared = connection.execute("select * from predicates").fetchall()
        yield Chunk(predicates={row[0]: Predicate(*row) for row in declared})
        for table, (query, column, selected) in queries.items():
            condition = f" where list_contains($selected, {column})" if selected else ""
            rows = connection.sql(query + condition, params={"selected": list(selected)} if selected else None)
            for batch in rows.to_arrow_reader(ROWS_IN_CHUNK):
                yield Chunk(**{table: pa.Table.from_batches([batch])})
