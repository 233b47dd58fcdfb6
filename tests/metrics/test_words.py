"""Word F1 over thousands of pairs, against the rule as somebody else would write it down."""

from __future__ import annotations

import itertools
import string

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from merkhet.metrics.text_overlap import exact_match, word_f1

PIECES = (
    *(
        "a",
        "an",
        "the",
        "A",
        "The",
        "AN",
        "theory",
        "another",
        "at",
        "Paris",
        "paris",
        "PARIS",
        "Köln",
        "köln",
        "ÉCOLE",
    ),
    *("U.S.", "us", "don't", "dont", "1,000", "1000", "3.5", "a1", "a_b", "ab", "New", "York", "new-york", "newyork"),
    *("北京", "的", "ß", "SS", "İ", "ﬁ", "а", "a–b", "“the", "l’an", "the…", "a°", "á", "a\u0301", "а́", "x²", "½"),
    *(string.punctuation, *string.punctuation, "–", "“", "”", "’", "…", "«", "。", "\u200b", "\x1f", "\x00", "🙂"),
)
BETWEEN = (" ", " ", " ", "  ", "\t", "\n", "\u00a0", "\u2003", "", "", "-", ", ")


def words(text: str) -> list[str]:
    """Lower case; no ASCII punctuation; no word that is an article; split on white space."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    runs = ["".join(run) for _, run in itertools.groupby(kept, key=str.isalnum)]
    spaced = "".join(" " if run in {"a", "an", "the"} else run for run in runs)
    found, word = [], ""
    for letter in spaced + " ":
        if letter.isspace():
            found += [word] if word else []
            word = ""
        else:
            word += letter
    return found


def f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall; each word of the gold answer is found once."""
    given_words, wanted = words(prediction), words(gold)
    if not given_words or not wanted:
        return 1.0 if given_words == wanted else 0.0
    left, hits = list(wanted), 0
    for word in given_words:
        if word in left:
            left.remove(word)
            hits += 1
    if not hits:
        return 0.0
    precision, recall = hits / len(given_words), hits / len(wanted)
    return 2 * precision * recall / (precision + recall)


def texts(draw: np.random.Generator, count: int) -> list[str]:
    """Texts of a few pieces that matter to the rule, put together at random; some of any characters at all."""
    found = []
    for size in draw.integers(0, 6, count):
        pieces = [PIECES[i] for i in draw.integers(0, len(PIECES), size)]
        blanks = [BETWEEN[i] for i in draw.integers(0, len(BETWEEN), size)]
        text = "".join(itertools.chain.from_iterable(zip(pieces, blanks, strict=True)))
        if draw.random() < 0.1:
            text += "".join(map(chr, draw.integers(1, 0xD7FF, 3)))
        found.append(text)
    return found


@settings(max_examples=8, deadline=None, phases=(Phase.generate,))
@given(seed=st.integers(0, 2**63 - 1))
def test_thousands_of_pairs_have_the_f1_of_the_rule(seed: int) -> None:
    check_pairs(seed, 1000)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, phases=(Phase.generate,))
@given(seed=st.integers(0, 2**63 - 1))
def test_a_hundred_thousand_pairs_have_the_f1_of_the_rule(seed: int) -> None:
    check_pairs(seed, 2000)


def check_pairs(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    predictions, golds = texts(draw, count), texts(draw, count)
    # Every other gold answer shares its beginning with the prediction, so that many agree in part.
    golds[::2] = [f"{one[: len(one) // 2]} {gold}" for one, gold in zip(predictions[::2], golds[::2], strict=True)]
    pairs = list(zip(predictions, golds, strict=True))
    expected = np.array([f1(prediction, gold) for prediction, gold in pairs])
    found = np.array([word_f1(prediction, [gold]) for prediction, gold in pairs])
    wrong = np.flatnonzero(np.abs(found - expected) > 1e-12)
    assert not len(wrong), [(*pairs[i], found[i], expected[i]) for i in wrong[:3]]
    same = [words(prediction) == words(gold) for prediction, gold in pairs]
    assert [exact_match(prediction, [gold]) for prediction, gold in pairs] == same
    assert np.sum((expected > 0) & (expected < 1)) > count / 20


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**63 - 1))
def test_the_best_of_several_predictions_and_answers_counts(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for size in draw.integers(1, 4, 50):
        predictions, golds = texts(draw, size), texts(draw, int(draw.integers(1, 4)))
        best = max(f1(prediction, gold) for prediction in predictions for gold in golds)
        assert word_f1(predictions, golds) == pytest.approx(best)
        same = any(words(prediction) == words(gold) for prediction in predictions for gold in golds)
        assert exact_match(predictions, golds) == same


def test_the_rule_at_its_edges() -> None:
    def check(prediction: str, gold: str, expected: float) -> None:
        assert word_f1(prediction, [gold]) == pytest.approx(expected)
        assert word_f1([prediction], (gold,)) == pytest.approx(expected)

    cases = [
        ("", "", 1.0),
        ("The", "a!", 1.0),
        ("", "Paris", 0.0),
        ("the", "Paris", 0.0),
        ("U.S.", "us", 1.0),
        ("new-york", "New York", 0.0),
        ("Paris Paris", "Paris", 2 / 3),
        ("a–b", "–b", 1.0),
        ("“the cat”", "“ cat”", 1.0),
        ("a theory of the a", "theory of", 1.0),
    ]
    check_all(check, cases)


def test_without_a_prediction_nothing_agrees() -> None:
    assert word_f1([], ["Paris"]) == 0.0
    assert exact_match([], ["Paris"]) == 0.0
