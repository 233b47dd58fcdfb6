"""Scores of controls beside those of models, with a paired test of whether a model does better than its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, PairedModels, SharedValues, correct_comparisons
from merkhet.analysis.differences import is_significant
from merkhet.analysis.finding_types import FEW, FEW_QUESTIONS, Finding, Kind, Verdict
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.bootstrap import class_weights
from merkhet.metrics.metrics import Metric

ONCE_FOR_ALL = "association"
"""Control that is asked once for all probes of a model, because it reads no sentence."""
OTHER_CANDIDATES = ("fill",)
"""Probes that rank other candidates than those of the question, with which no control is compared."""
_SEPARATOR = "\x1f"


def compare_with_controls(
    answers: pa.Table,
    controls: Mapping[str, pa.Table],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    *,
    seed: int,
    **options: Any,
) -> list[Finding]:
    """Compare every model with its controls on every headline metric, on the questions that have both answers.

    P-values are Holm-corrected over all comparisons.

    Args:
        answers: The models' answers to the questions.
        controls: The models' answers by control.
        clusters: Fact of each question, by question id.
        headline: Tasks and their metrics.
        options: Further arguments of :class:`PairedModels`.
    """
    models = {name for table in controls.values() for name in table["model"].unique().to_pylist()}
    answers = answers.filter(pc.is_in(answers["model"], value_set=pa.array(sorted(models), pa.string())))
    tables = [answers, *(_as_models(answers, table, control) for control, table in controls.items())]
    paired = PairedModels(pa.concat_tables(tables), questions, clusters, seed=seed, **options)
    pairs = [(model, control) for model in paired.models if _SEPARATOR not in model for control in controls]
    comparisons: list[Comparison] = []
    findings: list[Finding] = []
    for task, metric in dict.fromkeys(headline):
        for model, control in pairs:
            pair = (model, f"{model}{_SEPARATOR}{control}")
            of_control = derived_seed(seed, task, metric.name, control)
            comparison = paired.difference(pair, task, metric, seed=of_control)
            values = paired.shared_values(pair, task, metric)
            probe = paired.shared_probe(pair, task)
            if comparison is None or values is None or probe is None:
                continue
            comparisons.append(comparison)
            findings.append(
                Finding(
                    Kind.CONTROL,
                    Verdict.NONE,
                    model=model,
                    task=task,
                    metric=metric.name,
                    probe=probe,
                    method=paired.methods[model, task][probe],
                    control=control,
                    value=comparison.difference,
                    reference=_control_score(paired, values),
                    low=comparison.low,
                    high=comparison.high,
                    n=comparison.n,
                    facts=comparison.facts,
                    share=metric.share,
                    higher_is_better=metric.higher_is_better,
                )
            )
    corrected = correct_comparisons(comparisons)
    return [_judge(finding, comparison) for finding, comparison in zip(findings, corrected, strict=True)]


def _control_score(paired: PairedModels, values: SharedValues) -> float:
    """Return the score of the control, which is the second of two models, as a mean over classes if there are any."""
    classes = paired.classes[values.codes]
    weights = class_weights(classes) if len(np.unique(classes)) > 1 else None
    return float(np.average(values.second, weights=weights))


def _judge(finding: Finding, comparison: Comparison) -> Finding:
    """Add the verdict: ahead if the model is significantly better than its control, behind if it is worse."""
    if comparison.n < FEW_QUESTIONS:
        return replace(finding, reason=FEW)
    verdict = Verdict.NO_DIFFERENCE
    if is_significant(vars(comparison)):
        verdict = Verdict.AHEAD if comparison.difference > 0.0 else Verdict.BEHIND
    return replace(finding, verdict=verdict, p=comparison.p)


def _as_models(answers: pa.Table, table: pa.Table, control: str) -> pa.Table:
    """Return the answers of a control under names of their own, by the probes that the models were asked by."""
    if control == ONCE_FOR_ALL and table.num_rows:
        probes = answers.group_by(["model", "probe"], use_threads=False).aggregate([]).to_pylist()
        parts = [
            _with_probe(table, row["model"], row["probe"]) for row in probes if row["probe"] not in OTHER_CANDIDATES
        ]
        table = pa.concat_tables([table.slice(0, 0), *parts])
    names = pc.binary_join_element_wise(table["model"], control, _SEPARATOR)
    return table.set_column(table.column_names.index("model"), "model", names)


def _with_probe(table: pa.Table, model: str, probe: str) -> pa.Table:
    part = table.filter(pc.equal(table["model"], model))
    index = part.column_names.index("probe")
    return part.set_column(index, "probe", pa.array([probe] * part.num_rows, pa.string()))
