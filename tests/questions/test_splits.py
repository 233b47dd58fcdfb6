"""Splits by fact: shares are met, mirror images fall together, and what straddles is refused."""

from __future__ import annotations

import hashlib

import duckdb
import pyarrow as pa
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, QUESTIONS, make_table
from merkhet.questions.splits import check_splits, split_sql

SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


def by_hand(first, second, shares, seed):
    """The definition, one pair at a time."""
    low, high = sorted([(first or "").strip(" ").lower(), (second or "").strip(" ").lower()])
    drawn = int(hashlib.md5(f"{seed}\x1f{low}\x1f{high}".encode()).hexdigest()[:13], 16) / 2**52
    bound = 0.0
    for name, share in shares.items():
        bound += share
        if drawn < bound:
            return name
    return list(shares)[-1]


def assigned(first, second, shares, seed):
    """The splits that the SQL assigns to pairs of names."""
    table = pa.table({"row": range(len(first)), "first": pa.array(first, pa.string()), "second": second})
    with duckdb.connect() as connection:
        connection.register("pairs", table)
        query = f"select {split_sql('first', 'second', shares, seed)} from pairs order by row"
        return [split for (split,) in connection.sql(query).fetchall()]


names = st.one_of(st.none(), st.text(alphabet="abC é中'", max_size=5))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(names, names), min_size=1, max_size=20), st.integers(0, 3), st.randoms())
def test_splits_are_those_of_the_definition_and_pairs_have_no_order(pairs, seed, shuffler):
    def of_pairs(of):
        first, second = zip(*of, strict=True)
        return assigned(first, pa.array(second, pa.string()), SHARES, seed)

    found = of_pairs(pairs)
    assert found == [by_hand(*pair, SHARES, seed) for pair in pairs]
    assert found == of_pairs([(second, first) for first, second in pairs])
    together = list(zip(pairs, found, strict=True))
    shuffler.shuffle(together)
    assert of_pairs([pair for pair, _ in together]) == [split for _, split in together]


def test_shares_are_met():
    first = pa.array([f"entity {number}" for number in range(20_000)])
    second = pa.array([f"place {number % 7}" for number in range(20_000)])
    found = assigned(first, second, SHARES, 0)
    for name, share in SHARES.items():
        assert found.count(name) / len(found) == pytest.approx(share, abs=0.015)
    assert found != assigned(first, second, SHARES, 1)
    assert set(assigned(first, second, {"it's": 1.0}, 0)) == {"it's"}


def test_wrong_shares_are_refused():
    def check(shares):
        with pytest.raises(InputError, match="above 0 and add up to 1"):
            split_sql("a", "b", shares, 0)

    check_all(check, [{}, {"train": 0.5}, {"train": 1.2, "test": -0.2}, {"a": float("nan"), "b": 1.0}])


FACTS_OF = make_table(
    FACTS,
    [
        {"fact_id": "f_capital", "subject": "France", "predicate": "capital", "object": "Paris"},
        {"fact_id": "f_inverse", "subject": "Paris", "predicate": "capital of", "object": "France"},
        {"fact_id": "f_other", "subject": "Italy", "predicate": "capital", "object": "Rome"},
        {"fact_id": "f_iron", "subject": "iron", "predicate": "melting point", "value": 1538},
        {"fact_id": "f_steel", "subject": "steel", "predicate": "melting point", "value": 1538},
    ],
)


def asked(*rows):
    made = []
    for number, (split, facts, others) in enumerate(rows):
        row = {"question_id": f"q_{number}", "prompt": f"{number} [MASK]", "answers": ["a"], "target": "a"}
        made.append(row | {"choices": ["a", "b"], "split": split, "facts": facts} | others)
    return make_table(QUESTIONS, made)


def test_what_may_stand_apart():
    def check(rows):
        check_splits(asked(*rows), FACTS_OF)

    check_all(
        check,
        [
            [("train", ["f_capital"], {}), ("train", ["f_inverse"], {}), ("test", ["f_other"], {})],
            [("train", ["f_iron"], {}), ("test", ["f_steel"], {})],
            [("train", ["f_other", "f_capital"], {"rule": "TransitiveOP"}), ("test", ["f_capital"], {})],
            [("train", ["f_capital"], {}), (None, ["f_capital"], {})],
            [("train", [], {}), ("test", [], {}), ("test", ["f_unknown"], {})],
        ],
    )


