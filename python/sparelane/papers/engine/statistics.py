"""Means and confidence intervals over repeated runs, and when two numbers agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95

# How far a number may be from a paper's before it wants a reason: a share of the paper's, or percentage points.
SHARE_TOLERATED = 0.10
POINTS_TOLERATED = 5.0
# Loss rates, and shares that both lie below a bound, say little by their points: they are compared as ratios.
SMALL_SHARE_PERCENT = 5.0
FACTOR_TOLERATED = 2.0
# Less than this counts as this in a ratio of shares: the papers print 0.001 % at the least, and round to it.
SMALLEST_SHARE_PERCENT = 0.0005


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how well it is known.

    Attributes:
        mean: the arithmetic mean, in the values' unit.
        ci95: half the width of the 95 % confidence interval, in the values' unit; `None` for a single value.
    """

    mean: float
    ci95: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent runs with Student's t interval.

    Raises:
        ValueError: there are no values, or one is not finite.
    """
    if not values:
        raise ValueError("no values to average")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"cannot average {list(values)}")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Estimate(mean, t_quantile(len(values) - 1) * math.sqrt(variance / len(values)))


def jackknife(statistic: Callable[[Sequence[int]], float | None], count: int) -> float | None:
    """Returns half the width of the 95 % confidence interval of a statistic of several runs together.

    The runs are left out one at a time.

    Args:
        statistic: computes the number from the runs with these numbers; `None` or no finite number if they have none.
        count: the number of runs.

    Returns:
        `None` if fewer than two of the parts give a number.
    """
    whole = statistic(range(count))
    parts = [statistic([at for at in range(count) if at != out]) for out in range(count)]
    if whole is None:
        return None
    pseudo = [count * whole - (count - 1) * part for part in parts if part is not None and math.isfinite(part)]
    return estimate(pseudo).ci95 if len(pseudo) > 1 else None


def agrees(ours: float, paper: float, *, is_share: bool, is_loss_rate: bool = False) -> bool:
    """Whether a number needs no reason for how it differs from the paper's.

    A number may differ by 10 %; a share by 5 points; a loss rate, and a share where both are below 5 %, by a factor
    of 2. What is negative, as a reduction may be, has no ratio and is compared in points.

    Args:
        ours: our number.
        paper: the paper's, in the same unit.
        is_share: the unit is percent.
        is_loss_rate: it is a share of lost packets.
    """
    if not is_share:
        return abs(ours - paper) <= SHARE_TOLERATED * abs(paper)
    if compares_as_ratio(ours, paper, is_loss_rate=is_loss_rate):
        return 1 / FACTOR_TOLERATED <= share_ratio(ours, paper) <= FACTOR_TOLERATED
    return abs(ours - paper) <= POINTS_TOLERATED


def compares_as_ratio(ours: float, paper: float, *, is_loss_rate: bool) -> bool:
    """Whether two shares in percent are compared by their ratio rather than in points."""
    is_small = max(ours, paper) < SMALL_SHARE_PERCENT
    return min(ours, paper) >= 0.0 and (is_loss_rate or is_small)


def share_ratio(ours: float, paper: float) -> float:
    """The ratio of two shares in percent, none of them taken for less than the papers' numbers can show."""
    return max(ours, SMALLEST_SHARE_PERCENT) / max(paper, SMALLEST_SHARE_PERCENT)


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 where all values are equal, 1/n where one has everything."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def t_quantile(degrees_of_freedom: int) -> float:
    """Student's t value that 95 % of the distribution lies within, on both sides."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.5 + CONFIDENCE / 2))
