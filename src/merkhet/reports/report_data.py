"""What a report is made from: one run's tables and records, gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class ReportData:
    """One run, ready to be shown.

    ``scores``, ``questions`` and ``answers`` are tables of :mod:`merkhet.core.schemas`; ``scores`` may carry
    group columns (domain, relation, template, …), empty on overall rows. ``study``, ``record`` (run.json), ``suite``
    and ``findings`` are plain mappings of which any key may be absent; ``analyses`` is what analyses.json
    holds, ``calibration`` the calibration cards of the run's probes (calibration.json).
    """

    title: str
    study: Mapping[str, Any]
    record: Mapping[str, Any]
    suite: Mapping[str, Any]
    scores: pa.Table
    questions: pa.Table
    candidates: Mapping[str, Sequence[str]]
    answers: pa.Table
    findings: Mapping[str, Any]
    analyses: Sequence[Mapping[str, Any]] = ()
    calibration: Sequence[Mapping[str, Any]] = ()

    def baselines(self) -> frozenset[str]:
        """Names of the models that the record calls baselines."""
        return frozenset(
            str(model.get("name"))
            for model in self.record.get("models") or ()
            if str(model.get("kind") or "").lower() in _BASELINE_KINDS
        )


_BASELINE_KINDS = frozenset({"baseline", "random", "frequency", "majority", "chance"})
