"""The probe ``compare``: senses ranked by similarity, ties by expectation, and a reason where there is nothing."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sense_questions import CHINESE, ENGLISH, sense_question, similarities

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.models.baselines import RandomBaseline
from merkhet.models.loading import load_model
from merkhet.models.protocol import CandidateScores
from merkhet.models.word_overlap import overlap, split_words
from merkhet.probes import PROBES
from merkhet.probes.compare import compare_senses
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates
from merkhet.probes.write import write_answers

CLOZE = Question("cloze", "t", "The capital of France is [MASK].", ("Paris",), "Paris", ("Paris", "Rome"))


class Given:
    """A model of somebody's own whose similarities are given."""

    name, kind, fingerprint, methods = "given", "own", "0", ()
    comparing_methods = ("one", "two")

    def __init__(self, *values: list[float]) -> None:
        self.values = values

    def score_candidates(self, questions, methods):
        return iter(())

    def compare_senses(self, questions, methods):
        for index in reversed(range(len(questions))):
            own = np.array(self.values[index], dtype=float)
            yield CandidateScores(index, {method: -own if method == "two" else own for method in methods})

    def describe(self):
        return {}


def accuracy(answers, questions):
    rows = make_table(ANSWERS, [answer.as_row() for answer in answers]).to_pylist()
    by_id = {question.question_id: question for question in questions}
    table = score_answers(
        "own",
        by_id,
        {name: {} for name in by_id},
        {name: name for name in by_id},
        rows,
        [get_metric("accuracy")],
        seed=0,
    )
    return {row["method"]: row["value"] for row in table.to_pylist()}


def test_the_probe_says_that_it_compares() -> None:
    assert PROBES.get("compare") is compare_senses
    assert compare_senses.compares_senses is True
    assert [name for name in PROBES if getattr(PROBES.get(name), "compares_senses", False)] == ["compare"]


def test_candidates_are_ranked_by_similarity() -> None:
    first, second = sense_question("first", "a", "_", "_ x", "_ y"), sense_question("second", "a", "_", "_ x", "_ y")
    model = Given([0.2, 0.7], [0.5, 0.5])
    answers = list(compare_senses(model, [first, second], ("one", "two")))
    assert [(answer.question_id, answer.method) for answer in answers] == [
        ("first", "one"),
        ("first", "two"),
        ("second", "one"),
        ("second", "two"),
    ]
    wrong, right, tied, _ = answers
    assert (wrong.probe, wrong.model, wrong.unusable) == ("compare", "given", None)
    assert wrong.ranked == ((f"{SLOT} y", 0.7), (f"{SLOT} x", 0.2)) and wrong.prediction == f"{SLOT} y"
    assert (wrong.golds, wrong.gold_ranks, wrong.gold_ties) == ((f"{SLOT} x",), (2.0,), (1,))
    assert (right.prediction, right.gold_ranks) == (f"{SLOT} x", (1.0,))
    assert (tied.gold_ranks, tied.gold_ties) == ((1.5,), (2,))
    assert accuracy(answers, [first, second]) == {"one": 0.25, "two": 0.75}
    assert [answer.method for answer in compare_senses(model, [first, second])] == ["one", "one"]


