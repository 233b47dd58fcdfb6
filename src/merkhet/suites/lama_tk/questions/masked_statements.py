"""Facts with times as sentences with one thing masked: what a model that stores facts is trained on."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError, did_you_mean
from merkhet.suites.lama_tk.questions.statement_sql import composer
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts
from merkhet.suites.lama_tk.questions.wordings import Wordings

MASKS = ("subject", "object", "start", "end", "time")
TARGET = """case mask when 'subject' then subject when 'object' then object when 'end' then '@' || "end"
    else '@' || "start" end"""
"""SQL for the symbol that is masked."""


def masked_statements(
    facts: TemporalFacts,
    wordings: Wordings,
    *,
    entities: str = "text",
    masks: Sequence[str] = (),
    static: bool = False,
) -> pa.Table:
    """Each fact with its subject, its object, its start and its end masked in turn; a point with its one time.

    ``masks`` takes some of these; ``static`` leaves all times out of the sentences, so that only subjects and objects
    are masked. Right answers are those of all the facts given that make the same prompt. With ``entities="symbols"``
    entities and times stand in the sentences as ⟦symbol⟧.
    """
    for mask in masks:
        if mask not in MASKS:
            raise InputError(f"there is no mask {mask!r}; {did_you_mean(mask, MASKS)}")
    template = "static" if static else "statement"
    with composer(facts, wordings, entities) as one:
        one.put_patterns("patterns", "statement", {template: tuple(masks) or MASKS}, bare=not static)
        one.run(
            f"""insert into made select task, relation, template, mask, {one.said("text")}, {one.said("bare")},
                {TARGET}, fact_id, not mirrored from worded join patterns using (relation, point)"""
        )
        return one.finish(template)


def without_conflict(statements: pa.Table) -> pa.Table:
    """The statements that have one right answer."""
    return statements.filter(pc.invert(statements["conflict"]))
