"""Differences between two schemes: setting by setting, paired by seed, with intervals by bootstrap over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sparelane.results.rows import ALL, NETWORK, axis_names
from sparelane.sweeps import measure
from sparelane.sweeps.bootstrap import distribution, ends

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    """What can be compared, and in which words.

    Attributes:
        metric: what is measured.
        average: of the flows.
        is_less_better: whether small numbers are good; `None` where neither is.
        less: what a scheme does whose number is smaller, with `{}` for by how much.
        more: the same for larger.
    """

    metric: str
    average: str
    is_less_better: bool | None
    less: str
    more: str

    @property
    def unit(self) -> str:
        """The unit of the numbers."""
        return measure.unit(self.metric)

    @property
    def told_in(self) -> str:
        """What changes are told in: "%" of the baseline, or the unit of a difference, where numbers may well be 0."""
        return {"%": "points", "per flow": "per flow"}.get(self.unit, "%")

    @property
    def is_difference(self) -> bool:
        """Whether a change is a difference, and not relative to the baseline."""
        return self.told_in != "%"


# The first of which there are numbers is the headline.
QUESTIONS = (
    Question(
        "completion time",
        measure.MEAN,
        True,
        "finishes flows {} sooner on average",
        "finishes flows {} later on average",
    ),
    Question(
        "completion time of requests",
        "mean over requests",
        True,
        "finishes requests {} sooner",
        "finishes requests {} later",
    ),
    Question("throughput of a flow", measure.MEAN, False, "gives a flow {} less", "gives a flow {} more"),
    Question("completion time", measure.BYTES, True, "over bytes, it is {} sooner", "over bytes, it is {} later"),
    Question(
        "completion time",
        measure.P99,
        True,
        "the slowest flow in a hundred ends {} sooner",
        "the slowest flow in a hundred ends {} later",
    ),
    Question("slowdown", measure.MEAN, True, "the mean slowdown is {} lower", "the mean slowdown is {} higher"),
    Question("finished flows", measure.TOTAL, False, "{} fewer flows finish", "{} more flows finish"),
    Question("goodput", measure.TOTAL, False, "it delivers {} less in all", "it delivers {} more in all"),
    Question("fairness", "Jain's index", False, "Jain's index is {} lower", "Jain's index is {} higher"),
    Question(
        "retransmissions",
        measure.TOTAL,
        True,
        "it retransmits {} less of its packets",
        "it retransmits {} more of its packets",
    ),
    Question("timeouts", measure.MEAN, True, "timeouts are fewer by {}", "timeouts are more by {}"),
    Question(
        "queueing delay",
        measure.MEAN,
        True,
        "round trips wait {} shorter in queues",
        "round trips wait {} longer in queues",
    ),
    Question(
        "one-way delay", measure.MEAN, True, "packets are under way {} shorter", "packets are under way {} longer"
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """How the number of a scheme differs from the baseline's, relative to it or in points.

    Attributes:
        value: below 0 where the scheme's is smaller; a share of one, or a difference.
        low: the lower end of the 95 % interval; `None` for one seed, and where nothing is random.
        high: the upper end.
        is_exact: whether no number of the runs differs from seed to seed: chance has no part in it.
    """

    value: float
    low: float | None
    high: float | None
    is_exact: bool = False

    @property
    def sign(self) -> int:
        """-1 or 1 where the interval is on one side of no change, or an exact value is; 0 where not, or unknown."""
        if self.is_exact:
            return (self.value > 0) - (self.value < 0)
        if self.low is None or self.high is None:
            return 0
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


@dataclass(frozen=True, slots=True)
class Difference:
    """Two schemes in one setting.

    Attributes:
        setting: in words; empty where nothing but the scheme varies.
        axes: the values of the keys that vary.
        baseline: the mean over the seeds that both have.
        other: the same of the other scheme.
        change: of the other one from the baseline.
        seeds: that both have.
    """

    setting: str
    axes: Mapping[str, object]
    baseline: float
    other: float
    change: Change
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scheme beside the baseline.

    Attributes:
        question: what is compared.
        baseline: the name of the one.
        other: the name of the other.
        differences: setting by setting.
        overall: the change over all settings: each counts alike, and shares are averaged as ratios.
    """

    question: Question
    baseline: str
    other: str
    differences: tuple[Difference, ...]
    overall: Change

    @property
    def better(self) -> int | None:
        """The sign of a change for the better."""
        less = self.question.is_less_better
        return None if less is None else -1 if less else 1


def schemes_of(runs: pl.DataFrame) -> list[str]:
    """The schemes that have numbers of flows, in order."""
    return runs.filter(pl.col("traffic") == ALL)["scheme"].unique(maintain_order=True).to_list()


