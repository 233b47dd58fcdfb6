"""What a suite is: a name, what it asks by default, and a function that makes its questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core.compute_engines import Engine
from merkhet.engine.plan import Plan, Step
from merkhet.engine.study import Study
from merkhet.questions.question_files import QuestionSet


def _no_names(_study: Study, _home: Path) -> Mapping[str, str]:
    return {}


def _no_defaults(_options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def _no_settings(_study: Study) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Asking:
    """The steps by which the models of a study learn and are asked, in an order in which they can be done.

    ``settle`` is the step that says how premises were given to each model, where questions have premises.
    """

    steps: tuple[Step, ...]
    settle: Step | None = None

    @property
    def asks(self) -> tuple[Step, ...]:
        """The steps that ask."""
        return tuple(step for step in self.steps if step.kind == "ask")

    @property
    def learns(self) -> tuple[Step, ...]:
        """The steps that learn."""
        return tuple(step for step in self.steps if step.kind == "learn")


@dataclass(frozen=True)
class Suite:
    """A suite composes the rooms; it adds no machinery.

    ``build`` makes the questions of a study (``home`` is the folder that its paths are relative to). ``defaults`` are
    a study's keys where the user gives none, ``run_defaults`` those that only matter when models are asked;
    ``options`` says which keys a study may have under ``options`` and what each means; ``file_options`` are those that
    name a file. ``headline`` lists the (task, metric) pairs of the main table, ``named_headline`` those that stand in
    it only where their tasks are named by the study. ``names`` may give plain names of relations for sentences.
    ``main_methods`` are the methods that the main table shows of models which answered by several. ``analyses`` are
    made of every run, in this order, and the sentences of those that are ``told`` are printed when it ends; a study may
    have their options (:data:`merkhet.analysis.analysis_options.OPTIONS`) besides the suite's own. ``published``
    are the names of files in which others publish such questions; ``read_published`` reads those in a folder, or one.
    ``asking`` gives the steps by which models learn and are asked, where these are not the usual ones;
    ``model_settings`` what the study's options say about all its models. ``splits_keep_pairs`` says that facts about
    the same two entities must not be in different splits. ``scoring`` may say that scores of a task are averaged over
    the classes of a group column (``average_over``), and that what cannot be asked counts as wrong
    (``unusable_is_wrong``). ``defaults_for`` gives further defaults that hang on the study's options. ``memorizing``
    gives the plan of a resolved study whose learner is memorize, with the command that it was asked for by; without it
    models cannot memorize for the suite. ``build_on`` is ``build`` where an engine can do it, as a relational plan.
    """

    name: str
    title: str
    about: str
    build: Callable[[Study, Path], QuestionSet]
    tasks: tuple[str, ...]
    headline: tuple[tuple[str, str], ...]
    named_headline: tuple[tuple[str, str], ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    defaults_for: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_defaults
    run_defaults: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    file_options: tuple[str, ...] = ()
    names: Callable[[Study, Path], Mapping[str, str]] = _no_names
    methods: str = ""
    citations: tuple[str, ...] = ()
    analyses: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    splits_keep_pairs: bool = True
    main_methods: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    read_published: Callable[[Path, Study, Path], QuestionSet] | None = None
    asking: Callable[[Any], Asking] | None = None
    model_settings: Callable[[Study], Mapping[str, Any]] = _no_settings
    scoring: Callable[[Study], Mapping[str, Any]] = _no_settings
    memorizing: Callable[[Any, str], Plan] | None = None
    build_on: Callable[[Study, Path, Engine | None], QuestionSet] | None = None

    def card(self) -> dict[str, Any]:
        """What the report says of the suite."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "methods": self.methods,
            "citations": list(self.citations),
            "analyses": list(self.analyses),
            "told": list(self.told),
            "main_methods": list(self.main_methods),
            "headline": [{"task": task, "metric": metric} for task, metric in self.headline],
        }
