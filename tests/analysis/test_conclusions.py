"""Conclusions with known premises against others: shares, strata and differences are those counted by hand."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from merkhet.analysis.conclusions import ALL_AXIOMS, conclusions, find_control
from merkhet.analysis.consistency import ALL_TASKS, WITH_PREMISES, consistency
from merkhet.analysis.types import AnalysisInput, Line
from merkhet.core.schemas import ANSWERS, FACTS, QUESTIONS, make_table
from merkhet.metrics.metrics import get_metric
from merkhet.questions.question_files import QuestionSet

AXIOMS = ("TransitiveOP", "SubOP(OPChain)")
CHOICES = ["a", "b", "c", "d"]
MODEL, CONTROL = Line("bert", "rank", "mean"), Line("random", "rank", "mean")


def make_run(seed: int, facts: int = 24, count: int = 40, gain: float = 0.5, **changes: Any) -> AnalysisInput:
    """A run with ``count`` conclusions of one or two premises; knowing them makes an answer right by ``gain`` more."""
    draw = random.Random(seed)
    names = [f"e{number}" for number in range(10)]
    stated = [
        {"fact_id": f"f{n}", "subject": draw.choice(names), "predicate": "p", "object": draw.choice(names)}
        for n in range(facts)
    ]
    inferred, rows, premises = [], [], {}
    for n, fact in enumerate(stated):
        for kind in range(3 if n % 5 else 0):  # Every fifth fact is not asked about.
            rows.append(asked(f"{fact['fact_id']}?{kind}", "completion", fact["fact_id"], f"p/{kind}"))
    for n in range(count):
        below = draw.sample([fact["fact_id"] for fact in stated], draw.choice([1, 2]))
        axiom = AXIOMS[n % 2]
        fact = {"fact_id": f"c{n}", "subject": draw.choice(names), "predicate": "q", "object": draw.choice(names)}
        inferred.append({**fact, "rule": "transitive", "premises": below})
        for kind in range(2):
            for task in ("reasoning", "open-book"):
                row = asked(f"c{n}?{kind}{task[0]}", task, f"c{n}", f"q/{kind}", axiom)
                rows.append(row)
                premises[row["question_id"]] = tuple((name, axiom) for name in below)
    questions = QuestionSet(make_table(QUESTIONS, rows), facts=make_table(FACTS, [*stated, *inferred]))
    answers = []
    for model in ("bert", "random"):
        knows = {fact["fact_id"]: draw.random() < 0.6 for fact in stated}
        for row in rows:
            base = {"question_id": row["question_id"], "model": model, "probe": "rank", "method": "mean"}
            if draw.random() < 0.05:
                answers.append({**base, "unusable": "too long"})
                continue
            chance = 0.25
            if model == "bert":
                below = [name for name, _ in premises.get(row["question_id"], ())]
                chance = 0.3 + gain * all(knows[name] for name in below) if below else float(knows[row["facts"][0]])
            right, tied = draw.random() < chance, bool(premises.get(row["question_id"])) and draw.random() < 0.1
            ranked = [{"candidate": text, "score": -float(place)} for place, text in enumerate("ab" if right else "ba")]
            if tied:
                ranked[1]["score"] = 0.0
            rank = 1.5 if tied else 1.0 if right else 2.0
            golds = {"golds": ["a"], "gold_ranks": [rank], "gold_ties": [2 if tied else 1]}
            answers.append({**base, "prediction": ranked[0]["candidate"], "ranked": ranked, **golds})
    content: dict[str, Any] = {
        "questions": questions.questions.to_pylist(),
        "questions_by_id": questions.by_id(),
        "answers": make_table(ANSWERS, answers).to_pylist(),
        "clusters": questions.clusters(),
        "headline": [("completion", get_metric("f1"))],
        "facts": questions.facts.to_pylist(),
        "baselines": frozenset({"random"}),
        "premises": premises,
        "seed": seed,
    }
    return AnalysisInput(**{**content, **changes})


def asked(name: str, task: str, fact: str, template: str, rule: str | None = None) -> dict[str, Any]:
    row = {"question_id": name, "task": task, "prompt": f"{name} [MASK]", "answers": ["a"], "target": "a"}
    return row | {"choices": CHOICES, "facts": [fact], "qset": fact, "template": template, "rule": rule}


def right_of(given: AnalysisInput, line: Line) -> dict[str, float]:
    """The probability that each usable answer is right."""
    found = {}
    for answer in given.answers:
        if answer["model"] == line.model and answer["unusable"] is None:
            first = [one["candidate"] for one in answer["ranked"] if one["score"] == answer["ranked"][0]["score"]]
            found[answer["question_id"]] = first.count("a") / len(first)
    return found


def groups_by_hand(given: AnalysisInput) -> dict[tuple[str, str], dict[bool, list[str]]]:
    """Closed-book questions by axiom and stratum, and by whether the model knows all premises."""
    right = right_of(given, MODEL)
    about: dict[str, list[str]] = defaultdict(list)
    for row in given.questions:
        if row["task"] == "completion":
            about[row["facts"][0]].append(row["question_id"])
    known = {}
    for fact, ids in about.items():
        answers = [right[name] for name in ids if name in right]
        if answers:
            known[fact] = set(answers) == {1.0}
    named = Counter(name for fact in given.facts if fact["rule"] is None for name in (fact["subject"], fact["object"]))
    for fact in given.facts:  # A fact about one entity alone names it once.
        if fact["rule"] is None and fact["subject"] == fact["object"]:
            named[fact["subject"]] -= 1
    popular = {fact["fact_id"]: (1 + named[fact["subject"]]) * (1 + named[fact["object"]]) for fact in given.facts}
    ready = [
        row
        for row in given.questions
        if row["task"] == "reasoning" and all(fact in about for fact, _ in given.premises[row["question_id"]])
    ]
    groups: dict[tuple[str, str], dict[bool, list[str]]] = defaultdict(lambda: {True: [], False: []})
    for row in ready:
        name = row["question_id"]
        facts = [fact for fact, _ in given.premises[name]]
        if name not in right or not all(fact in known for fact in facts):
            continue
        values = {one["qset"]: popular[one["qset"]] for one in ready if one["rule"] == row["rule"]}
        low, high = np.quantile(list(values.values()), (1 / 3, 2 / 3))
        value = values[row["qset"]]
        stratum = "rare" if value <= low else "middle" if value <= high else "frequent"
        groups[row["rule"], stratum][all(known[fact] for fact in facts)].append(name)
    return groups


def difference_by_hand(groups: list[dict[bool, list[str]]], right: dict[str, float]) -> float | None:
    total = weight = 0.0
    for group in groups:
        first, second = ([right[name] for name in group[known] if name in right] for known in (True, False))
        if first and second:
            share = len(first) * len(second) / (len(first) + len(second))
            total += share * (sum(first) / len(first) - sum(second) / len(second))
            weight += share
    return total / weight if weight else None


@pytest.mark.parametrize("seed", range(4))
def test_differences_are_those_counted_by_hand(seed: int) -> None:
    given = make_run(seed)
    found = conclusions(given)
    assert found is not None
    main, strata, _ = found.tables
    groups, right = groups_by_hand(given), {line: right_of(given, line) for line in (MODEL, CONTROL)}
    assert [row[1] for row in main.rows] == [*sorted(AXIOMS), ALL_AXIOMS]
    for model, axiom, count, share, known, other, apart, control, control_apart, beyond in main.rows:
        inside = [group for (name, _), group in groups.items() if axiom in (name, ALL_AXIOMS)]
        ids = {known: [name for group in inside for name in group[known]] for known in (True, False)}
        assert (model, control) == ("bert", "random")
        assert count == len({given.clusters[name] for of in ids.values() for name in of})
        assert share == pytest.approx(len(ids[True]) / sum(map(len, ids.values())))
        for cell, names in ((known, ids[True]), (other, ids[False])):
            assert cell.n == len(names)
            assert cell.value == pytest.approx(np.mean([right[MODEL][name] for name in names]))
        expected = [difference_by_hand(inside, right[line]) for line in (MODEL, CONTROL)]
        assert apart.value == pytest.approx(expected[0]) and control_apart.value == pytest.approx(expected[1])
        assert beyond.value == pytest.approx(expected[0] - expected[1])
        assert apart.low < apart.value < apart.high
    cells = {(row[1], row[2]): (row[3], row[5]) for row in strata.rows}
    assert cells == {key: (len(group[True]), len(group[False])) for key, group in groups.items()}
    assert "inference" not in found.explanation and "infer" not in " ".join(found.sentences)


def test_an_effect_of_known_premises_is_found_and_none_is_made_up() -> None:
    def interval(gain: float) -> Any:
        found = conclusions(make_run(3, facts=120, count=400, gain=gain))
        assert found is not None
        return found.tables[0].rows[-1][6]

    strong, none = interval(0.5), interval(0.0)
    assert strong.low > 0.2 and strong.value == pytest.approx(0.5, abs=0.15)
    assert none.low < 0.0 < none.high


def test_conclusions_that_share_a_premise_are_one_cluster() -> None:
    given = make_run(4, facts=30, count=60)
    right = right_of(given, MODEL)
    by_fact: dict[str, set[float]] = defaultdict(set)
    for row in given.questions:
        if row["task"] == "completion" and row["question_id"] in right:
            by_fact[row["facts"][0]].add(right[row["question_id"]])
    known, other = (next(fact for fact in sorted(by_fact) if (by_fact[fact] == {1.0}) is it) for it in (True, False))
    shared = {
        name: (((known, other)[int(name[1:].partition("?")[0]) // 2 % 2], below[0][1]),)
        for name, below in given.premises.items()
    }
    found = conclusions(replace(given, premises=shared))
    assert found is not None
    _, _, count, share, _, _, apart, *_ = found.tables[0].rows[-1]
    assert count > 40 and 0.3 < share < 0.7
    # Two premises decide everything: there is a difference, and nothing to tell how sure it is.
    assert apart.value is not None and apart.low is None and apart.high is None


def test_the_control_is_an_untrained_model_of_the_same_shape_before_a_baseline() -> None:
    given = make_run(0)

    def control(*names: str) -> str:
        answers = [
            {**row, "model": name} for name in ("bert", *names) for row in given.answers if row["model"] == "bert"
        ]
        found = find_control(replace(given, answers=answers, baselines=frozenset({"random", "frequency"})), MODEL)
        return found.model if found else "none"

    assert control() == "none"
    assert control("random", "frequency") == "frequency"
    assert control("random", "random:2x128") == "random:2x128"
    assert control("random:2x128", "random", "random:bert") == "random:bert"


def test_runs_without_the_questions_say_what_is_missing() -> None:
    given = make_run(0)
    assert conclusions(replace(given, premises={})) is None
    closed = [row for row in given.questions if row["task"] == "reasoning"]
    assert conclusions(replace(given, questions=closed)) is None
    about = {row["facts"][0] for row in given.questions if row["task"] == "completion"}
    unasked = {name: (*below, ("f0", "TransitiveOP")) for name, below in given.premises.items()}
    assert "f0" not in about
    found = conclusions(replace(given, premises=unasked))
    assert found is not None and "options.premise_questions=true" in found.sentences[0]


def test_closed_and_open_book_are_paired_by_hand() -> None:
    given = make_run(1)
    found = conclusions(given)
    assert found is not None
    rows = {(row[0], row[1]): row for row in found.tables[-1].rows}
    for line in (MODEL, CONTROL):
        right = right_of(given, line)
        pairs = [(name, f"{name[:-1]}o") for name in right if name.endswith("r") and f"{name[:-1]}o" in right]
        _, _, count, closed, opened, apart = rows[line.model, ALL_AXIOMS]
        assert count == len(pairs)
        means = [np.mean([right[pair[place]] for pair in pairs]) for place in range(2)]
        assert [closed.value, opened.value] == pytest.approx(means)
        assert apart.value == pytest.approx(means[1] - means[0])


def test_q_sets_join_a_conclusion_with_the_questions_of_its_premises() -> None:
    given = make_run(2)
    right = right_of(given, MODEL)
    about: dict[str, list[str]] = defaultdict(list)
    for row in given.questions:
        if row["task"] == "completion":
            about[row["facts"][0]].append(row["question_id"])
    sets = []
    for row in given.questions:
        if row["task"] == "reasoning" and row["template"] == "q/0":
            facts = [fact for fact, _ in given.premises[row["question_id"]]]
            if all(fact in about for fact in facts):
                ids = [f"{row['qset']}?0r", f"{row['qset']}?1r", *(name for fact in facts for name in about[fact])]
                sets.append([right[name] for name in ids if name in right])
    sets = [values for values in sets if len(values) > 1]
    found = consistency(given)
    assert found is not None
    tasks = [row[1] for row in found.tables[0].rows if row[0] == "bert"]
    assert tasks[-2:] == [WITH_PREMISES, ALL_TASKS]
    [row] = [row for row in found.tables[0].rows if row[:2] == ("bert", WITH_PREMISES)]
    assert row[2] == len(sets) and row[4].value == pytest.approx(np.mean([np.prod(values) for values in sets]))
    plain = consistency(replace(given, premises={}))
    assert plain is not None and WITH_PREMISES not in {row[1] for row in plain.tables[0].rows}
