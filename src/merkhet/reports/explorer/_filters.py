"""Which questions are wanted: filters as a request gives them, masks over arrays, counts beside the filters."""

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
"""What two ways made of a question; ``apart`` is a question that one of them did not, or could not, answer."""
_LONGEST_SEARCH, _MOST_WORDS = 400, 12
_PART = re.compile(r'"([^"]+)"|(\S+)')

Params = Mapping[str, Sequence[str]]


class RequestError(Exception):
    """A request that cannot be answered as it is; what it says is shown to the reader."""


@dataclass(frozen=True)
class Filters:
    """What a reader asked for. ``ways`` are those of the chosen models, probes and methods; all if none is chosen."""

    words: tuple[str, ...] = ()
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ways: tuple[int, ...] = ()
    narrowed: bool = False
    """Whether ways were chosen: a question then needs an answer by one of them."""
    results: frozenset[str] = frozenset()
    low: float | None = None
    high: float | None = None
    pair: tuple[int, int] | None = None
    cell: str | None = None


def read_filters(params: Params, tables: RunTables) -> Filters:
    """The filters of a request; refuses values that mean nothing."""
    ways = tables.cells.ways
    chosen = {name: set(params.get(name) or ()) for name in ("model", "probe", "method")}
    fitting = tuple(
        number
        for number, way in enumerate(ways)
        if all(not wanted or getattr(way, name) in wanted for name, wanted in chosen.items())
    )
    results = frozenset(params.get("result") or ())
    if results - {*RESULTS, TIED}:
        raise RequestError(f"A result is one of {', '.join([*RESULTS, TIED])}.")
    pair = read_pair(params, tables)
    cell = one(params, "cell")
    if cell is not None and cell not in CELLS:
        raise RequestError(f"A cell is one of {', '.join(CELLS)}.")
    return Filters(
        search_words(one(params, "search") or ""),
        {name: tuple(params[name]) for name in FACETS if params.get(name)},
        fitting,
        any(chosen.values()),
        results,
        _number(params, "low"),
        _number(params, "high"),
        pair,
        cell if pair else None,
    )


def read_pair(params: Params, tables: RunTables) -> tuple[int, int] | None:
    """The two ways that are compared, by their labels; None if none is named."""
    named = [one(params, name) for name in ("first", "second")]
    if named == [None, None]:
        return None
    numbers = {way.label: number for number, way in enumerate(tables.cells.ways)}
    for label in named:
        if label not in numbers:
            raise RequestError("There is no such model in this run." if label else "Name two models to compare.")
    return numbers[str(named[0])], numbers[str(named[1])]


def search_words(text: str) -> tuple[str, ...]:
    """The words that are all needed; what stands between double quotes is one."""
    if len(text) > _LONGEST_SEARCH:
        raise RequestError(f"Search for at most {_LONGEST_SEARCH} characters.")
    found = [" ".join((phrase or word).split()) for phrase, word in _PART.findall(text)]
    words = tuple(dict.fromkeys(word for word in found if word))
    if len(words) > _MOST_WORDS:
        raise RequestError(f"Search for at most {_MOST_WORDS} words.")
    return words


def one(params: Params, name: str) -> str | None:
    """The last value of a parameter; None where it is absent or empty."""
    given = params.get(name)
    return (given[-1] or None) if given else None


