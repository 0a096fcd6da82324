"""Computes differences between two schemes for each setting, paired by seed, with Student's intervals over the seeds.

The change of a metric is the geometric mean of the ratios in each seed. For shares and other numbers that may be 0, it
is the mean difference. The change over several settings is the mean of their changes. Intervals and tests are Student's
for the logarithms of the ratios, or for the differences. For equal schemes, these are symmetric around 0, so the test
keeps its level even for skewed numbers.

If changes in some settings have opposite signs by more than noise, there is no common number. The change then "depends
on" the keys that distinguish these settings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sparelane.results.rows import ALL, NETWORK, axis_names
from sparelane.sweeps import measure
from sparelane.sweeps.axes import short_key
from sparelane.sweeps.intervals import FEWEST_SEEDS, Estimated, adjusted, jackknife
from sparelane.sweeps.metrics import Metric

Numbers = NDArray[np.float64]

# A difference is clear if its p-value, adjusted for multiple comparisons, is at most this.
LEVEL = 0.05
# The name of a pseudo-key whose values are ranges of flow sizes.
SIZE = "size"
# Means of finished flows are doubtful if the shares of finished flows differ by more than this, percentage points.
DOUBTFUL_POINTS = 1.0


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds below which changes are negligible.

    Attributes:
        relative: for ratios, as a fraction of the baseline's number.
        points: for shares, in percentage points.
        per_flow: for counts per flow.
    """

    relative: float = 0.01
    points: float = 0.1
    per_flow: float = 0.01

    def of(self, metric: Metric) -> float:
        """The threshold for changes of a metric, in the unit of `Change.value`."""
        return {"%": self.relative, "points": self.points, "per flow": self.per_flow}[metric.change_unit]


class Outcome(StrEnum):
    """The conclusion about a change."""

    BETTER = "better"
    WORSE = "worse"
    LOWER = "lower"
    HIGHER = "higher"
    NEGLIGIBLE = "negligible"
    EQUAL = "equal"
    UNCLEAR = "no clear difference"
    # The interval excludes no change, but the p-value is not significant after adjustment for multiple comparisons.
    ADJUSTED = "not clear after adjustment"
    # The apparently better scheme left clearly more flows unfinished.
    DOUBTFUL = "doubtful: fewer flows finish"
    ONE_SEED = "one seed"
    TWO_SEEDS = "two seeds"
    NO_INTERVAL = "no interval"


