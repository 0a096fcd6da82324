"""Tests of means and intervals."""

import math

import pytest
import scipy.stats

from sparelane.papers.engine.statistics import estimate, t_quantile


@pytest.mark.parametrize(("degrees", "printed"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)])
def test_quantiles_agree_with_printed_tables(degrees: int, printed: float) -> None:
    assert t_quantile(degrees) == pytest.approx(printed, abs=5e-4)


def test_interval_agrees_with_scipy() -> None:
    values = [0.125, 0.131, 0.119, 0.128, 0.140]
    found = estimate(values)
    low, high = scipy.stats.t.interval(0.95, 4, loc=found.mean, scale=scipy.stats.sem(values))
    assert found.mean == pytest.approx(sum(values) / 5)
    assert found.ci95 == pytest.approx((high - low) / 2, rel=1e-12)


def test_one_value_has_no_interval() -> None:
    assert estimate([3.0]).ci95 is None


def test_equal_values_have_an_interval_of_zero() -> None:
    assert estimate([2.0, 2.0, 2.0]).ci95 == 0.0


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_values_without_a_mean_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"average"):
        estimate(values)