def undrawn(runs: pl.DataFrame) -> frozenset[tuple[str, str]]:
    """The settings and schemes of which no number differs from seed to seed, of two seeds or more."""
    of_one = ["setting", "scheme", "traffic", "metric", "average"]
    counts = runs.group_by(of_one).agg(pl.len(), pl.col("value").n_unique().alias("values"))
    whole = counts.group_by("setting", "scheme").agg(pl.col("len").max(), pl.col("values").max())
    return frozenset(whole.filter((pl.col("len") > 1) & (pl.col("values") == 1)).select("setting", "scheme").rows())


def compare(
    runs: pl.DataFrame,
    baseline: str,
    other: str,
    question: Question,
    exact: frozenset[tuple[str, str]] = frozenset(),
) -> Comparison | None:
    """Two schemes by the rows of their runs; `None` without numbers of both in any setting and seed.

    Args:
        runs: the rows.
        baseline: one scheme.
        other: the other.
        question: what is compared.
        exact: settings and schemes in which nothing is random, as `undrawn` finds them.
    """
    traffic = (ALL, NETWORK)
    some = runs.filter(
        (pl.col("metric") == question.metric)
        & (pl.col("average") == question.average)
        & pl.col("traffic").is_in(traffic)
    ).with_columns(seed=pl.col("seeds").list.first())
    keys = axis_names(runs)
    ours, theirs = (_of_scheme(some, name, keys) for name in (other, baseline))
    # A key that is a setting of one of the two alone does not pair them.
    shared = [key for key in keys if not ours[key].is_null().all() and not theirs[key].is_null().all()]
    joined = theirs.join(ours, on=[*shared, "seed"], suffix=" other", maintain_order="left")
    if joined.is_empty():
        return None
    for key in keys:
        if key not in shared:
            joined = joined.with_columns(pl.coalesce(key, f"{key} other").alias(key))
    joined = joined.with_columns(
        pl.col("setting").alias("setting before"),
        setting=pl.when(pl.col("setting other").str.len_chars() > pl.col("setting").str.len_chars())
        .then("setting other")
        .otherwise("setting"),
    )
    pairs: list[Numbers] = []
    found = []
    for (setting, *_), group in joined.group_by(["setting", *keys], maintain_order=True):
        both = group.sort("seed").select("value", "value other").to_numpy().T.astype(np.float64)
        pairs.append(both)
        axes = {key: group[key][0] for key in keys}
        means = both.mean(axis=1)
        seeds = tuple(group["seed"].sort().to_list())
        names = ((group["setting before"][0], baseline), (group["setting other"][0], other))
        change = _exact(_change([both], question), is_exact=all(one in exact for one in names))
        found.append(Difference(str(setting), axes, float(means[0]), float(means[1]), change, seeds))
    overall = _exact(_change(pairs, question), is_exact=all(one.change.is_exact for one in found))
    return Comparison(question, baseline, other, tuple(found), overall)


def _exact(change: Change, *, is_exact: bool) -> Change:
    """A change without its interval, where nothing is random."""
    return Change(change.value, None, None, is_exact=True) if is_exact else change


def _of_scheme(rows: pl.DataFrame, scheme: str, keys: Sequence[str]) -> pl.DataFrame:
    return rows.filter(pl.col("scheme") == scheme).select("setting", "seed", "value", *keys)


def _change(pairs: Sequence[Numbers], question: Question) -> Change:
    """The change over some settings, each with baseline and other by seed.

    Where settings have equally many seeds, the same are drawn in all of them: they had them in common.
    """
    values = [float(_one(both.mean(axis=-1), question)) for both in pairs]
    if len(pairs) > 1:
        # Where a mean is 0, there is no ratio; the other settings tell the change over all.
        pairs = [both for both, one in zip(pairs, values, strict=True) if math.isfinite(one)]
        values = [one for one in values if math.isfinite(one)]
    if not values:
        return Change(math.nan, None, None)
    value = float(np.mean(values))
    parts = [distribution(both, lambda means: _one(means, question)) for both in pairs]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return Change(_as_told(value, question), None, None)
    low, high = ends(np.mean(known, axis=0), min(both.shape[-1] for both in pairs)) or (None, None)
    if low is None or high is None:
        return Change(_as_told(value, question), None, None)
    return Change(_as_told(value, question), _as_told(low, question), _as_told(high, question))


def _one(means: Numbers, question: Question) -> Numbers:
    """The change as it can be averaged: the logarithm of a ratio, or points."""
    if question.is_difference:
        return np.asarray(means[1] - means[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = (means[1] == 0) & (means[0] == 0)
        return np.where(equal, 0.0, np.log(means[1] / means[0]))


def _as_told(value: float, question: Question) -> float:
    if question.is_difference:
        return float(value)
    return math.inf if value > 700 else math.exp(value) - 1.0


def all_questions(runs: pl.DataFrame, baseline: str, other: str) -> list[Comparison]:
    """Every question of which both schemes have numbers, the headline first."""
    exact = undrawn(runs)
    found = (compare(runs, baseline, other, question, exact) for question in QUESTIONS)
    return [one for one in found if one is not None and not math.isnan(one.overall.value)]
