"""Runs for the explorer's tests: real files in a folder, invented answers of every sort."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, QUESTIONS, SCORES, make_table, write_table

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\' " & </title>'
ARABIC = "عاصمة مصر هي القاهرة"
TURNED = "safe \u202etxt.exe"
CHINESE = "中华人民共和国的首都"
LONG = "a-name-that-never-ends-" * 13
WAYS = (
    ("small", "rank", "sum"),
    ("small", "rank", "mean"),
    ("large", "rank", "sum"),
    ("writer", "write", "greedy"),
    ("thrice", "rank", "sum"),
)
PLACES = tuple(f"place {number}" for number in range(12))
WORDS = ("River", "river", "Łódź", "Cafe\u0301", "café", "首都", "a%b", "under_score", 'quo"te', "o'clock", "Zebra")


def make_rows(size: int = 180, seed: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions, and answers of five ways: ranked, tied, written, repeated, unusable, without a number, left out."""
    draw = random.Random(seed)
    questions, answers = [], []
    for number in range(size):
        gold = draw.sample(PLACES, draw.choice((1, 1, 2)))
        questions.append(
            {
                "question_id": f"q_{number:04d}",
                "suite": "made up",
                "task": draw.choice(("completion", "checking", "order")),
                "language": draw.choice(("en", "en", "zh")),
                "prompt": f"{draw.choice(WORDS)} and {draw.choice(WORDS)} {number % 60} lie in [MASK].",
                "answers": gold,
                "target": gold[0],
                "candidate_set": "places",
                "facts": [f"f_{number // 3}"],
                "qset": f"s_{number // 3}" if number % 7 else None,
                "domain": draw.choice(("maps", "music", "", None)),
                "template": draw.choice(("lies-in/1", "lies-in/2", "near", None)),
                "split": draw.choice(("train", "test")),
                "rule": draw.choice((None, "chain")),
            }
        )
        for way in WAYS:
            answers += _answers(draw, f"q_{number:04d}", way, gold)
    return questions, answers


def _answers(draw: random.Random, identity: str, way: tuple[str, str, str], golds: list[str]) -> list[dict[str, Any]]:
    common = dict(zip(("question_id", "model", "probe", "method"), (identity, *way), strict=True))
    chance = draw.random()
    if chance < 0.08:
        return []
    if chance < 0.14:
        return [common | {"unusable": draw.choice(("too long", HOSTILE))}]
    if way[0] == "writer":
        said = draw.choice((golds[0], f"The {golds[-1].upper()}.", "nowhere", PLACES[0]))
        return [common | {"prediction": said, "ranked": [{"candidate": said, "score": -1.0}]}]
    if chance < 0.17:
        return [common | {"gold_ranks": [math.nan], "gold_ties": [1], "golds": golds[:1]}]
    times = 3 if way[0] == "thrice" else 1
    return [_ranked(draw, common, golds) | ({"repeat": number} if times > 1 else {}) for number in range(times)]


def _ranked(draw: random.Random, common: Mapping[str, Any], golds: list[str]) -> dict[str, Any]:
    scores = {place: draw.choice((-1.0, -2.0, -2.5, -draw.random() * 9)) for place in PLACES}
    order = sorted(PLACES, key=lambda place: (-scores[place], place))
    ties = [sum(scores[other] == scores[gold] for other in PLACES) for gold in golds]
    ranks = [sum(scores[other] > scores[gold] for other in PLACES) + (1 + ties[n]) / 2 for n, gold in enumerate(golds)]
    return {
        **common,
        "prediction": order[0],
        "ranked": [{"candidate": place, "score": scores[place]} for place in order[:5]],
        "golds": golds,
        "gold_ranks": ranks,
        "gold_ties": ties,
        "among": len(PLACES),
    }


FACT_ROWS = [
    {"fact_id": f"f_{number}", "subject": f"thing:{number}", "predicate": "lies-in", "object": f"place:{number}"}
    | ({"rule": "chain", "premises": [f"f_{number - 1}", "f_gone"]} if number % 2 else {"source": "a book"})
    for number in range(60)
]


def write_run(
    folder: Path,
    questions: Sequence[Mapping[str, Any]] | None = None,
    answers: Sequence[Mapping[str, Any]] | None = None,
    *,
    facts: Sequence[Mapping[str, Any]] = FACT_ROWS,
    candidates: Sequence[str] = PLACES,
    title: str = "Where things lie",
    models: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A folder as merkhet leaves one after a run, without the parts that the explorer does not read."""
    if questions is None or answers is None:
        questions, answers = make_rows()
    folder.mkdir(parents=True, exist_ok=True)
    write_table(QUESTIONS, make_table(QUESTIONS, questions), folder / "questions.parquet")
    write_table(ANSWERS, make_table(ANSWERS, answers), folder / "answers.parquet")
    sets = [{"candidate_set": "places", "candidates": list(candidates)}]
    write_table(CANDIDATES, make_table(CANDIDATES, sets), folder / "candidates.parquet")
    if facts:
        write_table(FACTS, make_table(FACTS, facts), folder / "facts.parquet")
    write_table(SCORES, make_table(SCORES, []), folder / "scores.parquet")
    named = models or [{"name": name, "kind": "masked"} for name in dict.fromkeys(row["model"] for row in answers)]
    record = {"suite": "made up", "card": {"title": title}, "models": list(named)}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def question(identity: str = "q_1", **more: Any) -> dict[str, Any]:
    return {
        "question_id": identity,
        "suite": "made up",
        "prompt": "The tower lies in [MASK].",
        "answers": ["place 1"],
        "target": "place 1",
        "candidate_set": "places",
        **more,
    }


def answer(identity: str = "q_1", model: str = "small", rank: float = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "question_id": identity,
        "model": model,
        "probe": "rank",
        "method": "sum",
        "prediction": "place 1",
        "ranked": [{"candidate": "place 1", "score": -1.5}, {"candidate": "place 2", "score": -2.5}],
        "golds": ["place 1"],
        "gold_ranks": [rank],
        "gold_ties": [1],
        "among": 12,
        **more,
    }
