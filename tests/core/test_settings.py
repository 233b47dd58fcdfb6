from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from merkhet.core.errors import InputError
from merkhet.core.settings import Bounds, PositiveInt, Settings, Share, YesNo, describe_type, make_settings


@dataclass(frozen=True)
class Example(Settings):
    """Settings with every kind of constraint."""

    place = "here."

    count: PositiveInt = 1
    limit: PositiveInt | None = None
    rate: Annotated[float, Bounds(gt=0, lt=1)] = 0.5
    share: Share = 0.5
    kind: Literal["near", "far"] = "near"
    exact: YesNo = "no"
    shown: bool = False
    name: str = ""
    edges: tuple[PositiveInt, ...] = (1,)
    weights: list[float] = field(default_factory=list)
    extra: Mapping[str, Any] = field(default_factory=dict)


REFUSED = (
    ({"count": 0}, "here.count must be an integer ≥ 1, got 0"),
    ({"count": True}, "here.count must be an integer ≥ 1, got True"),
    ({"count": 1.5}, "here.count must be an integer ≥ 1, got 1.5"),
    ({"count": "x"}, "here.count must be an integer ≥ 1, got 'x'"),
    ({"count": None}, "here.count must be an integer ≥ 1, got None"),
    ({"limit": 0}, "here.limit must be an integer ≥ 1 or null, got 0"),
    ({"rate": 1}, "here.rate must be a number > 0 and < 1, got 1"),
    ({"rate": math.nan}, "here.rate must be a number > 0 and < 1, got nan"),
    ({"share": "half"}, "here.share must be a number from 0 to 1, got 'half'"),
    ({"share": False}, "here.share must be a number from 0 to 1, got False"),
    ({"kind": "faar"}, "here.kind must be one of near, far, got 'faar'; did you mean 'far'?"),
    ({"exact": 1}, "here.exact must be one of yes, no, got 1"),
    ({"shown": "yes"}, "here.shown must be true or false, got 'yes'"),
    ({"name": 3}, "here.name must be text, got 3"),
    ({"edges": 3}, "here.edges must be a list of integers ≥ 1, got 3"),
    ({"edges": [1, 0]}, "here.edges must be a list of integers ≥ 1, got [1, 0]"),
    ({"weights": [1, "x"]}, "here.weights must be a list of numbers, got [1, 'x']"),
    ({"weights": [math.nan]}, "here.weights must be a list of numbers, got [nan]"),
    ({"extra": 3}, "here.extra must be a mapping of names to values, got 3"),
    ({"cuont": 3}, "here.cuont does not exist; did you mean 'count'?"),
)


def test_a_wrong_value_is_refused_with_its_name_and_what_it_must_be() -> None:
    for values, words in REFUSED:
        with pytest.raises(InputError) as refused:
            make_settings(Example, values)
        assert str(refused.value) == words


def test_right_values_are_kept_as_they_are() -> None:
    values = {"count": 3, "limit": None, "rate": 0.1, "share": 1, "kind": "far", "edges": [1, 2], "extra": {"a": 1}}
    settings = make_settings(Example, values)
    assert {name: getattr(settings, name) for name in values} == values
    assert make_settings(Example, settings) is settings
    assert make_settings(Example, None) == Example()
    assert make_settings(Example, {"exact": True}).exact == "yes"  # YAML reads yes as a boolean.


def test_settings_check_themselves() -> None:
    with pytest.raises(InputError, match="must be an integer ≥ 1, got 0"):
        Example(count=0)


def test_types_in_words() -> None:
    for hint, words in (
        (int | None, "an integer or null"),
        (Literal[-1] | PositiveInt, "-1 or an integer ≥ 1"),
        (list[Literal["a", "b"]], "a list of some of a, b"),
        (dict[str, float], "a mapping of names to numbers"),
        (tuple[tuple[str, str], ...], "a list of lists of texts"),
    ):
        assert describe_type(hint) == words
