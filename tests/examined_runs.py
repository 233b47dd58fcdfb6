"""A made-up run with four tasks, several questions a fact, a model, its distilled version and a baseline."""

from __future__ import annotations

import random
from typing import Any

from merkhet.analysis.types import AnalysisInput
from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, QUESTIONS, SCORES, make_table
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.questions.question_files import QuestionSet

DOMAINS = {"physics": "domain-specific", "law": "domain-specific", "music": "general", "commonsense": "commonsense"}
ABOUT = {"domains": list(DOMAINS), "knowledge_types": DOMAINS}
TASKS = ("completion", "distinction", "checking", "reasoning")
SKILL = {"bert-base-cased": 0.6, "distilbert-base-cased": 0.4, "random": 0.1}
FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo", "Joy", "Kai", "Lea")
LAST = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Gorse", "Holly", "Ivy", "Juniper", "Larch", "Maple", "Oak")
NAMES = [f"{first} {last}" for first in FIRST for last in LAST]
PLACES = ["Oslo", "New York", "Lima", "Ulan Bator", "Kyiv", "Paris"]


def make_questions(facts: int = 16, seed: int = 0) -> QuestionSet:
    """Per fact: three paraphrases, a statement, a distinction and a conclusion. No fact is of law."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    known = []
    for number in range(facts):
        name, place = NAMES[number % len(NAMES)], PLACES[(number * 7) % len(PLACES)]
        domain = ("physics", "music", "commonsense")[number % 3]
        shared: dict[str, Any] = {"qset": f"f{number}", "facts": [f"f{number}"], "domain": domain, "suite": "made-up"}
        known.append(
            {"fact_id": f"f{number}", "subject": name, "predicate": "lives", "object": place, "domain": domain}
        )
        opened = {"answers": [place], "target": place, "candidate_set": "places"}
        for kind, text in enumerate((f"{name} lives in", f"The home of {name} is", f"You meet {name} in")):
            asked = {"task": "completion", "prompt": f"{text} [MASK].", "template": f"lives/{kind}"}
            rows.append({**shared, **opened, **asked})
        verdict = draw.choice(["yes", "no"])
        prompt = f'Is the statement "{name} lives in {place}." true? [MASK].'
        judged = {"answers": [verdict], "target": verdict, "choices": ["yes", "no"], "template": "lives/0"}
        rows.append({**shared, **judged, "task": "checking", "prompt": prompt})
        four = [*draw.sample([other for other in NAMES if other != name], 3), name]
        prompt = f"Among {', '.join(four)}, [MASK] is the outlier in terms of the home."
        apart = {"answers": [name], "target": name, "choices": four, "template": "homes/0"}
        rows.append({**shared, **apart, "task": "distinction", "prompt": prompt})
        rule = ("TransitiveOP", "SubOP(OPChain)")[number % 2]
        asked = {"task": "reasoning", "prompt": f"The country of {name} has [MASK].", "template": "in/0", "rule": rule}
        rows.append({**shared, **opened, **asked})
    candidates = make_table(CANDIDATES, [{"candidate_set": "places", "candidates": PLACES}])
    return QuestionSet(make_table(QUESTIONS, rows), candidates, make_table(FACTS, known), about=ABOUT)


def make_answers(questions: QuestionSet, seed: int = 0, skill: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """Answers whose rightness goes with the fact; some are tied, some unusable; bert also writes."""
    draw = random.Random(seed)
    rows = []
    for model, level in (skill or SKILL).items():
        lucky = {fact: draw.random() for fact in questions.facts["fact_id"].to_pylist()}
        for question, row in zip(questions.as_questions(), questions.questions.to_pylist(), strict=True):
            base = {"question_id": question.question_id, "model": model, "probe": "rank", "method": "mean"}
            if draw.random() < 0.04:
                rows.append({**base, "unusable": "too long"})
                continue
            right = 0.5 * lucky[row["qset"]] + 0.5 * draw.random() < level
            wrong = draw.choice([text for text in question.candidates if text != question.target])
            tied = draw.random() < 0.1
            order = [question.target, wrong] if right else [wrong, question.target]
            scores = [-1.0, -1.0 if tied else -2.0]
            rank = 1.5 if tied else float(1 + order.index(question.target))
            rows.append(
                {
                    **base,
                    "prediction": order[0],
                    "ranked": [{"candidate": c, "score": s} for c, s in zip(order, scores, strict=True)],
                    "golds": [question.target],
                    "gold_ranks": [rank],
                    "gold_ties": [2 if tied else 1],
                }
            )
            if model == "bert-base-cased":
                said = f"the {question.target}!" if right else draw.choice([wrong, f"{question.target} or {wrong}"])
                nothing: dict[str, Any] = {"golds": [], "gold_ranks": [], "gold_ties": []}
                written = {"prediction": said, "ranked": [{"candidate": said, "score": 0.0}], **nothing}
                rows.append({**base, "probe": "write", "method": "greedy", **written})
    return make_table(ANSWERS, rows).to_pylist()


def make_input(facts: int = 16, seed: int = 0, **changes: Any) -> AnalysisInput:
    """The run as an analysis gets it."""
    found = make_questions(facts, seed)
    content: dict[str, Any] = {
        "questions": found.questions.to_pylist(),
        "questions_by_id": found.by_id(),
        "answers": make_answers(found, seed),
        "clusters": found.clusters(),
        "headline": [(task, get_metric("f1")) for task in TASKS],
        "facts": found.facts.to_pylist(),
        "baselines": frozenset({"random"}),
        "data_card": found.about,
        "seed": seed,
    }
    return AnalysisInput(**{**content, **changes})


def make_scores(given: AnalysisInput) -> Any:
    """The table of scores of the run, grouped by domain."""
    groups = {row["question_id"]: {"domain": row["domain"]} for row in given.questions}
    metrics = [get_metric("f1")]
    table = score_answers(
        "made-up", given.questions_by_id, groups, given.clusters, given.answers, metrics, seed=given.seed
    )
    assert table.schema.field("value").type == SCORES.schema.field("value").type
    return table


def corpus_text(given: AnalysisInput, times: int = 3) -> str:
    """Paragraphs in which a fact's name and place meet, the more often the higher the fact's number."""
    paragraphs = []
    for number, fact in enumerate(given.facts):
        paragraphs += [f"{fact['subject']} — of {fact['object'].upper()},\nwas there."] * (number * times)
    return "\n\n".join(paragraphs)
