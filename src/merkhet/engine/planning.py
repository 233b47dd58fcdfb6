"""The usual plan of a suite: build, ask every model, score, analyse, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.analysis.analysis_options import identities, options_of
from merkhet.core.files import file_digest, path_exists
from merkhet.core.ids import digest
from merkhet.core.registry import part_identity
from merkhet.engine.analysis_step import AnalysisParams, TrainedModel, examine
from merkhet.engine.ask_step import ask
from merkhet.engine.asker import AskParams, AskRuntime, ModelRuntime
from merkhet.engine.build_step import (
    BuildContents,
    BuildParams,
    BuildRuntime,
    StudyParams,
    build,
    data_files,
    write_study,
)
from merkhet.engine.plan import NOTHING, AnyStep, Nothing, Plan, Step
from merkhet.engine.record_step import (
    CalibrationParams,
    RecordParams,
    RecordRuntime,
    ReportParams,
    calibrations,
    record,
    report,
)
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import CALIBRATION
from merkhet.engine.score_step import FindingsParams, ScoreParams, analyse, collect, score
from merkhet.engine.study import ProbeChoice, make_study, study_yaml
from merkhet.engine.suite import AskingSteps
from merkhet.engine.suite_card import HeadlineScore, SuiteCard
from merkhet.knowledge.source_lookup import material_identity
from merkhet.models.model_lookup import CHAT_KIND, ResolvedModel
from merkhet.models.placeholders import PseudowordSettings
from merkhet.questions.question_files import TRAINING, read_card, read_questions
from merkhet.training import PRETRAIN

if TYPE_CHECKING:
    from merkhet.training.pretraining_settings import PretrainSettings

QUESTIONS = (
    *("questions.parquet", "candidates.parquet", "facts.parquet", "frequencies.parquet", "entities.parquet"),
    *("premises.parquet", "about.json"),
)
TUNED = "tuned"
COMPARE = "compare"
CHOOSE = "choose"
CHAT_PROBES = (CHOOSE, "answer", "judge")
NO_REPLY_METRICS = ("no-answer", "refused")
_ONE_PROBE = {"baseline": "rank", "predictions": "write"}


def plain_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Plan to build, ask, collect, score, analyse, record and report."""
    from merkhet.metrics.metrics import get_metric

    study, suite = resolved.study, resolved.suite
    asking = suite.asking_steps(resolved)
    answers = tuple(step.outputs[0] for step in asking.asks)
    abouts = tuple(step.outputs[1] for step in asking.asks)
    labels = asking.label_premises
    metrics = _metrics(study.metrics, asking)
    names = {name: get_metric(name, resolved.home).name for name in metrics}
    metric_identities = tuple(part_identity(name, resolved.home) for name in metrics)
    scoring = suite.scoring(study)
    card = replace(
        suite.card(),
        headline=_headline(resolved, list(names.values()), asking),
        names=_relation_names(resolved),
        scoring=scoring,
    )
    if _talks(asking):
        card = replace(card, told=(*card.told, "forms"))
    score_params = ScoreParams(suite.name, tuple(metrics), metric_identities, tuple(study.groups), study.seed, scoring)
    findings = FindingsParams(
        headline=card.headline,
        metrics={shown: name for name, shown in names.items()},
        identities=metric_identities,
        baselines=tuple(model.name for model in resolved.models if model.kind == "baseline"),
        seed=study.seed,
        scoring=scoring,
        names=card.names,
    )
    analyses = _analysis_steps(resolved, findings, asking)
    return Plan(
        (
            build_step(resolved),
            study_step(resolved),
            *asking.steps,
            Step("collect", "score", collect, NOTHING, NOTHING, answers, ("answers.parquet",)),
            *((labels,) if labels else ()),
            Step(
                "score",
                "score",
                score,
                score_params,
                NOTHING,
                (*QUESTIONS, "answers.parquet", *(labels.outputs if labels else ())),
                ("scores.parquet", "scores.json"),
            ),
            Step(
                "analyse",
                "analyse",
                analyse,
                findings,
                NOTHING,
                (*QUESTIONS, "answers.parquet", "scores.parquet"),
                ("findings.json",),
            ),
            *analyses,
            calibration_step([choice.probe for choice in study.probes], resolved.home),
            Step(
                "record",
                "report",
                record,
                RecordParams(suite.name, card, study.seed),
                RecordRuntime(command),
                (*QUESTIONS, *abouts),
                ("run.json",),
            ),
            *report_steps(resolved, card, [name for step in analyses for name in step.outputs]),
        )
    )


