"""Calibration of a probe: the probe asks models with known knowledge, and a card records the scores.

Loading models, asking questions and scoring answers use the same code as any run.
"""

from __future__ import annotations

import platform
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from merkhet.calibration._calibration_verdict import (
    BAG,
    MODELS,
    RANDOM,
    TRAINED,
    describe_findings,
    describe_verdict,
    describe_world,
    judge_score,
    plural,
)
from merkhet.calibration._trained_models import FACTS, KINDS, SENSES, CalibrationModel, CalibrationModels
from merkhet.calibration._world import SETS
from merkhet.core.errors import InputError, MerkhetError, did_you_mean
from merkhet.core.files import scratch_folder
from merkhet.core.progress import Progress
from merkhet.core.records import Answer, Question
from merkhet.core.text import counted
from merkhet.core.version import __version__
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.models.batching import single_thread
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.probes.probe_support import Probe

TRAININGS = 3
ALL_KINDS = ("masked", "causal", "encoder")
_TRIAL_QUESTIONS = 4
_METRICS = ("accuracy", "exact")
"""Metrics of ranked and of written answers; the second is used if a probe ranks nothing."""

Card = dict[str, Any]
Row = dict[str, Any]


def calibrate_probe(
    probe: str | Probe,
    kinds: Sequence[str],
    trainings: int,
    seed: int,
    home: Path | None,
    progress: Progress,
    models: CalibrationModels | None,
) -> list[Card]:
    """Calibrate a probe; see :func:`merkhet.calibration.calibrate`."""
    if trainings < 1:
        raise InputError(f"trainings must be an integer ≥ 1, got {trainings}")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise InputError(f"there is no kind of model {kind!r}; {did_you_mean(kind, ALL_KINDS)}")
    function: Probe = PROBES.get(probe, home) if isinstance(probe, str) else probe
    name = probe if isinstance(probe, str) else str(getattr(probe, "__name__", type(probe).__name__))
    if not callable(function):
        raise InputError(
            f"{name} is of the type {type(function).__name__}; a probe must be a function that asks a model"
        )
    if getattr(function, "needs_chat", False):
        raise MerkhetError(
            f"{name} cannot be calibrated: it needs a chat model, and calibration models understand no instructions"
        )
    with single_thread(), scratch_folder("calibration") as folder:
        models = models or CalibrationModels(folder, seed=seed, progress=progress)
        return _Calibration(name, function, trainings, seed, models, progress).cards(kinds)


