"""The figure of throughput against delay, and of the distributions of delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from sparelane.experiments import plots
from sparelane.experiments.base import Evaluation
from sparelane.experiments.plots import Look
from sparelane.experiments.rtcp.datacentre import LOOKS


def looks_of(names: Sequence[str]) -> Mapping[str, Look]:
    """How schemes, or their rows "scheme, class", look."""
    return {name: LOOKS[name.partition(",")[0]] for name in names}


def draw_schemes(panels: Sequence[Axes], evaluation: Evaluation, looks: Mapping[str, Look]) -> None:
    """Throughput and delay of each row beside the paper's, and the distributions of delay, in two panels."""
    table, spread = panels
    for name, look in looks.items():
        rate, delay = (evaluation.find(name, metric) for metric in ("throughput", "mean delay"))
        if delay.ours is None or rate.ours is None:
            continue
        if delay.paper is not None and rate.paper is not None:
            # A thin line says whose number a cross is.
            table.plot([delay.ours, delay.paper], [rate.ours, rate.paper], color=look.ink, linewidth=0.6)
            table.plot(delay.paper, rate.paper, **plots.PAPER_STYLE)
        table.plot(delay.ours, rate.ours, look.marker, color=look.ink, label=name, markersize=5)
    table.set_xlim(0, 1.05 * table.get_xlim()[1])
    table.set_ylim(0, 1.05 * table.get_ylim()[1])
    table.set_xlabel("mean one-way delay (us);\ncrosses: the paper")
    table.set_ylabel("mean throughput\nof a flow (Mb/s)")
    plots.legend_above(table, 2)
    draw_delays(spread, evaluation, looks)


def draw_delays(axes: Axes, evaluation: Evaluation, looks: Mapping[str, Look]) -> None:
    """The distributions of delay of the evaluation's curves of these names."""
    for name, look in looks.items():
        curve = evaluation.curves[name]
        plots.line(axes, name, look, curve["delay_us"].to_list(), curve["share"].to_list())
    axes.set_xlim(left=0)
    axes.set_xlabel("one-way delay (us)")
    axes.set_ylabel("share of packets")
    plots.legend_above(axes, 2)
