"""Invented ambiguous words, training sentences with these words, and questions about their senses.

Each topic has its own set of words. Some ambiguous words have two senses, and each sense occurs among the words of one
topic. Other ambiguous words occur with half of the topic's words in the training text, and with the other half in the
questions. The remaining ambiguous words occur among words without a topic: their senses are random, and no sentence
reveals them. Word overlap gives no cue, because the sentences of a question share only the ambiguous word.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN, World, WorldTexts, invented_words
from merkhet.core import SLOT
from merkhet.core.ids import content_id, derived_seed
from merkhet.core.records import Question
from merkhet.training.calibration_models import ContentSettings, Sentence

TOPICS = 8
TOPIC_WORDS = 24
"""Number of words of each topic."""
WORDS = {MEMORIZED: 24, NEVER_SHOWN: 48, IN_OTHER_WORDS: 24}
SENTENCES_PER_WORD = 40
"""Number of training sentences with each ambiguous word."""
QUESTIONS_PER_WORD = 16
"""Number of questions about each ambiguous word, half of them for each sense."""
CONTEXT_WORDS = 6
"""Number of words around the ambiguous word of a sentence."""
CONTEXT_BEFORE = 4
"""Number of words before the ambiguous word in a question, which are all that a causal model sees."""
SETTINGS = {"masked": ContentSettings(epochs=6, masked=0.3), "causal": ContentSettings(epochs=5)}

TEXTS = WorldTexts(
    f"{sum(WORDS.values())} words and {TOPICS} topics. {WORDS[MEMORIZED]} words have two senses, each among the words "
    f"of one topic. {WORDS[IN_OTHER_WORDS]} more occur in the sentences with half of these words, and in the questions "
    f"with the other half. {WORDS[NEVER_SHOWN]} occur among words of no topic, where no sentence shows which usages "
    "have the same sense.",
    transfer="usages among words of the topic that the word never occurs with in the sentences",
    bag="it knows only which words two sentences share, and the sentences of a question share none.",
)


def make_sense_world(seed: int) -> World:
    """Make a world of word senses; ``seed`` determines words, topics and usages."""
    generator = random.Random(seed)
    names = invented_words(generator, set())
    topics = [[next(names) for _ in range(TOPIC_WORDS)] for _ in range(TOPICS)]
    no_topic = [next(names) for _ in range(TOPICS * TOPIC_WORDS)]
    pairs = itertools.cycle(
        generator.sample(list(itertools.combinations(range(TOPICS), 2)), TOPICS * (TOPICS - 1) // 2)
    )
    sentences = [Sentence(_sentence(generator, topic, None)) for topic in topics for _ in range(SENTENCES_PER_WORD)]
    questions, facts = [], {}
    for content, count in WORDS.items():
        for _ in range(count):
            word = next(names)
            if content == NEVER_SHOWN:
                read = asked = [no_topic, no_topic]
            else:
                # The order is random, because every ambiguous word must split a topic differently.
                senses = [generator.sample(topics[number], TOPIC_WORDS) for number in next(pairs)]
                split_topics = content == IN_OTHER_WORDS
                read = [sense[: TOPIC_WORDS // 2] if split_topics else sense for sense in senses]
                asked = [sense[TOPIC_WORDS // 2 :] if split_topics else sense for sense in senses]
            sentences += [
                Sentence(_sentence(generator, sense, word)) for sense in read for _ in range(SENTENCES_PER_WORD // 2)
            ]
            for number in range(QUESTIONS_PER_WORD):
                question = _question(generator, content, word, asked[number % 2], asked[1 - number % 2])
                questions.append(question)
                facts[question.question_id] = content_id("w", word)
    return World(sentences, questions, facts, 0.5, SETTINGS, TEXTS)


def _sentence(generator: random.Random, context: Sequence[str], word: str | None) -> str:
    """Return a sentence of random context words, with ``word`` at a random position."""
    words = generator.sample(context, CONTEXT_WORDS)
    if word is not None:
        words.insert(generator.randint(0, CONTEXT_WORDS), word)
    return " ".join(words) + "."


def _question(
    generator: random.Random, content: str, word: str, sense: Sequence[str], other_sense: Sequence[str]
) -> Question:
    """Make a question that asks which of two usages has the sense of the prompt.

    No two of the three sentences share a context word.
    """
    context = generator.sample(sense, 2 * CONTEXT_WORDS)
    unused = [candidate for candidate in other_sense if candidate not in context]
    prompt, right, wrong = (
        " ".join([*words[:CONTEXT_BEFORE], SLOT, *words[CONTEXT_BEFORE:]]) + "."
        for words in (context[:CONTEXT_WORDS], context[CONTEXT_WORDS:], generator.sample(unused, CONTEXT_WORDS))
    )
    candidates = sorted((right, wrong), key=lambda text: derived_seed(prompt, text))
    question_id = content_id("q", content, word, prompt, candidates)
    return Question(question_id, content, prompt, (right,), right, tuple(candidates), words=(word,))
