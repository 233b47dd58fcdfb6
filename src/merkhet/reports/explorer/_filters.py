"""Question filters of a request, and their SQL conditions.

A way of asking is a combination of model, probe and method, represented by its index in ``RunTables.ways``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG
from merkhet.reports.explorer.run_tables import FACETS, RunTables

RESULTS = {"right": RIGHT, "wrong": WRONG, "unusable": UNUSABLE}
TIED = "tied"
CELLS = ("both", "first", "second", "neither", "apart")
"""Joint outcomes of a pair of models on a question, by which model is right.

``apart`` means that at least one model has no usable answer."""
_MAX_SEARCH_LENGTH, _MAX_SEARCH_WORDS = 400, 12
_SEARCH_TERM = re.compile(r'"([^"]+)"|(\S+)')

Params = Mapping[str, Sequence[str]]


class RequestError(Exception):
    """Error for an invalid request; the message is shown to the user."""


@dataclass(frozen=True)
class Filters:
    """The question filters of a request."""

    words: tuple[str, ...] = ()
    """Search words; a question must contain all of them."""
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Accepted values by facet."""
    ways: tuple[int, ...] = ()
    """Ways of asking with the chosen models, probes and methods; all ways of asking if nothing was chosen."""
    narrowed: bool = False
    """Whether a model, probe or method was chosen; questions then need an answer by one of ``ways``."""
    results: frozenset[str] = frozenset()
    low: float | None = None
    """Lowest accepted rank."""
    high: float | None = None
    """Highest accepted rank."""
    pair: tuple[int, int] | None = None
    """The two ways of asking to compare; None without a comparison."""
    cell: str | None = None
    """Accepted joint outcome of ``pair``, one of ``CELLS``."""


def read_filters(params: Params, tables: RunTables) -> Filters:
    """Parse the filters of a request.

    Raises:
        RequestError: If a value is invalid.
    """
    ways = tables.ways
    chosen = {name: set(params.get(name) or ()) for name in ("model", "probe", "method")}
    chosen_ways = tuple(
        number
        for number, way in enumerate(ways)
        if all(not accepted or getattr(way, name) in accepted for name, accepted in chosen.items())
    )
    results = frozenset(params.get("result") or ())
    if results - {*RESULTS, TIED}:
        raise RequestError(f"The result must be one of {', '.join([*RESULTS, TIED])}.")
    pair = read_pair(params, tables)
    cell = last_value(params, "cell")
    if cell is not None and cell not in CELLS:
        raise RequestError(f"The cell must be one of {', '.join(CELLS)}.")
    return Filters(
        search_words(last_value(params, "search") or ""),
        {name: tuple(params[name]) for name in FACETS if params.get(name)},
        chosen_ways,
        any(chosen.values()),
        results,
        _number(params, "low"),
        _number(params, "high"),
        pair,
        cell if pair else None,
    )


def read_pair(params: Params, tables: RunTables) -> tuple[int, int] | None:
    """Return the indices of the two ways of asking that the parameters ``first`` and ``second`` name by label.

    Return None if both parameters are absent.
    """
    labels = [last_value(params, name) for name in ("first", "second")]
    if labels == [None, None]:
        return None
    numbers = {way.label: number for number, way in enumerate(tables.ways)}
    for label in labels:
        if label not in numbers:
            raise RequestError("There is no such model in this run." if label else "Name two models to compare.")
    return numbers[str(labels[0])], numbers[str(labels[1])]


def search_words(text: str) -> tuple[str, ...]:
    """Split a search text into distinct words; text in double quotes counts as one word."""
    if len(text) > _MAX_SEARCH_LENGTH:
        raise RequestError(f"Search for at most {_MAX_SEARCH_LENGTH} characters.")
    terms = [" ".join((phrase or word).split()) for phrase, word in _SEARCH_TERM.findall(text)]
    words = tuple(dict.fromkeys(word for word in terms if word))
    if len(words) > _MAX_SEARCH_WORDS:
        raise RequestError(f"Search for at most {_MAX_SEARCH_WORDS} words.")
    return words


def last_value(params: Params, name: str) -> str | None:
    """Return the last value of a request parameter; None if the parameter is absent or empty."""
    values = params.get(name)
    return (values[-1] or None) if values else None


def _number(params: Params, name: str) -> float | None:
    text = last_value(params, name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RequestError(f"A rank must be a number, got {text[:40]!r}.")
    return value


class Selection:
    """SQL conditions for the questions that pass the filters, one condition per kind of filter.

    The conditions contain no free text of a request; such values are in ``parameters``.
    """

    def __init__(self, tables: RunTables, filters: Filters) -> None:
        self.filters = filters
        self.parameters: dict[str, Any] = {}
        self._conditions: dict[str, str] = {}
        for name, values in filters.facets.items():
            known = {f"{name}_{number}": value for number, value in enumerate(values) if value in tables.facets[name]}
            accepted = ", ".join(f"${key}::facet_{name}" for key in known)
            self._conditions[name] = f"{name} in ({accepted})" if known else "false"
            self.parameters |= known
        words = {f"word_{number}": word for number, word in enumerate(filters.words)}
        self.search = " and ".join(f"contains(text, lower(nfc_normalize(${key})))" for key in words)
        """SQL condition of the search words; empty without search words."""
        if self.search:
            self._conditions["search"] = self.search
        self.parameters |= words
        bounds = {name: value for name in ("low", "high") if (value := getattr(filters, name)) is not None}
        if filters.narrowed or filters.results or bounds:
            self._conditions["answers"] = self.answered(filters.results)
            self.parameters |= bounds if filters.ways else {}
        if filters.pair and filters.cell:
            self._conditions["cell"] = f"{pair_cell(*filters.pair)} = '{filters.cell}'"

    def where(self, *without: str) -> str:
        """Return the SQL condition of all filters, except the kinds of filter in ``without``."""
        return " and ".join(f"({sql})" for name, sql in self._conditions.items() if name not in without) or "true"

    def answered(self, results: Iterable[str]) -> str:
        """Return the SQL condition for an answer by a chosen model, probe and method with accepted result and rank.

        Without ``results``, all results are accepted.
        """
        return " or ".join(self._answered_by(way, results) for way in self.filters.ways) or "false"

    def _answered_by(self, way: int, results: Iterable[str]) -> str:
        accepted = " or ".join(has_result(way, name) for name in results) or f"verdict_{way} is not null"
        parts = [f"({accepted})"]
        if self.filters.low is not None:
            parts.append(f"rank_{way} >= $low")
        if self.filters.high is not None:
            parts.append(f"rank_{way} <= $high")
        return f"({' and '.join(parts)})"


def has_result(way: int, result: str) -> str:
    """Return the SQL condition for questions with ``result`` for the way of asking with index ``way``."""
    return f"tied_{way}" if result == TIED else f"verdict_{way} = {RESULTS[result]}"


def pair_cell(first: int, second: int) -> str:
    """Return the SQL expression for the joint outcome of two ways of asking, which is one of ``CELLS``."""
    a, b = f"verdict_{first}", f"verdict_{second}"
    return (
        f"case when coalesce({a}, {UNUSABLE}) = {UNUSABLE} or coalesce({b}, {UNUSABLE}) = {UNUSABLE} then 'apart' "
        f"when {a} = {RIGHT} then if({b} = {RIGHT}, 'both', 'first') else if({b} = {RIGHT}, 'second', 'neither') end"
    )
