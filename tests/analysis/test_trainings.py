"""Several trainings: means and differences over them, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from merkhet.analysis.training_noise import TrainingScores, mean_over_trainings, trainings

ONE = {"facts": 60, "dynamic": 0}
OTHER = {"facts": 60, "dynamic": 100}


def trained(model: str, condition: dict, values: tuple[float, ...], *, base: str = "small", task: str = "boundary"):
    return TrainingScores(f"{base}, {model}", base, condition, task, {"acc@1": values})


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


def test_conditions_are_compared_seed_by_seed():
    first, second = (0.30, 0.42, 0.35, 0.29), (0.51, 0.60, 0.58, 0.47)
    found = trainings([trained("k = 0", ONE, first), trained("k = 100", OTHER, second)])
    (row,) = found.tables[1].rows
    model, other, task, label, difference, p, count = row
    expected = stats.ttest_rel(second, first)
    ends = expected.confidence_interval(0.95)
    assert (model, other, task, label, count) == ("small, k = 100", "small, k = 0", "boundary", "Acc@1", 4)
    assert p == pytest.approx(expected.pvalue)
    assert (difference.value, difference.low, difference.high) == pytest.approx(
        (np.mean(second) - np.mean(first), ends.low, ends.high)
    )
    assert any("is above “small, k = 0”" in sentence for sentence in found.sentences)


def test_what_differs_in_two_things_or_was_trained_once_is_not_compared():
    several = (0.1, 0.2, 0.3)
    others = {"facts": 90, "dynamic": 100}
    found = trainings([trained("k = 0", ONE, several), trained("more", others, (0.5, 0.6, 0.8))])
    assert len(found.tables) == 1
    assert trainings([trained("k = 0", ONE, (0.1,)), trained("k = 100", OTHER, (0.4,))]) is None


def test_other_models_are_compared_under_the_same_condition_and_corrected_together():
    found = trainings(
        [
            trained("k = 0", ONE, (0.1, 0.2, 0.25)),
            trained("k = 0", ONE, (0.3, 0.45, 0.5), base="large"),
            trained("k = 100", OTHER, (0.4, 0.5, 0.52)),
        ]
    )
    pairs = {(row[0], row[1]): row[5] for row in found.tables[1].rows}
    assert set(pairs) == {("large, k = 0", "small, k = 0"), ("small, k = 100", "small, k = 0")}
    raw = sorted(stats.ttest_rel(one, (0.1, 0.2, 0.25)).pvalue for one in ((0.3, 0.45, 0.5), (0.4, 0.5, 0.52)))
    assert sorted(pairs.values()) == pytest.approx([2 * raw[0], max(2 * raw[0], raw[1])])
