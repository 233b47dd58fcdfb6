"""A made-up run of clozes and of words compared by sense: classes, text lengths, layers, what could not be asked."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.analysis.types import AnalysisInput
from merkhet.core.schemas import ANSWERS, CANDIDATES, QUESTIONS, make_table
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.questions.question_files import QuestionSet

CLASSES = {"C": "和或但", "D": "很都也", "P": "在从对", "U": "的了着", "ND": "上下里"}
CLOZES = ("syntactic", "commonsense", "encyclopedia")
METRICS = ("p@1", "p@10", "accuracy")
HEADLINE = [*((task, get_metric("p@1")) for task in CLOZES), ("semantic", get_metric("accuracy"))]
SKILL = {"bert": 0.5, "roberta": 0.7, "random": 0.2}
LAYERS = 4
VOCABULARY = 100


def make_questions(each: int = 12, seed: int = 0) -> QuestionSet:
    """So many questions of each class of function words and of each other task; facts' texts have many lengths."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for name, words in CLASSES.items():
        for number in range(each):
            word = draw.choice(words)
            prompt = f"第{number}句{name}甲[MASK]乙。"
            rows.append(_cloze("syntactic", prompt, word, name) | {"domain": name, "template": name})
    for number in range(each):
        rows.append(_cloze("commonsense", f"鸟{number}会[MASK]。", draw.choice("飞叫跳"), "commonsense"))
        length = draw.choice((8, 20, 40, 50, 70, 100, 130))
        text = f"{number}".ljust(length - 2, "字") + "[MASK]。"
        rows.append(_cloze("encyclopedia", text, draw.choice("京沪"), "encyclopedia"))
        pair = [f"还有上网[MASK]{number}。", f"张开[MASK]{number}。"]
        right = draw.choice(pair)
        sense = {"task": "semantic", "prompt": f"进出的[MASK]{number}。", "answers": [right], "target": right}
        rows.append({**sense, "suite": "made-up", "choices": pair, "words": ["口"], "qset": f"口{number // 2}"})
    sets = {name: list(words) for name, words in CLASSES.items()}
    sets |= {"commonsense": list("飞叫跳"), "encyclopedia": list("京沪")}
    candidates = [{"candidate_set": name, "candidates": texts} for name, texts in sets.items()]
    about = {"domains": list(CLASSES), "names": {"C": "conjunctions"}}
    return QuestionSet(make_table(QUESTIONS, rows), make_table(CANDIDATES, candidates), about=about)


def make_answers(
    questions: QuestionSet, skill: Mapping[str, float] | None = None, seed: int = 0, broken: float = 0.05
) -> list[dict[str, Any]]:
    """Answers by fill and rank to clozes (a baseline by rank alone), and by every layer to senses; some are tied."""
    rows = []
    for model, level in (skill or SKILL).items():
        draw = random.Random(f"{seed} {model}")
        for question in questions.as_questions():
            name = question.question_id
            if question.words:
                for method in (*(f"word@{layer}" for layer in range(LAYERS)), "word", "masked"):
                    better = 0.15 * method.endswith(("@2", "@3"))
                    rows.append(_sense(question, draw, level + better, model, method))
                continue
            for probe, method in (("fill", "mask"), ("rank", "multiple-mean"))[model == "random" :]:
                base = {"question_id": name, "model": model, "probe": probe, "method": method}
                if draw.random() < broken:
                    rows.append({**base, "unusable": "the answer is unknown"})
                    continue
                size = VOCABULARY if probe == "fill" else len(question.candidates)
                rank = 1 if draw.random() < level else draw.randint(2, size)
                order = [text for text in question.candidates if text != question.target]
                order.insert(min(rank - 1, len(order)), question.target)
                ranked = [{"candidate": text, "score": -float(place)} for place, text in enumerate(order)]
                gold = {"golds": [question.target], "gold_ranks": [float(rank)], "gold_ties": [1]}
                among = VOCABULARY if probe == "fill" else None
                rows.append({**base, **gold, "prediction": order[0], "ranked": ranked, "among": among})
    return make_table(ANSWERS, rows).to_pylist()


def make_input(
    each: int = 12, seed: int = 0, skill: Mapping[str, float] | None = None, **changes: Any
) -> AnalysisInput:
    """The run as an analysis gets it; its scores are those of the answers."""
    found = make_questions(each, seed)
    content: dict[str, Any] = {
        "questions": found.questions.to_pylist(),
        "questions_by_id": found.by_id(),
        "answers": make_answers(found, skill, seed),
        "clusters": found.clusters(),
        "headline": HEADLINE,
        "baselines": frozenset({"random"}),
        "data_card": found.about,
        "seed": seed,
        "unusable_is_wrong": True,
        "average_over": "domain",
        **changes,
    }
    given = AnalysisInput(**content)
    return given if "scores" in changes else AnalysisInput(**{**content, "scores": make_scores(given)})


def make_scores(given: AnalysisInput, metrics: Sequence[str] = METRICS) -> list[dict[str, Any]]:
    """Rows of the table of scores."""
    table = score_answers(
        "made-up",
        given.questions_by_id,
        {row["question_id"]: {"domain": row["domain"]} for row in given.questions},
        given.clusters,
        given.answers,
        [get_metric(name) for name in metrics],
        seed=given.seed,
        average_over=given.average_over,
        unusable_is_wrong=given.unusable_is_wrong,
    )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _cloze(task: str, prompt: str, word: str, candidates: str) -> dict[str, Any]:
    right = {"prompt": prompt, "answers": [word], "target": word}
    return {"suite": "made-up", "task": task, "language": "zh", **right, "candidate_set": candidates}


def _sense(question: Any, draw: random.Random, level: float, model: str, method: str) -> dict[str, Any]:
    right = draw.random() < 0.5 + level / 2
    tied = draw.random() < 0.1
    wrong = next(text for text in question.candidates if text != question.target)
    order = [question.target, wrong] if right else [wrong, question.target]
    scores = [0.9, 0.9 if tied else 0.5]
    return {
        "question_id": question.question_id,
        "model": model,
        "probe": "compare",
        "method": method,
        "prediction": order[0],
        "ranked": [{"candidate": text, "score": score} for text, score in zip(order, scores, strict=True)],
        "golds": [question.target],
        "gold_ranks": [1.5 if tied else float(1 + order.index(question.target))],
        "gold_ties": [2 if tied else 1],
    }
