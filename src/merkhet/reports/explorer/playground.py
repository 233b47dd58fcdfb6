"""Playground of the explorer, where models answer a sentence with a slot."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import MerkhetError, first_line
from merkhet.core.records import Answer, Question
from merkhet.core.redaction import redact_message
from merkhet.core.text import counted, finite_or_none
from merkhet.models.placeholders import PSEUDOWORD_MARKS, replace_pseudowords
from merkhet.models.protocol import FillsSlots, Model, NeedsAllQuestions, WritesAnswers
from merkhet.probes import PROBES
from merkhet.reports.explorer._filters import RequestError

PLAY_PROBES = ("rank", "fill", "write")
"""Probes that the playground offers."""
_MAX_TEXT_LENGTH, _MAX_CANDIDATE_LENGTH, _MAX_CANDIDATES, _MAX_MODELS = 4000, 500, 2000, 8
_SLOT = re.compile(r"\[mask\]|_{3,}", re.IGNORECASE)
_SEPARATORS = re.compile(r"[,;，、；]")
# The probe fill needs an answer of one token, which these words provide.
_FILLERS = ("it", "the", "one", "a", "1", "的", "一", "是")


@dataclass(frozen=True)
class Playable:
    """A model that the playground lists."""

    name: str
    kind: str
    load: Callable[[], Model] | None = None
    """Function that loads the model; None if the model cannot be used."""
    reason: str = ""
    """Reason why the model cannot be used."""


@dataclass(frozen=True)
class PlayRequest:
    """A request to the playground: sentence, candidates, probe and models."""

    prompt: str
    candidates: tuple[str, ...]
    probe: str
    models: tuple[tuple[str, str | None], ...]
    """Pairs of model name and method; the method None stands for the default."""


@dataclass
class _Job:
    number: int
    request: PlayRequest
    state: str = "waiting"
    message: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)
    version: int = 0


def read_play_request(content: Any, names: Sequence[str]) -> PlayRequest:
    """Parse a request to the playground; ``names`` are the names of the available models.

    Raises:
        RequestError: If the content is invalid; the message is shown to the user.
    """
    if not isinstance(content, dict):
        raise RequestError("A play request must be an object with text, candidates and models.")
    text, probe = content.get("text"), content.get("probe", "rank")
    if probe not in PLAY_PROBES:
        raise RequestError(f"The probe must be one of {', '.join(PLAY_PROBES)}.")
    if not isinstance(text, str) or not text.strip():
        raise RequestError(f"Write a sentence with {SLOT} or ___ where the answer goes.")
    if len(text) > _MAX_TEXT_LENGTH:
        raise RequestError(f"The sentence has {counted(len(text), 'character')}; write at most {_MAX_TEXT_LENGTH:,}.")
    slots = len(_SLOT.findall(text))
    if slots != 1:
        slot_phrase = "no slot" if slots == 0 else f"{slots} slots"
        raise RequestError(f"The sentence has {slot_phrase}; write {SLOT} or ___ once, where the answer goes.")
    candidates = _read_candidates(content.get("candidates", ""))
    if probe == "rank" and len(candidates) < 2:
        raise RequestError("Write two candidates or more, one per line or separated by commas.")
    return PlayRequest(_SLOT.sub(lambda _: SLOT, text.strip()), candidates, probe, _read_models(content, names))


def _read_candidates(text: Any) -> tuple[str, ...]:
    """Split a text into distinct candidates: at line ends, or a single line at commas and semicolons."""
    if not isinstance(text, str):
        raise RequestError("Candidates must be a text, one per line.")
    parts = text.split("\n") if "\n" in text else _SEPARATORS.split(text)
    candidates = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if len(candidates) > _MAX_CANDIDATES:
        raise RequestError(f"There are {len(candidates):,} candidates; write at most {_MAX_CANDIDATES:,}.")
    if any(len(candidate) > _MAX_CANDIDATE_LENGTH for candidate in candidates):
        raise RequestError(f"A candidate must have at most {_MAX_CANDIDATE_LENGTH} characters.")
    if any(SLOT in candidate for candidate in candidates):
        raise RequestError(f"A candidate fills the slot and cannot contain {SLOT}.")
    return candidates


def _read_models(content: Mapping[str, Any], names: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    chosen = content.get("models")
    if not isinstance(chosen, list) or not chosen:
        raise RequestError("Choose a model.")
    if len(chosen) > _MAX_MODELS:
        raise RequestError(f"Choose at most {_MAX_MODELS} models.")
    methods: dict[str, str | None] = {}
    for choice in chosen:
        name, method = (choice.get("name"), choice.get("method")) if isinstance(choice, dict) else (None, None)
        if not isinstance(name, str) or name not in names or not (method is None or isinstance(method, str)):
            raise RequestError("There is no such model in the playground.")
        methods[name] = method or None
    return tuple(methods.items())


class Player:
    """Worker thread of the playground, which answers only the latest request.

    A model is loaded at its first use. To save memory, loading a model releases the models that the request does not
    name.
    """

    def __init__(self, playables: Sequence[Playable]) -> None:
        self.playables = {playable.name: playable for playable in playables}
        self._models: dict[str, Model] = {}
        self._changed = threading.Condition()
        self._latest: _Job | None = None
        self._count = 0
        self._thread: threading.Thread | None = None

    def models(self) -> list[dict[str, Any]]:
        """Return the models with their methods; models that cannot be used have a reason."""
        with self._changed:
            return [
                {
                    "name": playable.name,
                    "kind": playable.kind,
                    "reason": playable.reason if playable.load is None else "",
                    "loaded": playable.name in self._models,
                    "methods": {probe: list(_methods(self._models.get(playable.name), probe)) for probe in PLAY_PROBES},
                }
                for playable in self.playables.values()
            ]

    def ask(self, request: PlayRequest) -> int:
        """Submit a request and return its number; the new request replaces any earlier request."""
        with self._changed:
            self._count += 1
            self._latest = _Job(self._count, request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="merkhet-play", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._count

    def state(self, number: int, seen: int = -1, wait: float = 0.0) -> dict[str, Any]:
        """Return the state of request ``number``; wait up to ``wait`` seconds for a version newer than ``seen``."""
        deadline = time.monotonic() + wait
        with self._changed:
            while True:
                job = self._latest
                if job is None or job.number != number:
                    return {"job": number, "state": "replaced", "message": "", "results": [], "version": 0}
                remaining = deadline - time.monotonic()
                if job.version > seen or remaining <= 0 or job.state in ("done", "failed"):
                    return {
                        **{"job": number, "state": job.state, "message": job.message, "version": job.version},
                        "results": list(job.results),
                    }
                self._changed.wait(remaining)

    def _work(self) -> None:
        done = 0
        while True:
            with self._changed:
                while self._latest is None or self._latest.number == done:
                    self._changed.wait()
                job = self._latest
            done = job.number
            for name, method in job.request.models:
                if not self._is_latest(job):
                    break
                result = self._run_model(job, name, method)
                with self._changed:
                    job.results.append(result)
                    job.version += 1
                    self._changed.notify_all()
            self._set_state(job, "done", "")

    def _is_latest(self, job: _Job) -> bool:
        with self._changed:
            return job is self._latest

    def _set_state(self, job: _Job, state: str, message: str) -> None:
        with self._changed:
            job.state, job.message = state, message
            job.version += 1
            self._changed.notify_all()

    def _run_model(self, job: _Job, name: str, method: str | None) -> dict[str, Any]:
        try:
            model = self._model(job, name)
            self._set_state(job, "asking", f"{name}: asking …")
            started = time.perf_counter()
            result = _play(model, job.request, method)
            return {**result, "model": name, "seconds": round(time.perf_counter() - started, 3)}
        except MerkhetError as error:
            return {"model": name, "error": str(error)}
        except Exception as error:  # Model code may raise any error; the page shows the error.
            return {"model": name, "error": redact_message(f"{type(error).__name__}: {first_line(error)}")}

    def _model(self, job: _Job, name: str) -> Model:
        if name not in self._models:
            playable = self.playables[name]
            if playable.load is None:
                raise MerkhetError(playable.reason)
            chosen = dict(job.request.models)
            with self._changed:
                self._models = {key: model for key, model in self._models.items() if key in chosen}
            self._set_state(job, "loading", f"{name}: loading …")
            model = playable.load()
            with self._changed:
                self._models[name] = model
        return self._models[name]


def _play(model: Model, request: PlayRequest, method: str | None = None) -> dict[str, Any]:
    """Ask a model with the requested probe, as a run does, and return the answer as JSON content."""
    if isinstance(model, NeedsAllQuestions):
        raise MerkhetError(f"{model.name} needs all questions of a run and cannot be asked a single sentence")
    methods = _methods(model, request.probe)
    if request.probe == "fill" and not isinstance(model, FillsSlots):
        raise MerkhetError("this model has no mask to fill; rank candidates, or let it write")
    if not methods:
        raise MerkhetError(f"models of kind {model.kind} cannot be asked by the probe {request.probe}")
    fillers = _FILLERS if request.probe == "fill" else ()
    question = Question(
        question_id="play",
        task="play",
        prompt=replace_pseudowords(request.prompt),
        # Ranks are computed for right answers, so every candidate is declared right.
        answers=(*request.candidates, *fillers) or (" ",),
        target=request.candidates[0] if request.candidates else "",
        candidates=request.candidates,
    )
    chosen = [method] if method in methods else []
    (answer,) = list(PROBES.get(request.probe)(model, [question], chosen))[:1]
    return {
        "probe": request.probe,
        "method": answer.method,
        "methods": list(methods),
        "ranked": _ranked_view(answer, request.candidates),
        "golds": [
            {"text": text, "rank": rank, "ties": ties}
            for text, rank, ties in zip(answer.golds, answer.gold_ranks, answer.gold_ties, strict=True)
            if text in request.candidates
        ],
        "among": answer.among or len(request.candidates) or None,
        "unusable": answer.unusable,
        "note": _note(request),
    }


def _ranked_view(answer: Answer, candidates: Sequence[str]) -> list[dict[str, Any]]:
    ranks_of = dict(zip(answer.golds, zip(answer.gold_ranks, answer.gold_ties, strict=True), strict=True))
    ranked = []
    for text, score in answer.ranked:
        rank, ties = ranks_of.get(text, (None, None)) if text in candidates else (None, None)
        ranked.append({"text": text, "score": finite_or_none(score), "rank": rank, "ties": ties})
    return ranked


def _note(request: PlayRequest) -> str:
    if any(mark in request.prompt for mark in PSEUDOWORD_MARKS):
        return "[X] and [Y] are read as the letters X and Y: pseudowords are not supported here."
    return ""


def _methods(model: Model | None, probe: str) -> tuple[str, ...]:
    """Return the methods of a model for a probe, the default first; empty if the model is not loaded."""
    if model is None:
        return ()
    if probe == "rank":
        return tuple(model.methods)
    if probe == "write":
        return tuple(model.writing_methods) if isinstance(model, WritesAnswers) else ()
    return ("mask",) if isinstance(model, FillsSlots) else ()
