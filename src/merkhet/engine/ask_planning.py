"""Planning of the steps that train and ask models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.files import path_exists
from merkhet.core.ids import derived_seed, digest
from merkhet.core.registry import part_identity
from merkhet.engine._ask_step import ask
from merkhet.engine.asker import AskParams, AskRuntime, ModelRuntime
from merkhet.engine.plan import AnyStep, Step
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.run_files import QUESTION_TABLES
from merkhet.engine.study import ProbeChoice
from merkhet.engine.suite import AskingSteps
from merkhet.models.model_lookup import CHAT_KIND, ResolvedModel
from merkhet.models.placeholders import PseudowordSettings
from merkhet.questions.question_files import TRAINING_FILE
from merkhet.training import PRETRAIN

if TYPE_CHECKING:
    from merkhet.training.pretraining_settings import PretrainSettings

TUNED = "tuned"
COMPARE = "compare"
CHOOSE = "choose"
CHAT_PROBES = (CHOOSE, "answer", "judge")
_SINGLE_PROBE = {"baseline": "rank", "predictions": "write"}
"""Preferred probe of model kinds that give the same answers with every probe."""


def make_asking_steps(resolved: ResolvedStudy) -> AskingSteps:
    """Make the steps that ask every model, and that train it on each task and ask it again if the study trains.

    Only masked and causal models are trained.
    """
    study = resolved.study
    if study.learning is not None and study.learning.learner == PRETRAIN:
        return _pretrain_and_ask(resolved)
    learns: list[AnyStep] = []
    asks: list[AnyStep] = []
    repeated: list[list[AnyStep]] = [[] for _ in range(1, study.trainings)]
    for number, model in enumerate(resolved.models):
        asks += [make_ask_step(resolved, number, choice) for choice in select_probes(model, study.probes)]
        if study.learning is None or model.kind not in ("masked", "causal"):
            continue
        for task in resolved.suite.asked_tasks(study):
            learn, *tuned_asks = _tune_and_ask(resolved, number, task)
            learns.append(learn)
            asks += tuned_asks
            for training, steps in enumerate(repeated, 1):
                steps += _tune_and_ask(resolved, number, task, training)
    return AskingSteps((*learns, *asks), repeated=tuple(map(tuple, filter(None, repeated))))


def _tune_and_ask(resolved: ResolvedStudy, number: int, task: str, training: int = 0) -> list[AnyStep]:
    """Make the step that trains a model on a task, and the steps that ask the trained model.

    Args:
        training: Number of further trainings before this one, which each have another seed.
    """
    model = resolved.models[number]
    name = f"{model.name}, {TUNED}"
    learn = make_learn_step(resolved, number, name, task, training=training)
    label = f"{TUNED} for {task}{training_suffix(training)}"
    choices = select_probes(model, resolved.study.probes)
    asks = (
        make_ask_step(resolved, number, choice, label, name=name, tasks=[task], learned=learn.outputs[0])
        for choice in choices
    )
    return [learn, *asks]


def training_seed(seed: int, training: int) -> int:
    """Return the seed of a training: the seed of the study for the first, a derived seed for each further one."""
    return derived_seed(seed, "training", str(training)) if training else seed


def training_suffix(training: int) -> str:
    """Return the end of the names of the steps of a further training; empty for the first training."""
    return f", training {training + 1}" if training else ""


def _pretrain_and_ask(resolved: ResolvedStudy) -> AskingSteps:
    """Make the steps that ask every model, and ask masked models again after pre-training with each objective."""
    study, learning = resolved.study, resolved.study.learning
    from merkhet.training.pretraining_settings import resolve_pretraining
    from merkhet.training.text_corpus import corpus_digest

    assert learning is not None
    corpus, objectives = resolve_pretraining(learning.settings, resolved.home)
    content = corpus_digest(corpus)
    learns: list[AnyStep] = []
    asks: list[AnyStep] = []
    repeated: list[list[AnyStep]] = [[] for _ in range(1, study.trainings)]
    for number, model in enumerate(resolved.models):
        probes = select_probes(model, study.probes)
        asks += [make_ask_step(resolved, number, choice) for choice in probes]
        for settings in objectives if model.kind == "masked" else ():
            name = f"{model.name}, {settings.objective}"
            for training in range(study.trainings):
                learn = _pretrain_step(resolved, number, name, settings, corpus, content, training)
                label = f"{settings.objective}{training_suffix(training)}"
                trained_asks = [
                    make_ask_step(resolved, number, choice, label, name=name, learned=learn.outputs[0])
                    for choice in probes
                ]
                if training:
                    repeated[training - 1] += [learn, *trained_asks]
                else:
                    learns.append(learn)
                    asks += trained_asks
    return AskingSteps((*learns, *asks), repeated=tuple(map(tuple, filter(None, repeated))))


def _pretrain_step(
    resolved: ResolvedStudy,
    number: int,
    name: str,
    settings: PretrainSettings,
    corpus: Path,
    content: str,
    training: int = 0,
) -> AnyStep:
    """Make the step that continues the pre-training of a model.

    Args:
        number: Index of the model in the study.
        name: Name of the trained model in tables.
        corpus: Path of the corpus.
        content: Hash of the corpus.
        training: Number of further trainings before this one, which each have another seed.
    """
    from merkhet.engine.training_steps import PretrainParams, PretrainRuntime, pretrain
    from merkhet.training.artifact import process_settings, result_settings

    model = resolved.models[number]
    stem = f"{number:02d}-{digest([name, PRETRAIN, *([training] if training else [])])[:10]}"
    params = PretrainParams(
        name=name,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        settings=result_settings(settings),
        seed=training_seed(resolved.study.seed, training),
        corpus=content,
    )
    runtime = PretrainRuntime(model.spec, public_source(model.source), process_settings(settings), str(corpus))
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/model.safetensors")
    title = f"pretrain {model.name} by {settings.objective}{training_suffix(training)}"
    return Step(title, "learn", pretrain, params, runtime, (), outputs)


def select_probes(model: ResolvedModel, probes: Sequence[ProbeChoice]) -> Sequence[ProbeChoice]:
    """Select the probes that can ask a model.

    If no probe can ask it, all probes are returned, and the unusable answers give the reason. A model behind an
    endpoint is then asked with ``choose`` instead. Baselines and prediction files give the same answers with every
    probe; they are asked with one probe, and with ``compare`` for word senses.
    """
    fitting = [choice for choice in probes if _fits(model, choice.probe)]
    if CHAT_KIND in (model.kind, model.spec.kind):
        return fitting or [ProbeChoice(probe=CHOOSE)]
    if model.kind in _SINGLE_PROBE:
        other_choices = [choice for choice in fitting if choice.probe != COMPARE]
        preferred = next((choice for choice in other_choices if choice.probe == _SINGLE_PROBE[model.kind]), None)
        sense_choices = [choice for choice in fitting if choice.probe == COMPARE]
        fitting = [*([preferred] if preferred else other_choices[:1]), *sense_choices]
    return fitting or probes


def _fits(model: ResolvedModel, probe: str) -> bool:
    """Check whether a model can be asked with a probe."""
    if probe == COMPARE:
        return model.kind in ("masked", "causal", "encoder") or hasattr(model.instance, "compare_senses")
    if CHAT_KIND in (model.kind, model.spec.kind):
        return probe not in ("rank", "fill", "write", COMPARE)
    if probe in CHAT_PROBES:
        return model.kind == "causal" or hasattr(model.instance, "reply")
    if probe == "fill" and model.instance is None:
        return model.kind == "masked"
    return model.kind != "encoder" and bool(getattr(model.instance, "methods", True))


def make_learn_step(
    resolved: ResolvedStudy,
    number: int,
    name: str,
    task: str,
    *,
    weights: str = "model.safetensors",
    kinds: Sequence[str] = (),
    start: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    training: int = 0,
) -> AnyStep:
    """Make the step that trains a model on a task.

    Args:
        number: Index of the model in the study.
        name: Name of the trained model in tables.
        task: Task whose training questions are used.
        weights: Name of the weight file that the learner writes beside ``learned.json``.
        kinds: Kinds of templates to train on.
        start: Paths of the training records (``learned.json``) to start from.
        settings: Learner settings that override those of the study.
        training: Number of further trainings before this one, which each have another seed.
    """
    from merkhet.engine.training_steps import TrainParams, learn

    model, choice = resolved.models[number], resolved.study.learning
    assert choice is not None
    stem = f"{number:02d}-{digest([name, task, *kinds, *([training] if training else [])])[:10]}"
    params = TrainParams(
        name=name,
        task=task,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        learner=choice.learner,
        identity=part_identity(choice.learner, resolved.home),
        settings={**choice.settings, **(settings or {})},
        seed=training_seed(resolved.study.seed, training),
        kinds=tuple(kinds),
        start=tuple(start),
    )
    inputs = (TRAINING_FILE, "candidates.parquet", *start)
    # The record comes first. The weights are an output too, so that a damaged weight file is trained again.
    outputs = (f".merkhet/learned/{stem}/learned.json", f".merkhet/learned/{stem}/{weights}")
    of_kind = f" ({', '.join(kinds)})" if kinds else ""
    runtime = ModelRuntime(model.spec, public_source(model.source))
    title = f"learn {task}{of_kind} with {name}{training_suffix(training)}"
    return Step(title, "learn", learn, params, runtime, inputs, outputs)


def make_ask_step(
    resolved: ResolvedStudy,
    number: int,
    choice: ProbeChoice,
    label: str = "",
    *,
    name: str | None = None,
    tasks: Sequence[str] = (),
    kinds: Sequence[str] = (),
    methods: int | None = None,
    learned: str | None = None,
    soft: Sequence[str] = (),
    pseudowords: PseudowordSettings | None = None,
) -> Step[AskParams, AskRuntime]:
    """Make the step that asks a model with a probe.

    Args:
        number: Index of the model in the study.
        label: Text that distinguishes this step from other steps of the same model and probe.
        name: Name of the model in tables; its name in the study if None.
        tasks: Tasks to ask; all tasks if empty.
        kinds: Kinds of templates to ask; all kinds except soft templates if empty.
        methods: Number of the study's methods to use, counted from the first; all methods if None.
        learned: Path of the training record (``learned.json``) whose weights are used; None for the original weights.
        soft: Paths of the training records of soft prompts that the model reads.
        pseudowords: Settings for pseudowords in prompts.
    """
    model = resolved.models[number]
    stem = f"{number:02d}-{digest([model.name, choice.probe, *([label] if label else [])])[:10]}"
    method_names = choice.methods.get(model.name) or choice.methods.get(model.kind) or []
    seed = {"seed": resolved.study.seed} if choice.probe in CHAT_PROBES else {}
    params = AskParams(
        name=name or model.name,
        kind=model.kind,
        fingerprint=model.fingerprint,
        dtype=model.spec.dtype,
        probe=choice.probe,
        identity=part_identity(choice.probe, resolved.home),
        methods=tuple(method_names[:methods]),
        options={**seed, **choice.options},
        matching_form_only=len({probe_choice.probe == COMPARE for probe_choice in resolved.study.probes}) > 1,
        tasks=tuple(tasks),
        kinds=tuple(kinds),
        soft=tuple(soft),
        learned=learned,
        pseudowords=pseudowords,
        needs_counts=bool(getattr(model.instance, "needs_counts", False)),
    )
    examples = (TRAINING_FILE,) if choice.options.get("shots") else ()
    inputs = (*QUESTION_TABLES, *((learned,) if learned else ()), *soft, *examples)
    title = f"ask {model.name} by {choice.probe}" + (f", {label}" if label else "")
    outputs = (f".merkhet/answers/{stem}.parquet", f".merkhet/answers/{stem}.json")
    runtime = AskRuntime(model.spec, public_source(model.source), resolved.ask_engine)
    return Step(title, "ask", ask, params, runtime, inputs, outputs)


def public_source(source: str) -> str:
    """Return where a model comes from; a local path is shortened to its file name."""
    return Path(source).name if path_exists(Path(source)) else source
