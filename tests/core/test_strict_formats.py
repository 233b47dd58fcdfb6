"""JSON and YAML that libraries read silently in part: refused with the place, and all other content read as ever."""

from __future__ import annotations

import json
import math

import pytest
import yaml
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.strict_json import decode_json
from merkhet.core.text_formats import parse_json, parse_yaml

TEXTS = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["a", '"', "\\", "NaN", "1e999", "{", ","])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_json_that_is_none_is_refused_with_its_place() -> None:
    def check(text: str, said: str) -> None:
        with pytest.raises(InputError, match=r"^x.json: not valid JSON .* Correct it\.$") as refused:
            parse_json(text, "x.json", "Correct it.")
        assert f"({said})" in str(refused.value)

    cases = {
        '{"a": NaN}': "NaN is not a number in JSON at column 7",
        '["NaN",\n -Infinity]': "-Infinity is not a number in JSON at line 2, column 2",
        "[1, Infinity]": "Infinity is not a number in JSON at column 5",
        '["1e999", 1e999]': "the number is too large at column 11",
        "[-1E+0309]": "the number is too large at column 2",
        "[" + "9" * 400 + ".0]": "the number is too large at column 2",
        '{"a": 1, "b": {"a": 1},\n "a": 2}': "the key 'a' is repeated at line 2, column 2",
        '{"x": [{"y": {"é": [], "\\u00e9": {}}}]}': "the key 'é' is repeated at column 24",
        '{"": 1, "": NaN}': "the key '' is repeated at column 9",
    }
    check_all(check, cases.items())


@settings(deadline=None, max_examples=300)
@given(tree=TREES, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_other_json_is_read_as_by_the_library(tree: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    assert decode_json(text) == json.loads(text) == tree


@settings(deadline=None, max_examples=200)
@given(
    tree=TREES, keys=st.dictionaries(TEXTS, st.integers(), min_size=1, max_size=4), odd=st.booleans(), data=st.data()
)
def test_one_fault_anywhere_is_found_where_it_is(tree: object, keys: dict, odd: bool, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(keys)))
    fault = "NaN" if odd else f"{json.dumps(name)}: 1"
    inner = f"[{fault}" if odd else json.dumps(keys)[:-1] + f", {fault}"
    text = f"[{json.dumps(tree)}, {inner}{']' if odd else '}'}, {json.dumps(tree)}]"
    with pytest.raises(json.JSONDecodeError) as refused:
        decode_json(text)
    assert refused.value.pos == len(f"[{json.dumps(tree)}, {inner}") - len(fault)


def test_files_of_other_programs_may_have_infinite_numbers() -> None:
    content = parse_json('{"time_step_limit": [0.0, Infinity]}', "config.json", "Copy it.", strict=False)
    assert math.isinf(content["time_step_limit"][1])


def test_keys_that_are_repeated_in_yaml_are_all_refused_with_their_lines() -> None:
    def check(text: str, *said: str) -> None:
        with pytest.raises(InputError) as refused:
            parse_yaml(text, "x.yaml")
        assert str(refused.value).splitlines() == [f"x.yaml, {one}. Remove or rename one." for one in said]

    cases = [
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is already on line 1"),
        (
            "a: 1\n'a': 2\n\"a\": 3",
            "line 2: the key 'a' is already on line 1",
            "line 3: the key 'a' is already on line 1",
        ),
        ("x:\n  - y: {p: 1,\n       p: 2}", "line 3: the key 'p' is already on line 2"),
        ("yes: 1\ntrue: 2\n", "line 2: the key 'true' is already on line 1"),
        ("16: 1\n0x10: 2\n", "line 2: the key '0x10' is already on line 1"),
        ("b: &b {k: 1}\nc: {<<: *b, k: 2, k: 3}", "line 2: the key 'k' is already on line 2"),
        ("c: {<<: {a: 1}, <<: {b: 2}}", "line 1: the key '<<' is already on line 1"),
        ("c: &c {a: 1, a: 2}\nd: *c\ne: *c", "line 1: the key 'a' is already on line 1"),
        # Libyaml does not read what has so many brackets.
        ("x: [" + "[], " * 120 + "{a: 1, a: 2}]", "line 1: the key 'a' is already on line 1"),
        ("? a\n: 1\n? a\n: 2\n", "line 3: the key 'a' is already on line 1"),
    ]
    check_all(check, cases)


def test_yaml_with_merged_and_similar_keys_is_read_as_ever() -> None:
    for text in (
        "b: &b {k: 1, l: 2}\nc: {k: 2, <<: *b}\nd: {<<: [*b, {k: 3}], m: 1}",
        "2: a\n'2': b\n'yes': c\nyes: d\n",
        "a: {a: {a: 1}}\nb: {a: 1}\nx: [{a: 1}, {a: 2}]",
        "a: &x [1]\nb: *x\nc: *x",
    ):
        assert parse_yaml(text, "x.yaml") == yaml.safe_load(text)
