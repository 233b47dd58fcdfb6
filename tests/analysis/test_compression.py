from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examined_runs import TASKS, make_input

from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.compression import check_pairs, compression, model_pairs
from merkhet.analysis.option_models import validate
from merkhet.core.errors import InputError
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.text_overlap import word_f1

LARGE, SMALL = "bert-base-cased", "distilbert-base-cased"


def values_of(given, model, measure):
    """Each usable ranked answer's agreement with the right ones, ties by their mean."""
    found = {}
    for answer in given.answers:
        if answer["model"] == model and answer["probe"] == "rank" and answer["unusable"] is None:
            tops = [one["candidate"] for one in answer["ranked"] if one["score"] == answer["ranked"][0]["score"]]
            answers = given.questions_by_id[answer["question_id"]].answers
            found[answer["question_id"]] = float(np.mean([measure(text, answers) for text in tops]))
    return found


def test_what_is_kept_is_as_counted_by_hand():
    given = make_input(facts=30)
    found = compression(given)
    assert [row[2] for row in found.tables[0].rows] == list(TASKS)
    large, small = (values_of(given, model, word_f1) for model in (LARGE, SMALL))
    for _, _, task, share, sets, ahead, p, score, less, n in found.tables[0].rows:
        shared = [name for name in large if name in small and given.questions_by_id[name].task == task]
        first, second = (sum(values[name] for name in shared) for values in (large, small))
        assert n == len(shared) and score == pytest.approx(first / n) and less == pytest.approx(second / n)
        assert ahead.value == pytest.approx((first - second) / n) and ahead.low <= ahead.value <= ahead.high
        assert share.value == pytest.approx(second / first) and share.low <= share.value <= share.high
        assert 0.0 < p <= 1.0
        assert (sets.value is None) == (task != "completion")
    assert f"{SMALL} keeps" in found.sentences[0] and "of its all-right Q-sets" in found.sentences[0]


def test_q_sets_kept_are_those_that_both_have_all_right():
    given = make_input(facts=30)
    untied = [answer | {"ranked": answer["ranked"][:1]} if answer["ranked"] else answer for answer in given.answers]
    given = replace(given, answers=untied)
    large, small = (values_of(given, model, lambda text, right: float(text in right)) for model in (LARGE, SMALL))
    known = kept = 0
    for fact in {row["qset"] for row in given.questions}:
        names = [row["question_id"] for row in given.questions if row["qset"] == fact and row["task"] == "completion"]
        names = [name for name in names if name in large and name in small]
        if len(names) > 1 and all(large[name] == 1.0 for name in names):
            known += 1
            kept += all(small[name] == 1.0 for name in names)
    sets = compression(given).tables[0].rows[0][4]
    assert known > kept > 0
    assert sets.value == pytest.approx(kept / known) and sets.n == known


def test_a_model_against_itself_keeps_all():
    given = make_input()
    twin = [answer | {"model": "twin"} for answer in given.answers if answer["model"] == SMALL]
    same = replace(given, answers=[*given.answers, *twin], options=AnalysisOptions(pairs=((SMALL, "twin"),)))
    for row in compression(same).tables[0].rows:
        assert (row[3].value, row[5].value, row[6]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("name", ["r@1", "mean-rank"])
def test_what_was_written_or_is_no_share_is_compared_by_its_words(name):
    given = make_input(headline=[(task, get_metric(name)) for task in TASKS])
    written = [answer for answer in given.answers if (answer["model"], answer["probe"]) != (LARGE, "rank")]
    by_words = make_input(answers=written)
    found = compression(replace(given, answers=written))
    assert found.tables == compression(by_words).tables and len(found.tables[0].rows) == len(TASKS)


BY_NAME = (
    (["bert-base-cased", "distilbert-base-cased", "random"], [("bert-base-cased", "distilbert-base-cased")]),
    (
        ["hub/distilroberta-base", "FacebookAI/roberta-base"],
        [("FacebookAI/roberta-base", "hub/distilroberta-base")],
    ),
    (["gpt2", "distilgpt2", "distilbert"], [("gpt2", "distilgpt2")]),
    (["bert-base-cased", "distilbert-base-uncased"], []),
)


def test_distilled_versions_are_known_by_their_names():
    wrong = [(models, model_pairs(None, models)) for models, pairs in BY_NAME if model_pairs(None, models) != pairs]
    assert wrong == []


def test_without_a_pair_there_is_nothing_to_say():
    given = make_input()
    assert compression(replace(given, answers=[a for a in given.answers if a["model"] != SMALL])) is None


NO_PAIRS = (
    ("gpt2", "must be a list [[model, smaller version]"),
    ([["gpt2"]], "options.pairs must be a list [[model, smaller version], …], got [['gpt2']]"),
    ([["gpt2", "gpt3"]], "names 'gpt3', which is not a model of this study"),
)


def test_pairs_that_are_none_are_refused():
    for pairs, words in NO_PAIRS:
        with pytest.raises(InputError) as refused:
            validate(AnalysisOptions, {"pairs": pairs}, "options")
            check_pairs(pairs, Path(), ["gpt2", "distilgpt2"])
        assert words in str(refused.value) and "\n" not in str(refused.value), pairs
