"""Resolution of a user's request into a complete study with defaults, checked names and located models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from merkhet.core.compute_engines import ASK_ENGINES, BUILD_ENGINES, AskEngine, Engines, choose_engines
from merkhet.core.credentials import refuse_study_credentials
from merkhet.core.errors import InputError, did_you_mean, located
from merkhet.core.files import path_exists
from merkhet.core.registry import Registry
from merkhet.core.settings import make_settings
from merkhet.engine.question_origin import find_origin, find_splits
from merkhet.engine.study import Study, apply_setting, make_study, read_study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_card import QuestionOrigin
from merkhet.engine.suite_options import check_options
from merkhet.models.model_lookup import ResolvedModel, add_chat_defaults, resolve_model
from merkhet.models.protocol import ASSOCIATION_PREFIX
from merkhet.probes import PROBES
from merkhet.training import LEARNERS, MEMORIZE, PRETRAIN

DEFAULT_MEMORIZER = "random:2x128"
"""Default model of studies in which models memorize facts."""


@dataclass(frozen=True)
class Request:
    """A user's request: a suite or a study file, with values that override its keys."""

    suite_or_study: str
    """Name of a suite, or path of a study file."""
    data: str | None = None
    knowledge: Sequence[str] = ()
    models: Sequence[Any] = ()
    tasks: Sequence[str] = ()
    limit: int | None = None
    seed: int | None = None
    settings: Sequence[str] = ()
    engines: Sequence[str] = ()
    workers: int | None = None
    cores: int | None = None
    memory: str | None = None
    trust: bool = False
    """Whether the user agrees to the foreign code that a study file names, and to the keys that it sends."""


@dataclass(frozen=True)
class ResolvedStudy:
    """A complete study with its suite, models and engines."""

    suite: Suite
    study: Study
    home: Path
    """Folder that the study's paths are relative to."""
    models: tuple[ResolvedModel, ...]
    """Models of the study, located and with hashed weights."""
    engines: Engines = field(default_factory=Engines)
    """Engines that build and ask the questions."""
    workers: int | None = None
    """Number of workers on Ray; as many as the cluster has resources for if None."""
    cores: int | None = None
    """CPU cores of each worker; chosen by the engine if None."""

    @cached_property
    def origin(self) -> QuestionOrigin:
        """Where the questions come from."""
        return find_origin(self.suite, self.study, self.home)

    @property
    def has_own_questions(self) -> bool:
        """Whether the questions are neither made by the suite nor read from its published files."""
        return self.origin.suite != self.suite.name

    @property
    def ask_engine(self) -> AskEngine | None:
        """The cluster whose workers ask the models; None if this process asks them."""
        engine = self.engines.ask
        if engine.name == ASK_ENGINES[0]:
            return None
        return AskEngine(engine.name, engine.address, self.workers, self.cores)


