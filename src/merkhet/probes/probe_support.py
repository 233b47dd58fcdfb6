"""Shared parts of probes: the protocol, checks of options, and the selection of methods and usable questions."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar, get_type_hints

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.records import Answer, Question
from merkhet.core.settings import check_value
from merkhet.models.protocol import CandidateScores, FilledSlot, Model, RankedCandidates, WrittenAnswer

TOP_K = 25
"""The maximum number of ranked candidates that an answer records."""

Result = TypeVar("Result", CandidateScores, CandidateScores | RankedCandidates, FilledSlot, WrittenAnswer)


class Probe(Protocol):
    """A function that asks a model questions, and yields at least one answer per question and method."""

    def __call__(self, model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
        """Ask the model the questions; answers come in any order."""


def check_probe_options(name: str, probe: Probe, options: Mapping[str, Any]) -> None:
    """Check options of the probe called ``name`` against its keyword-only parameters.

    Raises:
        InputError: An option is unknown or invalid.
    """
    hints = _option_types(probe)
    for option, value in options.items():
        if option not in hints:
            raise InputError(f"the probe {name} has no option {option!r}; {did_you_mean(str(option), hints)}")
        check_value(f"the probe {name}: {option}", hints[option], value)


def _option_types(probe: Probe) -> dict[str, Any]:
    """Return the types of the keyword-only parameters: their annotations, or else the types of their defaults."""
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(probe).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "examples"
    }
    try:
        hints = get_type_hints(probe, include_extras=True)
    except (NameError, TypeError):  # A user's probe may have annotations that only type checkers can resolve.
        hints = {}
    guessed = {name: type(value) if isinstance(value, int) else Any for name, value in defaults.items()}
    return {name: hints.get(name, guess) for name, guess in guessed.items()}


def bind_options(probe: Probe, options: Mapping[str, Any]) -> Probe:
    """Return the probe with its options already passed."""
    if not options:
        return probe
    bound: Any = partial(probe, **options)
    bound.compares_senses = getattr(probe, "compares_senses", False)
    result: Probe = bound
    return result


def select_methods(model: Model, methods: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the requested ``methods``, or the first of ``known`` if none is requested.

    Raises:
        InputError: A requested method is not in ``known``.
    """
    for method in methods:
        if method not in known:
            raise InputError(f"{model.name} has no method {method!r}; {did_you_mean(method, known)}")
    return tuple(methods) or tuple(known[:1])


def find_slot_problem(question: Question) -> str | None:
    """Return the reason why a slot-filling probe cannot ask a question; None if it can."""
    return "this question compares senses; ask it by the probe compare" if question.words else None


def ask_usable(
    questions: Sequence[Question],
    ask: Callable[[Sequence[Question]], Iterable[Result]],
    refuse: Callable[[int, str], Iterable[Result]],
    find_problem: Callable[[Question], str | None] = find_slot_problem,
) -> tuple[list[Result], float]:
    """Ask the usable questions; return the results of all questions and the mean seconds per question.

    A question is usable if ``find_problem`` returns None. Otherwise ``refuse`` makes the question's results from its
    index and the problem.
    """
    started = time.perf_counter()
    problems = {index: reason for index, question in enumerate(questions) if (reason := find_problem(question))}
    results = [result for index, reason in problems.items() for result in refuse(index, reason)]
    usable = [index for index in range(len(questions)) if index not in problems]
    if usable:
        asked = ask([questions[index] for index in usable])
        results += asked if not problems else (replace(result, index=usable[result.index]) for result in asked)
    return results, (time.perf_counter() - started) / max(1, len(questions))


def refuse_model(
    model: Model,
    probe: str,
    questions: Sequence[Question],
    methods: Sequence[str],
    reason: str,
    find_problem: Callable[[Question], str | None] | None = find_slot_problem,
) -> Iterator[Answer]:
    """Yield an unusable answer for every question and method.

    The answer's reason is the problem that ``find_problem`` returns for the question, or else ``reason``.
    """
    for question in questions:
        unusable = (find_problem(question) if find_problem else None) or reason
        for method in methods:
            yield Answer(question.question_id, model.name, probe, method, unusable=unusable)
