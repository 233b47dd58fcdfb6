"""JSON views of a run for the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.core import SLOT
from merkhet.core.records import right_candidates
from merkhet.core.schemas import ANSWERS, CANDIDATES, PREMISES, QUESTIONS
from merkhet.core.text import finite_or_none
from merkhet.questions.sense_text import fill_word
from merkhet.reports._labels import shorten_labels
from merkhet.reports._question_samples import sample_note
from merkhet.reports.explorer._fact_proofs import build_proofs
from merkhet.reports.explorer._filters import (
    CELLS,
    RESULTS,
    TIED,
    Filters,
    Params,
    RequestError,
    Selection,
    has_result,
    last_value,
    pair_cell,
    read_filters,
)
from merkhet.reports.explorer.run_tables import FACETS, RunTables, read_senses, way_columns

SORTS = ("run", "hardest", "easiest", "rank", "text", "difference")
_RESULT_NAMES = (*RESULTS, TIED)
_VERDICT_NAMES: dict[int | None, str | None] = {None: None, **{code: name for name, code in RESULTS.items()}}
_MAX_VALUES, _MAX_CANDIDATES, _MAX_QSET, _MAX_GOLDS = 80, 2000, 200, 8
_MAX_LABEL = 40
"""Maximum characters of a label in a column head."""
_MAX_PAGE_SIZE = 100
_MAX_REPLIES = 8
_ANSWER_COLUMNS = (
    *("number", "repeat", "prediction", "ranked", "golds", "gold_ranks", "gold_ties", "among", "unusable", "outcome"),
    "replies",
)
_QUESTION_COLUMNS = (
    *("question_id", "suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set", "facts"),
    *("qset", "domain", "rule", "template", "split", "words"),
)


class Views:
    """JSON views of one run; each view is a method from request parameters to JSON content."""

    def __init__(self, tables: RunTables, folder: Path, title: str, record: Mapping[str, Any]) -> None:
        self.tables, self.folder, self.title, self.record = tables, folder, title, record

    def run(self) -> dict[str, Any]:
        """Return the run's name, size and notes, and its combinations of model, probe and method (``ways``)."""
        notes = [f"These questions are a sample: {note}"] if (note := sample_note(self.record)) else []
        if not self.tables.answer_count:
            notes.append("This run has no answers.")
        kinds = {str(model.get("name")): model.get("kind") for model in self.record.get("models") or ()}
        short = shorten_labels((way.label for way in self.tables.ways), _MAX_LABEL)
        return {
            "title": self.title,
            "name": self.folder.resolve().name,
            **{name: self.record.get(name) for name in ("suite", "date", "command")},
            "questions": self.tables.question_count,
            "answers": self.tables.answer_count,
            "ways": [
                {**vars(way), "kind": kinds.get(way.model), "short": short[way.label]} for way in self.tables.ways
            ],
            "few": FEW_QUESTIONS,
            "facets": {name: len(self.tables.facets[name]) for name in FACETS},
            "has_facts": self.tables.has_facts,
            "notes": [*notes, *self.tables.notes],
        }

    def questions(self, params: Params) -> dict[str, Any]:
        """Return one page of the questions that pass the filters, and the total number of these questions."""
        filters = read_filters(params, self.tables)
        size = _integer(params, "size", 25, 1, _MAX_PAGE_SIZE)
        page = _integer(params, "page", 1, 1, 10**9)
        keys = _sort_keys(last_value(params, "sort") or "run", filters)
        columns = ["number", *(f"{key} as key_{index}" for index, key in enumerate(keys))]
        order = ", ".join(f"key_{index}" for index in range(len(keys)))
        selection = Selection(self.tables, filters)
        passing = _subquery("passing", columns, "questions", selection.where(), keep=bool(filters.words))
        (row,) = self.tables.query(
            f"with {passing} select (select count(*) from passing) as total, "
            f"array(select number from passing order by {order} limit $size offset $start) as numbers",
            {**selection.parameters, "size": size, "start": (page - 1) * size},
        )
        return {"total": row["total"], "page": page, "size": size, "questions": self._list_rows(row["numbers"])}

    def facets(self, params: Params) -> dict[str, Any]:
        """Count the questions that pass the filters, by facet value and by result.

        Results are counted in total and for each combination of model, probe and method (``ways``). The counts of a
        facet ignore the filter by that facet. The counts of results ignore the filters by answers.
        """
        filters = read_filters(params, self.tables)
        selection = Selection(self.tables, filters)
        results = [f"({selection.answered([name])})" for name in _RESULT_NAMES]
        results += [has_result(way, name) for way in range(len(self.tables.ways)) for name in _RESULT_NAMES]
        counts = ", ".join(f"count(*) filter (where {condition})" for condition in results)
        columns = [*FACETS, *way_columns(self.tables.ways)]
        others = selection.where("search")
        hits = _subquery("hits", columns, "questions", selection.search or "true", keep=bool(filters.words))
        passing = _subquery("passing", FACETS, "hits", others, keep=others != "true")
        parts = [
            f"select 'result' as facet, '' as value, [{counts}] as counts from hits "
            f"where {selection.where('search', 'answers')}"
        ]
        for name in FACETS:
            source = f"hits where {selection.where('search', name)}" if name in filters.facets else "passing"
            parts.append(f"select '{name}', {name}::varchar, [count(*)] from {source} group by {name}")
        rows = self.tables.query(f"with {hits}, {passing} {' union all '.join(parts)}", selection.parameters)
        (result_counts,) = (row["counts"] for row in rows if row["facet"] == "result")
        by_result, *by_way = (
            dict(zip(_RESULT_NAMES, result_counts[start : start + len(_RESULT_NAMES)], strict=True))
            for start in range(0, len(result_counts), len(_RESULT_NAMES))
        )
        return {
            "facets": {name: self._facet(name, filters.facets.get(name, ()), rows) for name in FACETS},
            "results": by_result,
            "ways": by_way,
        }

    def _facet(self, name: str, accepted: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the values of a facet with their counts, sorted by count.

        Values that the filters accept come first, even with a count of 0.
        """
        chosen = self.tables.facets[name].intersection(accepted)
        counts = dict.fromkeys(chosen, 0) | {row["value"]: row["counts"][0] for row in rows if row["facet"] == name}
        order = sorted(counts.items(), key=lambda pair: (pair[0] not in chosen, -pair[1], pair[0]))
        values = [{"value": value, "count": count} for value, count in order[:_MAX_VALUES]]
        return {"values": values, "more": len(order) - len(values), "of": len(self.tables.facets[name])}

    def compare(self, params: Params) -> dict[str, Any]:
        """Compare two combinations of model, probe and method: counts of joint outcomes, and rank differences."""
        filters = read_filters({**params, "cell": []}, self.tables)
        if filters.pair is None:
            raise RequestError("Name two models to compare.")
        selection = Selection(self.tables, filters)
        first, second = (f"rank_{way}" for way in filters.pair)
        counted = {
            **{cell: f"cell = '{cell}'" for cell in CELLS},
            "ranked": "difference is not null",
            "first_ahead": "difference < 0",
            "second_ahead": "difference > 0",
            "level": "difference = 0",
        }
        counts = ", ".join(f'count(*) filter (where {condition}) as "{name}"' for name, condition in counted.items())
        means = ", ".join(f"avg({rank}) filter (where difference is not null)" for rank in (first, second))
        (row,) = self.tables.query(
            f"select {counts}, [{means}] as mean_ranks from (select {first}, {second}, {first} - {second} as "
            f"difference, {pair_cell(*filters.pair)} as cell from questions where {selection.where()})",
            selection.parameters,
        )
        return {"counts": {cell: row.pop(cell) for cell in CELLS}, **row}

    def question(self, params: Params) -> dict[str, Any]:
        """Return one question with its answers, candidates, proofs and the other questions of its Q-set."""
        matches = self.tables.query(
            "select number, relation from questions where question_id = $id limit 1", {"id": last_value(params, "id")}
        )
        if not matches:
            raise RequestError("There is no such question in this run.")
        number = matches[0]["number"]
        (row,) = self.tables.read_file(QUESTIONS, _QUESTION_COLUMNS, "number = $number", {"number": number})
        senses = read_senses(row)
        before, _, after = row["prompt"].partition(SLOT)
        candidates = self._candidates(row)
        ranked_golds = right_candidates(row["answers"] or (), candidates)
        return {
            **{name: row[name] for name in _QUESTION_COLUMNS if name not in ("choices", "facts", "words")},
            **matches[0],
            "before": before,
            "slot": senses.get(row["prompt"]),
            "after": after,
            "compares": bool(row["words"]),
            "golds": [fill_word(text, senses) for text in row["answers"] or ()],
            "written_golds": [fill_word(text, senses) for text in row["answers"] or () if text not in ranked_golds],
            "candidates": [fill_word(text, senses) for text in candidates[:_MAX_CANDIDATES]],
            "candidate_count": len(candidates),
            "model_answers": self._model_answers(number, row["answers"] or (), senses),
            "premises": self._premises(row["question_id"]),
            "facts": build_proofs(self.tables, row["facts"] or ()),
            "qset_questions": self._same_set(row["qset"], number),
        }

    def _model_answers(self, number: int, golds: Sequence[str], senses: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return all answers to a question with their ranked candidates.

        Answers are sorted by ``way`` (the number of model, probe and method), then by ``repeat``.
        """
        judged = self.tables.query("select row, way, verdict from answers where question = $number", {"number": number})
        judged_by_row = {row["row"]: row for row in judged}
        if not judged:
            return []
        numbers = ", ".join(str(row) for row in sorted(judged_by_row))
        answers = []
        for row in self.tables.read_file(ANSWERS, _ANSWER_COLUMNS, f"number in ({numbers}) order by number", {}):
            right_answers = {*golds, *(row["golds"] or ())}
            verdict = judged_by_row[row["number"]]
            answers.append(
                {
                    "way": verdict["way"],
                    "repeat": row["repeat"],
                    "verdict": _VERDICT_NAMES[verdict["verdict"]],
                    "prediction": _readable(row["prediction"], senses),
                    "ranked": [
                        {
                            "text": _readable(item["candidate"], senses),
                            "score": finite_or_none(item["score"]),
                            "gold": item["candidate"] in right_answers,
                        }
                        for item in row["ranked"] or ()
                        if item is not None
                    ],
                    "golds": [
                        {"text": _readable(text, senses), "rank": finite_or_none(rank), "ties": ties}
                        for text, rank, ties in _align_golds(row["golds"], row["gold_ranks"], row["gold_ties"])
                    ],
                    **{name: row[name] for name in ("among", "unusable", "outcome")},
                    "replies": [text for text in row["replies"] or () if text is not None][:_MAX_REPLIES],
                }
            )
        return sorted(answers, key=lambda answer: (answer["way"], answer["repeat"] or 0))

    def _premises(self, question_id: str) -> list[dict[str, Any]]:
        """Return the stated facts that a conclusion follows from, as sentences with the axioms applied to them."""
        return self.tables.read_file(
            PREMISES,
            ["fact_id", "step", "axiom", "sentence"],
            "question_id = $id and sentence is not null order by step, number",
            {"id": question_id},
        )

    def _same_set(self, qset: str | None, number: int) -> list[dict[str, Any]]:
        if not qset:
            return []
        rows = self.tables.query(
            f"select number from questions where qset = $qset and number <> $number order by number limit {_MAX_QSET}",
            {"qset": qset, "number": number},
        )
        return self._list_rows([row["number"] for row in rows])

    def _candidates(self, row: Mapping[str, Any]) -> Sequence[str]:
        if row["choices"] is not None or not row["candidate_set"]:
            return row["choices"] or ()
        rows = self.tables.read_file(
            CANDIDATES, ["candidates"], "candidate_set = $name", {"name": row["candidate_set"]}
        )
        return (rows[-1]["candidates"] or ()) if rows else ()

    def _list_rows(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Return the list entries of questions, in the order of the question ``numbers``."""
        if not numbers:
            return []
        columns = ["number", "question_id", "prompt", "word", "answers", *FACETS, *way_columns(self.tables.ways)]
        rows = self.tables.query(
            f"select {', '.join(columns)} from questions where number in (select unnest($numbers))",
            {"numbers": numbers},
        )
        row_of = {row["number"]: row for row in rows}
        return [self._list_row(row_of[number]) for number in numbers]

    def _list_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        before, _, after = row["prompt"].partition(SLOT)
        golds = row["answers"] or []
        ways = range(len(self.tables.ways))
        return {
            "id": row["question_id"],
            "before": before,
            "slot": row["word"],
            "after": after,
            "golds": golds[:_MAX_GOLDS],
            "more_golds": max(0, len(golds) - _MAX_GOLDS),
            **{name: row[name] for name in FACETS},
            "verdicts": [_VERDICT_NAMES[row[f"verdict_{way}"]] for way in ways],
            "ranks": [row[f"rank_{way}"] for way in ways],
            "tied": [row[f"tied_{way}"] for way in ways],
        }


def _subquery(name: str, columns: Sequence[str], source: str, condition: str, *, keep: bool) -> str:
    """Return a named SQL subquery; ``keep`` materializes its rows instead of computing them at each use."""
    hint = "materialized" if keep else "not materialized"
    return f"{name} as {hint} (select {', '.join(columns)} from {source} where {condition})"


def _sort_keys(sort: str, filters: Filters) -> list[str]:
    """Return the SQL sort keys of a question list; null sorts last.

    Hardness and rank are computed from the answers by ``filters.ways``.
    """
    if sort not in SORTS:
        raise RequestError(f"Sort by one of {', '.join(SORTS)}.")
    if sort == "text":
        return ["text_order"]
    if sort == "difference":
        if filters.pair is None:
            raise RequestError("Name two models to sort by their difference.")
        return ["-abs(rank_{} - rank_{})".format(*filters.pair), "number"]
    if sort == "run" or not filters.ways:
        return ["number"]
    if sort == "rank":
        return [f"-greatest({', '.join(f'rank_{way}' for way in filters.ways)})", "number"]
    if len(filters.ways) == 1:  # Same order as the general case below, in half the time.
        (way,) = filters.ways
        share, mean = f"nullif(verdict_{way}, -1)", f"rank_{way}"
    else:
        right, usable, ranked = (
            " + ".join(f"coalesce(({condition.format(way)})::integer, 0)" for way in filters.ways)
            for condition in ("verdict_{} = 1", "verdict_{} >= 0", "rank_{} is not null")
        )
        ranks = " + ".join(f"coalesce(rank_{way}, 0)" for way in filters.ways)
        share, mean = f"(({right}) / nullif({usable}, 0))", f"(({ranks}) / nullif({ranked}, 0))"
    return [share, f"-{mean}", "number"] if sort == "hardest" else [f"-{share}", mean, "number"]


def _readable(text: str | None, senses: Mapping[str, str]) -> str | None:
    return None if text is None else fill_word(text, senses)


def _align_golds(golds: Any, ranks: Any, ties: Any) -> list[tuple[str, Any, Any]]:
    """Return triples of right answer, rank and number of ties; missing texts and ties are None."""
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
