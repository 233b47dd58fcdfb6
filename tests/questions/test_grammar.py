"""Articles and capitals where a name goes into a sentence."""

from __future__ import annotations

import csv

from all_cases import check_all

from merkhet.knowledge.pack_catalog import embedded_packs
from merkhet.questions.english import (
    add_definite_article,
    add_indefinite_article,
    capitalize,
    default_template,
    format_number,
)

AN = """hour honest honour honor heir heirloom hourglass umbrella uncle unknown unimportant uninvited unidentified
usher urn urchin utter ugly ulna undershirt X-ray F-15 M16 H-bomb L-shaped e-mail n-type s-block 8-ball 11 18 80 1812
MRI FBI NGO MP element actinide alkali iron owl onion igloo apple Austrian yttrium ytterbium Icelander"""
A = """European unit unicorn university union unique uniform unanimous user useful usual uranium urinal ureter utensil
utility utopia uterus ukulele ubiquitous uvula U-turn UFO UN USB US ewe euro eulogy eunuch one-way once-only Ugandan
Ukrainian Uruguayan Utah metal hotel house honey honeycomb Honduran hone yacht year noble lanthanide halogen p-block
d-block 7 100 110 NASA"""
THE = {
    "Bahamas",
    "Central African Republic",
    "Comoros",
    "Democratic Republic of the Congo",
    "Dominican Republic",
    "Gambia",
    "Maldives",
    "Marshall Islands",
    "Netherlands",
    "Philippines",
    "Republic of the Congo",
    "Seychelles",
    "Solomon Islands",
    "United Arab Emirates",
    "United Kingdom",
    "United States",
}


def test_a_or_an_goes_by_the_sound():
    def check(article, words):
        assert [add_indefinite_article(word) for word in words.split()] == [
            f"{article} {word}" for word in words.split()
        ]

    check_all(check, [("an", AN), ("a", A)])


def test_every_kind_of_element_has_its_article():
    with open(embedded_packs()["elements"] / "names.csv", encoding="utf-8", newline="") as handle:
        kinds = {row["label"] for row in csv.DictReader(handle) if row["kind"] == "category"}
    with_an = {kind for kind in kinds if add_indefinite_article(kind).startswith("an ")}
    assert with_an == {"actinide", "alkali metal", "alkaline earth metal"}


def test_the_stands_before_these_countries_and_no_other():
    with open(embedded_packs()["countries"] / "names.csv", encoding="utf-8", newline="") as handle:
        countries = [row["label"] for row in csv.DictReader(handle) if row["kind"] == "country"]
    assert len(countries) == 195
    assert {name for name in countries if add_definite_article(name) != name} == THE
    assert all(add_definite_article(name) == f"the {name}" for name in THE)
    assert add_definite_article("The Hague") == "The Hague"
    assert add_definite_article("Czech Republic") == "the Czech Republic"
    assert add_definite_article("Soviet Union") == "the Soviet Union"


def test_capitals_change_the_first_letter_alone():
    assert capitalize("iron is a metal") == "Iron is a metal"
    assert capitalize("eMac") == "EMac"
    assert capitalize("élan") == "Élan"
    assert capitalize("[MASK] is") == "[MASK] is"
    assert capitalize("") == ""


def test_numbers_are_written_plainly():
    def check(value, text):
        assert format_number(value) == text

    check_all(
        check, [(1.0, "1"), (1289.0, "1289"), (54.4, "54.4"), (0.05, "0.05"), (-3.5, "-3.5"), (1e15, "1" + "0" * 15)]
    )


def test_a_predicate_is_worded_by_its_name():
    def check(label, statement):
        assert default_template(label) == statement

    check_all(
        check,
        [
            ("capital", "The capital of {the subject} is {the object}."),
            ("place of birth", "The place of birth of {the subject} is {the object}."),
            ("capital of", "{the subject} is a capital of {the object}."),
            ("employer of", "{the subject} is an employer of {the object}."),
            ("part of", "{the subject} is part of {the object}."),
            ("was born in", "{the subject} was born in {the object}."),
            ("plays for", "{the subject} plays for {the object}."),
            ("died in", "{the subject} died in {the object}."),
            ("located in", "{the subject} is located in {the object}."),
            ("discovered by", "{the subject} is discovered by {the object}."),
            ("owns", "{the subject} owns {the object}."),
            ("created", "{the subject} created {the object}."),
            ("has won prize", "{the subject} has won prize {the object}."),
            ("position held", "The position held of {the subject} is {the object}."),
            ("Synonym", "The Synonym of {the subject} is {the object}."),
        ],
    )
