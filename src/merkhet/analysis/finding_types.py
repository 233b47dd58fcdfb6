"""Typed findings of a run, from which its sentences are rendered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

FEW_QUESTIONS = 10
"""Groups with fewer questions are too small to read: they are shown in grey with n, and get no verdict."""
NEAR_CEILING = 0.95
"""Score of a baseline, or chance level, from which high scores are no evidence of knowledge."""

# Reasons of findings without a verdict. Sentences are chosen by them.
FEW = f"fewer than {FEW_QUESTIONS} questions"
SINGLE_FACT = "a single fact, so no interval"
UNDECIDABLE = "even a perfect score would be within chance"
NO_SCORE = "no score"
NO_CHANCE = "no chance level"
FREE_ANSWERS = "free answers have no chance level"
TRAINED_ONCE = "one training of each model"
UNMEASURED = "too few statements meet the condition"
BASELINE_CEILING = "a baseline is near the ceiling"
CHANCE_CEILING = "chance is near the ceiling"
ALL_RIGHT = "all options are right"
NO_QUESTIONS = "no questions"


class Kind(str, Enum):
    """What a finding is about."""

    SCORE = "score"
    """Score of a model on a task."""
    GROUP = "group"
    """Score of a model on a group of questions of a task."""
    COMPARISON = "comparison"
    """Paired difference between two models on the same questions."""
    TRAININGS = "trainings"
    """Difference between two training conditions, with the training as the unit."""
    CONTROL = "control"
    """Paired difference between a model and one of its controls on the same questions."""
    POSITION = "position"
    """Liking of a model for a position among the options that questions show."""
    DESIGN = "design"
    """Property of the questions or conditions that limits what scores mean."""
    UNUSABLE = "unusable"
    """Questions without a usable answer, or number of questions that a model was asked."""
    REMARK = "remark"
    """Sentence without a verdict on scores; ``reason`` is its text."""


class Verdict(str, Enum):
    """Conclusion that a finding supports."""

    ABOVE_CHANCE = "above chance"
    AT_CHANCE = "at chance"
    """Not significantly different from chance."""
    BELOW_CHANCE = "below chance"
    AHEAD = "ahead"
    """``model`` is significantly ahead of ``other``, or of its control."""
    BEHIND = "behind"
    """``model`` is significantly behind its control."""
    NO_DIFFERENCE = "no significant difference"
    LIKED = "liked"
    """``model`` chooses the position ``group`` significantly more often than without a liking for positions."""
    EQUAL = "equal"
    """Both models have the same value on every question."""
    NONE = "none"
    """The design supports no verdict; ``reason`` says why."""


@dataclass(frozen=True)
class Finding:
    """One finding: what, about whom, by which method, the numbers, and the verdict that they support."""

    kind: Kind
    verdict: Verdict
    model: str | None = None
    task: str | None = None
    metric: str | None = None
    probe: str | None = None
    method: str | None = None
    other: str | None = None
    """Second model of a comparison."""
    other_method: str | None = None
    """Method of the second model; both models were asked by ``probe``."""
    control: str | None = None
    """Control that ``model`` is compared with."""
    reference: float | None = None
    """Score of the control, or share of choices of a position that is expected without a liking."""
    group_column: str | None = None
    group: str | None = None
    """Group of questions: a value of ``group_column``."""
    group_name: str | None = None
    """Readable name of ``group``, if it differs."""
    value: float | None = None
    """Score, or difference between the scores of ``model`` and ``other`` or the control, or share of choices."""
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    n: int | None = None
    """Number of questions; for unusable answers, their number."""
    count: int | None = None
    """Number of groups or questions that the finding is about, of ``total``."""
    total: int | None = None
    facts: int | None = None
    """Number of facts that the questions depend on."""
    trainings: int | None = None
    """Number of trainings of each condition."""
    p: float | None = None
    """P-value, corrected for the number of comparisons."""
    detectable: float | None = None
    """Smallest true difference that the test detects with 80% power."""
    reason: str | None = None
    """Why there is no verdict, or what limits the scores."""
    share: bool = True
    """Whether the metric lies between 0 and 1 and is shown in percent."""
    higher_is_better: bool = True
    """Whether a higher value of the metric is better. A difference is oriented so that positive is better."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, for findings.json, without infinite and NaN numbers."""
        defaults = {field.name: field.default for field in fields(self)}
        row = {
            key: value
            for key, value in asdict(self).items()
            if value != defaults[key] and not (isinstance(value, float) and not math.isfinite(value))
        }
        return {**row, "kind": self.kind.value, "verdict": self.verdict.value}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Finding:
        """Read a finding from findings.json; unknown keys are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(
            **{key: value for key, value in row.items() if key in known}
            | {"kind": Kind(row["kind"]), "verdict": Verdict(row["verdict"])}
        )
