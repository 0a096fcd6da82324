"""RAPID, sections IV-D and IV-E, Fig. 8: errors of bandwidth estimates, by the length of p-streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcome, Outcomes, Row, Simulation, measured
from sparelane.experiments.rapid import testbed

# Packets of a p-stream, and p-streams to an update: 192 packets together, but for the shortest.
GAMMAS: Mapping[int, int] = {32: 6, 48: 4, 64: 3, 96: 2, 192: 1}
RATES = 4
TRAFFIC = ("CBR", "BCT")

LOOKS: Mapping[int, plots.Look] = {
    32: plots.FOURTH,
    48: plots.FIFTH,
    64: plots.RC3,
    96: plots.THIRD,
    192: plots.TCP,
}

# What happens before this does not count, seconds.
WARM_UP_S = 1.0
SAMPLE_S = 100e-6

# Half a round trip, and what a host adds to it on average: a packet is at the bottleneck so long before the estimate.
BACK_S = testbed.RTT_S / 2
SENDERS = tuple(f"left{number}" for number in range(2, 12))

ASSUMPTIONS = (
    *testbed.ASSUMPTIONS,
    "Beside one RAPID transfer goes cross traffic of 2.5 Gb/s, CBR or BCT; the paper does not say which. A p-stream "
    "has four rates, and a fourth of its packets at each.",
    "The available bandwidth is the capacity less what cross traffic brought to the bottleneck while the p-stream "
    "passed it. Estimates are read every 100 us from the controller's trace, and belong to the p-stream whose last "
    "packet passed the bottleneck half a round trip before. The first second does not count.",
    "An error is |estimate - available| over available. For the adapting timescale, the mean of the estimates that "
    "make one update is held against what was available meanwhile.",
)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of one run, and what was available.

    Attributes:
        estimate_bps: by each p-stream.
        available_bps: while it passed the bottleneck.
    """

    estimate_bps: NDArray[np.float64]
    available_bps: NDArray[np.float64]

    def averaged(self, count: int) -> Estimates:
        """Of so many p-streams together."""
        whole = len(self.estimate_bps) // count * count
        groups = (values[:whole].reshape(-1, count).mean(axis=1) for values in (self.estimate_bps, self.available_bps))
        return Estimates(*groups)

    def errors(self) -> NDArray[np.float64]:
        """Relative to what was available."""
        return np.abs(self.estimate_bps - self.available_bps) / self.available_bps


def simulation(traffic: str, packets: int, seed: int, effort: Effort) -> Simulation:
    """One transfer whose p-streams have so many packets."""
    links = ", ".join(f'["{sender}", "west"]' for sender in SENDERS)
    return testbed.simulation(
        "rapid",
        seed,
        effort.stop_s,
        label=f"{traffic} N = {packets}",
        cross_traffic=traffic,
        settings=(
            f"scheme.rapid.packets_per_rate={packets // RATES}",
            f"scheme.rapid.gamma={GAMMAS[packets]}",
            f'sample={{interval="{SAMPLE_S * 1e6:g}us", flows=[0], links=[{links}]}}',
        ),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every length beside every kind of traffic."""
    return [
        simulation(traffic, packets, seed, effort)
        for traffic in TRAFFIC
        for packets in GAMMAS
        for seed in effort.seed_numbers()
    ]


def estimates(outcome: Outcome, packets: int) -> Estimates:
    """Every estimate after the warm-up."""
    series = outcome.series
    trace = series.filter(pl.col("probe") == "flow 0")

    def traced(quantity: str) -> pl.DataFrame:
        return trace.filter(pl.col("quantity") == quantity)

    time_s, judged = (traced("streams_judged")[column].to_numpy() for column in ("time_s", "value"))
    estimate_bps, rate_bps = (traced(name)["value"].to_numpy() for name in ("estimate_bps", "rate_bps"))
    new = np.flatnonzero(np.diff(judged) > 0) + 1
    new = new[time_s[new] > WARM_UP_S]
    came = (
        series.filter(pl.col("quantity") == "sent_bytes")
        .group_by("time_s", maintain_order=True)
        .agg(pl.col("value").sum())
    )
    came_s, came_bits = came["time_s"].to_numpy(), 8 * np.cumsum(came["value"].to_numpy())
    end_s = time_s[new] - BACK_S
    lasted_s = packets * testbed.WIRE_BYTES * 8 / np.interp(time_s[new] - testbed.RTT_S, time_s, rate_bps)
    cross_bits = np.interp(end_s, came_s, came_bits) - np.interp(end_s - lasted_s, came_s, came_bits)
    return Estimates(estimate_bps[new], testbed.CAPACITY_BPS - cross_bits / lasted_s)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Errors of single p-streams and over the adapting timescale."""
    rows: list[Row] = []
    curves: dict[str, pl.DataFrame] = {}
    for traffic in TRAFFIC:
        for packets, gamma in GAMMAS.items():
            found = [
                estimates(outcomes[simulation(traffic, packets, seed, effort)], packets)
                for seed in effort.seed_numbers()
            ]
            found = [one for one in found if len(one.estimate_bps) >= gamma]
            row = f"{traffic}, N = {packets}"
            errors = [one.errors() for one in found]
            below = [100.0 * float((error < 0.1).mean()) for error in errors]
            rows.append(measured(row, "p-streams with errors below 10 %", "%", 80.0 if packets == 64 else None, below))
            bias = [100.0 * float((one.estimate_bps / one.available_bps - 1.0).mean()) for one in found]
            rows.append(measured(row, "mean of estimate less available", "%", None, bias))
            if packets in (48, 64, 96, 192):
                means = [100.0 * float(np.median(one.averaged(gamma).errors())) for one in found]
                printed = {64: 5.0, 192: 15.0}.get(packets)
                rows.append(measured(row, f"median error of {gamma} together", "%", printed, means))
            if errors:
                every = np.concatenate([one.averaged(gamma).errors() for one in found])
                shares = np.linspace(0.0, 1.0, 201)
                curves[row] = pl.DataFrame({"error": np.quantile(every, shares), "share": shares})
    return Evaluation(tuple(rows), curves=curves)


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
        axes.set_xlim(0, 60)
        axes.set_xlabel(f"error beside {traffic} (%)")
        axes.set_ylabel("share")
        plots.legend_above(axes, 2)
    return drawing


EXPERIMENT = Experiment(
    id="rapid/fig8-timescales",
    title="Errors of estimates, by the length of p-streams",
    source="RAPID (INFOCOM 2017), sections IV-D and IV-E, Fig. 8",
    method="P-streams of 48, 64, 96 and 192 packets, and updates of the rate by the mean of 4, 3, 2 and 1 of them; the "
    "error relative to the available bandwidth, over a path of 10 Gb/s. Single p-streams of 32 to 96 packets.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=3, stop_s=3.0),
    quick=Effort("quick", seeds=1, stop_s=1.5),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
)