def study_step(resolved: ResolvedStudy) -> Step[StudyParams, Nothing]:
    """Make the step that writes study.yaml."""
    params = StudyParams(study_yaml(resolved.study))
    return Step("study", "build", write_study, params, NOTHING, (), ("study.yaml",))


def report_steps(resolved: ResolvedStudy, card: SuiteCard, analyses: Sequence[str]) -> tuple[AnyStep, ...]:
    """Make the step that writes report.html, or nothing where the study wants no report.

    Args:
        resolved: The resolved study.
        card: The suite's card, as the run records it.
        analyses: Files of analyses that the report shows.
    """
    study = resolved.study
    if study.report == "none":
        return ()
    params = ReportParams(study.title or resolved.suite.title, study, card)
    tables = (*QUESTIONS, "answers.parquet", "scores.parquet", "findings.json")
    inputs = (*tables, *analyses, CALIBRATION, "run.json")
    return (Step("report", "report", report, params, NOTHING, inputs, ("report.html",)),)


def calibration_step(probes: Sequence[str], home: Path) -> Step[CalibrationParams, Nothing]:
    """Make the step that puts the calibration cards of the probes into the run."""
    from merkhet.calibration.calibration_cards import find_cards

    params = CalibrationParams(tuple(find_cards(probes, home)))
    return Step("calibration", "report", calibrations, params, NOTHING, (), (CALIBRATION,))


def _metrics(wanted: Sequence[str], asking: AskingSteps) -> list[str]:
    """Add to the study's metrics those that replies of chat models need."""
    answered = any(step.params.probe == "answer" for step in asking.asks)
    more = [*(("exact", "f1") if answered else ()), *(NO_REPLY_METRICS if _talks(asking) else ())]
    return [*wanted, *(name for name in more if name not in wanted)]


def _talks(asking: AskingSteps) -> bool:
    return any(step.params.probe in CHAT_PROBES for step in asking.asks)


def _headline(resolved: ResolvedStudy, metrics: list[str], asking: AskingSteps) -> tuple[HeadlineScore, ...]:
    """Choose the suite's headline scores for the study's tasks; a metric that is not asked for is replaced.

    Where the study names none of the headline's tasks, all of them stand. Answers in free text have no ranks: exact
    match then stands beside the usual metric, or alone if every probe asks for free text.
    """
    every = (*resolved.suite.headline, *resolved.suite.named_headline)
    asked = [entry for entry in every if entry[0] in resolved.study.tasks]
    scores = []
    for task, metric in asked or resolved.suite.headline:
        shown = [metric, *(["accuracy"] if metric == "r@1" else []), *metrics]
        scores.append(HeadlineScore(task, next(name for name in shown if name in metrics)))
    probes = {step.params.probe for step in asking.asks if step.params.kind != "baseline"}
    if "answer" in probes:
        exact = [HeadlineScore(one.task, "exact") for one in scores]
        scores = exact if probes == {"answer"} else [*scores, *(one for one in exact if one not in scores)]
    return tuple(scores)


def _relation_names(resolved: ResolvedStudy) -> dict[str, str]:
    """Collect plain names of relations from the suite and from the card beside the questions."""
    names = dict(resolved.suite.relation_names(resolved.study, resolved.home))
    if resolved.study.data is not None:
        place = resolved.home / resolved.study.data
        names |= read_card(place if place.is_dir() else place.parent).get("names", {})
    return names


def build_contents(resolved: ResolvedStudy, files: Mapping[str, str]) -> BuildContents:
    """Hash what a study's questions are made from.

    Args:
        resolved: The resolved study.
        files: Hash of each file that an option names.
    """
    study, home = resolved.study, resolved.home
    return BuildContents(
        suite=part_identity(study.suite, home),
        knowledge=tuple(material_identity(place, home) for place in study.knowledge) if study.data is None else (),
        files=files,
        data=()
        if study.data is None
        else tuple(file_digest(path) for path in data_files(resolved.suite, home / study.data)),
    )


