"""Numbers with units: conversions that come back, values brought together, groups with a margin."""

from __future__ import annotations

import math
from itertools import product

import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.quantities import UNITS, convert, draw_comparable_groups, read_quantities
from merkhet.knowledge.store import KnowledgeBase

PAIRS = [(one, other) for one, other in product(UNITS, UNITS) if UNITS[one].measures == UNITS[other].measures]


def knowledge_of(*rows: tuple[str, float, str | None], predicate: str = "height") -> KnowledgeBase:
    facts = [{"subject": s, "predicate": predicate, "value": value, "unit": unit} for s, value, unit in rows]
    facts.append({"subject": "x", "predicate": "is", "object": "y"})
    return KnowledgeBase([Chunk(make_table(FACTS, facts))])


def told(table) -> dict[str, float]:
    return dict(zip(table["subject"].to_pylist(), table["value"].to_pylist(), strict=True))


@settings(deadline=None, max_examples=40)
@given(value=st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-250))
def test_every_conversion_comes_back(value):
    for one, other in PAIRS:
        there = convert(value, one, other)
        # Twelve digits are kept of the largest number on the way, which may be a shift of hundreds of degrees.
        shift = (UNITS[one].shift + UNITS[other].shift) / UNITS[one].factor
        assert math.isclose(convert(there, other, one), value, rel_tol=1e-10, abs_tol=1e-11 * shift), (one, other)


def test_known_conversions():
    def check(value, given, wanted, expected):
        assert convert(value, given, wanted) == pytest.approx(expected)

    check_all(
        check,
        [
            (0, "°C", "K", 273.15),
            (100, "°C", "°F", 212),
            (-40, "°F", "°C", -40),
            (32, "degree Fahrenheit", "celsius", 0),
            (0, "K", "°F", -459.67),
            (1, "mi", "km", 1.609344),
            (1, "ft", "in", 12),
            (1, "km²", "ha", 100),
            (1, "t", "lb", 2204.6226218),
            (1, "d", "min", 1440),
            (19.3, "g/cm³", "kg/m³", 19300),
            (1, "Q828224", "dbt:metre", 1000),
            (5, None, None, 5),
            (5, "furlong", "furlong", 5),
        ],
    )


def test_what_cannot_be_converted_is_refused():
    def check(given, wanted, said):
        with pytest.raises(InputError) as refused:
            convert(1.0, given, wanted)
        assert said in str(refused.value)

    check_all(
        check,
        [
            ("m", "kg", "m measures length and kg mass: they cannot be compared"),
            ("m", None, "a number without a unit cannot be compared with one in m"),
            (None, "kg", "a number without a unit cannot be compared with one in kg"),
            ("m", "furlong", "m cannot be converted to furlong: unknown unit 'furlong'"),
            ("furlong", "m", "unknown unit 'furlong'"),
        ],
    )


def test_values_are_brought_to_the_most_frequent_unit_or_the_one_that_is_asked_for():
    knowledge = knowledge_of(("a", 2.0, "m"), ("b", 3.0, "m"), ("c", 1.0, "km"), ("d", 50.0, "cm"))
    table = read_quantities(knowledge, "height")
    assert told(table) == pytest.approx({"a": 2, "b": 3, "c": 1000, "d": 0.5})
    assert set(table["unit"].to_pylist()) == {"m"}
    assert told(read_quantities(knowledge, "height", "km"))["d"] == pytest.approx(0.0005)
    assert told(read_quantities(knowledge_of(("a", 1.0, None), ("b", 2.0, None)), "height")) == {"a": 1, "b": 2}
    facts = {row["fact_id"]: row["subject"] for row in knowledge.facts("height").to_pylist()}
    assert [facts[key] for key in table["fact_id"].to_pylist()] == table["subject"].to_pylist()


def test_a_subject_with_several_values_is_left_out_unless_they_are_the_same():
    knowledge = knowledge_of(("a", 2.0, "m"), ("a", 200.0, "cm"), ("b", 2.0, "m"), ("b", 2.1, "m"), ("c", 0.0, "m"))
    assert told(read_quantities(knowledge, "height")) == pytest.approx({"a": 2, "c": 0})


def test_numbers_that_cannot_be_brought_together_are_refused():
    with pytest.raises(InputError, match="they cannot be compared"):
        read_quantities(knowledge_of(("a", 2.0, "m"), ("b", 3.0, "m"), ("c", 3.0, "kg")), "height")
    with pytest.raises(InputError, match="without a unit"):
        read_quantities(knowledge_of(("a", 2.0, "m"), ("b", 3.0, None)), "height")
    with pytest.raises(InputError, match="'heigt' has no numbers; did you mean 'height'"):
        read_quantities(knowledge_of(("a", 2.0, "m")), "heigt")
    with pytest.raises(InputError, match="'is' has no numbers"):
        read_quantities(knowledge_of(("a", 2.0, "m")), "is")


VALUES = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 1.05]), min_size=1, max_size=20)


@settings(deadline=None, max_examples=15)
@given(
    values=VALUES,
    size=st.integers(2, 4),
    count=st.integers(1, 5),
    seed=st.integers(0, 3),
    margin=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_groups_have_their_margin_and_each_subject_stands_once(values, size, count, seed, margin):
    table = read_quantities(knowledge_of(*[(f"s{place}", value, None) for place, value in enumerate(values)]), "height")
    groups = draw_comparable_groups(table, size, count, seed, margin=margin)
    assert len(groups) <= count and all(len(group) == size for group in groups)
    subjects = [one[0] for group in groups for one in group]
    assert len(set(subjects)) == len(subjects)
    for group in groups:
        first, second = group[0][1], group[1][1]
        assert first - second > margin * max(abs(first), abs(second))
        assert [one[1] for one in group] == sorted([one[1] for one in group], reverse=True)
        assert all(values[int(subject[1:])] == value for subject, value, _ in group)
    turned = table.take(list(range(table.num_rows))[::-1])
    assert draw_comparable_groups(turned, size, count, seed, margin=margin) == groups


def test_the_margin_is_a_share_of_the_larger_number():
    def groups(*values):
        table = read_quantities(
            knowledge_of(*[(f"s{place}", value, None) for place, value in enumerate(values)]), "height"
        )
        return [[value for _, value, _ in group] for group in draw_comparable_groups(table, 2, 1, 0, margin=0.5)]

    assert groups(1.0, 1.6) == [], "0.6 is more than half of 1.0, but not of 1.6"
    assert groups(1.0, 2.1) == [[2.1, 1.0]]


def test_real_numbers():
    with KnowledgeBase.load(["elements"]) as knowledge:
        table = read_quantities(knowledge, "atomic-number")
    assert max(told(table).values()) == 118
    groups = draw_comparable_groups(table, 3, 10, 0)
    assert len(groups) == 10
    assert groups != draw_comparable_groups(table, 3, 10, 1)
    assert all(math.isfinite(value) for group in groups for _, value, _ in group)
