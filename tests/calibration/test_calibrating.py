"""Real trainings: the probes of merkhet pass, and probes that cheat, leak, guess or break off do not."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from merkhet.calibration import calibrate
from merkhet.calibration._calibration_verdict import BAG, RANDOM, TRAINED
from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, NEVER_SHOWN
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Answer
from merkhet.probes.rank import rank_candidates

DOCS = Path(__file__).parents[2] / "docs" / "calibration.md"
TRAININGS = 2
"""One has too few facts to rule out a leak in every control."""


def by_place(card) -> dict:
    return {(row["content"], row["model"]): row for row in card["rows"]}


@pytest.fixture(scope="module")
def rank_cards(models):
    return {card["kind"]: card for card in calibrate("rank", trainings=TRAININGS, models=models)}


@pytest.mark.train
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_rank_finds_what_was_memorized_and_not_what_was_never_shown(rank_cards, kind: str) -> None:
    card = rank_cards[kind]
    rows = by_place(card)
    assert card["passed"] and card["probe"] == "rank" and card["metric"] == "accuracy", card["verdict"]
    assert rows[MEMORIZED, TRAINED]["value"] > 0.95
    for place in ((NEVER_SHOWN, TRAINED), (NEVER_SHOWN, BAG), (MEMORIZED, RANDOM), (NEVER_SHOWN, RANDOM)):
        assert rows[place]["wanted"] == "no more than chance" and rows[place]["value"] < 0.2
    assert 0.3 < rows[MEMORIZED, BAG]["value"] < 0.7, "a bag of words has two towns to choose from"
    assert rows[MEMORIZED, TRAINED]["n"] == rows[MEMORIZED, TRAINED]["facts"] == 60 * TRAININGS
    assert rows[NEVER_SHOWN, TRAINED]["n"] == 120 * TRAININGS


@pytest.mark.train
def test_a_card_is_json_and_says_how_it_was_made(rank_cards, models) -> None:
    card = json.loads(json.dumps(rank_cards["causal"], allow_nan=False))
    assert card["made"]["command"] == f"merkhet calibrate rank --trainings {TRAININGS}"
    assert card["made"]["torch"] and card["made"]["merkhet"] and card["seed"] == 0
    assert str(models.folder) not in json.dumps(card)
    assert any("without a probe, the models know" in sentence for sentence in card["sentences"])
    assert "for 30 in the wording of the questions and in another" in card["about"]


@pytest.mark.train
@pytest.mark.parametrize(("probe", "kind", "metric"), [("fill", "masked", "accuracy"), ("write", "causal", "exact")])
def test_the_other_probes_that_fill_slots_pass(models, probe: str, kind: str, metric: str) -> None:
    (card,) = calibrate(probe, kinds=[kind], trainings=TRAININGS, models=models)
    assert card["passed"] and card["metric"] == metric, card["verdict"]
    assert card["made"]["command"] == f"merkhet calibrate {probe} --kind {kind} --trainings {TRAININGS}"


@pytest.mark.train
def test_compare_finds_senses_that_were_read_and_none_that_were_not(models) -> None:
    (card,) = calibrate("compare", kinds=["causal"], trainings=TRAININGS, models=models)
    rows = by_place(card)
    assert card["passed"] and card["metric"] == "accuracy", card["verdict"]
    assert rows[MEMORIZED, BAG]["value"] == 0.5, "no two sentences share a word"
    assert rows[NEVER_SHOWN, TRAINED]["facts"] == 48 * TRAININGS


def found(question, model, probe: str, right: bool) -> Answer:
    """An answer that ranks the right candidate first, or last."""
    rank = 1.0 if right else float(len(question.candidates))
    return Answer(
        question.question_id,
        model.name,
        probe,
        "guess",
        question.target if right else question.candidates[0],
        golds=question.answers,
        gold_ranks=(rank,),
        gold_ties=(1,),
    )


def cheating(model, questions, methods=()):
    """Look up what is right."""
    yield from (found(question, model, "cheating", True) for question in questions)


def deaf(model, questions, methods=()):
    """Guess, whatever the model says."""
    draw = random.Random(0)
    yield from (found(one, model, "deaf", draw.random() < 1 / len(one.candidates)) for one in questions)


def calibrated(probe, models):
    (card,) = calibrate(probe, kinds=["causal"], trainings=TRAININGS, models=models)
    return card, by_place(card)


def test_a_probe_that_finds_what_was_never_shown_fails(brief_models) -> None:
    card, rows = calibrated(cheating, brief_models)
    assert card["passed"] is False and card["probe"] == "cheating"
    assert rows[MEMORIZED, TRAINED]["passed"] is True
    assert rows[NEVER_SHOWN, TRAINED]["role"] == "specificity" and rows[NEVER_SHOWN, TRAINED]["passed"] is False
    assert rows[MEMORIZED, RANDOM]["passed"] is False
    assert card["verdict"].startswith(
        "FAILED: cheating cannot be trusted on causal models. Specificity: it finds 100.0%"
    )
    assert "in random weights, which have learned nothing" in card["verdict"]


@pytest.mark.train
def test_a_probe_that_leaks_one_answer_in_four_fails(models, tmp_path: Path) -> None:
    """The one that docs/calibration.md shows."""
    code = re.search(r"^# leaking\.py\n.*?(?=^```$)", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "leaking.py").write_text(code[0], encoding="utf-8")
    (card,) = calibrate("leaking.py:leak", kinds=["causal"], trainings=TRAININGS, home=tmp_path, models=models)
    rows = by_place(card)
    assert card["passed"] is False and card["probe"] == "leak" and "Specificity: it finds" in card["verdict"]
    assert rows[MEMORIZED, TRAINED]["passed"] is True and 0.2 < rows[NEVER_SHOWN, TRAINED]["value"] < 0.5


def test_a_probe_that_guesses_fails_for_its_sensitivity_alone(brief_models) -> None:
    card, rows = calibrated(deaf, brief_models)
    assert card["passed"] is False and "Sensitivity: it finds" in card["verdict"]
    assert rows[MEMORIZED, TRAINED]["passed"] is False and rows[NEVER_SHOWN, TRAINED]["passed"] is True


def breaking(model, questions, methods=()):
    """Break off."""
    raise ValueError("no such\nlayer")


def forgetful(model, questions, methods=()):
    """Leave out every other question."""
    return rank_candidates(model, questions[::2], methods)


def talkative(model, questions, methods=()):
    """Answer more than was asked."""
    yield from rank_candidates(model, questions, methods)
    yield found(replace(questions[0], question_id="another"), model, "talkative", True)


def patchy(model, questions, methods=()):
    """Look up what is right now and then, and call it another method."""
    for number, answer in enumerate(rank_candidates(model, questions, methods)):
        yield found(questions[number], model, "patchy", True) if number % 4 == 3 else answer


def formless(model, questions, methods=()):
    """Give words, not answers."""
    return ["Paris" for _ in questions]


def refusing(model, questions, methods=()):
    """Ask nothing."""
    for question in questions:
        yield Answer(question.question_id, model.name, "refusing", "none", unusable="this probe is for pictures")


REFUSED = (
    (breaking, r"^the probe breaking failed with ValueError: no such layer \(test_calibrating\.py, line \d+\)$"),
    (forgetful, "the probe forgetful gave no answer to 2 of 4 questions; return an answer with the reason as unusable"),
    (talkative, "the probe talkative answered 1 question without being asked"),
    (patchy, "the probe patchy answered 1 of 4 questions by another method than multiple-mean, its first"),
    (formless, r"the probe formless returned a str; it must return records\.Answer only"),
    (refusing, r"refusing cannot be calibrated: .*masked models: this probe is for pictures; causal models: this"),
)


def test_a_probe_that_does_not_do_its_part_is_refused_before_anything_is_trained() -> None:
    for probe, words in REFUSED:
        with pytest.raises(MerkhetError, match=words):
            calibrate(probe)


def needing_a_network(model, questions, methods=()):
    """Rank honestly, by way of something that only a network has."""
    _ = model.tokenizer
    return (replace(answer, probe="needing") for answer in rank_candidates(model, questions, methods))


@pytest.mark.train
def test_a_probe_that_cannot_ask_a_bag_of_words_is_judged_without_it(models) -> None:
    card, rows = calibrated(needing_a_network, models)
    assert card["passed"] and rows[MEMORIZED, BAG]["value"] is None and rows[NEVER_SHOWN, BAG]["passed"] is None
    assert any("This probe cannot ask a bag of words" in sentence for sentence in card["sentences"])


@pytest.mark.train
def test_what_a_probe_calls_unusable_was_not_found(models) -> None:
    """Whoever leaves out what is hard gains nothing by it."""

    def choosy(model, questions, methods=()):
        for question, answer in zip(questions, rank_candidates(model, questions, methods), strict=True):
            hard = question.task == MEMORIZED and question.relation == "work"
            yield Answer(answer.question_id, model.name, "rank", answer.method, unusable="hard") if hard else answer

    card, rows = calibrated(choosy, models)
    assert card["passed"] is False and rows[MEMORIZED, TRAINED]["value"] == pytest.approx(0.5, abs=0.03)
    assert any(f"{60 * TRAININGS // 2} questions could not be asked" in sentence for sentence in card["sentences"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kinds": ["maskd"]}, "there is no kind of model 'maskd'; did you mean 'masked'"),
        ({"trainings": 0}, "trainings must be an integer ≥ 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, words: str) -> None:
    with pytest.raises(InputError, match=words):
        calibrate("rank", **arguments)


@pytest.mark.parametrize(
    ("probe", "kind", "reason"),
    [("rank", "encoder", "encoders: they have no head to answer with"), ("fill", "causal", "causal models: ")],
)
def test_a_kind_that_a_probe_cannot_ask_is_refused(probe: str, kind: str, reason: str) -> None:
    with pytest.raises(MerkhetError, match=f"{probe} cannot be calibrated: .*{reason}"):
        calibrate(probe, kinds=[kind])


@pytest.mark.train
def test_transfer_is_told(rank_cards) -> None:
    rows = by_place(rank_cards["masked"])
    assert rows[IN_OTHER_WORDS, TRAINED]["role"] == "transfer" and rows[IN_OTHER_WORDS, TRAINED]["wanted"] is None
    transfer = [sentence for sentence in rank_cards["masked"]["sentences"] if sentence.startswith("Transfer: it finds")]
    assert transfer and "facts that were shown in other words only" in transfer[0]
