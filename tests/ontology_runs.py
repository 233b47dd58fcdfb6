"""A made-up run over an ontology: memorizing, reasoning and multiple choice, with models that reason or repeat."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import mean
from typing import Any

from merkhet.analysis.types import AnalysisInput
from merkhet.core.records import Question
from merkhet.metrics.metrics import get_metric

TEMPLATES = {"TP": 3, "SCO": 3, "SPO": 1, "DM": 1, "RG": 1}
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}
METHODS = [f"{masks}-{pooling}" for masks in ("multiple", "single") for pooling in ("mean", "max", "first")]
SHOWN = ("both", "first", "second", "neither", "other")
COMBINED = ("manual-manual", "soft-manual", "manual-soft", "soft-soft")
BASELINE = "train-frequency"
REASONER, PARROT = "reasoner", "parrot"
SIZES = {"TP": 12, "SCO": 10, "SPO": 6, "DM": 5, "RG": 5}
REPEATS = 3
CANDIDATES = tuple(f"class {number}" for number in range(30))


class Made:
    """Questions and answers that are added one by one."""

    def __init__(self, seed: int = 0) -> None:
        self.draw = random.Random(seed)
        self.questions: list[dict[str, Any]] = []
        self.asked: dict[str, Question] = {}
        self.clusters: dict[str, str] = {}
        self.answers: list[dict[str, Any]] = []
        self.settings: dict[tuple[str, str], str] = {}

    def ask(
        self, task: str, template: str, fact: str, golds: int = 1, choices: int = 0, rule: str | None = None
    ) -> str:
        """A question with the first of the candidates as its right answers; returns its id."""
        name = f"q{len(self.questions):06}"
        candidates = CANDIDATES[:choices] if choices else CANDIDATES
        row = {"question_id": name, "task": task, "template": template, "rule": rule, "qset": fact, "domain": None}
        self.questions.append({**row, "facts": [fact], "prompt": "[X] is a [MASK] .", "split": "test"})
        self.asked[name] = Question(name, task, "[MASK]", CANDIDATES[:golds], CANDIDATES[0], candidates, "en", template)
        self.clusters[name] = fact
        return name

    def answer(self, name: str, model: str, method: str, skill: float, repeat: int | None = None) -> None:
        """An answer whose golds stand the higher the greater the skill; some are tied, few unusable."""
        question, draw = self.asked[name], self.draw
        row: dict[str, Any] = {"question_id": name, "model": model, "probe": "rank", "method": method}
        row |= {"repeat": repeat, "among": None, "unusable": None, "prediction": None}
        golds = list(question.answers)
        if draw.random() < 0.02:
            nothing: dict[str, Any] = {"ranked": [], "golds": [], "gold_ranks": [], "gold_ties": []}
            self.answers.append({**row, **nothing, "unusable": "too long"})
            return
        places = list(range(1, len(question.candidates) + 1))
        first = 1 if draw.random() < skill else draw.choice(places[1:])
        ranks = [first, *draw.sample([place for place in places if place != first], len(golds) - 1)]
        tied = draw.random() < 0.1 and len(golds) == 1 and first < len(places)
        said = golds[0] if first == 1 else question.candidates[-1]
        self.answers.append(
            {
                **row,
                "prediction": said,
                "ranked": [{"candidate": said, "score": 0.0}],
                "golds": golds,
                "gold_ranks": [rank + 0.5 * tied for rank in ranks],
                "gold_ties": [1 + tied] * len(golds),
            }
        )


def skill_of(model: str, shown: str) -> float:
    """How often the answer of a reasoning question stands first."""
    if shown == "other":
        return 0.9 if model.startswith(PARROT) else 0.02
    return {"both": 0.9, "first": 0.7, "second": 0.2, "neither": 0.05}[shown]


def make_ontology_run(
    sizes: dict[str, int] | None = None,
    models: tuple[str, ...] = (REASONER, PARROT),
    seed: int = 0,
    repeats: int = REPEATS,
    **changes: Any,
) -> AnalysisInput:
    """The run as an analysis gets it: every model by manual and soft prompts, one baseline, repeats in reasoning."""
    made = Made(seed)
    sizes = sizes or SIZES
    for task, size in sizes.items():
        for number in range(size):
            _memorized(made, task, f"{task}-{number:05}", models)
            _chosen(made, task, f"{task}-{number:05}", models)
    for rule, task in RULES.items():
        for number in range(sizes[task]):
            _reasoned(made, rule, f"{task}-{number:05}", number, models, repeats)
    content: dict[str, Any] = {
        "questions": made.questions,
        "questions_by_id": made.asked,
        "answers": made.answers,
        "clusters": made.clusters,
        "headline": [(task, get_metric("mrr")) for task in (*sizes, *RULES)],
        "baselines": frozenset({BASELINE}),
        "premise_settings": made.settings,
        "training_records": list(learned_things(models)),
        "seed": seed,
    }
    return AnalysisInput(**{**content, **changes})


def _memorized(made: Made, task: str, fact: str, models: tuple[str, ...]) -> None:
    golds = 1 if task in ("DM", "RG") else made.draw.randint(1, 3)
    for number in range(1, TEMPLATES[task] + 1):
        name = made.ask(task, f"{task}/{number}", fact, golds)
        for repeat in range(2):
            made.answer(name, BASELINE, "mean", 0.2, repeat)
        for model in models:
            for place, method in enumerate(METHODS):
                made.answer(name, model, method, 0.2 + 0.1 * number + 0.05 * place)
    name = made.ask(task, f"{task}/soft", fact, golds)
    for model in models:
        for method in METHODS:
            made.answer(name, f"{model}, soft", method, 0.5)
            made.answer(name, f"{model}, soft (nll)", method, 0.4)


def _chosen(made: Made, task: str, fact: str, models: tuple[str, ...]) -> None:
    name = made.ask(f"{task}-choice", f"{task}/1", fact, choices=20)
    for model in models:
        made.answer(name, model, METHODS[0], 0.6)


def _reasoned(made: Made, rule: str, fact: str, number: int, models: tuple[str, ...], repeats: int) -> None:
    for combined in COMBINED:
        for shown in SHOWN:
            name = made.ask(rule, f"{rule}/{combined}", fact, rule=rule)
            for model in models:
                asked = model if combined == COMBINED[0] else f"{model}, soft"
                made.settings[asked, name] = _setting(shown, number)
                for repeat in range(repeats):
                    made.answer(name, asked, METHODS[0], skill_of(model, shown), repeat)
    for shown in ("both", "second"):
        name = made.ask(f"{rule}-choice", f"{rule}/{COMBINED[0]}", fact, choices=20, rule=rule)
        for model in models:
            made.settings[model, name] = _setting(shown, number)
            made.answer(name, model, METHODS[0], skill_of(model, shown))


def _setting(shown: str, number: int) -> str:
    known = ("IM" if number % 2 else "NO", "IM" if number % 4 < 2 else "NO")
    if shown == "other":
        return "OT/EX"
    first = "EX" if shown in ("both", "first") else known[0]
    return f"{first}/{'EX' if shown in ('both', 'second') else known[1]}"


def learned_things(models: tuple[str, ...], epochs: int = 100) -> Iterator[dict[str, Any]]:
    """A made-up record of learning for every model, loss and task."""
    for model in models:
        for name, loss in ((f"{model}, soft", "bce"), (f"{model}, soft (nll)", "nll")):
            for place, task in enumerate((*TEMPLATES, *(f"{rule}/soft-soft" for rule in RULES))):
                curve = [
                    {"loss": 0.7 * (0.93 + 0.004 * place) ** epoch, "dev_mrr_a": 0.3 - 0.2 / (1 + epoch / (9 + place))}
                    for epoch in range(epochs)
                ]
                yield {"model": name, "task": task, "loss": loss, "epochs": curve, "kept_epoch": epochs - place}


def made_of(analysis, given, known={}):  # noqa: B006 (kept between calls: many tests look at one analysis of one run)
    """What an analysis makes of a run; of the same run it is made once."""
    if known.get(analysis, (None,))[0] is not given:
        known[analysis] = (given, analysis(given))
    return known[analysis][1]


def by_hand(answer, metric):
    """One answer's value: its mean over every way to break its tie; several right answers are never tied."""
    ranks, ties = answer["gold_ranks"], answer["gold_ties"][0]
    first = min(ranks) - (ties - 1) / 2
    if metric == "MRR_a" and len(ranks) > 1:
        return 1 / mean(ranks)
    if metric in ("MRR", "MRR_a"):
        return mean(1 / (first + place) for place in range(ties))
    return mean(first + place <= int(metric.partition("@")[2]) for place in range(ties))


