"""The standard plan of a study: build questions, ask every model, score, analyze, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from merkhet.analysis.analysis_options import available_options, option_identities
from merkhet.core.files import file_digest
from merkhet.core.registry import part_identity
from merkhet.core.text import counted
from merkhet.engine._analysis_step import AnalysisParams, TrainedModel, write_analyses
from merkhet.engine.ask_planning import CHAT_PROBES, CHOOSE
from merkhet.engine.build_step import (
    BuildContents,
    BuildParams,
    BuildRuntime,
    StudyParams,
    build_questions,
    data_files,
    write_study,
)
from merkhet.engine.control_planning import make_control_steps
from merkhet.engine.control_step import ControlParams, write_control_scores
from merkhet.engine.headline import ACCURACY, CHOOSERS, HeadlinePlan, choice_metric
from merkhet.engine.plan import NOTHING, AnyStep, Nothing, Plan, Step
from merkhet.engine.question_origin import find_splits
from merkhet.engine.record_step import (
    CalibrationParams,
    RecordParams,
    RecordRuntime,
    ReportParams,
    write_calibration,
    write_record,
    write_report,
)
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import (
    CALIBRATION,
    CONTROL_ANSWERS_FILE,
    CONTROL_SCORES,
    QUESTION_TABLES,
    TRAININGS_FILE,
)
from merkhet.engine.score_step import (
    FindingsParams,
    ScoreParams,
    collect_answers,
    write_findings,
    write_scores,
)
from merkhet.engine.shared_tables import run_tables
from merkhet.engine.study import make_study, study_yaml
from merkhet.engine.suite import AskingSteps
from merkhet.engine.suite_card import HeadlineScore
from merkhet.engine.training_answers import TrainingsParams, collect_trainings
from merkhet.knowledge.source_lookup import source_identity
from merkhet.questions.losses import summarize_losses
from merkhet.questions.question_files import ABOUT_FILE, QUESTION_FILES, TRAINING_FILE, read_card
from merkhet.training import PRETRAIN

NO_REPLY_METRICS = ("no-answer", "refused")


def make_standard_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Make the plan of a study that asks models; ``command`` is the command line to record."""
    from merkhet.metrics.metrics import get_metric

    study, suite = resolved.study, resolved.suite
    asking = suite.asking_steps(resolved)
    answers = tuple(step.outputs[0] for step in asking.asks)
    abouts = tuple(step.outputs[1] for step in asking.asks)
    labels = asking.label_premises
    metrics = _add_chat_metrics(study.metrics, asking)
    names = {name: get_metric(name, resolved.home).name for name in metrics}
    metric_identities = tuple(part_identity(name, resolved.home) for name in metrics)
    scoring = suite.scoring(study)
    headline = _plan_headline(resolved, list(names.values()), asking)
    card = replace(
        suite.card().describe(resolved.origin),
        headline=headline.preferred,
        names=relation_names(resolved),
        scoring=scoring,
    )
    if _asks_chat(asking):
        card = replace(card, printed_analyses=(*card.printed_analyses, "forms"))
    groups = suite.score_groups(study)
    score_params = ScoreParams(suite.name, tuple(metrics), metric_identities, groups, study.seed, scoring)
    findings = FindingsParams(
        headline=headline,
        metrics={shown_name: name for name, shown_name in names.items()},
        identities=metric_identities,
        baselines=headline.baselines,
        seed=study.seed,
        scoring=scoring,
        names=card.names,
        conditions=asking.conditions,
        remarks=asking.remarks,
        counting=_counting_baselines(asking),
        balanced=() if resolved.has_own_questions else suite.balanced,
        trained=asking.trained,
    )
    controls = make_control_steps(resolved, asking.asks)
    control_params = ControlParams(findings, tuple(step.params.control for step in controls))
    control_inputs = (*QUESTION_TABLES, "answers.parquet", "scores.parquet", *(step.outputs[0] for step in controls))
    control_outputs = (CONTROL_ANSWERS_FILE, CONTROL_SCORES)
    trainings = _trainings_step(asking)
    repeated = tuple(name for step in trainings for name in step.outputs)
    analyses = _analysis_steps(resolved, findings, asking)
    # Findings hold what analyses find out about the design, and with several conditions all that they say.
    analyses_files = tuple(name for step in analyses for name in step.outputs)
    return Plan(
        (
            *suite.build_steps(resolved),
            *asking.steps,
            *controls,
            *(step for training in asking.repeated for step in training),
            Step("collect", "score", collect_answers, NOTHING, NOTHING, answers, ("answers.parquet",)),
            *trainings,
            *((labels,) if labels else ()),
            Step(
                "score",
                "score",
                write_scores,
                score_params,
                NOTHING,
                (*QUESTION_TABLES, "answers.parquet", *(labels.outputs if labels else ())),
                ("scores.parquet", "scores.json"),
            ),
            Step("controls", "score", write_control_scores, control_params, NOTHING, control_inputs, control_outputs),
            *analyses,
            Step(
                "analyse",
                "analyse",
                write_findings,
                findings,
                NOTHING,
                (
                    *(*QUESTION_TABLES, "answers.parquet", "scores.parquet"),
                    *(*repeated, *analyses_files, CONTROL_SCORES),
                ),
                ("findings.json",),
            ),
            make_calibration_step(_probes(resolved, asking), resolved.home),
            Step(
                "record",
                "report",
                write_record,
                RecordParams(suite.name, card, study.seed, headline),
                RecordRuntime(command),
                (*QUESTION_TABLES, "scores.parquet", *abouts),
                ("run.json",),
            ),
            *make_report_steps(resolved, analyses_files),
        )
    )


