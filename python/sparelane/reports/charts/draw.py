"""Draws panels with Matplotlib, and writes figures as PNG, SVG or PDF."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from sparelane.common import extras
from sparelane.common.folders import OutputError, replaced
from sparelane.reports.charts.panel import Line, Panel, offsets, own_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
COLUMNS = 2
PANEL_INCHES = (3.5, 2.6)
# The height of panels over time, which have the full width and are stacked.
TIME_INCHES = 1.75
# The height of a row of a horizontal panel, and of its title and axis.
ROW_INCHES, FRAME_INCHES = 0.19, 0.85
# The largest number of markers of a line with many points.
MARKERS = 12
# The largest number of columns of a legend above one panel, and the largest width of its rows, characters.
MOST_IN_A_ROW = 3
ROW_CHARACTERS = 60
# The height of a row of a legend, points.
LEGEND_POINTS = 10.5
# A logarithmic axis over fewer decades has three ticks per decade.
DECADES = 2.5
# The top of an axis from zero, relative to the highest value.
HEADROOM = 1.07
# The length of lines of the note below a panel, characters.
NOTE_CHARACTERS = 72
# The length of lines of the title of a panel, characters.
TITLE_CHARACTERS = 44
# The opacity of bands, and of the inside of outlines.
BAND_ALPHA = 0.14
# The opacity of filled areas.
AREA_ALPHA = 0.25
# The space between two sentences of a note.
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")


def figure(panels: Sequence[Panel], title: str = "") -> Figure:
    """Draws panels in one figure.

    Panels over time come first and are stacked. If all panels have the same lines, one legend is above all of them.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    extras.require("figures")
    from sparelane.reports import plots

    rows = _rows(panels)
    heights = [max(map(_height, row)) for row in rows]
    columns = max(map(len, rows), default=1)
    # Panels over time take the full width of the figure.
    is_stacked = any(panel.is_over_time for panel in panels)
    width = PANEL_INCHES[0] * (COLUMNS if is_stacked else columns)
    shared = _shared_legend(panels)
    with plots.style():
        from matplotlib.figure import Figure

        drawing = Figure(figsize=(width, sum(heights) + (0.25 if title else 0.0)), layout="constrained")
        grid = drawing.add_gridspec(len(rows), columns, height_ratios=heights)
        first: Axes | None = None
        for number, row in enumerate(rows):
            for column, panel in enumerate(row):
                is_wide = panel.is_over_time and len(row) == 1
                place = grid[number, :] if is_wide else grid[number, column]
                axes = drawing.add_subplot(place, sharex=first if panel.is_over_time else None)
                handles = draw(axes, panel, has_legend=shared is None, is_wide=is_wide)
                if panel is shared:
                    _legend_of_figure(drawing, handles, panel, width)
                if panel.is_over_time:
                    # Only the lowest row of the stack labels the common axis.
                    first = first or axes
                    is_last = number + 1 == len(rows) or not rows[number + 1][0].is_over_time
                    axes.tick_params(labelbottom=is_last)
                    axes.set_xlabel(panel.x_label if is_last else "")
        notes = " ".join(dict.fromkeys(text for panel in panels for text in SENTENCE.split(panel.note) if text))
        if notes:
            lines = wrap(notes, round(NOTE_CHARACTERS * width / PANEL_INCHES[0]))
            drawing.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=6.5)
        if title:
            drawing.suptitle(title, fontsize=9)
    return drawing


def _rows(panels: Sequence[Panel]) -> list[Sequence[Panel]]:
    """The panels in rows: those over time by their `row`, or one per row; then the others side by side."""
    stacked: dict[object, list[Panel]] = {}
    for number, panel in enumerate(panels):
        if panel.is_over_time:
            stacked.setdefault(panel.row or number, []).append(panel)
    others = [panel for panel in panels if not panel.is_over_time]
    return [pair for row in (*stacked.values(), others) for pair in _pairs(row)]


def _pairs(panels: Sequence[Panel]) -> list[Sequence[Panel]]:
    return [panels[place : place + COLUMNS] for place in range(0, len(panels), COLUMNS)]


def _height(panel: Panel) -> float:
    if panel.is_over_time:
        return TIME_INCHES
    rows = len(panel.places) if panel.is_horizontal else 0
    return max(PANEL_INCHES[1], ROW_INCHES * rows + FRAME_INCHES)


def _shared_legend(panels: Sequence[Panel]) -> Panel | None:
    """The panel whose legend is valid for all panels; `None` if each panel needs its own."""
    with_legend = [panel for panel in panels if panel.needs_legend]
    if len(with_legend) < 2 or any(panel.is_over_time for panel in panels):
        return None
    largest = max(with_legend, key=lambda panel: len(panel.lines))
    known = {(line.label, line.look) for line in largest.lines}
    is_whole = all({(line.label, line.look) for line in panel.lines} <= known for panel in with_legend)
    return largest if is_whole else None


