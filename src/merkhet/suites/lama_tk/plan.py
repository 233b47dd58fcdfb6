"""Plan of a memorizing study: steps for facts and sets of statements, then the standard steps of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.analysis.comparison import Condition as TrainingCondition
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.settings import make_settings
from merkhet.engine.ask_planning import public_source, training_seed, training_suffix
from merkhet.engine.asker import ModelRuntime
from merkhet.engine.memorize_steps import (
    RecallParams,
    StatementQuestionParams,
    memorize_statements,
    recall,
    recall_by_frequency,
    write_statement_questions,
)
from merkhet.engine.plan import NOTHING, AnyStep, Plan, Step, StepContext
from merkhet.engine.planning import hash_build_inputs, make_standard_plan, make_study_step
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, QUESTION_TABLES, SYMBOLS_FILE, read_json
from merkhet.engine.study import STATEMENT_GROUPS, Study, make_study
from merkhet.engine.suite import AnalysisFunction, AskingSteps, Suite
from merkhet.engine.suite_card import ScoringRule
from merkhet.engine.training_steps import WeightParams, WeightRuntime
from merkhet.metrics.recalls import RECALL_METRICS
from merkhet.models.model_lookup import ResolvedModel
from merkhet.suites.lama_tk.analyses.boundary import boundaries
from merkhet.suites.lama_tk.analyses.implicit import implicit
from merkhet.suites.lama_tk.analyses.storage import storage
from merkhet.suites.lama_tk.build import open_knowledge
from merkhet.suites.lama_tk.memory_sets import (
    ALL_FACTS_FILE,
    COUNTED,
    TASKS,
    Condition,
    Design,
    FactsParams,
    FactsRuntime,
    SetsParams,
    SetsRuntime,
    make_design,
    make_sets,
    remaining_conditions,
    set_file,
    summarize_facts,
    summarize_sets,
    write_facts,
)
from merkhet.suites.lama_tk.options import LamaTkOptions
from merkhet.suites.lama_tk.questions.temporal_facts import extract_temporal_facts
from merkhet.suites.lama_tk.questions.time_queries import select_controlled
from merkhet.suites.lama_tk.questions.wordings import read_wordings
from merkhet.training import MEMORIZE
from merkhet.training.artifact import process_settings, result_settings
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

EXPERIMENT_ANALYSES: Mapping[str, tuple[str | AnalysisFunction, ...]] = {
    "storage": (storage, "cutoffs", "trainings"),
    "boundary": (boundaries, "trainings"),
    "implicit": (implicit, "cutoffs", "trainings"),
}
"""Analyses that each experiment reports."""
FREQUENCY = "frequency"
NO_BASELINE = (
    f"The baseline {FREQUENCY} is left out: it counts answers in facts that no statement asks about, and there are "
    "none."
)
ABOUT = (
    "How many facts with times a model can store, and what it answers from them: stored statements, and statements "
    "that it was never trained on."
)
METHODS = (
    "Facts with times are put into sentences, in each of which one element is masked: the subject, the object, the "
    "start or the end. A model has one output for each entity and each time. It is trained to fill the masks of the "
    "stored statements, and then asked these and others that it was not trained on. Outputs with equal scores share "
    "their ranks. Intervals treat the statements of one fact, and those with one prompt, as one observation. Scores "
    "cover all statements that were asked."
)


def memory_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Plan a memorizing study: gather facts, make sets of statements, train models on them, ask, score and report.

    Raises:
        InputError: A model cannot memorize, or options and settings do not fit a memorizing study.
    """
    study = resolved.study
    options = LamaTkOptions.of(study)
    make_settings(MemorizeSettings, study.learning.settings if study.learning else {})
    for key, alternative in (("limit", "options.sizes or options.facts"), ("tasks", "options.experiment")):
        if getattr(study, key):
            raise InputError(f"{key} does not apply to a study that memorizes; use {alternative}")
    unknown = [name for name in study.metrics if name not in RECALL_METRICS]
    if unknown:
        raise InputError(f"metric {unknown[0]!r} cannot score recalls; {did_you_mean(unknown[0], RECALL_METRICS)}")
    for model in resolved.models:
        _check_model_kind(model)

    def plan_sets(folder: Path) -> Plan:
        design = make_design(options, read_json(folder / ABOUT_FACTS))
        return Plan((_sets_step(resolved, options, design),), lambda folder: plan_rest(folder, design))

    def plan_rest(folder: Path, design: Design) -> Plan:
        sizes = read_json(folder / ABOUT_SETS)["statements"]
        conditions = remaining_conditions(design, sizes)
        suite = make_memorizing_suite(
            resolved, options, replace(design, conditions=conditions), has_counts=sizes[COUNTED] > 0
        )
        metrics = [name for name in RECALL_METRICS if name in study.metrics] or list(RECALL_METRICS)
        ordered = study.model_copy(update={"metrics": metrics})
        return make_standard_plan(replace(resolved, suite=suite, study=ordered), command)

    return Plan((_facts_step(resolved, options), make_study_step(resolved)), plan_sets)


