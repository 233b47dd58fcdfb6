"""The interface of suites: defaults, building of questions, and planning."""

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
"""Function that analyses a run. It returns None if there is nothing to report."""


@dataclass(frozen=True)
class AskingSteps:
    """The steps that train and ask the models of a study, in execution order."""

    steps: tuple[AnyStep, ...]
    label_premises: AnyStep | None = None
    """Step that records how premises were given to each model; None if no question has premises."""
    repeated: tuple[tuple[AnyStep, ...], ...] = ()
    """Steps of each further training, with other seeds. Their answers are analyzed, but not scored."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Training condition of each model; empty unless models are trained under several conditions."""
    remarks: tuple[str, ...] = ()
    """Sentences that are appended to the findings."""

    @property
    def asks(self) -> tuple[AnyStep, ...]:
        """The steps that ask a model."""
        return tuple(step for step in self.steps if step.kind == "ask")

    @property
    def trainings(self) -> tuple[AnyStep, ...]:
        """The steps that train a model."""
        return tuple(step for step in self.steps if step.kind == "learn")

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of the models that are trained."""
        return tuple(dict.fromkeys(step.params.name for step in self.trainings))


@dataclass(frozen=True)
class Suite:
    """A suite of questions. A suite that needs more than these fields overrides methods in a subclass."""

    name: str
    """Name on the command line."""
    title: str
    """Title of reports."""
    about: str
    """Subject of the suite's questions, in one line."""
    build: Callable[[Study, Path], QuestionSet]
    """Function that builds the questions, given a study and the folder that the study's paths are relative to."""
    tasks: tuple[str, ...]
    """Tasks that a study asks unless it chooses some."""
    headline: tuple[tuple[str, str], ...]
    """(task, metric) pairs that the main table shows."""
    optional_tasks: tuple[str, ...] = ()
    """Further tasks, which are asked only if the study names them."""
    named_headline: tuple[tuple[str, str], ...] = ()
    """Further (task, metric) pairs, which are shown only if the study names the task."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of study keys."""
    run_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of study keys that apply to runs, but not to ``merkhet build``."""
    options: type[SuiteOptions] = SuiteOptions
    """Pydantic model that validates and describes the study's ``options``."""
    methods: str = ""
    """Sentences for the methods section of reports."""
    citations: tuple[str, ...] = ()
    """BibTeX entries."""
    analyses: tuple[str | AnalysisFunction, ...] = ()
    """Analyses that every run executes in this order, as registered names or as functions."""
    printed_analyses: tuple[str, ...] = ()
    """Names of the analyses whose sentences are printed when a run ends."""
    main_methods: tuple[str, ...] = ()
    """Methods that the main table shows if a model was asked with several methods."""
    group_order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of group columns in the order that tables and figures show; other values follow by name."""
    published: tuple[str, ...] = ()
    """Names of published question files that :meth:`read_published` can read."""
    experiment: str | None = None
    """Name of the experiment if models memorize facts; None for other suites."""
    published_methods: str = "{methods}"
    """Sentences for the methods section about questions from published files; ``{methods}`` stands for ``methods``."""
    balanced: tuple[str, ...] = ()
    """Tasks whose right answers are equally frequent by design, so that answer counts are of no use."""
    splits_keep_pairs: bool = True
    """Whether all facts about the same two entities must be in the same split."""

    builds_on_engines = False
    """Whether :meth:`build_on_engine` can use another engine than the default."""
    memorizes = False
    """Whether the suite overrides :meth:`memorize_plan`."""
    trains_itself = False
    """Whether the suite overrides :meth:`asking_steps`. Continued pre-training is then not available."""

    @property
    def all_tasks(self) -> tuple[str, ...]:
        """Tasks that a study may choose from."""
        return (*self.tasks, *self.optional_tasks)

    def build_on_engine(self, study: Study, home: Path, engine: Engine | None) -> QuestionSet:
        """Build the questions of a study. The default ignores ``engine`` and builds in this process."""
        return self.build(study, home)

    def read_published(self, path: Path, study: Study, home: Path) -> QuestionSet:
        """Read questions from a folder of published files, or from one such file."""
        raise NotImplementedError(f"{self.name} has no published files")

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return readable names of relations, by relation, for use in sentences."""
        return {}

    def asked_tasks(self, study: Study) -> tuple[str, ...]:
        """Return the tasks of a study: those that it names, or those of the suite."""
        return tuple(study.tasks) or self.tasks

    def defaults_for(self, study: Study) -> Mapping[str, Any]:
        """Return default values of study keys that depend on the study itself."""
        return {}

    def model_settings(self, study: Study) -> Mapping[str, Any]:
        """Return model settings that apply to all models of a study."""
        return {}

    def scoring(self, study: Study) -> ScoringRule:
        """Return the scoring rule of a study."""
        return ScoringRule()

    def score_groups(self, study: Study) -> tuple[tuple[str, ...], ...]:
        """Return the columns that scores are grouped by. An entry of several columns groups by their combination."""
        return tuple((name,) for name in study.groups)

    def build_steps(self, resolved: ResolvedStudy) -> tuple[AnyStep, ...]:
        """Return the steps that write the questions and the study."""
        from merkhet.engine.planning import make_build_step, make_study_step

        return make_build_step(resolved), make_study_step(resolved)

    def asking_steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Return the steps that train and ask the models."""
        from merkhet.engine.ask_planning import make_asking_steps

        return make_asking_steps(resolved)

    def memorize_plan(self, resolved: ResolvedStudy, command: str) -> Plan:
        """Return the plan of a study in which models memorize facts."""
        raise NotImplementedError(f"{self.name} has nothing to memorize")

    def analysis_names(self) -> tuple[str, ...]:
        """Return the names of the analyses; functions are named ``module:function``."""
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
            group_order=self.group_order,
            headline=tuple(HeadlineScore(*entry) for entry in self.headline),
            experiment=self.experiment,
            tasks=tuple(
                dict.fromkeys([*(task for task, _ in (*self.headline, *self.named_headline)), *self.all_tasks])
            ),
        )
