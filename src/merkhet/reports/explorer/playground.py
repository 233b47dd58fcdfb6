"""Playing: a sentence with a slot put to models live, one model at a time, and only the latest sentence counts."""

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
from merkhet.models.placeholders import PSEUDOWORD_MARKS, replace_pseudowords
from merkhet.models.protocol import FillsSlots, Model, NeedsAllQuestions, WritesAnswers
from merkhet.probes import PROBES
from merkhet.reports.explorer._filters import RequestError
from merkhet.reports.formatting import finite_or_none

PLAYED = ("rank", "fill", "write")
"""The probes that one can play with."""
_LONGEST_TEXT, _LONGEST_CANDIDATE, _MOST_CANDIDATES, _MOST_MODELS = 4000, 500, 2000, 8
_SLOT = re.compile(r"\[mask\]|_{3,}", re.IGNORECASE)
_BETWEEN = re.compile(r"[,;，、；]")
# The mask is put in the place of an answer that is one piece; where none is given, of such a word.
_FILLERS = ("it", "the", "one", "a", "1", "的", "一", "是")


@dataclass(frozen=True)
class Playable:
    """A model that can be played with, or the reason why it cannot; ``load`` is called when it is first wanted."""

    name: str
    kind: str
    load: Callable[[], Model] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Wish:
    """What a reader wants asked: a sentence, candidates, a probe, and models with the method each is to use."""

    prompt: str
    candidates: tuple[str, ...]
    probe: str
    models: tuple[tuple[str, str | None], ...]


@dataclass
class _Job:
    number: int
    wish: Wish
    state: str = "waiting"
    said: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)
    version: int = 0


def read_wish(content: Any, names: Sequence[str]) -> Wish:
    """The wish that the content of a request holds; refuses in words that the reader of the page sees."""
    if not isinstance(content, dict):
        raise RequestError("What is played is an object with a text, candidates and models.")
    text, probe = content.get("text"), content.get("probe", "rank")
    if probe not in PLAYED:
        raise RequestError(f"The probe is one of {', '.join(PLAYED)}.")
    if not isinstance(text, str) or not text.strip():
        raise RequestError(f"Write a sentence with {SLOT} or ___ where the answer goes.")
    if len(text) > _LONGEST_TEXT:
        raise RequestError(f"The sentence has {len(text):,} characters; write at most {_LONGEST_TEXT:,}.")
    slots = len(_SLOT.findall(text))
    if slots != 1:
        found = "no slot" if slots == 0 else f"{slots} slots"
        raise RequestError(f"The sentence has {found}; write {SLOT} or ___ once, where the answer goes.")
    candidates = read_candidates(content.get("candidates", ""))
    if probe == "rank" and len(candidates) < 2:
        raise RequestError("Write two candidates or more, one a line or with commas between them.")
    return Wish(_SLOT.sub(lambda _: SLOT, text.strip()), candidates, probe, _read_models(content, names))


def read_candidates(given: Any) -> tuple[str, ...]:
    """Candidates from a text, one a line, or with commas between them if it is one line; each once."""
    if not isinstance(given, str):
        raise RequestError("Candidates are a text, one a line.")
    parts = given.split("\n") if "\n" in given else _BETWEEN.split(given)
    found = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if len(found) > _MOST_CANDIDATES:
        raise RequestError(f"There are {len(found):,} candidates; write at most {_MOST_CANDIDATES:,}.")
    if any(len(text) > _LONGEST_CANDIDATE for text in found):
        raise RequestError(f"A candidate has at most {_LONGEST_CANDIDATE} characters.")
    if any(SLOT in text for text in found):
        raise RequestError(f"A candidate stands in the slot, and cannot hold {SLOT} itself.")
    return found