@dataclass(frozen=True)
class MemorizingSuite(Suite):
    """Variant of the LAMA-TK suite for memorizing studies."""

    memory: Memory | None = None
    names: Mapping[str, str] | None = None

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the display names of relations for use in sentences."""
        return self.names or {}

    def scoring(self, study: Study) -> ScoringRule:
        """Return the scoring rule for recalled statements."""
        return ScoringRule(statements=True)

    def score_groups(self, study: Study) -> tuple[tuple[str, ...], ...]:
        """Return the combinations of columns by which scores are grouped."""
        return (*((name,) for name in STATEMENT_GROUPS), ("mask", "conflict"))

    def build_steps(self, resolved: ResolvedStudy) -> tuple[AnyStep, ...]:
        """Return the step that turns all asked statements into questions."""
        assert self.memory is not None
        sets = tuple(map(set_file, self.memory.asked_sets()))
        inputs = (ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, SYMBOLS_FILE, *sets)
        params = StatementQuestionParams(self.name)
        return (Step("questions", "build", write_statement_questions, params, NOTHING, inputs, QUESTION_TABLES),)

    def asking_steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Return the steps in which models memorize statements and are asked for them."""
        assert self.memory is not None
        return self.memory.steps(resolved)


def make_memorizing_suite(
    resolved: ResolvedStudy, options: LamaTkOptions, design: Design, *, has_counts: bool
) -> MemorizingSuite:
    """Return the variant of the LAMA-TK suite for a memorizing study.

    Args:
        has_counts: Whether there are facts that no statement asks about, whose targets the baseline counts.
    """
    suite, experiment = resolved.suite, options.experiment
    return MemorizingSuite(
        name=suite.name,
        title=suite.title,
        about=ABOUT,
        methods=METHODS,
        published_methods=suite.published_methods,
        citations=suite.citations,
        build=suite.build,
        tasks=TASKS[experiment],
        headline=tuple((task, RECALL_METRICS[0]) for task in TASKS[experiment]),
        options=suite.options,
        published=suite.published,
        analyses=EXPERIMENT_ANALYSES[experiment],
        experiment=experiment,
        memory=Memory(design, resolved.study.trainings, has_counts),
        names=suite.relation_names(resolved.study, resolved.home),
    )


def gather_facts(context: StepContext[FactsParams, FactsRuntime]) -> None:
    """Read the knowledge base of a study, and write its facts with times.

    Raises:
        InputError: No fact has times.
    """
    study = context.params.study
    options = LamaTkOptions.of(study)
    with open_knowledge(study, context.home) as (knowledge, remarks):
        facts = extract_temporal_facts(
            knowledge,
            granularity=options.granularity,
            relations=options.relations,
            wordings=read_wordings(options.wordings and context.home / options.wordings),
        )
    summary: dict[str, Any] = {"experiment": options.experiment}
    if options.experiment == "implicit":
        summary["controlled"] = select_controlled(facts, options.facts, study.seed).table.num_rows
    summary["remarks"] = [*remarks, *facts.remarks]
    write_facts(context, facts, summary)


def _check_model_kind(model: ResolvedModel) -> None:
    if model.kind in ("masked", "blank"):
        return
    kind = "an encoder without a masked head" if model.kind == "encoder" else f"a {model.kind} model"
    if model.kind == "baseline":
        kind = "a baseline" + (" (which every run asks if it can)" if model.name == FREQUENCY else "")
    raise InputError(
        f"only masked models can memorize, and {model.name} is {kind}; leave it out, or name a masked model or "
        "random:2x128"
    )


def _facts_step(resolved: ResolvedStudy, options: LamaTkOptions) -> Step[FactsParams, FactsRuntime]:
    study = resolved.study
    study_values = study.model_dump(include={"suite", "data", "knowledge", "seed"})
    option_names = (
        *("granularity", "relations", "wordings", "experiment"),
        *(("facts",) if options.experiment == "implicit" else ()),
    )
    study_values["options"] = {key: study.options[key] for key in option_names if key in study.options}
    files = {"wordings": file_digest(resolved.home / options.wordings)} if options.wordings is not None else {}
    params = FactsParams(make_study(study_values, "study"), hash_build_inputs(resolved, files))
    outputs = (FACTS_FILE, ALL_FACTS_FILE, SYMBOLS_FILE, ABOUT_FACTS)
    return Step("facts", "build", gather_facts, params, FactsRuntime(options), (), outputs, summarize_facts)


def _sets_step(resolved: ResolvedStudy, options: LamaTkOptions, design: Design) -> Step[SetsParams, SetsRuntime]:
    params = SetsParams(
        recipes=design.recipes,
        stored=tuple(sorted({condition.stored for condition in design.conditions})),
        entities=options.entities,
        seed=resolved.study.seed,
        remarks=design.remarks,
        wordings=file_digest(resolved.home / options.wordings) if options.wordings else None,
    )
    return Step(
        "sets",
        "build",
        make_sets,
        params,
        SetsRuntime(options.wordings),
        (FACTS_FILE, ALL_FACTS_FILE, SYMBOLS_FILE, ABOUT_FACTS),
        (ABOUT_SETS, *(set_file(name) for name in (*design.recipes, COUNTED))),
        summarize_sets,
    )


