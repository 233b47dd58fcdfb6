"""Sentences for properties: made of labels, said of one side alone, edited by people."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.suites.ontoprobe.questions.property_patterns import (
    Pattern,
    make_pattern,
    read_patterns,
    resolve_patterns,
)


def pattern_from_label(label: str) -> Pattern:
    return resolve_patterns([label])[label]


def test_a_label_becomes_a_sentence() -> None:
    def check(label: str, text: str) -> None:
        assert pattern_from_label(label).text == text

    check_all(
        check,
        [
            ("author", "[X]'s author is [Y] ."),
            ("located in", "[X] is located in [Y] ."),
            ("has part", "[X] has part [Y] ."),
            ("has melody", "[X] has melody [Y] ."),
            ("part of", "[X] is part of [Y] ."),
            ("member of", "[X] is a member of [Y] ."),
            ("dialect of", "[X] is a dialect of [Y] ."),
            ("instance of", "[X] is an instance of [Y] ."),
            ("capital of", "[X] is the capital of [Y] ."),
            ("founded by", "[X] was founded by [Y] ."),
            ("followed by", "[X] is followed by [Y] ."),
            ("music by", "[X] has music by [Y] ."),
            ("place of birth", "[X]'s place of birth is [Y] ."),
            ("birthPlace", "[X]'s birth place is [Y] ."),
            ("isPartOf", "[X] is part of [Y] ."),
            ("worksFor", "[X] works for [Y] ."),
            ("employs", "[X] employs [Y] ."),
            ("contains", "[X] contains [Y] ."),
            ("influenced", "[X] influenced [Y] ."),
            ("deaths", "[X]'s deaths are [Y] ."),
            ("director / manager", "[X]'s director or manager is [Y] ."),
            ("fuel capacity (l)", "[X]'s fuel capacity is [Y] ."),
            ("(political) office", "[X]'s political office is [Y] ."),
            ("member of sports team", "[X] is a member of sports team [Y] ."),
            ("award received", "[X] received award [Y] ."),
            ("population as of", "[X]'s population is as of [Y] ."),
            ("UniProt", "[X]'s UniProt is [Y] ."),
            ("not soluble in", "[X] is not soluble in [Y] ."),
            ("used in war", "[X] is used in war [Y] ."),
            ("wins at LPGA", "[X]'s wins at LPGA are [Y] ."),
        ],
    )


def test_a_sentence_is_said_of_either_side_alone() -> None:
    def check(text: str, subject: str, object_: str) -> None:
        made = make_pattern(text)
        assert (made.as_subject, made.as_object) == (subject, object_)

    check_all(
        check,
        [
            ("[X]'s spouse is [Y] .", "have a spouse", "to be the spouse of something"),
            ("[X]'s author is [Y] .", "have an author", "to be the author of something"),
            ("[X]'s deaths are [Y] .", "have deaths", "to be among the deaths of something"),
            ("[X] died in [Y] .", "have died in something", "for something to have died in one"),
            ("[X] is based on [Y] .", "be based on something", "for something to be based on one"),
            ("[X] was killed by [Y] .", "have been killed by something", "for something to have been killed by one"),
            ("[X] lives in [Y] .", "live in something", "for something to live in one"),
            ("[X] used to work in [Y] .", "have worked in something", "for something to have worked in one"),
            ("[X] carries [Y] .", "carry something", "for something to carry one"),
            ("[X] crosses [Y] .", "cross something", "for something to cross one"),
            ("[X] wrote [Y] .", "have written something", "for something to have written one"),
            ("[X] has cast member [Y] .", "have a cast member", "to be a cast member of something"),
            ("[X] has the melody of [Y] .", "have the melody of something", "for something to have the melody of one"),
            (
                "[X]'s government is headed by [Y] .",
                "have a government headed by something",
                "for something's government to be headed by one",
            ),
            (
                "[X]'s participating teams contain [Y] .",
                "have participating teams that contain something",
                "for something's participating teams to contain one",
            ),
            (
                "[X] is part of constellation [Y] .",
                "be part of a constellation",
                "to be a constellation that something is part of",
            ),
            ("[X] belongs to the party [Y] .", "belong to a party", "to be a party that something belongs to"),
            ("[X] plays instrument [Y] .", "play an instrument", "to be an instrument that something plays"),
            ("[X] is called [Y] .", "be called something", "for something to be called one"),
            (
                "[X] originally aired on [Y] .",
                "have originally aired on something",
                "for something to have originally aired on one",
            ),
            ("[X] can play [Y] .", "be able to play something", "for something to be able to play one"),
        ],
    )


words = st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=1, max_size=5).map(" ".join)
labels = st.one_of(words, st.text(min_size=1, max_size=30), st.from_regex(r"[a-z]{2,6}[A-Z][a-z]{2,6}", fullmatch=True))


@settings(deadline=None)
@given(label=labels)
def test_whatever_the_label_there_is_a_whole_sentence_with_its_forms(label: str) -> None:
    made = pattern_from_label(label)
    assert made.text.startswith("[X]")
    assert made.text.endswith(" [Y] .")
    assert made.text == f"[X]{made.infix} [Y] ."
    assert made.as_object.startswith(("to ", "for something"))
    for form in (made.as_subject, made.as_object):
        assert form == form.strip()
        assert "[" not in form


@settings(deadline=None)
@given(labels=st.sets(words, min_size=1, max_size=6))
def test_patterns_that_are_written_read_back_the_same(tmp_path_factory, labels: set[str]) -> None:
    file = tmp_path_factory.mktemp("patterns") / "patterns.yaml"
    made = resolve_patterns(sorted(labels))
    content = {
        label: {"pattern": pattern.text, "as_subject": pattern.as_subject, "as_object": pattern.as_object}
        for label, pattern in made.items()
    }
    file.write_text(yaml.safe_dump(content, allow_unicode=True, width=1000), encoding="utf-8")
    # YAML takes "no" and "null" for something else than a word, unless it is quoted.
    assert resolve_patterns(sorted(labels), read_patterns(file)) == made


def test_a_pattern_that_cannot_be_meant_is_refused_by_name(tmp_path: Path) -> None:
    def check(content: str, message: str) -> None:
        file = tmp_path / "patterns.yaml"
        file.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            resolve_patterns(["spouse", "author"], read_patterns(file))

    check_all(
        check,
        [
            ("spouse: '[X] is married to [Y]'", "'spouse'.*must begin with \\[X\\] and end with"),
            ("spouse: 'married to [Y] .'", "must begin with"),
            (
                "spouse: {pattern: '[X] loves [Y] .', as_subjekt: love}",
                "'spouse'.*'as_subjekt'; did you mean 'as_subject'",
            ),
            ("spouse: {as_subject: love}", "'spouse'.*'pattern' is missing"),
            ("spouse: {pattern: '[X] loves [Y] .', as_subject: 'love [Y]'}", "as_subject"),
            ("spouse: {pattern: '[X] loves [Y] .', as_subject: 3}", "as_subject"),
            ("spouse: 3", "'spouse'.*a pattern must be text"),
            ("spose: '[X] loves [Y] .'", "no property 'spose'; did you mean 'spouse'"),
            ("- spouse", "mapping"),
        ],
    )


def test_a_pattern_alone_gets_its_forms_and_given_forms_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "patterns.yaml"
    file.write_text(
        "spouse: '[X] is married to [Y] .'\nauthor: {pattern: '[X] is by [Y] .', as_subject: be written}\n",
        encoding="utf-8",
    )
    found = resolve_patterns(["author", "spouse", "heir"], read_patterns(file))
    assert found["spouse"].as_subject == "be married to something"
    assert found["author"].as_subject == "be written"
    assert found["author"].as_object == "for something to be by one"
    assert found["heir"].text == "[X]'s heir is [Y] ."
    with pytest.raises(InputError, match="'spouse'"):
        resolve_patterns(["author"], read_patterns(file))
