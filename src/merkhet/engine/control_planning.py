"""Planning of the steps that ask models controls: what they would score without knowing the facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from merkhet.core.ids import digest
from merkhet.engine.ask_planning import COMPARE
from merkhet.engine.asker import ASSOCIATION, SUBJECT_BLIND, AskParams, AskRuntime
from merkhet.engine.plan import AnyStep, Step
from merkhet.engine.resolve_study import ResolvedStudy, memorizes
from merkhet.engine.run_files import QUESTION_TABLES
from merkhet.models.association_baseline import has_embeddings
from merkhet.models.model_lookup import ResolvedModel

_RANK = "rank"
_NOT_ASKED = ("baseline", "predictions", "encoder")
"""Kinds of models that have no controls."""


def make_control_steps(resolved: ResolvedStudy, asks: Sequence[AnyStep]) -> tuple[AnyStep, ...]:
    """Make the steps that ask the controls of a study's models.

    ``association`` reads the input embeddings of a model, once for all its probes. ``subject-blind`` asks the same
    questions by the same probe, with their subjects hidden. Unless the study names its controls, only models in files
    are asked: any other model may cost money, or be the user's code.

    Args:
        asks: The steps that ask the models.
    """
    study = resolved.study
    if memorizes(study):
        return ()
    controls = (ASSOCIATION, SUBJECT_BLIND) if study.controls is None else study.controls
    steps: dict[str, AnyStep] = {}
    for step in asks:
        model = _find_model(resolved, step)
        if model is None or step.params.probe == COMPARE or model.kind in _NOT_ASKED:
            continue
        if ASSOCIATION in controls and has_embeddings(model):
            association = _make_association_step(step)
            steps.setdefault(association.outputs[0], association)
        if SUBJECT_BLIND in controls and (model.path is not None or study.controls is not None):
            blind = _make_step(step, replace(step.params, control=SUBJECT_BLIND), step.inputs)
            steps.setdefault(blind.outputs[0], blind)
    return tuple(steps.values())


def _find_model(resolved: ResolvedStudy, step: AnyStep) -> ResolvedModel | None:
    """Return the model of a step; None for a step that asks no question in words."""
    if not isinstance(step.params, AskParams) or not isinstance(step.runtime, AskRuntime):
        return None
    return next((model for model in resolved.models if model.spec == step.runtime.model), None)


def _make_association_step(step: Step[AskParams, AskRuntime]) -> AnyStep:
    params = replace(
        step.params,
        probe=_RANK,
        identity=_RANK,
        methods=(),
        options={},
        matching_form_only=True,
        soft=(),
        pseudowords=None,
        control=ASSOCIATION,
    )
    return _make_step(step, params, (*QUESTION_TABLES, *filter(None, [params.learned])))


def _make_step(step: Step[AskParams, AskRuntime], params: AskParams, inputs: tuple[str, ...]) -> AnyStep:
    probe = () if params.control == ASSOCIATION else (params.probe,)
    # Questions of soft templates are as good as others for a model that reads no sentence.
    key = [
        params.name,
        params.control,
        *probe,
        *params.tasks,
        "",
        *params.kinds,
        "",
        params.learned or "",
        *params.soft,
    ]
    stem = f"{digest(key)[:16]}"
    outputs = (f".merkhet/controls/{stem}.parquet", f".merkhet/controls/{stem}.json")
    if probe:
        name = f"{step.name}, {params.control}"
    else:
        parts = [params.name, *(" and ".join(part) for part in (params.tasks, params.kinds) if part), params.control]
        name = f"ask {', '.join(parts)}"
    return Step(name, "ask", step.function, params, step.runtime, inputs, outputs)
