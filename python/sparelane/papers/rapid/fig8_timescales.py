"""RAPID, sections IV-D and IV-E, Fig. 8: errors of bandwidth estimates, by the length of p-streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparelane import rapid
from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.reports import plots

# Packets of a p-stream, and p-streams to an update: 192 packets together, but for the shortest.
GAMMAS: Mapping[int, int] = {32: 6, 48: 4, 64: 3, 96: 2, 192: 1}
RATES = 4
TRAFFIC = ("CBR", "BCT")

# What the paper leaves open, each varied alone, with p-streams of 64 packets.
VARIED: Mapping[str, tuple[str, ...]] = {
    "spike_factor = 0.25": ("scheme.rapid.spike_factor=0.25",),
    "excursion_share = 2 %": ("scheme.rapid.excursion_share=0.02",),
    "excursion_share = 5 %": ("scheme.rapid.excursion_share=0.05",),
    "spike_floor = 2 us": ("scheme.rapid.spike_floor=2us",),
    "no smoothing": ("scheme.rapid.bass_passes=0",),
    "excursion_persistence = 0": ("scheme.rapid.excursion_persistence=0.0",),
    "excursion_persistence = 0.5": ("scheme.rapid.excursion_persistence=0.5",),
    "excursion_samples = 2": ("scheme.rapid.excursion_samples=2",),
    "queues of 4 MB": ("queue.limit=4MB",),
    "queues of 1.5 MB": ("queue.limit=1.5MB",),
    "interrupts after 20 us": ("host_at.0.interrupt_after=20us",),
    "interrupts after 125 us": ("host_at.0.interrupt_after=125us", "host_at.0.interrupt_packets=1000"),
    "an acknowledgment for each packet": ("transport.delayed_ack=false",),
    "hosts without noise": (testbed.QUIET_HOSTS,),
}

LOOKS: Mapping[int, plots.Look] = {
    32: plots.FOURTH,
    48: plots.FIFTH,
    64: plots.RC3,
    96: plots.THIRD,
    192: plots.TCP,
}

# What happens before this does not count, seconds.
WARM_UP_S = 1.0

# A small error, and the share of p-streams that have one.
SMALL = 0.1
SINGLE = Metric("errors below 10 %", "%")
BIAS = Metric("estimate less available, on average", "%")
PROBING = Metric("p-streams that probe it", "%")
SINGLE_OF_THESE = Metric("errors below 10 %, of these", "%")

SAMPLE_S = 100e-6

# Half a round trip, and what a host adds to it on average: a packet is at the bottleneck so long before the estimate.
BACK_S = testbed.RTT_S / 2

# Of what the paper leaves open, so many seeds are enough.
VARIED_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of one run, and what was available.

    Attributes:
        estimate_bps: by each p-stream.
        available_bps: while it passed the bottleneck.
        average_bps: the average rate of the p-stream.
    """

    estimate_bps: NDArray[np.float64]
    available_bps: NDArray[np.float64]
    average_bps: NDArray[np.float64]

    def averaged(self, count: int) -> Estimates:
        """Of so many p-streams together."""
        whole = len(self.estimate_bps) // count * count
        columns = (self.estimate_bps, self.available_bps, self.average_bps)
        return Estimates(*(values[:whole].reshape(-1, count).mean(axis=1) for values in columns))

    def probing(self) -> Estimates:
        """Of p-streams with a rate below what was available, and one above."""
        rates = rapid.p_stream(1e9).rate_bps / 1e9
        share = self.available_bps / self.average_bps
        these = (share >= rates.min()) & (share <= rates.max())
        return Estimates(self.estimate_bps[these], self.available_bps[these], self.average_bps[these])

    def errors(self) -> NDArray[np.float64]:
        """Relative to what was available."""
        return np.abs(self.estimate_bps - self.available_bps) / self.available_bps


def simulation(traffic: str, packets: int, seed: int, effort: Effort, settings: tuple[str, ...] = ()) -> Simulation:
    """One transfer whose p-streams have so many packets."""
    return testbed.simulation(
        "rapid",
        seed,
        effort.stop_s,
        label=f"{traffic} N = {packets}",
        cross_traffic=traffic,
        settings=(
            f"scheme.rapid.packets_per_rate={packets // RATES}",
            f"scheme.rapid.gamma={GAMMAS[packets]}",
            testbed.QUICK_START,
            f'sample={{interval="{SAMPLE_S * 1e6:g}us", flows=[0]}}',
            *settings,
        ),
    )