def build_step(resolved: ResolvedStudy) -> Step[BuildParams, BuildRuntime]:
    """Make the step that builds or reads the questions."""
    study, home = resolved.study, resolved.home
    files = {
        key: file_digest(home / study.options[key])
        for key in resolved.suite.file_options
        if study.options.get(key) and (home / study.options[key]).is_file()
    }
    kept = study.model_dump(include={"suite", "data", "knowledge", "tasks", "limit", "seed", "options"})
    later = options_of(resolved.suite.analysis_names()).keys() - resolved.suite.options.keys()
    kept["options"] = {key: value for key, value in study.options.items() if key not in later}
    if "split" in resolved.suite.options:
        kept["options"].setdefault("split", "test")
    outputs: tuple[str, ...] = QUESTIONS
    if study.learning is not None and study.learning.learner != PRETRAIN:
        kept["learning"] = {"limit": study.learning.limit}
        outputs = (*QUESTIONS, TRAINING)
    if study.shots:
        kept["probes"] = [{"probe": CHOOSE, "options": {"shots": study.shots}}]
        outputs = (*QUESTIONS, TRAINING)
    params = BuildParams(make_study(kept, "study"), build_contents(resolved, files))
    runtime = BuildRuntime(resolved.suite, resolved.engines.build)
    return Step("build", "build", build, params, runtime, (), outputs, partial(_build_summary, resolved))


def _build_summary(resolved: ResolvedStudy, folder: Path) -> list[str]:
    """Summarize the questions of a run: their number, what has none, oddities of data from elsewhere."""
    questions = read_questions(folder)
    count, facts = questions.questions.num_rows, questions.facts.num_rows
    baselines = sum(model.kind == "baseline" for model in resolved.models)
    parts = [f"{count:,} questions" + (f" from {facts:,} facts" if facts else "")]
    parts.append(_counted(len(resolved.models) - baselines, "model"))
    if baselines:
        parts.append(_counted(baselines, "baseline"))
    lines = [f"{resolved.suite.name}: {', '.join(parts)}"]
    empty = questions.about.get("empty_domains") or ()
    lines += [f"No facts, and so no questions: {', '.join(empty)}"] if empty else []
    if resolved.study.data is not None and "filters" not in questions.about:
        lines += list(questions.about.get("remarks") or ())[:3]
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _analysis_steps(resolved: ResolvedStudy, findings: FindingsParams, asking: AskingSteps) -> tuple[AnyStep, ...]:
    """Make the step that runs the suite's analyses, if it has any."""
    study = resolved.study
    names = (*resolved.suite.analysis_names(), *(("forms",) if _talks(asking) else ()))
    if not names:
        return ()
    known = options_of(names)
    params = AnalysisParams(
        findings=findings,
        analyses=names,
        identities=tuple(part_identity(name, resolved.home) for name in names),
        options={key: value for key, value in study.options.items() if key in known},
        contents=identities(study.options, names, resolved.home, [model.name for model in resolved.models]),
        trained=tuple(
            TrainedModel(step.params.name, getattr(step.params, "task", None), tuple(getattr(step.params, "kinds", ())))
            for step in asking.trainings
        ),
    )
    labels = asking.label_premises.outputs if asking.label_premises else ()
    records = tuple(step.outputs[0] for step in asking.trainings)
    inputs = (*QUESTIONS, "answers.parquet", "scores.parquet", *labels, *records)
    return (Step("examine", "analyse", examine, params, NOTHING, inputs, ("analyses.json",)),)


