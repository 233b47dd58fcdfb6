"""The `physics` pack: units, quantities, instruments, particles, discoveries and the solar system."""

from __future__ import annotations

from .compiled import Described, compiled_pack
from .writing import Pack

PREDICATES = {
    "si-unit": Described("has the SI unit", "quantity", "unit", functional=True),
    "unit-of": Described("is a unit of", "unit", "quantity", functional=True, note="Units outside of the SI."),
    "unit-symbol": Described("has the symbol", "unit", "sign", functional=True),
    "unit-named-after": Described("is named after", "unit", "person", functional=True),
    "quantity-symbol": Described("is usually written", "quantity", "sign", functional=True),
    "quantity-kind": Described("is a", "quantity", "algebra", functional=True, note="Vector or scalar."),
    "instrument-measures": Described("measures", "instrument", "quantity", functional=True),
    "particle-kind": Described("is a", "particle", "particlekind", functional=True),
    "particle-charge": Described("is electrically", "particle", "charge", functional=True),
    "credited-to": Described("is credited to", "discovery", "person", functional=True),
    "credited-year": Described(
        "dates from the year", "discovery", unit="year", functional=True, note="None where accounts differ."
    ),
    "planet-kind": Described("is a", "body", "planetkind", functional=True),
    "planet-order": Described("is from the Sun planet number", "body", unit="1", functional=True),
    "diameter": Described("has a diameter of", "body", unit="km", functional=True, note="At the equator."),
    "body-mass": Described("has a mass of", "body", unit="10^24 kg", functional=True),
    "rotation-period": Described("turns once in", "body", unit="h", functional=True, note="Against the stars."),
    "orbital-period": Described("goes around the Sun in", "body", unit="d", functional=True),
    "orbits": Described("orbits", "body", "body", functional=True, note="Moons of planets and of Pluto."),
    "nearer-the-sun-than": Described(
        "is nearer the Sun than", "body", "body", complete="both", note="The next planet only."
    ),
    "shorter-wavelength-than": Described(
        "has a shorter wavelength than",
        "radiation",
        "radiation",
        complete="both",
        note="The next in the spectrum only.",
    ),
    "change-from": Described("starts from the state", "change", "condition", functional=True),
    "change-to": Described("leads to the state", "change", "condition", functional=True),
    "constant-symbol": Described("has the symbol", "constant", "sign", functional=True),
    "prefix-symbol": Described("has the symbol", "prefix", "sign", functional=True),
    "prefix-exponent": Described("stands for ten to the power of", "prefix", unit="1", functional=True),
    "studies": Described("is the study of", "branch", "topic", functional=True),
}


def build() -> Pack:
    return compiled_pack(
        name="physics",
        title="Physics",
        description="Units and quantities, instruments, particles, discoveries, the spectrum, changes of state and the "
        "solar system.",
        domain="physics",
        predicates=PREDICATES,
        note="Compiled by hand. Figures of the solar system are those of NASA's fact sheets, rounded.",
    )
