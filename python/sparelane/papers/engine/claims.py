"""The values and bands of claims.

A value is a function from an evaluation to one number. It raises `MissingNumberError` if a row is missing or has no
number, and then the claim fails. Keys name the rows:

    Claim("RC3 cuts the mean over flows by 43.5 % at 30 % load (Fig. 8)", ours(Key("30%", REDUCTION, "RC3", FLOWS)),
          full=(40.5, 46.5), quick=(30, 55))
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ParamSpec, TypeAlias

from sparelane.papers.engine.rows import Band, Evaluation, Key, Metric, MissingNumberError, Row

Value: TypeAlias = Callable[[Evaluation], float]
P = ParamSpec("P")


def _with_unit(unit: str | Callable[..., str]) -> Callable[[Callable[P, Value]], Callable[P, Value]]:
    """Decorates a function that makes values: each value gets the attribute `unit`, which tables print."""

    def decorate(make: Callable[P, Value]) -> Callable[P, Value]:
        @functools.wraps(make)
        def made(*args: P.args, **kwargs: P.kwargs) -> Value:
            value = make(*args, **kwargs)
            value.unit = unit if isinstance(unit, str) else unit(*args, **kwargs)  # type: ignore[attr-defined]
            return value

        return made

    return decorate


def _unit(key: Key) -> str:
    return key.metric.unit


def _unit_of_difference(key: Key) -> str:
    """Returns the unit of a difference: points for percentages."""
    return "points" if key.metric.unit == "%" else key.metric.unit


FACTOR, OF_PRINTED = "×", "× printed"


def at_least(low: float) -> Band:
    """Returns the band from a number up."""
    return (low, math.inf)


def at_most(high: float) -> Band:
    """Returns the band up to a number."""
    return (-math.inf, high)


def about(centre: float, tolerated: float) -> Band:
    """Returns the band around a number; `tolerated` is half its width, in the number's unit."""
    return (centre - tolerated, centre + tolerated)


def within_factor(factor: float) -> Band:
    """Returns the band of ratios from 1 / factor to factor."""
    return (1 / factor, factor)


@_with_unit(_unit)
def ours(key: Key) -> Value:
    """Our number, in the row's unit."""
    return lambda evaluation: evaluation.ours(key)


@_with_unit(OF_PRINTED)
def over_paper(key: Key) -> Value:
    """Our number as a multiple of the paper's."""
    return lambda evaluation: _quotient(evaluation.ours(key), evaluation.paper(key))


@_with_unit(lambda key: f"{_unit_of_difference(key)} from printed".strip())
def less_paper(key: Key) -> Value:
    """Our number minus the paper's, in the row's unit: points for percentages."""
    return lambda evaluation: evaluation.ours(key) - evaluation.paper(key)


@_with_unit(FACTOR)
def ratio(upper: Key, lower: Key) -> Value:
    """Our number in one row as a multiple of our number in another."""
    return lambda evaluation: _quotient(evaluation.ours(upper), evaluation.ours(lower))


@_with_unit(lambda larger, smaller: _unit_of_difference(larger))
def difference(larger: Key, smaller: Key) -> Value:
    """Our number in one row minus our number in another, in their unit."""
    return lambda evaluation: evaluation.ours(larger) - evaluation.ours(smaller)


@_with_unit(lambda keys: _unit_of_difference(keys[0]))
def lead_of_difference(keys: Sequence[Key]) -> Value:
    """The difference within the first pair of rows minus the largest difference within the other pairs.

    Above 0, the first pair has the largest difference.

    Args:
        keys: the two keys of the first pair, then the two keys of the next pair, and so on.
    """
    pairs = list(zip(keys[::2], keys[1::2], strict=True))

    def lead(evaluation: Evaluation) -> float:
        first, *others = (evaluation.ours(one) - evaluation.ours(other) for one, other in pairs)
        return first - max(others)

    return lead


@_with_unit(lambda key, others: _unit_of_difference(key))
def less_least(key: Key, others: Sequence[Key]) -> Value:
    """The simulated number in one row less the smallest among others, in their unit: points for percentages."""
    return lambda evaluation: evaluation.ours(key) - min(evaluation.ours(other) for other in others)