def usual_asking_steps(resolved: ResolvedStudy) -> AskingSteps:
    """Ask every model as it is and, where the study trains, once more after training on each task by itself."""
    study = resolved.study
    if study.learning is not None and study.learning.learner == PRETRAIN:
        return _pretrain_and_ask(resolved)
    trainings: list[AnyStep] = []
    asks: list[AnyStep] = []
    for number, model in enumerate(resolved.models):
        probes = probes_for(model, study.probes)
        asks += [ask_step(resolved, number, choice) for choice in probes]
        if study.learning is None or model.kind not in ("masked", "causal"):
            continue
        for task in study.tasks or resolved.suite.tasks:
            trainings.append(learn_step(resolved, number, f"{model.name}, {TUNED}", task))
            asks += [
                ask_step(
                    resolved,
                    number,
                    choice,
                    f"{TUNED} for {task}",
                    name=f"{model.name}, {TUNED}",
                    tasks=[task],
                    learned=trainings[-1].outputs[0],
                )
                for choice in probes
            ]
    return AskingSteps((*trainings, *asks))


def _pretrain_and_ask(resolved: ResolvedStudy) -> AskingSteps:
    """Ask every model as it is, and every masked model once more after pre-training by each objective."""
    study, learning = resolved.study, resolved.study.learning
    from merkhet.training.pretraining_settings import resolve_pretraining
    from merkhet.training.text_corpus import corpus_digest

    assert learning is not None
    corpus, objectives = resolve_pretraining(learning.settings, resolved.home)
    content = corpus_digest(corpus)
    trainings: list[AnyStep] = []
    asks: list[AnyStep] = []
    for number, model in enumerate(resolved.models):
        probes = probes_for(model, study.probes)
        asks += [ask_step(resolved, number, choice) for choice in probes]
        for settings in objectives if model.kind == "masked" else ():
            name = f"{model.name}, {settings.objective}"
            trainings.append(_pretrain_step(resolved, number, name, settings, corpus, content))
            artifact = trainings[-1].outputs[0]
            asks += [
                ask_step(resolved, number, choice, settings.objective, name=name, learned=artifact) for choice in probes
            ]
    return AskingSteps((*trainings, *asks))


def _pretrain_step(
    resolved: ResolvedStudy, number: int, name: str, settings: PretrainSettings, corpus: Path, content: str
) -> AnyStep:
    """Make the step that continues a model's pre-training; ``content`` is the hash of the corpus."""
    from merkhet.engine.training_steps import PretrainParams, PretrainRuntime, pretrain
    from merkhet.training.artifact import process_settings, result_settings

    model = resolved.models[number]
    stem = f"{number:02d}-{digest([name, PRETRAIN])[:10]}"
    params = PretrainParams(
        name=name,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        settings=result_settings(settings),
        seed=resolved.study.seed,
        corpus=content,
    )
    runtime = PretrainRuntime(model.spec, public(model.source), str(corpus), process_settings(settings))
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors")
    title = f"pretrain {model.name} by {settings.objective}"
    return Step(title, "learn", pretrain, params, runtime, (), outputs)


def probes_for(model: ResolvedModel, probes: Sequence[ProbeChoice]) -> Sequence[ProbeChoice]:
    """Select the probes that fit a model; all of them if none fits, so that its answers say why.

    A baseline answers alike by every probe, and predictions were made elsewhere: one probe is enough, beside the one
    for senses. A model behind an endpoint chooses by letter if no probe of the study fits it.
    """
    fitting = [choice for choice in probes if _fits(model, choice.probe)]
    if CHAT_KIND in (model.kind, model.spec.kind):
        return fitting or [ProbeChoice(probe=CHOOSE)]
    if model.kind in _ONE_PROBE:
        others = [choice for choice in fitting if choice.probe != COMPARE]
        one = next((choice for choice in others if choice.probe == _ONE_PROBE[model.kind]), None)
        compared = [choice for choice in fitting if choice.probe == COMPARE]
        fitting = [*([one] if one else others[:1]), *compared]
    return fitting or probes


def _fits(model: ResolvedModel, probe: str) -> bool:
    """Whether a model of this kind can answer by a probe."""
    if probe == COMPARE:
        return model.kind in ("masked", "causal", "encoder") or hasattr(model.part, "compare_senses")
    if CHAT_KIND in (model.kind, model.spec.kind):
        return probe not in ("rank", "fill", "write", COMPARE)
    if probe in CHAT_PROBES:
        return model.kind == "causal" or hasattr(model.part, "reply")
    if probe == "fill" and model.part is None:
        return model.kind == "masked"
    return model.kind != "encoder" and bool(getattr(model.part, "methods", True))


