"""Which scores of a study are made, and which of them stand first."""

from __future__ import annotations

from collections.abc import Sequence

from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.suite import Asking

CHOOSE = "choose"
TALKING = (CHOOSE, "answer", "judge")
SILENCE = ("no-answer", "refused")


def metrics_of(wanted: Sequence[str], asking: Asking) -> list[str]:
    """The study's metrics and, where models are talked to, those without which their replies say little."""
    answered = any(step.params["probe"] == "answer" for step in asking.asks)
    more = [*(("exact", "f1") if answered else ()), *(SILENCE if talked(asking) else ())]
    return [*wanted, *(name for name in more if name not in wanted)]


def talked(asking: Asking) -> bool:
    """Whether some model is talked to."""
    return any(step.params["probe"] in TALKING for step in asking.asks)


def headline_of(resolved: ResolvedStudy, metrics: list[str], asking: Asking) -> list[dict[str, str]]:
    """The suite's headline for the study's tasks; where its metric is not asked for, one that is stands in.

    Where none of its tasks was asked for, all stand there: some may be asked for the sake of others. What models answer
    in their own words has no ranks: then exact match stands beside the usual metric, or alone if there is nothing else.
    """
    found = []
    every = (*resolved.suite.headline, *resolved.suite.named_headline)
    asked = [entry for entry in every if entry[0] in resolved.study.tasks]
    for task, metric in asked or resolved.suite.headline:
        shown = [metric, *(["accuracy"] if metric == "r@1" else []), *metrics]
        found.append({"task": task, "metric": next(name for name in shown if name in metrics)})
    probes = {step.params["probe"] for step in asking.asks if step.params["kind"] != "baseline"}
    if "answer" in probes:
        worded = [{"task": one["task"], "metric": "exact"} for one in found]
        found = worded if probes == {"answer"} else [*found, *(one for one in worded if one not in found)]
    return found
