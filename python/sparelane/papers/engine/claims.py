"""What claims are made of: numbers of an evaluation, and bands.

A value is a function from an evaluation to one number. It raises `MissingNumberError`, which fails its claim, where a
row is missing or has no number. A row is named by its key:

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
Given = ParamSpec("Given")


def _in(unit: str | Callable[..., str]) -> Callable[[Callable[Given, Value]], Callable[Given, Value]]:
    """Notes, with the numbers that a function makes, what they are in, which people are told."""

    def decorate(make: Callable[Given, Value]) -> Callable[Given, Value]:
        @functools.wraps(make)
        def made(*given: Given.args, **named: Given.kwargs) -> Value:
            value = make(*given, **named)
            value.unit = unit if isinstance(unit, str) else unit(*given, **named)  # type: ignore[attr-defined]
            return value

        return made

    return decorate


def _unit(key: Key) -> str:
    return key.metric.unit


def _apart(key: Key) -> str:
    """What differences are in."""
    return "points" if key.metric.unit == "%" else key.metric.unit


FACTOR, OF_PRINTED = "×", "× printed"


def at_least(low: float) -> Band:
    """So much or more."""
    return (low, math.inf)


def at_most(high: float) -> Band:
    """So much or less."""
    return (-math.inf, high)


def about(centre: float, tolerated: float) -> Band:
    """Within so much of a number, in the number's unit."""
    return (centre - tolerated, centre + tolerated)


def within_factor(factor: float) -> Band:
    """A ratio between 1 / factor and factor."""
    return (1 / factor, factor)


@_in(_unit)
def ours(key: Key) -> Value:
    """Our number, in the row's unit."""
    return lambda evaluation: evaluation.ours(key)


@_in(OF_PRINTED)
def over_paper(key: Key) -> Value:
    """Our number as a multiple of the paper's."""
    return lambda evaluation: _quotient(evaluation.ours(key), evaluation.paper(key))


@_in(lambda key: f"{_apart(key)} from printed".strip())
def less_paper(key: Key) -> Value:
    """Our number less the paper's, in the row's unit: points for percentages."""
    return lambda evaluation: evaluation.ours(key) - evaluation.paper(key)


@_in(FACTOR)
def ratio(upper: Key, lower: Key) -> Value:
    """Our number in one row as a multiple of that in another."""
    return lambda evaluation: _quotient(evaluation.ours(upper), evaluation.ours(lower))


@_in(lambda larger, smaller: _apart(larger))
def difference(larger: Key, smaller: Key) -> Value:
    """Our number in one row less that in another, in their unit."""
    return lambda evaluation: evaluation.ours(larger) - evaluation.ours(smaller)


@_in(lambda keys: _apart(keys[0]))
def lead_of_difference(keys: Sequence[Key]) -> Value:
    """By how much the first of several pairs of rows is farther apart than any other: above 0, it is farthest.

    Args:
        keys: of the first row and the second of a pair, of the first row and the second of the next, and so on.
    """
    pairs = list(zip(keys[::2], keys[1::2], strict=True))

    def lead(evaluation: Evaluation) -> float:
        first, *others = (evaluation.ours(one) - evaluation.ours(other) for one, other in pairs)
        return first - max(others)

    return lead


@_in(FACTOR)
def over_largest(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the largest among others."""
    return lambda evaluation: _quotient(evaluation.ours(upper), max(evaluation.ours(key) for key in others))


@_in(FACTOR)
def over_least(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the smallest among others."""
    return lambda evaluation: _quotient(evaluation.ours(upper), min(evaluation.ours(key) for key in others))


@_in(FACTOR)
def least_over(keys: Sequence[Key], lower: Key) -> Value:
    """The smallest of our numbers as a multiple of that in another row."""
    return lambda evaluation: _quotient(min(evaluation.ours(key) for key in keys), evaluation.ours(lower))


@_in(FACTOR)
def over_median(upper: Key, others: Sequence[Key]) -> Value:
    """Our number in one row as a multiple of the median of others: above 2, it is more than double of most of them."""
    return lambda evaluation: _quotient(
        evaluation.ours(upper), statistics.median(evaluation.ours(key) for key in others)
    )


@_in(FACTOR)
def spread(keys: Sequence[Key]) -> Value:
    """The largest of our numbers as a multiple of the smallest."""
    return lambda evaluation: _quotient(
        max(evaluation.ours(key) for key in keys), min(evaluation.ours(key) for key in keys)
    )


@_in(FACTOR)
def falling(keys: Sequence[Key]) -> Value:
    """The smallest ratio of our number in a row to that in the next: `at_least(1)` says that the rows are in order.

    A factor above 1 in the band says by how much neighbours must differ. For rows that rise, name them in reverse.
    """

    def smallest(evaluation: Evaluation) -> float:
        numbers = [evaluation.ours(key) for key in keys]
        return min(_quotient(first, second) for first, second in pairwise(numbers))

    return smallest


@_in(OF_PRINTED)
def largest_factor(keys: Sequence[Key]) -> Value:
    """The factor, 1 or more, by which the row that is farthest from the paper's number differs from it."""

    def farthest(evaluation: Evaluation) -> float:
        ratios = [_quotient(evaluation.ours(key), evaluation.paper(key)) for key in keys]
        return max(max(one, _quotient(1.0, one)) for one in ratios)

    return farthest


@_in(lambda keys: f"{_apart(keys[0])} from printed".strip())
def largest_difference(keys: Sequence[Key]) -> Value:
    """The largest absolute difference from the paper among these rows, in their unit: points for percentages."""
    return lambda evaluation: max(abs(evaluation.ours(key) - evaluation.paper(key)) for key in keys)


@_in(lambda keys: _unit(keys[0]))
def least(keys: Sequence[Key]) -> Value:
    """The smallest of our numbers."""
    return lambda evaluation: min(evaluation.ours(key) for key in keys)


@_in(lambda keys: _unit(keys[0]))
def largest(keys: Sequence[Key]) -> Value:
    """The largest of our numbers."""
    return lambda evaluation: max(evaluation.ours(key) for key in keys)


@_in(lambda keys: f"{_apart(keys[0])} inside".strip())
def inside(keys: Sequence[Key]) -> Value:
    """How far inside the range of our numbers the printed one lies, the same in all rows; below 0 outside."""

    def depth(evaluation: Evaluation) -> float:
        found, printed = [evaluation.ours(key) for key in keys], evaluation.paper(keys[0])
        return min(max(found) - printed, printed - min(found))

    return depth


@_in("% of rows")
def rows_in_band(*metrics: Metric) -> Value:
    """The percentage of rows that count that do not deviate from the paper; of these metrics, or of all."""

    def percentage(evaluation: Evaluation) -> float:
        counted = [row for row in evaluation.rows if row.counts and (not metrics or row.key.metric in metrics)]
        return 100.0 * _quotient(sum(not row.deviates for row in counted), len(counted))

    return percentage


def median_difference(is_included: Callable[[Row], bool]) -> Value:
    """The median of the absolute differences from the witness, in percent; a missing number differs infinitely."""

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
