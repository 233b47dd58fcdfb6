"""The plan that most suites have: build, ask every model, score, analyse, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.analysis.analysis_options import identities, options_of
from merkhet.core.files import file_digest, is_there
from merkhet.core.ids import digest
from merkhet.core.registry import part_identity
from merkhet.engine.headlines import CHOOSE, TALKING, headline_of, metrics_of, talked
from merkhet.engine.plan import Plan, Step
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import CALIBRATION
from merkhet.engine.study import ProbeChoice, study_yaml
from merkhet.engine.suite import Asking
from merkhet.knowledge.source_lookup import material_identity
from merkhet.models.model_lookup import CHAT_KIND, ResolvedModel
from merkhet.questions.question_files import TRAINING, read_card
from merkhet.training import PRETRAIN

if TYPE_CHECKING:
    from merkhet.training.pretraining_settings import PretrainSettings

QUESTIONS = (
    *("questions.parquet", "candidates.parquet", "facts.parquet", "frequencies.parquet", "entities.parquet"),
    *("premises.parquet", "about.json"),
)
TUNED = "tuned"
COMPARE = "compare"
_ONE_PROBE = {"baseline": "rank", "predictions": "write"}


def plain_plan(resolved: ResolvedStudy, command: str) -> Plan:
    """Build, ask, collect, score, analyse, record and report."""
    from merkhet.metrics.metrics import get_metric

    study, suite = resolved.study, resolved.suite
    asking = (suite.asking or _learn_and_ask)(resolved)
    answers = tuple(step.outputs[0] for step in asking.asks)
    abouts = tuple(step.outputs[1] for step in asking.asks)
    settled = asking.settle.outputs if asking.settle else ()
    metrics = metrics_of(study.metrics, asking)
    names = {name: get_metric(name, resolved.home).name for name in metrics}
    headline = headline_of(resolved, list(names.values()), asking)
    scoring = {
        "suite": suite.name,
        "metrics": metrics,
        "identities": [part_identity(name, resolved.home) for name in metrics],
        "groups": study.groups,
        "seed": study.seed,
        **suite.scoring(study),
    }
    card = {**suite.card(), "headline": headline, "names": _relation_names(resolved), **suite.scoring(study)}
    if talked(asking):
        card["told"] = [*card["told"], "forms"]
    analysis = {
        "headline": headline,
        "about": card["names"],
        "metrics": {shown: name for name, shown in names.items()},
        "baselines": [model.name for model in resolved.models if model.kind == "baseline"],
        "seed": study.seed,
        "identities": scoring["identities"],
        **suite.scoring(study),
    }
    examined = _examine(resolved, analysis, asking)
    return Plan(
        (
            build_step(resolved),
            Step(
                "study",
                "build",
                "merkhet.engine.build_step:write_study",
                {"yaml": study_yaml(study)},
                (),
                ("study.yaml",),
            ),
            *asking.steps,
            Step("collect", "score", "merkhet.engine.score_step:collect", {}, answers, ("answers.parquet",)),
            *((asking.settle,) if asking.settle else ()),
            Step(
                "score",
                "score",
                "merkhet.engine.score_step:score",
                scoring,
                (*QUESTIONS, "answers.parquet", *settled),
                ("scores.parquet", "scores.json"),
            ),
            Step(
                "analyse",
                "analyse",
                "merkhet.engine.score_step:analyse",
                analysis,
                (*QUESTIONS, "answers.parquet", "scores.parquet"),
                ("findings.json",),
            ),
            *examined,
            calibration_step([choice.probe for choice in study.probes], resolved.home),
            Step(
                "record",
                "report",
                "merkhet.engine.record_step:record",
                {"suite": suite.name, "card": card, "seed": study.seed},
                (*QUESTIONS, *abouts),
                ("run.json",),
                {"command": command},
            ),
            *report_steps(resolved, card, [name for step in examined for name in step.outputs]),
        )
    )


def report_steps(resolved: ResolvedStudy, card: Mapping[str, Any], analyses: Sequence[str]) -> tuple[Step, ...]:
    """Return the step that writes report.html, or nothing where the study wants no report.

    Args:
        resolved: The resolved study.
        card: The suite's card, as the run records it.
        analyses: The files of analyses that the report shows.
    """
    study = resolved.study
    if study.report == "none":
        return ()
    params = {"title": study.title or resolved.suite.title, "study": study.model_dump(), "suite": card}
    tables = (*QUESTIONS, "answers.parquet", "scores.parquet", "findings.json")
    inputs = (*tables, *analyses, CALIBRATION, "run.json")
    return (Step("report", "report", "merkhet.engine.record_step:report", params, inputs, ("report.html",)),)


def calibration_step(probes: Sequence[str], home: Path) -> Step:
    """The step that puts the calibration cards of the probes into the run."""
    from merkhet.calibration.calibration_cards import find_cards

    cards = find_cards(probes, home)
    return Step(
        "calibration", "report", "merkhet.engine.record_step:calibrations", {"cards": cards}, (), (CALIBRATION,)
    )


def _relation_names(resolved: ResolvedStudy) -> dict[str, str]:
    """What relations are called: by the suite, and by the card that was written beside the questions."""
    names = dict(resolved.suite.names(resolved.study, resolved.home))
    if resolved.study.data is not None:
        place = resolved.home / resolved.study.data
        names |= read_card(place if place.is_dir() else place.parent).get("names", {})
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
        from merkhet.engine.build_step import data_files

        contents["data"] = [file_digest(path) for path in data_files(resolved.suite, home / study.data)]
    kept = study.model_dump(include={"suite", "data", "knowledge", "tasks", "limit", "seed", "options"})
    later = options_of(resolved.suite.analyses).keys() - resolved.suite.options.keys()
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
    params = {"study": kept, "contents": contents}
    aside = {"engine": str(resolved.engines.build), "memory": resolved.engines.build.memory}
    return Step("build", "build", "merkhet.engine.build_step:build", params, (), outputs, aside)


def _examine(resolved: ResolvedStudy, analysis: dict[str, Any], asking: Asking) -> tuple[Step, ...]:
    """The step that makes the suite's analyses, if it has any; its parameters hold the content of what they read."""
    study = resolved.study
    names = (*resolved.suite.analyses, *(("forms",) if talked(asking) else ()))
    if not names:
        return ()
    own = options_of(names)
    params = {
        **{key: analysis[key] for key in ("headline", "metrics", "baselines", "seed", "identities")},
        **resolved.suite.scoring(study),
        "analyses": list(names),
        "parts": [part_identity(name, resolved.home) for name in names],
        "options": {key: value for key, value in study.options.items() if key in own},
        "contents": identities(study.options, names, resolved.home, [model.name for model in resolved.models]),
    }
    learned = [
        {"model": step.params["name"], "task": step.params.get("task"), "kinds": step.params.get("kinds") or []}
        for step in asking.learns
    ]
    settled = asking.settle.outputs if asking.settle else ()
    records = tuple(step.outputs[0] for step in asking.learns)
    if learned:
        params["learned"] = learned
    inputs = (*QUESTIONS, "answers.parquet", "scores.parquet", *settled, *records)
    return (Step("examine", "analyse", "merkhet.engine.analysis_step:examine", params, inputs, ("analyses.json",)),)


