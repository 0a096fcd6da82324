"""The figure of a table of completion times: one panel over flows, one over bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Evaluation
from sparelane.experiments.rc3.internet2 import AVERAGES

SCHEMES = (("TCP", "TCP FCT", plots.TCP), ("RC3", "RC3 FCT", plots.RC3))


def draw_completion(
    evaluation: Evaluation,
    settings: Sequence[str],
    axis: str,
    *,
    rules: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
) -> Figure:
    """Mean completion times by setting, with the reduction over each pair of bars.

    Args:
        evaluation: has a row for each setting and average.
        settings: as the rows call them.
        axis: what the settings are.
        rules: by setting, what the rows' names say of the rule of averaging, where it is not the first.
        labels: of the settings, where they are not their names.
    """
    drawing, panels = plots.figure(len(AVERAGES), width_inches=plots.PAGE_INCHES)
    suffixes = {setting: (rules or {}).get(setting, "") for setting in settings}
    places = labels or [
        setting.replace("/s ", "/s\n") + suffix.replace(", ", "\n") for setting, suffix in suffixes.items()
    ]
    for axes, average in zip(panels, AVERAGES, strict=True):
        names = [f"{setting} {average}{suffix}" for setting, suffix in suffixes.items()]
        bars = [
            plots.Bars.of_rows(label, look, [evaluation.find(name, metric) for name in names])
            for label, metric, look in SCHEMES
        ]
        plots.grouped_bars(axes, places, bars)
        cuts = [evaluation.find(name, "reduction").ours for name in names]
        plots.reductions_above(axes, cuts, bars)
        axes.set_xlabel(axis)
        axes.set_ylabel(f"mean completion time\n{average} (s)")
        plots.legend_above(axes, 3)
    return drawing
