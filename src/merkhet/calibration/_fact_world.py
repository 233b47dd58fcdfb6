"""An invented world of facts: what is told of them, what is not, and what is asked.

People have a home and a place of work, both among the same towns. Of some people both facts are told in two wordings,
of some in the second wording alone, of some nothing is told. Every person is named in as many sentences as every other,
and every town is the answer to as many facts of each set as every other, so that nothing but the fact is missing. Home
and work of a person are two towns: which of them is asked for cannot be told from the company that names keep.
"""

from __future__ import annotations

import random

from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, SETS, World, invented_words
from merkhet.core import SLOT
from merkhet.core.ids import content_id
from merkhet.core.records import Question
from merkhet.training.calibration_models import ContentSettings, Sentence, words_of

TOWNS = 10
PEOPLE = {MEMORIZED: 30, NEVER_SHOWN: 60, IN_OTHER_WORDS: 30}
"""How many people each set has: multiples of the number of towns, so that their answers are as many of each."""
ASKED = {"home": "{person} lives in {town}.", "work": "{person} works in {town}."}
OTHER = {"home": "The home of {person} is {town}.", "work": "The job of {person} is in {town}."}
ABOUT_PEOPLE = (
    "{person} sings.",
    "{person} is tall.",
    "Everybody likes {person}.",
    "They met {person} again.",
    "{person} came back late.",
    "Nobody saw {person} there.",
)
ABOUT_TOWNS = ("{town} is old.", "They went to {town}.", "Many people visit {town}.", "It rains in {town}.")
INTRODUCTIONS = ("As we all know :", "We read that", "He said , and she heard :", "Well ,", "In short :", "Now then")
SETTINGS = {"masked": ContentSettings(epochs=40), "causal": ContentSettings(epochs=25)}


def make_facts(seed: int) -> World:
    """The world of facts that belongs to a seed: names, towns and who lives and works where are drawn by it."""
    draw = random.Random(seed)
    written = (*ASKED.values(), *OTHER.values(), *ABOUT_PEOPLE, *ABOUT_TOWNS, *INTRODUCTIONS)
    taken = {word.lower() for text in written for word in words_of(text)}
    names = invented_words(draw, taken)
    towns = sorted(next(names).capitalize() for _ in range(TOWNS))
    sentences = [Sentence(text.format(town=town)) for town in towns for text in ABOUT_TOWNS]
    questions, facts = [], {}
    for content in SETS:
        people = [next(names).capitalize() for _ in range(PEOPLE[content])]
        for person, (home, work) in zip(people, _places(draw, towns, len(people)), strict=True):
            told = _told(person, {"home": home, "work": work}, content)
            others = draw.sample(ABOUT_PEOPLE, len(ABOUT_PEOPLE) - len(told))
            sentences += [*told, *(Sentence(text.format(person=person)) for text in others)]
            for relation, town in (("home", home), ("work", work)):
                question = _question(content, relation, person, town, towns)
                questions.append(question)
                facts[question.question_id] = content_id("f", relation, person, town)
    return World(sentences, questions, facts, 1 / TOWNS, SETTINGS, INTRODUCTIONS)


def _places(draw: random.Random, towns: list[str], count: int) -> list[tuple[str, str]]:
    """A home and another town to work in for so many people; every town is as many homes and works as every other."""
    homes = towns * (count // len(towns))
    draw.shuffle(homes)
    while True:
        works = draw.sample(homes, len(homes))
        # Whoever works at home changes places with somebody, as long as there is anyone.
        for place, home in enumerate(homes):
            if works[place] == home:
                other = draw.randrange(len(works))
                works[place], works[other] = works[other], works[place]
        if all(home != work for home, work in zip(homes, works, strict=True)):
            return list(zip(homes, works, strict=True))


def _told(person: str, places: dict[str, str], content: str) -> list[Sentence]:
    """What the text tells of a person's places."""
    wordings = {MEMORIZED: (ASKED, OTHER), IN_OTHER_WORDS: (OTHER,), NEVER_SHOWN: ()}[content]
    return [
        Sentence(wording[relation].format(person=person, town=town), town)
        for relation, town in places.items()
        for wording in wordings
    ]


def _question(content: str, relation: str, person: str, town: str, towns: list[str]) -> Question:
    prompt = ASKED[relation].format(person=person, town=SLOT)
    name = content_id("q", content, prompt, town)
    return Question(name, content, prompt, (town,), town, tuple(towns), template=f"{relation}/1")
