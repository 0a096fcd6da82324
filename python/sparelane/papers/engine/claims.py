"""The values of claims.

A value is a function from an evaluation to one number. It raises `MissingNumberError` if a row is missing or has no
number, and then the claim fails. The files of experiments name a measure and the rows that it is computed from.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from sparelane.papers.engine.rows import Evaluation, Key, MissingNumberError, Row

Value: TypeAlias = Callable[[Evaluation], float]

FACTOR, OF_PRINTED = "×", "× printed"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that is computed from rows.

    Attributes:
        unit: the unit of the number. `{unit}` in it is that of the first row, and `{points}` that of a difference.
        compute: computes the number from our numbers, or from our numbers and the paper's.
        needs_paper: passes the paper's numbers to `compute`, too.
    """

    unit: str
    compute: Callable[..., float]
    needs_paper: bool = False


@dataclass(frozen=True, slots=True)
class OfRows:
    """The value of a measure for some rows."""

    measure: Measure
    keys: Sequence[Key]

    @property
    def unit(self) -> str:
        """The unit of the number. Differences of percentages are in points."""
        unit = self.keys[0].metric.unit
        return self.measure.unit.format(unit=unit, points="points" if unit == "%" else unit).strip()

    def __call__(self, evaluation: Evaluation) -> float:
        """Returns the number for an evaluation."""
        ours = [evaluation.ours(key) for key in self.keys]
        if self.measure.needs_paper:
            return self.measure.compute(ours, [evaluation.paper(key) for key in self.keys])
        return self.measure.compute(ours)


@dataclass(frozen=True, slots=True)
class OfGroups:
    """The smallest or the largest of the values of a measure for several groups of rows."""

    choose: Callable[[Sequence[float]], float]
    values: Sequence[OfRows]

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return self.values[0].unit

    def __call__(self, evaluation: Evaluation) -> float:
        """Returns the number for an evaluation."""
        return self.choose([value(evaluation) for value in self.values])


def _over(dividend: float, divisor: float) -> float:
    if divisor == 0.0:
        raise MissingNumberError(f"cannot divide {dividend:g} by 0")
    return dividend / divisor


def _lead(ours: Sequence[float]) -> float:
    first, *others = (one - other for one, other in zip(ours[::2], ours[1::2], strict=True))
    return first - max(others)


def _factors(ours: Sequence[float], paper: Sequence[float]) -> list[float]:
    """Returns the factor, 1 or more, between each of our numbers and the paper's."""
    ratios = [_over(one, printed) for one, printed in zip(ours, paper, strict=True)]
    return [max(one, _over(1.0, one)) for one in ratios]


