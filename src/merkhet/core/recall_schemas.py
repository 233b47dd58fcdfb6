"""Schemas of the tables about memorized facts: symbols, masked statements, recalls."""

from __future__ import annotations

import pyarrow as pa

from merkhet.core.schemas import TableKind

_TEXT = pa.string()

SYMBOLS = TableKind(
    "symbols",
    pa.schema([("symbol", _TEXT), ("name", _TEXT), ("kind", _TEXT)]),
    required=frozenset({"symbol", "name", "kind"}),
    unique="symbol",
)
"""Output symbols (entities and times) of a model trained to memorize facts."""

STATEMENTS = TableKind(
    "statements",
    pa.schema(
        [
            *[(name, _TEXT) for name in ("statement_id", "task", "relation", "template", "mask")],
            *[(name, _TEXT) for name in ("prompt", "bare_prompt", "target")],
            ("answers", pa.list_(_TEXT)),
            ("conflict", pa.bool_()),
            *[(name, _TEXT) for name in ("cardinality", "fact_id")],
        ]
    ),
    required=frozenset({"statement_id", "task", "relation", "mask", "prompt", "target", "answers", "conflict"}),
    unique="statement_id",
)
"""Statements with one masked symbol; ``target`` and ``answers`` are symbols."""

RECALLS = TableKind(
    "recalls",
    pa.schema(
        [
            ("statement_id", _TEXT),
            *[(name, pa.int32()) for name in ("target_above", "target_ties")],
            *[(name, pa.int32()) for name in ("best_above", "best_ties", "best_golds", "among")],
            ("top", pa.list_(pa.struct([("symbol", _TEXT), ("score", pa.float32())]))),
        ]
    ),
    required=frozenset(
        {"statement_id", "target_above", "target_ties", "best_above", "best_ties", "best_golds", "among"}
    ),
    unique="statement_id",
)
"""Ranks of the target and of the best right answer of each statement, as counts of higher and of tied symbols."""
