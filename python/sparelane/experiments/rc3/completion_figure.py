"""The figure of a table of completion times: one panel over flows, one over bytes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Evaluation
from sparelane.experiments.rc3.internet2 import AVERAGES

SCHEMES = (("TCP", "TCP FCT", plots.TCP), ("RC3", "RC3 FCT", plots.RC3))


def draw_completion(evaluation: Evaluation, settings: Sequence[str], axis: str, rule: str) -> Figure:
    """Mean completion times by setting, with the reduction over each pair of bars.

    `rule` is what the rows' names say of the rule of averaging: the figure shows one rule.
    """
    drawing, panels = plots.figure(len(AVERAGES), width_inches=plots.PAGE_INCHES)
    places = [setting.replace("/s ", "/s\n") for setting in settings]
    for axes, average in zip(panels, AVERAGES, strict=True):
        bars = [
            plots.Bars.of_rows(
                label, look, [evaluation.find(f"{setting} {average}{rule}", metric) for setting in settings]
            )
            for label, metric, look in SCHEMES
        ]
        plots.grouped_bars(axes, places, bars)
        for place, setting in enumerate(settings):
            cut = evaluation.find(f"{setting} {average}{rule}", "reduction").ours
            if cut is not None:
                top = max(series.top(place) for series in bars)
                axes.annotate(f"−{cut:.0f} %", (place, top), (0, 5), textcoords="offset points", ha="center")
        axes.set_ylim(top=1.15 * axes.get_ylim()[1])
        axes.set_xlabel(f"{axis}{rule}")
        axes.set_ylabel(f"mean completion time\n{average} (s)")
        plots.legend_above(axes, 3)
    return drawing
