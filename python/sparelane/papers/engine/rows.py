"""Rows: our numbers and the paper's, each with a key that identifies it.

A row is compared with the paper's number, or with bounds that the paper states in words. It is in band, or it deviates
and needs a reason. Rows are saved as records with one column for each part of the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sparelane.papers.engine.statistics import agrees, estimate

if TYPE_CHECKING:
    import polars as pl

Json = dict[str, str | float | None]
Band = tuple[float, float]

# The reason of a row that deviates from the paper for an unknown cause. Such a reason may continue after these words.
NOT_EXPLAINED = "not explained"
# The reason of deviating rows in a quick run: reasons are found at the full effort and cite its rows.
QUICK = "a quick run; only full runs have reasons"
# The check of a row with a variant: the paper has no such row, so it is not counted.
VARIED = "varied"


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity.

    Attributes:
        name: the name in words.
        unit: the unit of its numbers; may be empty. Differences of percentages (`%`) are in percentage points.
        is_loss_rate: the quantity is a share of lost packets, which is compared as a ratio at any size.
    """

    name: str
    unit: str = ""
    is_loss_rate: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies a row: no two rows of an experiment have the same key.

    Attributes:
        setting: the setting: a column of the paper's table, or a point of its figure.
        metric: the measured quantity.
        scheme: the scheme that was measured; empty if the number belongs to no scheme.
        average: the statistic, such as "mean over flows"; may be empty.
        traffic: the flows that were measured; empty for all flows.
        variant: what differs from the paper as we understand it; empty if nothing does.
    """

    setting: str
    metric: Metric
    scheme: str = ""
    average: str = ""
    traffic: str = ""
    variant: str = ""

    @property
    def words(self) -> str:
        """The key in one line."""
        place = joined(self.setting, self.variant, self.traffic)
        return joined(f"{place}: {joined(self.scheme, self.metric.name, by=' ')}", self.average)


def joined(*parts: str, by: str = ", ") -> str:
    """Joins the parts that are not empty."""
    return by.join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Row:
    """Our number and the paper's for one key.

    Attributes:
        key: identifies the number.
        paper: the printed number; `None` if the paper prints none.
        value: our number, the mean over our runs; `None` if no run gave the number.
        interval: half the width of the 95 % confidence interval of our number; `None` without repetitions.
        stated: bounds that the paper states in words instead of a number. They are infinite on an open side and equal
            for "about". For "below" and "above", a number equal to the bound deviates.
        reason: why our number deviates from the paper's; empty if it does not. It starts with `NOT_EXPLAINED` if the
            cause is unknown.
    """

    key: Key
    paper: float | None
    value: float | None
    interval: float | None = None
    stated: Band | None = None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Our number minus the paper's, in the row's unit."""
        return None if self.paper is None or self.value is None else self.value - self.paper

    @property
    def is_judged(self) -> bool:
        """True if the paper gives the number, in print or in words."""
        return self.paper is not None or self.stated is not None

    @property
    def counts(self) -> bool:
        """True if the row counts in totals. Rows with a variant are only shown."""
        return self.is_judged and not self.key.variant

    @property
    def deviates(self) -> bool:
        """True if our number is missing or so far from the paper's that it needs a reason."""
        if not self.is_judged:
            return False
        if self.value is None:
            return True
        if self.paper is not None:
            return not self._agrees(self.value, self.paper)
        low, high = self.stated or (-math.inf, math.inf)
        if low == high:
            return not self._agrees(self.value, low)
        # "Below" and "above" exclude the bound itself; a range includes both.
        if math.isinf(low) or math.isinf(high):
            return not low < self.value < high
        return not low <= self.value <= high

    def _agrees(self, ours: float, paper: float) -> bool:
        metric = self.key.metric
        return agrees(ours, paper, is_share=metric.unit == "%", is_loss_rate=metric.is_loss_rate)

    @property
    def is_explained(self) -> bool:
        """True if the row deviates and has a reason that explains it."""
        return self.deviates and self.reason not in ("", QUICK) and not self.reason.startswith(NOT_EXPLAINED)

    @property
    def check(self) -> str:
        """The result of the comparison with the paper in a word or two; empty if the paper gives no number."""
        if not self.is_judged:
            return ""
        if not self.counts:
            return VARIED
        if not self.deviates:
            return "in band"
        return "explained" if self.is_explained else "deviates" if self.reason == QUICK else NOT_EXPLAINED


