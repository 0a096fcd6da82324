"""Intervals by bootstrap over seeds.

With few seeds, percentiles of plain resamples lie too close together. Percentiles farther out make up for it: those
that would give Student's t interval for a mean of normal values (Hesterberg, "What Teachers Should Know About the
Bootstrap", 2015, section 3.3, the expanded percentile interval). No interval is wider than what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sparelane import student

RESAMPLES = 2000
# How many groups are resampled at once.
CHUNK = 500
# The resamples are drawn alike each time, so that the same values give the same interval.
SEED = 20_140_402

Numbers = NDArray[np.float64]
Statistic = Callable[[Numbers], Numbers]


def mean_intervals(groups: Sequence[Sequence[float]]) -> list[tuple[float, float] | tuple[None, None]]:
    """The 95 % interval of the mean of each group of values, one a seed; none for fewer than two."""
    found: list[tuple[float, float] | tuple[None, None]] = [(None, None)] * len(groups)
    for seeds in {len(group) for group in groups if len(group) > 1}:
        places = [place for place, group in enumerate(groups) if len(group) == seeds]
        weights = _weights(seeds)
        tails = (_tail(seeds), 1 - _tail(seeds))
        for first in range(0, len(places), CHUNK):
            chunk = places[first : first + CHUNK]
            means = weights @ np.array([groups[place] for place in chunk], dtype=np.float64).T
            low, high = np.quantile(means, tails, axis=0)
            for place, *ends in zip(chunk, low.tolist(), high.tolist(), strict=True):
                found[place] = (ends[0], ends[1])
    return found


@cache
def _weights(seeds: int) -> Numbers:
    """How much each seed counts in the mean of each resample."""
    counts = np.zeros((RESAMPLES, seeds))
    for column in _draws(seeds).T:
        counts[np.arange(RESAMPLES), column] += 1.0
    return counts / seeds


def distribution(values: Numbers, statistic: Statistic) -> Numbers | None:
    """A statistic of the means of resampled seeds, one number a resample; `None` for fewer than two seeds.

    Args:
        values: one row a quantity, one column a seed: values of one seed stay together.
        statistic: from the means, one row a quantity and one column a resample.
    """
    seeds = values.shape[-1]
    return statistic(values @ _weights(seeds).T) if seeds > 1 else None


def ends(numbers: Numbers, seeds: int) -> tuple[float, float] | None:
    """The 95 % interval of a statistic from its distribution over resamples of so many seeds."""
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    low, high = np.quantile(finite, (_tail(seeds), 1 - _tail(seeds)))
    return float(low), float(high)


@cache
def _draws(seeds: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).integers(0, seeds, size=(RESAMPLES, seeds))


@cache
def _tail(seeds: int) -> float:
    """What lies outside of the interval on each side, as a share of the resamples."""
    return NormalDist().cdf(-math.sqrt(seeds / (seeds - 1)) * student.quantile(0.975, seeds - 1))
