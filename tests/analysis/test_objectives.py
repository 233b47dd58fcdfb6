from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from linguistic_runs import make_answers, make_input, make_questions
from scipy import stats
from statsmodels.stats.multitest import multipletests

from merkhet.analysis.finding_types import Verdict
from merkhet.analysis.objective_effects import objectives, parse_trained_model
from merkhet.analysis.types import Line
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.metrics.metrics import get_metric

TRAINED = {"bert": 0.4, "bert, mlm": 0.8, "bert, mlm+nsp": 0.75, "bert, mlm+sop": 0.2, "roberta": 0.5}


def test_models_are_known_by_their_names():
    assert parse_trained_model("hub/bert, base, mlm+sbo") == ("hub/bert, base", "mlm+sbo")
    assert parse_trained_model("bert, mlm (run2)") == ("bert (run2)", "mlm")
    assert [parse_trained_model(name) for name in ("bert", "mlm", "bert, soft", "bert, mlm+xyz")] == [None] * 4


def test_scores_stand_in_the_order_of_the_paper():
    given = make_input(skill=TRAINED)
    scores, ahead = objectives(given).tables
    assert [column.name for column in scores.columns] == ["Score", "before", "mlm", "mlm+sop", "mlm+nsp"]
    assert [row[0] for row in scores.rows] == [
        *(f"{task} P@{k}" for task in ("syntactic", "commonsense", "encyclopedia") for k in (1, 10)),
        "semantic accuracy",
    ]
    table = {
        (row["model"], f"{row['task']} {row['metric'].upper() if '@' in row['metric'] else row['metric']}"): row
        for row in given.scores
        if row["domain"] is None and row["method"] in ("mask", "word")
    }
    for name, *cells in scores.rows:
        for column, cell in zip(scores.columns[1:], cells, strict=True):
            expected = table["bert" if column.name == "before" else f"bert, {column.name}", name]
            assert (cell.value, cell.low, cell.high, cell.n) == tuple(
                expected[key] for key in ("value", "low", "high", "n")
            )
    assert len(ahead.rows) == 2 * len(scores.rows)


def several_trainings(count, skill, each=25):
    questions = make_questions(each)
    repeated = [make_table(ANSWERS, make_answers(questions, skill, seed)) for seed in range(1, count)]
    return make_input(each=each, skill=skill, repeated_answers=repeated, trained=frozenset(skill) - {"bert", "roberta"})


def mean_over_classes(given, lines, task, metric):
    """The difference of two lines, and the questions that both could be asked, by a plain mean over classes."""
    ids = sorted(set(given.counted_ids(lines[0], task)) & set(given.counted_ids(lines[1], task)))
    first, second = (given.values(line, ids, metric) for line in lines)
    kinds = [given.questions_by_id[one].template for one in ids]
    return ids, first - second, kinds


def test_differences_are_paired_by_training_and_averaged_over_classes():
    count = 4
    given = several_trainings(count, TRAINED)
    found = objectives(given)
    runs = [
        given,
        *(replace(given, answers=table.to_pylist(), repeated_answers=()) for table in given.repeated_answers),
    ]
    raw, rows = [], found.tables[1].rows
    for name, objective, difference, _, n, trainings in rows:
        task, _, label = name.partition(" ")
        method, probe = ("word", "compare") if task == "semantic" else ("mask", "fill")
        lines = [Line(f"bert, {one}", probe, method) for one in (objective, "mlm")]
        parts = [mean_over_classes(run, lines, task, get_metric(label.lower())) for run in runs]
        shared = set(parts[0][0]).intersection(*(ids for ids, _, _ in parts))
        per_seed = []
        for ids, values, kinds in parts:
            kept = [(value, kind) for name, value, kind in zip(ids, values, kinds, strict=True) if name in shared]
            of_kind = [[value for value, kind in kept if kind == own] for own in {kind for _, kind in kept}]
            per_seed.append(np.mean([np.mean(values) for values in of_kind]))
        assert (n, trainings) == (len(shared), count) and difference.value == pytest.approx(np.mean(per_seed))
        expected = stats.ttest_1samp(per_seed, 0.0)
        ends = expected.confidence_interval(0.95)
        assert (difference.low, difference.high) == pytest.approx((ends.low, ends.high))
        raw.append(expected.pvalue)
    corrected = multipletests(raw, method="holm")[1]
    assert [row[3] for row in rows] == pytest.approx(corrected.tolist())
    below = [row for row in rows if row[3] < 0.05 and row[2].value < 0 and row[1] == "mlm+sop"]
    assert below and below[0][0] in next(text for text in found.sentences if "with mlm+sop is below mlm on" in text)
    assert {one.verdict for one in found.findings} == {Verdict.AHEAD, Verdict.NO_DIFFERENCE}


def test_one_training_of_each_objective_gives_no_verdict():
    found = objectives(make_input(each=25, skill=TRAINED))
    assert all(row[3] is None and row[5] == 1 for row in found.tables[1].rows)
    assert {one.verdict for one in found.findings} == {Verdict.NONE}
    said = " ".join(found.sentences)
    assert "bert with mlm+sop, compared with mlm: syntactic P@1 -" in said and "for one training" in said
    assert not re.search(r"above|below|significant|\bp [=<]", said)


def test_the_loss_is_drawn_where_it_was_written_down():
    curve = [{"step": step, "loss": 3.0 - step / 10, "mlm": 2.0 - step / 10} for step in range(4)]
    learned = [{"model": "bert, mlm", "objective": "mlm", "curve": curve}, {"model": "bert, mlm+nsp"}]
    found = objectives(make_input(skill=TRAINED, training_records=learned))
    assert [figure.caption for figure in found.figures] == [
        "Training loss of masked words",
        "Total training loss",
    ]
    assert [row["value"] for row in found.figures[1].rows] == [3.0, 2.9, 2.8, 2.7]
    assert objectives(make_input(skill=TRAINED)).figures == ()


def test_without_mlm_alone_nothing_is_compared():
    given = make_input(skill={"bert, mlm+nsp": 0.5, "bert, mlm+sop": 0.4})
    found = objectives(given)
    assert len(found.tables) == 1 and found.sentences == ()
    assert [column.name for column in found.tables[0].columns] == ["Score", "mlm+sop", "mlm+nsp"]
    assert objectives(make_input()) is None
    assert objectives(replace(given, scores=[])) is None
