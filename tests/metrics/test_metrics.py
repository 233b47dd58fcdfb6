"""Word F1 and exact match by their rule, and metrics found by name."""

from __future__ import annotations

import itertools
import string

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.metrics import METRICS
from merkhet.metrics.metrics import Metric, Responses, as_metric, exact, exact_chance, f1, f1_chance, get_metric
from merkhet.metrics.text_overlap import exact_match, word_f1

WORDS = st.lists(st.sampled_from(["The", "a", "an", "Cat", "cat", "U.S.", "don't", "-", "über", "x"]), max_size=6)
TEXTS = st.builds(lambda words, space: space.join(words), WORDS, st.sampled_from([" ", "  ", "\t", ", "]))


def slow_words(text):
    """Letter by letter: runs of letters that make words are kept but for articles, all else stays where it is."""
    left = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    runs = ["".join(run) for _, run in itertools.groupby(left, key=str.isalnum)]
    return "".join(" " if run in ("a", "an", "the") else run for run in runs).split()


def slow_f1(prediction, answer):
    """Precision and recall, word by word, each word of the answer used once."""
    given, left = slow_words(prediction), slow_words(answer)
    if not given and not left:
        return 1.0
    if not given or not left:
        return 0.0
    wanted, hits = len(left), 0
    for word in given:
        if word in left:
            left.remove(word)
            hits += 1
    if hits == 0:
        return 0.0
    precision, recall = hits / len(given), hits / wanted
    return 2 * precision * recall / (precision + recall)


@settings(deadline=None)
@given(prediction=TEXTS, answers=st.lists(TEXTS, min_size=1, max_size=3))
def test_word_f1_is_the_best_over_the_right_answers(prediction, answers):
    assert word_f1(prediction, answers) == pytest.approx(max(slow_f1(prediction, answer) for answer in answers))
    assert exact_match(prediction, answers) == any(slow_words(prediction) == slow_words(text) for text in answers)


@settings(deadline=None)
@given(prediction=st.text(max_size=20), answer=st.text(max_size=20))
def test_word_f1_of_any_text_is_between_none_and_all(prediction, answer):
    value = word_f1(prediction, [answer])
    assert value == pytest.approx(slow_f1(prediction, answer))
    assert value == word_f1(answer, [prediction])
    assert word_f1(prediction, [prediction]) == 1.0


def test_the_rule_by_hand():
    def check(prediction, answers, f1_value, exact_value):
        assert word_f1(prediction, answers) == pytest.approx(f1_value)
        assert exact_match(prediction, answers) == exact_value

    cases = [
        ("the Netherlands", ["Netherlands"], 1.0, 1.0),
        ("U.S.", ["us"], 1.0, 1.0),
        ("Guinea-Bissau", ["Guinea Bissau"], 0.0, 0.0),
        ("Guinea-Bissau", ["GuineaBissau"], 1.0, 1.0),
        ("New York City", ["New York"], 0.8, 0.0),
        ("York New", ["New York"], 1.0, 0.0),
        ("New York", ["Delhi", "New Delhi"], 0.5, 0.0),
        ("tin tin", ["tin"], 2 / 3, 0.0),
        ("the", ["an"], 1.0, 1.0),
        ("", [""], 1.0, 1.0),
        ("", ["x"], 0.0, 0.0),
        ("x", ["..."], 0.0, 0.0),
        ("x", [], 0.0, 0.0),
        ("«x»", ["x"], 0.0, 0.0),
        ("Theme", ["me"], 0.0, 0.0),
        ("bathe well", ["ba well"], 0.5, 0.0),
    ]
    check_all(check, cases)


def given_tops(*tops) -> Responses:
    count = len(tops)
    candidates = ["New York", "New Delhi", "Paris"]
    return Responses(tops, [["New York"]] * count, [candidates] * count, [[1.0]] * count, [[1]] * count)


def test_tied_tops_are_averaged_and_chance_is_a_candidate_drawn_at_random():
    found = given_tops(["New York"], ["New York", "New Delhi"], ["Paris", "New Delhi"], [])
    assert f1(found).tolist() == pytest.approx([1.0, 0.75, 0.25, 0.0])
    assert exact(found).tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert f1_chance(found).tolist() == pytest.approx([0.5] * 4)
    assert exact_chance(found).tolist() == pytest.approx([1 / 3] * 4)


def test_every_metric_has_a_name_values_chance_and_a_word_about_it():
    found = given_tops(["New York"], ["Paris"])

    def check(name):
        metric = get_metric(name)
        assert metric.name == name
        assert METRICS.about("r@k" if "@" in name else name)
        for values in (metric.values(found), metric.chance(found)):
            assert values.shape == (2,)
            assert np.all((values >= 0) & (values <= 1))

    check_all(check, ["accuracy", "r@1", "r@20", "mrr", "f1", "exact"])


def test_a_metric_that_is_none_is_refused():
    def check(name, said):
        with pytest.raises(InputError) as refused:
            get_metric(name)
        assert str(refused.value).startswith(said)
        assert "\n" not in str(refused.value)

    cases = [
        ("r@0", "r@0: r@ needs a positive integer, as in r@5"),
        ("r@x", "r@x: r@ needs a positive integer, as in r@5"),
        ("r@", "r@: r@ needs a positive integer, as in r@5"),
        ("r@-1", "r@-1: r@ needs a positive integer, as in r@5"),
        ("r@1.5", "r@1.5: r@ needs a positive integer, as in r@5"),
        ("r@²", "r@²: r@ needs a positive integer, as in r@5"),
        ("accurcy", "there is no metric called 'accurcy'; did you mean 'accuracy'?"),
        ("q@5", "there is no metric called 'q@5'; "),
    ]
    check_all(check, cases)


def test_a_plain_function_is_a_metric(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\n\ndef wordy(responses):\n    'How many words the first top has.'\n"
        "    return np.array([len(top[0].split()) for top in responses.top], dtype=float)\n"
    )
    metric = get_metric("mine.py:wordy", tmp_path)
    assert metric.name == "wordy"
    assert metric.chance is None
    assert metric.values(given_tops(["New York"], ["Paris"])).tolist() == [2.0, 1.0]


def test_a_function_may_bring_its_chance_and_what_is_no_function_is_refused():
    def half(responses):
        return np.full(len(responses.top), 0.5)

    half.chance = half
    assert as_metric("half", half).chance is half
    ready = Metric("ready", half, None)
    assert as_metric("other", ready) is ready
    with pytest.raises(InputError, match="neither a Metric nor a function"):
        as_metric("number", 3)


def test_a_metric_can_be_added():
    ready = Metric("own", lambda responses: np.zeros(len(responses.top)), None)
    METRICS.add("own", ready)
    try:
        assert get_metric("own") is ready
    finally:
        METRICS.remove("own")