def learn_step(
    resolved: ResolvedStudy,
    number: int,
    name: str,
    task: str,
    *,
    weights: str = "model.safetensors",
    kinds: Sequence[str] = (),
    start: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> AnyStep:
    """Make the step that trains a model on a task.

    Args:
        resolved: The resolved study.
        number: Index of the model in the study.
        name: Name of the trained model in tables.
        task: Task whose training questions are used.
        weights: File that the learner writes beside its record.
        kinds: Kinds of templates to train on.
        start: Records of earlier trainings to start from.
        settings: Settings that override those of the study.
    """
    from merkhet.engine.training_steps import TrainParams, learn

    model, choice = resolved.models[number], resolved.study.learning
    assert choice is not None
    stem = f"{number:02d}-{digest([name, task, *kinds])[:10]}"
    params = TrainParams(
        name=name,
        task=task,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        learner=choice.learner,
        identity=part_identity(choice.learner, resolved.home),
        settings={**choice.settings, **(settings or {})},
        seed=resolved.study.seed,
        kinds=tuple(kinds),
        start=tuple(start),
    )
    inputs = (TRAINING, "candidates.parquet", *start)
    # The record comes first; the weights beside it are named so that damaged ones are trained again.
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/{weights}")
    of_kind = f" ({', '.join(kinds)})" if kinds else ""
    runtime = ModelRuntime(model.spec, public(model.source))
    return Step(f"learn {task}{of_kind} with {name}", "learn", learn, params, runtime, inputs, outputs)


def ask_step(
    resolved: ResolvedStudy,
    number: int,
    choice: ProbeChoice,
    about: str = "",
    *,
    name: str | None = None,
    tasks: Sequence[str] = (),
    kinds: Sequence[str] = (),
    methods: int | None = None,
    learned: str | None = None,
    soft: Sequence[str] = (),
    pseudowords: PseudowordSettings | None = None,
) -> Step[AskParams, AskRuntime]:
    """Make the step that asks a model by a probe.

    Args:
        resolved: The resolved study.
        number: Index of the model in the study.
        choice: The probe.
        about: Distinguishes this step from others of the same model and probe.
        name: Name in tables, if not the model's own.
        tasks: Tasks to ask; all if empty.
        kinds: Kinds of templates to ask.
        methods: How many of the study's methods to use, from the first; all if None.
        learned: Record of the training that made the model.
        soft: Records of soft prompts that the model reads.
        pseudowords: Settings of the pseudowords in the questions.
    """
    model = resolved.models[number]
    stem = f"{number:02d}-{digest([model.name, choice.probe, *([about] if about else [])])[:10]}"
    wanted = choice.methods.get(model.name) or choice.methods.get(model.kind) or []
    seed = {"seed": resolved.study.seed} if choice.probe in CHAT_PROBES else {}
    params = AskParams(
        name=name or model.name,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        probe=choice.probe,
        identity=part_identity(choice.probe, resolved.home),
        methods=tuple(wanted[:methods]),
        options={**seed, **choice.options},
        divided=len({one.probe == COMPARE for one in resolved.study.probes}) > 1,
        tasks=tuple(tasks),
        kinds=tuple(kinds),
        soft=tuple(soft),
        learned=learned,
        pseudowords=pseudowords,
    )
    shown = (TRAINING,) if choice.options.get("shots") else ()
    inputs = (*QUESTIONS, *((learned,) if learned else ()), *soft, *shown)
    title = f"ask {model.name} by {choice.probe}" + (f", {about}" if about else "")
    outputs = (f".merkhet/answers/{stem}.parquet", f".merkhet/answers/{stem}.json")
    runtime = AskRuntime(model.spec, public(model.source), resolved.ask_engine)
    return Step(title, "ask", ask, params, runtime, inputs, outputs)


def public(source: str) -> str:
    """Where a model came from without the path of somebody's machine."""
    return Path(source).name if path_exists(Path(source)) else source
