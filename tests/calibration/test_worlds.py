"""The invented worlds: what is told of each set, that nothing else tells them apart, and that a seed makes them."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.calibration import _fact_world as facts
from merkhet.calibration import _sense_world as senses
from merkhet.calibration._fact_world import make_fact_world
from merkhet.calibration._sense_world import make_sense_world
from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, SETS, World
from merkhet.core import SLOT

SEEDS = st.integers(0, 2**31)


def bags(world: World) -> list[set[str]]:
    return [set(re.findall(r"\w+", one.text)) for one in world.sentences]


def person_of(question) -> str:
    return question.prompt.split()[0]


@pytest.mark.parametrize("make", [make_fact_world, make_sense_world])
def test_a_world_belongs_to_its_seed(make) -> None:
    assert make(5) == make(5)
    assert {one.text for one in make(5).sentences} != {one.text for one in make(6).sentences}


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_nothing_is_told_of_where_the_never_shown_are(seed: int) -> None:
    world = make_fact_world(seed)
    towns = set(world.questions[0].candidates)
    never = {person_of(question) for question in world.questions if question.task == NEVER_SHOWN}
    assert len(never) == facts.PEOPLE[NEVER_SHOWN]
    for bag, sentence in zip(bags(world), world.sentences, strict=True):
        assert not (bag & never and bag & towns), sentence.text


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_text_has_what_is_asked_word_for_word_of_the_memorized_alone(seed: int) -> None:
    world = make_fact_world(seed)
    text = {one.text for one in world.sentences}
    for question in world.questions:
        assert (question.prompt.replace(SLOT, question.target) in text) == (question.task == MEMORIZED)
        begun = question.prompt.partition(SLOT)[0]
        assert any(sentence.startswith(begun) for sentence in text) == (question.task == MEMORIZED)


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_those_in_other_words_are_told_in_other_words(seed: int) -> None:
    world = make_fact_world(seed)
    text = {one.text for one in world.sentences}
    for question in world.questions:
        if question.task != NEVER_SHOWN:
            other = facts.OTHER_WORDING[question.relation].format(person=person_of(question), town=question.target)
            assert other in text


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_every_person_is_named_as_often_and_every_town_is_the_answer_as_often(seed: int) -> None:
    world = make_fact_world(seed)
    people = {person_of(question) for question in world.questions}
    named = Counter(word for bag in bags(world) for word in bag)
    assert len(people) == sum(facts.PEOPLE.values()) and len({named[person] for person in people}) == 1
    for content in SETS:
        for relation in facts.ASKED_WORDING:
            own = [one for one in world.questions if one.task == content and one.relation == relation]
            answers = Counter(question.target for question in own)
            assert set(answers.values()) == {facts.PEOPLE[content] // facts.TOWNS} and len(answers) == facts.TOWNS
    assert world.chance == pytest.approx(1 / len(world.questions[0].candidates))


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_home_and_work_of_a_person_are_two_towns(seed: int) -> None:
    places: dict[str, list[str]] = {}
    for question in make_fact_world(seed).questions:
        places.setdefault(person_of(question), []).append(question.target)
    assert all(len(towns) == len(set(towns)) == 2 for towns in places.values())


def test_a_fact_is_one_question_and_no_question_is_asked_twice() -> None:
    world = make_fact_world(3)
    assert len({one.question_id for one in world.questions}) == len(world.questions) == len(set(world.facts.values()))
    assert set(world.facts) == {one.question_id for one in world.questions}


def test_answers_are_marked_where_they_stand_in_what_is_taught() -> None:
    world = make_fact_world(3)
    towns = set(world.questions[0].candidates)
    marked = [one for one in world.sentences if one.answer is not None]
    assert len(marked) == 2 * (2 * facts.PEOPLE[MEMORIZED] + facts.PEOPLE[IN_OTHER_WORDS])
    assert all(one.answer in towns and one.answer in one.text for one in marked)


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_sentences_of_a_comparison_share_the_word_alone(seed: int) -> None:
    for question in make_sense_world(seed).questions:
        prompt, first, second = (
            set(re.findall(r"\w+", text.replace(SLOT, " "))) for text in (question.prompt, *question.candidates)
        )
        assert not prompt & first and not prompt & second and not first & second
        assert len(prompt) == len(first) == len(second) == senses.CONTEXT_WORDS
        assert question.target in question.candidates and question.answers == (question.target,)


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_words_of_no_sense_are_read_among_words_of_no_topic(seed: int) -> None:
    """Of a word never shown every usage is drawn from the same words, whichever of them is called right."""
    world = make_sense_world(seed)
    read = bags(world)
    words = {content: {one.words[0] for one in world.questions if one.task == content} for content in SETS}
    topical = set().union(*(bag for bag in read if bag & (words[MEMORIZED] | words[IN_OTHER_WORDS])))
    nowhere = set().union(*(bag for bag in read if bag & words[NEVER_SHOWN])) - words[NEVER_SHOWN]
    assert not topical & nowhere
    for question in world.questions:
        if question.task == NEVER_SHOWN:
            for text in (question.prompt, *question.candidates):
                assert set(re.findall(r"\w+", text.replace(SLOT, " "))) <= nowhere


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_words_in_other_company_are_asked_about_beside_words_they_were_never_read_with(seed: int) -> None:
    world = make_sense_world(seed)
    beside: dict[str, set[str]] = {}
    for bag in bags(world):
        for word in bag:
            beside.setdefault(word, set()).update(bag - {word})
    for question in world.questions:
        usages = (question.prompt, *question.candidates)
        asked = set().union(*(re.findall(r"\w+", text.replace(SLOT, " ")) for text in usages))
        if question.task == IN_OTHER_WORDS:
            assert not asked & beside[question.words[0]]
        if question.task == MEMORIZED:
            assert asked & beside[question.words[0]]