def _legend_of_figure(drawing: Figure, handles: Sequence[Any], panel: Panel, width: float) -> None:
    longest = max(len(line.label) for line in panel.lines)
    columns = max(1, min(len(panel.lines), round(ROW_CHARACTERS * width / PANEL_INCHES[0]) // (longest + 8)))
    drawing.legend(
        handles=handles,
        labels=[line.label for line in panel.lines],
        loc="outside upper left",
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.6,
    )


def draw(axes: Axes, panel: Panel, *, has_legend: bool = True, is_wide: bool = False) -> list[Any]:
    """Draws one panel, which has the full width of the figure if `is_wide`. Returns the legend handle of each line."""
    shown = axes.yaxis if panel.is_horizontal else axes.xaxis
    drawn = [
        _line(axes, line, offset, is_horizontal=panel.is_horizontal)
        for line, offset in zip(panel.lines, offsets(panel), strict=True)
    ]
    width = COLUMNS if is_wide else 1
    pad = _legend(axes, panel, drawn, width) if has_legend and panel.needs_legend else 5.0
    # Non-breaking spaces keep a key and its value on one line.
    title = "\n".join(wrap(panel.title.replace(" = ", "\u00a0=\u00a0"), TITLE_CHARACTERS * width))
    axes.set_title(title, loc="left", fontweight="bold", pad=pad)
    along, across = (axes.set_ylabel, axes.set_xlabel) if panel.is_horizontal else (axes.set_xlabel, axes.set_ylabel)
    along(panel.x_label)
    across(panel.y_label)
    if panel.is_x_log:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis, axes.get_xlim())
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    if panel.is_x_inverted:
        axes.xaxis.set_inverted(True)
    _values_axis(axes, panel)
    if ticks := own_ticks(panel):
        axes.set_xticks(ticks, [f"{tick:.4g}" for tick in ticks])
        axes.xaxis.set_minor_locator(_no_ticks())
    if panel.places:
        # Long names are rotated so that they do not overlap.
        long = not panel.is_horizontal and max(map(len, panel.places)) * len(panel.places) > 40
        turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
        shown.set_ticks(range(len(panel.places)), panel.places, **turned)
        ends = (-0.5, len(panel.places) - 0.5)
        if panel.is_horizontal:
            axes.set_ylim(*reversed(ends))
        else:
            axes.set_xlim(*ends)
    return drawn


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _values_axis(axes: Axes, panel: Panel) -> None:
    """Sets the scale and the ends of the axis of values."""
    axis = axes.xaxis if panel.is_horizontal else axes.yaxis
    set_scale = axes.set_xscale if panel.is_horizontal else axes.set_yscale
    set_limits: Any = axes.set_xlim if panel.is_horizontal else axes.set_ylim
    limits = axes.get_xlim if panel.is_horizontal else axes.get_ylim
    if panel.is_horizontal:
        axes.margins(x=0.07)
    else:
        axes.margins(y=0.07)
    if panel.y_range is not None:
        set_limits(*panel.y_range)
    elif panel.is_y_log:
        set_scale("log")
        plain_numbers(axis, limits())
    elif panel.begins_at_zero:
        _, top = axes.dataLim.intervalx if panel.is_horizontal else axes.dataLim.intervaly
        # The headroom is relative to zero, so that equal values do not lie on the frame.
        set_limits(0.0, HEADROOM * top if math.isfinite(top) and top > 0 else None)


def plain_numbers(axis: Axis, ends: tuple[float, float]) -> None:
    """Labels a logarithmic axis with plain numbers: 1, 2 and 5 of each decade, or only 1 for many decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    decades = math.log10(ends[1] / ends[0]) if ends[0] > 0 else 9.0
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < DECADES else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _line(axes: Axes, line: Line, offset: float, *, is_horizontal: bool) -> Any:
    """Draws a line, with its markers shifted by `offset` from their places. Returns its legend handle."""
    mine = line.look
    style: dict[str, Any] = {
        "label": line.label,
        "color": mine.colour,
        "linestyle": "none" if not line.is_joined else (0, mine.dashes) if mine.dashes else "-",
        "drawstyle": "steps-post" if line.is_step else "default",
        "marker": mine.marker,
        "markerfacecolor": "white",
        "markevery": 1 if line.is_marked else max(1, len(line.x) // MARKERS),
    }
    if line.is_level:
        return _level(axes, line, is_horizontal=is_horizontal)
    if not line.is_marked:
        style |= {"markersize": 3, "linewidth": 1.1}
    if line.outline:
        # Points inside an outline are faint, since the outline and its centre are the result.
        _outline(axes, line)
        style |= {"markersize": 2.5, "alpha": 0.6}
    at = [place + offset for place in line.x]
    if line.is_filled:
        return _area(axes, line, at)
    # In a horizontal panel, values are on the x axis.
    x, y = (line.y, at) if is_horizontal else (at, line.y)
    if len(line.low) and line.is_marked:
        below = [max(0.0, value - low) for value, low in zip(line.y, line.low, strict=True)]
        above = [max(0.0, high - value) for value, high in zip(line.y, line.high, strict=True)]
        bars: dict[str, Any] = {"xerr" if is_horizontal else "yerr": (below, above)}
        drawn: Any = axes.errorbar(x, y, capsize=2, elinewidth=0.8, **bars, **style)
    else:
        if len(line.low):
            step: Any = "post" if line.is_step else None
            axes.fill_between(at, line.low, line.high, step=step, color=mine.colour, alpha=BAND_ALPHA, linewidth=0)
        (drawn,) = axes.plot(x, y, **style)
    if line.centre is not None:
        marked: dict[str, Any] = {"marker": mine.marker, "markersize": 6, "markerfacecolor": "white", "zorder": 3}
        (drawn,) = axes.plot(*line.centre, color=mine.colour, linestyle="none", label=line.label, **marked)
    return drawn


def _level(axes: Axes, line: Line, *, is_horizontal: bool) -> Any:
    """Draws a reference line for the only value of a line, with its interval as a band."""
    mine = line.look
    over, band = (axes.axvline, axes.axvspan) if is_horizontal else (axes.axhline, axes.axhspan)
    if len(line.low):
        band(line.low[0], line.high[0], color=mine.colour, alpha=BAND_ALPHA, linewidth=0)
        ends = [(end, end) for end in (line.low[0], line.high[0])]
        axes.update_datalim(ends, updatex=is_horizontal, updatey=not is_horizontal)
    return over(line.y[0], color=mine.colour, linestyle=(0, mine.dashes) if mine.dashes else "-", label=line.label)


def _area(axes: Axes, line: Line, at: Sequence[float]) -> Any:
    """Fills the area between a line and zero, with the line as its edge."""
    from matplotlib.colors import to_rgba

    step: Any = "post" if line.is_step else None
    colours: dict[str, Any] = {"facecolor": to_rgba(line.look.colour, AREA_ALPHA), "edgecolor": line.look.colour}
    return axes.fill_between(at, 0.0, line.y, step=step, linewidth=0.5, label=line.label, **colours)


def _outline(axes: Axes, line: Line) -> None:
    from matplotlib.colors import to_rgba

    mine = line.look
    x, y = zip(*line.outline, strict=True)
    edge: Any = (0, mine.dashes) if mine.dashes else "-"
    axes.fill(x, y, facecolor=to_rgba(mine.colour, BAND_ALPHA), edgecolor=mine.colour, linewidth=1.0, linestyle=edge)


def _legend(axes: Axes, panel: Panel, drawn: Sequence[Any], width: int) -> float:
    """Draws a legend above a panel of `width` columns, in the order of its lines. Returns its height, points."""
    labels = ["\n".join(wrap(line.label, ROW_CHARACTERS * width - 8)) for line in panel.lines]
    lines = max(label.count("\n") + 1 for label in labels)
    columns = max(1, min(len(labels), MOST_IN_A_ROW * width, ROW_CHARACTERS * width // (max(map(len, labels)) + 8)))
    axes.legend(
        handles=drawn,
        labels=labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.6,
        borderpad=0.1,
    )
    return 5.0 + LEGEND_POINTS * lines * -(-len(labels) // columns)


def save(drawing: Figure, path: Path) -> None:
    """Writes a figure in the format of the path's suffix, without dates, so that equal figures give equal files.

    Raises:
        OutputError: the suffix is not that of a format.
        OSError: the file cannot be written.
    """
    suffix = path.suffix.removeprefix(".").lower()
    refuse_other_formats(path)
    no_dates: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    from sparelane.reports import plots

    with plots.style():
        replaced(path, partial(drawing.savefig, format=suffix, metadata=no_dates[suffix]))


def refuse_other_formats(path: Path) -> None:
    """Rejects a file without the suffix of a format.

    Raises:
        OutputError: the suffix is not that of a format.
    """
    if path.suffix.removeprefix(".").lower() not in FORMATS:
        raise OutputError(f'cannot draw "{path}"; allowed: files ending in .png, .svg or .pdf')