def _trainings_step(asking: AskingSteps) -> tuple[AnyStep, ...]:
    """Make the step that collects the answers after further trainings; return an empty tuple if there are none."""
    files = [
        (number, step.outputs[0])
        for number, training in enumerate(asking.repeated, 2)
        for step in training
        if step.kind == "ask"
    ]
    if not files:
        return ()
    params = TrainingsParams(tuple(number for number, _ in files))
    inputs = tuple(name for _, name in files)
    return (Step("collect trainings", "score", collect_trainings, params, NOTHING, inputs, (TRAININGS_FILE,)),)


def make_study_step(resolved: ResolvedStudy) -> Step[StudyParams, Nothing]:
    """Make the step that writes study.yaml."""
    params = StudyParams(study_yaml(resolved.study))
    return Step("study", "build", write_study, params, NOTHING, (), ("study.yaml",))


def make_report_steps(resolved: ResolvedStudy, analyses: Sequence[str]) -> tuple[AnyStep, ...]:
    """Make the step that writes report.html; return an empty tuple if the study has no report.

    Args:
        analyses: Paths of the analysis results that the report shows.
    """
    study = resolved.study
    if study.report == "none":
        return ()
    params = ReportParams(study)
    tables = (*QUESTION_TABLES, "answers.parquet", "scores.parquet", "findings.json")
    inputs = (*tables, *analyses, CONTROL_SCORES, CALIBRATION, "run.json")
    return (Step("report", "report", write_report, params, NOTHING, inputs, ("report.html",)),)


def make_calibration_step(probes: Sequence[str], home: Path) -> Step[CalibrationParams, Nothing]:
    """Make the step that writes the calibration cards of ``probes`` into the run's folder."""
    from merkhet.calibration.calibration_cards import find_cards

    params = CalibrationParams(tuple(find_cards(probes, home)))
    return Step("calibration", "report", write_calibration, params, NOTHING, (), (CALIBRATION,))


def _probes(resolved: ResolvedStudy, asking: AskingSteps) -> list[str]:
    """Return the probes of a study.

    If models are trained under several conditions, the asking steps name the probes.
    """
    if asking.conditions:
        return list(dict.fromkeys(step.params.probe for step in asking.asks))
    return [choice.probe for choice in resolved.study.probes]


