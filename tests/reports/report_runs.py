"""Made-up runs for the report's tests: real tables, invented numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, make_table
from merkhet.reports.report_data import ReportData

HOSTILE = "<script>alert('x')</script> \"quoted\" & <b>bold</b>"
ARABIC = "عاصمة مصر هي القاهرة"
CHINESE = "中华人民共和国的首都"
LONG = "a-very-long-model-name-that-never-ends-" * 6
MODELS = ("SmolLM2-135M", "minilm-mlm", "frequency")
SKILL = {"SmolLM2-135M": 0.6, "minilm-mlm": 0.45, "frequency": 0.1}
RELATIONS = ("capital of", "element symbol", "melting point", "author of", "is a")
HEADLINE = [{"task": "completion", "metric": "r@1"}, {"task": "checking", "metric": "accuracy"}]


def score(model: str, task: str, metric: str, value: float | None, **more: Any) -> dict[str, Any]:
    row = {
        "model": model,
        "suite": "quickstart",
        "task": task,
        "probe": "rank",
        "method": "mean",
        "metric": metric,
        "value": value,
        "n": 100,
        "unusable": 0,
        "chance": 0.5 if task == "checking" else 0.05,
    }
    if value is not None:
        row |= {"low": max(0.0, value - 0.04), "high": min(1.0, value + 0.04)}
    return row | more


def make_card(*, probe: str, kind: str, passed: bool = True, **more: Any) -> dict[str, Any]:
    """A calibration card; one that did not pass found what was never shown."""
    found = {
        ("memorized", "trained"): 0.96,
        ("memorized", "bag of words"): 0.1,
        ("memorized", "random weights"): 0.12,
        ("never shown", "trained"): 0.11 if passed else 0.8,
        ("in other words", "trained"): 0.85,
    }
    rows = [
        {
            **{"content": content, "model": model, "value": value, "low": value - 0.02, "high": value + 0.02},
            **{"chance": 0.1, "n": 200, "facts": 100, "wanted": "at most chance" if value < 0.2 else None},
            "passed": passed or content != "never shown",
        }
        for (content, model), value in found.items()
    ]
    made = {"merkhet": "0.1.0", "torch": "2.9.0", "date": "2026-01-05T12:00:00", "seconds": 61.2}
    card = {"probe": probe, "kind": kind, "method": "mean", "metric": "accuracy", "passed": passed, "rows": rows}
    return {**card, "trainings": 3, "seed": 0, "made": made, **more}


def make_run(
    models: tuple[str, ...] = MODELS, relations: tuple[str, ...] = RELATIONS, size: int = 60, **changes: Any
) -> ReportData:
    draw = random.Random(7)
    places = [f"place {number}" for number in range(20)]
    questions, answers, scores = [], [], []
    for number in range(size):
        relation = relations[number % len(relations)]
        gold = places[number % 20]
        checking = number % 3 == 2
        asked = {"choices": ["true", "false"]} if checking else {"candidate_set": "places"}
        right = "true" if checking else gold
        prompt = f"It is [MASK] that {relation} {number} is {gold}." if checking else f"{relation} {number} is [MASK]."
        questions.append(
            {
                "question_id": f"q_{number}",
                "suite": "quickstart",
                "prompt": prompt,
                "answers": [right],
                "task": "checking" if checking else "completion",
                "target": right,
                "domain": relation,
                "template": "t1",
                **asked,
            }
        )
        pool = ["true", "false"] if checking else places
        for model in models:
            answer: dict[str, Any] = {
                "question_id": f"q_{number}",
                "model": model,
                "probe": "rank",
                "method": "mean",
                "seconds": 0.01,
            }
            if number % 29 == 28 and model == models[0]:
                answers.append(answer | {"unusable": "too long"})
                continue
            rank = 1 if draw.random() < SKILL.get(model, 0.5) else draw.randint(2, len(pool))
            order = [name for name in pool if name != right]
            draw.shuffle(order)
            order.insert(rank - 1, right)
            ranked = [{"candidate": name, "score": -1.25 * place - 0.5} for place, name in enumerate(order[:5])]
            answers.append(answer | {"prediction": order[0], "ranked": ranked, "gold_ranks": [float(rank)]})
    for model in models:
        skill = SKILL.get(model, 0.5)
        scores.append(score(model, "completion", "r@1", skill, unusable=2 if model == models[0] else 0))
        scores.append(score(model, "completion", "mrr", skill + 0.1))
        scores.append(score(model, "checking", "accuracy", 0.5 + skill / 2))
        for place, relation in enumerate(relations):
            value = min(1.0, skill * 1.9 * (place + 0.4) / len(relations))
            scores.append(score(model, "completion", "r@1", value, relation=relation, n=40 - place))
            scores.append(score(model, "checking", "accuracy", 0.5 + value / 2, relation=relation, n=20))
            scores.append(score(model, "completion", "r@1", value, domain="geography" if place % 2 else "nature"))
    scores = list(
        {
            tuple(sorted((k, v) for k, v in row.items() if k not in ("value", "low", "high", "n"))): row
            for row in scores
        }.values()
    )
    record = {
        "merkhet": "0.1.0",
        "python": "3.12.3",
        "seed": 0,
        "suite": "quickstart",
        "date": "2026-01-05 12:00 UTC",
        "versions": {"torch": "2.9.0", "transformers": "4.57.1", "pyarrow": "21.0.0"},
        "machine": {"system": "Linux", "processor": "x86-64, 2 cores", "memory": "8 GB"},
        "questions": {
            "count": size,
            "digest": "9f2c" * 16,
            "facts": 5312,
            "by_task": {"completion": size - size // 3, "checking": size // 3},
        },
        "models": [
            {
                "name": model,
                "kind": "baseline" if model == "frequency" else "causal",
                "source": f"models/{model}",
                "fingerprint": "4be1c0de" * 8,
                "parameters": 134515008,
                "dtype": "float32",
                "seconds": 20.31,
                "questions_per_second": 118.2,
            }
            for model in models
        ],
        "command": "merkhet run quickstart --model SmolLM2-135M --out runs/quickstart",
    }
    whole = ReportData(
        title="What SmolLM2 knows",
        study={"suite": "quickstart", "seed": 0, "models": list(models)},
        record=record,
        suite={
            "name": "quickstart",
            "title": "Quickstart",
            "headline": HEADLINE,
            "about": "A first look: capitals, elements, authors.",
            "methods": "Each question is a sentence with one slot. Candidates are ranked by the mean "
            "log-probability of their tokens; ties have their expected rank. "
            "Intervals are bootstrapped, clustered by fact.",
            "citations": ["@software{merkhet,\n  title = {merkhet},\n  year = {2026}\n}"],
        },
        scores=make_table(SCORES, scores),
        questions=make_table(QUESTIONS, questions),
        candidates={"places": places},
        answers=make_table(ANSWERS, answers),
        findings={
            "sentences": [
                "SmolLM2-135M knows capitals (92%) and element symbols (71%), not melting points (4%).",
                "It is ahead of minilm-mlm on completion by 15.0 points (paired, p = 0.002).",
            ],
            "comparisons": [
                {
                    "task": "completion",
                    "metric": "r@1",
                    "model": "SmolLM2-135M",
                    "other": "minilm-mlm",
                    "difference": 0.15,
                    "low": 0.08,
                    "high": 0.22,
                    "p": 0.0002,
                },
                {
                    "task": "checking",
                    "metric": "accuracy",
                    "model": "SmolLM2-135M",
                    "other": "minilm-mlm",
                    "difference": 0.012,
                    "low": -0.02,
                    "high": 0.045,
                    "p": 0.41,
                },
            ],
            "unusable": [{"model": "SmolLM2-135M", "reason": "too long", "count": 2}],
        },
    )
    return replace(whole, **changes)