# One claim for each row.
OF_ONE: Mapping[str, Measure] = {
    "ours": Measure("{unit}", lambda ours: ours[0]),
    "over_paper": Measure(OF_PRINTED, lambda ours, paper: _over(ours[0], paper[0]), needs_paper=True),
    "less_paper": Measure("{points} from printed", lambda ours, paper: ours[0] - paper[0], needs_paper=True),
}
# One claim for each pair of rows.
OF_TWO: Mapping[str, Measure] = {
    "ratio": Measure(FACTOR, lambda ours: _over(*ours)),
    "difference": Measure("{points}", lambda ours: ours[0] - ours[1]),
}
# One claim for all rows.
OF_MANY: Mapping[str, Measure] = {
    "least": Measure("{unit}", min),
    "largest": Measure("{unit}", max),
    # The largest of our numbers as a multiple of the smallest.
    "spread": Measure(FACTOR, lambda ours: _over(max(ours), min(ours))),
    # The smallest ratio of a number to the next one: 1 or more if no number is larger than the one before it.
    "falling": Measure(FACTOR, lambda ours: min(_over(*pair) for pair in pairwise(ours))),
    # The first number compared with the others, or all others with the last one.
    "over_largest": Measure(FACTOR, lambda ours: _over(ours[0], max(ours[1:]))),
    "over_least": Measure(FACTOR, lambda ours: _over(ours[0], min(ours[1:]))),
    "over_median": Measure(FACTOR, lambda ours: _over(ours[0], statistics.median(ours[1:]))),
    "less_least": Measure("{points}", lambda ours: ours[0] - min(ours[1:])),
    "least_over": Measure(FACTOR, lambda ours: _over(min(ours[:-1]), ours[-1])),
    # The rows are pairs. The difference of the first pair minus the largest difference of another pair.
    "lead_of_difference": Measure("{points}", _lead),
    # The largest factor, or the largest absolute difference, between our numbers and the paper's.
    "largest_factor": Measure(OF_PRINTED, lambda ours, paper: max(_factors(ours, paper)), needs_paper=True),
    "largest_difference": Measure(
        "{points} from printed",
        lambda ours, paper: max(abs(one - printed) for one, printed in zip(ours, paper, strict=True)),
        needs_paper=True,
    ),
    # All rows have the same printed number. Its distance from the nearer end of the range of our numbers; below 0 if
    # it is outside.
    "inside": Measure(
        "{points} inside", lambda ours, paper: min(max(ours) - paper[0], paper[0] - min(ours)), needs_paper=True
    ),
}
# One claim for several groups of rows.
OF_GROUPS: Mapping[str, tuple[str, Callable[[Sequence[float]], float]]] = {
    "least_falling": ("falling", min),
    "largest_spread": ("spread", max),
}
NAMES = (*OF_ONE, *OF_TWO, *OF_MANY, *OF_GROUPS)


def values(name: str, groups: Sequence[Sequence[Key]]) -> list[tuple[Key, Value]]:
    """Returns the values with a name for rows in groups, each with the key of its first row.

    Raises:
        ValueError: there are no rows, or they do not form the pairs that the value needs.
    """
    keys = [key for group in groups for key in group]
    if not keys:
        raise ValueError("names no rows")
    if name in OF_ONE:
        return [(key, OfRows(OF_ONE[name], [key])) for key in keys]
    if name in OF_MANY:
        return [(keys[0], OfRows(OF_MANY[name], keys))]
    if name in OF_GROUPS:
        measure, choose = OF_GROUPS[name]
        return [(keys[0], OfGroups(choose, [OfRows(OF_MANY[measure], group) for group in groups]))]
    upper, lower = groups if len(groups) == 2 else (keys[:1], keys[1:])
    if len(upper) != len(lower):
        raise ValueError(f"names {len(upper)} and {len(lower)} rows, which do not form pairs")
    return [(one, OfRows(OF_TWO[name], [one, other])) for one, other in zip(upper, lower, strict=True)]


def median_difference(is_included: Callable[[Row], bool]) -> Value:
    """The median of the absolute differences from the witness, in percent; a missing number counts as infinite."""
    return lambda evaluation: 100.0 * statistics.median(_differences(evaluation, is_included))


def largest_difference(is_included: Callable[[Row], bool]) -> Value:
    """The largest of the absolute differences from the witness, in percent; a missing number counts as infinite."""
    return lambda evaluation: 100.0 * max(_differences(evaluation, is_included))


def _differences(evaluation: Evaluation, is_included: Callable[[Row], bool]) -> list[float]:
    """The absolute differences of rows from the witness, as shares of it."""

    def share(row: Row) -> float:
        if not row.paper or row.value is None:
            return math.inf if row.value != row.paper else 0.0
        return abs(row.value / row.paper - 1)

    shares = [share(row) for row in evaluation.rows if is_included(row)]
    if not shares:
        raise MissingNumberError("no row to compare")
    return shares


def unexplained(is_included: Callable[[Row], bool]) -> Value:
    """The number of rows that have no number, or deviate from the witness, and have no reason."""

    def count(evaluation: Evaluation) -> float:
        rows = [row for row in evaluation.rows if is_included(row)]
        if not rows:
            raise MissingNumberError("no row to compare")
        return float(sum((row.value is None or row.deviates) and not row.is_explained for row in rows))

    return count
