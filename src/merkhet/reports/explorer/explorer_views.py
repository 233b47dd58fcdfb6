"""What each view of the explorer shows, as content for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merkhet.core import SLOT
from merkhet.questions.sense_text import bracketed_words, fill_word
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG
from merkhet.reports._report_sections import sample_note
from merkhet.reports.explorer._answer_cells import UNASKED, verdict_of
from merkhet.reports.explorer._fact_proofs import proofs
from merkhet.reports.explorer._filters import (
    CELLS,
    Filters,
    Params,
    RequestError,
    Selection,
    cell_of,
    one,
    page_of,
    read_filters,
)
from merkhet.reports.explorer.run_tables import FACETS, RunTables
from merkhet.reports.formatting import finite_or_none

SORTS = ("run", "hardest", "easiest", "rank", "text", "difference")
_NAMES = {RIGHT: "right", WRONG: "wrong", UNUSABLE: "unusable", UNASKED: None}
_SHOWN_VALUES, _SHOWN_CANDIDATES, _SHOWN_SET, _SHOWN_ANSWERS = 80, 2000, 200, 8
_LARGEST_PAGE = 100
_SHOWN_REPLIES = 8
_ANSWER_COLUMNS = (
    *("model", "probe", "method", "repeat", "prediction", "ranked", "golds", "gold_ranks", "gold_ties", "among"),
    *("unusable", "outcome", "replies"),
)
_QUESTION_COLUMNS = (
    *("question_id", "suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set", "facts"),
    *("qset", "domain", "rule", "template", "split", "words"),
)


class Views:
    """The views of one run; each takes the parameters of a request and gives content for JSON."""

    def __init__(self, tables: RunTables, folder: Path, title: str, record: Mapping[str, Any]) -> None:
        self.tables, self.folder, self.title, self.record = tables, folder, title, record

    def run(self) -> dict[str, Any]:
        """What the run is: its name, how much there is, the ways of asking, and what a reader should know."""
        notes = [f"These questions are a sample: {told}"] if (told := sample_note(self.record)) else []
        if not len(self.tables.answers):
            notes.append("This run has no answers.")
        kinds = {str(model.get("name")): model.get("kind") for model in self.record.get("models") or ()}
        return {
            "title": self.title,
            "name": self.folder.resolve().name,
            "suite": self.record.get("suite"),
            "date": self.record.get("date"),
            "command": self.record.get("command"),
            "questions": len(self.tables),
            "answers": len(self.tables.answers),
            "ways": [{**vars(way), "kind": kinds.get(way.model)} for way in self.tables.cells.ways],
            "facets": {name: len(self.tables.facets[name].values) for name in FACETS},
            "has_facts": self.tables.has_facts,
            "notes": [*notes, *self.tables.notes],
        }

    def questions(self, params: Params) -> dict[str, Any]:
        """A page of the questions that pass the filters, and how many do."""
        filters = read_filters(params, self.tables)
        size = _whole(params, "size", 25, 1, _LARGEST_PAGE)
        page = _whole(params, "page", 1, 1, 10**9)
        numbers = Selection(self.tables, filters).numbers()
        start = (page - 1) * size
        chosen = page_of(self._keys(one(params, "sort") or "run", filters), numbers, start, start + size)
        return {"total": len(numbers), "page": page, "size": size, "questions": self._listed(chosen.tolist())}

    def facets(self, params: Params) -> dict[str, Any]:
        """Counts beside the filters: of each value, of each result, and what each way made of the questions."""
        filters = read_filters(params, self.tables)
        selection = Selection(self.tables, filters)
        facets = {}
        for name, counts in selection.facet_counts().items():
            wanted = set(filters.facets.get(name, ()))
            order = sorted(counts, key=lambda pair: (pair[0] not in wanted, -pair[1], pair[0]))
            shown = [pair for pair in order if pair[1] or pair[0] in wanted]
            values = [{"value": value, "count": count} for value, count in shown[:_SHOWN_VALUES]]
            facets[name] = {"values": values, "more": max(0, len(shown) - _SHOWN_VALUES), "of": len(counts)}
        return {"facets": facets, "results": selection.result_counts(), "ways": selection.way_counts()}

    def compare(self, params: Params) -> dict[str, Any]:
        """Two ways side by side: how many questions both, one or neither got right, and how their ranks differ."""
        filters = read_filters({**params, "cell": []}, self.tables)
        if filters.pair is None:
            raise RequestError("Name two models to compare.")
        numbers = Selection(self.tables, filters).numbers()
        counts = np.bincount(cell_of(self.tables, filters.pair)[numbers], minlength=len(CELLS))
        first, second = (self.tables.cells.rank[way][numbers] for way in filters.pair)
        ranked = ~(np.isnan(first) | np.isnan(second))
        apart = first[ranked] - second[ranked]
        return {
            "counts": dict(zip(CELLS, counts.tolist(), strict=True)),
            "ranked": len(apart),
            "first_ahead": int(np.count_nonzero(apart < 0)),
            "second_ahead": int(np.count_nonzero(apart > 0)),
            "level": int(np.count_nonzero(apart == 0)),
            "mean_ranks": [
                finite_or_none(float(np.mean(ranks[ranked]))) if ranked.any() else None for ranks in (first, second)
            ],
        }

    def question(self, params: Params) -> dict[str, Any]:
        """One question with all that is known of it."""
        identity = one(params, "id")
        found = self.tables.query("select number from texts where question_id = $1 limit 1", [identity])
        if not found:
            raise RequestError("There is no such question in this run.")
        number = found[0][0]
        (row,) = self.tables.questions.rows([number], *_QUESTION_COLUMNS)
        senses = _senses(row)
        before, _, after = row["prompt"].partition(SLOT)
        candidates = self._candidates(row)
        return {
            **{name: row[name] for name in _QUESTION_COLUMNS if name not in ("choices", "facts", "words")},
            "relation": self._value("relation", number),
            "number": number,
            "before": before,
            "slot": senses.get(row["prompt"]),
            "after": after,
            "compares": bool(row["words"]),
            "golds": [fill_word(text, senses) for text in row["answers"] or ()],
            "candidates": [fill_word(text, senses) for text in candidates[:_SHOWN_CANDIDATES]],
            "candidate_count": len(candidates),
            "said": self._said(number, row["answers"] or (), senses),
            "facts": proofs(self.tables, row["facts"] or ()),
            "qset_questions": self._same_set(row["qset"], number),
        }

    def _said(self, number: int, golds: Sequence[str], senses: Mapping[str, str]) -> list[dict[str, Any]]:
        """Every answer to a question, in the order of ways and repeats, with its ranked candidates."""
        rows = self.tables.answers.rows(self.tables.cells.answer_rows(number), *_ANSWER_COLUMNS)
        ways = {(way.model, way.probe, way.method): place for place, way in enumerate(self.tables.cells.ways)}
        said = []
        for row in rows:
            place = ways[row["model"], row["probe"], row["method"]]
            right = {*golds, *(row["golds"] or ())}
            ranked = [item for item in row["ranked"] or () if item is not None]
            said.append(
                {
                    "way": place,
                    "repeat": row["repeat"],
                    "verdict": _NAMES[verdict_of(row, golds)],
                    "prediction": _shown(row["prediction"], senses),
                    "ranked": [
                        {
                            "text": _shown(item["candidate"], senses),
                            "score": finite_or_none(item["score"]),
                            "gold": item["candidate"] in right,
                        }
                        for item in ranked
                    ],
                    "golds": [
                        {"text": _shown(text, senses), "rank": finite_or_none(rank), "ties": ties}
                        for text, rank, ties in _aligned(row["golds"], row["gold_ranks"], row["gold_ties"])
                    ],
                    "among": row["among"],
                    "unusable": row["unusable"],
                    "outcome": row["outcome"],
                    "replies": [text for text in row["replies"] or () if text is not None][:_SHOWN_REPLIES],
                }
            )
        return sorted(said, key=lambda one: (one["way"], one["repeat"] or 0))

    def _same_set(self, qset: str | None, number: int) -> list[dict[str, Any]]:
        if not qset:
            return []
        found = self.tables.query(
            f"select number from texts where qset = $1 and number <> $2 order by number limit {_SHOWN_SET}",
            [qset, number],
        )
        return self._listed([row[0] for row in found])

    def _candidates(self, row: Mapping[str, Any]) -> Sequence[str]:
        if row["choices"] is not None or self.tables.candidates is None:
            return row["choices"] or ()
        place = self.tables.candidate_sets.get(row["candidate_set"] or "")
        if place is None:
            return ()
        return self.tables.candidates.rows([place], "candidates")[0]["candidates"] or ()

    def _listed(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Questions as a list shows them, in the order of the numbers."""
        return [self._line(number) for number in numbers]

    def _line(self, number: int) -> dict[str, Any]:
        row = self.tables.line(number)
        before, _, after = row["prompt"].partition(SLOT)
        cells, golds = self.tables.cells, row["answers"] or []
        return {
            "id": row["question_id"],
            "before": before,
            "slot": row["word"],
            "after": after,
            "golds": golds[:_SHOWN_ANSWERS],
            "more_golds": max(0, len(golds) - _SHOWN_ANSWERS),
            **{name: self._value(name, number) for name in FACETS},
            "verdicts": [_NAMES[int(code)] for code in cells.verdict[:, number]],
            "ranks": [finite_or_none(float(rank)) for rank in cells.rank[:, number]],
            "tied": [bool(tied) for tied in cells.tied[:, number]],
        }

    def _value(self, name: str, number: int) -> str:
        facet = self.tables.facets[name]
        return facet.values[int(facet.codes[number])]

    def _keys(self, sort: str, filters: Filters) -> list[Any]:
        """What a page is ordered by; hardness and rank are those of the chosen ways."""
        if sort not in SORTS:
            raise RequestError(f"Sort by one of {', '.join(SORTS)}.")
        cells, ways = self.tables.cells, list(filters.ways)
        if sort == "text":
            return [self.tables.text_order]
        if sort == "difference":
            if filters.pair is None:
                raise RequestError("Name two models to sort by their difference.")
            first, second = (cells.rank[way] for way in filters.pair)
            return [-np.abs(first - second)]
        if sort == "run" or not ways:
            return []
        if sort == "rank":
            return [-_over(cells.rank, ways, np.fmax)]
        usable = sum((cells.verdict[way] >= 0).astype(np.int32) for way in ways)
        right = sum((cells.verdict[way] == RIGHT).astype(np.int32) for way in ways)
        with np.errstate(invalid="ignore"):
            share = right / np.where(usable > 0, usable, np.nan)
        mean = _mean_rank(cells.rank, ways)
        return [share, -mean] if sort == "hardest" else [-share, mean]


