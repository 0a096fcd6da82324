"""What RTCP's experiments in the simulated datacentre share: schemes, runs, throughput and one-way delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Outcome, Outcomes, Row, Simulation, measured

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

# Windows of flows that hear nothing, in segments: one bandwidth-delay product of long paths, and RTCP's x_max there.
NULL_WINDOWS = (10, 20)

# The share of a run after which measuring begins.
WARM_UP_SHARE = 0.2

ASSUMPTIONS = (
    "3 spines, 8 leaves, 12 servers each; 10 Gb/s to servers, 40 Gb/s between leaves and spines, 1 us on every link, "
    "as the paper says.",
    "Where the paper is silent, what ns-3 does by default, with which it was made: one path between two leaves, the "
    "same for all flows (its global routing spreads flows only if asked to); queues of 100 packets at every port, "
    "servers' interfaces included; a receive window of 131,072 bytes; an initial window of 10; timeouts of at least 1 "
    "s; and round-trip times by timestamps of 1 ms, of which less than one tick counts as 1 us. That last rule makes "
    "every round trip of this network 1 us but for those during which the clock ticks: schemes that read them hardly "
    "see queues.",
    "Segments of 1460 bytes (ns-3's default is 536; the paper's weights are multiples of 1500), an acknowledgment for "
    "each.",
    "DCTCP marks at 65 packets, as the DCTCP paper takes for 10 Gb/s. BBR, TIMELY, Vegas and LEDBAT are as published; "
    "the paper says that its BBR for ns-3 lacks features, and of its TIMELY nothing.",
    "RTCP: the counter in bytes, Q in KB, D in ms over the least round trip; flows of no class have the weight of "
    "urgent ones, 24,000 bytes. The paper's x_max is read as the line rate: windows are at most one bandwidth-delay "
    "product, 10 segments. The rows of rtcp/random-sending with larger windows show how much rests on that.",
    "Throughput is what a flow's receiver holds more of per second, each byte once, on average over flows; delay is "
    "of data packets, one way, from the sender's interface queue to the receiver, on average over packets. A fifth of "
    "each run passes before both count.",
)


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting.

    Attributes:
        scheme: as the paper calls it.
        settings: overrides of the scenario.
        name: what tells the setting apart in labels.
        mix: what the workload is, where it is not random sending: the value of `workload`, with `SCHEME` in it.
    """

    scheme: str
    settings: tuple[str, ...] = ()
    name: str = ""
    mix: str | None = None

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run under `seed`."""
        scheme = SCHEMES[self.scheme]
        workload = f"workload.scheme={scheme}" if self.mix is None else f"workload={self.mix.replace('SCHEME', scheme)}"
        return Simulation(
            scenario=SCENARIO,
            settings=(
                workload,
                *self.settings,
                f"duration={effort.stop_s * 1e3:g}ms",
                f"measure.from={WARM_UP_SHARE * effort.stop_s * 1e3:g}ms",
            ),
            seed=seed,
            label=f"{self.name} {self.scheme} seed {seed}".strip(),
            cost=30 * effort.stop_s,
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


def controls(of: Run) -> Mapping[str, Run]:
    """What RTCP must be told from: windows that never change, and RTCP that does not hear of congestion, or only of Q.

    By the names of their rows. A row of RTCP that does not differ from these says nothing of RTCP.
    """
    kept = tuple(text for text in of.settings if not text.startswith("scheme.rtcp."))
    windows = {
        f"null: a constant window of {window}": Run(
            "constant", (*kept, f"scheme.constant.window={window}"), of.name, of.mix
        )
        for window in NULL_WINDOWS
    }
    deaf = {
        "RTCP, alpha = 0": (*of.settings, "scheme.rtcp.alpha=0"),
        "RTCP, delta = 0": (*of.settings, "scheme.rtcp.delta=0"),
    }
    return windows | {
        name: Run("RTCP", settings, f"{of.name} {name}".strip(), of.mix) for name, settings in deaf.items()
    }


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
    row: str, run: Run, printed: Printed, effort: Effort, outcomes: Outcomes, traffic_class: str | None = None
) -> Iterable[Row]:
    """Throughput, mean delay and 99th percentile of one scheme."""
    found = run.outcomes(effort, outcomes)
    rates = [throughput_mbps(outcome, effort.stop_s, traffic_class) for outcome in found]
    yield measured(row, "throughput", "Mb/s", printed.mbps, rates)
    yield measured(row, "mean delay", "us", printed.us, known(mean_us(outcome, traffic_class) for outcome in found))
    tails = known(quantile_us(outcome, 0.99, traffic_class) for outcome in found)
    yield measured(row, "99th delay", "us", None, tails)


def known(values: Iterable[float | None]) -> list[float]:
    """The numbers among them."""
    return [value for value in values if value is not None]


def ratio_row(
    row: str, metric: str, paper: float | None, of: Sequence[float | None], to: Sequence[float | None]
) -> Row:
    """One number in percent of another, seed by seed, where both are known."""
    both = [100 * one / other for one, other in zip(of, to, strict=True) if one is not None and other]
    return measured(row, metric, "%", paper, both)
