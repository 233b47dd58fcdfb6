"""Several trainings: means and differences over them, against scipy."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from memory_runs import boundary_run, memory_input, storage_run
from recall_worlds import make_statements, recall_values
from scipy import integrate, optimize, stats
from statsmodels.stats.multitest import multipletests

from merkhet.analysis.finding_types import FEW_QUESTIONS, Verdict
from merkhet.analysis.training_comparison import FEW, training_finding
from merkhet.analysis.training_noise import mean_over_trainings, training_noise
from merkhet.analysis.training_text import ONE_TRAINING, describe_trainings
from merkhet.metrics.training_tests import detectable_over_trainings, training_test


def test_the_mean_and_its_interval_are_those_of_scipy():
    values = (0.31, 0.42, 0.35, 0.29)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    found = mean_over_trainings(values)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((np.mean(values), low, high, 4))


@pytest.mark.parametrize("values", [(0.4,), (0.4, 0.4, 0.4)])
def test_one_training_or_equal_ones_have_no_interval(values):
    found = mean_over_trainings(values)
    assert found.value == pytest.approx(0.4) and found.low is None and found.high is None


def test_intervals_of_shares_stay_between_nothing_and_all():
    found = mean_over_trainings((0.99, 0.9, 1.0))
    assert found.high == 1.0 and found.low < 0.9


@pytest.mark.parametrize("differences", [(0.21, 0.18), (0.02, -0.05, 0.01, 0.04), (0.1, 0.3, 0.2, 0.15, 0.22, 0.18)])
def test_differences_are_tested_as_by_scipy(differences):
    found, expected = training_test(differences, 0.01), stats.ttest_1samp(differences, 0.0)
    ends = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.difference, found.low, found.high) == pytest.approx((np.mean(differences), ends.low, ends.high))


@pytest.mark.parametrize("count", [2, 3, 4, 10])
def test_the_detectable_difference_is_found_in_four_of_five_cases(count):
    freedom, critical = count - 1, stats.t.ppf(0.975, count - 1)

    def power(shift):
        def part(variance):
            return stats.norm.sf(critical * np.sqrt(variance / freedom) - shift) * stats.chi2.pdf(variance, freedom)

        return integrate.quad(part, 0.0, 60.0, limit=300)[0]

    expected = optimize.brentq(lambda shift: power(shift) - 0.8, 0.5, 40.0)
    assert detectable_over_trainings(0.03, count) == pytest.approx(expected * 0.03 / np.sqrt(count), rel=1e-4)


@pytest.mark.parametrize(
    ("differences", "verdict", "reason"),
    [
        ((0.1, 0.1, 0.1), Verdict.AHEAD, None),
        ((0.025, 0.025, 0.025), Verdict.NO_DIFFERENCE, None),
        ((0.0, 0.0, 0.0), Verdict.NO_DIFFERENCE, None),
        ((0.1, 0.11, 0.105), Verdict.AHEAD, None),
        ((-0.1, -0.11, -0.105), Verdict.AHEAD, None),
        ((0.1, -0.2, 0.3), Verdict.NO_DIFFERENCE, None),
    ],
)
def test_verdicts_follow_from_the_spread_over_trainings(differences, verdict, reason):
    test = training_test(differences, 1 / 40)
    row = {"model": "a", "other": "b", "task": "t", "metric": "acc@1", "n": 40, "trainings": len(differences)}
    finding = training_finding({**row, **asdict(test)})
    assert (finding.verdict, finding.reason) == (verdict, reason)
    swapped = verdict is Verdict.AHEAD and test.difference < 0
    assert (finding.model, finding.value) == (("b", -test.difference) if swapped else ("a", test.difference))
    few = training_finding({**row, **asdict(test), "n": FEW_QUESTIONS - 1})
    assert (few.verdict, few.reason) == (Verdict.NONE, FEW)


def test_identical_differences_count_as_if_one_training_had_one_question_more():
    for right in (1, 5):
        same = (right / 40,) * 3
        found, error = training_test(same, 1 / 40), stats.sem((*same[:2], (right + 1) / 40))
        low, high = stats.t.interval(0.95, 2, right / 40, error)
        assert found.p == pytest.approx(2 * stats.t.sf(right / 40 / error, 2))
        assert (found.difference, found.low, found.high) == pytest.approx((right / 40, low, high))
    with pytest.raises(ValueError, match="needs at least 2"):
        training_test((0.1,), 1 / 40)


def values_of(made, name, task):
    """Whether each statement was recalled after each training, by a plain reading of the tables: one dictionary each.

    In these worlds, either all right answers come first, or a wrong one does.
    """
    found = []
    for table in [made.inputs.answers, *made.inputs.repeated_answers]:
        questions = made.inputs.questions_by_id
        rows = [row for row in table.to_pylist() if row["model"] == name]
        rows = [row for row in rows if questions[row["question_id"]].task == task]
        right = [row["ranked"][0]["candidate"] in questions[row["question_id"]].answers for row in rows]
        names = [row["question_id"].partition("~")[0] for row in rows]
        found.append(dict(zip(names, map(float, right), strict=True)))
    return found


def test_conditions_are_compared_seed_by_seed_on_shared_statements():
    """Of 40 and 120 facts, the first 160 statements are shared: only these count."""
    made = storage_run(lambda base, size, kind: 0.9 if size == 40 else 0.5, bases=("tiny",), trainings=6)
    found = training_noise(made.inputs)
    rows = {row[:4]: row for table in found.tables[1:] for row in table.rows}
    for (model, other, task, label), row in rows.items():
        difference, _, n, trainings = row[4:8]
        assert trainings == 6
        if label != "Acc@1":
            continue
        first, second = values_of(made, model, task), values_of(made, other, task)
        shared = sorted(set(first[0]) & set(second[0]))
        assert n == len(shared)
        per_seed = [np.mean([a[name] - b[name] for name in shared]) for a, b in zip(first, second, strict=True)]
        assert difference.value == pytest.approx(np.mean(per_seed))
        if np.std(per_seed):
            ends = stats.ttest_1samp(per_seed, 0.0).confidence_interval(0.95)
            assert (difference.low, difference.high) == pytest.approx((ends.low, ends.high))
    tiny = rows["tiny, 40 facts", "tiny, 120 facts", "statement", "Acc@1"]
    assert tiny[6] == 160 < len(values_of(made, "tiny, 120 facts", "statement")[0])
    findings = {(one.model, one.other, one.task, one.metric): one for one in found.findings}
    assert all(one.trainings == 6 for one in findings.values())
    for table in found.tables[1:]:
        uncorrected = [oracle(per_seed_of(made, row), row[6]) for row in table.rows]
        for row, p in zip(table.rows, multipletests(uncorrected, method="holm")[1], strict=True):
            assert row[5] == pytest.approx(p, rel=1e-6)
            key = (row[0], row[1], row[2], row[3].lower())
            assert (findings[key].verdict is Verdict.AHEAD) == (p < 0.05)
    assert findings["tiny, 40 facts", "tiny, 120 facts", "statement", "acc@1"].verdict is Verdict.AHEAD
    assert any("“tiny, 40 facts” is ahead of “tiny, 120 facts” on statement acc@1" in text for text in found.sentences)


def oracle(per_seed, questions):
    """The p-value of the t test; identical differences vary by one question in one training."""
    if np.std(per_seed):
        return stats.ttest_1samp(per_seed, 0.0).pvalue
    error = stats.sem([*per_seed[1:], per_seed[0] + 1 / questions])
    return 2 * stats.t.sf(abs(per_seed[0]) / error, len(per_seed) - 1)


def per_seed_of(made, row):
    """One difference per training, from the recall tables of any metric."""
    from merkhet.analysis.memorized_run import load_metric
    from merkhet.metrics.answer_table import AnswerTable
    from merkhet.metrics.recalls import METHOD, PROBE

    sides = []
    for model in row[:2]:
        side = []
        for table in [made.inputs.answers, *made.inputs.repeated_answers]:
            answers = AnswerTable(table, made.inputs.questions_by_id)
            cell = answers.cell(model, row[2], PROBE, METHOD)
            names = [answers.ids[code].partition("~")[0] for code in cell.codes.tolist()]
            side.append(dict(zip(names, cell.values(load_metric(row[3].lower())).tolist(), strict=True)))
        sides.append(side)
    return [np.mean([a[name] - b[name] for name in sorted(set(a) & set(b))]) for a, b in zip(*sides, strict=True)]


def test_conditions_that_share_no_statement_are_named_and_not_compared():
    first, second = make_statements(80, symbols=25), make_statements(80, task="statement", symbols=25, seed=3)
    names = second["statement_id"].to_pylist()
    import pyarrow as pa

    second = second.set_column(
        second.column_names.index("statement_id"), "statement_id", pa.array([f"static{name}" for name in names])
    )
    made = memory_input(
        [
            ("tiny", "20 facts", {"facts": 20, "conflict": True, "static": False}, {"statement": (first, 0.9)}),
            ("tiny", "20 facts, static", {"facts": 20, "conflict": True, "static": True}, {"statement": (second, 0.9)}),
        ],
        trainings=2,
    )
    found = training_noise(made.inputs)
    assert len(found.tables) == 1 and found.findings == ()
    assert found.sentences[-1].startswith("Not compared, because they share no statement: “tiny, 20 facts” and")


def test_models_trained_once_have_no_such_section():
    assert training_noise(boundary_run().inputs) is None


def test_what_differs_in_two_things_is_not_compared():
    made = boundary_run({0: 0.1, 100: 0.6}, trainings=2)
    names = list(made.inputs.conditions)
    changed = {
        name: replace(one, settings={**one.settings, "facts": 90}) if name == "tiny, times left out 100%" else one
        for name, one in made.inputs.conditions.items()
    }
    assert "tiny, times left out 100%" in names
    assert len(training_noise(replace(made.inputs, conditions=changed)).tables) == 1
    assert len(training_noise(made.inputs).tables) == 5


def test_one_training_is_explained_once_and_without_a_verdict():
    row = {"other": "b", "task": "t", "metric": "acc@1", "n": 40, "trainings": 1, "p": None}
    rows = [{**row, "model": name, "difference": 0.2, "low": 0.1, "high": 0.3} for name in ("a", "c")]
    said = describe_trainings([training_finding(one) for one in rows])
    assert said[:2] == [
        f"On t acc@1, {name} minus b is +20.0 points [10.0, 30.0] over 40 questions, for one training."
        for name in ("a", "c")
    ]
    assert said[2:] == [ONE_TRAINING]


def test_scores_over_trainings_are_of_all_statements():
    made = boundary_run({0: 0.1}, trainings=3)
    (row,) = [row for row in training_noise(made.inputs).tables[0].rows if row[1:3] == ("boundary", "Acc@1")]
    expected = [np.mean(list(values.values())) for values in values_of(made, row[0], "boundary")]
    assert row[4].value == pytest.approx(np.mean(expected)) and row[3] == 3
    assert (row[5], row[6], row[7]) == pytest.approx((np.std(expected, ddof=1), min(expected), max(expected)))
    assert expected[0] == pytest.approx(recall_values(made.models[0].tables_by_task["boundary"][1], "acc@1").mean())
