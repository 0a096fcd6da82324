"""Draws the differences between Linux's controllers and ours, and their data in flight over time."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.linux.paths import CHANGING_CONTROLLERS, CHANGING_PATHS, IDLE_PATHS, KEPT
from sparelane.papers.linux.rows import FCT, fct
from sparelane.reports import plots
from sparelane.uml.parameters import CONTROLLERS

# The controllers whose flows the figure shows over time.
SHOWN = ("bbr", "westwood", "cdg", "vegas", "cubic")
# The controllers of the figure of bursts, and the number of the last burst.
CONTROLLERS_SHOWN = tuple(CONTROLLERS)
LAST = 2
LOOKS = {"linux": ("Linux", plots.TCP), "simulator": ("ours", plots.RC3)}


def draw(evaluation: Evaluation) -> Figure:
    """Draws the differences of completion times and, if sampled, the data in flight on one path."""
    has_series = "series" in evaluation.curves
    drawing, panels = plots.figure(3 if has_series else 1, width_inches=plots.PAGE_INCHES, rows=2 if has_series else 1)
    _differences(panels[0], evaluation)
    for panel, controller in zip(panels[1:], SHOWN, strict=False):
        _over_time(panel, evaluation, controller)
    return drawing


def draw_bursts(evaluation: Evaluation) -> Figure:
    """Draws the completion times of the third burst, with windows that restart and windows that are kept."""
    known = {row.key: row for row in evaluation.rows}
    paths = [path for path in IDLE_PATHS if fct(path, CONTROLLERS_SHOWN[0], LAST) in known]
    drawing, panels = plots.figure(len(paths), width_inches=plots.PAGE_INCHES)
    # A line for each controller.
    drawing.set_figheight(1.5 * plots.HEIGHT_INCHES)
    for panel, path in zip(panels, paths, strict=True):
        for variant, ink in (("", plots.TCP.ink), (KEPT, plots.RC3.ink)):
            keys = [replace(fct(path, controller, LAST), variant=variant) for controller in CONTROLLERS_SHOWN]
            found = [(number, known[key]) for number, key in enumerate(keys) if key in known]
            for side, mark in (("Linux", "o"), ("ours", "x")):
                points = [(row.paper if side == "Linux" else row.value, number) for number, row in found]
                drawn = [(value, number) for value, number in points if value is not None]
                label = f"{side}, {variant or 'restart after idleness'}"
                panel.plot(*zip(*drawn, strict=True), mark, markersize=3.5, fillstyle="none", color=ink, label=label)
        panel.set_yticks(range(len(CONTROLLERS_SHOWN)), CONTROLLERS_SHOWN, fontsize=6)
        panel.set_xlabel(f"third burst (s)\n{path.name}")
        panel.set_xlim(left=0)
        plots.legend_above(panel, 2)
    return drawing


def draw_changes(evaluation: Evaluation) -> Figure:
    """Draws the queue of each controller over time, with a row for each change."""
    table = evaluation.curves["series"]
    paths = [path for path in CHANGING_PATHS if table.filter(path=path.name).height]
    drawing, panels = plots.figure(len(CHANGING_CONTROLLERS), width_inches=plots.PAGE_INCHES, rows=len(paths))
    drawing.set_figheight(0.6 * plots.HEIGHT_INCHES * len(paths))
    for number, panel in enumerate(panels):
        path = paths[number // len(CHANGING_CONTROLLERS)]
        controller = CHANGING_CONTROLLERS[number % len(CHANGING_CONTROLLERS)]
        for side, (label, look) in LOOKS.items():
            chosen = table.filter(path=path.name, controller=controller, side=side)
            panel.plot(chosen["time_s"], chosen["value"] / 1000, label=label, color=look.ink, linestyle=look.line)
        panel.set_title(f"{controller}, {path.name.partition('; ')[2]}", fontsize=6)
        panel.set_ylim(bottom=0)
        panel.set_xlim(left=0)
        if number % len(CHANGING_CONTROLLERS) == 0:
            panel.set_ylabel("queue (kB)")
        if number >= len(panels) - len(CHANGING_CONTROLLERS):
            panel.set_xlabel("time (s)")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(LOOKS))
    return drawing


def _differences(panel: Axes, evaluation: Evaluation) -> None:
    for number, controller in enumerate(CONTROLLERS):
        shares = [
            100 * (row.value / row.paper - 1)
            for row in evaluation.rows
            if row.key.scheme == controller and row.key.metric == FCT and row.paper and row.value is not None
        ]
        panel.plot(shares, [number] * len(shares), "o", markersize=2.5, color=plots.RC3.ink, alpha=0.6)
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])
    panel.set_yticks(range(len(CONTROLLERS)), list(CONTROLLERS), fontsize=6)
    panel.set_xlabel("completion: ours minus Linux's (%)")
    panel.set_ylabel("controller")
    panel.axvspan(-5, 5, color="0.9", zorder=0)


def _over_time(panel: Axes, evaluation: Evaluation, controller: str) -> None:
    table = evaluation.curves["series"]
    for side, (label, look) in LOOKS.items():
        chosen = table.filter(controller=controller, side=side, quantity="in_flight_bytes")
        panel.plot(chosen["time_s"], chosen["value"] / 1000, label=label, color=look.ink, linestyle=look.line)
    panel.set_xlabel("time (s)")
    panel.set_ylabel(f"{controller}: in flight (kB)")
    plots.legend_above(panel, 2)