def _number(params: Params, name: str) -> float | None:
    text = one(params, name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RequestError(f"A rank is a number, and {text[:40]!r} is none.")
    return value


class Selection:
    """The questions that pass some filters, each kind of filter kept apart so that it can be left out."""

    def __init__(self, tables: RunTables, filters: Filters) -> None:
        self.tables, self.filters = tables, filters
        self._masks: dict[str, Bools] = {}
        for name, wanted in filters.facets.items():
            facet = tables.facets[name]
            chosen = np.zeros(len(facet.values) + 1, dtype=bool)
            chosen[facet.numbers(wanted)] = True
            self._masks[name] = chosen[facet.codes]
        if filters.words:
            self._masks["search"] = tables.search(filters.words)
        if filters.narrowed or filters.results or filters.low is not None or filters.high is not None:
            self._masks["answers"] = self._answered(filters.results)
        if filters.pair and filters.cell:
            self._masks["cell"] = cell_of(tables, filters.pair) == CELLS.index(filters.cell)

    def mask(self, without: Sequence[str] = ()) -> Bools | None:
        """Which questions pass all filters, but for those left out; None if there is no filter, so all do."""
        wanted = [mask for name, mask in self._masks.items() if name not in without]
        if not wanted:
            return None
        found = wanted[0]
        for mask in wanted[1:]:
            found = found & mask
        return found

    def numbers(self) -> Ints:
        """The numbers of the questions that pass."""
        mask = self.mask()
        return np.arange(len(self.tables)) if mask is None else np.flatnonzero(mask)

    def _answered(self, results: frozenset[str]) -> Bools:
        """Which questions have, by one of the ways, an answer with one of the results and a rank within the range."""
        found = np.zeros(len(self.tables), dtype=bool)
        for way in self.filters.ways:
            found |= self._fits(way, results)
        return found

    def _fits(self, way: int, results: frozenset[str]) -> Bools:
        cells, filters = self.tables.cells, self.filters
        verdict, rank = cells.verdict[way], cells.rank[way]
        if results:
            fits = np.zeros(len(verdict), dtype=bool)
            for name in results:
                fits |= cells.tied[way] if name == TIED else verdict == RESULTS[name]
        else:
            fits = verdict != UNASKED
        if filters.low is not None:
            fits &= rank >= filters.low
        if filters.high is not None:
            fits &= rank <= filters.high
        return fits

    def facet_counts(self) -> dict[str, list[tuple[str, int]]]:
        """For each facet the values with the number of questions that each would give, the others' filters kept."""
        full = self.mask()
        counts = {}
        for name, facet in self.tables.facets.items():
            mask = self.mask([name]) if name in self._masks else full
            codes = facet.codes if mask is None else facet.codes[mask]
            found = np.bincount(codes, minlength=len(facet.values)).tolist()
            counts[name] = list(zip(facet.values, found, strict=True))
        return counts

    def result_counts(self) -> dict[str, int]:
        """How many questions each result would give, the other filters kept."""
        others = self.mask(["answers"])
        counts = {}
        for name in (*RESULTS, TIED):
            fits = self._answered(frozenset({name}))
            counts[name] = int(np.count_nonzero(fits if others is None else fits & others))
        return counts

    def way_counts(self) -> list[dict[str, int]]:
        """For each way, what became of the questions that pass all filters but those on answers."""
        mask = self.mask(["answers"])
        cells = self.tables.cells
        counts = []
        for verdict, tied in zip(cells.verdict, cells.tied, strict=True):
            own = verdict if mask is None else verdict[mask]
            found = np.bincount(own - UNASKED, minlength=4)
            counts.append(
                {
                    **{name: int(found[code - UNASKED]) for name, code in RESULTS.items()},
                    TIED: int(np.count_nonzero(tied if mask is None else tied & mask)),
                }
            )
        return counts


def cell_of(tables: RunTables, pair: tuple[int, int]) -> Any:
    """For each question the place in CELLS of what two ways made of it."""
    first, second = (tables.cells.verdict[way] for way in pair)
    place = (first != RIGHT) * 2 + (second != RIGHT)
    return np.where((first < 0) | (second < 0), CELLS.index("apart"), place)


def page_of(keys: Sequence[Any], rows: Ints, start: int, stop: int) -> Ints:
    """The rows from ``start`` to ``stop`` in the order of the keys (the first counts most), then of their numbers.

    Only as much is put in order as a page needs; ``rows`` are ascending. A key has a value for each question; NaN
    comes last.
    """
    stop = min(stop, len(rows))
    if start >= stop:
        return rows[:0]
    if not keys:
        return rows[start:stop]
    values = keys[0][rows].astype(np.float64)
    values[np.isnan(values)] = np.inf
    low, high = np.partition(values, [start, stop - 1])[[start, stop - 1]]
    start, stop = (place - int(np.count_nonzero(values < low)) for place in (start, stop))
    near = (values >= low) & (values <= high)
    values, rows = values[near], rows[near]
    found = []
    while start < stop:
        least = values.min()
        equal = values == least
        group = rows[equal]
        found.append(page_of(keys[1:], group, start, min(stop, len(group))))
        values, rows = values[~equal], rows[~equal]
        start, stop = max(0, start - len(group)), stop - len(group)
    return np.concatenate(found)