def measured(key: Key, paper: float | None, values: Sequence[float], stated: Band | None = None) -> Row:
    """Returns a row from one value per seed; without values, a row whose value is `None`."""
    if not values:
        return Row(key, paper, None, stated=stated)
    ours = estimate(values)
    return Row(key, paper, ours.mean, ours.ci95, stated)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of an experiment.

    Attributes:
        rows: the rows, in the order in which to print them.
        notes: remarks of the evaluation for readers of the rows.
        curves: further tables by name, which are saved next to the rows and may appear in the figure.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    curves: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def find(self, key: Key) -> Row:
        """Returns the row with this key.

        Raises:
            MissingRowError: the row does not exist.
        """
        for candidate in self.rows:
            if candidate.key == key:
                return candidate
        raise MissingRowError(f'no row "{key.words}"')

    def ours(self, key: Key) -> float:
        """Returns our number in the row with this key.

        Raises:
            MissingRowError: the row does not exist.
            MissingNumberError: no run gave its number.
        """
        return _present(self.find(key).value, f'no run gave a number for the row "{key.words}"')

    def paper(self, key: Key) -> float:
        """Returns the paper's number in the row with this key.

        Raises:
            MissingRowError: the row does not exist.
            MissingNumberError: the paper prints no number for it.
        """
        return _present(self.find(key).paper, f'no printed number in the row "{key.words}"')


class MissingNumberError(LookupError):
    """A number that a claim needs is missing; the message names its row."""


class MissingRowError(MissingNumberError):
    """No row has the key of the number."""


def _present(value: float | None, problem: str) -> float:
    if value is None:
        raise MissingNumberError(problem)
    return value


def explained(row: Row, reasons: Mapping[Key, str], *, is_quick: bool) -> Row:
    """Returns the row with its reason if it deviates: the declared one, else `NOT_EXPLAINED`.

    In a quick run, the reason is `QUICK`. A row with a variant needs no reason, but may have one.
    """
    if not row.deviates:
        return replace(row, reason="")
    if not row.counts:
        return replace(row, reason="" if is_quick else reasons.get(row.key, ""))
    return replace(row, reason=QUICK if is_quick else reasons.get(row.key, NOT_EXPLAINED))


def to_record(row: Row, experiment: str) -> Json:
    """Returns the row by column, for saving; a missing number or an infinite bound is `None`."""
    key, (low, high) = row.key, row.stated or (-math.inf, math.inf)
    return {
        "experiment": experiment,
        "setting": key.setting,
        "variant": key.variant,
        "scheme": key.scheme,
        "traffic": key.traffic,
        "metric": key.metric.name,
        "average": key.average,
        "value": row.value,
        "interval": row.interval,
        "paper": row.paper,
        "paper_low": None if math.isinf(low) else low,
        "paper_high": None if math.isinf(high) else high,
        "unit": key.metric.unit,
        "is_loss_rate": key.metric.is_loss_rate,
        "check": row.check,
        "reason": row.reason,
    }


# The columns of saved rows.
COLUMNS = tuple(to_record(Row(Key("", Metric("")), None, None), ""))


def from_record(record: Mapping[str, object]) -> Row:
    """Returns the row of a record from `to_record`.

    Raises:
        KeyError: a column is missing.
        TypeError: a column has a value of another type.
    """
    texts = {name: _text(record[name]) for name in ("setting", "scheme", "average", "traffic", "variant")}
    metric = Metric(_text(record["metric"]), _text(record["unit"]), record["is_loss_rate"] is True)
    paper, value, interval, low, high = (
        _number(record[name]) for name in ("paper", "value", "interval", "paper_low", "paper_high")
    )
    stated = (
        None
        if low is None and high is None
        else (-math.inf if low is None else low, math.inf if high is None else high)
    )
    return Row(Key(metric=metric, **texts), paper, value, interval, stated, _text(record["reason"]))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a text")


def _number(value: object) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is not a number")
