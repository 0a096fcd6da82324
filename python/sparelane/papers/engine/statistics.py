"""Means and confidence intervals over repeated runs, and the rules by which two numbers agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95

# A number that differs from the paper's by more needs a reason. The first is a share of the paper's number; the second,
# for percentages, is in percentage points.
SHARE_TOLERATED = 0.10
POINTS_TOLERATED = 5.0
# Loss rates of any size, and pairs of shares below this bound, are compared as ratios: in points, they hardly differ.
SMALL_SHARE_PERCENT = 5.0
FACTOR_TOLERATED = 2.0
# The lower bound of shares in a ratio. The smallest number that papers print is 0.001 %, maybe rounded up from it.
SMALLEST_SHARE_PERCENT = 0.0005


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its uncertainty.

    Attributes:
        mean: the arithmetic mean, in the values' unit.
        ci95: half the width of the 95 % confidence interval, in the values' unit; `None` for a single value.
    """

    mean: float
    ci95: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of independent runs with Student's t interval.

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

    The jackknife computes the statistic again without each of the runs in turn.

    Args:
        statistic: computes the number from some runs, given by their indices; returns `None` or an infinite number if
            these runs have none.
        count: the number of runs.

    Returns:
        `None` if the statistic has no number for all runs, or for fewer than two of the reduced sets.
    """
    whole = statistic(range(count))
    parts = [statistic([at for at in range(count) if at != out]) for out in range(count)]
    if whole is None:
        return None
    pseudo = [count * whole - (count - 1) * part for part in parts if part is not None and math.isfinite(part)]
    return estimate(pseudo).ci95 if len(pseudo) > 1 else None


def agrees(ours: float, paper: float, *, is_share: bool, is_loss_rate: bool = False) -> bool:
    """Returns true if our number is close enough to the paper's to need no reason.

    A number may differ by 10 %, and a percentage by 5 points. A loss rate may differ by a factor of 2, and so may two
    percentages below 5 %. Negative percentages, such as a reduction below zero, are compared in points.

    Args:
        ours: our number.
        paper: the paper's number, in the same unit.
        is_share: the unit is percent.
        is_loss_rate: the number is a share of lost packets.
    """
    if not is_share:
        return abs(ours - paper) <= SHARE_TOLERATED * abs(paper)
    if compares_as_ratio(ours, paper, is_loss_rate=is_loss_rate):
        return 1 / FACTOR_TOLERATED <= share_ratio(ours, paper) <= FACTOR_TOLERATED
    return abs(ours - paper) <= POINTS_TOLERATED


def compares_as_ratio(ours: float, paper: float, *, is_loss_rate: bool) -> bool:
    """Returns true if two shares in percent are compared by their ratio rather than in points."""
    is_small = max(ours, paper) < SMALL_SHARE_PERCENT
    return min(ours, paper) >= 0.0 and (is_loss_rate or is_small)


def share_ratio(ours: float, paper: float) -> float:
    """Returns the ratio of two shares in percent. Smaller shares count as `SMALLEST_SHARE_PERCENT`."""
    return max(ours, SMALLEST_SHARE_PERCENT) / max(paper, SMALLEST_SHARE_PERCENT)


def jain(values: Sequence[float]) -> float:
    """Returns Jain's index of fairness: 1 if all values are equal, 1/n if all but one are zero."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def t_quantile(degrees_of_freedom: int) -> float:
    """Returns Student's t: 95 % of the distribution lies between the negative of this value and this value."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.5 + CONFIDENCE / 2))
