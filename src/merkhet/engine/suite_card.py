"""Scoring rules, headline scores, origins of questions and descriptions of suites, as recorded in run.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal


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
class QuestionOrigin:
    """Where questions come from, and the texts that describe them in reports."""

    kind: Literal["made", "published", "imported"]
    """``made`` by a suite of merkhet, read from ``published`` files of a suite, or ``imported``: made elsewhere."""
    title: str
    suite: str = ""
    """Suite that made the questions or reads the published files; empty if they are imported."""
    source: str = ""
    """Names of the files that were read; empty if the run made the questions."""
    about: str = ""
    methods: str = ""
    """Sentences for the methods section of reports."""
    citations: tuple[str, ...] = ()
    """BibTeX entries."""

    def as_json(self) -> dict[str, Any]:
        """Encode the origin for about.json and run.json."""
        return {**asdict(self), "citations": list(self.citations)}


@dataclass(frozen=True)
class SuiteCard:
    """Description of a suite and of its settings in a run, for reports.

    Title, about, methods and citations describe the questions of the run, which may not be the suite's.
    """

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
    tasks: tuple[str, ...] = ()
    """Tasks of the suite, in order."""
    origins: tuple[QuestionOrigin, ...] = ()
    """Origins of the questions; several if runs are combined."""

    def describe(self, origin: QuestionOrigin) -> SuiteCard:
        """Return the card with the texts that describe questions of this origin."""
        return replace(
            self,
            title=origin.title,
            about=origin.about,
            methods=origin.methods,
            citations=origin.citations,
            origins=(origin,),
        )

    def as_json(self) -> dict[str, Any]:
        """Encode the card for run.json and reports, with the fields of ``scoring`` as top-level keys."""
        content = asdict(self)
        del content["scoring"], content["experiment"]
        content["origins"] = [origin.as_json() for origin in self.origins]
        content |= {
            key: list(content[key])
            for key in ("citations", "analyses", "printed_analyses", "main_methods", "headline", "tasks")
        }
        content["group_order"] = {column: list(names) for column, names in self.group_order.items()}
        content |= self.scoring.as_json()
        return {**content, "experiment": self.experiment} if self.experiment else content
