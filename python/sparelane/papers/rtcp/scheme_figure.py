"""The figure of throughput against delay, and of the distributions of delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, THROUGHPUT, Run
from sparelane.reports import plots
from sparelane.reports.plots import Look

# Of an axis of delays, microseconds.
TICKS_US = (5, 10, 20, 50, 100, 200)


def draw_schemes(panels: Sequence[Axes], evaluation: Evaluation, looks: Mapping[str, tuple[Run, Look]]) -> None:
    """Throughput and delay of each run beside the paper's, and the distributions of delay, by label, in two panels."""
    table, spread = panels
    for label, (run, look) in looks.items():
        rate, delay = (evaluation.find(key) for key in (run.key(THROUGHPUT), run.key(DELAY, MEAN)))
        if delay.value is None or rate.value is None:
            continue
        if delay.paper is not None and rate.paper is not None:
            # A thin line joins ours and the paper's.
            table.plot([delay.value, delay.paper], [rate.value, rate.paper], color=look.ink, linewidth=0.6, zorder=1.5)
            plots.hollow(table, look, [delay.paper], [rate.paper])
        table.plot(delay.value, rate.value, look.marker, color=look.ink, label=label, markersize=6)
    table.set_xscale("log")
    low, high = table.get_xlim()
    table.set_xticks(TICKS_US, list(map(str, TICKS_US)))
    table.minorticks_off()
    table.set_xlim(0.9 * low, 1.1 * high)
    table.margins(y=0.12)
    table.set_xlabel("mean one-way delay (us);\nhollow: the paper")
    table.set_ylabel("mean throughput\nof a flow (Mb/s)")
    plots.legend_above(table, 2)
    draw_delays(spread, evaluation, {label: look for label, (_, look) in looks.items()}, is_wide=True)


def draw_delays(axes: Axes, evaluation: Evaluation, looks: Mapping[str, Look], *, is_wide: bool = False) -> None:
    """The distributions of delay of the evaluation's curves of these names; on a logarithmic axis where it is wide."""
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
