"""Student's t distribution for integer degrees of freedom, in closed form.

Source: Abramowitz and Stegun, 26.7.3 and 26.7.4. SciPy has the same functions, but it is part of the extra `papers`,
and sweeps must work without it. A test compares both functions with SciPy's.
"""

from __future__ import annotations

import math
from statistics import NormalDist

# Newton's method ends at steps below this share of the angle, near the resolution of floats.
PRECISION = 4e-16
MOST_STEPS = 100


def quantile(share: float, degrees_of_freedom: int) -> float:
    """The quantile for a share between 0.5 and 1, both excluded.

    Raises:
        ValueError: an argument is out of range.
    """
    if degrees_of_freedom < 1 or not 0.5 < share < 1.0:
        raise ValueError(f"no quantile {share} of {degrees_of_freedom} degrees of freedom")
    root = math.sqrt(degrees_of_freedom)
    # The probability is a concave function of the angle atan(t / sqrt(n)). The quantile of the normal distribution lies
    # below the root, so Newton's method converges from one side.
    angle = math.atan(NormalDist().inv_cdf(share) / root)
    wanted = 2 * share - 1
    scale = 2 * math.exp(math.lgamma((degrees_of_freedom + 1) / 2) - math.lgamma(degrees_of_freedom / 2))
    scale /= math.sqrt(math.pi)
    for _ in range(MOST_STEPS):
        density = scale * math.cos(angle) ** (degrees_of_freedom - 1)
        step = (wanted - _within(angle, degrees_of_freedom)) / density
        angle += step
        if abs(step) <= PRECISION * angle:
            break
    return root * math.tan(angle)


def two_sided(t: float, degrees_of_freedom: int) -> float:
    """The probability of a value at least as far from 0 as `t`: the p-value of a two-sided test.

    Raises:
        ValueError: `degrees_of_freedom` is below 1.
    """
    if degrees_of_freedom < 1:
        raise ValueError(f"Student's distribution has no {degrees_of_freedom} degrees of freedom")
    return min(1.0, max(0.0, 1.0 - _within(math.atan(abs(t) / math.sqrt(degrees_of_freedom)), degrees_of_freedom)))


def _within(angle: float, degrees_of_freedom: int) -> float:
    """The probability of a value within sqrt(n) tan(angle) of 0 (equations 26.7.3 and 26.7.4)."""
    squared = math.cos(angle) ** 2
    is_odd = degrees_of_freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    terms = [term] if degrees_of_freedom > 1 else []
    for number in range(3 if is_odd else 2, degrees_of_freedom - 1, 2):
        term *= squared * (number - 1) / number
        terms.append(term)
    total = math.sin(angle) * math.fsum(terms)
    return 2 / math.pi * (angle + total) if is_odd else total
