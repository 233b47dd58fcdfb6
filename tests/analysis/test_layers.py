from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linguistic_runs import LAYERS, make_input, make_scores

from merkhet.analysis.layer_accuracy import layers


def with_accuracy(given, level):
    """The run in which the answers of each method are right in so many of the questions, the first ones."""
    ids = sorted(name for name, question in given.questions_by_id.items() if question.words)
    answers = []
    for answer in given.answers:
        if answer["probe"] == "compare":
            right = ids.index(answer["question_id"]) < level(answer["method"]) * len(ids)
            answer = {**answer, "gold_ranks": [1.0 if right else 2.0], "gold_ties": [1]}
        answers.append(answer)
    changed = replace(given, answers=answers)
    return replace(changed, scores=make_scores(changed))


def test_every_layer_stands_where_it_lies():
    given = make_input(each=40)
    found = layers(given)
    scores = {
        (row["model"], row["method"]): row["value"]
        for row in given.scores
        if row["probe"] == "compare" and row["metric"] == "accuracy" and row["domain"] is None
    }
    drawn = {(row["line"], row["x"]): row["value"] for row in found.figures[0].rows}
    assert len(drawn) == 3 * (LAYERS + 1)
    for (model, layer), value in drawn.items():
        assert value == scores[model, "word" if layer == LAYERS else f"word@{layer}"]
    assert [row[0] for row in found.tables[1].rows] == [str(layer) for layer in range(LAYERS + 1)]
    assert not any("random" in sentence for sentence in found.sentences)


def test_a_layer_that_is_clearly_best_is_said_to_be():
    given = with_accuracy(make_input(each=60, skill={"bert": 0.5}), lambda method: 0.9 if method == "word@2" else 0.5)
    found = layers(given)
    (row,) = found.tables[0].rows
    model, best, accuracy, last, ahead, p, checked = row
    assert (model, best) == ("bert", "2") and last == pytest.approx(0.5) and accuracy.value == pytest.approx(0.9)
    assert ahead.value == pytest.approx(0.4) and ahead.low > 0 and p < 0.001 * LAYERS
    assert checked == pytest.approx(0.4, abs=0.15)
    assert "layer 2 has the best accuracy (90.0%, the last 50.0%), 40.0 points ahead of the last" in found.sentences[0]


def test_the_best_of_many_that_are_alike_is_not_called_better():
    found = layers(make_input(each=30, skill={"bert": 0.0}))
    if found.tables[0].rows[0][4] is not None:
        assert "does not differ significantly from the last" in found.sentences[0]
    equal = layers(with_accuracy(make_input(skill={"bert": 0.5}), lambda method: 0.5))
    assert equal.tables[0].rows[0][4:] == (None, None, None)
    assert equal.sentences == ("Of 5 layers of bert, no layer has a better accuracy than the last (50.0%).",)


def test_choosing_among_equal_layers_flatters_but_the_cross_check_does_not():
    gains, checks = [], []
    for seed in range(12):
        (row,) = layers(make_input(each=30, seed=seed, skill={"bert": 0.0}, answers=level_answers(seed))).tables[0].rows
        gains.append(0.0 if row[4] is None else row[4].value)
        checks.append(row[6] or 0.0)
    assert np.mean(gains) > 0.05 and abs(np.mean(checks)) < np.mean(gains) / 2


def level_answers(seed):
    """Every layer is a coin."""
    given = make_input(each=30, seed=seed, skill={"bert": 0.0}, scores=[])
    generator = np.random.default_rng(seed)
    return [
        {**answer, "gold_ranks": [float(generator.integers(1, 3))], "gold_ties": [1]}
        if answer["probe"] == "compare"
        else answer
        for answer in given.answers
    ]


def test_where_layers_are_missing_the_last_has_no_number():
    given = make_input(each=20)
    kept = [answer for answer in given.answers if answer["method"] not in ("word@0", "word@1")]
    changed = replace(given, answers=kept)
    found = layers(replace(changed, scores=make_scores(changed)))
    assert [row[0] for row in found.tables[1].rows] == ["2", "3", "last"]


def test_masked_layers_stand_beside_those_of_the_word():
    given = make_input(each=20)
    more = [
        {**answer, "method": answer["method"].replace("word", "masked")}
        for answer in given.answers
        if answer["method"].startswith("word@")
    ]
    changed = replace(given, answers=[*given.answers, *more])
    found = layers(replace(changed, scores=make_scores(changed)))
    assert {row["line"] for row in found.figures[0].rows} >= {"bert (word)", "bert (masked)"}


def test_without_layers_there_is_nothing_to_say():
    given = make_input()
    changed = replace(given, answers=[answer for answer in given.answers if "@" not in answer["method"]])
    assert layers(replace(changed, scores=make_scores(changed))) is None
