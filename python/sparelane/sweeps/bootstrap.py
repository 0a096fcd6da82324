"""Intervals by bootstrap over seeds.

With few seeds, percentiles of plain resamples lie too close together. Percentiles farther out make up for it: those
that would give Student's t interval for a mean of normal values (Hesterberg, "What Teachers Should Know About the
Bootstrap", 2015, section 3.3, the expanded percentile interval). No interval is wider than what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sparelane.experiments.statistics import t_quantile

RESAMPLES = 4000
# The resamples are drawn alike each time, so that the same values give the same interval.
SEED = 20_140_402

Numbers = NDArray[np.float64]
Statistic = Callable[[Numbers], Numbers]


def mean_interval(values: Numbers) -> tuple[float, float] | None:
    """The 95 % interval of the mean of one value per seed; `None` for fewer than two."""
    return interval(values[None, :], lambda resamples: resamples[0].mean(axis=-1))


def interval(values: Numbers, statistic: Statistic) -> tuple[float, float] | None:
    """The 95 % interval of a statistic of values that belong together seed by seed; `None` for fewer than two seeds.

    Args:
        values: one row a quantity, one column a seed.
        statistic: from resampled values, whose last axis is the seeds and whose first one the quantities, to one number
            a resample.
    """
    seeds = values.shape[-1]
    if seeds < 2:
        return None
    numbers = statistic(values[:, _draws(seeds)])
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    tail = _tail(seeds)
    low, high = np.quantile(numbers, (tail, 1 - tail))
    return float(low), float(high)


@cache
def _draws(seeds: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).integers(0, seeds, size=(RESAMPLES, seeds))


@cache
def _tail(seeds: int) -> float:
    """What lies outside of the interval on each side, as a share of the resamples."""
    return NormalDist().cdf(-math.sqrt(seeds / (seeds - 1)) * t_quantile(seeds - 1))
