"""Organs that all animals of a class have, or none of them: a table of every class and every organ.

The source is a textbook: Clark, Douglas and Choi, Biology 2e (OpenStax, 2018; CC BY 4.0), chapters 28 (Invertebrates),
29 (Vertebrates), 38.1 (skeletons), 39 (the respiratory system) and 40.1 (circulatory systems). Organs that only some
animals of a class have are left out, whatever the class: gills of insects and amphibians, hair, wings, teeth, lungs
of spiders. Amphibians are left out, because some have gills and some have no lungs.
"""

from __future__ import annotations

from typing import Any

from .writing import Pack, entity_id

VERTEBRATES = {"mammal", "bird", "fish", "reptile"}
ARTHROPODS = {"insect", "arachnid", "crustacean"}
CLASSES = VERTEBRATES | ARTHROPODS

# The classes that have an organ; the others of CLASSES do not have it.
ORGANS: dict[str, set[str]] = {
    "a backbone": VERTEBRATES,
    "a skull": VERTEBRATES,
    "a spinal cord": VERTEBRATES,
    "an outer skeleton of chitin": ARTHROPODS,
    "feathers": {"bird"},
    "milk glands": {"mammal"},
    "three tiny bones in each middle ear": {"mammal"},
    "a windpipe and at least one lung": {"mammal", "bird", "reptile"},
    "gills and fins": {"fish"},
    "a heart with two ventricles": {"mammal", "bird"},
    "one pair of antennae": {"insect"},
    "two pairs of antennae": {"crustacean"},
    "six legs in three pairs": {"insect"},
    "eight legs but no antennae": {"arachnid"},
}
# Animals that have an organ although their class does not have it: the heart of crocodiles (40.1).
EXCEPTIONS = {("crocodile", "a heart with two ventricles"), ("alligator", "a heart with two ventricles")}

SOURCES: dict[str, dict[str, str]] = {
    "openstax": {
        "name": "M. A. Clark, M. Douglas and J. Choi: Biology 2e, OpenStax",
        "version": "2018",
        "licence": "CC-BY-4.0",
        "licence_file": "LICENSE.txt",
        "note": "Chapters 28, 29, 38.1, 39 and 40.1, in the words of scripts/packs/animal_organs.py.",
    }
}
PREDICATES: dict[str, dict[str, Any]] = {
    "has-body-part": {
        "label": "has",
        "subject_kind": "synset",
        "object_kind": "organ",
        "functional": False,
        "symmetric": False,
        "complete": "both",
        "note": "Of all animals of a class; of every class and every organ it is known whether it has it.",
    }
}


def add(pack: Pack) -> None:
    """Add the facts of the table, about classes and animals that the pack has."""
    for organ, owners in ORGANS.items():
        animals = sorted(owners | {animal for animal, part in EXCEPTIONS if part == organ})
        for animal in animals:
            subject = f"synset:{animal}-n-1"
            if (subject, "en") not in pack.names:
                raise ValueError(f"the pack has no animal {animal!r}")
            target = pack.name(entity_id("organ", organ), organ)
            pack.link(subject, "has-body-part", target, domain="biology", source="openstax")
