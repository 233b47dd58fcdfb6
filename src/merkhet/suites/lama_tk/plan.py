"""Plan of a memorizing study: facts first, then the steps that depend on their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.analysis.cutoffs import cutoffs
from merkhet.analysis.memory_types import MemoryAnalysis
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest
from merkhet.core.ids import derived_seed, digest
from merkhet.core.settings import make_settings
from merkhet.engine.ask_planning import public_source
from merkhet.engine.asker import ModelRuntime
from merkhet.engine.memorize_steps import (
    PROBE,
    MemorizeParams,
    MemorizeRuntime,
    RecallAnalysisParams,
    RecallParams,
    RecallPart,
    RecallParts,
    RecallRecordParams,
    RecallScoreParams,
    memorize_statements,
    recall,
    write_recall_analyses,
    write_recall_record,
    write_recall_scores,
)
from merkhet.engine.plan import NOTHING, AnyStep, Plan, Step, StepContext
from merkhet.engine.planning import (
    hash_build_inputs,
    make_calibration_step,
    make_report_steps,
    make_study_step,
)
from merkhet.engine.recall_findings import RecallFindingsParams, write_recall_findings
from merkhet.engine.recall_sample import SampleParams, write_recall_sample
from merkhet.engine.record_step import RecordRuntime
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, QUESTION_TABLES, SYMBOLS_FILE, read_json
from merkhet.engine.study import make_study
from merkhet.engine.suite_card import HeadlineScore, SuiteCard
from merkhet.metrics.recall_scores import RECALL_METRICS
from merkhet.models.model_lookup import ResolvedModel
from merkhet.suites.lama_tk.analyses.boundary import boundaries
from merkhet.suites.lama_tk.analyses.implicit import implicit
from merkhet.suites.lama_tk.analyses.storage import storage
from merkhet.suites.lama_tk.build import open_knowledge
from merkhet.suites.lama_tk.memory_sets import (
    ALL_FACTS_FILE,
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

EXPERIMENT_ANALYSES: Mapping[str, tuple[MemoryAnalysis, ...]] = {
    "storage": (storage, cutoffs),
    "boundary": (boundaries,),
    "implicit": (implicit, cutoffs),
}
"""Analyses of each experiment."""
FREQUENCY = "frequency"
ABOUT = (
    "What a model can store of facts with times, and what it answers from that: what it stored, and what it was never "
    "told in these words."
)
METHODS = (
    "Facts with times are put into sentences, in each of which one thing is masked: the subject, the object, the start "
    "or the end. A model has one output for each entity and each time. It is trained to fill the masks of what it "
    "stores, and then asked the same statements, and others that it was not trained on. Outputs of one score share "
    "their places. Intervals take the statements of one fact, and those that are one sentence, as one observation. "
    "Scores are of all statements that were asked."
)


def memory_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Plan to gather facts, make sets of statements, memorize and recall under every condition, score and report.

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

    def rest(folder: Path) -> Plan:
        planner = _Planner(resolved, options, command, make_design(options, read_json(folder / ABOUT_FACTS)))
        return Plan((planner.sets_step(),), planner.rest)

    return Plan((_facts_step(resolved, options), make_study_step(resolved)), rest)


def gather_facts(context: StepContext[FactsParams, FactsRuntime]) -> None:
    """Read a study's knowledge, and write its facts with times.

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
        kind = "a baseline" + (" (which is asked anyway)" if model.name == FREQUENCY else "")
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


@dataclass(frozen=True)
class _MemorySteps:
    """A model under one condition: the steps in which it memorizes and recalls, and the parts to score."""

    steps: tuple[AnyStep, AnyStep]
    parts: tuple[RecallPart, ...]


