"""Calibrating a probe: models whose knowledge is known are asked by it, as any model is, and a card says what it found.

The models are loaded by the ordinary loader, the questions are ordinary ones, and the scores and intervals are those of
any run. Nothing here looks into an answer but the scoring.
"""

from __future__ import annotations

import platform
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from merkhet.calibration._calibration_verdict import (
    BAG,
    MODELS,
    RANDOM,
    TRAINED,
    about_world,
    judged,
    notes_of,
    plural,
    sentences_of,
    verdict,
)
from merkhet.calibration._trained_models import FACTS, KINDS, SENSES, CalibrationModels, Known, single_thread
from merkhet.calibration._world import SETS
from merkhet.core.errors import InputError, MerkhetError, did_you_mean
from merkhet.core.files import scratch_folder
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.records import Answer, Question
from merkhet.core.version import __version__
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.probes.probe_support import Probe

TRAININGS = 3
ALL_KINDS = ("masked", "causal", "encoder")
_LOOKED_AT = 4
_METRICS = ("accuracy", "exact")
"""What counts as found: the right answer stands first, or where nothing is ranked it was written."""

Card = dict[str, Any]


def measure(
    probe: str | Probe,
    *,
    kinds: Sequence[str] = (),
    trainings: int = TRAININGS,
    seed: int = 0,
    home: Path | None = None,
    progress: Progress | None = None,
    models: CalibrationModels | None = None,
) -> list[Card]:
    """The calibration cards of a probe, one for each kind of model that it can ask.

    ``kinds`` are those to try, all by default; ``trainings`` is how many models of each are trained, about other facts
    each. ``models`` are models with known content that several calibrations share. Raises MerkhetError where no kind of
    model can be asked by the probe.
    """
    if trainings < 1:
        raise InputError(f"trainings is {trainings}, and should be 1 or more")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise InputError(f"there is no kind of model {kind!r}; {did_you_mean(kind, ALL_KINDS)}")
    place = probe if isinstance(probe, str) else probe_name(probe)
    asks: Probe = PROBES.get(probe, home) if isinstance(probe, str) else probe
    if not callable(asks):
        raise InputError(f"{place} is of the type {type(asks).__name__}; a probe is a function that asks a model")
    if getattr(asks, "needs_chat", False):
        raise MerkhetError(
            f"{place} cannot be calibrated, for it talks to models, and the small ones with known content have learned "
            "no language in which they could be asked"
        )
    with single_thread(), scratch_folder("calibration") as folder:
        bench = models or CalibrationModels(folder, seed=seed, progress=progress)
        calibration = _Calibration(place, asks, trainings, seed, bench, progress or SilentProgress())
        return calibration.cards(kinds)


def probe_name(probe: Probe) -> str:
    """What a probe that is a function is called."""
    return str(getattr(probe, "__name__", type(probe).__name__))


