"""Numeric facts with units: values made comparable, and pairs or groups that can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.knowledge.store import KnowledgeBase


@dataclass(frozen=True)
class Unit:
    """What a unit measures, and how to come to the base unit of it: value × factor + shift."""

    measures: str
    factor: float
    shift: float = 0.0


def _units() -> dict[str, Unit]:
    """Units by symbol, by the word a source may use, by Wikidata's item and by DBpedia's datatype."""
    known: dict[str, Unit] = {}

    def add(measures: str, factor: float, *names: str, shift: float = 0.0) -> None:
        for name in names:
            known[name] = Unit(measures, factor, shift)

    add("length", 1.0, "m", "metre", "meter", "Q11573", "dbt:metre")
    add("length", 1e-3, "mm", "millimetre", "millimeter", "Q174789", "dbt:millimetre")
    add("length", 1e-2, "cm", "centimetre", "centimeter", "Q174728", "dbt:centimetre")
    add("length", 1e3, "km", "kilometre", "kilometer", "Q828224", "dbt:kilometre")
    add("length", 0.3048, "ft", "foot", "feet", "Q3710", "dbt:foot")
    add("length", 0.0254, "in", "inch", "Q218593", "dbt:inch")
    add("length", 1609.344, "mi", "mile", "Q253276", "dbt:mile")
    add("length", 1e-12, "pm", "picometre", "picometer")
    add("area", 1.0, "m²", "m2", "square metre", "Q25343", "dbt:squareMetre")
    add("area", 1e6, "km²", "km2", "square kilometre", "square kilometer", "Q712226", "dbt:squareKilometre")
    add("area", 1e4, "ha", "hectare", "Q35852", "dbt:hectare")
    add("mass", 1.0, "kg", "kilogram", "Q11570", "dbt:kilogram")
    add("mass", 1e-3, "g", "gram", "Q41803", "dbt:gram")
    add("mass", 1e3, "t", "tonne", "Q191118")
    add("mass", 0.45359237, "lb", "pound", "Q100995", "dbt:pound")
    add("time", 1.0, "s", "second", "Q11574", "dbt:second")
    add("time", 60.0, "min", "minute", "Q7727", "dbt:minute")
    add("time", 3600.0, "h", "hour", "Q25235", "dbt:hour")
    add("time", 86400.0, "d", "day", "Q573", "dbt:day")
    add("temperature", 1.0, "K", "kelvin", "Q11579", "dbt:kelvin")
    add("temperature", 1.0, "°C", "celsius", "degree Celsius", "Q25267", "dbt:degreeCelsius", shift=273.15)
    add("temperature", 5 / 9, "°F", "fahrenheit", "degree Fahrenheit", "Q42289", shift=459.67 * 5 / 9)
    add("density", 1.0, "kg/m³", "kg/m3", "dbt:kilogramPerCubicMetre")
    add("density", 1e3, "g/cm³", "g/cm3", "Q13147228")
    return known


UNITS = _units()


def convert(value: float, given: str | None, wanted: str | None) -> float:
    """A value in another unit; refuses units that measure different things, or that merkhet does not know."""
    if given == wanted:
        return value
    for unit in (given, wanted):
        if unit is None:
            raise InputError(f"a number without a unit cannot be compared with one in {given or wanted}")
        if unit not in UNITS:
            raise InputError(f"{given} cannot be told in {wanted}: merkhet does not know the unit {unit!r}")
    one, other = UNITS[str(given)], UNITS[str(wanted)]
    if one.measures != other.measures:
        raise InputError(f"{given} measures {one.measures} and {wanted} {other.measures}: they cannot be compared")
    # Twelve digits: what was 54.4 K less a shift is -218.75 °C, not -218.74999999999997.
    return float(f"{(value * one.factor + one.shift - other.shift) / other.factor:.12g}")


def read_quantities(knowledge: KnowledgeBase, predicate: str, unit: str | None = None) -> pa.Table:
    """The values of a predicate in one unit (the most frequent one if none is named): subject, value, unit, fact_id.

    A subject with several values that differ is left out: it has no one place in an order. Refuses a predicate
    without values, and units that cannot be brought together.
    """
    rows = knowledge.query(
        "select subject, value, unit, fact_id from facts where predicate = $p and value is not null order by fact_id",
        {"p": predicate},
    ).to_pylist()
    if not rows:
        with_values = knowledge.query("select distinct predicate from facts where value is not null")["predicate"]
        raise InputError(f"{predicate!r} has no numbers; {did_you_mean(predicate, with_values.to_pylist())}")
    if unit is None:
        units = [row["unit"] for row in rows]
        unit = max(sorted(set(units), key=lambda one: one or ""), key=units.count)
    found: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        found.setdefault(row["subject"], []).append((convert(row["value"], row["unit"], unit), row["fact_id"]))
    single = {
        subject: values[0]
        for subject, values in found.items()
        if max(values)[0] - min(values)[0] <= 1e-9 * abs(values[0][0])
    }
    subjects = sorted(single)
    return pa.table(
        {
            "subject": pa.array(subjects, pa.string()),
            "value": pa.array([single[one][0] for one in subjects], pa.float64()),
            "unit": pa.array([unit] * len(subjects), pa.string()),
            "fact_id": pa.array([single[one][1] for one in subjects], pa.string()),
        }
    )


def draw_comparable_groups(
    table: pa.Table, size: int, count: int, seed: int, *, margin: float = 0.1
) -> list[list[tuple[str, float, str]]]:
    """Groups of subjects with their values and fact ids, the largest first and ahead of the next by a margin.

    ``margin`` is how far the largest is ahead, as a share of it: a comparison that hangs on the last digit is no
    question. Drawn by the seed; a subject stands in one group at most.
    """
    rows = list(zip(*[table[name].to_pylist() for name in ("subject", "value", "fact_id")], strict=True))
    rows.sort(key=lambda row: derived_seed(seed, "compare", row[0]))
    groups: list[list[tuple[str, float, str]]] = []
    waiting: list[tuple[str, float, str]] = []
    for row in rows:
        if all(_apart(row[1], other[1], margin) for other in waiting):
            waiting.append(row)
        if len(waiting) == size:
            groups.append(sorted(waiting, key=lambda one: (-one[1], one[0])))
            waiting = []
            if len(groups) == count:
                break
    return groups


def _apart(one: float, other: float, share: float) -> bool:
    return abs(one - other) > share * max(abs(one), abs(other))
