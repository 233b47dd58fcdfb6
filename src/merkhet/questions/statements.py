"""Conversion of statements with a masked symbol to questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import FACTS, QUESTIONS, validate

_BATCH_ROWS = 8192
"""Number of statements per batch, so their right answers fit into memory as Python objects."""
_SYMBOL = re.compile(r"⟦([^⟧]*)⟧")


def label_symbols(symbols: pa.Table) -> pa.Table:
    """Add a column ``label``: the name of the symbol, followed by the symbol itself if the name is not unique."""
    names, symbol_ids = symbols["name"].to_pylist(), symbols["symbol"].to_pylist()
    counts = Counter(names)
    labels = [
        name if counts[name] == 1 else f"{name} ({symbol})" for name, symbol in zip(names, symbol_ids, strict=True)
    ]
    return symbols.append_column("label", pa.array(labels, pa.string()))


def statement_question_ids(statements: pa.Table) -> pa.Array:
    """Return the question id of each statement.

    A statement may occur in several sets with different right answers. The ids of such variants differ only after
    ``~`` (see :func:`merkhet.analysis.comparison.statement_id`).
    """
    columns = ("statement_id", "task", "answers", "relation", "cardinality", "fact_id")
    return pa.array(
        [
            f"{statement_id}-{task}~{sha256(repr(variant).encode()).hexdigest()[:8]}"
            for batch in statements.select(columns).to_batches(max_chunksize=_BATCH_ROWS)
            for statement_id, task, *variant in zip(*(batch[name].to_pylist() for name in columns), strict=True)
        ],
        pa.string(),
    )


def statement_questions(statements: pa.Table, symbols: pa.Table, *, suite: str, candidate_set: str) -> pa.Table:
    """Make a question from each statement, with labels in place of symbols.

    Args:
        symbols: Table of symbols with their labels (see :func:`label_symbols`).
        candidate_set: Id of the candidate set that contains all labels.
    """
    labels = dict(zip(symbols["symbol"].to_pylist(), symbols["label"].to_pylist(), strict=True))
    size = statements.num_rows
    fact_lists = [[fact] if fact else [] for fact in statements["fact_id"].to_pylist()]
    relations = pc.replace_substring(statements["relation"], "/", " or ")
    templates = pc.binary_join_element_wise(
        relations,
        *(pc.coalesce(statements[name], "") for name in ("template", "mask", "cardinality")),
        "/",
    )
    columns = {
        "question_id": statement_question_ids(statements),
        "suite": pa.array([suite] * size, pa.string()),
        "task": statements["task"],
        "language": pa.array(["en"] * size, pa.string()),
        "prompt": _label_prompts(statements["prompt"], labels),
        "answers": pa.chunked_array(
            [
                pa.array([[labels[symbol] for symbol in answers] for answers in batch["answers"].to_pylist()])
                for batch in statements.select(["answers"]).to_batches(max_chunksize=_BATCH_ROWS)
            ],
            QUESTIONS.schema.field("answers").type,
        ),
        "target": pa.array([labels[symbol] for symbol in statements["target"].to_pylist()], pa.string()),
        "candidate_set": pa.array([candidate_set] * size, pa.string()),
        "facts": pa.array(fact_lists, QUESTIONS.schema.field("facts").type),
        "qset": statements["fact_id"],
        "domain": statements["relation"],
        "template": templates,
    }
    return validate(QUESTIONS, pa.table(columns))


def statement_facts(table: pa.Table) -> pa.Table:
    """Convert a table of temporal facts to the standard table of facts."""
    columns = ["fact_id", "subject", "relation", "object", "start", "end"]
    return validate(FACTS, table.select(columns).rename_columns({"relation": "predicate"}))


def _label_prompts(prompts: pa.ChunkedArray, labels: Mapping[str, str]) -> pa.Array:
    return pa.array(
        [_SYMBOL.sub(lambda match: labels.get(match[1], match[1]), prompt) for prompt in prompts.to_pylist()],
        pa.string(),
    )