# Outcomes with an established sign, outcomes without a relevant change, and outcomes without a test.
DIRECTED = frozenset((Outcome.BETTER, Outcome.WORSE, Outcome.LOWER, Outcome.HIGHER))
SMALL = frozenset((Outcome.NEGLIGIBLE, Outcome.EQUAL))
UNKNOWN = frozenset((Outcome.ONE_SEED, Outcome.TWO_SEEDS, Outcome.NO_INTERVAL))


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a scheme's number from the baseline's.

    Attributes:
        value: the change as a fraction of the baseline's number (-0.2 is 20 % less), or a difference in
            `Metric.change_unit`.
        low: the lower end of the 95 % interval; `None` for fewer than three seeds, or if nothing is random.
        high: the upper end.
        p: the p-value of the hypothesis of no change; `None` without an interval.
        is_exact: true if the numbers are equal for all seeds, so that nothing is random.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    is_exact: bool = False

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.value > 0) - (self.value < 0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two schemes in one setting.

    Attributes:
        setting: the setting as text; empty if only the scheme varies.
        axes: the values of the keys that vary.
        samples: the numbers of the baseline and of the other scheme, by seed.
        is_exact: true if nothing is random in either scheme.
        finished: the share of finished flows of each scheme, in percent; `None` if no flows can finish.
    """

    setting: str
    axes: Mapping[str, object]
    samples: Mapping[int, tuple[float, float]]
    is_exact: bool
    finished: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two schemes in one setting, or in a group of settings.

    Attributes:
        setting: the setting or group as text; empty if only the scheme varies.
        axes: the values of the keys that vary, or of those that define the group.
        baseline: the baseline's mean over the common seeds; for several settings, the geometric mean of these.
        other: the same mean of the other scheme.
        change: the change from the baseline to the other scheme.
        seeds: the seeds that both schemes have.
        pairs: the settings of the group.
        outcome: the conclusion.
    """

    setting: str
    axes: Mapping[str, object]
    baseline: float
    other: float
    change: Change
    seeds: tuple[int, ...]
    pairs: tuple[Pair, ...]
    outcome: Outcome = Outcome.NO_INTERVAL


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a scheme with the baseline by one metric.

    Attributes:
        metric: the compared metric.
        baseline: the name of the baseline.
        other: the name of the other scheme.
        differences: the difference in each setting or group.
        overall: the change over all settings, with equal weights. Meaningless if `is_split`.
        outcome: the conclusion about the overall change.
        is_split: true if settings contradict each other by more than noise, or the noise is unknown.
        depends_on: the keys that distinguish contradicting settings, if exactly one choice of keys does.
        compared: the number of differences that p-values are adjusted for.
    """

    metric: Metric
    baseline: str
    other: str
    differences: tuple[Difference, ...]
    overall: Change
    outcome: Outcome = Outcome.NO_INTERVAL
    is_split: bool = False
    depends_on: tuple[str, ...] = ()
    compared: int = 1

    @property
    def is_certain(self) -> bool:
        """True if any setting has an interval or is exact, so that contradictions are more than noise."""
        return any(one.outcome not in UNKNOWN for one in self.differences)

    @property
    def pairs(self) -> list[Pair]:
        """All settings of both schemes."""
        return [pair for one in self.differences for pair in one.pairs]


def schemes_of(runs: pl.DataFrame) -> list[str]:
    """The schemes with numbers of flows, in order."""
    return runs.filter(pl.col("traffic") == ALL)["scheme"].unique(maintain_order=True).to_list()


def deterministic(runs: pl.DataFrame) -> frozenset[tuple[str, str]]:
    """The settings and schemes with two or more seeds whose numbers are equal for all seeds."""
    of_one = ["setting", "scheme", "traffic", "metric", "average"]
    counts = runs.group_by(of_one).agg(pl.len(), pl.col("value").n_unique().alias("values"))
    whole = counts.group_by("setting", "scheme").agg(pl.col("len").max(), pl.col("values").max())
    return frozenset(whole.filter((pl.col("len") > 1) & (pl.col("values") == 1)).select("setting", "scheme").rows())


def paired(
    runs: pl.DataFrame,
    baseline: str,
    other: str,
    metric: Metric,
    exact: frozenset[tuple[str, str]] = frozenset(),
) -> list[Pair]:
    """All settings in which both schemes have numbers of a metric with common seeds.

    Args:
        runs: the rows, one for each number of each run.
        baseline: the baseline.
        other: the other scheme.
        metric: the metric.
        exact: the settings and schemes from `deterministic`.
    """
    joined = _joined(runs, baseline, other, metric)
    if joined.is_empty():
        return []
    keys = axis_names(runs)
    finished: dict[tuple[object, ...], tuple[float, float]] = {}
    if metric.covers_finished:
        shares = _joined(runs, baseline, other, Metric("finished flows", measure.TOTAL))
        of_setting = shares.group_by(["setting", *keys]).agg(pl.col("value", "value other").mean())
        finished = {tuple(rest): (ours, theirs) for *rest, ours, theirs in of_setting.rows()}
    found = []
    for (setting, *values), group in joined.group_by(["setting", *keys], maintain_order=True):
        samples = {seed: (one, two) for seed, one, two in group.select("seed", "value", "value other").rows()}
        names = ((group["setting before"][0], baseline), (group["setting other"][0], other))
        axes = dict(zip(keys, values, strict=True))
        is_exact = all(one in exact for one in names)
        found.append(Pair(str(setting), axes, samples, is_exact, finished.get((setting, *values))))
    return found


def _joined(runs: pl.DataFrame, baseline: str, other: str, metric: Metric) -> pl.DataFrame:
    """The numbers of both schemes, with one row for each common setting and seed."""
    traffic = (ALL, NETWORK) if metric.traffic == ALL else (metric.traffic,)
    some = runs.filter(
        (pl.col("metric") == metric.metric)
        & (pl.col("average") == metric.average)
        & pl.col("traffic").is_in(traffic)
        & pl.col("value").is_finite()
    ).with_columns(seed=pl.col("seeds").list.first())
    keys = axis_names(runs)
    ours, theirs = (_of_scheme(some, name, keys) for name in (other, baseline))
    # A key that applies to only one of the two schemes cannot pair their settings.
    shared = [key for key in keys if not ours[key].is_null().all() and not theirs[key].is_null().all()]
    joined = theirs.join(ours, on=[*shared, "seed"], suffix=" other", maintain_order="left", nulls_equal=True)
    for key in keys:
        if key not in shared:
            joined = joined.with_columns(pl.coalesce(key, f"{key} other").alias(key))
    longer = pl.col("setting other").str.len_chars() > pl.col("setting").str.len_chars()
    return joined.with_columns(
        pl.col("setting").alias("setting before"),
        setting=pl.when(longer).then("setting other").otherwise("setting"),
    )


def _of_scheme(rows: pl.DataFrame, scheme: str, keys: Sequence[str]) -> pl.DataFrame:
    return rows.filter(pl.col("scheme") == scheme).select("setting", "seed", "value", *keys)


def compare(
    runs: pl.DataFrame,
    baseline: str,
    other: str,
    metric: Metric,
    exact: frozenset[tuple[str, str]] = frozenset(),
    by: Sequence[str] = (),
) -> Comparison | None:
    """Compares two schemes by one metric, without outcomes, which `judge` determines.

    Args:
        runs: the rows, one for each number of each run.
        baseline: the baseline.
        other: the other scheme.
        metric: the metric.
        exact: the settings and schemes from `deterministic`.
        by: the keys that define groups of settings, with `SIZE` for ranges of flow sizes. Without any, each setting is
            a group of its own.

    Returns:
        `None` if the schemes have no numbers in a common setting and seed.
    """
    pairs = []
    for one in sized(runs, metric) if SIZE in by else [metric]:
        found = paired(runs, baseline, other, one, exact)
        pairs += [replace(pair, axes={**pair.axes, SIZE: one.traffic}) if SIZE in by else pair for pair in found]
    if not pairs:
        return None
    groups = grouped(pairs, by)
    differences = tuple(_difference(words, axes, group, metric) for words, axes, group in groups)
    return Comparison(metric, baseline, other, differences, effect(pairs, metric))


def sized(runs: pl.DataFrame, metric: Metric) -> list[Metric]:
    """The metric for each range of flow sizes that has numbers."""
    of_it = (pl.col("metric") == metric.metric) & (pl.col("average") == metric.average)
    there = set(runs.filter(of_it)["traffic"])
    return [replace(metric, traffic=name) for name in measure.SIZE_RANGES if name in there]


def grouped(pairs: Sequence[Pair], by: Sequence[str]) -> list[tuple[str, Mapping[str, object], list[Pair]]]:
    """Groups pairs by the values of some keys. Each group has a text, the values, and the pairs."""
    if not by:
        return [(pair.setting, pair.axes, [pair]) for pair in pairs]
    groups: dict[tuple[object, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(tuple(pair.axes[key] for key in by), []).append(pair)
    return [(_words(by, values), dict(zip(by, values, strict=True)), group) for values, group in groups.items()]


def without_key(settings: Sequence[str]) -> tuple[str, list[str]]:
    """A heading for settings, and their texts. A single key that all settings share moves into the heading."""
    keys = {setting.partition(" = ")[0] for setting in settings}
    if len(keys) == 1 and all(" = " in setting and ", " not in setting for setting in settings):
        return keys.pop(), [setting.partition(" = ")[2] for setting in settings]
    return "setting", [*settings]


def _words(by: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(
        str(value) if key == SIZE else value_words(key, value, by)
        for key, value in zip(by, values, strict=True)
        if value is not None
    )


def value_words(key: str, value: object, keys: Sequence[str]) -> str:
    """A key and its value as text, such as "limit = 1bdp"."""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{short_key(key, keys)} = {shown}"


def _difference(words: str, axes: Mapping[str, object], pairs: Sequence[Pair], metric: Metric) -> Difference:
    means = np.array([_means(pair) for pair in pairs])
    seeds = tuple(sorted(set.intersection(*(set(pair.samples) for pair in pairs))))
    one, other = (central(column, metric) for column in means.T)
    return Difference(words, axes, one, other, effect(pairs, metric), seeds, tuple(pairs))


def _means(pair: Pair) -> Numbers:
    means: Numbers = np.array([*pair.samples.values()], dtype=np.float64).mean(axis=0)
    return means


def central(means: Numbers, metric: Metric) -> float:
    """A mean over settings: the geometric mean if changes are ratios, otherwise the arithmetic mean."""
    if len(means) == 1 or metric.is_difference or (means <= 0).any():
        return float(means.mean())
    return float(np.exp(np.log(means).mean()))


def effect(pairs: Sequence[Pair], metric: Metric) -> Change:
    """The change over some settings, with equal weights.

    Settings without ratios, since a number is 0, are omitted if others have ratios.
    """
    of_pairs = [_by_seed(pair, metric) for pair in pairs]
    with_ratio = [place for place, changes in enumerate(of_pairs) if changes is not None]
    if not with_ratio:
        return _without_ratio(pairs)
    changes = [changes for changes in of_pairs if changes is not None]
    if all(pairs[place].is_exact for place in with_ratio):
        value = float(np.mean([np.mean([*of_one.values()]) for of_one in changes]))
        return Change(_stated(value, metric), is_exact=True)
    return _change(jackknife([_columns(of_one) for of_one in changes], _mean_change), metric)


def _by_seed(pair: Pair, metric: Metric) -> dict[int, float] | None:
    """The change in each seed: a difference or the logarithm of a ratio. `None` if a ratio does not exist."""
    if metric.is_difference:
        return {seed: other - baseline for seed, (baseline, other) in pair.samples.items()}
    if all(baseline == other for baseline, other in pair.samples.values()):
        return dict.fromkeys(pair.samples, 0.0)
    if any(baseline <= 0 or other <= 0 for baseline, other in pair.samples.values()):
        return None
    return {seed: math.log(other / baseline) for seed, (baseline, other) in pair.samples.items()}


def _without_ratio(pairs: Sequence[Pair]) -> Change:
    """The change if numbers are 0: the ratio of the means without an interval, and the p-value of the difference."""
    baseline, other = np.mean([_means(pair) for pair in pairs], axis=0)
    value = math.inf if baseline <= 0 else float(other / baseline) - 1.0
    if all(pair.is_exact for pair in pairs):
        return Change(value, is_exact=True)
    differences = [{seed: (theirs - ours,) for seed, (ours, theirs) in pair.samples.items()} for pair in pairs]
    return Change(value, p=jackknife(differences, _mean_change).p)


def _columns(changes: Mapping[int, float]) -> dict[int, tuple[float]]:
    return {seed: (change,) for seed, change in changes.items()}


def _change(found: Estimated, metric: Metric) -> Change:
    low, high = found.interval
    ends = [None if end is None else _stated(end, metric) for end in (low, high)]
    return Change(_stated(found.value, metric), ends[0], ends[1], found.p)


def _mean_change(means: Sequence[Numbers]) -> float:
    return float(np.mean([one[0] for one in means]))


def _stated(value: float, metric: Metric) -> float:
    if metric.is_difference or math.isnan(value):
        return value
    return math.inf if value > 700 else math.exp(value) - 1.0


def judge(comparisons: Sequence[Comparison], thresholds: Thresholds) -> list[Comparison]:
    """Adds outcomes to comparisons by one metric. P-values are adjusted for all of them together."""
    if not comparisons:
        return []
    least = thresholds.of(comparisons[0].metric)
    of_settings = [one.change.p for comparison in comparisons for one in comparison.differences]
    inner, overall = iter(adjusted(of_settings)), iter(adjusted([one.overall.p for one in comparisons]))
    compared = sum(p is not None for p in of_settings)
    found = []
    for comparison in comparisons:
        metric, pairs = comparison.metric, comparison.pairs
        differences = tuple(
            replace(one, outcome=outcome(one.change, next(inner), metric, least, one.pairs))
            for one in comparison.differences
        )
        whole = outcome(comparison.overall, next(overall), metric, least, pairs)
        judged = replace(comparison, differences=differences, outcome=whole, compared=compared)
        signs = _contradictions(judged, least)
        found.append(replace(judged, is_split=bool(signs), depends_on=_distinguishing_keys(judged, signs)))
    return found


def outcome(change: Change, p: float | None, metric: Metric, least: float, pairs: Sequence[Pair]) -> Outcome:
    """The conclusion about a change, from its adjusted p-value and the threshold for negligible changes."""
    if all(one == other for pair in pairs for one, other in pair.samples.values()):
        fewest = min(len(pair.samples) for pair in pairs)
        if change.is_exact or fewest >= FEWEST_SEEDS:
            return Outcome.EQUAL
    if change.is_exact:
        return _directed(change, metric, pairs) if abs(change.value) >= least else Outcome.NEGLIGIBLE
    if p is None or change.p is None:
        seeds = min(len(pair.samples) for pair in pairs)
        return {1: Outcome.ONE_SEED, 2: Outcome.TWO_SEEDS}.get(seeds, Outcome.NO_INTERVAL)
    if p <= LEVEL and change.sign != _sign_of_means(pairs, metric):
        # The ratios rise while the means fall, since one seed outweighs the others.
        return Outcome.UNCLEAR
    if p <= LEVEL:
        return _directed(change, metric, pairs) if abs(change.value) >= least else Outcome.NEGLIGIBLE
    if change.low is not None and change.high is not None and -least < change.low and change.high < least:
        return Outcome.NEGLIGIBLE
    return Outcome.ADJUSTED if change.p <= LEVEL else Outcome.UNCLEAR


def _sign_of_means(pairs: Sequence[Pair], metric: Metric) -> int:
    """The sign of the change of the means over the seeds."""
    baseline, other = (central(column, metric) for column in np.array([_means(pair) for pair in pairs]).T)
    return (other > baseline) - (other < baseline)


def _directed(change: Change, metric: Metric, pairs: Sequence[Pair]) -> Outcome:
    if not metric.better:
        return Outcome.LOWER if change.sign < 0 else Outcome.HIGHER
    is_better = change.sign == metric.better
    shares = [pair.finished for pair in pairs if pair.finished is not None]
    if metric.covers_finished and shares:
        baseline, other = np.mean(shares, axis=0)
        # Slow flows are the ones that do not finish, so a mean that omits more of them looks better than it is.
        if (baseline - other if is_better else other - baseline) > DOUBTFUL_POINTS:
            return Outcome.DOUBTFUL
    return Outcome.BETTER if is_better else Outcome.WORSE


def _contradictions(one: Comparison, least: float) -> dict[int, int]:
    """The signs of differences that contradict each other by more than noise, by index; empty if none do."""
    established = DIRECTED | {Outcome.DOUBTFUL}
    relevant = {
        place: found.change.sign for place, found in enumerate(one.differences) if abs(found.change.value) >= least
    }
    if len(set(relevant.values()) - {0}) < 2:
        return {}
    known = {place: sign for place, sign in relevant.items() if one.differences[place].outcome in established}
    if len(set(known.values())) > 1:
        return known
    if all(found.outcome in UNKNOWN for found in one.differences):
        return relevant
    if not known:
        return {}
    # Compares the best established change with those of the opposite sign, each of which may be noise.
    anchor = min(known, key=lambda place: one.differences[place].change.p or 0.0)
    opposed = [place for place, sign in relevant.items() if sign == -relevant[anchor]]
    far = [place for place in opposed if _differ(one, anchor, place, len(opposed))]
    return {**known, **{place: relevant[place] for place in far}} if far else {}


def _differ(one: Comparison, place: int, other: int, tests: int) -> bool:
    """True if the changes in two groups of settings differ by more than noise."""
    first, second = one.differences[place], one.differences[other]
    if first.change.is_exact and second.change.is_exact:
        return True
    ours, theirs = (
        [_columns(changes) for pair in each.pairs if (changes := _by_seed(pair, one.metric)) is not None]
        for each in (first, second)
    )
    if not ours or not theirs:
        return False
    count = len(ours)
    found = jackknife([*ours, *theirs], lambda means: _mean_change(means[:count]) - _mean_change(means[count:]))
    return found.p is not None and found.p * tests <= LEVEL


def _distinguishing_keys(one: Comparison, signs: Mapping[int, int]) -> tuple[str, ...]:
    """The smallest set of keys whose values determine the sign; empty if there are several such sets."""
    if not signs:
        return ()
    places = [one.differences[place].axes for place in signs]
    keys = [key for key in places[0] if len({str(axes.get(key)) for axes in places}) > 1]
    for size in range(1, len(keys) + 1):
        telling = [some for some in itertools.combinations(keys, size) if _determine(some, places, [*signs.values()])]
        if telling:
            return telling[0] if len(telling) == 1 else ()
    return ()


def _determine(keys: Sequence[str], places: Sequence[Mapping[str, object]], signs: Sequence[int]) -> bool:
    seen: dict[tuple[str, ...], int] = {}
    return all(
        seen.setdefault(tuple(str(axes.get(key)) for key in keys), sign) == sign
        for axes, sign in zip(places, signs, strict=True)
    )