def _learn_and_ask(resolved: ResolvedStudy) -> Asking:
    """Every model asked as it is and, where the study says so, once more after it has learned each task by itself."""
    study = resolved.study
    if study.learning is not None and study.learning.learner == PRETRAIN:
        return _pretrain_and_ask(resolved)
    learns, asks = [], []
    for number, model in enumerate(resolved.models):
        probes = probes_for(model, study.probes)
        asks += [ask_step(resolved, number, choice) for choice in probes]
        if study.learning is None or model.kind not in ("masked", "causal"):
            continue
        for task in study.tasks or resolved.suite.tasks:
            learns.append(learn_step(resolved, number, f"{model.name}, {TUNED}", task))
            asks += [
                ask_step(
                    resolved,
                    number,
                    choice,
                    f"{TUNED} for {task}",
                    name=f"{model.name}, {TUNED}",
                    tasks=[task],
                    learned=learns[-1].outputs[0],
                )
                for choice in probes
            ]
    return Asking((*learns, *asks))


def _pretrain_and_ask(resolved: ResolvedStudy) -> Asking:
    """Every model asked as it is, and every masked model once more after pre-training by each objective."""
    study, learning = resolved.study, resolved.study.learning
    from merkhet.training.pretraining_settings import study_pretraining
    from merkhet.training.text_corpus import corpus_digest

    assert learning is not None
    corpus, objectives = study_pretraining(learning.settings, resolved.home)
    content = corpus_digest(corpus)
    learns, asks = [], []
    for number, model in enumerate(resolved.models):
        probes = probes_for(model, study.probes)
        asks += [ask_step(resolved, number, choice) for choice in probes]
        for settings in objectives if model.kind == "masked" else ():
            name = f"{model.name}, {settings.objective}"
            learns.append(_pretrain_step(resolved, number, name, settings, corpus, content))
            record = learns[-1].outputs[0]
            asks += [
                ask_step(resolved, number, choice, settings.objective, name=name, learned=record) for choice in probes
            ]
    return Asking((*learns, *asks))


