"""The `everyday` pack: what everyone knows of things, animals, jobs and words."""

from __future__ import annotations

from .compiled import Described, compiled_pack
from .writing import Pack

PREDICATES = {
    "opposite-of": Described("is the opposite of", "word", "word", functional=True, note="Each pair is stated once."),
    "used-for": Described("is used for", "thing", "activity"),
    "at-location": Described("is usually found in", "thing", "place"),
    "made-of": Described("is usually made of", "thing", "material"),
    "capable-of": Described("can", "thing", "action"),
    "has-property": Described("is", "stuff", "property"),
    "has-a": Described("has", "thing", "part"),
    "causes": Described("can cause", "cause", "effect"),
    "comes-from": Described("comes from", "product", "source"),
    "young-of": Described("is a young", "animal", "animal", functional=True),
    "lives-in": Described("lives in", "animal", "home"),
    "does-job": Described("has the job to", "profession", "work"),
    "comes-before": Described("comes within a year before", "month", "month", note="The next month only."),
    "bigger-than": Described("is bigger than", "animal", "animal", note="Grown animals; the next in size only."),
    "has-body-part": Described(
        "has", "synset", "organ", note="Of all animals of a class; the classes are those of the taxonomy pack."
    ),
}


def build() -> Pack:
    return compiled_pack(
        name="everyday",
        title="Everyday knowledge",
        description="What everyone knows: opposites, what things are for, where they are, what they are made of, what "
        "they can do, and what people do for a living.",
        domain="commonsense",
        predicates=PREDICATES,
        note="Compiled by hand; what is usual, not what is without exception.",
        domains={"has-body-part": "biology"},
    )
