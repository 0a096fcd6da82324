"""Experiments that compare schemes, or settings of RTCP, in the simulated datacentre: Tables I and II, Figs. 8, 11, 12.

A file of this kind lists the runs, RTCP's numbers to be put in relation to other schemes', and variants of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Key, Metric, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, MIXES, TAIL, THROUGHPUT, Run
from sparelane.reports import plots
from sparelane.reports.plots import Look

BEYOND = Metric("packets beyond 0.1 ms", "%")
# The looks of RTCP's settings in the order of the file.
PALETTE = (plots.TCP, plots.THIRD, plots.RC3, plots.MODEL, plots.FIFTH)
# The end of the windows over time that is shown: RTCP's window changes many times in a millisecond.
SHOWN_MS = 1.5
# The ticks of an axis of delays.
TICKS_US = (5, 10, 20, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Schemes:
    """An experiment of this kind.

    Attributes:
        base: the compared runs by their labels in figures.
        looks: the look of each of them.
        ratios: RTCP's numbers in percent of another scheme's: the other scheme, the metric and the average.
        others: null runs and variants.
        beyond: schemes with a row of the packets whose delay is above 0.1 ms.
        windows: schemes whose congestion windows are drawn over time.
        has_throughput: draws throughput against delay, next to the distributions of delay.
    """

    base: Mapping[str, Run]
    looks: Mapping[str, Look]
    ratios: Sequence[tuple[str, Metric, str]]
    others: Sequence[Run]
    beyond: Sequence[str]
    windows: Sequence[str]
    has_throughput: bool

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields all runs."""
        return (run.cell(effort) for run in (*self.base.values(), *self.others))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns throughput and delay of all runs, RTCP's ratios, and the distributions of delay."""
        rows = [row for run in self.base.values() for row in datacentre.scheme_rows(runs, run)]
        for other, metric, average in self.ratios:
            rows.append(datacentre.ratio_to(runs, self.base["RTCP"], self.base[other], metric, average))
        found = {label: runs.of(run.cell(runs.effort)) for label, run in self.base.items()}
        for scheme in self.beyond:
            shares = datacentre.known(datacentre.share_beyond(outcome, 100.0) for outcome in found[scheme])
            rows.append(measured(self.base[scheme].key(BEYOND), None, shares))
        rows += [row for run in self.others for row in datacentre.scheme_rows(runs, run)]
        curves = {label: datacentre.distribution(outcomes) for label, outcomes in found.items()}
        for scheme in self.windows:
            samples = found[scheme][0].series.filter(
                (pl.col("probe") == "flow 0") & (pl.col("quantity") == "cwnd_bytes")
            )
            curves[f"{scheme}, window"] = samples.select(
                (pl.col("time_s") * 1e3).alias("time_ms"),
                (pl.col("value") / datacentre.MSS_BYTES).alias("cwnd_segments"),
            )
        return Evaluation(tuple(rows), curves=curves)

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the distributions of delay, and throughput against delay and windows if they are declared."""
        count = 1 + self.has_throughput + bool(self.windows)
        drawing, panels = plots.figure(count, width_inches=plots.PAGE_INCHES) if count > 1 else plots.figure()
        if self.has_throughput:
            self._draw_throughput(panels[0], evaluation)
        _draw_delays(panels[self.has_throughput], evaluation, self.looks, is_wide=self.has_throughput)
        if self.windows:
            self._draw_windows(panels[2], evaluation)
        return drawing

    def _draw_throughput(self, axes: Axes, evaluation: Evaluation) -> None:
        """Draws throughput against mean delay; a thin line joins our point with the paper's."""
        for label, run in self.base.items():
            look = self.looks[label]
            rate, delay = (evaluation.find(key) for key in (run.key(THROUGHPUT), run.key(DELAY, MEAN)))
            if delay.value is None or rate.value is None:
                continue
            if delay.paper is not None and rate.paper is not None:
                ends = [delay.value, delay.paper], [rate.value, rate.paper]
                axes.plot(*ends, color=look.ink, linewidth=0.6, zorder=1.5)
                plots.hollow(axes, look, [delay.paper], [rate.paper])
            axes.plot(delay.value, rate.value, look.marker, color=look.ink, label=label, markersize=6)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xticks(TICKS_US, list(map(str, TICKS_US)))
        axes.minorticks_off()
        axes.set_xlim(0.9 * low, 1.1 * high)
        axes.margins(y=0.12)
        axes.set_xlabel("mean one-way delay (us);\nhollow: the paper")
        axes.set_ylabel("mean throughput\nof a flow (Mb/s)")
        plots.legend_above(axes, 2)

    def _draw_windows(self, axes: Axes, evaluation: Evaluation) -> None:
        for scheme in self.windows:
            curve = evaluation.curves[f"{scheme}, window"]
            last_ms = float(curve["time_ms"].max() or 0.0)  # type: ignore[arg-type]
            curve = curve.filter(pl.col("time_ms") > last_ms - SHOWN_MS)
            plots.line(axes, scheme, self.looks[scheme], curve["time_ms"].to_list(), curve["cwnd_segments"].to_list())
        axes.set_yscale("log")
        axes.set_xlabel(f"time (ms), the last {SHOWN_MS:g}")
        axes.set_ylabel("window of one\nflow (segments)")
        plots.legend_above(axes, 2)