def _pretrain_step(
    resolved: ResolvedStudy, number: int, name: str, settings: PretrainSettings, corpus: Path, content: str
) -> Step:
    """The step in which a model goes on with its pre-training; ``content`` is the hash of the corpus."""
    from merkhet.training.artifact import deciding, together

    model = resolved.models[number]
    stem = f"{number:02d}-{digest([name, PRETRAIN])[:10]}"
    params = {
        "name": name,
        "kind": model.kind,
        "fingerprint": model.fingerprint,
        "dtype": model.spec.dtype,
        "settings": deciding(settings),
        "seed": resolved.study.seed,
        "corpus": content,
    }
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors")
    aside = {"model": asdict(model.spec), "source": public(model.source), "corpus": str(corpus)}
    aside["together"] = together(settings)
    title = f"pretrain {model.name} by {settings.objective}"
    return Step(title, "learn", "merkhet.engine.training_steps:pretrain", params, (), outputs, aside)


def probes_for(model: ResolvedModel, probes: Sequence[ProbeChoice]) -> Sequence[ProbeChoice]:
    """The probes that a model can be asked by; where none is, all: its answers then say why there is nothing.

    A baseline says the same by each, and predictions were written, so that one will do; but senses are asked by a probe
    of their own. A model behind an endpoint chooses by letter where nothing else is said that it can do.
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
    if probe in TALKING:
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
) -> Step:
    """The step in which a model learns a task, under a name that its answers will have.

    ``weights`` is the file that the learner writes beside its record; ``kinds`` are the kinds of templates that are
    learned from, ``start`` records of what was learned before and is gone on from.
    """
    model, choice = resolved.models[number], resolved.study.learning
    assert choice is not None
    stem = f"{number:02d}-{digest([name, task, *kinds])[:10]}"
    params: dict[str, Any] = {
        "name": name,
        "task": task,
        "kind": model.kind,
        "fingerprint": model.fingerprint,
        "dtype": model.spec.dtype,
        "learner": choice.learner,
        "identity": part_identity(choice.learner, resolved.home),
        "settings": {**choice.settings, **(settings or {})},
        "seed": resolved.study.seed,
    }
    params |= {key: list(value) for key, value in (("kinds", kinds), ("start", start)) if value}
    inputs = (TRAINING, "candidates.parquet", *start)
    # The record comes first; the weights beside it are named so that they are learned anew if they are damaged.
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/{weights}")
    aside = {"model": asdict(model.spec), "source": public(model.source)}
    of_kind = f" ({', '.join(kinds)})" if kinds else ""
    return Step(
        f"learn {task}{of_kind} with {name}",
        "learn",
        "merkhet.engine.training_steps:learn",
        params,
        inputs,
        outputs,
        aside,
    )


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
    pseudowords: Mapping[str, Any] | None = None,
) -> Step:
    """The step that asks a model by a probe: as it is, what it has become by learning, or with words it was given.

    ``about`` tells this step from others of the same model and probe; ``methods`` is how many of the study's methods
    are used, from the first one on.
    """
    model = resolved.models[number]
    stem = f"{number:02d}-{digest([model.name, choice.probe, *([about] if about else [])])[:10]}"
    wanted = choice.methods.get(model.name) or choice.methods.get(model.kind) or []
    params: dict[str, Any] = {
        "name": name or model.name,
        "kind": model.kind,
        "fingerprint": model.fingerprint,
        "dtype": model.spec.dtype,
        "probe": choice.probe,
        "identity": part_identity(choice.probe, resolved.home),
        "methods": wanted[:methods],
    }
    if choice.options or choice.probe in TALKING:
        drawn = {"seed": resolved.study.seed} if choice.probe in TALKING else {}
        params["options"] = {**drawn, **choice.options}
    if len({one.probe == COMPARE for one in resolved.study.probes}) > 1:
        params["divided"] = True
    params |= {key: list(value) for key, value in (("tasks", tasks), ("kinds", kinds), ("soft", soft)) if value}
    params |= {key: value for key, value in (("learned", learned), ("pseudowords", pseudowords)) if value}
    shown = (TRAINING,) if choice.options.get("shots") else ()
    inputs = (*QUESTIONS, *((learned,) if learned else ()), *soft, *shown)
    title = f"ask {model.name} by {choice.probe}" + (f", {about}" if about else "")
    outputs = (f".merkhet/answers/{stem}.parquet", f".merkhet/answers/{stem}.json")
    aside: dict[str, Any] = {"model": asdict(model.spec), "source": public(model.source)}
    aside |= {"engine": resolved.asks_on} if resolved.asks_on else {}
    return Step(title, "ask", "merkhet.engine.ask_step:ask", params, inputs, outputs, aside)


def public(source: str) -> str:
    """Where a model came from without the path of somebody's machine."""
    return Path(source).name if is_there(Path(source)) else source