@dataclass(frozen=True)
class _Planner:
    """Plans the steps after the facts."""

    resolved: ResolvedStudy
    options: LamaTkOptions
    command: str
    design: Design

    def rest(self, folder: Path) -> Plan:
        """Plan the steps after the sets, whose sizes are known then."""
        conditions = remaining_conditions(self.design, read_json(folder / ABOUT_SETS)["statements"])
        return replace(self, design=replace(self.design, conditions=conditions)).plan()

    def plan(self) -> Plan:
        """Plan memorizing and recalling for every model and condition, then scores, analyses and report."""
        study, suite = self.resolved.study, self.resolved.suite
        numbers = range(len(self.resolved.models))
        memorized = [self._plan_memory(number, condition) for number in numbers for condition in self.design.conditions]
        repeated = [
            self._plan_memory(number, condition, training)
            for training in range(1, self.options.trainings)
            for number in numbers
            for condition in self.design.conditions
        ]
        parts = tuple(part for memory in memorized for part in memory.parts)
        repeated_parts = tuple(part for memory in repeated for part in memory.parts)
        sets = tuple(dict.fromkeys(name for part in parts for name in (part.stored, part.asked)))
        recalls = tuple(str(part.recalls) for part in (*parts, *repeated_parts))
        abouts = tuple(memory.steps[1].outputs[0] for memory in memorized)
        records = tuple(memory.steps[0].outputs[0] for memory in memorized)
        card = self._card()
        recalled = RecallParts(parts, self._baselines())
        all_recalled = replace(recalled, repeated=repeated_parts)
        analyses = EXPERIMENT_ANALYSES[self.options.experiment]
        steps: tuple[AnyStep, ...] = (
            *(step for memory in [*memorized, *repeated] for step in memory.steps),
            Step(
                "score",
                "score",
                write_recall_scores,
                RecallScoreParams(suite.name, study.seed, tuple(self._metrics()), recalled),
                NOTHING,
                (SYMBOLS_FILE, *sets, *recalls),
                ("scores.parquet", "scores.json"),
            ),
            Step(
                "sample",
                "score",
                write_recall_sample,
                SampleParams(suite.name, study.seed, recalled),
                NOTHING,
                (ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, SYMBOLS_FILE, *sets, *recalls),
                (*QUESTION_TABLES, "answers.parquet"),
            ),
            Step(
                "examine",
                "analyse",
                write_recall_analyses,
                RecallAnalysisParams(self.options.experiment, study.seed, all_recalled, analyses),
                NOTHING,
                (SYMBOLS_FILE, "scores.parquet", *sets, *recalls, *records),
                ("analyses.json",),
            ),
            Step(
                "analyse",
                "analyse",
                write_recall_findings,
                RecallFindingsParams(card.headline, study.seed, self.options.trainings, recalled),
                NOTHING,
                (SYMBOLS_FILE, "analyses.json", *sets, *recalls),
                ("findings.json",),
            ),
            make_calibration_step([PROBE], self.resolved.home),
            Step(
                "record",
                "report",
                write_recall_record,
                RecallRecordParams(suite.name, card, study.seed, recalled),
                RecordRuntime(self.command),
                (*QUESTION_TABLES, "answers.parquet", ABOUT_FACTS, *sets, *abouts),
                ("run.json",),
            ),
            *make_report_steps(self.resolved, card, ["analyses.json"]),
        )
        return Plan(steps)

    def _metrics(self) -> list[str]:
        return [name for name in RECALL_METRICS if name in self.resolved.study.metrics] or list(RECALL_METRICS)

    def _card(self) -> SuiteCard:
        suite, experiment = self.resolved.suite, self.options.experiment
        return replace(
            suite.card(),
            about=ABOUT,
            methods=METHODS,
            analyses=(),
            printed_analyses=(),
            main_methods=(),
            headline=tuple(HeadlineScore(task, self._metrics()[0]) for task in TASKS[experiment]),
            names=dict(suite.relation_names(self.resolved.study, self.resolved.home)),
            experiment=experiment,
        )

    def sets_step(self) -> Step[SetsParams, SetsRuntime]:
        """Make the step that makes the sets of statements."""
        design = self.design
        params = SetsParams(
            recipes=design.recipes,
            stored=tuple(sorted({condition.stored for condition in design.conditions})),
            entities=self.options.entities,
            seed=self.resolved.study.seed,
            remarks=design.remarks,
            wordings=file_digest(self.resolved.home / self.options.wordings) if self.options.wordings else None,
        )
        return Step(
            "sets",
            "build",
            make_sets,
            params,
            SetsRuntime(self.options.wordings),
            (FACTS_FILE, ALL_FACTS_FILE, SYMBOLS_FILE, ABOUT_FACTS),
            (ABOUT_SETS, *(set_file(name) for name in design.recipes)),
            summarize_sets,
        )

    def _baselines(self) -> tuple[RecallPart, ...]:
        """Make the parts of the baseline: all sets that models are asked, for each stored set."""
        design = self.design
        stored = {condition.stored: condition for condition in reversed(design.conditions)}
        names = {
            set_name: FREQUENCY if len(stored) == 1 else f"{FREQUENCY}, {stored[set_name].label}" for set_name in stored
        }
        parts = {
            (condition.stored, asked): RecallPart(
                model=names[condition.stored],
                base=FREQUENCY,
                stored=set_file(condition.stored),
                asked=set_file(asked),
                task=design.recipes[asked].kind,
                condition=condition.label,
                about=dict(condition.attributes),
            )
            for condition in design.conditions
            for asked in condition.asked
        }
        return tuple(parts.values())

    def _plan_memory(self, number: int, condition: Condition, training: int = 0) -> _MemorySteps:
        """Plan how a model memorizes and recalls under one condition.

        The first training uses the study's seed, each further one a derived seed.
        """
        model, study = self.resolved.models[number], self.resolved.study
        model_label = f"{model.name}, {condition.label}"
        name = f"{model_label}, training {training + 1}" if training else model_label
        seed = derived_seed(study.seed, "training", str(training)) if training else study.seed
        stem = f"{number:02d}-{_slug(name)}-{digest([name, MEMORIZE])[:6]}"
        base_settings = study.learning.settings if study.learning else {}
        settings = make_settings(MemorizeSettings, {**base_settings, **condition.settings})
        source = public_source(model.source)
        learn = Step(
            f"memorize {name}",
            "learn",
            memorize_statements,
            MemorizeParams(
                name=name,
                fingerprint=model.fingerprint,
                kind=model.kind,
                dtype=model.spec.dtype,
                settings=result_settings(settings),
                seed=seed,
            ),
            MemorizeRuntime(model.spec, source, process_settings(settings)),
            (SYMBOLS_FILE, set_file(condition.stored)),
            (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors"),
        )
        parts = tuple(
            RecallPart(
                model=model_label,
                base=model.name,
                stored=set_file(condition.stored),
                asked=set_file(asked),
                task=self.design.recipes[asked].kind,
                condition=condition.label,
                about=dict(condition.attributes),
                recalls=f"recalls/{stem}-{self.design.recipes[asked].kind}.parquet",
                learned=learn.outputs[0],
            )
            for asked in condition.asked
        )
        ask = Step(
            f"recall {name}",
            "ask",
            recall,
            RecallParams(name, model.fingerprint),
            ModelRuntime(model.spec, source),
            (*learn.outputs, *(part.asked for part in parts)),
            (f".merkhet/recalls/{stem}.json", *(str(part.recalls) for part in parts)),
        )
        return _MemorySteps((learn, ask), parts)


def _slug(name: str) -> str:
    """Convert a name for use in file names."""
    words = "".join(
        letter if letter.isascii() and letter.isalnum() else " " for letter in name.replace(",", "")
    ).split()
    return "-".join(words)[:60]