@_with_unit(FACTOR)
def over_largest(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the largest in other rows."""
    return lambda evaluation: _quotient(evaluation.ours(upper), max(evaluation.ours(key) for key in others))


@_with_unit(FACTOR)
def over_least(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the smallest in other rows."""
    return lambda evaluation: _quotient(evaluation.ours(upper), min(evaluation.ours(key) for key in others))


@_with_unit(FACTOR)
def least_over(keys: Sequence[Key], lower: Key) -> Value:
    """The smallest of our numbers in some rows as a multiple of our number in another row."""
    return lambda evaluation: _quotient(min(evaluation.ours(key) for key in keys), evaluation.ours(lower))


@_with_unit(FACTOR)
def over_median(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the median of other rows."""
    return lambda evaluation: _quotient(
        evaluation.ours(upper), statistics.median(evaluation.ours(key) for key in others)
    )


@_with_unit(FACTOR)
def spread(keys: Sequence[Key]) -> Value:
    """The largest of our numbers as a multiple of the smallest."""
    return lambda evaluation: _quotient(
        max(evaluation.ours(key) for key in keys), min(evaluation.ours(key) for key in keys)
    )


@_with_unit(FACTOR)
def falling(keys: Sequence[Key]) -> Value:
    """The smallest ratio of our number in a row to our number in the next row.

    With the band `at_least(1)`, the claim holds if no number is larger than the previous one. With a larger bound,
    neighbours must differ by that factor. For rows that rise, name them in reverse.
    """

    def smallest(evaluation: Evaluation) -> float:
        numbers = [evaluation.ours(key) for key in keys]
        return min(_quotient(first, second) for first, second in pairwise(numbers))

    return smallest


@_with_unit(FACTOR)
def least_falling(groups: Sequence[Sequence[Key]]) -> Value:
    """The smallest value of `falling` among several groups of rows."""
    return lambda evaluation: min(falling(keys)(evaluation) for keys in groups)


@_with_unit(FACTOR)
def largest_spread(groups: Sequence[Sequence[Key]]) -> Value:
    """The largest value of `spread` among several groups of rows."""
    return lambda evaluation: max(spread(keys)(evaluation) for keys in groups)


@_with_unit(OF_PRINTED)
def largest_factor(keys: Sequence[Key]) -> Value:
    """The largest factor, 1 or more, between our number and the paper's in these rows."""

    def farthest(evaluation: Evaluation) -> float:
        ratios = [_quotient(evaluation.ours(key), evaluation.paper(key)) for key in keys]
        return max(max(one, _quotient(1.0, one)) for one in ratios)

    return farthest


@_with_unit(lambda keys: f"{_unit_of_difference(keys[0])} from printed".strip())
def largest_difference(keys: Sequence[Key]) -> Value:
    """The largest absolute difference between our number and the paper's in these rows, in points for percentages."""
    return lambda evaluation: max(abs(evaluation.ours(key) - evaluation.paper(key)) for key in keys)


@_with_unit(lambda keys: _unit(keys[0]))
def least(keys: Sequence[Key]) -> Value:
    """The smallest of our numbers."""
    return lambda evaluation: min(evaluation.ours(key) for key in keys)


@_with_unit(lambda keys: _unit(keys[0]))
def largest(keys: Sequence[Key]) -> Value:
    """The largest of our numbers."""
    return lambda evaluation: max(evaluation.ours(key) for key in keys)


@_with_unit(lambda keys: f"{_unit_of_difference(keys[0])} inside".strip())
def inside(keys: Sequence[Key]) -> Value:
    """The distance of the printed number from the nearer end of the range of our numbers; below 0 if it is outside.

    All rows have the same printed number.
    """

    def depth(evaluation: Evaluation) -> float:
        found, printed = [evaluation.ours(key) for key in keys], evaluation.paper(keys[0])
        return min(max(found) - printed, printed - min(found))

    return depth


@_with_unit("% of rows")
def rows_in_band(*metrics: Metric) -> Value:
    """The percentage of counted rows that do not deviate from the paper. Without metrics, all counted rows."""

    def percentage(evaluation: Evaluation) -> float:
        counted = [row for row in evaluation.rows if row.counts and (not metrics or row.key.metric in metrics)]
        return 100.0 * _quotient(sum(not row.deviates for row in counted), len(counted))

    return percentage


def median_difference(is_included: Callable[[Row], bool]) -> Value:
    """The median of the absolute differences from the witness, in percent; a missing number counts as infinite."""

    def share(row: Row) -> float:
        if not row.paper or row.value is None:
            return math.inf if row.value != row.paper else 0.0
        return abs(row.value / row.paper - 1)

    def median(evaluation: Evaluation) -> float:
        shares = [share(row) for row in evaluation.rows if is_included(row)]
        if not shares:
            raise MissingNumberError("no row to compare")
        return 100.0 * statistics.median(shares)

    return median


def unexplained(is_included: Callable[[Row], bool]) -> Value:
    """The number of rows that have no number, or deviate from the witness, and have no reason."""

    def count(evaluation: Evaluation) -> float:
        rows = [row for row in evaluation.rows if is_included(row)]
        if not rows:
            raise MissingNumberError("no row to compare")
        return float(sum((row.value is None or row.deviates) and not row.is_explained for row in rows))

    return count


def _quotient(dividend: float, divisor: float) -> float:
    if divisor == 0.0:
        raise MissingNumberError(f"cannot divide {dividend:g} by 0")
    return dividend / divisor
