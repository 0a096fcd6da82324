"""Tests of the coverage of intervals over seeds, and of the rate of false differences."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from sparelane.sweeps import student_t
from sparelane.sweeps.differences import Change, Outcome, Pair, effect, outcome
from sparelane.sweeps.intervals import adjusted, jackknife, mean_intervals
from sparelane.sweeps.metrics import HEADLINES, Metric

Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]

COMPLETION = HEADLINES[0]
FINISHED = Metric("finished flows", "total")
REPETITIONS = 2000


def normal(draw: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    return draw.normal(10.0, 1.0, shape)


def common_factor(draw: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Returns noise plus an effect of the seed that is common to both schemes and the same in each call."""
    factor = np.random.default_rng(8).lognormal(0.0, 0.3, shape)
    return factor * draw.normal(10.0, 0.5, shape)


@pytest.mark.parametrize("seeds", [3, 4, 5, 8, 10, 20])
def test_intervals_of_means_cover_the_true_mean_in_at_least_93_of_100_cases(seeds: int) -> None:
    draw = np.random.default_rng(seeds)
    found = mean_intervals(normal(draw, (REPETITIONS, seeds)).tolist())
    inside = sum(low is not None and high is not None and low <= 10.0 <= high for low, high in found)
    assert 0.93 <= inside / REPETITIONS <= 0.97


def pair(one: NDArray[np.float64], other: NDArray[np.float64]) -> Pair:
    samples = dict(enumerate(zip(one.tolist(), other.tolist(), strict=True)))
    return Pair("", {}, samples, is_exact=False)


@pytest.mark.parametrize("metric", [COMPLETION, FINISHED], ids=["ratio", "difference"])
@pytest.mark.parametrize("make", [normal, common_factor])
@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_intervals_of_changes_cover_the_true_change(seeds: int, make: Draw, metric: Metric) -> None:
    draw = np.random.default_rng(100 + seeds)
    one, other = make(draw, (REPETITIONS, seeds)), 0.8 * make(draw, (REPETITIONS, seeds))
    if metric is FINISHED:
        other = one - 2.0 + draw.normal(0.0, 1.0, one.shape)
    truth = -2.0 if metric is FINISHED else -0.2
    changes = [effect([pair(*both)], metric) for both in zip(one, other, strict=True)]
    assert 0.93 <= np.mean([_covers(change, truth) for change in changes]) <= 0.97


def _covers(change: Change, truth: float) -> bool:
    return change.low is not None and change.high is not None and change.low <= truth <= change.high


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_interval_of_several_settings_covers_the_mean_change(seeds: int) -> None:
    draw = np.random.default_rng(200 + seeds)
    inside = 0
    for _ in range(600):
        pairs = [pair(draw.normal(5.0, 0.4, seeds), ratio * draw.normal(5.0, 0.4, seeds)) for ratio in (0.5, 0.8)]
        inside += _covers(effect(pairs, COMPLETION), float(np.sqrt(0.5 * 0.8)) - 1)
    assert inside / 600 >= 0.93


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_equal_schemes_seem_different_in_about_5_of_100_cases(seeds: int) -> None:
    draw = np.random.default_rng(300 + seeds)
    one, other = (common_factor(draw, (REPETITIONS, seeds)) for _ in range(2))
    pairs = [pair(*both) for both in zip(one, other, strict=True)]
    outcomes = []
    for each in pairs:
        change = effect([each], COMPLETION)
        outcomes.append(outcome(change, change.p, COMPLETION, 0.0, [each]))
    clear = sum(found in (Outcome.BETTER, Outcome.WORSE) for found in outcomes)
    assert 0.035 <= clear / REPETITIONS <= 0.065


def test_fewer_than_three_seeds_have_no_interval_and_equal_values_one_of_zero_width() -> None:
    assert mean_intervals([[1.0], [2.0, 2.0], [2.0, 3.0]]) == [(None, None)] * 3
    [(low, high)] = mean_intervals([[0.1] * 3])
    assert low == high == pytest.approx(0.1)


def test_the_jackknife_interval_of_a_mean_is_students_interval() -> None:
    values = [3.1, 2.7, 3.9, 3.3]
    found = jackknife([{seed: [value] for seed, value in enumerate(values)}], lambda means: float(means[0][0]))
    assert found.interval == pytest.approx(mean_intervals([values])[0], rel=1e-12)


def test_settings_with_different_seeds_are_combined() -> None:
    samples = [{1: [1.0], 2: [2.0], 3: [3.0]}, {2: [5.0], 3: [4.0], 4: [6.0], 5: [5.0]}]
    found = jackknife(samples, lambda means: float(means[0][0] + means[1][0]))
    assert (found.value, found.degrees_of_freedom) == (7.0, 2)
    assert found.error is not None
    assert found.error > 0


def test_adjusted_p_values_match_scipy() -> None:
    ps = [0.001, 0.2, 0.04, 0.03, 0.0001, 0.9]
    assert adjusted([*ps, None])[:-1] == pytest.approx(false_discovery_control(ps).tolist())
    assert adjusted([None, 0.3]) == [None, 0.3]


@pytest.mark.parametrize("degrees_of_freedom", [1, 2, 3, 4, 9, 30, 999])
def test_p_values_match_scipy(degrees_of_freedom: int) -> None:
    for t in (0.0, 0.3, -1.7, 4.3, 20.0):
        expected = 2 * float(stdtr(degrees_of_freedom, -abs(t)))
        assert student_t.two_sided(t, degrees_of_freedom) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_t.two_sided(1.0, 0)
