"""What RTCP's experiments on a testbed share: schemes, runs, times and goodput of flows, statements about order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from sparelane.papers.engine import base
from sparelane.papers.engine.base import Effort, Outcome, Outcomes, Simulation
from sparelane.papers.engine.claims import about, at_most, ours
from sparelane.papers.engine.rows import NOT_EXPLAINED, Band, Evaluation, Key, Metric, Row, joined
from sparelane.papers.engine.statistics import estimate
from sparelane.reports import plots

SCENARIO = "rtcp-testbed"

# The paper's schemes: how it calls them, and their names in the scenario.
SCHEMES: Mapping[str, str] = {"Cubic": "cubic", "DCTCP": "dctcp", "PCC": "pcc", "BBR": "bbr", "RTCP": "rtcp"}
LOOKS: Mapping[str, plots.Look] = {
    "Cubic": plots.TCP,
    "DCTCP": plots.THIRD,
    "PCC": plots.MODEL,
    "BBR": plots.MODEL,
    "RTCP": plots.RC3,
}
CLASSES = ("urgent", "high-volume")
SIZES: Mapping[str, str] = {"web search": "web-search", "data mining": "data-mining"}

# Flows count from this share of the requests' time on.
WARM_UP_SHARE = 0.1

# How long a run goes on, in lengths of the requests' time, so that what was asked for can arrive.
LONG_RUN = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """What the client asks for, and what differs from the scenario.

    Attributes:
        name: how rows call it.
        sizes: of flows, as the paper calls them.
        load: of the client's link, 0 to 1.
        alpha: RTCP's.
        overrides: `key=value` each.
        variant: what is other than in the paper, as we read it.
    """

    name: str
    sizes: str
    load: float
    alpha: float
    overrides: tuple[str, ...] = ()
    variant: str = ""

    def varied(self, variant: str, *overrides: str) -> Setting:
        """The same with further overrides."""
        return replace(self, variant=variant, overrides=(*self.overrides, *overrides))


def asks(sizes: str, load: float, scheme: str, end_s: float, long_run: int) -> tuple[str, ...]:
    """What a client asks for: flows of `sizes` under a scheme until `end_s`, in a run of `long_run` times that."""
    return (
        f"workload.sizes.kind={SIZES[sizes]}",
        f"workload.load={load:g}",
        f"workload.scheme={SCHEMES[scheme]}",
        f"workload.end={end_s:g}s",
        f"duration={long_run * end_s:g}s",
    )


def prices(scheme: str, alpha: float) -> tuple[str, ...]:
    """RTCP's alpha, which others have not."""
    return (f"scheme.rtcp.alpha={alpha:g}",) if scheme == "RTCP" else ()


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting."""

    scheme: str
    setting: Setting

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run under `seed`."""
        setting = self.setting
        return Simulation(
            scenario=SCENARIO,
            settings=(
                *prices(self.scheme, setting.alpha),
                *asks(setting.sizes, setting.load, self.scheme, effort.stop_s, LONG_RUN),
                *setting.overrides,
            ),
            seed=seed,
            label=joined(setting.name, setting.variant, f"{self.scheme} seed {seed}"),
            cost=0.03 * setting.load * effort.stop_s,
            keep_flows=seed == 1,
        )