def test_a_tie_of_a_real_model_is_half_right(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    question = sense_question("q", "Rome", "_ is a city.", "The capital is _.", "the CAPITAL is _.")
    answers = list(compare_senses(model, [question], ("word@all", "masked")))
    assert {answer.gold_ranks for answer in answers} == {(1.5,)}
    assert accuracy(answers, [question]) == dict.fromkeys(("word@0", "word@1", "word", "masked"), 0.5)


@pytest.mark.parametrize("family", ["bert-chinese", "gpt2"])
def test_answers_are_those_of_the_states(model_folders: dict[str, Path], family: str) -> None:
    model = load_model(str(model_folders[family]))
    questions = [*ENGLISH, *(CHINESE if family == "bert-chinese" else ())]
    found = similarities(model, questions, "word@all")
    answers = list(compare_senses(model, questions, ("word@all",)))
    assert len(answers) == 3 * len(questions)
    assert {answer.method for answer in answers} == {"word@0", "word@1", "word"}
    places = {question.question_id: index for index, question in enumerate(questions)}
    for answer in answers:
        index = places[answer.question_id]
        values = found[index][answer.method]
        assert dict(answer.ranked) == dict(zip(questions[index].candidates, values, strict=True))
        better, equal = sum(value > values[0] for value in values), values.count(values[0])
        assert answer.gold_ranks == (better + (equal + 1) / 2,)


def test_every_question_is_answered_by_every_layer(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    names = ["word@0", "word@1", "word"]
    long = sense_question("long", "Rome", "is " * 80 + "_", "_", "in _")
    unfit = sense_question("unfit", "", "_ is a gas.", "A _ is old.", "The _ is true.", words=("It", "metal"))
    slotless = Question("slotless", "t", f"{SLOT} is", ("a",), "a", ("a", "b"), words=("It",))
    for asked in ([long], [CLOZE], [long, ENGLISH[0], CLOZE, unfit, slotless]):
        answers = list(compare_senses(model, asked, ("word@all",)))
        expected = [(question.question_id, name) for question in asked for name in names]
        assert [(answer.question_id, answer.method) for answer in answers] == expected
    reasons = {answer.question_id: answer.unusable for answer in answers}
    assert reasons.pop(ENGLISH[0].question_id) is None
    assert reasons.pop("long").startswith("too long: ")
    assert reasons.pop("cloze") == "this question has no words to compare; ask it by another probe"
    assert reasons.pop("unfit") == reasons.pop("slotless")
    assert not reasons


def test_other_probes_leave_senses_alone(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    asked = [ENGLISH[0], CLOZE, ENGLISH[1]]
    for probe in (rank_candidates, fill_slots, write_answers):
        answers = list(probe(model, asked))
        assert [answer.question_id for answer in answers] == [question.question_id for question in asked]
        reasons = [answer.unusable for answer in answers]
        assert reasons == [
            "this question compares senses; ask it by the probe compare",
            None,
            "this question compares senses; ask it by the probe compare",
        ]
        assert {answer.method for answer in answers} == {answers[1].method}
        (alone,) = probe(model, [CLOZE])
        assert (answers[1].prediction, answers[1].gold_ranks) == (alone.prediction, alone.gold_ranks)
        assert [answer.unusable for answer in probe(model, asked[:1])] == reasons[:1]
    causal = load_model(str(model_folders["gpt2"]))
    assert next(fill_slots(causal, asked)).unusable == reasons[0]


def test_unknown_methods_and_layers(model_folders: dict[str, Path]) -> None:
    masked, causal = load_model(str(model_folders["bert-uncased"])), load_model(str(model_folders["gpt2"]))
    with pytest.raises(InputError, match=r"has no layer 3; its layers are 0 \(the embeddings\) to 2 \(the last\)"):
        list(compare_senses(masked, ENGLISH, ("word@3",)))
    with pytest.raises(InputError, match="did you mean 'word@all'"):
        list(compare_senses(masked, ENGLISH, ("word@al",)))
    with pytest.raises(InputError, match="gpt2 has no method 'masked'"):
        list(compare_senses(causal, ENGLISH, ("masked",)))
    assert {answer.method for answer in compare_senses(masked, ENGLISH)} == {"word"}
    assert {answer.method for answer in compare_senses(masked, ENGLISH, ("masked@0", "word@2"))} == {
        "masked@0",
        "word@2",
    }


def test_a_model_that_compares_nothing_says_so() -> None:
    answers = list(compare_senses(load_model("frequency"), [ENGLISH[0], CLOZE]))
    assert [answer.unusable for answer in answers] == [
        "a model of the kind baseline compares no senses",
        "this question has no words to compare; ask it by another probe",
    ]
    assert {answer.method for answer in answers} == {"word"}


def test_the_random_baseline_guesses() -> None:
    texts = [(f"_ {number}", f"{number} _") for number in range(2000)]
    asked = [sense_question(str(number), "a", "_", *choices) for number, choices in enumerate(texts)]
    answers = list(compare_senses(RandomBaseline(), asked))
    assert accuracy(answers, asked)["uniform"] == pytest.approx(0.5, abs=0.05)
    again = list(compare_senses(load_model("random"), asked[::-1]))[::-1]
    assert [answer.ranked for answer in answers] == [answer.ranked for answer in again]


def test_the_overlap_of_words() -> None:
    model = load_model("word-overlap")
    english = sense_question("en", "bank", "The _ of the river, wide.", "A wide River _!", "the _ lends money")
    chinese = sense_question("zh", "口", "他的_很大。", "_大", "出_在那里。")
    tied = sense_question("tied", "a", "b c d _", "_ b c", "d _ c", "d_b")
    asked = [english, chinese, tied, CLOZE]
    found = list(compare_senses(model, asked))
    assert {answer.method for answer in found} == {"overlap"}
    scores = [dict(answer.ranked) for answer in found]
    # the 2, of, river, wide: 7; a, wide, river: 3; the, lends, money: 3.
    assert list(scores[0].values()) == pytest.approx([2 / math.sqrt(7 * 3), 2 / math.sqrt(7 * 3)])
    assert found[0].gold_ties == (2,)
    assert scores[1] == pytest.approx({f"{SLOT}大": 1 / 2, f"出{SLOT}在那里。": 0.0})
    assert found[2].gold_ties == (3,)
    assert found[3].unusable == "this question has no words to compare; ask it by another probe"
    (ranked,) = rank_candidates(model, [CLOZE])
    assert (ranked.method, ranked.unusable) == ("rank", "word-overlap only compares sentences")


def test_words_of_several_scripts() -> None:
    assert split_words("The Bank's 2 口，Ｂank日本のビル!") == ["the", "bank", "s", "2", "口", "ｂank", *"日本のビル"]
    assert split_words("हिन्दी में") == ["हिन्दी", "में"]
    assert split_words("—, 。") == []


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcde")), st.lists(st.sampled_from("abcde")))
def test_overlap_is_a_cosine(first: list[str], second: list[str]) -> None:
    bags = [np.array([own.count(word) for word in "abcde"], dtype=float) for own in (first, second)]
    norms = np.linalg.norm(bags[0]) * np.linalg.norm(bags[1])
    expected = bags[0] @ bags[1] / norms if norms else 0.0
    assert overlap(Counter(first), Counter(second)) == pytest.approx(expected)
    assert overlap(Counter(first), Counter(second)) == overlap(Counter(second), Counter(first))
    assert overlap(Counter(first * 3), Counter(second)) == overlap(Counter(first), Counter(second))
