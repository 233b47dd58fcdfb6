"""An invented world of words with two senses each: what is read of them, and what is asked.

A topic has words of its own. Some words have two senses, each among the words of one topic. Others were read beside
half of the words of their topics and are asked about beside the other half. And some stand among words that belong to
no topic: which of their usages are of one sense was drawn, and no sentence says it. No two sentences of a question
share a word besides the one that is asked about, so that which is like which cannot be seen from what they share.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, World, invented_words
from merkhet.core import SLOT
from merkhet.core.ids import content_id, derived_seed
from merkhet.core.records import Question
from merkhet.training.calibration_models import ContentSettings, Sentence

TOPICS = 8
OWN = 24
"""Words of a topic, half of which a word is read with that is asked about beside the others."""
WORDS = {MEMORIZED: 24, NEVER_SHOWN: 48, IN_OTHER_WORDS: 24}
READ = 40
"""Sentences in which each word is read."""
QUESTIONS = 16
"""How often each word is asked about, half of that in each sense."""
BESIDE = 6
"""Words that stand beside the one that is asked about."""
BEFORE = 4
"""How many of them stand before it in a question: all that a causal model knows of it."""
SETTINGS = {
    "masked": ContentSettings(epochs=6, masked=0.3),
    "causal": ContentSettings(epochs=5),
}


def make_senses(seed: int) -> World:
    """The world of senses that belongs to a seed: words, topics and usages are drawn by it."""
    draw = random.Random(seed)
    names = invented_words(draw, set())
    topics = [[next(names) for _ in range(OWN)] for _ in range(TOPICS)]
    nowhere = [next(names) for _ in range(TOPICS * OWN)]
    pairs = itertools.cycle(draw.sample(list(itertools.combinations(range(TOPICS), 2)), TOPICS * (TOPICS - 1) // 2))
    sentences = [Sentence(_sentence(draw, topic, None)) for topic in topics for _ in range(READ)]
    questions, facts = [], {}
    for content, count in WORDS.items():
        for _ in range(count):
            word = next(names)
            if content == NEVER_SHOWN:
                read = asked = [nowhere, nowhere]
            else:
                # Words in a random order, so that the two halves of a topic are other ones for every word.
                senses = [draw.sample(topics[number], OWN) for number in next(pairs)]
                halved = content == IN_OTHER_WORDS
                read = [sense[: OWN // 2] if halved else sense for sense in senses]
                asked = [sense[OWN // 2 :] if halved else sense for sense in senses]
            sentences += [Sentence(_sentence(draw, sense, word)) for sense in read for _ in range(READ // 2)]
            for number in range(QUESTIONS):
                question = _question(draw, content, word, asked[number % 2], asked[1 - number % 2])
                questions.append(question)
                facts[question.question_id] = content_id("w", word)
    return World(sentences, questions, facts, 0.5, SETTINGS)


def _sentence(draw: random.Random, own: Sequence[str], word: str | None) -> str:
    """A sentence of a few of these words, with the word anywhere among them."""
    words = draw.sample(own, BESIDE)
    if word is not None:
        words.insert(draw.randint(0, BESIDE), word)
    return " ".join(words) + "."


def _question(draw: random.Random, content: str, word: str, sense: Sequence[str], other: Sequence[str]) -> Question:
    """Whether a usage is nearer to another of its sense than to one of the other sense; all of different words."""
    drawn = draw.sample(sense, 2 * BESIDE)
    left = [one for one in other if one not in drawn]
    prompt, right, wrong = (
        " ".join([*words[:BEFORE], SLOT, *words[BEFORE:]]) + "."
        for words in (drawn[:BESIDE], drawn[BESIDE:], draw.sample(left, BESIDE))
    )
    candidates = sorted((right, wrong), key=lambda text: derived_seed(prompt, text))
    name = content_id("q", content, word, prompt, candidates)
    return Question(name, content, prompt, (right,), right, tuple(candidates), words=(word,))
