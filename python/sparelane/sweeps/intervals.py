"""Confidence intervals over seeds.

The runs of a setting differ only in their seeds, so their numbers are independent draws from one distribution. The mean
of such numbers has Student's t interval. It covers the true mean in 95 % of cases if the numbers are approximately
normally distributed, as means over many flows usually are. For skewed numbers and few seeds it covers less: 82 % for
five lognormal values with sigma = 1. A bootstrap would not help, since it covers less than Student's interval for small
samples (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).

Statistics over several settings, some of which may lack a seed, use the delete-one jackknife. The statistic is computed
without each seed in turn, and its standard error follows from the spread of these values. For a mean, the result equals
Student's interval.

Two seeds have one degree of freedom. Their interval would extend thirteen standard errors to each side and depend
entirely on the normal assumption, so two seeds get no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sparelane.sweeps import student_t

# The smallest number of seeds with an interval.
FEWEST_SEEDS = 3
# The coverage of intervals.
CONFIDENCE = 0.95
# A spread below this share of the values is due to rounding.
ROUNDING = 1e-12

Numbers = NDArray[np.float64]
Interval = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True, slots=True)
class Estimated:
    """A statistic with its standard error.

    Attributes:
        value: the statistic of all seeds.
        error: the standard error; `None` for fewer than `FEWEST_SEEDS` seeds, or if the statistic without one of the
            seeds is not finite.
        degrees_of_freedom: one less than the number of seeds.
    """

    value: float
    error: float | None
    degrees_of_freedom: int

    @property
    def interval(self) -> Interval:
        """The ends of the 95 % interval."""
        if self.error is None:
            return None, None
        half = _t(self.degrees_of_freedom) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float | None:
        """The p-value of the hypothesis that the statistic is 0."""
        if self.error is None:
            return None
        if self.error == 0:
            return 0.0 if self.value else 1.0
        return student_t.two_sided(self.value / self.error, self.degrees_of_freedom)


def mean_intervals(groups: Sequence[Sequence[float]]) -> list[Interval]:
    """Student's 95 % interval of the mean of each group of values, with one value per seed.

    Groups of fewer than `FEWEST_SEEDS` values have no interval.
    """
    found: list[Interval] = [(None, None)] * len(groups)
    for seeds in {len(group) for group in groups if len(group) >= FEWEST_SEEDS}:
        places = [place for place, group in enumerate(groups) if len(group) == seeds]
        values = np.array([groups[place] for place in places], dtype=np.float64)
        means = values.mean(axis=1)
        half = _t(seeds - 1) * values.std(axis=1, ddof=1) / math.sqrt(seeds)
        # The spread of equal values is zero, even if rounding leaves a small rest.
        half = np.where(np.ptp(values, axis=1) == 0, 0.0, half)
        for place, mean, around in zip(places, means.tolist(), half.tolist(), strict=True):
            found[place] = (mean - around, mean + around)
    return found


def jackknife(
    samples: Sequence[Mapping[int, Sequence[float]]], statistic: Callable[[Sequence[Numbers]], float]
) -> Estimated:
    """A statistic of means over seeds, with the standard error of the delete-one jackknife.

    Args:
        samples: for each setting, its quantities by seed. Each seed is left out of all settings at the same time, since
            settings with equal seeds are not independent.
        statistic: computes the statistic from the mean quantities of each setting.
    """
    arrays = [np.array([[*sample[seed]] for seed in sample], dtype=np.float64) for sample in samples]
    value = statistic([array.mean(axis=0) for array in arrays])
    fewest = min(map(len, arrays), default=0)
    if fewest < FEWEST_SEEDS or not math.isfinite(value):
        return Estimated(value, None, fewest - 1)
    sums = [array.sum(axis=0) for array in arrays]
    rows = [{seed: row for row, seed in enumerate(sample)} for sample in samples]
    seeds = list(dict.fromkeys(seed for sample in samples for seed in sample))
    without = []
    for seed in seeds:
        means = []
        for array, total, row in zip(arrays, sums, rows, strict=True):
            place = row.get(seed)
            means.append(total / len(array) if place is None else (total - array[place]) / (len(array) - 1))
        without.append(statistic(means))
    left = np.array(without)
    if not np.isfinite(left).all():
        return Estimated(value, None, fewest - 1)
    error = math.sqrt((len(left) - 1) * float(np.mean((left - left.mean()) ** 2)))
    size = max(abs(value), float(np.abs(left).max()), 1.0 if value == 0 else 0.0)
    return Estimated(value, error if error > ROUNDING * size else 0.0, fewest - 1)


def adjusted(ps: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted for multiple comparisons, by Benjamini and Hochberg (1995).

    If differences with an adjusted p-value of at most 5 % count as clear, at most 5 % of them are expected to be false.
    If no difference is real, the probability that any counts as clear is at most 5 %.
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    found: list[float | None] = [None] * len(ps)
    least = 1.0
    for rank in range(len(known), 0, -1):
        p, place = known[rank - 1]
        least = min(least, p * len(known) / rank)
        found[place] = least
    return found


@cache
def _t(degrees_of_freedom: int) -> float:
    """Half of the width of an interval, in standard errors."""
    return student_t.quantile(0.5 + CONFIDENCE / 2, degrees_of_freedom)
