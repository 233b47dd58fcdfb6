"""What guessing gives is the plain mean over all that was offered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.metrics.text_overlap import bag_f1, exact_match, mean_agreement, same_words, word_f1

texts = st.text(alphabet="ab .", max_size=6).map(lambda text: text.replace(".", " the "))
lists = st.lists(texts, max_size=6).map(tuple)


@pytest.mark.parametrize(("measure", "of_bags"), [(word_f1, bag_f1), (exact_match, same_words)])
@settings(deadline=None)
@given(shared=lists, own=st.lists(lists, max_size=4), right=st.data())
def test_the_mean_is_that_of_trying_every_text(measure, of_bags, shared, own, right):
    offered = [shared, *own, shared]
    answers = [right.draw(st.lists(texts, min_size=1, max_size=3)) for _ in offered]
    expected = [
        sum(measure(text, gold) for text in some) / len(some) if some else 0.0
        for some, gold in zip(offered, answers, strict=True)
    ]
    assert mean_agreement(of_bags, offered, answers) == pytest.approx(expected)