def _add_chat_metrics(metrics: Sequence[str], asking: AskingSteps) -> list[str]:
    """Add the metrics that replies of chat models need to the study's metrics."""
    probes = {step.params.probe for step in asking.asks}
    more = [*(("exact", "f1") if "answer" in probes else ()), *(NO_REPLY_METRICS if _asks_chat(asking) else ())]
    if not CHOOSERS.isdisjoint(probes) and choice_metric(metrics) is None:
        more.insert(0, ACCURACY)
    return [*metrics, *(name for name in more if name not in metrics)]


def _asks_chat(asking: AskingSteps) -> bool:
    return any(step.params.probe in CHAT_PROBES for step in asking.asks)


def _counting_baselines(asking: AskingSteps) -> dict[str, tuple[str, ...]]:
    """Return the tasks of each baseline that answers by answer counts, by its name; no tasks means all."""
    tasks: dict[str, list[tuple[str, ...]]] = {}
    for step in asking.asks:
        if getattr(step.params, "needs_counts", False):
            tasks.setdefault(step.params.name, []).append(step.params.tasks)
    return {name: () if () in parts else tuple(dict.fromkeys(sum(parts, ()))) for name, parts in tasks.items()}


def _plan_headline(resolved: ResolvedStudy, metrics: list[str], asking: AskingSteps) -> HeadlinePlan:
    """Plan the headline scores of a run from the suite's headline and the study's tasks and metrics.

    If the study names tasks, their headline scores are preferred. A metric that the study does not compute is replaced
    by one that it computes.
    """
    study, suite = resolved.study, resolved.suite
    entries = (*suite.headline, *suite.named_headline)
    chosen = [entry for entry in entries if entry[0] in study.tasks] if study.tasks else suite.headline
    suite_metrics = {metric for _, metric in suite.headline}

    def replace_missing(metric: str) -> str:
        return next(name for name in (metric, *([ACCURACY] if metric == "r@1" else []), *metrics) if name in metrics)

    return HeadlinePlan(
        preferred=tuple(HeadlineScore(task, replace_missing(metric)) for task, metric in chosen),
        metrics=tuple(metrics),
        suite_metric=replace_missing(*suite_metrics) if len(suite_metrics) == 1 else None,
        named=tuple(study.tasks),
        own_tasks=resolved.has_own_questions,
        known=suite.all_tasks,
        baselines=tuple(dict.fromkeys(step.params.name for step in asking.asks if step.params.kind == "baseline")),
    )


def relation_names(resolved: ResolvedStudy) -> dict[str, str]:
    """Collect readable names of relations from the suite of the questions and from the card in their folder."""
    names = {} if resolved.has_own_questions else dict(resolved.suite.relation_names(resolved.study, resolved.home))
    if resolved.study.data is not None:
        path = resolved.home / resolved.study.data
        if path.is_dir() or path.name in QUESTION_FILES:
            names |= read_card(path if path.is_dir() else path.parent).get("names", {})
    return names


def hash_build_inputs(resolved: ResolvedStudy, files: Mapping[str, str]) -> BuildContents:
    """Hash the sources of a study's questions.

    Args:
        files: Hash of each file that an option of the study names, by option.
    """
    study, home = resolved.study, resolved.home
    return BuildContents(
        suite=part_identity(study.suite, home),
        knowledge=tuple(source_identity(source, home) for source in study.knowledge) if study.data is None else (),
        files=files,
        data=()
        if study.data is None
        else tuple(file_digest(path) for path in data_files(resolved.suite, home / study.data)),
    )


