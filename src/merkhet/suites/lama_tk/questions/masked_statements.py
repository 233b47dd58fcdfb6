"""Masked statements of temporal facts, on which models are trained to memorize the facts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError, did_you_mean
from merkhet.suites.lama_tk.questions.statement_sql import open_composer
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts
from merkhet.suites.lama_tk.questions.wordings import Wordings

MASKS = ("subject", "object", "start", "end", "time")
TARGET = """case mask when 'subject' then subject when 'object' then object when 'end' then '@' || "end"
    else '@' || "start" end"""
"""SQL expression for the symbol that the column ``mask`` selects."""


def make_masked_statements(
    facts: TemporalFacts,
    wordings: Wordings,
    *,
    entities: str = "text",
    masks: Sequence[str] = (),
    static: bool = False,
) -> pa.Table:
    """Make one statement for each element of each fact, with this element masked.

    The elements are subject, object, start and end; for a point in time they are subject, object and time. Right
    answers are the masked elements of all ``facts`` that lead to the same prompt.

    Args:
        entities: "text" writes entities and times by name, "symbols" as ⟦symbol⟧.
        masks: Elements to mask; empty for all.
        static: Leave all times out of the sentences and mask only subjects and objects.

    Raises:
        InputError: A mask is unknown.
    """
    for mask in masks:
        if mask not in MASKS:
            raise InputError(f"unknown mask {mask!r}; {did_you_mean(mask, MASKS)}")
    template = "static" if static else "statement"
    with open_composer(facts, wordings, entities) as composer:
        composer.create_patterns("patterns", "statement", {template: tuple(masks) or MASKS}, bare=not static)
        composer.run(
            f"""insert into made select task, relation, template, mask, {composer.sentence_sql("text")},
                {composer.sentence_sql("bare")},
                {TARGET}, fact_id, not mirrored from worded join patterns using (relation, point)"""
        )
        return composer.finish(template)


def drop_conflicts(statements: pa.Table) -> pa.Table:
    """Return only the statements with exactly one right answer."""
    return statements.filter(pc.invert(statements["conflict"]))