def resolve_study(request: Request, suites: Registry, *, with_models: bool = True) -> ResolvedStudy:
    """Resolve a request: load the suite, fill in defaults, check every name, and locate the models.

    Args:
        with_models: Whether to locate the models; False if questions are only built. Code that only asking needs is
            then not imported.

    Raises:
        ConsentError: A study file needs permissions that the user has not given. Nothing has been imported or sent.
        InputError: A name, value or path is invalid. No step has been executed.
    """
    content: dict[str, Any] = {"suite": request.suite_or_study}
    home, where, file = Path(), f"suite {request.suite_or_study}", None
    if request.suite_or_study.endswith((".yaml", ".yml")):
        file = Path(request.suite_or_study)
        content, home, where = read_study(file), file.parent, str(file)
        if "suite" not in content:
            raise InputError(f"{where}: the key 'suite' is missing; {did_you_mean('', suites)}")
    typed: dict[str, Any] = {}
    for setting in request.settings:
        apply_setting(content, setting)
        apply_setting(typed, setting)
    overrides = _overrides(request)
    content.update(overrides)
    typed.update(overrides)
    with located(where):
        refuse_study_credentials(content, with_models=with_models)
    requested = make_study(content, where)
    if file is not None:
        from merkhet.engine.permissions import check_permissions

        typed_study = make_study({"suite": requested.suite, **typed}, where)
        check_permissions(file, requested, typed_study, typed, suites, asks=with_models, trust=request.trust)
    suite: Suite = suites.get(requested.suite, home)
    run_defaults = {"models": [DEFAULT_MEMORIZER]} if memorizes(requested) else suite.run_defaults
    defaults = {**suite.defaults, **(run_defaults if with_models else {}), **suite.defaults_for(requested)}
    chosen = {key: getattr(requested, key) for key in requested.model_fields_set}
    if requested.learning is not None and "learner" not in requested.learning.model_fields_set:
        # Settings without a learner belong to the suite's default learner.
        chosen["learning"] = {**defaults.get("learning", {}), **requested.learning.model_dump(exclude_unset=True)}
    if requested.data is not None:
        defaults.pop("knowledge", None)
    study = make_study({**defaults, **chosen}, where)
    _check_names(study, suite, home, where, asks=with_models)
    if "learning" not in chosen and _lacks_training_questions(suite, study, home):
        study = study.model_copy(update={"learning": None})
    engines = _choose_engines(request, study, suite, where)
    models = _resolve_models(suite, study, home) if with_models else ()
    return ResolvedStudy(suite, study, home, models, engines, request.workers, request.cores)


def _lacks_training_questions(suite: Suite, study: Study, home: Path) -> bool:
    """Return whether a study that trains by default reads imported questions without a split to train on."""
    if study.learning is None or study.data is None or find_origin(suite, study, home).kind != "imported":
        return False
    return "train" not in find_splits(home / study.data)


def _choose_engines(request: Request, study: Study, suite: Suite, where: str) -> Engines:
    """Choose the engines that a request names.

    Raises:
        InputError: The suite cannot build on the engine, the study cannot be asked on it, or an option for workers is
            invalid or given without Ray.
    """
    engines = choose_engines(request.engines, request.memory)
    if engines.build.name != BUILD_ENGINES[0] and study.data is None and not suite.builds_on_engines:
        raise InputError(
            f"{where}: its questions are built in this process, not on {engines.build.name}; leave that engine out"
        )
    is_local = engines.ask.name == ASK_ENGINES[0]
    for option, count in (("--workers", request.workers), ("--cores-per-worker", request.cores)):
        if count is not None and is_local:
            raise InputError(f"{option} is for asking on Ray; add --engine ray, or leave it out")
        if count is not None and count < 1:
            raise InputError(f"{option} must be an integer ≥ 1, got {count}")
    if memorizes(study) and not is_local:
        raise InputError(
            f"{where}: memorizing runs ask in this process, not on {engines.ask.name}; leave that engine out"
        )
    return engines


def _overrides(request: Request) -> dict[str, Any]:
    overrides: Mapping[str, Any] = {
        "data": str(Path(request.data).resolve()) if request.data else None,
        "knowledge": [_resolve_path(source) for source in request.knowledge] or None,
        "models": [_model_content(model) for model in request.models] or None,
        "tasks": list(request.tasks) or None,
        "limit": request.limit,
        "seed": request.seed,
    }
    return {key: value for key, value in overrides.items() if value is not None}


def _resolve_path(path: str) -> str:
    """Make an existing path absolute, relative to the working folder; return any other text unchanged.

    Paths in a study file, in contrast, are relative to that file.
    """
    prefix = ASSOCIATION_PREFIX if path.startswith(ASSOCIATION_PREFIX) else ""
    named = path.removeprefix(prefix)
    return f"{prefix}{Path(named).resolve()}" if path_exists(Path(named)) else path


def _model_content(model: Any) -> Any:
    if isinstance(model, str):
        return _resolve_path(model)
    if isinstance(model, Mapping):
        return dict(model)
    return _register_model(model)


