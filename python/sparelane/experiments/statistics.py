"""Means and confidence intervals over repeated runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


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


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 where all values are equal, 1/n where one has everything."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def t_quantile(degrees_of_freedom: int) -> float:
    """Student's t value that 95 % of the distribution lies within, on both sides."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.5 + CONFIDENCE / 2))
