"""Units of measurement and their conversion to base units."""

from __future__ import annotations

from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of measurement: value in the base unit = value × ``factor`` + ``shift``."""

    measures: str
    """The measured quantity, such as length."""
    factor: float
    shift: float = 0.0


_NAMES: dict[Unit, tuple[str, ...]] = {
    Unit("length", 1.0): ("m", "metre", "meter", "Q11573", "dbt:metre"),
    Unit("length", 1e-3): ("mm", "millimetre", "millimeter", "Q174789", "dbt:millimetre"),
    Unit("length", 1e-2): ("cm", "centimetre", "centimeter", "Q174728", "dbt:centimetre"),
    Unit("length", 1e3): ("km", "kilometre", "kilometer", "Q828224", "dbt:kilometre"),
    Unit("length", 0.3048): ("ft", "foot", "feet", "Q3710", "dbt:foot"),
    Unit("length", 0.0254): ("in", "inch", "Q218593", "dbt:inch"),
    Unit("length", 1609.344): ("mi", "mile", "Q253276", "dbt:mile"),
    Unit("length", 1e-12): ("pm", "picometre", "picometer"),
    Unit("area", 1.0): ("m²", "m2", "square metre", "Q25343", "dbt:squareMetre"),
    Unit("area", 1e6): ("km²", "km2", "square kilometre", "square kilometer", "Q712226", "dbt:squareKilometre"),
    Unit("area", 1e4): ("ha", "hectare", "Q35852", "dbt:hectare"),
    Unit("mass", 1.0): ("kg", "kilogram", "Q11570", "dbt:kilogram"),
    Unit("mass", 1e-3): ("g", "gram", "Q41803", "dbt:gram"),
    Unit("mass", 1e3): ("t", "tonne", "Q191118"),
    Unit("mass", 0.45359237): ("lb", "pound", "Q100995", "dbt:pound"),
    Unit("time", 1.0): ("s", "second", "Q11574", "dbt:second"),
    Unit("time", 60.0): ("min", "minute", "Q7727", "dbt:minute"),
    Unit("time", 3600.0): ("h", "hour", "Q25235", "dbt:hour"),
    Unit("time", 86400.0): ("d", "day", "Q573", "dbt:day"),
    Unit("temperature", 1.0): ("K", "kelvin", "Q11579", "dbt:kelvin"),
    Unit("temperature", 1.0, 273.15): ("°C", "celsius", "degree Celsius", "Q25267", "dbt:degreeCelsius"),
    Unit("temperature", 5 / 9, 459.67 * 5 / 9): ("°F", "fahrenheit", "degree Fahrenheit", "Q42289"),
    Unit("density", 1.0): ("kg/m³", "kg/m3", "dbt:kilogramPerCubicMetre"),
    Unit("density", 1e3): ("g/cm³", "g/cm3", "Q13147228"),
}
UNITS = {name: unit for unit, names in _NAMES.items() for name in names}
"""Units by symbol, English name, Wikidata id and DBpedia datatype."""
