"""Ids made of content: the same on every machine, whatever the order of keys."""

from __future__ import annotations

import hashlib
import json

from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.ids import content_id, derived_seed, derived_seeds, digest
from merkhet.core.schemas import candidate_set_id, fact_id, question_id

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)

FACT = {"subject": "Q1", "predicate": "capital", "object": "Q2", "start": "1990"}
QUESTION = {
    "suite": "own",
    "task": "completion",
    "language": "en",
    "prompt": "The capital of France is [MASK].",
    "answers": ["Paris"],
    "target": "Paris",
    "choices": ["Paris", "Rome"],
}


def test_ids_are_these_on_every_machine():
    assert digest({"b": 1, "a": "ü"}) == hashlib.sha256('{"a":"ü","b":1}'.encode()).hexdigest()
    assert content_id("q", "a", ["b"]) == "q_" + hashlib.sha256(b'["a",["b"]]').hexdigest()[:20]
    assert content_id("q", "a", ["b"]) == "q_119b2cccb78d8af00d43"
    assert fact_id(FACT) == "f_e16c2e662ad8de016fb3"
    assert question_id(QUESTION) == "q_26369527116e7629425c"
    assert derived_seed(0, "completion") == 14181308241905089191


@settings(deadline=None)
@given(content=st.dictionaries(st.text(max_size=5), VALUES, min_size=2, max_size=6), data=st.data())
def test_order_of_keys_does_not_matter(content, data):
    order = data.draw(st.permutations(list(content)))
    assert digest({key: content[key] for key in order}) == digest(content)


@settings(deadline=None)
@given(one=VALUES, other=VALUES)
def test_other_content_has_another_id(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (content_id("x", one) == content_id("x", other)) == same
    assert (derived_seed(one) == derived_seed(other)) == same


def test_where_a_fact_comes_from_does_not_change_it():
    def check(column):
        assert fact_id({**FACT, column: "elsewhere"}) == fact_id(FACT)

    check_all(check, ["domain", "source", "rule", "premises"])


def test_what_a_fact_says_changes_it():
    def check(column):
        assert fact_id({**FACT, column: "other"}) != fact_id(FACT)

    check_all(check, ["subject", "predicate", "object", "value", "unit", "start", "end"])


def test_where_a_question_stands_does_not_change_it():
    def check(column):
        assert question_id({**QUESTION, column: "elsewhere"}) == question_id(QUESTION)

    check_all(check, ["domain", "split", "qset", "facts", "rule", "template"])


def test_what_is_asked_changes_a_question():
    def check(column):
        assert question_id({**QUESTION, column: "other"}) != question_id(QUESTION)

    check_all(check, [*QUESTION, "candidate_set"])


def test_candidate_sets_keep_their_name_and_change_with_their_content():
    assert candidate_set_id("capitals", ["Paris"]).startswith("capitals-")
    assert candidate_set_id("capitals", ["Paris"]) != candidate_set_id("capitals", ["Rome"])


@given(st.lists(VALUES, max_size=3), st.lists(st.text(max_size=8), max_size=4))
def test_seeds_of_many_endings_are_those_of_each(parts, endings):
    assert derived_seeds(parts, endings) == [derived_seed(*parts, ending) for ending in endings]