class _Calibration:
    """One probe that asks models of several kinds."""

    def __init__(
        self, place: str, probe: Probe, trainings: int, seed: int, models: CalibrationModels, progress: Progress
    ) -> None:
        self.place, self.probe = place, probe
        self.trainings, self.seed, self.models, self.progress = trainings, seed, models, progress
        self.world = SENSES if getattr(probe, "compares_senses", False) else FACTS

    def cards(self, kinds: Sequence[str]) -> list[Card]:
        """A card of each kind that can be asked; refuses if there is none."""
        found, refused = [], {}
        for kind in kinds or KINDS[self.world]:
            reason = self._refusal(kind)
            if reason is None:
                found.append(self._card(kind, bool(kinds)))
            else:
                refused[kind] = reason
        if not found:
            reasons = "; ".join(f"{plural(kind)}: {reason}" for kind, reason in refused.items())
            raise MerkhetError(f"{self.place} cannot be calibrated, for it asks none of the models ({reasons})")
        return found

    def _refusal(self, kind: str) -> str | None:
        """Why a kind of model cannot be asked by the probe, seen before anything is trained; None if it can."""
        if kind not in KINDS[self.world]:
            return "they have no head to answer with"
        some = self.models.world(self.world, 0).questions[:_LOOKED_AT]
        answers = self._ask(self.models.untrained(self.world, kind), some)
        reasons = [answer.unusable for answer in answers]
        return str(reasons[0]) if all(reasons) else None

    def _card(self, kind: str, chosen: bool) -> Card:
        gathered = _Gathered(self.seed)
        contents, asking = [], 0.0
        for number in range(self.trainings):
            known = self.models.get(self.world, kind, number, self.trainings)
            contents.append(known.content)
            started = time.perf_counter()
            for label, answers in self._asked(known).items():
                gathered.add(label, known.world.questions, known.world.facts, answers)
            asking += time.perf_counter() - started
        name, method, metric, scores = gathered.scores()
        chance = known.world.chance
        rows = [
            judged(content, model, scores.get((content, model)), chance, gathered.facts(content))
            for content in SETS
            for model in MODELS
        ]
        notes = notes_of(self.world, contents, gathered.unusable(TRAINED))
        return {
            "probe": name,
            "kind": kind,
            "method": method,
            "metric": metric,
            "passed": all(row["passed"] is not False for row in rows),
            "about": about_world(self.world, kind, self.trainings, known.world, contents),
            "verdict": verdict(name, kind, rows),
            "rows": rows,
            "sentences": sentences_of(rows, notes),
            "trainings": self.trainings,
            "seed": self.seed,
            "made": self._made(sum(one.seconds for one in contents) + asking, kind if chosen else None),
        }

    def _asked(self, known: Known) -> dict[str, list[Answer]]:
        """The answers of a trained model and of its controls; a control that the probe cannot ask has none."""
        questions = known.world.questions
        found = {TRAINED: self._ask(known.trained, questions), RANDOM: self._ask(known.untrained, questions)}
        try:
            found[BAG] = self._ask(known.bag, questions)
        except Exception as error:  # A probe of somebody's own may need a network, which a bag of words has not.
            self.progress.say(f"  a bag of words cannot be asked by {self.place}: {type(error).__name__}: {error}")
            found[BAG] = []
        return found

    def _ask(self, model: Model, questions: Sequence[Question]) -> list[Answer]:
        """What the model answers; refuses a probe that breaks off, or that does not answer just what it was asked."""
        try:
            answers = list(self.probe(model, questions, ()))
        except MerkhetError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise MerkhetError(
                f"the probe {self.place} broke off with {reason} ({Path(last.filename).name}, line {last.lineno})"
            ) from error
        for answer in answers:
            if not isinstance(answer, Answer):
                raise MerkhetError(
                    f"the probe {self.place} gave a {type(answer).__name__}, and should give records.Answer only"
                )
        asked, answered = {one.question_id for one in questions}, {one.question_id for one in answers}
        if asked - answered:
            raise MerkhetError(
                f"the probe {self.place} gave no answer to {len(asked - answered)} of {len(asked)} questions; what "
                "cannot be asked should be an answer too, with the reason as unusable"
            )
        usual = {one.question_id for one in answers if one.method == answers[0].method}
        if asked - usual:
            raise MerkhetError(
                f"the probe {self.place} answered {len(asked - usual)} of {len(asked)} questions by another method "
                f"than {answers[0].method}, its first; each question needs an answer by each method"
            )
        if answered - asked:
            raise MerkhetError(f"the probe {self.place} answered {len(answered - asked)} questions that were not asked")
        return answers

    def _made(self, seconds: float, kind: str | None) -> dict[str, Any]:
        options = [f"--kind {kind}"] if kind else []
        options += [f"--trainings {self.trainings}"] if self.trainings != TRAININGS else []
        options += [f"--seed {self.seed}"] if self.seed else []
        return {
            "merkhet": __version__,
            **{name: _installed(name) for name in ("torch", "transformers")},
            "python": platform.python_version(),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": " ".join(["merkhet calibrate", self.place, *options]),
            "seconds": round(seconds, 1),
        }


class _Gathered:
    """The answers of all trainings, each model's under one name, and the facts that their questions are about."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.questions: dict[str, Question] = {}
        self.clusters: dict[str, str] = {}
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(
        self, model: str, questions: Sequence[Question], facts: Mapping[str, str], answers: Sequence[Answer]
    ) -> None:
        """Add what a model answered to the questions of one training."""
        self.questions.update({question.question_id: question for question in questions})
        self.clusters.update(facts)
        self.rows[model] += [{**answer.as_row(), "model": model} for answer in answers]

    def facts(self, content: str) -> int:
        """How many facts a set has."""
        return len({self.clusters[name] for name, question in self.questions.items() if question.task == content})

    def unusable(self, model: str) -> int:
        """How many answers of a model say that the question could not be asked."""
        return sum(row["unusable"] is not None for row in self.rows[model])

    def scores(self) -> tuple[str, str, str, dict[tuple[str, str], dict[str, Any]]]:
        """The probe as its answers name it, its first method, the metric, and the scores by set and model.

        What could not be asked was not found; a model that could be asked nothing has no scores.
        """
        first = self.rows[TRAINED][0]
        rows = [row for model in MODELS for row in self._usual(model)]
        metrics = [get_metric(name) for name in _METRICS]
        groups: dict[str, dict[str, str | None]] = {name: {} for name in self.questions}
        table = score_answers(
            "calibration",
            self.questions,
            groups,
            self.clusters,
            rows,
            metrics,
            seed=self.seed,
            unusable_is_wrong=True,
        ).to_pylist()
        ranked = any(row["metric"] == "accuracy" and row["model"] == TRAINED for row in table)
        metric = _METRICS[0] if ranked else _METRICS[1]
        found = {(row["task"], row["model"]): row for row in table if row["metric"] == metric}
        return first["probe"], first["method"], metric, found

    def _usual(self, model: str) -> list[dict[str, Any]]:
        """The answers of a model by its first method; none if it could be asked nothing."""
        own = self.rows[model]
        if not own or all(row["unusable"] is not None for row in own):
            return []
        return [row for row in own if row["method"] == own[0]["method"]]


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
