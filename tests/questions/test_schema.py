"""A schema of a benchmark is checked when it is read, in words that say what to mend."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.questions.schema import read_schema

GOOD: dict[str, Any] = {
    "domains": {"geography": "general"},
    "relations": {
        "capital": {
            "domain": "geography",
            "predicate": ["capital", "P36"],
            "ask": ["object", "subject"],
            "templates": ["The capital of {the subject} is {object}."],
            "scopes": [{"kind": "city", "templates": ["The city {object} is the capital of {the subject}."]}],
        }
    },
    "hierarchies": {"continent": {"aspect": "continent"}},
    "comparisons": {"area": {"most": ["Of {members}, the largest is [MASK]."]}},
    "frames": {
        "checking": ['Is "{statement}" true? [MASK].'],
        "choices": ["One of {choices}: {statement}"],
        "distinction": ["Of {members}, [MASK] is the outlier by {aspect}."],
    },
}


def write(folder: Path, content: Any) -> Path:
    path = folder / "schema.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_good_schema_is_read_whole(tmp_path: Path) -> None:
    found = read_schema(write(tmp_path, GOOD))
    capital = found.relations["capital"]
    assert capital.predicates == ("capital", "P36")
    assert capital.asks == ("object", "subject")
    assert capital.scopes[0].kind == "city"
    assert found.hierarchies["continent"].predicates == ("continent",)
    assert found.comparisons["area"].least == ()
    assert found.names() == {"capital": "capital", "continent": "continent", "area": "area"}


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    def check(place: tuple[str, ...], value: Any, words: str) -> None:
        content = copy.deepcopy(GOOD)
        inside: Any = content
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = value
        with pytest.raises(InputError) as error:
            read_schema(write(tmp_path, content))
        assert words in str(error.value)
        assert "\n" not in str(error.value)

    check_all(
        check,
        [
            (("relations", "capital", "templates"), [], "relation 'capital' has no templates"),
            (("relations", "capital"), None, "relation 'capital' has no templates"),
            (("relations", "capital", "templates"), ["The capital is {object}."], "must name {subject} exactly once"),
            (("relations", "capital", "templates"), ["{subjekt} has {object} and {subject}."], "{subjekt}"),
            (
                ("relations", "capital", "templates"),
                ["{an subject} has {object}."],
                "'an' in {an subject} is not a form",
            ),
            (("relations", "capital", "templates"), ["{subject} has [MASK] and {object}."], "has a slot"),
            (("relations", "capital", "templates"), ["{subject} has {object} and }."], "outside of any placeholder"),
            (("relations", "capital", "templates"), "one sentence", "must be a list of sentences"),
            (("relations", "capital", "ask"), "objekt", "'ask' is 'objekt'; did you mean 'object'?"),
            (("relations", "capital", "domain"), "geografy", "the domain 'geografy' is not declared; did you mean"),
            (("relations", "capital", "template"), ["x"], "there is no key 'template'; did you mean 'templates'?"),
            (("relations", "capital", "complete"), "objct", "'complete' is 'objct'; did you mean 'object'?"),
            (("relations", "capital", "functional"), "yes", "'functional' must be true or false, got 'yes'"),
            (
                ("relations", "capital", "scopes"),
                [{"kind": "city"}],
                "a scope must have a 'kind' and 'templates', got {'kind': 'city'}",
            ),
            (("domains", "geography"), "generl", "unknown knowledge type 'generl'; did you mean 'general'?"),
            (("hierarchies", "continent"), {"form": "a"}, "hierarchy 'continent' has no 'aspect'"),
            (("hierarchies", "continent", "form"), "many", "'form' is 'many'"),
            (("comparisons", "area"), {"apart": 0.1}, "comparison 'area' has no templates"),
            (("comparisons", "area", "apart"), -1, "'apart' must be a share such as 0.1, got -1"),
            (
                ("comparisons", "area", "most"),
                ["Of {members}, one is the largest."],
                "has 0 slots; write [MASK] exactly",
            ),
            (("frames", "checking"), ["Is it true? [MASK]."], "must name {statement} exactly once"),
            (("frames", "checking"), ["{statement} [MASK] or [MASK]"], "has 2 slots"),
            (("frames", "choices"), ["{choices}: {statement} [MASK]"], "has 1 slot; write [MASK] nowhere"),
            (("frames", "chekking"), ["x"], "there are no frames for 'chekking'; did you mean 'checking'?"),
            (("relationen",), {}, "there is no key 'relationen'; did you mean 'relations'?"),
        ],
    )


def test_what_is_no_schema_is_refused(tmp_path: Path) -> None:
    def check(content: str) -> None:
        with pytest.raises(InputError):
            read_schema(write(tmp_path, content))
        with pytest.raises(InputError, match="there is no file"):
            read_schema(tmp_path / "absent.yaml")

    check_all(check, ["- a\n- b\n", "a: [", "relations: 3\n"])


def test_all_faults_of_a_schema_are_named_at_once(tmp_path: Path) -> None:
    content = {
        "domains": {"geography": "generl"},
        "relations": {
            "one": {"ask": "objekt", "templates": ["{subject} has [MASK].", "{subjekt} is {object}."], "complete": "x"},
            "two": {"templates": []},
            "three": {"domain": "botany", "templates": ["{subject} is {object}."]},
        },
        "frames": {"checking": ["Is it? [MASK]."], "chekking": ["x"]},
    }
    with pytest.raises(InputError) as error:
        read_schema(write(tmp_path, content))
    faults = str(error.value).split("\n")
    for words in (
        *("knowledge type 'generl'", "'ask' is 'objekt'", "has a slot", "{subjekt}", "'complete' is 'x'"),
        *("relation 'two' has no templates", "the domain 'botany'", "name {statement} exactly once", "'chekking'"),
    ):
        assert sum(words in fault for fault in faults) == 1, words
    assert len(faults) == 9 and all("schema.yaml" in fault for fault in faults)
