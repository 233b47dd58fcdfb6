"""The plan that most suites have: build, ask every model, score, analyse, report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gnomon.foundation import digest, file_digest, part_identity
from gnomon.knowledge.places import material_identity
from gnomon.questions.files import companions, question_file, read_card
from gnomon.runs import Plan, ProbeChoice, Step, study_yaml
from gnomon.scores import get_metric
from gnomon.suites.resolving import ResolvedStudy

QUESTIONS = ("questions.parquet", "candidates.parquet", "facts.parquet", "frequencies.parquet")


def plain_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Build, ask, collect, score, analyse, record and report."""
    study, suite = resolved.study, resolved.suite
    asks = [_ask(resolved, model, probe) for model in range(len(resolved.models)) for probe in study.probes]
    answers = tuple(step.outputs[0] for step in asks)
    abouts = tuple(step.outputs[1] for step in asks)
    names = {name: get_metric(name, resolved.home).name for name in study.metrics}
    headline = _headline(resolved, list(names.values()))
    scoring = {
        "suite": suite.name,
        "metrics": study.metrics,
        "identities": [part_identity(name, resolved.home) for name in study.metrics],
        "groups": study.groups,
        "seed": study.seed,
    }
    card = {**suite.card(), "headline": headline, "names": _relation_names(resolved)}
    analysis = {
        "headline": headline,
        "about": card["names"],
        "metrics": {shown: name for name, shown in names.items()},
        "baselines": [model.name for model in resolved.models if model.kind == "baseline"],
        "seed": study.seed,
        "identities": scoring["identities"],
    }
    report = {
        "title": study.title or suite.title,
        "study": study.model_dump(),
        "suite": card,
    }
    return Plan(
        (
            build_step(resolved),
            Step(
                "study", "build", "gnomon.suites.building:write_study", {"yaml": study_yaml(study)}, (), ("study.yaml",)
            ),
            *asks,
            Step("collect", "score", "gnomon.runs.scoring:collect", {}, answers, ("answers.parquet",)),
            Step(
                "score",
                "score",
                "gnomon.runs.scoring:score",
                scoring,
                (*QUESTIONS, "answers.parquet"),
                ("scores.parquet", "scores.json"),
            ),
            Step(
                "analyse",
                "analyse",
                "gnomon.runs.scoring:analyse",
                analysis,
                (*QUESTIONS, "answers.parquet", "scores.parquet"),
                ("findings.json",),
            ),
            Step(
                "record",
                "report",
                "gnomon.runs.recording:record",
                {"suite": suite.name, "card": card, "seed": study.seed},
                (*QUESTIONS, *abouts),
                ("run.json",),
                {"command": command},
            ),
            Step(
                "report",
                "report",
                "gnomon.runs.recording:report",
                report,
                (*QUESTIONS, "answers.parquet", "scores.parquet", "findings.json", "run.json"),
                ("report.html",),
            ),
        )
    )


def _headline(resolved: ResolvedStudy, metrics: list[str]) -> list[dict[str, str]]:
    """The suite's headline for the study's tasks; where its metric is not asked for, one that is stands in."""
    found = []
    for task, metric in resolved.suite.headline:
        if not resolved.study.tasks or task in resolved.study.tasks:
            shown = [metric, *(["accuracy"] if metric == "r@1" else []), *metrics]
            found.append({"task": task, "metric": next(name for name in shown if name in metrics)})
    return found


def _relation_names(resolved: ResolvedStudy) -> dict[str, str]:
    """What relations are called: by the suite, and by the card that was written beside the questions."""
    names = dict(resolved.suite.names(resolved.study, resolved.home))
    if resolved.study.data is not None:
        names |= read_card(question_file(resolved.home / resolved.study.data).parent).get("names", {})
    return names


def build_step(resolved: ResolvedStudy) -> Step:
    """The step that makes or reads the questions; its parameters hold the content of all it reads."""
    study, home = resolved.study, resolved.home
    contents: dict[str, Any] = {
        "suite": part_identity(study.suite, home),
        "knowledge": [material_identity(place, home) for place in study.knowledge] if study.data is None else [],
        "files": {
            key: file_digest(home / study.options[key])
            for key in resolved.suite.file_options
            if study.options.get(key) and (home / study.options[key]).is_file()
        },
    }
    if study.data is not None:
        file = question_file(home / study.data)
        contents["data"] = [file_digest(path) for path in (file, *companions(file)) if path.is_file()]
    kept = study.model_dump(include={"suite", "data", "knowledge", "tasks", "limit", "seed", "options"})
    return Step("build", "build", "gnomon.suites.building:build", {"study": kept, "contents": contents}, (), QUESTIONS)


def _ask(resolved: ResolvedStudy, number: int, choice: ProbeChoice) -> Step:
    model = resolved.models[number]
    stem = f"{number:02d}-{digest([model.name, choice.probe])[:10]}"
    params = {
        "name": model.name,
        "kind": model.kind,
        "fingerprint": model.fingerprint,
        "dtype": model.spec.dtype,
        "probe": choice.probe,
        "identity": part_identity(choice.probe, resolved.home),
        "methods": choice.methods.get(model.name) or choice.methods.get(model.kind) or [],
    }
    outputs = (f".gnomon/answers/{stem}.parquet", f".gnomon/answers/{stem}.json")
    aside = {"model": asdict(model.spec), "source": _public(model.source)}
    name = f"ask {model.name} by {choice.probe}"
    return Step(name, "ask", "gnomon.runs.asking:ask", params, QUESTIONS, outputs, aside)


def _public(source: str) -> str:
    """Where a model came from without the path of somebody's machine."""
    return Path(source).name if Path(source).exists() else source
