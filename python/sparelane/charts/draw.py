"""Panels as a figure of Matplotlib, for paper: PNG, SVG or PDF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from sparelane import extras
from sparelane.charts.looks import look
from sparelane.charts.panel import Line, Panel, own_ticks
from sparelane.folders import OutputError, replaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
COLUMNS = 2
PANEL_INCHES = (3.5, 2.6)
# A line of many points has no more markers than this.
MARKERS = 12
# More labels than this would not fit above the panels.
MOST_IN_A_ROW = 3
# How far apart points at one place are drawn that have intervals, points.
APART_POINTS = 3.0
# Over fewer decades than this, a logarithmic axis has three ticks in each.
DECADES = 2.5
# How much higher than the highest value an axis from zero is.
HEADROOM = 1.07
# Characters of a note below a panel.
NOTE_CHARACTERS = 72


def figure(panels: Sequence[Panel], title: str = "") -> Figure:
    """The panels as one figure, with a legend to each.

    Raises:
        MissingExtraError: there is no Matplotlib.
    """
    extras.require("figures")
    from sparelane.experiments import plots

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with plots.style():
        from matplotlib.figure import Figure

        width, height = PANEL_INCHES
        drawing = Figure(figsize=(columns * width, rows * height + (0.25 if title else 0.0)), layout="constrained")
        axes = drawing.subplots(rows, columns, squeeze=False)
        for place, panel in zip(axes.flat, panels, strict=False):
            draw(place, panel)
        for place in axes.flat[len(panels) :]:
            place.set_axis_off()
        notes = " ".join(dict.fromkeys(panel.note for panel in panels if panel.note))
        if notes:
            drawing.supxlabel("\n".join(wrap(notes, NOTE_CHARACTERS * columns)), x=0.01, ha="left", fontsize=6.5)
        if title:
            drawing.suptitle(title, fontsize=9)
    return drawing


def draw(axes: Axes, panel: Panel) -> None:
    """One panel."""
    with_intervals = sum(len(line.low) > 0 for line in panel.lines)
    drawn = []
    for place, line in enumerate(panel.lines):
        # Side by side, intervals of several lines do not hide each other.
        shift = (place - (len(panel.lines) - 1) / 2) * APART_POINTS if with_intervals > 1 else 0.0
        drawn.append(_line(axes, line, shift))
    axes.set_title(panel.title, loc="left", fontweight="bold", pad=_legend(axes, panel, drawn))
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.margins(y=0.07)
    if panel.is_x_log:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis, axes.get_xlim())
    if panel.is_y_log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, axes.get_ylim())
    elif panel.begins_at_zero:
        _, top = axes.dataLim.intervaly
        # Room above counts from zero: equal values would lie on the frame otherwise.
        axes.set_ylim(0.0, HEADROOM * top if math.isfinite(top) and top > 0 else None)
    if ticks := own_ticks(panel):
        axes.set_xticks(ticks, [f"{tick:.4g}" for tick in ticks])
    if panel.places:
        long = max(map(len, panel.places)) * len(panel.places) > 40
        axes.set_xticks(
            range(len(panel.places)), panel.places, rotation=30 if long else 0, ha="right" if long else "center"
        )
        axes.margins(x=0.1 if len(panel.places) > 1 else 0.5)


def plain_numbers(axis: Axis, ends: tuple[float, float]) -> None:
    """Ticks of a logarithmic axis as plain numbers: 1, 2 and 5 of each decade, or 1 alone where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    decades = math.log10(ends[1] / ends[0]) if ends[0] > 0 else 9.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < DECADES else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _line(axes: Axes, line: Line, shift_points: float) -> Any:
    """Draws a line; returns what a legend shows of it."""
    from matplotlib.transforms import ScaledTranslation

    mine = look(line.look)
    drawing: Any = axes.figure
    shift = ScaledTranslation(shift_points / 72, 0.0, drawing.dpi_scale_trans)
    # The axes do not see how far lines reach that are shifted.
    axes.update_datalim([*zip(line.x, line.y, strict=True), *zip(line.x, line.low), *zip(line.x, line.high)])  # noqa: B905
    style: dict[str, Any] = {
        "label": line.label,
        "transform": axes.transData + shift,
        "color": mine.colour,
        "linestyle": "none" if not line.is_joined else (0, mine.dashes) if mine.dashes else "-",
        "drawstyle": "steps-post" if line.is_step else "default",
        "marker": mine.marker,
        "markerfacecolor": "white",
        "markevery": 1 if line.is_marked else max(1, len(line.x) // MARKERS),
    }
    if not line.is_marked:
        style |= {"markersize": 3, "linewidth": 1.1}
    if len(line.low):
        below = [max(0.0, y - low) for y, low in zip(line.y, line.low, strict=True)]
        above = [max(0.0, high - y) for y, high in zip(line.y, line.high, strict=True)]
        drawn: Any = axes.errorbar(line.x, line.y, (below, above), capsize=2, elinewidth=0.8, **style)
    else:
        (drawn,) = axes.plot(line.x, line.y, **style)
    axes.autoscale_view()
    return drawn


def _legend(axes: Axes, panel: Panel, drawn: Sequence[Any]) -> float:
    """A legend above the panel, in the order of its lines; returns how much room it takes, points."""
    labels = [line.label for line in panel.lines]
    columns = max(1, min(len(labels), MOST_IN_A_ROW, 60 // (max(map(len, labels)) + 8)))
    axes.legend(
        handles=drawn,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.6,
        borderpad=0.1,
    )
    return 5.0 + 10.5 * -(-len(labels) // columns)


def save(drawing: Figure, path: Path) -> None:
    """Writes a figure in the format that the path's ending names, without dates, so that equal figures are equal files.

    Raises:
        OutputError: there is no such format.
        OSError: the file cannot be written.
    """
    ending = path.suffix.removeprefix(".").lower()
    refuse_other_formats(path)
    nothing: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    from sparelane.experiments import plots

    with plots.style():
        replaced(path, partial(drawing.savefig, format=ending, metadata=nothing[ending]))


def refuse_other_formats(path: Path) -> None:
    """Refuses a file whose ending names no format.

    Raises:
        OutputError: it does not.
    """
    if path.suffix.removeprefix(".").lower() not in FORMATS:
        raise OutputError(f'cannot draw "{path}": allowed are files ending in .png, .svg or .pdf')
