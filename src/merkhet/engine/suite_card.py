"""Scoring rules, headline scores and descriptions of suites, as recorded in run.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ScoringRule:
    """Rules by which a suite turns the metric values of questions into scores."""

    average_over: str | None = None
    """Column whose values divide questions into classes. The score of a task is the mean over classes."""
    unusable_is_wrong: bool = False
    """Whether a question that cannot be asked counts as wrong."""
    statements: bool = False
    """Whether questions are statements of memorized facts.

    Statements with the same prompt then count as one observation. Variants of a statement, which differ in their gold
    answers, are paired when models are compared.
    """

    distinct_templates: tuple[str, ...] = ()
    """Tasks whose templates ask different things, such as who came before and who came after: they are no paraphrases,
    and such a task has no spread over paraphrases."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True)
class HeadlineScore:
    """Task and metric of a score in the main table."""

    task: str
    metric: str


@dataclass(frozen=True)
class SuiteCard:
    """Description of a suite and of its settings in a run, for reports."""

    name: str
    title: str
    about: str
    methods: str
    """Sentences for the methods section of reports."""
    citations: tuple[str, ...]
    """BibTeX entries."""
    analyses: tuple[str, ...]
    """Names of the analyses that every run executes."""
    printed_analyses: tuple[str, ...]
    """Names of the analyses whose sentences are printed when a run ends."""
    main_methods: tuple[str, ...]
    """Methods that the main table shows if a model was asked with several methods."""
    headline: tuple[HeadlineScore, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """Readable names of relations, by relation."""
    group_order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of group columns in the order that tables and figures show."""
    scoring: ScoringRule = ScoringRule()
    experiment: str | None = None
    """Name of the experiment if models memorize facts; None for other suites."""

    def as_json(self) -> dict[str, Any]:
        """Encode the card for run.json and reports, with the fields of ``scoring`` as top-level keys."""
        content = asdict(self)
        del content["scoring"], content["experiment"]
        content |= {
            key: list(content[key]) for key in ("citations", "analyses", "printed_analyses", "main_methods", "headline")
        }
        content["group_order"] = {column: list(names) for column, names in self.group_order.items()}
        content |= self.scoring.as_json()
        return {**content, "experiment": self.experiment} if self.experiment else content
