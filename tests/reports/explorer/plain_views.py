"""The views of the explorer once more, slowly and plainly, over lists of rows read from the Parquet files."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

FACETS = ("task", "domain", "relation", "template", "rule", "split", "language")
Params = dict[str, list[str]]


class PlainRun:
    """Rows of questions, and for each way and question what became of it."""

    def __init__(self, folder: Path) -> None:
        self.questions = pq.read_table(folder / "questions.parquet").to_pylist()
        self.answers = pq.read_table(folder / "answers.parquet").to_pylist()
        self.ways = list(dict.fromkeys((row["model"], row["probe"], row["method"]) for row in self.answers))
        models = Counter(way[0] for way in self.ways)
        self.labels = [way[0] if models[way[0]] == 1 else f"{way[0]} ({way[2]})" for way in self.ways]
        golds = {row["question_id"]: row["answers"] for row in self.questions}
        grouped: dict[tuple[Any, str], list[dict[str, Any]]] = {}
        for row in self.answers:
            place = (row["model"], row["probe"], row["method"]), row["question_id"]
            grouped.setdefault(place, []).append(judged(row, golds[row["question_id"]]))
        self.cells = {place: summed(own) for place, own in grouped.items()}

    def cell(self, way: int, row: dict[str, Any]) -> dict[str, Any]:
        nothing = {"verdict": None, "rank": None, "tied": False}
        return self.cells.get((self.ways[way], row["question_id"]), nothing)

    def chosen_ways(self, params: Params) -> list[int]:
        kinds = ("model", "probe", "method")
        return [
            number
            for number, way in enumerate(self.ways)
            if all(kind not in params or value in params[kind] for kind, value in zip(kinds, way, strict=True))
        ]

    def passes(self, row: dict[str, Any], params: Params, without: tuple[str, ...] = ()) -> bool:
        for name in FACETS:
            if name in params and name not in without and value_of(row, name) not in params[name]:
                return False
        if "search" in params and not all(word in words_of(row) for word in wanted_words(params["search"][0])):
            return False
        asked = {"model", "probe", "method", "result", "low", "high"} & params.keys()
        if asked and "answers" not in without:
            fits = any(self.fits(way, row, params, params.get("result")) for way in self.chosen_ways(params))
            if not fits:
                return False
        if "cell" in params and "first" in params:
            return self.pair_cell(row, params) == params["cell"][0]
        return True

    def fits(self, way: int, row: dict[str, Any], params: Params, results: list[str] | None) -> bool:
        cell = self.cell(way, row)
        if cell["verdict"] is None:
            return False
        if results and not any(cell["tied"] if name == "tied" else cell["verdict"] == name for name in results):
            return False
        low, high = (float(params[key][0]) if key in params else None for key in ("low", "high"))
        if low is None and high is None:
            return True
        rank = cell["rank"]
        return rank is not None and (low is None or rank >= low) and (high is None or rank <= high)

    def pair_cell(self, row: dict[str, Any], params: Params) -> str:
        first, second = (self.cell(self.labels.index(params[name][0]), row)["verdict"] for name in ("first", "second"))
        if first not in ("right", "wrong") or second not in ("right", "wrong"):
            return "apart"
        table = {(1, 1): "both", (1, 0): "first", (0, 1): "second", (0, 0): "neither"}
        return table[first == "right", second == "right"]

    def listed(self, params: Params) -> list[str]:
        """The ids of all questions that pass, in order."""
        passing = [(number, row) for number, row in enumerate(self.questions) if self.passes(row, params)]
        ways = self.chosen_ways(params)
        sort = params.get("sort", ["run"])[0]

        def key(pair: tuple[int, dict[str, Any]]) -> tuple[Any, ...]:
            number, row = pair
            cells = [self.cell(way, row) for way in ways]
            usable = [cell for cell in cells if cell["verdict"] in ("right", "wrong")]
            share = sum(cell["verdict"] == "right" for cell in usable) / len(usable) if usable else None
            ranks = [cell["rank"] for cell in cells if cell["rank"] is not None]
            mean = sum(ranks) / len(ranks) if ranks else None
            if sort == "text":
                return row["prompt"].encode(), number
            if sort == "hardest" and ways:
                return last(share), last(negative(mean)), number
            if sort == "easiest" and ways:
                return last(negative(share)), last(mean), number
            if sort == "rank" and ways:
                return last(negative(max(ranks, default=None))), number
            if sort == "difference":
                pair_ranks = [
                    self.cell(self.labels.index(params[name][0]), row)["rank"] for name in ("first", "second")
                ]
                apart = None if None in pair_ranks else -abs(pair_ranks[0] - pair_ranks[1])
                return last(apart), number
            return (number,)

        return [row["question_id"] for _, row in sorted(passing, key=key)]

    def counts(self, params: Params) -> dict[str, Any]:
        """The counts beside the filters."""
        facets = {}
        for name in FACETS:
            rows = [row for row in self.questions if self.passes(row, params, (name,))]
            facets[name] = dict(Counter(value_of(row, name) for row in rows))
        others = [row for row in self.questions if self.passes(row, params, ("answers",))]
        ways = self.chosen_ways(params)
        results = {
            name: sum(any(self.fits(way, row, params, [name]) for way in ways) for row in others)
            for name in ("right", "wrong", "unusable", "tied")
        }
        by_way = []
        for way in range(len(self.ways)):
            cells = [self.cell(way, row) for row in others]
            verdicts = {name: sum(c["verdict"] == name for c in cells) for name in ("right", "wrong", "unusable")}
            by_way.append(verdicts | {"tied": sum(cell["tied"] for cell in cells)})
        return {"facets": facets, "results": results, "ways": by_way}

    def compared(self, params: Params) -> dict[str, Any]:
        """Two ways side by side."""
        rows = [row for row in self.questions if self.passes(row, {k: v for k, v in params.items() if k != "cell"})]
        cells = Counter(self.pair_cell(row, params) for row in rows)
        places = [self.labels.index(params[name][0]) for name in ("first", "second")]
        ranks = [tuple(self.cell(way, row)["rank"] for way in places) for row in rows]
        ranks = [pair for pair in ranks if None not in pair]
        return {
            "counts": {name: cells[name] for name in ("both", "first", "second", "neither", "apart")},
            "ranked": len(ranks),
            "first_ahead": sum(a < b for a, b in ranks),
            "second_ahead": sum(a > b for a, b in ranks),
            "level": sum(a == b for a, b in ranks),
        }


def judged(row: dict[str, Any], golds: list[str]) -> dict[str, Any]:
    ranks = [(rank, place) for place, rank in enumerate(row["gold_ranks"] or ()) if rank is not None]
    ranks = [pair for pair in ranks if not math.isnan(pair[0])]
    best = min(ranks)[0] if ranks else None
    ties = row["gold_ties"] or []
    tied = any(rank == best and ties[place] > 1 for rank, place in ranks if place < len(ties))
    if row["unusable"] is not None or (best is None and row["prediction"] is None):
        verdict = "unusable"
    elif best is not None:
        verdict = "right" if best <= 1 else "wrong"
    else:
        said = re.sub(r"\b(the|a|an)\b|[^\w\s]", " ", row["prediction"].lower()).split()
        verdict = "right" if said in [gold.lower().split() for gold in golds] else "wrong"
    return {"verdict": verdict, "rank": best, "tied": tied}


def summed(own: list[dict[str, Any]]) -> dict[str, Any]:
    usable = [one for one in own if one["verdict"] != "unusable"]
    right = sum(one["verdict"] == "right" for one in usable)
    ranks = [one["rank"] for one in own if one["rank"] is not None]
    verdict = "unusable" if not usable else "right" if 2 * right > len(usable) else "wrong"
    rank = sum(ranks) / len(ranks) if ranks else None
    return {"verdict": verdict, "rank": rank, "tied": any(one["tied"] for one in own)}


def value_of(row: dict[str, Any], name: str) -> str:
    if name == "relation":
        return (row["template"] or "").split("/")[0] or row["task"]
    return row[name] or ""


def words_of(row: dict[str, Any]) -> str:
    return unicodedata.normalize("NFC", "\n".join([row["prompt"], *row["answers"]])).lower()


def wanted_words(text: str) -> list[str]:
    found = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|(\S+)', text)]
    return [unicodedata.normalize("NFC", " ".join(part.split())).lower() for part in found]


def last(value: float | None) -> float:
    return math.inf if value is None else value


def negative(value: float | None) -> float | None:
    return None if value is None else -value
