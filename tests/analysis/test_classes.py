from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linguistic_runs import CLASSES, CLOZES, make_answers, make_input, make_questions, make_scores

from merkhet.analysis import ANALYSES
from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.classes import classes
from merkhet.analysis.types import Line
from merkhet.metrics.metrics import get_metric

NAMES = ("classes", "lengths", "layers", "extrinsic", "objectives")


def right(given, line, task, domain=None, k=1):
    """By question, whether the answer stands among the first k; 0 for what could not be asked where that is wrong."""
    found = {}
    for answer in given.answers:
        question = next(row for row in given.questions if row["question_id"] == answer["question_id"])
        own = (answer["model"], answer["probe"], answer["method"]) == (line.model, line.probe, line.method)
        if own and question["task"] == task and domain in (None, question["domain"]):
            if answer["unusable"] is None:
                found[answer["question_id"]] = float(answer["gold_ranks"][0] <= k)
            elif given.unusable_is_wrong:
                found[answer["question_id"]] = 0.0
    return found


@pytest.mark.parametrize("wrong", [True, False])
def test_what_counts_is_what_was_asked(wrong):
    given = make_input(unusable_is_wrong=wrong)
    line = Line("bert", "fill", "mask")
    for task in CLOZES:
        for k in (1, 10):
            expected = right(given, line, task, k=k)
            ids = given.counted_ids(line, task)
            assert ids == sorted(expected)
            values = given.values(line, ids, get_metric(f"p@{k}"))
            assert values.tolist() == [expected[name] for name in ids]
    assert given.counted_ids(line, "semantic") == [] and any(given.unusable[line])
    assert given.values(line, [], get_metric("p@1")).tolist() == []


def test_weights_make_a_mean_over_classes():
    given = make_input()
    line = Line("bert", "fill", "mask")
    ids = [name for name in given.counted_ids(line, "syntactic") if given.questions_by_id[name].template != "ND"]
    kept = ids[:7] + [name for name in ids if given.questions_by_id[name].template == "C"]
    kept = list(dict.fromkeys(kept))
    values = given.values(line, kept, get_metric("p@1"))
    by_class = {}
    for name, value in zip(kept, values, strict=True):
        by_class.setdefault(given.questions_by_id[name].template, []).append(value)
    expected = np.mean([np.mean(own) for own in by_class.values()])
    assert (given.weights(kept) * values).mean() == pytest.approx(expected)
    assert replace(given, average_over=None).weights(kept).tolist() == [1.0] * len(kept)


@pytest.mark.parametrize("wrong", [True, False])
def test_cells_are_as_counted_by_hand(wrong):
    given = make_input(unusable_is_wrong=wrong)
    found = classes(given)
    tables = {table.caption: table for table in found.tables}
    for probe, among in (("fill", "the whole vocabulary"), ("rank", "the candidates of each question")):
        method = "mask" if probe == "fill" else "multiple-mean"
        tasks = tables[f"Answers ranked among {among}."]
        assert [column.name for column in tasks.columns] == ["Model", "Metric", *CLOZES]
        assert ("random", "P@1") in [row[:2] for row in tasks.rows] or probe == "fill"
        for model, metric, average, *rest in tasks.rows:
            line, k = Line(model, probe, method), int(metric[2:])
            parts = [right(given, line, "syntactic", name, k) for name in CLASSES]
            assert average.value == pytest.approx(np.mean([np.mean(list(own.values())) for own in parts]))
            assert average.n == sum(map(len, parts)) and average.low <= average.value <= average.high
            for task, cell in zip(CLOZES[1:], rest, strict=True):
                assert cell.value == pytest.approx(np.mean(list(right(given, line, task, k=k).values())))
        own = tables[f"Answers ranked among {among}: the classes of syntactic."]
        assert list(dict.fromkeys(row[0][:2].strip() for row in own.rows)) == list(CLASSES)
        for name, model, first, tenth, n in own.rows:
            for cell, k in ((first, 1), (tenth, 10)):
                expected = right(given, Line(model, probe, method), "syntactic", name.partition(" ")[0], k)
                assert cell.value == pytest.approx(np.mean(list(expected.values()))) and n == len(expected)
    senses = tables["Word senses: choice of the usage with the same sense."]
    assert {row[1] for row in senses.rows} == {"word", "masked"} and all(row[3] == 0.5 for row in senses.rows)
    assert ("count as wrong" in found.explanation) == wrong
    aside = tables["Questions that could not be asked."]
    assert aside.aside and sum(row[4] for row in aside.rows) == sum(a["unusable"] is not None for a in given.answers)
    assert {row[6] for row in aside.rows} == {"the answer is unknown"}


@pytest.fixture(scope="module")
def inputs():
    return dict(hard_inputs())


def hard_inputs():
    given = make_input()
    yield "no answers", replace(given, answers=[], scores=[])
    broken = [
        {**answer, "unusable": "too long", "ranked": [], "golds": [], "gold_ranks": [], "gold_ties": []}
        for answer in given.answers
    ]
    for wrong in (True, False):
        changed = replace(given, answers=broken, unusable_is_wrong=wrong)
        yield f"unusable only {wrong}", replace(changed, scores=make_scores(changed))
    alone = replace(given, answers=[answer for answer in given.answers if answer["model"] == "bert, mlm"])
    yield "nobody", replace(alone, scores=make_scores(alone))
    one = make_input(skill={"bert, mlm": 0.5})
    yield "one model", one
    tied = [
        {**answer, "gold_ranks": [1.5], "gold_ties": [2]} if answer["unusable"] is None else answer
        for answer in one.answers
    ]
    tied_run = replace(one, answers=tied)
    yield "ties", replace(tied_run, scores=make_scores(tied_run))
    few = make_questions(1)
    yield "one question each", make_input(1, skill={"bert, mlm": 0.9, "bert, mlm+nsp": 0.1})
    other = [row for row in few.questions.to_pylist() if row["task"] == "commonsense"]
    only = make_answers(few)
    ids = {row["question_id"] for row in other}
    lone = make_input(
        1, questions=other, answers=[answer for answer in only if answer["question_id"] in ids], scores=[]
    )
    yield "no such task", replace(lone, scores=make_scores(lone))
    yield "scores of nothing", replace(given, scores=[{**row, "value": None} for row in given.scores])


@pytest.mark.parametrize("name", NAMES)
def test_an_analysis_survives(name, inputs, tmp_path: Path):
    file = tmp_path / "scores.csv"
    file.write_text('model,CMRC\n"bert, mlm",70\nbert,60\nroberta,50\n')
    assert len(inputs) == 9
    for what, given in inputs.items():
        found = ANALYSES.get(name, None)(replace(given, options=AnalysisOptions(downstream=file)))
        if found is not None:
            shown = json.loads(json.dumps(found.as_json(), allow_nan=False))
            assert shown["name"] == name and "nan" not in " ".join(shown["sentences"]).lower(), what
            assert all(len(row) == len(table["columns"]) for table in shown["tables"] for row in table["rows"]), what
        if what == "no answers":
            assert found is None or name == "extrinsic"
