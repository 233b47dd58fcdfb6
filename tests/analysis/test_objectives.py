from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linguistic_runs import make_input

from merkhet.analysis.objective_effects import objectives, parse_trained_model
from merkhet.analysis.types import Line
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


def test_differences_are_paired_and_averaged_over_classes():
    given = make_input(each=25, skill=TRAINED)
    _, ahead = objectives(given).tables
    for name, objective, difference, p, n in ahead.rows:
        task, _, label = name.partition(" ")
        method, probe = ("word", "compare") if task == "semantic" else ("mask", "fill")
        lines = [Line(f"bert, {one}", probe, method) for one in (objective, "mlm")]
        ids = given.counted_ids(lines[0], task)
        first, second = (given.values(line, ids, get_metric(label.lower())) for line in lines)
        kinds = [given.questions_by_id[one].template for one in ids]
        means = [
            np.mean([a - b for a, b, own in zip(first, second, kinds, strict=True) if own == kind])
            for kind in set(kinds)
        ]
        assert difference.value == pytest.approx(np.mean(means)) and n == len(ids) and 0 < p <= 1
    told = objectives(given).sentences
    assert told[0].startswith("bert with mlm+sop is below mlm on syntactic P@1")
    assert any(text.startswith("bert with mlm+nsp is not significantly different from mlm on") for text in told)


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
