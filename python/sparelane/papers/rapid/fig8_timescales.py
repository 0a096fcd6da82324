"""RAPID, sections IV-D and IV-E, Fig. 8: errors of bandwidth estimates for several lengths of p-streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparelane import rapid
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.reports import plots

# The number of packets of a p-stream, with the number of p-streams per update: 192 packets in total, except for 32.
GAMMAS: Mapping[int, int] = {32: 6, 48: 4, 64: 3, 96: 2, 192: 1}
RATES = 4
TRAFFIC = ("CBR", "BCT")
# The lengths with a row and a curve of the error of updates; the paper's p-streams have 64 packets.
LOOKS: Mapping[int, plots.Look] = {48: plots.FIFTH, 64: plots.RC3, 96: plots.THIRD, 192: plots.TCP}
USUAL = 64

# The beginning of a run that does not count, and the sampling interval, in seconds.
WARM_UP_S = 1.0
SAMPLE = "100us"
# The number of seeds of variants.
VARIED_SEEDS = 3

# Errors below this are small.
SMALL = 0.1
SINGLE = Metric("errors below 10 %", "%")
BIAS = Metric("estimate less available, on average", "%")
PROBING = Metric("p-streams that probe it", "%")
SINGLE_OF_THESE = Metric("errors below 10 %, of these", "%")


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of one run and the available bandwidth, all in bits per second, one per p-stream.

    Attributes:
        estimate_bps: the estimate of the p-stream.
        available_bps: the available bandwidth while the p-stream passed the bottleneck.
        average_bps: the average rate of the p-stream.
    """

    estimate_bps: NDArray[np.float64]
    available_bps: NDArray[np.float64]
    average_bps: NDArray[np.float64]

    def averaged(self, count: int) -> Estimates:
        """Returns the means of every `count` p-streams."""
        whole = len(self.estimate_bps) // count * count
        columns = (self.estimate_bps, self.available_bps, self.average_bps)
        return Estimates(*(values[:whole].reshape(-1, count).mean(axis=1) for values in columns))

    def probing(self) -> Estimates:
        """Returns the p-streams that have a rate below the available bandwidth and one above."""
        rates = rapid.p_stream(1e9).rate_bps / 1e9
        share = self.available_bps / self.average_bps
        these = (share >= rates.min()) & (share <= rates.max())
        return Estimates(self.estimate_bps[these], self.available_bps[these], self.average_bps[these])

    def errors(self) -> NDArray[np.float64]:
        """Returns |estimate - available| / available."""
        return np.abs(self.estimate_bps - self.available_bps) / self.available_bps

    def percent_small(self) -> float:
        """Returns the percentage of small errors."""
        return 100.0 * float((self.errors() < SMALL).mean())

    def percent_bias(self) -> float:
        """Returns the mean of the estimates relative to the available bandwidth, minus 100 %."""
        return 100.0 * float((self.estimate_bps / self.available_bps - 1.0).mean())