@dataclass(frozen=True)
class _Calibration:
    """The calibration of one probe on several kinds of models."""

    name: str
    probe: Probe
    trainings: int
    seed: int
    models: CalibrationModels
    progress: Progress

    @property
    def world(self) -> str:
        """Name of the invented world that the probe asks about."""
        return SENSES if getattr(self.probe, "compares_senses", False) else FACTS

    def cards(self, kinds: Sequence[str]) -> list[Card]:
        """Return a calibration card for each kind of model that the probe can ask.

        Raises:
            MerkhetError: The probe can ask none of them.
        """
        cards, refused = [], {}
        for kind in kinds or KINDS[self.world]:
            reason = self._refusal(kind)
            if reason is None:
                cards.append(self._card(kind, bool(kinds)))
            else:
                refused[kind] = reason
        if not cards:
            reasons = "; ".join(f"{plural(kind)}: {reason}" for kind, reason in refused.items())
            raise MerkhetError(f"{self.name} cannot be calibrated: it can ask none of the models ({reasons})")
        return cards

    def _refusal(self, kind: str) -> str | None:
        """Return the reason why the probe cannot ask a kind of model, without training; None if it can."""
        if kind not in KINDS[self.world]:
            return "they have no head to answer with"
        questions = self.models.world(self.world, 0).questions[:_TRIAL_QUESTIONS]
        answers = self._ask(self.models.untrained(self.world, kind), questions)
        reasons = [answer.unusable for answer in answers]
        return str(reasons[0]) if all(reasons) else None

    def _card(self, kind: str, chosen: bool) -> Card:
        questions: dict[str, Question] = {}
        facts: dict[str, str] = {}
        answers: dict[str, list[Row]] = defaultdict(list)
        content_trainings, asking_seconds = [], 0.0
        for number in range(self.trainings):
            calibration_model = self.models.get(self.world, kind, number, self.trainings)
            world = calibration_model.world
            content_trainings.append(calibration_model.training)
            questions |= {question.question_id: question for question in world.questions}
            facts |= world.facts
            started = time.perf_counter()
            for label, model_answers in self._ask_all(calibration_model).items():
                answers[label] += [{**answer.as_row(), "model": label} for answer in model_answers]
            asking_seconds += time.perf_counter() - started
        metric, scores = _score(questions, facts, answers, self.seed)
        fact_counts = {
            content: len({facts[name] for name, question in questions.items() if question.task == content})
            for content in SETS
        }
        rows = [
            judge_score(content, model, scores.get((content, model)), world.chance, fact_counts[content])
            for content in SETS
            for model in MODELS
        ]
        accuracies = [training.train_accuracy for training in content_trainings if training.train_accuracy is not None]
        known = sum(accuracies) / len(accuracies) if accuracies else None
        unusable = sum(row["unusable"] is not None for row in answers[TRAINED])
        first = answers[TRAINED][0]
        seconds = sum(training.seconds for training in content_trainings) + asking_seconds
        return {
            "probe": first["probe"],
            "kind": kind,
            "method": first["method"],
            "metric": metric,
            "passed": all(row["passed"] is not False for row in rows),
            "about": describe_world(kind, self.trainings, world, content_trainings),
            "verdict": describe_verdict(first["probe"], kind, rows),
            "rows": rows,
            "sentences": describe_findings(rows, world.texts, known, unusable),
            "trainings": self.trainings,
            "seed": self.seed,
            "made": self._provenance(seconds, kind if chosen else None),
        }

    def _ask_all(self, calibration_model: CalibrationModel) -> dict[str, list[Answer]]:
        """Return the answers of a trained model and its controls; empty for a bag of words that cannot be asked."""
        questions = calibration_model.world.questions
        answers = {
            TRAINED: self._ask(calibration_model.trained, questions),
            RANDOM: self._ask(calibration_model.untrained, questions),
        }
        try:
            answers[BAG] = self._ask(calibration_model.bag, questions)
        except Exception as error:  # A user's probe may need a network, which a bag of words lacks.
            self.progress.say(f"  a bag of words cannot be asked by {self.name}: {type(error).__name__}: {error}")
            answers[BAG] = []
        return answers

    def _ask(self, model: Model, questions: Sequence[Question]) -> list[Answer]:
        """Return the model's answers; raise MerkhetError if the probe fails or its answers do not fit the questions."""
        try:
            answers = list(self.probe(model, questions, ()))
        except MerkhetError:
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise MerkhetError(
                f"the probe {self.name} failed with {reason} ({Path(frame.filename).name}, line {frame.lineno})"
            ) from error
        problem = _find_problem(questions, answers)
        if problem is not None:
            raise MerkhetError(f"the probe {self.name} {problem}")
        return answers

    def _provenance(self, seconds: float, kind: str | None) -> dict[str, Any]:
        options = [f"--kind {kind}"] if kind else []
        options += [f"--trainings {self.trainings}"] if self.trainings != TRAININGS else []
        options += [f"--seed {self.seed}"] if self.seed else []
        return {
            "merkhet": __version__,
            **{name: _installed_version(name) for name in ("torch", "transformers")},
            "python": platform.python_version(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": " ".join(["merkhet calibrate", self.name, *options]),
            "seconds": round(seconds, 1),
        }


def _find_problem(questions: Sequence[Question], answers: Sequence[Answer]) -> str | None:
    """Describe the first problem with a probe's answers; None if the answers are valid."""
    for answer in answers:
        if not isinstance(answer, Answer):
            return f"returned a {type(answer).__name__}; it must return records.Answer only"
    asked, answered = {question.question_id for question in questions}, {answer.question_id for answer in answers}
    if asked - answered:
        return (
            f"gave no answer to {len(asked - answered)} of {counted(len(asked), 'question')}; return an answer with "
            "the reason as unusable for a question that cannot be asked"
        )
    by_another = asked - {answer.question_id for answer in answers if answer.method == answers[0].method}
    if by_another:
        return (
            f"answered {len(by_another)} of {counted(len(asked), 'question')} by another method than "
            f"{answers[0].method}, its first; each question needs an answer by each method"
        )
    return f"answered {counted(len(answered - asked), 'question')} without being asked" if answered - asked else None


def _score(
    questions: Mapping[str, Question], facts: Mapping[str, str], answers: Mapping[str, list[Row]], seed: int
) -> tuple[str, dict[tuple[str, str], Row]]:
    """Score the answers by each model's first method; return the metric, and score rows by question set and model.

    Unusable questions count as wrong. A model without usable answers has no scores.
    """
    rows = [
        row
        for model in MODELS
        if any(row["unusable"] is None for row in answers[model])
        for row in answers[model]
        if row["method"] == answers[model][0]["method"]
    ]
    metrics = [get_metric(key) for key in _METRICS]
    groups: dict[str, dict[str, str | None]] = {key: {} for key in questions}
    table = score_answers(
        "calibration", questions, groups, facts, rows, metrics, seed=seed, unusable_is_wrong=True
    ).to_pylist()
    ranked = any(row["metric"] == "accuracy" and row["model"] == TRAINED for row in table)
    metric = _METRICS[0] if ranked else _METRICS[1]
    return metric, {(row["task"], row["model"]): row for row in table if row["metric"] == metric}


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
