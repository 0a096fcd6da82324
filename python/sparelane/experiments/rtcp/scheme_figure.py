"""The figure of throughput against delay, and of the distributions of delay."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from sparelane.experiments import plots
from sparelane.experiments.base import Evaluation
from sparelane.experiments.rtcp.datacentre import LOOKS


def draw_schemes(panels: Sequence[Axes], evaluation: Evaluation, schemes: Sequence[str]) -> None:
    """Throughput and delay of each scheme beside the paper's, and the distributions of delay, in two panels."""
    table, spread = panels
    for scheme in schemes:
        rate, delay = (evaluation.find(scheme, metric) for metric in ("throughput", "mean delay"))
        if delay.ours is not None and rate.ours is not None:
            table.plot(delay.ours, rate.ours, LOOKS[scheme].marker, color=LOOKS[scheme].ink, label=scheme, markersize=7)
        if delay.paper is not None and rate.paper is not None:
            table.plot(delay.paper, rate.paper, **plots.PAPER_STYLE)
            table.annotate(scheme, (delay.paper, rate.paper), (4, 4), textcoords="offset points", fontsize=6)
    # Room for the names beside the crosses.
    table.set_xlim(0, 1.2 * table.get_xlim()[1])
    table.set_ylim(0, 1.1 * table.get_ylim()[1])
    table.set_xlabel("mean one-way delay (us);\ncrosses: the paper")
    table.set_ylabel("mean throughput\nof a flow (Mb/s)")
    plots.legend_above(table, 2)
    draw_delays(spread, evaluation, schemes)


def draw_delays(axes: Axes, evaluation: Evaluation, curves: Sequence[str]) -> None:
    """The distributions of delay of the evaluation's curves of these names."""
    for name in curves:
        curve = evaluation.curves[name]
        plots.line(axes, name, LOOKS[name.partition(",")[0]], curve["delay_us"].to_list(), curve["share"].to_list())
    axes.set_xlim(left=0)
    axes.set_xlabel("one-way delay (us)")
    axes.set_ylabel("share of packets")
    plots.legend_above(axes, 2)
