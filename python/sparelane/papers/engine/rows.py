"""Rows: numbers of ours beside the paper's, each told apart by a key of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from sparelane.papers.engine.statistics import agrees, estimate

if TYPE_CHECKING:
    import polars as pl

Json = dict[str, str | float | None]
Band = tuple[float, float]

# What stands beside a row that deviates from the paper and has no reason; a reason may begin with it and go on.
NOT_EXPLAINED = "not explained"
# What stands there in a quick run: reasons are found, and cite rows, at the full effort.
QUICK = "a quick run: reasons stand beside full ones"
# How a row is checked in which something is other than in the paper: it is no row of the paper's, and counts nowhere.
VARIED = "varied"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured.

    Attributes:
        name: in words.
        unit: of all its numbers; `%` for percentages, whose difference is in percentage points; may be empty.
        is_loss_rate: it is a share of packets that are lost, which is compared as a ratio at any size.
    """

    name: str
    unit: str = ""
    is_loss_rate: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """Which number it is: no two rows of an experiment have the same key.

    Attributes:
        setting: what was done: a column of the paper's table, or a point of its figure.
        metric: what is measured.
        scheme: whose number it is; empty where it is of no scheme.
        average: what kind of number of many it is, such as "mean over flows"; may be empty.
        traffic: of which flows, where it is not of all.
        variant: what is other than in the paper, as we read it; empty where nothing is.
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
    """Those of the parts that are not empty, in one line."""
    return by.join(part for part in parts if part)


def each(
    settings: Iterable[str],
    metrics: Metric | Iterable[Metric],
    schemes: str | Iterable[str] = "",
    averages: str | Iterable[str] = "",
    *,
    traffic: str = "",
    variant: str = "",
) -> list[Key]:
    """The keys of all combinations, the first varying slowest."""
    parts = (
        settings,
        (metrics,) if isinstance(metrics, Metric) else metrics,
        (schemes,) if isinstance(schemes, str) else schemes,
        (averages,) if isinstance(averages, str) else averages,
    )
    return [Key(*combination, traffic=traffic, variant=variant) for combination in product(*parts)]


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the paper, beside ours.

    Attributes:
        key: which number.
        paper: the printed number; `None` where the paper prints none.
        value: ours, the mean over our runs; `None` where no run gave the number.
        interval: half the width of its 95 % confidence interval; `None` without repetitions.
        said: bounds that the paper's words give in place of a number, infinite where there is none; equal ones for
            "about". What is said to be below or above something is neither where it is the same.
        reason: why ours differs from the paper's, where it does; it begins with `NOT_EXPLAINED` where that is not
            known.
    """

    key: Key
    paper: float | None
    value: float | None
    interval: float | None = None
    said: Band | None = None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in the row's unit."""
        return None if self.paper is None or self.value is None else self.value - self.paper

    @property
    def is_judged(self) -> bool:
        """Whether the paper says what it must be, by a number or in words."""
        return self.paper is not None or self.said is not None

    @property
    def counts(self) -> bool:
        """Whether it is one of those by which we stand or fall: what is varied is shown beside the paper's, no more."""
        return self.is_judged and not self.key.variant

    @property
    def deviates(self) -> bool:
        """Whether ours is so far from what the paper prints or says, or so missing, that it wants a reason."""
        if not self.is_judged:
            return False
        if self.value is None:
            return True
        if self.paper is not None:
            return not self._agrees(self.value, self.paper)
        low, high = self.said or (-math.inf, math.inf)
        if low == high:
            return not self._agrees(self.value, low)
        if math.isinf(low) or math.isinf(high):
            return not low < self.value < high
        return not low <= self.value <= high

    def _agrees(self, ours: float, paper: float) -> bool:
        metric = self.key.metric
        return agrees(ours, paper, is_share=metric.unit == "%", is_loss_rate=metric.is_loss_rate)

    @property
    def is_explained(self) -> bool:
        """Whether the row deviates and has a reason that explains it."""
        return self.deviates and self.reason not in ("", QUICK) and not self.reason.startswith(NOT_EXPLAINED)

    @property
    def check(self) -> str:
        """How ours stands to the paper's, in a word or two; empty where the paper says nothing."""
        if not self.is_judged:
            return ""
        if not self.counts:
            return VARIED
        if not self.deviates:
            return "in band"
        return "explained" if self.is_explained else "deviates" if self.reason == QUICK else NOT_EXPLAINED


