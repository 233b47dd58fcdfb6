"""Units of measurement: known conversions through the base unit."""

from __future__ import annotations

import pytest
from all_cases import check_all

from merkhet.knowledge.quantities import UNITS


def test_known_conversions():
    def check(value, given, wanted, expected):
        source, target = UNITS[given], UNITS[wanted]
        assert source.measures == target.measures
        assert (value * source.factor + source.shift - target.shift) / target.factor == pytest.approx(expected)

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
        ],
    )
    assert UNITS["m"].measures != UNITS["kg"].measures
    assert "furlong" not in UNITS
