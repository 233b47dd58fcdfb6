"""The plan of a study in which models memorize: facts gathered, then everything that hangs on how many they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest
from merkhet.core.ids import derived_seed, digest
from merkhet.core.registry import part_identity
from merkhet.engine.build_step import data_files
from merkhet.engine.memorize_steps import PROBE
from merkhet.engine.plan import Plan, Step, StepContext
from merkhet.engine.planning import QUESTIONS, calibration_step, public, report_steps
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import read_json
from merkhet.engine.study import make_study, study_yaml
from merkhet.knowledge.source_lookup import material_identity
from merkhet.metrics.recall_scores import METRICS
from merkhet.models.model_lookup import ResolvedModel
from merkhet.suites.lama_tk.build import knowledge_of
from merkhet.suites.lama_tk.memory_sets import (
    ABOUT_FACTS,
    ABOUT_SETS,
    FACTS_FILE,
    KNOWN_FILE,
    SYMBOLS_FILE,
    TASKS,
    Condition,
    Design,
    design,
    set_file,
    settled,
    write_facts,
)
from merkhet.suites.lama_tk.options import LamaTkOptions, read_options
from merkhet.suites.lama_tk.questions.temporal_facts import temporal_facts
from merkhet.suites.lama_tk.questions.time_queries import controlled
from merkhet.suites.lama_tk.questions.wordings import read_wordings
from merkhet.training import MEMORIZE
from merkhet.training.artifact import deciding, together
from merkhet.training.memorizing.memorize_settings import make_memorize_settings

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
    """Gather the facts; then make sets, and for every model and condition memorize and recall; score and report.

    Refuses what can be refused before work begins: models that cannot memorize, options and settings that make no
    sense.
    """
    study = resolved.study
    options = read_options(study, resolved.home)
    make_memorize_settings(study.learning.settings if study.learning else {})
    for key, instead in (("limit", "options.sizes or options.facts"), ("tasks", "options.experiment")):
        if getattr(study, key):
            raise InputError(f"{key} says nothing of a study that memorizes; say {instead}")
    unknown = [name for name in study.metrics if name not in METRICS]
    if unknown:
        raise InputError(f"what was memorized is not scored by {unknown[0]!r}; {did_you_mean(unknown[0], METRICS)}")
    for model in resolved.models:
        _refuse_others(model)
    first = (
        _facts_step(resolved, options),
        Step(
            "study", "build", "merkhet.engine.build_step:write_study", {"yaml": study_yaml(study)}, (), ("study.yaml",)
        ),
    )

    def rest(folder: Path) -> Plan:
        planner = _Planner(
            resolved,
            options,
            command,
            design(options.experiment, asdict(options), read_json(folder / ABOUT_FACTS)),
        )
        return Plan((planner.sets_step(),), planner.rest)

    return Plan(first, rest)


def gather_facts(context: StepContext) -> None:
    """Read a study's knowledge, and write what of it has times; refuses knowledge that has none."""
    study = make_study(context.params["study"], "study")
    options = read_options(study, context.home)
    with knowledge_of(study, context.home) as (knowledge, remarks):
        facts = temporal_facts(
            knowledge,
            granularity=options.granularity,
            relations=options.relations,
            wordings=read_wordings(options.wordings),
        )
    about: dict[str, Any] = {"experiment": options.experiment}
    if options.experiment == "implicit":
        about["controlled"] = controlled(facts, options.facts, study.seed).table.num_rows
    about["remarks"] = [*remarks, *facts.remarks]
    write_facts(context, facts, about)


def _refuse_others(model: ResolvedModel) -> None:
    if model.kind in ("masked", "blank"):
        return
    what = "an encoder without a masked head" if model.kind == "encoder" else f"a {model.kind} model"
    if model.kind == "baseline":
        what = "a baseline" + (" (which is asked anyway)" if model.name == FREQUENCY else "")
    raise InputError(
        f"{model.name} is {what}, and only masked models memorize; leave it out, or name a masked one or random:2x128"
    )