def _register_model(model: Any) -> str:
    """Register a model object under its name for the rest of this process, and return the name."""
    from merkhet.models import MODELS
    from merkhet.models.protocol import Model

    if not isinstance(model, Model):
        raise InputError(f"a model must be a name, a folder, a mapping or a Model, got {type(model).__name__}")
    MODELS.remove(model.name)
    MODELS.add(model.name, lambda: model)
    return model.name


def _check_names(study: Study, suite: Suite, home: Path, where: str, *, asks: bool) -> None:
    check_options(suite.options, suite.name, suite.analysis_names(), study, home, where)
    for task in study.tasks:
        if study.data is None and task not in suite.all_tasks:
            raise InputError(f"{where}: {suite.name} has no task {task!r}; {did_you_mean(task, suite.all_tasks)}")
    for choice in study.probes:
        _check_part(PROBES, choice.probe, home, asks=asks)
        if choice.options and asks:
            from merkhet.probes.probe_support import check_probe_options

            with located(where):
                check_probe_options(choice.probe, PROBES.get(choice.probe, home), choice.options)
    if study.shots and study.data is None and "split" not in suite.options.names():
        raise InputError(f"{where}: {suite.name} has no training questions to show as examples (shots)")
    if study.learning is not None:
        _check_part(LEARNERS, study.learning.learner, home, asks=asks)
        _check_pretraining(study, suite, home, where)
        _check_memorizing(study, suite, where)
    _check_metrics(study, home, asks=asks)
    if study.data is not None and not path_exists(home / study.data):
        raise InputError(f"{where}: there is no folder or file {study.data} (data); correct the path")


def _check_part(registry: Registry, name: str, home: Path, *, asks: bool) -> None:
    """Check a name; load foreign code, to check its type before any step is executed, only if models are asked."""
    registry.check(name)
    if asks and registry.foreign_reference(name) is not None:
        registry.get(name, home)


def _check_metrics(study: Study, home: Path, *, asks: bool) -> None:
    """Check the names of the metrics; load the metrics only if models are asked."""
    from merkhet.metrics import METRICS, registered_name

    for name in study.metrics:
        METRICS.check(registered_name(name))
        if asks:
            from merkhet.metrics.metrics import get_metric

            get_metric(name, home)


def _check_pretraining(study: Study, suite: Suite, home: Path, where: str) -> None:
    if study.learning is None or study.learning.learner != PRETRAIN:
        return
    from merkhet.training.pretraining_settings import resolve_pretraining

    if suite.trains_itself:
        raise InputError(
            f"{where}: {suite.name} plans its own trainings and cannot continue pre-training (learner {PRETRAIN})"
        )
    with located(where):
        resolve_pretraining(study.learning.settings, home)


def memorizes(study: Study) -> bool:
    """Check whether a study trains its models to memorize facts before they are asked."""
    return study.learning is not None and study.learning.learner == MEMORIZE


def _check_memorizing(study: Study, suite: Suite, where: str) -> None:
    if study.learning is None or not memorizes(study):
        return
    from merkhet.training.memorizing.memorize_settings import MemorizeSettings

    if not suite.memorizes:
        raise InputError(f"{where}: {suite.name} has nothing to memorize (learner {MEMORIZE}); choose another suite")
    with located(where):
        make_settings(MemorizeSettings, study.learning.settings)


def _resolve_models(suite: Suite, study: Study, home: Path) -> tuple[ResolvedModel, ...]:
    if not study.models:
        raise InputError("no model is named; give one with --model, or under 'models' in the study")
    settings = suite.model_settings(study)
    specs = [replace(choice.spec(), **settings) for choice in study.models]
    resolved = tuple(resolve_model(add_chat_defaults(spec, study.chat, study.seed), home) for spec in specs)
    names: set[str] = set()
    for model in resolved:
        if model.name in names:
            raise InputError(f"two models are called {model.name!r}; give one of them another 'label' in the study")
        names.add(model.name)
        if model.kind == "blank" and not memorizes(study):
            raise InputError(
                f"{model.name} has random weights and knows nothing; it can memorize facts ('merkhet memorize'), but "
                "cannot be asked as it is"
            )
    return resolved