def _draw_delays(axes: Axes, evaluation: Evaluation, looks: Mapping[str, Look], *, is_wide: bool = False) -> None:
    """Draws the evaluation's distributions of delay with these names; a wide range gets a logarithmic axis."""
    for name, look in looks.items():
        curve = evaluation.curves[name]
        plots.line(axes, name, look, curve["delay_us"].to_list(), curve["share"].to_list())
    if is_wide:
        axes.set_xscale("log")
        axes.set_xticks(TICKS_US, list(map(str, TICKS_US)))
        axes.minorticks_off()
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel("one-way delay (us)")
    axes.set_ylabel("share of packets")
    plots.legend_above(axes, 2)


def _farthest(metric: str, average: str) -> Value:
    """The largest difference from a printed number among the rows of a metric, in percent of the printed number."""

    def largest(evaluation: Evaluation) -> float:
        rows = [row for row in evaluation.rows if (row.key.metric.name, row.key.average) == (metric, average)]
        return max(100 * abs(evaluation.ours(row.key) / row.paper - 1) for row in rows if row.counts and row.paper)

    return largest


def _tail_of(setting: str, scheme: str, others: Sequence[str]) -> Value:
    """A scheme's 99th percentile over its mean delay, as a multiple of the largest of the others'."""

    def weight(evaluation: Evaluation, scheme: str) -> float:
        tail, mean = (evaluation.ours(Key(setting, DELAY, scheme, average)) for average in (TAIL, MEAN))
        return tail / mean

    return lambda evaluation: weight(evaluation, scheme) / max(weight(evaluation, other) for other in others)


METRICS = {**datacentre.METRICS, **named(BEYOND)}
VALUES: Mapping[str, Callable[..., Value]] = {
    "farthest": _farthest,
    "tail": _tail_of,
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    base, null = compared_runs(rest)
    variants = [
        run.varied(variant, *settings, lengths=lengths[0] if lengths else 1)
        for scheme, variant, settings, *lengths in rest.lists("variants", ())
        for run in base
        if scheme in ("", run.scheme)
    ]
    are_schemes = len({run.scheme for run in base}) > 1
    labels = [run.scheme if are_schemes else run.setting for run in base]
    looks = [datacentre.LOOKS[run.scheme] for run in base] if are_schemes else PALETTE
    ratios = [
        (other, metric, average)
        for part in rest.sections("ratios")
        for metric, average in [(part.one_of("metric", named(THROUGHPUT, DELAY)), part.text("average", ""))]
        for other in part.texts("of")
    ]
    study = Schemes(
        base=dict(zip(labels, base, strict=True)),
        looks=dict(zip(labels, looks, strict=True)),
        ratios=ratios,
        others=[*null, *variants],
        beyond=rest.texts("beyond"),
        windows=rest.texts("windows"),
        has_throughput=rest.flag("throughput"),
    )
    rest.finish()
    return declared.study(study.cells, study.evaluate, study.draw)


def compared_runs(rest: Section) -> tuple[list[Run], list[Run]]:
    """Returns the runs that a file lists, and the null runs of RTCP's.

    Raises:
        DeclarationError: a key is wrong.
    """
    base: list[Run] = []
    null: list[Run] = []
    for part in templates(rest, "runs"):
        setting, settings, mix = part.text("setting"), part.texts("settings"), part.one_of("mix", MIXES, "")
        found = [Run(scheme, settings, setting, mix=mix) for scheme in part.texts("scheme")]
        base += found
        if part.flag("null"):
            null += [one for run in found if run.scheme == "RTCP" for one in datacentre.null_runs(run)]
        part.finish()
    return base, null