def _facts_step(resolved: ResolvedStudy, options: LamaTkOptions) -> Step:
    study, home = resolved.study, resolved.home
    contents: dict[str, Any] = {"suite": part_identity(study.suite, home)}
    if study.data is None:
        contents["knowledge"] = [material_identity(place, home) for place in study.knowledge]
    else:
        contents["data"] = [file_digest(path) for path in data_files(resolved.suite, home / study.data)]
    if options.wordings is not None:
        contents["wordings"] = file_digest(options.wordings)
    kept = study.model_dump(include={"suite", "data", "knowledge", "seed"})
    wanted = (
        "granularity",
        "relations",
        "wordings",
        "experiment",
        *(("facts",) if options.experiment == "implicit" else ()),
    )
    kept["options"] = {key: study.options[key] for key in wanted if key in study.options}
    return Step(
        "facts",
        "build",
        "merkhet.suites.lama_tk.plan:gather_facts",
        {"study": kept, "contents": contents},
        (),
        (FACTS_FILE, KNOWN_FILE, SYMBOLS_FILE, ABOUT_FACTS),
        {"options": asdict(options)},
    )


@dataclass(frozen=True)
class _Memory:
    """A model under one condition: the steps in which it memorizes and recalls, and what they leave to be scored."""

    steps: tuple[Step, Step]
    parts: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Planner:
    """The steps after the facts."""

    resolved: ResolvedStudy
    options: LamaTkOptions
    command: str
    made: Design

    def rest(self, folder: Path) -> Plan:
        """Everything after the sets, of which it is known then how large they are."""
        conditions = settled(self.made, read_json(folder / ABOUT_SETS)["statements"])
        return replace(self, made=replace(self.made, conditions=conditions)).plan()

    def plan(self) -> Plan:
        """Every model under every condition, and what is made of it."""
        study, made = self.resolved.study, self.made
        memorized = [
            self._memory(number, condition)
            for number in range(len(self.resolved.models))
            for condition in made.conditions
        ]
        again = [
            self._memory(number, condition, training)
            for training in range(1, self.options.trainings)
            for number in range(len(self.resolved.models))
            for condition in made.conditions
        ]
        parts = [part for one in memorized for part in one.parts]
        others = [part for one in again for part in one.parts]
        baselines = self._baselines()
        sets = tuple(dict.fromkeys(name for part in parts for name in (part["stored"], part["asked"])))
        recalls = tuple(part["recalls"] for part in [*parts, *others])
        abouts = tuple(one.steps[1].outputs[0] for one in memorized)
        records = tuple(one.steps[0].outputs[0] for one in memorized)
        card = self._card()
        common = {"parts": parts, "baselines": baselines}
        repeated = {"again": others} if others else {}
        steps = (
            *(step for one in [*memorized, *again] for step in one.steps),
            Step(
                "score",
                "score",
                "merkhet.engine.memorize_steps:score",
                {"suite": self.resolved.suite.name, "seed": study.seed, "metrics": self._metrics(), **common},
                (SYMBOLS_FILE, *sets, *recalls),
                ("scores.parquet", "scores.json"),
            ),
            Step(
                "sample",
                "score",
                "merkhet.engine.recall_sample:sample",
                {"suite": self.resolved.suite.name, "seed": study.seed, **common},
                (ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, SYMBOLS_FILE, *sets, *recalls),
                (*QUESTIONS, "answers.parquet"),
            ),
            Step(
                "examine",
                "analyse",
                "merkhet.engine.memorize_steps:examine",
                {"experiment": self.options.experiment, "seed": study.seed, **common, **repeated},
                (SYMBOLS_FILE, "scores.parquet", *sets, *recalls, *records),
                ("analyses.json",),
            ),
            Step(
                "analyse",
                "analyse",
                "merkhet.engine.recall_findings:analyse",
                {"headline": card["headline"], "seed": study.seed, "trainings": self.options.trainings, **common},
                (SYMBOLS_FILE, "analyses.json", *sets, *recalls),
                ("findings.json",),
            ),
            calibration_step([PROBE], self.resolved.home),
            Step(
                "record",
                "report",
                "merkhet.engine.memorize_steps:record",
                {"suite": self.resolved.suite.name, "card": card, "seed": study.seed, **common},
                (*QUESTIONS, "answers.parquet", ABOUT_FACTS, *sets, *abouts),
                ("run.json",),
                {"command": self.command},
            ),
            *report_steps(self.resolved, card, ["analyses.json"]),
        )
        return Plan(steps)

    def _metrics(self) -> list[str]:
        return [name for name in METRICS if name in self.resolved.study.metrics] or list(METRICS)

    def _card(self) -> dict[str, Any]:
        suite = self.resolved.suite
        experiment = self.options.experiment
        return {
            **suite.card(),
            "about": ABOUT,
            "methods": METHODS,
            "analyses": [],
            "told": [],
            "main_methods": [],
            "headline": [{"task": task, "metric": self._metrics()[0]} for task in TASKS[experiment]],
            "names": dict(suite.names(self.resolved.study, self.resolved.home)),
            "experiment": experiment,
        }

    def sets_step(self) -> Step:
        """The step that makes the sets of statements."""
        made = self.made
        given = self.resolved.study.options.get("wordings")
        params = {
            "recipes": {name: dict(recipe) for name, recipe in made.recipes.items()},
            "stored": sorted({condition.stored for condition in made.conditions}),
            "entities": self.options.entities,
            "seed": self.resolved.study.seed,
            "remarks": list(made.remarks),
            "wordings": file_digest(self.options.wordings) if self.options.wordings else None,
        }
        return Step(
            "sets",
            "build",
            "merkhet.suites.lama_tk.memory_sets:make_sets",
            params,
            (FACTS_FILE, KNOWN_FILE, SYMBOLS_FILE, ABOUT_FACTS),
            (ABOUT_SETS, *(set_file(name) for name in made.recipes)),
            {"wordings": given},
        )

    def _baselines(self) -> list[dict[str, Any]]:
        """What the baseline is asked: the same as models, once for each set that is stored."""
        made = self.made
        stored = {condition.stored: condition for condition in reversed(made.conditions)}
        names = {one: FREQUENCY if len(stored) == 1 else f"{FREQUENCY}, {stored[one].label}" for one in stored}
        found = {
            (condition.stored, asked): {
                "model": names[condition.stored],
                "base": FREQUENCY,
                "stored": set_file(condition.stored),
                "asked": set_file(asked),
                "task": made.recipes[asked]["kind"],
                "condition": condition.label,
                "about": dict(condition.about),
            }
            for condition in made.conditions
            for asked in condition.asked
        }
        return list(found.values())

    def _memory(self, number: int, condition: Condition, training: int = 0) -> _Memory:
        """The steps in which a model memorizes and recalls under one condition, and what they leave to be scored.

        The first training has the study's seed, and each further one a seed of its own.
        """
        model, study = self.resolved.models[number], self.resolved.study
        whole = f"{model.name}, {condition.label}"
        name = f"{whole}, training {training + 1}" if training else whole
        seed = derived_seed(study.seed, "training", str(training)) if training else study.seed
        stem = f"{number:02d}-{_slug(name)}-{digest([name, MEMORIZE])[:6]}"
        given = study.learning.settings if study.learning else {}
        settings = make_memorize_settings({**given, **condition.settings})
        aside = {"model": asdict(model.spec), "source": public(model.source)}
        known = {"name": name, "fingerprint": model.fingerprint}
        learn = Step(
            f"memorize {name}",
            "learn",
            "merkhet.engine.memorize_steps:memorize",
            {**known, "kind": model.kind, "dtype": model.spec.dtype, "settings": deciding(settings), "seed": seed},
            (SYMBOLS_FILE, set_file(condition.stored)),
            (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors"),
            {**aside, "together": together(settings)},
        )
        parts = tuple(
            {
                "model": whole,
                "base": model.name,
                "stored": set_file(condition.stored),
                "asked": set_file(asked),
                "task": self.made.recipes[asked]["kind"],
                "recalls": f"recalls/{stem}-{self.made.recipes[asked]['kind']}.parquet",
                "learned": learn.outputs[0],
                "condition": condition.label,
                "about": dict(condition.about),
            }
            for asked in condition.asked
        )
        recall = Step(
            f"recall {name}",
            "ask",
            "merkhet.engine.memorize_steps:recall",
            known,
            (*learn.outputs, *(part["asked"] for part in parts)),
            (f".merkhet/recalls/{stem}.json", *(part["recalls"] for part in parts)),
            aside,
        )
        return _Memory((learn, recall), parts)


def _slug(name: str) -> str:
    """A name as part of a file's name."""
    words = "".join(
        letter if letter.isascii() and letter.isalnum() else " " for letter in name.replace(",", "")
    ).split()
    return "-".join(words)[:60]
