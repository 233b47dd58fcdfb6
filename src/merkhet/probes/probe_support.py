"""What all probes have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.records import Answer, Question
from merkhet.models.protocol import CandidateScores, FilledSlot, Model, WrittenAnswer

KEPT = 25
"""How many ranked candidates an answer keeps."""

Result = TypeVar("Result", CandidateScores, FilledSlot, WrittenAnswer)


class Probe(Protocol):
    """What a probe is: a function from a model and questions to answers, one for each question and method."""

    def __call__(self, model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
        """Ask the questions, in any order."""


def options_of(probe: Probe) -> dict[str, Any]:
    """The options of a probe with what they are by default: what it takes by name alone, besides the examples."""
    taken = inspect.signature(probe).parameters.values()
    return {one.name: one.default for one in taken if one.kind is one.KEYWORD_ONLY and one.name != "examples"}


def check_probe_options(name: str, probe: Probe, options: Mapping[str, Any]) -> None:
    """Refuse what is no option of a probe, or is of another kind than what stands there by default."""
    known = options_of(probe)
    for key, value in options.items():
        if key not in known:
            raise InputError(f"the probe {name} has no option {key!r}; {did_you_mean(str(key), known)}")
        usual = known[key]
        if isinstance(usual, bool):
            if not isinstance(value, bool):
                raise InputError(f"the probe {name}: {key} is {value!r}, and should be true or false")
        elif isinstance(usual, int) and (not isinstance(value, int) or isinstance(value, bool)):
            raise InputError(f"the probe {name}: {key} is {value!r}, and should be a whole number")


def bind_options(probe: Probe, options: Mapping[str, Any]) -> Probe:
    """A probe that asks with these options."""
    if not options:
        return probe
    made: Any = partial(probe, **options)
    made.compares_senses = getattr(probe, "compares_senses", False)
    result: Probe = made
    return result


def known_methods(model: Model, wanted: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The methods to use: those asked for, or the first known one; refuses what is not known."""
    for method in wanted:
        if method not in known:
            raise InputError(f"{model.name} has no method {method!r}; {did_you_mean(method, known)}")
    return tuple(wanted) or tuple(known[:1])


def results_for(
    questions: Sequence[Question],
    problem: Callable[[Question], str | None],
    ask: Callable[[Sequence[Question]], Iterable[Result]],
    refuse: Callable[[int, str], Iterable[Result]],
) -> list[Result]:
    """What a model gives for the questions that a probe can ask, and a refusal of each that has a problem."""
    problems = {index: reason for index, question in enumerate(questions) if (reason := problem(question))}
    if not problems:
        return list(ask(questions))
    found = [one for index, reason in problems.items() for one in refuse(index, reason)]
    fitting = [index for index in range(len(questions)) if index not in problems]
    if fitting:
        found += [replace(one, index=fitting[one.index]) for one in ask([questions[index] for index in fitting])]
    return found


def compares_senses(question: Question) -> str | None:
    """Why a question cannot be asked by a probe that fills its slot; None if it can."""
    return "this question compares senses; ask it by the probe compare" if question.words else None