def make_build_step(resolved: ResolvedStudy) -> Step[BuildParams, BuildRuntime]:
    """Make the step that builds or reads the questions."""
    study, home = resolved.study, resolved.home
    known = resolved.suite.options.names()
    paths = resolved.suite.options.of(study).paths()
    files = {name: file_digest(home / path) for name, path in paths.items() if (home / path).is_file()}
    content = study.model_dump(include={"suite", "data", "knowledge", "tasks", "limit", "seed", "options"})
    analysis_options = available_options(resolved.suite.analysis_names()).keys() - set(known)
    content["options"] = {key: value for key, value in study.options.items() if key not in analysis_options}
    if "split" in known and (resolved.origin.kind != "imported" or find_splits(home / str(study.data))):
        content["options"].setdefault("split", "test")
    outputs: tuple[str, ...] = QUESTION_TABLES
    if study.learning is not None and study.learning.learner != PRETRAIN:
        content["learning"] = {"limit": study.learning.limit}
        outputs = (*QUESTION_TABLES, TRAINING_FILE)
    if study.shots:
        content["probes"] = [{"probe": CHOOSE, "options": {"shots": study.shots}}]
        outputs = (*QUESTION_TABLES, TRAINING_FILE)
    params = BuildParams(make_study(content, "study"), hash_build_inputs(resolved, files))
    runtime = BuildRuntime(resolved.suite, resolved.engines.build)
    return Step("build", "build", build_questions, params, runtime, (), outputs, partial(_build_summary, resolved))


def _build_summary(resolved: ResolvedStudy, folder: Path) -> list[str]:
    """Describe the questions of a run in lines: counts, domains without questions, losses, remarks on external data."""
    questions = run_tables(folder).question_set
    count, facts = questions.questions.num_rows, questions.facts.num_rows
    baselines = sum(model.kind == "baseline" for model in resolved.models)
    parts = [counted(count, "question") + (f" from {counted(facts, 'fact')}" if facts else "")]
    parts.append(counted(len(resolved.models) - baselines, "model"))
    if baselines:
        parts.append(counted(baselines, "baseline"))
    lines = [f"{resolved.suite.name}: {', '.join(parts)}"]
    empty = questions.about.get("empty_domains") or ()
    lines += [f"No facts, and so no questions: {', '.join(empty)}"] if empty else []
    if losses := summarize_losses(questions.about, str(folder / ABOUT_FILE)):
        lines.append(losses)
    if resolved.study.data is not None and "filters" not in questions.about:
        lines += list(questions.about.get("remarks") or ())[:3]
    return lines


def _analysis_steps(resolved: ResolvedStudy, findings: FindingsParams, asking: AskingSteps) -> tuple[AnyStep, ...]:
    """Make the step that runs the analyses; return an empty tuple if there are none."""
    study = resolved.study
    names = (*resolved.suite.analysis_names(), *(("forms",) if _asks_chat(asking) else ()))
    if not names:
        return ()
    known = available_options(names)
    params = AnalysisParams(
        findings=findings,
        analyses=names,
        identities=tuple(part_identity(name, resolved.home) for name in names),
        options={key: value for key, value in study.options.items() if key in known},
        contents=option_identities(study.options, names, resolved.home, [model.name for model in resolved.models]),
        trained=tuple(
            TrainedModel(step.params.name, getattr(step.params, "task", None), tuple(getattr(step.params, "kinds", ())))
            for step in asking.trainings
        ),
        corpora=_training_corpora(resolved, asking),
    )
    labels = asking.label_premises.outputs if asking.label_premises else ()
    records = tuple(step.outputs[0] for step in asking.trainings)
    repeated = (TRAININGS_FILE,) if asking.repeated else ()
    abouts = tuple(step.outputs[1] for step in asking.asks)
    inputs = (*QUESTION_TABLES, "answers.parquet", "scores.parquet", *labels, *records, *repeated, *abouts)
    return (Step("examine", "analyse", write_analyses, params, NOTHING, inputs, ("analyses.json",)),)


def _training_corpora(resolved: ResolvedStudy, asking: AskingSteps) -> dict[str, str]:
    """Return the training corpora that the study names, by the name of the model in tables."""
    named = [
        (model.spec, choice.corpus)
        for choice, model in zip(resolved.study.models, resolved.models, strict=True)
        if choice.corpus
    ]
    return {step.params.name: corpus for step in asking.asks for spec, corpus in named if step.runtime.model is spec}
