"""The bag of words against a slow and obvious count, and the control of random weights against a training's start."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from merkhet.calibration._fact_world import make_fact_world
from merkhet.calibration._word_overlap_control import BagOfWords
from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates
from merkhet.probes.write import write_answers
from merkhet.training.calibration_models import ContentSettings, Sentence, save_untrained, train_content

WORDS = st.sampled_from(["ann", "bob", "rome", "oslo", "lives", "in"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=8)


def question(prompt: str, gold: str, candidates: tuple[str, ...], name: str = "q") -> Question:
    return Question(name, "t", prompt, (gold,), gold, candidates)


def counted(sentences: list[str], prompt: str, word: str) -> float:
    """The score of a word by looking through all sentences again for every number."""
    bags = [set(re.findall(r"\w+", text)) for text in sentences]
    vocabulary = set().union(*bags)
    own = sum(word in bag for bag in bags)
    if own == 0:
        return -math.inf
    score = math.log(own)
    for other in set(re.findall(r"\w+", prompt.replace(SLOT, " "))):
        if other in vocabulary and other != word:
            both = sum(word in bag and other in bag for bag in bags)
            score += math.log((both + 1 / len(vocabulary)) / (own + 1))
    return score


@given(sentences=TEXTS, prompt=st.lists(WORDS, max_size=4).map(" ".join))
@settings(deadline=None)
def test_a_bag_of_words_scores_as_an_obvious_count_does(sentences: list[str], prompt: str) -> None:
    candidates = ("ann", "bob", "rome", "oslo", "nowhere")
    asked = question(f"{prompt} {SLOT}", "rome", candidates)
    scores = next(iter(BagOfWords(sentences).score_candidates([asked], ("co-occurrence",)))).by_method
    for candidate, found in zip(candidates, scores["co-occurrence"], strict=True):
        wanted = counted(sentences, prompt, candidate)
        assert found == pytest.approx(wanted) if math.isfinite(wanted) else found <= -1e9


TEXT = ["ann lives in rome", "ann works in oslo", "bob lives in oslo", "bob works in rome"]


def test_a_bag_of_words_knows_the_company_of_a_name_and_not_the_order() -> None:
    """Home and work stood beside the name equally often: the words are tied but for the verb, as they should be."""
    there, back = (
        question(text, "rome", ("oslo", "rome")) for text in (f"ann lives in {SLOT}", f"in lives ann {SLOT}")
    )
    first, second = BagOfWords(TEXT).score_candidates([there, back], ("co-occurrence",))
    assert first.by_method["co-occurrence"].tolist() == second.by_method["co-occurrence"].tolist()
    ranked = next(iter(rank_candidates(BagOfWords(TEXT), [there])))
    assert ranked.gold_ranks == (1.5,) and ranked.gold_ties == (2,)


def test_a_bag_of_words_can_be_asked_by_every_probe_that_fills_a_slot() -> None:
    bag = BagOfWords([*TEXT, "ann visits paris", "paris is old"])
    asked = question(f"ann visits {SLOT}", "paris", ("oslo", "rome", "paris"))
    assert next(iter(rank_candidates(bag, [asked]))).gold_ranks == (1.0,)
    filled = next(iter(fill_slots(bag, [asked])))
    assert filled.ranked[0][0] == "paris" and filled.gold_ranks == (1.0,)
    assert "ann" not in dict(filled.ranked) and "visits" not in dict(filled.ranked)
    assert next(iter(write_answers(bag, [asked]))).prediction == "paris"
    unknown = question(f"ann visits {SLOT}", "Lima", ("oslo", "Lima"))
    assert next(iter(fill_slots(bag, [unknown]))).unusable == "no right answer is a word of the text"


def test_where_words_are_tied_what_is_written_is_drawn_by_the_question() -> None:
    bag = BagOfWords(["ann saw rome", "ann saw oslo"])
    asked = [question(f"ann saw {SLOT}", "rome", (), f"q{number}") for number in range(40)]
    written = [answer.prediction for answer in write_answers(bag, asked)]
    assert set(written) == {"rome", "oslo"} and min(map(written.count, ("rome", "oslo"))) >= 8
    assert [answer.prediction for answer in write_answers(bag, asked)] == written


def test_a_bag_of_words_knows_nothing_of_people_never_named_with_a_town() -> None:
    """In the very world of a calibration: for those never shown all towns are tied."""
    world = make_fact_world(1)
    bag = BagOfWords([one.text for one in world.sentences])
    never = [one for one in world.questions if one.task == "never shown"]
    for answer in rank_candidates(bag, never):
        assert answer.gold_ties[0] >= len(never[0].candidates) - 2


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_control_of_random_weights_is_the_network_that_the_training_began_with(kind: str, tmp_path: Path) -> None:
    sentences = [Sentence(f"{name} lives in {town}.", town) for name, town in (("Ann", "Rome"), ("Bob", "Oslo"))]
    content = train_content(sentences, kind, tmp_path / "one", settings=ContentSettings(epochs=3), seed=5)
    alone = save_untrained(sentences, kind, tmp_path / "alone", seed=5)
    before, again, after = (
        load_file(folder / "model.safetensors") for folder in (content.untrained, alone, content.trained)
    )
    assert before.keys() == again.keys() == after.keys()
    assert all(before[name].equal(again[name]) for name in before)
    assert not all(before[name].equal(after[name]) for name in before)
