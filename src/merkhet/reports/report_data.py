"""Input data of a report: the tables and records of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.schemas import PREMISES, make_table

Item = TypeVar("Item")


@dataclass(frozen=True)
class ReportData:
    """Tables and records of one run. Any key of a mapping may be absent."""

    title: str
    study: Mapping[str, Any]
    record: Mapping[str, Any]
    """Content of run.json."""
    suite: Mapping[str, Any]
    scores: pa.Table
    """Score table of :mod:`merkhet.core.schemas`. Rows over a whole task have null in the group columns
    (domain, relation, …)."""
    questions: pa.Table
    candidates: Mapping[str, Sequence[str]]
    """Candidates by name of the candidate set."""
    answers: pa.Table
    findings: Mapping[str, Any]
    analyses: Sequence[Mapping[str, Any]] = ()
    """Content of analyses.json."""
    calibration: Sequence[Mapping[str, Any]] = ()
    """Content of calibration.json: calibration cards of the run's probes."""
    controls: Sequence[Mapping[str, Any]] = ()
    """Scores of the models' controls."""
    premises: pa.Table = field(default_factory=lambda: make_table(PREMISES, []))
    """Stated facts at the bottom of the proofs of reasoning questions."""
    domains: Sequence[str] = ()
    """Domains in the order of the question card."""

    def models(self) -> list[str]:
        """Return the names of the models in the order of the study."""
        return list(dict.fromkeys(str(model.get("name")) for model in self.record.get("models") or ()))

    def group_order(self, column: str) -> list[str]:
        """Return the values of a group column in the order that the suite declares; empty if it declares none."""
        declared = (self.suite.get("group_order") or {}).get(column)
        if declared is None:
            declared = {"domain": self.domains, "relation": self.suite.get("names") or ()}.get(column, ())
        return [str(name) for name in declared]

    def baselines(self) -> frozenset[str]:
        """Return the names of the models that have a baseline kind in ``record``."""
        return frozenset(
            str(model.get("name"))
            for model in self.record.get("models") or ()
            if str(model.get("kind") or "").lower() in _BASELINE_KINDS
        )

    def ways_of_asking(self) -> list[dict[str, str]]:
        """Return each combination of model, probe and method in the answers, with the kind of the model."""
        kinds = {str(model.get("name")): str(model.get("kind") or "") for model in self.record.get("models") or ()}
        used = self.answers.group_by(["model", "probe", "method"], use_threads=False).aggregate([])
        return [{**row, "kind": kinds.get(row["model"], "")} for row in used.to_pylist()]


_BASELINE_KINDS = frozenset({"baseline", "random", "frequency", "majority", "chance"})


def select_named(by_name: Mapping[str, Item], names: Sequence[str], kind: str, if_none: str) -> list[Item]:
    """Return the items with the given names, in the order of ``names``; all items if ``names`` is empty.

    Args:
        kind: What the items are, for the error message.
        if_none: Hint in the error message if there are no items.

    Raises:
        InputError: If a name is unknown.
    """
    for name in names:
        if name not in by_name:
            raise InputError(f"no {kind} {name!r} in this run; {did_you_mean(name, by_name) if by_name else if_none}")
    return [by_name[name] for name in dict.fromkeys(names or by_name)]
