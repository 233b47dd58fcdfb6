"""Invented facts about people, the training sentences that state some of them, and questions about all of them.

People have a home and a place of work, both among the same towns. The training text states the two facts of some people
in two wordings, of others only in the second wording, and of others not at all. Frequency gives no cue: all people are
named equally often, and all towns are the answer equally often in each set. Word association gives no cue: a person's
home and place of work are different towns.
"""

from __future__ import annotations

import random

from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, SETS, World, WorldTexts, invented_words
from merkhet.core import SLOT
from merkhet.core.ids import content_id
from merkhet.core.records import Question
from merkhet.training.calibration_models import ContentSettings, Sentence, split_words

TOWNS = 10
PEOPLE = {MEMORIZED: 30, NEVER_SHOWN: 60, IN_OTHER_WORDS: 30}
"""Number of people of each set, a multiple of ``TOWNS``, which makes all towns the answer equally often."""
ASKED_WORDING = {"home": "{person} lives in {town}.", "work": "{person} works in {town}."}
OTHER_WORDING = {"home": "The home of {person} is {town}.", "work": "The job of {person} is in {town}."}
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
TEXTS = WorldTexts(
    f"{sum(PEOPLE.values())} people and {TOWNS} towns. They state where people live and work: for {PEOPLE[MEMORIZED]} "
    f"in the wording of the questions and in another, for {PEOPLE[IN_OTHER_WORDS]} in the other wording only, and for "
    f"{PEOPLE[NEVER_SHOWN]} not at all. All people are named equally often, and every town is the answer equally "
    "often.",
    transfer="facts that were shown in other words only",
    bag="it knows only which words occur in the same sentence. A name occurs with two towns, and only the wording "
    "tells home from work.",
)
SETTINGS = {"masked": ContentSettings(epochs=40), "causal": ContentSettings(epochs=25)}


def make_fact_world(seed: int) -> World:
    """Make a world of facts; ``seed`` determines names, towns, homes and places of work."""
    generator = random.Random(seed)
    templates = (*ASKED_WORDING.values(), *OTHER_WORDING.values(), *ABOUT_PEOPLE, *ABOUT_TOWNS, *INTRODUCTIONS)
    used_words = {word.lower() for text in templates for word in split_words(text)}
    names = invented_words(generator, used_words)
    towns = sorted(next(names).capitalize() for _ in range(TOWNS))
    sentences = [Sentence(text.format(town=town)) for town in towns for text in ABOUT_TOWNS]
    questions, facts = [], {}
    for content in SETS:
        people = [next(names).capitalize() for _ in range(PEOPLE[content])]
        for person, (home, work) in zip(people, _draw_towns(generator, towns, len(people)), strict=True):
            stated = _stated_facts(person, {"home": home, "work": work}, content)
            fillers = generator.sample(ABOUT_PEOPLE, len(ABOUT_PEOPLE) - len(stated))
            sentences += [*stated, *(Sentence(text.format(person=person)) for text in fillers)]
            for relation, town in (("home", home), ("work", work)):
                question = _question(content, relation, person, town, towns)
                questions.append(question)
                facts[question.question_id] = content_id("f", relation, person, town)
    return World(sentences, questions, facts, 1 / TOWNS, SETTINGS, TEXTS, INTRODUCTIONS)


def _draw_towns(generator: random.Random, towns: list[str], count: int) -> list[tuple[str, str]]:
    """Draw a home and a different place of work for each person; all towns are drawn equally often."""
    homes = towns * (count // len(towns))
    generator.shuffle(homes)
    while True:
        works = generator.sample(homes, len(homes))
        # A person who works in the home town swaps with a random person; retry until nobody does.
        for index, home in enumerate(homes):
            if works[index] == home:
                swap = generator.randrange(len(works))
                works[index], works[swap] = works[swap], works[index]
        if all(home != work for home, work in zip(homes, works, strict=True)):
            return list(zip(homes, works, strict=True))


def _stated_facts(person: str, towns: dict[str, str], content: str) -> list[Sentence]:
    """Return the training sentences that state a person's home and place of work."""
    wordings = {MEMORIZED: (ASKED_WORDING, OTHER_WORDING), IN_OTHER_WORDS: (OTHER_WORDING,), NEVER_SHOWN: ()}[content]
    return [
        Sentence(wording[relation].format(person=person, town=town), town)
        for relation, town in towns.items()
        for wording in wordings
    ]


def _question(content: str, relation: str, person: str, town: str, towns: list[str]) -> Question:
    prompt = ASKED_WORDING[relation].format(person=person, town=SLOT)
    question_id = content_id("q", content, prompt, town)
    return Question(question_id, content, prompt, (town,), town, tuple(towns), template=f"{relation}/1")