def score_by_hand(given, metric, **wanted):
    """The mean over questions of the mean over repeats, and the number of questions.

    ``wanted`` are columns of answers or questions, or ``setting``; a tuple names several values.
    """
    chosen = [(name, value if isinstance(value, tuple) else (value,)) for name, value in wanted.items()]
    kept = {}
    for answer in told_answers(given, wanted.get("task")):
        if all(answer[name] in values for name, values in chosen):
            key = (answer["model"], answer["method"], answer["question_id"])
            kept.setdefault(key, []).append(by_hand(answer, metric))
    return mean(mean(values) for values in kept.values()) if kept else None, len(kept)


def told_answers(given, task, known={}):  # noqa: B006 (kept between calls: many scores of one run are counted)
    """The usable answers, of one task where it is named, with the columns of their questions and their settings."""
    if known.get("given") is not given:
        rows = {row["question_id"]: row for row in given.questions}
        known["given"] = given
        known["answers"] = [
            {
                **rows[answer["question_id"]],
                **answer,
                "setting": given.premise_settings.get((answer["model"], answer["question_id"])),
            }
            for answer in given.answers
            if answer["unusable"] is None
        ]
        known["by_task"] = {}
        for answer in known["answers"]:
            known["by_task"].setdefault(answer["task"], []).append(answer)
    return known["by_task"].get(task, []) if isinstance(task, str) else known["answers"]