def open_settings(base: Setting, schemes: Sequence[str]) -> tuple[Run, ...]:
    """What the paper leaves open, each setting varied alone: RTCP's own for RTCP, the network's for all schemes."""
    own = (
        base.varied("x_max of the line rate", "scheme.rtcp.x_max=1"),
        base.varied("x_max of 8 line rates", "scheme.rtcp.x_max=8"),
        base.varied("windows from 2 segments", "scheme.rtcp.min_window=2"),
        base.varied("round-trip times by 1 ms", 'scheme.rtcp.transport={ rtt_granularity = "1ms" }'),
        base.varied("the wait at the own interface in Q and not in D", 'scheme.rtcp.interface="apart"'),
        base.varied("alpha = 0", "scheme.rtcp.alpha=0"),
    )
    common = (
        base.varied("interfaces without bound", "nic.limit=2.048GB"),
        base.varied("receive windows of 256 KiB", "transport.receive_window=256KiB"),
    )
    return (
        *(Run("RTCP", setting) for setting in own),
        *(Run(scheme, setting) for setting in common for scheme in schemes),
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """What is measured in one run.

    Attributes:
        values: one number per flow or request, by what it is.
        unfinished: flows that should count and had not finished.
    """

    values: Mapping[str, np.ndarray]
    unfinished: int


@dataclass(frozen=True, slots=True)
class Statistic:
    """One number of many flows or requests.

    Attributes:
        metric: what is measured.
        average: what number of many it is.
        traffic: of which flows or requests.
        of: which values of a `Sample`.
        reduce: all of them to the number.
    """

    metric: Metric
    average: str
    traffic: str
    of: str
    reduce: Callable[[np.ndarray], float]

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        return joined(self.traffic, self.average, self.metric.name, by=" ")

    @property
    def label(self) -> str:
        """The same with the unit, for an axis, in two lines."""
        traffic = f"{self.traffic} flows" if self.traffic else ""
        first = joined(traffic, self.average.replace(" percentile", ""), by=", ")
        return joined(first, f"{self.metric.name} ({self.metric.unit})", by="\n")

    def key(self, run: Run) -> Key:
        """The row that has it of a run."""
        return Key(run.setting.name, self.metric, run.scheme, self.average, self.traffic, run.setting.variant)


def _percentile(values: np.ndarray) -> float:
    return float(np.percentile(values, 99))


def _mean(values: np.ndarray) -> float:
    return float(values.mean())


def _tail(metric: Metric, name: str) -> Statistic:
    return Statistic(metric, "99th percentile", name, f"{name} {metric.name}", _percentile)


FCT, RCT = Metric("FCT", "ms"), Metric("RCT", "ms")
URGENT, HIGH_VOLUME = (_tail(FCT, name) for name in CLASSES)
URGENT_REQUESTS, HIGH_VOLUME_REQUESTS = (_tail(RCT, name) for name in CLASSES)
GOODPUT = Statistic(Metric("goodput", "Mb/s"), "", "", "goodput", _mean)


def plan(runs: Iterable[Run], effort: Effort) -> list[Simulation]:
    """Every run with every seed."""
    return [run.simulation(seed, effort) for run in runs for seed in effort.seed_numbers()]


def sample(outcome: Outcome, effort: Effort) -> Sample:
    """The flows and requests that count, in milliseconds and megabits per second."""
    flows = outcome.flows.filter(pl.col("start_s") >= WARM_UP_SHARE * effort.stop_s)
    done = flows.drop_nulls("completion_s")
    requests = flows.group_by("request", maintain_order=True).agg(
        (pl.col("completion_s").max() * 1e3).alias("ms"),
        pl.col("completion_s").is_not_null().all().alias("is_over"),
        (pl.col("traffic_class") == "urgent").all().alias("is_urgent"),
    )
    values = {"goodput": (done["size_bytes"] * 8 / done["completion_s"] / 1e6).to_numpy()}
    for name in CLASSES:
        of_class = done.filter(pl.col("traffic_class") == name)
        values[f"{name} FCT"] = (of_class["completion_s"] * 1e3).to_numpy()
        over = requests.filter(pl.col("is_over"), pl.col("is_urgent") == (name == "urgent"))
        values[f"{name} RCT"] = over["ms"].to_numpy()
    return Sample(values, flows.height - done.height)


# The value of a statistic in a run; not a number where no flow gives one.
Ask = Callable[[Run, Statistic], float]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the text says of the order of schemes.

    Attributes:
        row: where it says so, the setting of its row.
        metric: what is put into proportion.
        ratio: what of what; below 1 if the claim holds and it is one of order.
        is_order: whether it is one, or says that two numbers are about the same.
    """

    row: str
    metric: str
    ratio: Callable[[Ask], float]
    is_order: bool = True

    @property
    def key(self) -> Key:
        """The row that has the ratio in percent."""
        return Key(self.row, Metric(self.metric, "%"))


# What is said to be below or above something is neither where it is the same.
BELOW_PERCENT = 99.99
# What is said to be comparable, or almost the same, is so within this factor.
COMPARABLE = 1.25


def as_claims(claims: Iterable[Claim], reasons: Mapping[Key, str]) -> Iterator[base.Claim]:
    """The text's orders as claims of the experiment, with the reasons of their rows."""
    for claim in claims:
        yield base.Claim(
            f"{claim.row}, {claim.metric}, in percent",
            ours(claim.key),
            full=at_most(BELOW_PERCENT) if claim.is_order else about(100.0, 5.0),
            reason=reasons.get(claim.key, NOT_EXPLAINED),
        )


class Measurements:
    """The samples of all runs, and rows from them."""

    def __init__(self, runs: Iterable[Run], effort: Effort, outcomes: Outcomes) -> None:
        self._seeds = effort.seed_numbers()
        self._samples = {
            run: [sample(outcomes[run.simulation(seed, effort)], effort) for seed in self._seeds] for run in runs
        }

    def row(self, run: Run, statistic: Statistic) -> Row:
        """A statistic of one run."""
        return self._row(statistic.key(run), lambda ask: ask(run, statistic))

    def claim(self, claim: Claim) -> Row:
        """The ratio of a claim in percent."""
        said = at_most(100.0) if claim.is_order else about(100.0, 0.0)
        return self._row(claim.key, lambda ask: 100 * claim.ratio(ask), said)

    def _row(self, key: Key, number: Callable[[Ask], float], said: Band | None = None) -> Row:
        every = list(range(len(self._seeds)))
        whole = number(self._asking(every))
        if not math.isfinite(whole):
            return Row(key, None, None, said=said)
        parts = [number(self._asking([at for at in every if at != out])) for out in every]
        pseudo = [len(every) * whole - (len(every) - 1) * part for part in parts if math.isfinite(part)]
        return Row(key, None, whole, estimate(pseudo).ci95 if len(pseudo) > 1 else None, said)

    def _asking(self, seeds: Sequence[int]) -> Ask:
        def ask(run: Run, statistic: Statistic) -> float:
            values = [self._samples[run][at].values[statistic.of] for at in seeds]
            together = np.concatenate(values) if values else np.empty(0)
            return statistic.reduce(together) if together.size else math.nan

        return ask

    def unfinished(self) -> str:
        """Which runs had flows that did not finish, and how many."""
        left = {
            run: sum(one.unfinished for one in samples)
            for run, samples in self._samples.items()
            if any(one.unfinished for one in samples)
        }
        listed = "; ".join(f"{_words(run)} {count}" for run, count in left.items())
        return f"Flows that had not finished when a run ended, over all seeds: {listed or 'none'}."


def _words(run: Run) -> str:
    return f"{joined(run.setting.name, run.setting.variant)}: {run.scheme}"


def evaluation(
    runs: Sequence[Run],
    statistics: Sequence[Statistic],
    claims: Sequence[Claim],
    effort: Effort,
    outcomes: Outcomes,
    *,
    notes: Sequence[str] = (),
) -> Evaluation:
    """Every statistic of every run, what holds of the claims, and further notes."""
    found = Measurements(runs, effort, outcomes)
    rows = [found.row(run, statistic) for run in runs for statistic in statistics]
    judged = [found.claim(claim) for claim in claims]
    orders = [row for claim, row in zip(claims, judged, strict=True) if claim.is_order and row.value is not None]
    above, below = (sum(is_so(row) for row in orders) for is_so in (_is_above, _is_below))
    tally = (
        f"Of {len(orders)} statements of the text about order, {below} hold here, {above} do not, and the interval of "
        f"{len(orders) - above - below} includes a tie."
    )
    return Evaluation((*rows, *judged), (tally, *notes, found.unfinished()))


def _is_below(row: Row) -> bool:
    return row.value is not None and row.value + (row.interval or 0.0) < 100


def _is_above(row: Row) -> bool:
    return row.value is not None and row.value - (row.interval or 0.0) > 100


def bars(
    axes: Axes, evaluation: Evaluation, schemes: Sequence[str], settings: Mapping[str, Setting], statistic: Statistic
) -> None:
    """One group for each setting, by its label, and one bar or marker for each scheme."""
    series = [
        plots.Bars.of_rows(
            scheme,
            LOOKS[scheme],
            [evaluation.find(statistic.key(Run(scheme, setting))) for setting in settings.values()],
        )
        for scheme in schemes
    ]
    if is_wide(statistic):
        plots.grouped_points(axes, list(settings), series)
    else:
        plots.grouped_bars(axes, list(settings), series)


def is_wide(statistic: Statistic) -> bool:
    """Whether its numbers differ by orders of magnitude, so that bars would tell nothing."""
    return statistic.traffic == "urgent"