@dataclass(frozen=True, slots=True)
class Timescales:
    """The experiment; `variants` are the settings that the paper leaves open, each with its overrides."""

    variants: Mapping[str, tuple[str, ...]]

    def cells(self, effort: Effort) -> Iterator[Cell]:
        """Yields the cross traffic alone, every length of p-streams, and the variants, for each kind of traffic."""
        yield from (alone(traffic, effort) for traffic in TRAFFIC)
        yield from (probing(traffic, packets, effort) for traffic in TRAFFIC for packets in GAMMAS)
        yield from (cell for traffic in TRAFFIC for cell in self.varied(traffic, effort))

    def varied(self, traffic: str, effort: Effort) -> Iterator[Cell]:
        """Yields the variants with a kind of traffic."""
        usual = probing(traffic, USUAL, effort)
        for variant, overrides in self.variants.items():
            settings = (*usual.settings, *overrides)
            yield replace(usual, settings=settings, variant=variant, most_seeds=VARIED_SEEDS)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns errors of single p-streams and of updates, and the distributions of the latter."""
        rows: list[Row] = []
        curves: dict[str, pl.DataFrame] = {}
        for traffic in TRAFFIC:
            for packets, gamma in GAMMAS.items():
                cell = probing(traffic, packets, runs.effort)
                found = [one for one in all_estimates(runs, cell, traffic, packets) if len(one.estimate_bps) >= gamma]
                rows += single_rows(cell, found)
                errors = [one.averaged(gamma).errors() for one in found]
                if packets in LOOKS:
                    medians = [100.0 * float(np.median(one)) for one in errors]
                    metric = Metric(f"error of {gamma} together", "%")
                    rows.append(measured(cell.key(metric, "median"), None, medians))
                if errors:
                    shares = np.linspace(0.0, 1.0, 201)
                    error = np.quantile(np.concatenate(errors), shares)
                    curves[cell.setting] = pl.DataFrame({"error": error, "share": shares})
            for cell in self.varied(traffic, runs.effort):
                rows += single_rows(cell, all_estimates(runs, cell, traffic, USUAL))
        return Evaluation(tuple(rows), curves=curves)


def probing(traffic: str, packets: int, effort: Effort) -> Cell:
    """Returns a transfer whose p-streams have this number of packets."""
    return Cell(
        testbed.SCENARIO,
        (
            *testbed.transfer("rapid", effort.stop_s, traffic),
            f"scheme.rapid.packets_per_rate={packets // RATES}",
            f"scheme.rapid.gamma={GAMMAS[packets]}",
            testbed.QUICK_START,
            f'sample={{interval="{SAMPLE}", flows=[0]}}',
        ),
        cost=effort.stop_s,
        setting=f"{traffic}, N = {packets}",
    )


def alone(traffic: str, effort: Effort) -> Cell:
    """Returns the same cross traffic without a transfer. It does not respond to a transfer."""
    sample = f'sample={{interval="{SAMPLE}", links=[["west", "east"]]}}'
    return replace(testbed.cross_traffic_alone(traffic, "rapid", effort.stop_s, sample), label=f"{traffic} alone")


def all_estimates(runs: Runs, cell: Cell, traffic: str, packets: int) -> list[Estimates]:
    """Returns the estimates of a cell, one table for each seed."""
    cross = replace(alone(traffic, runs.effort), most_seeds=cell.most_seeds)
    return [estimates(outcome, other, packets) for outcome, other in runs.together(cell, cross)]


def estimates(outcome: Outcome, cross: Outcome, packets: int) -> Estimates:
    """Returns all estimates after the warm-up.

    Args:
        outcome: the run of the transfer, with the controller's trace.
        cross: the run of the same cross traffic alone.
        packets: the number of packets of a p-stream.
    """

    def traced(quantity: str) -> pl.DataFrame:
        return outcome.series.filter(pl.col("quantity") == quantity)

    time_s, judged = (traced("streams_judged")[column].to_numpy() for column in ("time_s", "value"))
    estimate_bps, rate_bps = (traced(name)["value"].to_numpy() for name in ("estimate_bps", "rate_bps"))
    new = np.flatnonzero(np.diff(judged) > 0) + 1
    new = new[time_s[new] > WARM_UP_S]
    came = cross.series.filter(pl.col("quantity") == "sent_bytes")
    came_s, came_bits = came["time_s"].to_numpy(), 8 * np.cumsum(came["value"].to_numpy())
    # The last packet of the p-stream passed the bottleneck half a round trip before its acknowledgment came back.
    end_s = time_s[new] - testbed.RTT_S / 2
    average_bps = np.interp(time_s[new] - testbed.RTT_S, time_s, rate_bps)
    lasted_s = packets * testbed.WIRE_BYTES * 8 / average_bps
    cross_bits = np.interp(end_s, came_s, came_bits) - np.interp(end_s - lasted_s, came_s, came_bits)
    return Estimates(estimate_bps[new], testbed.CAPACITY_BPS - cross_bits / lasted_s, average_bps)


def single_rows(cell: Cell, runs: Sequence[Estimates]) -> Iterator[Row]:
    """Yields the rows of single p-streams. "These" are the p-streams that probe the available bandwidth."""
    found = [one for one in runs if len(one.estimate_bps)]
    these = [one.probing() for one in found]
    share = [100.0 * len(some.estimate_bps) / len(one.estimate_bps) for some, one in zip(these, found, strict=True)]
    yield measured(cell.key(SINGLE), None, [one.percent_small() for one in found])
    yield measured(cell.key(BIAS), None, [one.percent_bias() for one in found])
    yield measured(cell.key(PROBING), None, share)
    yield measured(cell.key(SINGLE_OF_THESE), None, [one.percent_small() for one in these if len(one.estimate_bps)])


def draw(evaluation: Evaluation) -> Figure:
    """Returns the distributions of the error of updates."""
    drawing, panels = plots.figure(len(TRAFFIC), width_inches=plots.PAGE_INCHES)
    for axes, traffic in zip(panels, TRAFFIC, strict=True):
        for packets, look in LOOKS.items():
            curve = evaluation.curves.get(f"{traffic}, N = {packets}")
            if curve is not None:
                label = f"N = {packets}, γ = {GAMMAS[packets]}"
                plots.line(axes, label, look, (100 * curve["error"]).to_list(), curve["share"].to_list())
        axes.set_xlim(0, 50)
        axes.set_xlabel(f"error beside {traffic} (%)")
        axes.set_ylabel("share")
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(SINGLE)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    variants = declared.rest.section("variants")
    study = Timescales({name: variants.texts(name) for name in variants})
    declared.rest.finish()
    return declared.study(study.cells, study.evaluate, draw)
