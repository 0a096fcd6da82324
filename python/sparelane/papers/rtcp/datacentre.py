"""What RTCP's experiments in the simulated datacentre share: schemes, runs, throughput and one-way delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.rows import Band, Evaluation, Key, Metric, Row, joined, measured
from sparelane.reports import plots

SCENARIO = "rtcp-datacentre"

# The paper's schemes: how it calls them, and their names in the scenario.
SCHEMES: Mapping[str, str] = {
    "NewReno": "newreno",
    "DCTCP": "dctcp",
    "BBR": "bbr",
    "TIMELY": "timely",
    "RTCP": "rtcp",
    "LEDBAT": "ledbat",
    "Vegas": "vegas",
    "constant": "constant",
}
LOOKS: Mapping[str, plots.Look] = {
    "NewReno": plots.TCP,
    "DCTCP": plots.THIRD,
    "BBR": plots.MODEL,
    "TIMELY": plots.FIFTH,
    "RTCP": plots.RC3,
    "LEDBAT": plots.MODEL,
    "Vegas": plots.TCP,
    "constant": plots.FOURTH,
}

MSS_BYTES = 1460

THROUGHPUT = Metric("throughput", "Mb/s")
DELAY = Metric("delay", "us")
MEAN, TAIL = "mean", "99th percentile"


def of(metric: Metric, other: str) -> Metric:
    """A number in percent of another scheme's."""
    return Metric(f"{metric.name}, of {other}'s", "%")


# Windows of flows that hear nothing, in segments: one bandwidth-delay product of long paths, and RTCP's x_max there.
NULL_WINDOWS = (10, 80)

# The share of a run after which measuring begins.
WARM_UP_SHARE = 0.2

# What rtcp/setting finds of the setting of all experiments, and of the one that is closest to RTCP's own numbers.
STATEMENTS, HELD, HELD_BY_CLOSEST = 48, 23, 24

# What windows that never change say of RTCP, on the pages of flows that are few and alike.
NO_CONTROL = (
    "A constant window of 10 segments, one bandwidth-delay product of long paths, has more throughput than RTCP at a "
    "shorter delay: where few flows meet, RTCP as it is set here is behind no control at all. It switches rather than "
    "controls: its window is mostly one segment, and doubles with every acknowledgment to several tens when the queue "
    "is gone. RTCP is ahead of constant windows where many flows meet (rtcp/incast-95) and where weights decide "
    "(rtcp/preemption), and far from a constant window of x_max, 80 segments."
)


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting.

    Attributes:
        scheme: as the paper calls it.
        settings: overrides of the scenario.
        setting: how rows call what is done.
        variant: what is other than in the paper, as we read it.
        called: how rows call the scheme, where it is not the paper's name.
        mix: what the workload is, where it is not random sending: the value of `workload`, with `SCHEME` in it.
        lengths: how long the run is, as a multiple of the effort's.
    """

    scheme: str
    settings: tuple[str, ...] = ()
    setting: str = "random sending"
    variant: str = ""
    called: str = ""
    mix: str | None = None
    lengths: int = 1

    def varied(self, variant: str, *settings: str, lengths: int = 1) -> Run:
        """The same with further overrides."""
        return replace(self, variant=variant, settings=(*self.settings, *settings), lengths=lengths)

    def key(self, metric: Metric, average: str = "", traffic_class: str | None = None) -> Key:
        """Which number of it a row has."""
        scheme = self.called or self.scheme
        return Key(self.setting, metric, scheme, average, traffic_class or "", self.variant)

    def stop_s(self, effort: Effort) -> float:
        """How long it is, seconds."""
        return self.lengths * effort.stop_s

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run under `seed`."""
        scheme, stop_s = SCHEMES[self.scheme], self.stop_s(effort)
        workload = f"workload.scheme={scheme}" if self.mix is None else f"workload={self.mix.replace('SCHEME', scheme)}"
        return Simulation(
            scenario=SCENARIO,
            settings=(
                workload,
                *self.settings,
                f"duration={stop_s * 1e3:g}ms",
                f"measure.from={WARM_UP_SHARE * stop_s * 1e3:g}ms",
            ),
            seed=seed,
            label=joined(self.setting, self.variant, f"{self.called or self.scheme} seed {seed}"),
            cost=30 * stop_s,
            keep_flows=seed == 1,
        )

    def outcomes(self, effort: Effort, outcomes: Outcomes) -> list[Outcome]:
        """Of all seeds."""
        return [outcomes[self.simulation(seed, effort)] for seed in effort.seed_numbers()]


@dataclass(frozen=True, slots=True)
class Printed:
    """The paper's numbers of one scheme: megabits per second, and microseconds."""

    mbps: float | None = None
    us: float | None = None


def controls(rtcp: Run) -> list[Run]:
    """What RTCP must be told from: windows that never change, and RTCP that does not hear of congestion, or only of Q.

    A row of RTCP that does not differ from these says nothing of RTCP.
    """
    kept = tuple(text for text in rtcp.settings if not text.startswith("scheme.rtcp."))
    windows = [
        replace(rtcp, scheme="constant", called=constant(window), settings=(*kept, f"scheme.constant.window={window}"))
        for window in NULL_WINDOWS
    ]
    return [*windows, *(rtcp.varied(f"{name} = 0", f"scheme.rtcp.{name}=0") for name in ("alpha", "delta"))]


def constant(window: int) -> str:
    """How rows call a window of so many segments that never changes."""
    return f"constant window of {window}"


