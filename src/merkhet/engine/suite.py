"""The interface of a suite: defaults, question building and planning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from merkhet.core.compute_engines import Engine
from merkhet.engine.plan import AnyStep, Plan, function_name
from merkhet.engine.study import Study
from merkhet.engine.suite_card import HeadlineScore, ScoringRule, SuiteCard
from merkhet.engine.suite_options import SuiteOptions
from merkhet.questions.question_files import QuestionSet

if TYPE_CHECKING:
    from merkhet.analysis.comparison import Condition
    from merkhet.analysis.types import Analysis, AnalysisInput
    from merkhet.engine.resolve_study import ResolvedStudy


AnalysisFunction: TypeAlias = "Callable[[AnalysisInput], Analysis | None]"
"""A function that analyses a run; it returns None if there is nothing to report."""


@dataclass(frozen=True)
class AskingSteps:
    """The steps in which the models of a study are trained and asked, in execution order."""

    steps: tuple[AnyStep, ...]
    label_premises: AnyStep | None = None
    """Step that labels how premises were given to each model, where questions have premises."""
    repeated: tuple[AnyStep, ...] = ()
    """Steps that train and ask the same models with other seeds; analyses read their answers, scores do not."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """The condition that each model is trained under, where there are several."""
    remarks: tuple[str, ...] = ()
    """Sentences that end the findings."""

    @property
    def asks(self) -> tuple[AnyStep, ...]:
        """The steps that ask a model."""
        return tuple(step for step in self.steps if step.kind == "ask")

    @property
    def trainings(self) -> tuple[AnyStep, ...]:
        """The steps that train a model."""
        return tuple(step for step in self.steps if step.kind == "learn")


@dataclass(frozen=True)
class Suite:
    """A suite of questions. A suite that needs more than these fields overrides a method."""

    name: str
    """Name on the command line."""
    title: str
    """Title of reports."""
    about: str
    """What the suite asks about, in one line."""
    build: Callable[[Study, Path], QuestionSet]
    """Builds the questions of a study; the path is the folder that the study's paths are relative to."""
    tasks: tuple[str, ...]
    """Tasks that a study may choose from."""
    headline: tuple[tuple[str, str], ...]
    """(task, metric) pairs of the main table."""
    named_headline: tuple[tuple[str, str], ...] = ()
    """Further pairs, shown only where the study names their tasks."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of study keys."""
    run_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Further defaults of studies that ask models, as opposed to ``merkhet build``."""
    options: type[SuiteOptions] = SuiteOptions
    """Model of the study's ``options``, with a description of each."""
    methods: str = ""
    """Sentences for the methods section of reports."""
    citations: tuple[str, ...] = ()
    """BibTeX entries."""
    analyses: tuple[str | AnalysisFunction, ...] = ()
    """Analyses made of every run, in this order: registered names, or the suite's own functions."""
    printed_analyses: tuple[str, ...] = ()
    """Analyses whose sentences are printed when a run ends."""
    main_methods: tuple[str, ...] = ()
    """Methods that the main table shows of a model that was asked by several."""
    published: tuple[str, ...] = ()
    """Names of the files in which others publish such questions; see :meth:`read_published`."""
    experiment: str | None = None
    """Experiment of a memorizing study."""
    splits_keep_pairs: bool = True
    """Whether facts about the same two entities must be in one split."""

    builds_on_engines = False
    """Whether :meth:`build_on_engine` can use an engine other than this process."""
    memorizes = False
    """Whether :meth:`memorize_plan` is overridden."""
    trains_itself = False
    """Whether :meth:`asking_steps` is overridden, so that further pre-training is not available."""

    def build_on_engine(self, study: Study, home: Path, engine: Engine | None) -> QuestionSet:
        """Build the questions of a study, on an engine where the suite can."""
        return self.build(study, home)

    def read_published(self, path: Path, study: Study, home: Path) -> QuestionSet:
        """Read published files from a folder, or one of them."""
        raise NotImplementedError(f"{self.name} has no published files")

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return plain names of relations, for sentences."""
        return {}

    def defaults_for(self, study: Study) -> Mapping[str, Any]:
        """Return further defaults that depend on the study's options."""
        return {}

    def model_settings(self, study: Study) -> Mapping[str, Any]:
        """Return settings that the study's options imply for all its models."""
        return {}

    def scoring(self, study: Study) -> ScoringRule:
        """Return how answers are scored."""
        return ScoringRule()

    def score_groups(self, study: Study) -> tuple[tuple[str, ...], ...]:
        """Return the columns that scores are grouped by; the columns of one entry are combined."""
        return tuple((name,) for name in study.groups)

    def build_steps(self, resolved: ResolvedStudy) -> tuple[AnyStep, ...]:
        """Return the steps that make the questions."""
        from merkhet.engine.planning import make_build_step, make_study_step

        return make_build_step(resolved), make_study_step(resolved)

    def asking_steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Return the steps in which models are trained and asked."""
        from merkhet.engine.ask_planning import make_asking_steps

        return make_asking_steps(resolved)

    def memorize_plan(self, resolved: ResolvedStudy, command: str) -> Plan:
        """Return the plan of a study in which models memorize facts."""
        raise NotImplementedError(f"{self.name} has nothing to memorize")

    def analysis_names(self) -> tuple[str, ...]:
        """Return the names of the analyses; the suite's own as ``module:function``."""
        return tuple(name if isinstance(name, str) else function_name(name) for name in self.analyses)

    def card(self) -> SuiteCard:
        """Return the suite's card for reports."""
        return SuiteCard(
            name=self.name,
            title=self.title,
            about=self.about,
            methods=self.methods,
            citations=self.citations,
            analyses=self.analysis_names(),
            printed_analyses=self.printed_analyses,
            main_methods=self.main_methods,
            headline=tuple(HeadlineScore(*entry) for entry in self.headline),
            experiment=self.experiment,
        )
