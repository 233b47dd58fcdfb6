"""The probe ``write``: predictions without ranks, scored by the words in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from all_cases import check_all
from writing_models import WRITERS, questions

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.metrics import METRICS
from merkhet.metrics.metrics import as_metric, get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.metrics.text_overlap import word_f1
from merkhet.models.loading import load_model
from merkhet.models.protocol import CandidateScores, WrittenAnswer
from merkhet.probes import PROBES
from merkhet.probes.rank import rank_candidates
from merkhet.probes.write import write_answers

RANKS = [name.replace("@k", "@2") for name in METRICS if name not in ("f1", "exact")]


class Scribe:
    """A model of somebody's own that writes what it is told to."""

    name, kind, fingerprint, methods, writing_methods = "scribe", "own", "0", ("one",), ("plain", "loud")

    def __init__(self, texts: dict[str, str | float | None]) -> None:
        self.texts = texts

    def score_candidates(self, asked, methods):
        for index, question in enumerate(asked):
            yield CandidateScores(index, {method: np.zeros(len(question.candidates)) for method in methods})

    def describe(self):
        return {}

    def write_answers(self, asked, methods, length=8):
        for method in methods:
            for index, question in reversed(list(enumerate(asked))):
                text = self.texts[question.question_id]
                if text is None:
                    yield WrittenAnswer(index, method, unusable="it would not say")
                else:
                    yield WrittenAnswer(index, method, text.upper() if method == "loud" else text, -0.5)


def scored(answers, asked, metrics=("f1", "exact")):
    rows = make_table(ANSWERS, [answer.as_row() for answer in answers]).to_pylist()
    by_id = {question.question_id: question for question in asked}
    groups = {name: {"relation": "odd" if int(name[1:]) % 2 else "even"} for name in by_id}
    return score_answers(
        "own", by_id, groups, {name: name for name in by_id}, rows, [get_metric(name) for name in metrics], seed=0
    ).to_pylist()


def overall(rows):
    return {row["metric"]: row for row in rows if not row.get("relation")}


def test_what_a_model_writes_is_its_prediction_and_nothing_is_ranked(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        answers = list(PROBES.get("write")(model, questions()))
        assert [answer.question_id for answer in answers] == [question.question_id for question in questions()]
        written = list(model.write_answers(questions(), model.writing_methods[:1]))
        for answer, own in zip(answers, written, strict=True):
            assert (answer.probe, answer.method, answer.unusable) == ("write", model.writing_methods[0], None)
            assert answer.prediction == own.text
            assert answer.ranked == ((own.text, own.score),)
            assert answer.golds == answer.gold_ranks == answer.gold_ties == ()
            assert answer.among is None

    check_all(check, WRITERS)


def test_written_answers_are_scored_by_their_words_and_by_no_rank() -> None:
    asked = questions()
    texts = {question.question_id: question.target for question in asked}
    texts |= {"q0": "paris, France", "q1": "", "q2": None, "q3": "United States"}
    model = Scribe(texts)
    rows = scored(write_answers(model, asked, ("loud",)), asked, ("f1", "exact", *RANKS))
    found = overall(rows)
    assert set(found) == {"f1", "exact"}
    assert {row["metric"] for row in rows} == {"f1", "exact"}
    assert (found["f1"]["n"], found["f1"]["unusable"]) == (7, 1)
    assert found["f1"]["value"] == pytest.approx((2 / 3 + 0 + 5) / 7)
    assert found["exact"]["value"] == pytest.approx(5 / 7)
    guess = [np.mean([word_f1(text, q.answers) for text in q.candidates]) for q in asked if q.question_id != "q2"]
    assert found["f1"]["chance"] == pytest.approx(np.mean(guess))


def test_a_group_that_could_not_be_asked_has_no_rank_either() -> None:
    asked = questions()
    model = Scribe({q.question_id: None if int(q.question_id[1:]) % 2 else q.target for q in asked})
    rows = scored(write_answers(model, asked), asked, ("f1", *RANKS))
    assert {(row["metric"], row.get("relation"), row["n"]) for row in rows} == {
        ("f1", None, 4),
        ("f1", "even", 4),
        ("f1", "odd", 0),
    }


def test_what_is_ranked_beside_keeps_its_ranks() -> None:
    asked = questions()
    model = Scribe({question.question_id: question.target for question in asked})
    rows = scored([*write_answers(model, asked), *rank_candidates(model, asked)], asked, ("f1", "r@2", "mrr_a"))
    found = {(row["probe"], row["metric"]) for row in rows}
    assert found == {("write", "f1"), ("rank", "f1"), ("rank", "r@2"), ("rank", "mrr_a")}


def test_a_metric_of_ones_own_scores_written_answers_if_it_reads_no_ranks() -> None:
    asked = questions()
    rows = make_table(
        ANSWERS, [answer.as_row() for answer in write_answers(Scribe(dict.fromkeys(_ids(asked), "a b c")), asked)]
    )
    by_id = {question.question_id: question for question in asked}
    own = [
        as_metric("words", lambda found: np.array([float(len(top[0].split())) for top in found.top])),
        as_metric("best", lambda found: found.best.rank),
    ]
    groups = {name: {} for name in by_id}
    table = score_answers("own", by_id, groups, {name: name for name in by_id}, rows.to_pylist(), own, seed=0)
    assert [(row["metric"], row["value"]) for row in table.to_pylist()] == [("words", 3.0)]


def test_every_method_gives_its_answer_in_the_order_of_the_questions() -> None:
    asked = questions()
    model = Scribe({question.question_id: question.target for question in asked})
    answers = list(write_answers(model, asked, ("loud", "plain")))
    assert [(a.question_id, a.method) for a in answers] == [
        (q.question_id, method) for q in asked for method in ("loud", "plain")
    ]
    assert [answer.method for answer in write_answers(model, asked[:1])] == ["plain"]
    with pytest.raises(InputError, match="scribe has no method 'lout'; did you mean 'loud'"):
        list(write_answers(model, asked, ("lout",)))


def test_what_cannot_be_written_says_why(writer_folders: dict[str, Path]) -> None:
    class Mute:
        name, kind, fingerprint, methods = "mute", "own", "0", ("one",)

    asked = [Question("q0", "t", "The capital of France is " * 20 + "[MASK].", ("Paris",), "Paris", ())]
    assert [answer.unusable for answer in write_answers(Mute(), asked)] == ["a model of the kind own writes no answers"]
    (answer,) = write_answers(load_model(str(writer_folders["bert"])), asked)
    assert answer.unusable.startswith("too long: ")
    assert answer.prediction is None and answer.ranked == ()
    broken = Scribe({"q0": "x"})
    broken.write_answers = lambda asked, methods, length=8: [WrittenAnswer(0, "plain", "x", float("nan"))]
    (answer,) = write_answers(broken, asked)
    assert answer.unusable == "a score is not a number"


def _ids(asked):
    return [question.question_id for question in asked]
