"""Numeric facts in comparable units, and groups of subjects to compare."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.knowledge.store import KnowledgeBase


@dataclass(frozen=True)
class Unit:
    """A unit: base value = value × factor + shift."""

    measures: str
    """The quantity, such as length."""
    factor: float
    shift: float = 0.0


def _units() -> dict[str, Unit]:
    """Return units by symbol, word, Wikidata item and DBpedia datatype."""
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


def convert(value: float, unit: str | None, target: str | None) -> float:
    """Convert a value to another unit.

    Raises:
        InputError: A unit is unknown, or the units measure different quantities.
    """
    if unit == target:
        return value
    for name in (unit, target):
        if name is None:
            raise InputError(f"a number without a unit cannot be compared with one in {unit or target}")
        if name not in UNITS:
            raise InputError(f"{unit} cannot be converted to {target}: unknown unit {name!r}")
    source_unit, target_unit = UNITS[str(unit)], UNITS[str(target)]
    if source_unit.measures != target_unit.measures:
        raise InputError(
            f"{unit} measures {source_unit.measures} and {target} {target_unit.measures}: they cannot be compared"
        )
    # Twelve digits hide float noise: 54.4 K is -218.75 °C, not -218.74999999999997.
    return float(f"{(value * source_unit.factor + source_unit.shift - target_unit.shift) / target_unit.factor:.12g}")


def read_quantities(knowledge: KnowledgeBase, predicate: str, unit: str | None = None) -> pa.Table:
    """Read the values of a predicate in one unit: subject, value, unit, fact_id.

    A subject with several different values is left out.

    Args:
        knowledge: The knowledge base.
        predicate: The predicate.
        unit: The unit of the values; the most frequent one by default.

    Raises:
        InputError: The predicate has no values, or a unit cannot be converted.
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
        unit = max(sorted(set(units), key=lambda name: name or ""), key=units.count)
    values_of: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        values_of.setdefault(row["subject"], []).append((convert(row["value"], row["unit"], unit), row["fact_id"]))
    single = {
        subject: values[0]
        for subject, values in values_of.items()
        if max(values)[0] - min(values)[0] <= 1e-9 * abs(values[0][0])
    }
    subjects = sorted(single)
    return pa.table(
        {
            "subject": pa.array(subjects, pa.string()),
            "value": pa.array([single[name][0] for name in subjects], pa.float64()),
            "unit": pa.array([unit] * len(subjects), pa.string()),
            "fact_id": pa.array([single[name][1] for name in subjects], pa.string()),
        }
    )


def draw_comparable_groups(
    table: pa.Table, size: int, count: int, seed: int, *, margin: float = 0.1
) -> list[list[tuple[str, float, str]]]:
    """Draw groups of subjects with their values and fact ids, the largest value first.

    Args:
        table: Values, as ``read_quantities`` returns them.
        size: Subjects in a group.
        count: The number of groups, at most.
        seed: The seed; a subject is in at most one group.
        margin: The smallest difference of two values of a group, as a share of the larger: a comparison should not
            depend on the last digit.
    """
    rows = list(zip(*[table[name].to_pylist() for name in ("subject", "value", "fact_id")], strict=True))
    rows.sort(key=lambda row: derived_seed(seed, "compare", row[0]))
    groups: list[list[tuple[str, float, str]]] = []
    group: list[tuple[str, float, str]] = []
    for row in rows:
        if all(_differ_by(row[1], member[1], margin) for member in group):
            group.append(row)
        if len(group) == size:
            groups.append(sorted(group, key=lambda member: (-member[1], member[0])))
            group = []
            if len(groups) == count:
                break
    return groups


def _differ_by(first: float, second: float, share: float) -> bool:
    return abs(first - second) > share * max(abs(first), abs(second))
