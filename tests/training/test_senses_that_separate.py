"""The probe ``compare`` finds senses where there are some to be found, and none where there are none.

A model is trained from random weights on a text in which each sense of a word stands among the characters of its topic.
It must tell the senses apart in sentences that it never read and that share none of these characters. The same model
before it read anything, one that read the same characters dealt out anew, and a bag of words must be at chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sense_worlds import World, make_world, mixed, questions_of, untrained

from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.models.protocol import Model
from merkhet.probes.compare import compare_senses
from merkhet.training.pretraining import pretrain

# Near step 300 the model begins to see topics; by step 400 it sees them all.
SETTINGS = {"steps": 500, "batch_size": 64, "max_length": 16, "learning_rate": 4e-3, "masked": 0.3}
EACH = 60
MODELS = ("trained", "trained on mixed topics", "untrained")


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(1)


@pytest.fixture(scope="module")
def questions(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Question]:
    return questions_of(world, tmp_path_factory.mktemp("senses") / "senses.tsv").as_questions()


@pytest.fixture(scope="module")
def results(world: World, questions, one_thread, tmp_path_factory: pytest.TempPathFactory):
    """The accuracy of each model by every method and layer."""
    folder = tmp_path_factory.mktemp("trained")
    start, sentences = untrained(world, folder / "untrained"), world.corpus(EACH)
    found = {"untrained": accuracies(load_model(str(start)), questions, ("word@all", "masked@all"))}
    for name, text in zip(MODELS, (sentences, mixed(world, sentences)), strict=False):
        corpus = folder / f"{name}.txt"
        corpus.write_text("\n".join(map("".join, text)), encoding="utf-8")
        learned = pretrain(load_model(str(start)), corpus, folder / name, settings=SETTINGS, seed=1)
        found[name] = accuracies(load_model(str(learned.folder)), questions, ("word@all", "masked@all"))
    return found


def accuracies(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> dict[str, float]:
    """The share of right answers by each method; a tie of the two is half right."""
    found = defaultdict(list)
    for answer in compare_senses(model, questions, methods):
        assert answer.unusable is None, answer.unusable
        found[answer.method].append(2.0 - answer.gold_ranks[0])
    assert all(len(values) == len(questions) for values in found.values())
    return {method: float(np.mean(values)) for method, values in found.items()}


def test_what_is_asked_was_never_read_and_shares_nothing(world: World, questions) -> None:
    read = {"".join(sentence) for sentence in world.corpus(EACH)}
    own = {character for topic in world.topics for character in topic}
    assert len(questions) == 180 and {question.words for question in questions} == {(word,) for word in world.senses}
    for question in questions:
        sentences = [sentence for sentence, _, _ in question.usages]
        assert not read & set(sentences)
        assert all(not set(sentences[0]) & set(other) & own for other in sentences[1:])


def test_both_texts_are_of_the_same_characters(world: World) -> None:
    sentences = world.corpus(EACH)
    dealt = mixed(world, sentences)
    assert sorted("".join(map("".join, sentences))) == sorted("".join(map("".join, dealt)))
    assert [len(sentence) for sentence in sentences] == [len(sentence) for sentence in dealt]
    word = next(iter(world.senses))
    assert [word in sentence for sentence in sentences] == [word in sentence for sentence in dealt]


@pytest.mark.train
@pytest.mark.parametrize("method", ["word", "masked"])
def test_a_model_that_read_of_the_topics_tells_the_senses_apart(results, method: str) -> None:
    assert results["trained"][method] > 0.9, results


@pytest.mark.train
@pytest.mark.parametrize("method", ["word", "masked"])
@pytest.mark.parametrize("name", MODELS[1:])
def test_without_topics_to_read_of_it_is_at_chance(results, name: str, method: str) -> None:
    assert 0.35 < results[name][method] < 0.65, results


@pytest.mark.train
@pytest.mark.parametrize("name", MODELS)
def test_before_the_first_layer_a_word_is_the_same_in_all_senses(results, name: str) -> None:
    assert 0.35 < results[name]["word@0"] < 0.65, results


def test_a_bag_of_words_is_at_chance(questions) -> None:
    assert 0.4 < accuracies(load_model("word-overlap"), questions)["overlap"] < 0.6


def test_a_bag_of_words_sees_topics_where_sentences_share_their_characters(world: World, tmp_path: Path) -> None:
    sharing = questions_of(world, tmp_path / "senses.tsv", apart=False).as_questions()
    assert accuracies(load_model("word-overlap"), sharing)["overlap"] > 0.7