def alone(traffic: str, seed: int, effort: Effort) -> Simulation:
    """The same cross traffic without a transfer: nothing that others do changes it."""
    return testbed.simulation(
        "rapid",
        seed,
        effort.stop_s,
        label=f"{traffic} alone",
        cross_traffic=traffic,
        settings=(
            "workload.size=1packets",
            f'sample={{interval="{SAMPLE_S * 1e6:g}us", links=[["west", "east"]]}}',
        ),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every length beside every kind of traffic, and every variation."""
    return [
        *(alone(traffic, seed, effort) for traffic in TRAFFIC for seed in effort.seed_numbers()),
        *(
            simulation(traffic, packets, seed, effort)
            for traffic in TRAFFIC
            for packets in GAMMAS
            for seed in effort.seed_numbers()
        ),
        *(
            simulation(traffic, 64, seed, effort, settings)
            for traffic in TRAFFIC
            for settings in VARIED.values()
            for seed in effort.seed_numbers()[:VARIED_SEEDS]
        ),
    ]


def estimates(outcome: Outcome, cross: Outcome, packets: int) -> Estimates:
    """Every estimate after the warm-up, beside what the same cross traffic `cross` brings alone."""

    def traced(quantity: str) -> pl.DataFrame:
        return outcome.series.filter(pl.col("quantity") == quantity)

    time_s, judged = (traced("streams_judged")[column].to_numpy() for column in ("time_s", "value"))
    estimate_bps, rate_bps = (traced(name)["value"].to_numpy() for name in ("estimate_bps", "rate_bps"))
    new = np.flatnonzero(np.diff(judged) > 0) + 1
    new = new[time_s[new] > WARM_UP_S]
    came = cross.series.filter(pl.col("quantity") == "sent_bytes")
    came_s, came_bits = came["time_s"].to_numpy(), 8 * np.cumsum(came["value"].to_numpy())
    end_s = time_s[new] - BACK_S
    average_bps = np.interp(time_s[new] - testbed.RTT_S, time_s, rate_bps)
    lasted_s = packets * testbed.WIRE_BYTES * 8 / average_bps
    cross_bits = np.interp(end_s, came_s, came_bits) - np.interp(end_s - lasted_s, came_s, came_bits)
    return Estimates(estimate_bps[new], testbed.CAPACITY_BPS - cross_bits / lasted_s, average_bps)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Errors of single p-streams and over the adapting timescale."""
    rows: list[Row] = []
    curves: dict[str, pl.DataFrame] = {}
    for traffic in TRAFFIC:
        for packets, gamma in GAMMAS.items():
            found = [
                estimates(
                    outcomes[simulation(traffic, packets, seed, effort)],
                    outcomes[alone(traffic, seed, effort)],
                    packets,
                )
                for seed in effort.seed_numbers()
            ]
            found = [one for one in found if len(one.estimate_bps) >= gamma]
            place = of(traffic, packets)
            rows += single_rows(place, found)
            if packets in (48, 64, 96, 192):
                means = [100.0 * float(np.median(one.averaged(gamma).errors())) for one in found]
                rows.append(measured(replace(place, metric=together(gamma), average="median"), None, means))
            if found:
                every = np.concatenate([one.averaged(gamma).errors() for one in found])
                shares = np.linspace(0.0, 1.0, 201)
                curves[place.setting] = pl.DataFrame({"error": np.quantile(every, shares), "share": shares})
        for name, settings in VARIED.items():
            varied = [
                estimates(
                    outcomes[simulation(traffic, 64, seed, effort, settings)],
                    outcomes[alone(traffic, seed, effort)],
                    64,
                )
                for seed in effort.seed_numbers()[:VARIED_SEEDS]
            ]
            rows += single_rows(replace(of(traffic, 64), variant=name), varied)
    return Evaluation(tuple(rows), curves=curves)


def of(traffic: str, packets: int) -> Key:
    """The small errors of single p-streams of a length, beside a kind of traffic."""
    return Key(f"{traffic}, N = {packets}", SINGLE)


def together(gamma: int) -> Metric:
    """The error of so many p-streams together."""
    return Metric(f"error of {gamma} together", "%")


def single_rows(place: Key, runs: Sequence[Estimates]) -> list[Row]:
    """Errors of single p-streams."""
    found = [one for one in runs if len(one.estimate_bps)]
    bias = [100.0 * float((one.estimate_bps / one.available_bps - 1.0).mean()) for one in found]
    probing = [one.probing() for one in found]
    share = [100.0 * len(some.estimate_bps) / len(one.estimate_bps) for some, one in zip(probing, found, strict=True)]
    return [
        measured(place, None, [percent_small(one) for one in found]),
        measured(replace(place, metric=BIAS), None, bias),
        measured(replace(place, metric=PROBING), None, share),
        measured(
            replace(place, metric=SINGLE_OF_THESE),
            None,
            [percent_small(one) for one in probing if len(one.estimate_bps)],
        ),
    ]


def percent_small(some: Estimates) -> float:
    """How many errors are small."""
    return 100.0 * float((some.errors() < SMALL).mean())


def draw(evaluation: Evaluation) -> Figure:
    """The distributions of the error over the adapting timescale."""
    drawing, panels = plots.figure(len(TRAFFIC), width_inches=plots.PAGE_INCHES)
    for axes, traffic in zip(panels, TRAFFIC, strict=True):
        for packets, gamma in GAMMAS.items():
            curve = evaluation.curves.get(f"{traffic}, N = {packets}")
            if packets > 32 and curve is not None:
                label = f"N = {packets}, γ = {gamma}"
                errors = (100 * curve["error"]).to_list()
                plots.line(axes, label, LOOKS[packets], errors, curve["share"].to_list())
        axes.set_xlim(0, 50)
        axes.set_xlabel(f"error beside {traffic} (%)")
        axes.set_ylabel("share")
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(SINGLE)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