def _read_models(content: Mapping[str, Any], names: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    given = content.get("models")
    if not isinstance(given, list) or not given:
        raise RequestError("Choose a model.")
    if len(given) > _MOST_MODELS:
        raise RequestError(f"Choose at most {_MOST_MODELS} models.")
    found: dict[str, str | None] = {}
    for one in given:
        name, method = (one.get("name"), one.get("method")) if isinstance(one, dict) else (None, None)
        if not isinstance(name, str) or name not in names or not (method is None or isinstance(method, str)):
            raise RequestError("There is no such model to play with here.")
        found[name] = method or None
    return tuple(found.items())


class Player:
    """Answers one wish at a time in a thread of its own. A new wish takes the place of the one that waits.

    A model is loaded when it is first wanted. Those that the latest wish does not name are let go when another one is
    loaded, so that no more than the chosen ones are in memory.
    """

    def __init__(self, playables: Sequence[Playable]) -> None:
        self.playables = {one.name: one for one in playables}
        self._models: dict[str, Model] = {}
        self._changed = threading.Condition()
        self._latest: _Job | None = None
        self._count = 0
        self._thread: threading.Thread | None = None

    def models(self) -> list[dict[str, Any]]:
        """What there is to play with, and why not."""
        with self._changed:
            return [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "reason": one.reason if one.load is None else "",
                    "loaded": one.name in self._models,
                    "methods": {probe: list(_methods(self._models.get(one.name), probe)) for probe in PLAYED},
                }
                for one in self.playables.values()
            ]

    def ask(self, wish: Wish) -> int:
        """Take a wish; its number. What waited before it is not answered any more."""
        with self._changed:
            self._count += 1
            self._latest = _Job(self._count, wish)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="merkhet-play", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._count

    def state(self, number: int, seen: int = -1, wait: float = 0.0) -> dict[str, Any]:
        """Where a wish stands; waits some seconds for news if what was ``seen`` is all there is."""
        until = time.monotonic() + wait
        with self._changed:
            while True:
                job = self._latest
                if job is None or job.number != number:
                    return {"job": number, "state": "replaced", "said": "", "results": [], "version": 0}
                left = until - time.monotonic()
                if job.version > seen or left <= 0 or job.state in ("done", "failed"):
                    return {
                        **{"job": number, "state": job.state, "said": job.said, "version": job.version},
                        "results": list(job.results),
                    }
                self._changed.wait(left)

    def _work(self) -> None:
        done = 0
        while True:
            with self._changed:
                while self._latest is None or self._latest.number == done:
                    self._changed.wait()
                job = self._latest
            done = job.number
            for name, method in job.wish.models:
                if not self._told(job):
                    break
                result = self._played(job, name, method)
                with self._changed:
                    job.results.append(result)
                    job.version += 1
                    self._changed.notify_all()
            self._tell(job, "done", "")

    def _told(self, job: _Job) -> bool:
        """Whether a wish still counts."""
        with self._changed:
            return job is self._latest

    def _tell(self, job: _Job, state: str, said: str) -> None:
        with self._changed:
            job.state, job.said = state, said
            job.version += 1
            self._changed.notify_all()

    def _played(self, job: _Job, name: str, method: str | None) -> dict[str, Any]:
        try:
            model = self._model(job, name)
            self._tell(job, "asking", f"{name}: asking …")
            started = time.perf_counter()
            result = play(model, job.wish, method)
            return {**result, "model": name, "seconds": round(time.perf_counter() - started, 3)}
        except MerkhetError as error:
            return {"model": name, "error": str(error)}
        except Exception as error:  # A model's own code may raise anything; the page says what.
            return {"model": name, "error": f"{type(error).__name__}: {first_line(error)}"}

    def _model(self, job: _Job, name: str) -> Model:
        if name not in self._models:
            playable = self.playables[name]
            if playable.load is None:
                raise MerkhetError(playable.reason)
            wanted = dict(job.wish.models)
            with self._changed:
                self._models = {one: model for one, model in self._models.items() if one in wanted}
            self._tell(job, "loading", f"{name}: loading …")
            model = playable.load()
            with self._changed:
                self._models[name] = model
        return self._models[name]


def play(model: Model, wish: Wish, method: str | None = None) -> dict[str, Any]:
    """What a model makes of a wish, by the probe that a run would use, as content for JSON."""
    if isinstance(model, NeedsAllQuestions):
        raise MerkhetError(f"{model.name} looks at all the questions of a run, and cannot be asked one sentence")
    known = _methods(model, wish.probe)
    if wish.probe == "fill" and not isinstance(model, FillsSlots):
        raise MerkhetError("it has no mask to fill; rank candidates, or let it write")
    if not known:
        raise MerkhetError(f"a model of the kind {model.kind} cannot be asked by the probe {wish.probe}")
    fillers = _FILLERS if wish.probe == "fill" else ()
    question = Question(
        question_id="play",
        task="play",
        prompt=replace_pseudowords(wish.prompt),
        # All are right: so each gets its rank.
        answers=(*wish.candidates, *fillers) or (" ",),
        target=wish.candidates[0] if wish.candidates else "",
        candidates=wish.candidates,
    )
    chosen = [method] if method in known else []
    (answer,) = list(PROBES.get(wish.probe)(model, [question], chosen))[:1]
    return {
        "probe": wish.probe,
        "method": answer.method,
        "methods": list(known),
        "ranked": _ranked(answer, wish.candidates),
        "golds": [
            {"text": text, "rank": rank, "ties": ties}
            for text, rank, ties in zip(answer.golds, answer.gold_ranks, answer.gold_ties, strict=True)
            if text in wish.candidates
        ],
        "among": answer.among or len(wish.candidates) or None,
        "unusable": answer.unusable,
        "note": _note(wish),
    }


def _ranked(answer: Answer, candidates: Sequence[str]) -> list[dict[str, Any]]:
    own = dict(zip(answer.golds, zip(answer.gold_ranks, answer.gold_ties, strict=True), strict=True))
    ranked = []
    for text, score in answer.ranked:
        rank, ties = own.get(text, (None, None)) if text in candidates else (None, None)
        ranked.append({"text": text, "score": finite_or_none(score), "rank": rank, "ties": ties})
    return ranked


def _note(wish: Wish) -> str:
    if any(mark in wish.prompt for mark in PSEUDOWORD_MARKS):
        return "[X] and [Y] are read as the letters X and Y: pseudowords are not played with."
    return ""


def _methods(model: Model | None, probe: str) -> tuple[str, ...]:
    """The methods by which a loaded model can be asked by a probe, the usual one first."""
    if model is None:
        return ()
    if probe == "rank":
        return tuple(model.methods)
    if probe == "write":
        return tuple(model.writing_methods) if isinstance(model, WritesAnswers) else ()
    return ("mask",) if isinstance(model, FillsSlots) else ()
