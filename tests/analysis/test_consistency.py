from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from examined_runs import TASKS, make_input

from merkhet.analysis.consistency import ALL_TASKS, WITH_PREMISES, consistency
from merkhet.analysis.types import Line
from merkhet.metrics.text_overlap import exact_match


def chance_of(answer, question):
    """The chance that the candidate drawn among those tied for the first place is a right answer."""
    first = [entry["candidate"] for entry in answer["ranked"] if entry["score"] == answer["ranked"][0]["score"]]
    return sum(exact_match(text, question.answers) for text in first) / len(first)


def by_hand(given, line, task):
    """Shares of Q-sets by writing out every way in which ties may fall."""
    answers = {
        answer["question_id"]: answer
        for answer in given.answers
        if (answer["model"], answer["probe"], answer["method"]) == (line.model, line.probe, line.method)
        and answer["unusable"] is None
    }
    sets = {}
    for row in given.questions:
        if task in (ALL_TASKS, row["task"]) and row["question_id"] in answers:
            sets.setdefault(row["qset"], []).append(row["question_id"])
    sets = [names for names in sets.values() if len(names) >= 2]
    shares = {"all": 0.0, "partly": 0.0, "none": 0.0}
    for names in sets:
        chances = [chance_of(answers[name], given.questions_by_id[name]) for name in names]
        for fallen in product([True, False], repeat=len(names)):
            weight = 1.0
            for right, chance in zip(fallen, chances, strict=True):
                weight *= chance if right else 1.0 - chance
            shares["all" if all(fallen) else "partly" if any(fallen) else "none"] += weight / len(sets)
    return len(sets), shares


@pytest.mark.parametrize("seed", [0, 1])
def test_shares_are_those_counted_by_hand(seed):
    given = make_input(facts=12, seed=seed)
    table = consistency(given).tables[0]
    names = {label: line for line, label in given.labels.items()}
    assert {row[1] for row in table.rows} == {"completion", ALL_TASKS}, "a fact has one question of each other task"
    assert {row[0] for row in table.rows} == set(names)
    for label, task, count, _, every, _, partly, none, _ in table.rows:
        size, shares = by_hand(given, names[label], task)
        assert count == every.n == size
        assert [every.value, partly.value, none.value] == pytest.approx(list(shares.values()))
        assert all(cell.low <= cell.value <= cell.high for cell in (every, partly, none))


def one_line(given, right):
    """The same questions, answered by one model: right or wrong as told, nothing tied or unusable."""
    rows = []
    for name, question in given.questions_by_id.items():
        said = question.target if right(name) else next(t for t in question.candidates if t != question.target)
        rank = 1.0 if right(name) else 2.0
        row = {"question_id": name, "model": "m", "probe": "rank", "method": "mean", "unusable": None, "among": None}
        ranked = {"ranked": [{"candidate": said, "score": 0.0}], "gold_ranks": [rank], "gold_ties": [1]}
        rows.append({**row, **ranked, "golds": [question.target]})
    return replace(given, answers=rows)


def test_what_independence_would_give():
    given = make_input(facts=20)
    number = {row["question_id"]: int(row["qset"][1:]) for row in given.questions}
    same = one_line(given, lambda name: number[name] % 2 == 0)
    row = consistency(same).tables[0].rows[0]
    assert row[:4] == ("m", "completion", 20, 0.5)
    assert [row[4].value, row[6].value, row[7].value] == [0.5, 0.0, 0.5], (
        "half of the facts are known, whatever is asked"
    )
    assert [row[5], row[8]] == pytest.approx([0.5**3, 0.5**3])
    over = consistency(same).tables[0].rows[1]
    assert over[1] == ALL_TASKS and over[5] == pytest.approx(0.5**6)
    assert "50.0% of 20 Q-sets all right; 1.6% would be" in consistency(same).sentences[0]


def test_without_qsets_there_is_nothing_to_say():
    given = make_input()
    alone = [row | {"qset": None} for row in given.questions]
    assert consistency(replace(given, questions=alone)) is None


def test_baselines_have_rows_and_no_sentence():
    found = consistency(make_input())
    assert "random" in {row[0] for row in found.tables[0].rows}
    assert not any(sentence.startswith("random") for sentence in found.sentences)


def test_lines_are_named_by_what_tells_them_apart():
    given = make_input()
    assert given.labels == {
        Line("bert-base-cased", "rank", "mean"): "bert-base-cased (mean)",
        Line("bert-base-cased", "write", "greedy"): "bert-base-cased (greedy)",
        Line("distilbert-base-cased", "rank", "mean"): "distilbert-base-cased",
        Line("random", "rank", "mean"): "random",
    }
    assert given.tasks == list(TASKS)


def test_a_conclusion_is_joined_with_the_questions_about_its_premises():
    given = make_input(facts=12)
    rows = [
        row | {"facts": [f"c{row['qset']}", row["qset"]], "qset": f"c{row['qset']}"} if row["rule"] else row
        for row in given.questions
    ]
    concluded = [row for row in rows if row["rule"]]
    unasked = {row["qset"] for row in concluded[:3]}
    premises = {
        row["question_id"]: [("nobody asks about it" if row["qset"] in unasked else row["facts"][1], "x")]
        for row in concluded
        if row["task"] == "reasoning"
    }
    known = {f"f{number}" for number in range(12) if number % 3}
    right = {row["question_id"] for row in rows if row["qset"].removeprefix("c") in known}
    given = one_line(replace(given, questions=rows, premises=premises), lambda name: name in right)
    by_task = {row[1]: row for row in consistency(given).tables[0].rows}
    # The first three conclusions have no asked premise. Of the other nine, six are about known facts.
    joined = by_task[WITH_PREMISES]
    assert joined[2] == 9 and [joined[4].value, joined[6].value, joined[7].value] == pytest.approx([6 / 9, 0, 3 / 9])
    assert list(by_task) == ["completion", WITH_PREMISES, ALL_TASKS]
    alone = one_line(make_input(facts=12), lambda name: True)
    assert WITH_PREMISES not in {row[1] for row in consistency(alone).tables[0].rows}