@dataclass(frozen=True)
class Memory:
    """Planner of the steps in which models memorize and recall, for a design and a number of trainings."""

    design: Design
    trainings: int
    has_counts: bool
    """Whether the frequency baseline has answers to count."""

    def asked_sets(self) -> list[str]:
        """Return the names of the sets that models are asked under any condition."""
        return list(dict.fromkeys(name for condition in self.design.conditions for name in condition.asked))

    def steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Make the steps for every model and condition, for the baselines, and for repeated trainings."""
        models = [(number, condition) for number in range(len(resolved.models)) for condition in self.design.conditions]
        first = [step for number, condition in models for step in self._model_steps(resolved, number, condition)]
        repeated = [
            tuple(
                step
                for number, condition in models
                for step in self._model_steps(resolved, number, condition, training)
            )
            for training in range(1, self.trainings)
        ]
        baselines = self._baseline_steps() if self.has_counts else []
        asks = [step for step in (*first, *baselines) if step.kind == "ask"]
        return AskingSteps(
            (*first, *baselines),
            repeated=tuple(repeated),
            conditions={
                step.params.name: TrainingCondition(step.params.base, **step.params.condition) for step in asks
            },
            remarks=() if self.has_counts else (NO_BASELINE,),
        )

    def _baseline_steps(self) -> list[AnyStep]:
        """Make one recall step of the frequency baseline for each stored set.

        The baseline is asked the same statements as the models that store the set. It knows none of their facts.
        """
        by_set: dict[str, list[Condition]] = {}
        for condition in self.design.conditions:
            by_set.setdefault(condition.stored, []).append(condition)
        steps: list[AnyStep] = []
        for conditions in by_set.values():
            name = FREQUENCY if len(by_set) == 1 else f"{FREQUENCY}, {conditions[0].label}"
            asked = dict.fromkeys(set_file(asked) for condition in conditions for asked in condition.asked)
            params = RecallParams(
                name=name,
                base=FREQUENCY,
                condition=_condition_record(conditions[-1]),
                asked=tuple(asked),
                stored=set_file(COUNTED),
                kind="baseline",
            )
            inputs = tuple(dict.fromkeys((SYMBOLS_FILE, set_file(COUNTED), *asked)))
            outputs = _answer_files(f"{_slug(name)}-{digest(name)[:6]}")
            steps.append(Step(f"recall {name}", "ask", recall_by_frequency, params, NOTHING, inputs, outputs))
        return steps

    def _model_steps(
        self, resolved: ResolvedStudy, number: int, condition: Condition, training: int = 0
    ) -> tuple[AnyStep, AnyStep]:
        """Make the two steps in which a model memorizes and recalls statements under one condition.

        The first training uses the study's seed; each repeated training uses a derived seed.
        """
        model, study = resolved.models[number], resolved.study
        model_label = f"{model.name}, {condition.label}"
        name = f"{model_label}{training_suffix(training)}"
        stem = f"{number:02d}-{_slug(name)}-{digest([name, MEMORIZE])[:6]}"
        base_settings = study.learning.settings if study.learning else {}
        settings = make_settings(MemorizeSettings, {**base_settings, **condition.settings})
        source = public_source(model.source)
        learn = Step(
            f"memorize {name}",
            "learn",
            memorize_statements,
            WeightParams(
                name=name,
                fingerprint=model.fingerprint,
                kind=model.kind,
                dtype=model.spec.dtype,
                settings=result_settings(settings),
                seed=training_seed(study.seed, training),
            ),
            WeightRuntime(model.spec, source, process_settings(settings)),
            (SYMBOLS_FILE, set_file(condition.stored)),
            (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors"),
        )
        params = RecallParams(
            name=model_label,
            base=model.name,
            condition=_condition_record(condition),
            asked=tuple(map(set_file, condition.asked)),
            stored=set_file(condition.stored),
            fingerprint=model.fingerprint,
        )
        inputs = (*learn.outputs, SYMBOLS_FILE, *params.asked)
        runtime = ModelRuntime(model.spec, source)
        return learn, Step(f"recall {name}", "ask", recall, params, runtime, inputs, _answer_files(stem))


def _condition_record(condition: Condition) -> dict[str, Any]:
    return {"label": condition.label, "settings": dict(condition.attributes)}


def _answer_files(stem: str) -> tuple[str, str]:
    return f".merkhet/answers/{stem}.parquet", f".merkhet/answers/{stem}.json"


def _slug(name: str) -> str:
    """Convert a name to at most 60 ASCII letters, digits and hyphens, for use in file names."""
    words = "".join(
        letter if letter.isascii() and letter.isalnum() else " " for letter in name.replace(",", "")
    ).split()
    return "-".join(words)[:60]
