"""Storage capacity: the table, the cost of conflict and unseen facts, in runs whose truth is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from memory_runs import one_answer, recalled, storage_run
from recall_worlds import recall_values
from scipy import stats

from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import Kind, Verdict
from merkhet.analysis.training_comparison import MIN_STATEMENTS, is_measurable
from merkhet.analysis.training_noise import training_noise
from merkhet.engine._analysis_step import run_analyses
from merkhet.engine.plan import function_name
from merkhet.metrics.recalls import align_recalls
from merkhet.suites.lama_tk.analyses.storage import storage
from merkhet.suites.lama_tk.plan import EXPERIMENT_ANALYSES


def costly(base, size, kind):
    return {"with": 0.7, "without": 0.98}[kind] if base == "tiny" and size == 120 else 0.98


@pytest.fixture(scope="module")
def given():
    return storage_run(costly, several=0.4, trainings=4)


@pytest.fixture(scope="module")
def found(given):
    return storage(given.inputs)


def named(found, start):
    return next(table for table in found.tables if table.caption.startswith(start))


def test_every_condition_has_its_scores(given, found):
    table = named(found, "Recall of stored statements")
    assert [column.name for column in table.columns[4:]] == ["Acc@1", "Acc@5", "Hit@5", "Hit@10"]
    assert [row[:4] for row in table.rows] == [
        (one.base, one.facts, "with" if one.conflict else "without", one.tables_by_task["statement"][0].num_rows)
        for one in given.models
    ]
    for one, row in zip(given.models, table.rows, strict=True):
        values = recall_values(one.tables_by_task["statement"][1], "hit@10")
        assert row[-1].value == pytest.approx(values.mean()) and row[-1].low <= row[-1].value <= row[-1].high
        assert row[4].value <= row[5].value and row[6].value <= row[7].value and row[5].value >= row[6].value


def test_the_cost_of_conflict_is_paired_on_statements_with_one_answer(given, found):
    table = named(found, "Statements with one right answer, stored with")
    assert {row[2] for row in table.rows} == {"Acc@1", "Acc@5", "Hit@10"}
    first = next(row for row in table.rows if row[:3] == ("tiny", 120, "Acc@1"))
    with_all, alone = (
        next(one for one in given.models if (one.base, one.facts, one.conflict) == ("tiny", 120, kind))
        for kind in (True, False)
    )
    statements = one_answer(with_all.tables_by_task["statement"][0])
    per_seed = []
    for seed in range(4):
        values = []
        for one, share in ((with_all, 0.7), (alone, 0.98)):
            recalls = recalled(one.tables_by_task["statement"][0], share, seed=seed)
            values.append(recall_values(align_recalls(statements, recalls), "acc@1"))
        per_seed.append(np.mean(values[0] - values[1]))
        if not seed:
            assert (first[3].value, first[4].value) == pytest.approx((values[1].mean(), values[0].mean()))
    assert first[5].value == pytest.approx(np.mean(per_seed)) and first[7:] == (statements.num_rows, 4)
    ends = stats.ttest_1samp(per_seed, 0.0).confidence_interval(0.95)
    assert (first[5].low, first[5].high) == pytest.approx((ends.low, ends.high))
    assert first[6] < 0.05 and first[5].high < 0
    told = [text for text in found.sentences if "conflicting ones too" in text]
    assert (
        told[0].startswith("tiny, 120 facts: on the ") and "it costs accuracy (a cost is visible at 1 of 2" in told[0]
    )
    assert told[1].startswith("big, 120 facts") and "no cost is visible, and one of more than" in told[1]
    by_verdict = {(one.model, one.metric): one.verdict for one in found.findings}
    assert by_verdict["tiny, 120 facts without conflict", "acc@1"] is Verdict.AHEAD
    assert by_verdict["big, 120 facts", "acc@1"] is Verdict.NO_DIFFERENCE


def test_one_training_shows_the_cost_of_conflict_without_a_verdict():
    found = storage(storage_run(costly).inputs)
    (row,) = [row for row in named(found, "Statements with one right").rows if row[:3] == ("tiny", 120, "Acc@1")]
    assert row[5].high < 0 and row[6] is None and row[8] == 1
    said = " ".join(found.sentences)
    assert "conflicting ones too makes a difference of -" in said and "for one training in Acc@1." in said
    assert not re.search(r"costs|visible|ruled out|ahead|above|below the|significant|\bp [=<]", said)
    assert {one.verdict for one in found.findings} == {Verdict.NONE}


def test_a_handful_of_conflicting_statements_measures_nothing():
    """Of 480 statements, fewer than 50 conflict."""
    made = storage_run(costly, sizes=(120,), bases=("tiny",), several=0.03, trainings=3)
    found = storage(made.inputs)
    several = sum(made.models[0].tables_by_task["statement"][0]["conflict"].to_pylist())
    assert 0 < several < MIN_STATEMENTS
    reason = f"tiny, 120 facts: only {several} of 480 statements conflict: their effect cannot be measured here."
    assert reason in found.sentences
    (finding,) = found.findings
    assert (finding.kind, finding.verdict, finding.reason) == (Kind.DESIGN, Verdict.NONE, reason)
    assert (finding.count, finding.total) == (several, 480)
    assert render([finding]) == [reason], "the run and the analysis say the same"
    assert all(row[6] is None for row in named(found, "Statements with one right answer, stored with").rows)
    assert not any("ruled out" in text or "costs" in text for text in found.sentences)
    assert len(training_noise(made.inputs).tables) == 1


@pytest.mark.parametrize(
    ("count", "of", "enough"), [(49, 400, False), (50, 400, True), (50, 5001, False), (0, 0, False)]
)
def test_a_condition_needs_a_number_and_a_share_of_statements(count, of, enough):
    assert is_measurable(count, of) is enough


def test_capacity_is_the_most_facts_at_which_enough_are_kept(found):
    texts = [text for text in found.sentences if "on stored statements" in text]
    assert len(texts) == 4
    assert "; of 40 and 120 facts, 40 is the largest number with at least 95.0%." in texts[0]
    assert all(text.endswith("at least 95.0% at every size that was tried.") for text in texts[1:])


def test_unseen_facts_stand_against_the_baseline(given, found):
    table = named(found, "Facts that were not stored")
    assert len(table.rows) == len(given.models) and all(row[3] == 240 and row[4].value == 0 for row in table.rows)
    told = [text for text in found.sentences if "facts that were not stored" in text]
    assert len(told) == 2 and all("below the baseline frequency" in text for text in told)
    without = storage(given.without_baselines())
    told = [text for text in without.sentences if "facts that were not stored" in text]
    assert len(told) == 2 and not any("baseline" in text for text in told)
    assert without.tables == found.tables


def test_curves_have_a_line_for_each_model_and_kind(found):
    first, second = found.figures
    assert {row["line"] for row in first.rows} == {
        f"{base}, {kind}" for base in ("tiny", "big") for kind in ("with", "without")
    }
    assert first.log and not first.zero and first.x == "facts stored" and "Hit@10" in second.caption
    alone = storage(storage_run(bases=("tiny",)).inputs)
    assert {row["line"] for row in alone.figures[0].rows} == {"with conflict", "without conflict"}


def test_answers_and_masks_are_told_apart(found):
    by_conflict = named(found, "Statements with one right answer and with several")
    assert {row[2] for row in by_conflict.rows} == {"with"} and all(row[3] > 0 for row in by_conflict.rows)
    by_mask = named(found, "Acc@1 by what is masked")
    assert [column.name for column in by_mask.columns[3:]] == ["subject", "object", "start", "end"] and by_mask.aside
    training = named(found, "Training effort")
    assert training.rows[0][3:5] == (7, 12.5) and training.rows[0][5].value > 0


def test_without_stored_facts_there_is_nothing(given):
    assert storage(replace(given.inputs, conditions={})) is None
    only = storage(storage_run(sizes=(40,), bases=("tiny",)).inputs)
    assert only is not None and not any("at least" in text for text in only.sentences)


def test_a_run_with_other_scores_is_told_as_far_as_it_goes(given):
    few = storage(given.with_scores(lambda row: row["metric"] == "hit@5"))
    assert [column.name for column in few.tables[0].columns[4:]] == ["Hit@5"] and few.figures == ()
    assert few.sentences[0].startswith("tiny, 120 facts with conflict: Hit@5 ")
    assert storage(replace(given.inputs, scores=[])) is None


def test_all_analyses_of_an_experiment_are_made(given):
    analyses = EXPERIMENT_ANALYSES["storage"]
    names = [name if isinstance(name, str) else function_name(name) for name in analyses]
    assert [one["name"] for one in run_analyses(names, given.inputs)] == ["storage", "cutoffs", "trainings"]
    once = replace(given.inputs, repeated_answers=())
    assert [one["name"] for one in run_analyses(names, once)] == ["storage", "cutoffs"]
