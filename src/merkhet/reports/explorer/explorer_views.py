"""Views of the explorer as JSON content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merkhet.core import SLOT
from merkhet.core.text import finite_or_none
from merkhet.questions.sense_text import bracketed_words, fill_word
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG
from merkhet.reports._question_samples import sample_note
from merkhet.reports.explorer._answer_cells import UNASKED, judge_answer
from merkhet.reports.explorer._fact_proofs import build_proofs
from merkhet.reports.explorer._filters import (
    CELLS,
    Filters,
    Params,
    RequestError,
    Selection,
    last_value,
    pair_cells,
    read_filters,
    sorted_page,
)
from merkhet.reports.explorer.run_tables import FACETS, RunTables

SORTS = ("run", "hardest", "easiest", "rank", "text", "difference")
_VERDICT_NAMES = {RIGHT: "right", WRONG: "wrong", UNUSABLE: "unusable", UNASKED: None}
_MAX_VALUES, _MAX_CANDIDATES, _MAX_QSET, _MAX_GOLDS = 80, 2000, 200, 8
_MAX_PAGE_SIZE = 100
_MAX_REPLIES = 8
_ANSWER_COLUMNS = (
    *("model", "probe", "method", "repeat", "prediction", "ranked", "golds", "gold_ranks", "gold_ties", "among"),
    *("unusable", "outcome", "replies"),
)
_QUESTION_COLUMNS = (
    *("question_id", "suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set", "facts"),
    *("qset", "domain", "rule", "template", "split", "words"),
)


class Views:
    """Serve the views of one run; each maps the parameters of a request to JSON content."""

    def __init__(self, tables: RunTables, folder: Path, title: str, record: Mapping[str, Any]) -> None:
        self.tables, self.folder, self.title, self.record = tables, folder, title, record

    def run(self) -> dict[str, Any]:
        """Describe the run: its name and size, the ways of asking, and notes."""
        notes = [f"These questions are a sample: {note}"] if (note := sample_note(self.record)) else []
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
        """Return a page of the questions that pass the filters, and their number."""
        filters = read_filters(params, self.tables)
        size = _integer(params, "size", 25, 1, _MAX_PAGE_SIZE)
        page = _integer(params, "page", 1, 1, 10**9)
        numbers = Selection(self.tables, filters).numbers()
        start = (page - 1) * size
        listed = sorted_page(
            self._sort_keys(last_value(params, "sort") or "run", filters), numbers, start, start + size
        )
        return {"total": len(numbers), "page": page, "size": size, "questions": self._list_rows(listed.tolist())}

    def facets(self, params: Params) -> dict[str, Any]:
        """Count questions by facet value, by result, and by result for each way."""
        filters = read_filters(params, self.tables)
        selection = Selection(self.tables, filters)
        facets = {}
        for name, counts in selection.facet_counts().items():
            chosen = set(filters.facets.get(name, ()))
            order = sorted(counts, key=lambda pair: (pair[0] not in chosen, -pair[1], pair[0]))
            nonempty = [pair for pair in order if pair[1] or pair[0] in chosen]
            values = [{"value": value, "count": count} for value, count in nonempty[:_MAX_VALUES]]
            facets[name] = {"values": values, "more": max(0, len(nonempty) - _MAX_VALUES), "of": len(counts)}
        return {"facets": facets, "results": selection.result_counts(), "ways": selection.way_counts()}

    def compare(self, params: Params) -> dict[str, Any]:
        """Compare two ways: how many questions both, one or neither got right, and how their ranks differ."""
        filters = read_filters({**params, "cell": []}, self.tables)
        if filters.pair is None:
            raise RequestError("Name two models to compare.")
        numbers = Selection(self.tables, filters).numbers()
        counts = np.bincount(pair_cells(self.tables, filters.pair)[numbers], minlength=len(CELLS))
        first, second = (self.tables.cells.rank[way][numbers] for way in filters.pair)
        ranked = ~(np.isnan(first) | np.isnan(second))
        differences = first[ranked] - second[ranked]
        return {
            "counts": dict(zip(CELLS, counts.tolist(), strict=True)),
            "ranked": len(differences),
            "first_ahead": int(np.count_nonzero(differences < 0)),
            "second_ahead": int(np.count_nonzero(differences > 0)),
            "level": int(np.count_nonzero(differences == 0)),
            "mean_ranks": [
                finite_or_none(float(np.mean(ranks[ranked]))) if ranked.any() else None for ranks in (first, second)
            ],
        }

    def question(self, params: Params) -> dict[str, Any]:
        """Return one question with its answers, candidates, facts and Q-set."""
        question_id = last_value(params, "id")
        matches = self.tables.query("select number from texts where question_id = $1 limit 1", [question_id])
        if not matches:
            raise RequestError("There is no such question in this run.")
        number = matches[0][0]
        (row,) = self.tables.questions.rows([number], *_QUESTION_COLUMNS)
        senses = _senses(row)
        before, _, after = row["prompt"].partition(SLOT)
        candidates = self._candidates(row)
        return {
            **{name: row[name] for name in _QUESTION_COLUMNS if name not in ("choices", "facts", "words")},
            "relation": self._facet_value("relation", number),
            "number": number,
            "before": before,
            "slot": senses.get(row["prompt"]),
            "after": after,
            "compares": bool(row["words"]),
            "golds": [fill_word(text, senses) for text in row["answers"] or ()],
            "candidates": [fill_word(text, senses) for text in candidates[:_MAX_CANDIDATES]],
            "candidate_count": len(candidates),
            "model_answers": self._model_answers(number, row["answers"] or (), senses),
            "facts": build_proofs(self.tables, row["facts"] or ()),
            "qset_questions": self._same_set(row["qset"], number),
        }

    def _model_answers(self, number: int, golds: Sequence[str], senses: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return every answer to a question with its ranked candidates, in the order of ways and repeats."""
        rows = self.tables.answers.rows(self.tables.cells.answer_rows(number), *_ANSWER_COLUMNS)
        way_numbers = {(way.model, way.probe, way.method): number for number, way in enumerate(self.tables.cells.ways)}
        answers = []
        for row in rows:
            right_answers = {*golds, *(row["golds"] or ())}
            ranked = [item for item in row["ranked"] or () if item is not None]
            answers.append(
                {
                    "way": way_numbers[row["model"], row["probe"], row["method"]],
                    "repeat": row["repeat"],
                    "verdict": _VERDICT_NAMES[judge_answer(row, golds)],
                    "prediction": _readable(row["prediction"], senses),
                    "ranked": [
                        {
                            "text": _readable(item["candidate"], senses),
                            "score": finite_or_none(item["score"]),
                            "gold": item["candidate"] in right_answers,
                        }
                        for item in ranked
                    ],
                    "golds": [
                        {"text": _readable(text, senses), "rank": finite_or_none(rank), "ties": ties}
                        for text, rank, ties in _align_golds(row["golds"], row["gold_ranks"], row["gold_ties"])
                    ],
                    "among": row["among"],
                    "unusable": row["unusable"],
                    "outcome": row["outcome"],
                    "replies": [text for text in row["replies"] or () if text is not None][:_MAX_REPLIES],
                }
            )
        return sorted(answers, key=lambda answer: (answer["way"], answer["repeat"] or 0))

    def _same_set(self, qset: str | None, number: int) -> list[dict[str, Any]]:
        if not qset:
            return []
        rows = self.tables.query(
            f"select number from texts where qset = $1 and number <> $2 order by number limit {_MAX_QSET}",
            [qset, number],
        )
        return self._list_rows([row[0] for row in rows])

    def _candidates(self, row: Mapping[str, Any]) -> Sequence[str]:
        if row["choices"] is not None or self.tables.candidates is None:
            return row["choices"] or ()
        set_row = self.tables.candidate_sets.get(row["candidate_set"] or "")
        if set_row is None:
            return ()
        return self.tables.candidates.rows([set_row], "candidates")[0]["candidates"] or ()

    def _list_rows(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return questions as a list shows them, in the order of the numbers."""
        return [self._list_row(number) for number in numbers]

    def _list_row(self, number: int) -> dict[str, Any]:
        row = self.tables.line(number)
        before, _, after = row["prompt"].partition(SLOT)
        cells, golds = self.tables.cells, row["answers"] or []
        return {
            "id": row["question_id"],
            "before": before,
            "slot": row["word"],
            "after": after,
            "golds": golds[:_MAX_GOLDS],
            "more_golds": max(0, len(golds) - _MAX_GOLDS),
            **{name: self._facet_value(name, number) for name in FACETS},
            "verdicts": [_VERDICT_NAMES[int(code)] for code in cells.verdict[:, number]],
            "ranks": [finite_or_none(float(rank)) for rank in cells.rank[:, number]],
            "tied": [bool(tied) for tied in cells.tied[:, number]],
        }

    def _facet_value(self, name: str, number: int) -> str:
        facet = self.tables.facets[name]
        return facet.values[int(facet.codes[number])]

    def _sort_keys(self, sort: str, filters: Filters) -> list[Any]:
        """Return the sort keys of a page; hardness and rank are those of the chosen ways."""
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
            return [-_reduce_ranks(cells.rank, ways, np.fmax)]
        usable = sum((cells.verdict[way] >= 0).astype(np.int32) for way in ways)
        right = sum((cells.verdict[way] == RIGHT).astype(np.int32) for way in ways)
        with np.errstate(invalid="ignore"):
            share = right / np.where(usable > 0, usable, np.nan)
        mean = _mean_rank(cells.rank, ways)
        return [share, -mean] if sort == "hardest" else [-share, mean]


def _reduce_ranks(ranks: Any, ways: Sequence[int], combine: Any) -> Any:
    reduced = ranks[ways[0]]
    for way in ways[1:]:
        reduced = combine(reduced, ranks[way])
    return reduced


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
    except ValueError:  # The words fit no sentence; the question is shown unchanged.
        return {}


def _readable(text: str | None, senses: Mapping[str, str]) -> str | None:
    return None if text is None else fill_word(text, senses)


def _align_golds(golds: Any, ranks: Any, ties: Any) -> list[tuple[str, Any, Any]]:
    """Zip right answers with their ranks and ties; missing texts and ties are None."""
    texts, gold_ranks, tie_sizes = (list(values or ()) for values in (golds, ranks, ties))
    tie_sizes += [None] * (len(gold_ranks) - len(tie_sizes))
    texts += [None] * (len(gold_ranks) - len(texts))
    return list(zip(texts, gold_ranks, tie_sizes, strict=False))


def _integer(params: Params, name: str, default: int, minimum: int, maximum: int) -> int:
    text = last_value(params, name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise RequestError(f"{name} must be an integer from {minimum:,} to {maximum:,}.")
    return min(maximum, max(minimum, int(text)))
