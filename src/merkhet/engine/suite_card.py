"""Scoring rule, headline scores and card of a suite, as a run records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ScoringRule:
    """Scoring rules of a suite in addition to its metrics."""

    average_over: str | None = None
    """Group column; the score of a task is the mean over its classes."""
    unusable_is_wrong: bool = False
    """Whether a question that cannot be asked counts as wrong."""
    statements: bool = False
    """Whether questions are statements of stored facts: statements with the same prompt are one observation, and
    variants of a statement, which differ in their right answers, are paired."""

    def as_json(self) -> dict[str, Any]:
        """Encode the parts that differ from the usual rule."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True)
class HeadlineScore:
    """A score of the main table."""

    task: str
    metric: str


@dataclass(frozen=True)
class SuiteCard:
    """Description of a suite, and of its use in a run, for reports."""

    name: str
    title: str
    about: str
    methods: str
    """Sentences for the methods section."""
    citations: tuple[str, ...]
    """BibTeX entries."""
    analyses: tuple[str, ...]
    """Names of the analyses that are made of every run."""
    printed_analyses: tuple[str, ...]
    """Analyses whose sentences are printed when the run ends."""
    main_methods: tuple[str, ...]
    """Methods that the main table shows of a model that was asked by several."""
    headline: tuple[HeadlineScore, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """Plain names of relations."""
    scoring: ScoringRule = ScoringRule()
    experiment: str | None = None
    """Experiment of a memorizing run."""

    def as_json(self) -> dict[str, Any]:
        """Encode for run.json and reports; scoring rules are keys of their own."""
        content = asdict(self)
        del content["scoring"], content["experiment"]
        content |= {
            key: list(content[key]) for key in ("citations", "analyses", "printed_analyses", "main_methods", "headline")
        }
        content |= self.scoring.as_json()
        return {**content, "experiment": self.experiment} if self.experiment else content
