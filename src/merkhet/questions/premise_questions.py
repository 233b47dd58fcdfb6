"""Questions that decide about others: asked wherever those are that depend on them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def with_deciders(chosen: pa.Table, every: pa.Table, premises: pa.Table) -> pa.Table:
    """The chosen questions, and all those that decide whether a model knows a premise of theirs."""
    own = premises.filter(pc.is_in(premises["question_id"], chosen["question_id"].combine_chunks()))
    needed = {name for column in ("first", "second") for names in own[column].to_pylist() for name in names}
    needed -= set(chosen["question_id"].to_pylist())
    if not needed:
        return chosen
    more = every.filter(pc.is_in(every["question_id"], pa.array(sorted(needed))))
    return pa.concat_tables([chosen, more])
