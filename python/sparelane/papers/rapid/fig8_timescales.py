"""RAPID, sections IV-D and IV-E, Fig. 8: errors of bandwidth estimates, by the length of p-streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparelane import rapid
from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, at_most, ours, over_largest, ratio
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

ASSUMPTIONS = (
    *testbed.ASSUMPTIONS,
    "Beside one RAPID transfer goes cross traffic of 2.5 Gb/s, CBR or BCT; the paper does not say which. A p-stream "
    "has four rates, and a fourth of its packets at each.",
    "The available bandwidth is the capacity less what cross traffic brought to the bottleneck while the p-stream "
    "passed it, by a run of the same cross traffic alone. Estimates are read every 100 us from the controller's trace, "
    "and belong to the p-stream whose last packet passed the bottleneck half a round trip before. The first second "
    "does not count.",
    "An error is |estimate - available| over available. Rows say how many p-streams probe the available bandwidth, "
    "with a rate below it and one above, and how many errors of theirs are small. Two rates are 15 % apart, and the "
    "estimate is the lower one: 7 % too low on average, were everything else exact.",
    "For the adapting timescale, the mean of the estimates that make one update is held against what was available "
    "meanwhile.",
)


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
            rows += single_rows(place, found, 80.0 if packets == 64 else None)
            if packets in (48, 64, 96, 192):
                means = [100.0 * float(np.median(one.averaged(gamma).errors())) for one in found]
                printed = {64: 5.0, 192: 15.0}.get(packets)
                rows.append(measured(replace(place, metric=together(gamma), average="median"), printed, means))
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
            rows += single_rows(replace(of(traffic, 64), variant=name), varied, None)
    return Evaluation(tuple(rows), curves=curves)


def of(traffic: str, packets: int) -> Key:
    """The small errors of single p-streams of a length, beside a kind of traffic."""
    return Key(f"{traffic}, N = {packets}", SINGLE)


def together(gamma: int) -> Metric:
    """The error of so many p-streams together."""
    return Metric(f"error of {gamma} together", "%")


def single_rows(place: Key, runs: Sequence[Estimates], printed: float | None) -> list[Row]:
    """Errors of single p-streams."""
    found = [one for one in runs if len(one.estimate_bps)]
    bias = [100.0 * float((one.estimate_bps / one.available_bps - 1.0).mean()) for one in found]
    probing = [one.probing() for one in found]
    share = [100.0 * len(some.estimate_bps) / len(one.estimate_bps) for some, one in zip(probing, found, strict=True)]
    return [
        measured(place, printed, [percent_small(one) for one in found]),
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


NOISE = (
    "a rate lasts some 150 us, and interrupts come 50 us apart: without the noise of hosts more than 80 % of the "
    "errors are small (row); the paper does not say what noise its hosts had"
)
BURSTS = (
    "not explained: the available bandwidth itself changes within a p-stream, and without the noise of hosts hardly "
    "more errors are small (row); the paper does not say which cross traffic it used"
)
LONGER_IS_BETTER = "not explained: here longer p-streams have smaller errors"


def _together(traffic: str, packets: int) -> Key:
    return replace(of(traffic, packets), metric=together(GAMMAS[packets]), average="median")


CLAIMS = tuple(
    claim
    for traffic in TRAFFIC
    for claim in (
        Claim(
            f"P-streams of 64 packets have errors below 10 % in more than 80 % (section IV-D): beside {traffic}",
            ours(of(traffic, 64)),
            full=at_least(80.0),
            reason=NOISE if traffic == "CBR" else BURSTS,
        ),
        Claim(
            f"64 packets have the best accuracy of 32, 48, 64 and 96 (section IV-D): beside {traffic}, over the best "
            "other's",
            over_largest(of(traffic, 64), [of(traffic, packets) for packets in (32, 48, 96)]),
            full=at_least(1.0),
            reason=LONGER_IS_BETTER,
        ),
        Claim(
            f"Three p-streams of 64 packets have a third of the error of one of 192, 5 for 15 % (section IV-E, Fig. 8; "
            f"taken as half): beside {traffic}",
            ratio(_together(traffic, 64), _together(traffic, 192)),
            full=at_most(0.5),
            reason=LONGER_IS_BETTER,
        ),
        Claim(
            f"Shorter p-streams than 64 packets do not reduce the error (section IV-E): 48 over 64 beside {traffic}",
            ratio(_together(traffic, 48), _together(traffic, 64)),
            full=at_least(1.0),
            reason="not explained; the difference is within the interval of the seeds",
        ),
    )
)

EXPERIMENT = Experiment(
    id="rapid/fig8-timescales",
    title="Errors of estimates, by the length of p-streams",
    source="RAPID (INFOCOM 2017), sections IV-D and IV-E, Fig. 8",
    method="P-streams of 48, 64, 96 and 192 packets, and updates of the rate by the mean of 4, 3, 2 and 1 of them; the "
    "error relative to the available bandwidth, over a path of 10 Gb/s. Single p-streams of 32 to 96 packets.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=2.0),
    quick=Effort("quick", seeds=1, stop_s=1.5),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    fitted=testbed.FITTED,
    claims=CLAIMS,
    reasons={
        of("CBR", 64): NOISE,
        of("BCT", 64): BURSTS,
    },
)