def _over(ranks: Any, ways: Sequence[int], join: Any) -> Any:
    found = ranks[ways[0]]
    for way in ways[1:]:
        found = join(found, ranks[way])
    return found


def _mean_rank(ranks: Any, ways: Sequence[int]) -> Any:
    total, known = np.zeros(ranks.shape[1]), np.zeros(ranks.shape[1])
    for way in ways:
        ranked = ~np.isnan(ranks[way])
        total += np.where(ranked, ranks[way], 0.0)
        known += ranked
    with np.errstate(invalid="ignore"):
        return total / np.where(known > 0, known, np.nan)


def _senses(row: Mapping[str, Any]) -> dict[str, str]:
    try:
        return bracketed_words(row)
    except ValueError:  # Words that fit no sentence: such a question is shown as it stands.
        return {}


def _shown(text: str | None, senses: Mapping[str, str]) -> str | None:
    return None if text is None else fill_word(text, senses)


def _aligned(golds: Any, ranks: Any, ties: Any) -> list[tuple[str, Any, Any]]:
    """Right answers with their ranks and ties, as far as an answer has them."""
    texts, places, sizes = (list(values or ()) for values in (golds, ranks, ties))
    sizes += [None] * (len(places) - len(sizes))
    texts += [None] * (len(places) - len(texts))
    return list(zip(texts, places, sizes, strict=False))


def _whole(params: Params, name: str, usual: int, least: int, most: int) -> int:
    text = one(params, name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise RequestError(f"{name} is a whole number from {least:,} to {most:,}.")
    return min(most, max(least, int(text)))