def ahead(run: Run, other: Run) -> Value:
    """By which factor a run is ahead of another, in throughput or in mean delay, whichever is more; below 1 in none."""
    keys = [[one.key(THROUGHPUT), one.key(DELAY, MEAN)] for one in (run, other)]

    def factor(evaluation: Evaluation) -> float:
        (rate, delay), (other_rate, other_delay) = ([evaluation.ours(key) for key in pair] for pair in keys)
        return max(rate / other_rate, other_delay / delay)

    return factor


def plan(runs: Sequence[Run], effort: Effort) -> list[Simulation]:
    """Every run with every seed."""
    return [run.simulation(seed, effort) for seed in effort.seed_numbers() for run in runs]


def throughput_mbps(outcome: Outcome, stop_s: float, traffic_class: str | None = None) -> float:
    """What the flows of a class got, on average, in megabits per second."""
    flows = outcome.flows if traffic_class is None else outcome.flows.filter(pl.col("traffic_class") == traffic_class)
    counted_s = (1 - WARM_UP_SHARE) * stop_s
    return float(flows.select(pl.col("measured_bytes").mean()).item()) * 8 / counted_s / 1e6


def delays(outcome: Outcome, traffic_class: str | None = None) -> pl.DataFrame:
    """How many packets took how long, by delay, of a class or of all."""
    table = outcome.delays if traffic_class is None else outcome.delays.filter(pl.col("traffic_class") == traffic_class)
    return table.group_by("delay_s").agg(pl.col("packets").sum()).sort("delay_s")


def mean_us(outcome: Outcome, traffic_class: str | None = None) -> float | None:
    """The mean one-way delay of packets, microseconds; `None` without packets."""
    table = delays(outcome, traffic_class)
    if table.is_empty():
        return None
    return float(table.select((pl.col("delay_s") * pl.col("packets")).sum() / pl.col("packets").sum()).item()) * 1e6


def quantile_us(outcome: Outcome, share: float, traffic_class: str | None = None) -> float | None:
    """The delay that a share of the packets does not exceed, microseconds; `None` without packets."""
    table = delays(outcome, traffic_class).with_columns(pl.col("packets").cum_sum().alias("so_far"))
    reached = table.filter(pl.col("so_far") >= share * pl.col("packets").sum())
    return None if reached.is_empty() else float(reached["delay_s"][0]) * 1e6


def distribution(outcomes: Iterable[Outcome], traffic_class: str | None = None) -> pl.DataFrame:
    """The cumulative distribution of the delays of all `outcomes` together: `delay_us` and `share`."""
    table = pl.concat([delays(outcome, traffic_class) for outcome in outcomes])
    table = table.group_by("delay_s").agg(pl.col("packets").sum()).sort("delay_s")
    return table.select(
        (pl.col("delay_s") * 1e6).alias("delay_us"),
        (pl.col("packets").cum_sum() / pl.col("packets").sum()).alias("share"),
    )


def share_beyond(outcome: Outcome, us: float, traffic_class: str | None = None) -> float | None:
    """The percentage of packets that took longer than so many microseconds; `None` without packets."""
    table = delays(outcome, traffic_class)
    if table.is_empty():
        return None
    beyond = table.filter(pl.col("delay_s") > us / 1e6)["packets"].sum()
    return 100 * float(beyond) / float(table["packets"].sum())


def window(outcome: Outcome) -> pl.DataFrame:
    """The congestion window of the first flow over time: `time_ms` and `cwnd_segments`."""
    samples = outcome.series.filter((pl.col("probe") == "flow 0") & (pl.col("quantity") == "cwnd_bytes"))
    return samples.select(
        (pl.col("time_s") * 1e3).alias("time_ms"), (pl.col("value") / MSS_BYTES).alias("cwnd_segments")
    )


def scheme_rows(
    run: Run, printed: Printed, effort: Effort, outcomes: Outcomes, traffic_class: str | None = None
) -> Iterable[Row]:
    """Throughput, mean delay and 99th percentile of one scheme."""
    found = run.outcomes(effort, outcomes)
    rates = [throughput_mbps(outcome, run.stop_s(effort), traffic_class) for outcome in found]
    yield measured(run.key(THROUGHPUT, "", traffic_class), printed.mbps, rates)
    means = known(mean_us(outcome, traffic_class) for outcome in found)
    yield measured(run.key(DELAY, MEAN, traffic_class), printed.us, means)
    tails = known(quantile_us(outcome, 0.99, traffic_class) for outcome in found)
    yield measured(run.key(DELAY, TAIL, traffic_class), None, tails)


def known(values: Iterable[float | None]) -> list[float]:
    """The numbers among them."""
    return [value for value in values if value is not None]


def ratio_row(
    key: Key,
    ours: Sequence[float | None],
    other: Sequence[float | None],
    paper: float | None = None,
    said: Band | None = None,
) -> Row:
    """One number in percent of another, seed by seed, where both are known."""
    both = [100 * one / two for one, two in zip(ours, other, strict=True) if one is not None and two]
    return measured(key, paper, both, said)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is measured of a run, one value for each seed.

    Attributes:
        mbps: throughput.
        mean_us: the mean delay.
        tail_us: the 99th percentile of it.
    """

    mbps: Sequence[float | None]
    mean_us: Sequence[float | None]
    tail_us: Sequence[float | None]


def numbers(run: Run, effort: Effort, outcomes: Outcomes, traffic_class: str | None = None) -> Numbers:
    """Throughput and delay of a run."""
    found, stop_s = run.outcomes(effort, outcomes), run.stop_s(effort)
    return Numbers(
        [throughput_mbps(outcome, stop_s, traffic_class) for outcome in found],
        [mean_us(outcome, traffic_class) for outcome in found],
        [quantile_us(outcome, 0.99, traffic_class) for outcome in found],
    )