def test_what_straddles_is_refused_with_both_questions():
    def check(rows, said):
        with pytest.raises(InputError) as refused:
            check_splits(asked(*rows), FACTS_OF)
        assert said in str(refused.value) and "\n" not in str(refused.value)
        with pytest.raises(InputError) as again:
            check_splits(asked(*rows).take([1, 0]), FACTS_OF)
        assert str(again.value) == str(refused.value)

    check_all(
        check,
        [
            (
                [("train", ["f_capital"], {}), ("test", ["f_capital"], {})],
                "the question '1 [MASK]' in test (France capital Paris) and the question '0 [MASK]' in "
                "train (France capital Paris) are in different splits, but a fact's questions belong to "
                "one split",
            ),
            (
                [("train", ["f_unknown"], {}), ("dev", ["f_unknown"], {})],
                "the question '1 [MASK]' in dev and",
            ),
            (
                [("train", ["f_capital"], {}), ("test", ["f_inverse"], {})],
                "the question '1 [MASK]' in test (Paris capital of France) and the question '0 [MASK]' "
                "in train (France capital Paris) are in different splits, but facts about the same "
                "two entities",
            ),
            (
                [("train", ["f_other", "f_capital"], {"rule": "comparison"}), ("test", ["f_capital"], {})],
                "a fact's questions belong to one split",
            ),
            (
                [("train", ["f_iron", "f_steel"], {}), ("test", ["f_steel"], {})],
                "a fact's questions belong to one split",
            ),
            (
                [("train", ["f_other"], {"rule": "InverseOP"}), ("test", ["f_other"], {"rule": "InverseOP"})],
                "a fact's questions belong to one split",
            ),
            (
                [("train", ["f_other"], {"prompt": "The [MASK]"}), ("dev", ["f_iron"], {"prompt": "the  [MASK]"})],
                "the question 'the  [MASK]' in dev and the question 'The [MASK]' in train are in different "
                "splits, but the same prompt belongs to "
                "one",
            ),
        ],
    )


PROVED = make_table(
    FACTS,
    [
        {"fact_id": "f_lies", "subject": "Lille", "predicate": "city in", "object": "France"},
        {"fact_id": "f_pays", "subject": "France", "predicate": "currency", "object": "euro"},
        {"fact_id": "f_tender", "subject": "euro", "predicate": "tender of", "object": "France"},
        {"fact_id": "f_axiom", "subject": "city currency", "predicate": "rdfs:subPropertyOf", "object": "money"},
        {"fact_id": "f_rule", "subject": "a", "predicate": "b", "object": "c", "source": "rules/rules.yaml"},
        {
            **{"fact_id": "f_city", "subject": "Lille", "predicate": "city currency", "object": "euro"},
            **{"rule": "chain", "premises": ["f_lies", "f_pays", "f_rule"]},
        },
        {
            **{"fact_id": "f_money", "subject": "Lille", "predicate": "money", "object": "euro"},
            **{"rule": "rdfs7", "premises": ["f_city", "f_axiom"]},
        },
    ],
)
CONCLUDED = {"rule": "Sub-relation"}


def test_premises_of_a_proof_belong_to_the_split_of_the_conclusion() -> None:
    """f_money follows from f_city, and this from f_lies and f_pays; f_tender is about the pair of f_pays."""
    asked_here = ("test", ["f_money", "f_city"], CONCLUDED)

    def stands(rows):
        check_splits(asked(*rows), PROVED, premises=True)

    check_all(
        stands,
        [
            [asked_here, ("test", ["f_lies"], {}), ("test", ["f_pays"], {})],
            [asked_here, ("train", ["f_axiom"], {}), ("train", ["f_rule"], {})],
            [asked_here, (None, ["f_pays"], {})],
        ],
    )

    def straddles(rows):
        check_splits(asked(*rows), PROVED)
        with pytest.raises(InputError, match=r"and so do those of its conclusions|facts about the same two entities"):
            check_splits(asked(*rows), PROVED, premises=True)

    check_all(
        straddles,
        [
            [asked_here, ("train", ["f_lies"], {})],
            [asked_here, ("dev", ["f_pays"], {})],
            [asked_here, ("train", ["f_tender"], {})],
            [("test", ["f_city", "f_lies", "f_pays"], {"rule": "SubOP(OPChain)"}), ("train", ["f_pays"], {})],
        ],
    )
