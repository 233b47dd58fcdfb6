"""Verdicts on conditions that too few statements meet are withheld, whatever their p-value."""

from __future__ import annotations

import pytest
from memory_runs import storage_run

from merkhet.analysis.comparison import compare_models
from merkhet.analysis.question_sets import withhold_verdicts
from merkhet.metrics.metrics import get_metric


@pytest.mark.parametrize(("several", "withheld"), [(0.03, True), (0.5, False)])
def test_a_handful_of_conflicting_statements_gets_no_p_value(several: float, withheld: bool) -> None:
    made = storage_run(
        lambda base, size, kind: 0.6 if kind == "with" else 0.99, sizes=(120,), several=several, trainings=3
    )
    inputs = made.inputs
    comparisons = compare_models(
        inputs.answer_table,
        inputs.questions_by_id,
        inputs.clusters,
        [("statement", get_metric("acc@1"))],
        seed=0,
        models=[one.model for one in made.models],
        conditions=inputs.conditions,
        statements=True,
        trained=inputs.trained,
        repeated=inputs.repeated_answers,
    )
    after = withhold_verdicts(comparisons, inputs.conditions, inputs.answer_table)
    by_conflict = {
        len({inputs.conditions[name].settings["conflict"] for name in (one.model, one.other)}) == 2: one
        for one in after
    }
    assert all(one.p is not None for one in comparisons)
    assert (by_conflict[True].p is None) is withheld and by_conflict[False].p is not None
