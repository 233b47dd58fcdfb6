"""Filters of a request, masks of the questions that pass, and facet counts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG
from merkhet.reports.explorer._answer_cells import UNASKED, Bools, Ints
from merkhet.reports.explorer.run_tables import FACETS, RunTables

RESULTS = {"right": RIGHT, "wrong": WRONG, "unusable": UNUSABLE}
TIED = "tied"
CELLS = ("both", "first", "second", "neither", "apart")
"""Joint outcomes of two ways of asking: who is right; ``apart`` if one of them has no usable answer."""
_MAX_SEARCH_LENGTH, _MAX_SEARCH_WORDS = 400, 12
_SEARCH_TERM = re.compile(r'"([^"]+)"|(\S+)')

Params = Mapping[str, Sequence[str]]


class RequestError(Exception):
    """An invalid request; the message is shown to the user."""


@dataclass(frozen=True)
class Filters:
    """Hold the filters of a request."""

    words: tuple[str, ...] = ()
    """Search words, all of which must occur."""
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Accepted values by facet."""
    ways: tuple[int, ...] = ()
    """Ways of the chosen models, probes and methods; all ways if none is chosen."""
    narrowed: bool = False
    """Whether ways were chosen: a question then needs an answer by one of them."""
    results: frozenset[str] = frozenset()
    low: float | None = None
    """Lowest accepted rank."""
    high: float | None = None
    """Highest accepted rank."""
    pair: tuple[int, int] | None = None
    """Ways that are compared."""
    cell: str | None = None
    """Joint outcome of the pair, one of CELLS."""


def read_filters(params: Params, tables: RunTables) -> Filters:
    """Parse the filters of a request.

    Raises:
        RequestError: if a value is invalid.
    """
    ways = tables.cells.ways
    chosen = {name: set(params.get(name) or ()) for name in ("model", "probe", "method")}
    chosen_ways = tuple(
        number
        for number, way in enumerate(ways)
        if all(not accepted or getattr(way, name) in accepted for name, accepted in chosen.items())
    )
    results = frozenset(params.get("result") or ())
    if results - {*RESULTS, TIED}:
        raise RequestError(f"A result is one of {', '.join([*RESULTS, TIED])}.")
    pair = read_pair(params, tables)
    cell = last_value(params, "cell")
    if cell is not None and cell not in CELLS:
        raise RequestError(f"A cell is one of {', '.join(CELLS)}.")
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
    """Return the two ways that are compared, given by their labels; None if none is named."""
    labels = [last_value(params, name) for name in ("first", "second")]
    if labels == [None, None]:
        return None
    numbers = {way.label: number for number, way in enumerate(tables.cells.ways)}
    for label in labels:
        if label not in numbers:
            raise RequestError("There is no such model in this run." if label else "Name two models to compare.")
    return numbers[str(labels[0])], numbers[str(labels[1])]


def search_words(text: str) -> tuple[str, ...]:
    """Split a search into words; text in double quotes is one word."""
    if len(text) > _MAX_SEARCH_LENGTH:
        raise RequestError(f"Search for at most {_MAX_SEARCH_LENGTH} characters.")
    terms = [" ".join((phrase or word).split()) for phrase, word in _SEARCH_TERM.findall(text)]
    words = tuple(dict.fromkeys(word for word in terms if word))
    if len(words) > _MAX_SEARCH_WORDS:
        raise RequestError(f"Search for at most {_MAX_SEARCH_WORDS} words.")
    return words


def last_value(params: Params, name: str) -> str | None:
    """Return the last value of a parameter; None if it is absent or empty."""
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
        raise RequestError(f"A rank is a number, got {text[:40]!r}.")
    return value