def measured(key: Key, paper: float | None, values: Sequence[float], said: Band | None = None) -> Row:
    """A row from one value per seed; without values, a row that says so."""
    if not values:
        return Row(key, paper, None, said=said)
    ours = estimate(values)
    return Row(key, paper, ours.mean, ours.ci95, said)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an experiment found.

    Attributes:
        rows: in the order in which to print them.
        notes: what a reader of the rows should know, found out during the evaluation.
        curves: further tables, by name, that are saved beside the rows and that the figure may draw.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    curves: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def find(self, key: Key) -> Row:
        """The row with this key.

        Raises:
            MissingRowError: there is none.
        """
        for candidate in self.rows:
            if candidate.key == key:
                return candidate
        raise MissingRowError(f'there is no row "{key.words}"')

    def ours(self, key: Key) -> float:
        """Our number in the row with this key.

        Raises:
            MissingRowError: there is no such row.
            MissingNumberError: no run gave its number.
        """
        return _present(self.find(key).value, f'no run gave a number for the row "{key.words}"')

    def paper(self, key: Key) -> float:
        """The paper's number in the row with this key.

        Raises:
            MissingRowError: there is no such row.
            MissingNumberError: the paper prints no number for it.
        """
        return _present(self.find(key).paper, f'no printed number in the row "{key.words}"')


class MissingNumberError(LookupError):
    """A number that a claim needs is not there; the message says which."""


class MissingRowError(MissingNumberError):
    """Nor is there a row for it."""


def _present(value: float | None, problem: str) -> float:
    if value is None:
        raise MissingNumberError(problem)
    return value


def explained(row: Row, reasons: Mapping[Key, str], *, is_quick: bool) -> Row:
    """The row with its reason, or the words `NOT_EXPLAINED`, where it deviates; of a quick run it says so instead.

    What is varied needs no reason, and may have one.
    """
    if not row.deviates:
        return replace(row, reason="")
    if not row.counts:
        return replace(row, reason="" if is_quick else reasons.get(row.key, ""))
    return replace(row, reason=QUICK if is_quick else reasons.get(row.key, NOT_EXPLAINED))


# The columns of saved rows, as tools read them: those of a sweep's rows as far as they are numbers of experiments.
COLUMNS = (
    "experiment",
    "setting",
    "variant",
    "scheme",
    "traffic",
    "metric",
    "average",
    "value",
    "interval",
    "paper",
    "paper_low",
    "paper_high",
    "unit",
    "is_loss_rate",
    "check",
    "reason",
)


def to_record(row: Row, experiment: str) -> Json:
    """The row as machines read it, by column; `None` where there is no number."""
    key, (low, high) = row.key, row.said or (-math.inf, math.inf)
    values = (
        experiment,
        key.setting,
        key.variant,
        key.scheme,
        key.traffic,
        key.metric.name,
        key.average,
        row.value,
        row.interval,
        row.paper,
        None if math.isinf(low) else low,
        None if math.isinf(high) else high,
        key.metric.unit,
        key.metric.is_loss_rate,
        row.check,
        row.reason,
    )
    return dict(zip(COLUMNS, values, strict=True))


def from_record(record: Mapping[str, object]) -> Row:
    """The row that `to_record` gave.

    Raises:
        KeyError: a column is missing.
        TypeError: a column holds something else.
    """
    texts = {name: _text(record[name]) for name in ("setting", "scheme", "average", "traffic", "variant")}
    metric = Metric(_text(record["metric"]), _text(record["unit"]), record["is_loss_rate"] is True)
    paper, value, interval, low, high = (
        _number(record[name]) for name in ("paper", "value", "interval", "paper_low", "paper_high")
    )
    said = (
        None
        if low is None and high is None
        else (-math.inf if low is None else low, math.inf if high is None else high)
    )
    return Row(Key(metric=metric, **texts), paper, value, interval, said, _text(record["reason"]))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is no text")


def _number(value: object) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is no number")