class Selection:
    """Select the questions that pass filters, with a mask for each kind of filter."""

    def __init__(self, tables: RunTables, filters: Filters) -> None:
        self.tables, self.filters = tables, filters
        self._masks: dict[str, Bools] = {}
        for name, values in filters.facets.items():
            facet = tables.facets[name]
            accepted = np.zeros(len(facet.values) + 1, dtype=bool)
            accepted[facet.codes_of(values)] = True
            self._masks[name] = accepted[facet.codes]
        if filters.words:
            self._masks["search"] = tables.search(filters.words)
        if filters.narrowed or filters.results or filters.low is not None or filters.high is not None:
            self._masks["answers"] = self._answered(filters.results)
        if filters.pair and filters.cell:
            self._masks["cell"] = pair_cells(tables, filters.pair) == CELLS.index(filters.cell)

    def mask(self, without: Sequence[str] = ()) -> Bools | None:
        """Return the mask of the questions that pass all filters but those in ``without``; None if all pass."""
        masks = [mask for name, mask in self._masks.items() if name not in without]
        if not masks:
            return None
        passing = masks[0]
        for mask in masks[1:]:
            passing = passing & mask
        return passing

    def numbers(self) -> Ints:
        """Return the numbers of the questions that pass."""
        mask = self.mask()
        return np.arange(len(self.tables)) if mask is None else np.flatnonzero(mask)

    def _answered(self, results: frozenset[str]) -> Bools:
        """Return the questions with an answer, by one of the ways, that has one of the results and a rank in range."""
        mask = np.zeros(len(self.tables), dtype=bool)
        for way in self.filters.ways:
            mask |= self._answered_by(way, results)
        return mask

    def _answered_by(self, way: int, results: frozenset[str]) -> Bools:
        cells, filters = self.tables.cells, self.filters
        verdict, rank = cells.verdict[way], cells.rank[way]
        if results:
            mask = np.zeros(len(verdict), dtype=bool)
            for name in results:
                mask |= cells.tied[way] if name == TIED else verdict == RESULTS[name]
        else:
            mask = verdict != UNASKED
        if filters.low is not None:
            mask &= rank >= filters.low
        if filters.high is not None:
            mask &= rank <= filters.high
        return mask

    def facet_counts(self) -> dict[str, list[tuple[str, int]]]:
        """Count for each facet value the questions that pass all filters of other facets."""
        full = self.mask()
        counts = {}
        for name, facet in self.tables.facets.items():
            mask = self.mask([name]) if name in self._masks else full
            codes = facet.codes if mask is None else facet.codes[mask]
            sizes = np.bincount(codes, minlength=len(facet.values)).tolist()
            counts[name] = list(zip(facet.values, sizes, strict=True))
        return counts

    def result_counts(self) -> dict[str, int]:
        """Count the questions of each result that pass the other filters."""
        other_filters = self.mask(["answers"])
        counts = {}
        for name in (*RESULTS, TIED):
            mask = self._answered(frozenset({name}))
            counts[name] = int(np.count_nonzero(mask if other_filters is None else mask & other_filters))
        return counts

    def way_counts(self) -> list[dict[str, int]]:
        """Count the results of each way over the questions that pass all filters but those on answers."""
        mask = self.mask(["answers"])
        cells = self.tables.cells
        counts = []
        for verdict, tied in zip(cells.verdict, cells.tied, strict=True):
            selected = verdict if mask is None else verdict[mask]
            sizes = np.bincount(selected - UNASKED, minlength=4)
            counts.append(
                {
                    **{name: int(sizes[code - UNASKED]) for name, code in RESULTS.items()},
                    TIED: int(np.count_nonzero(tied if mask is None else tied & mask)),
                }
            )
        return counts


def pair_cells(tables: RunTables, pair: tuple[int, int]) -> Any:
    """Return for each question the index in CELLS of its joint outcome."""
    first, second = (tables.cells.verdict[way] for way in pair)
    cell = (first != RIGHT) * 2 + (second != RIGHT)
    return np.where((first < 0) | (second < 0), CELLS.index("apart"), cell)


def sorted_page(keys: Sequence[Any], rows: Ints, start: int, stop: int) -> Ints:
    """Return the rows from ``start`` to ``stop`` in the order of the keys, then of their numbers.

    Only the rows of the page are sorted.

    Args:
        keys: sort keys with a value for each question, the most significant first; NaN sorts last.
        rows: ascending numbers of questions.
    """
    stop = min(stop, len(rows))
    if start >= stop:
        return rows[:0]
    if not keys:
        return rows[start:stop]
    values = keys[0][rows].astype(np.float64)
    values[np.isnan(values)] = np.inf
    low, high = np.partition(values, [start, stop - 1])[[start, stop - 1]]
    start, stop = (bound - int(np.count_nonzero(values < low)) for bound in (start, stop))
    in_range = (values >= low) & (values <= high)
    values, rows = values[in_range], rows[in_range]
    parts = []
    while start < stop:
        minimum = values.min()
        equal = values == minimum
        group = rows[equal]
        parts.append(sorted_page(keys[1:], group, start, min(stop, len(group))))
        values, rows = values[~equal], rows[~equal]
        start, stop = max(0, start - len(group)), stop - len(group)
    return np.concatenate(parts)
