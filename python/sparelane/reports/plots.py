"""The common style of all figures: the width of a paper's column, and readable without colour.

Kinds of data differ in hatch or line style as well as in colour. Numbers printed in a paper are white crosses in every
figure: over bars, and below lines and intervals, so that they do not hide these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_INCHES = 3.4
PAGE_INCHES = 7.0
HEIGHT_INCHES = 2.3

STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "savefig.dpi": 200,
    "axes.formatter.use_mathtext": True,
}


class Row(Protocol):
    """A row of an experiment: the simulated value with its interval, and the paper's value."""

    @property
    def value(self) -> float | None:
        """The simulated value."""

    @property
    def interval(self) -> float | None:
        """The half-width of its confidence interval."""

    @property
    def paper(self) -> float | None:
        """The value that the paper prints."""


@dataclass(frozen=True, slots=True)
class Look:
    """The style of one kind of data: colour and hatch of bars; ink, line style and marker of lines."""

    colour: str
    hatch: str
    ink: str
    line: str | tuple[int, tuple[int, ...]]
    marker: str


TCP = Look("#a6a6a6", "", "#6e6e6e", "--", "s")
RC3 = Look("#7fa8dc", "////", "#1f4e8c", "-", "o")
MODEL = Look("#f2f2f2", "....", "#000000", ":", "d")
THIRD = Look("#c8791e", "\\\\\\\\", "#c8791e", "-.", "^")
FOURTH = Look("#d9b3d0", "--", "#8c3b7a", (0, (1, 1)), "P")
FIFTH = Look("#8fbf8f", "xx", "#2e6b2e", (0, (6, 2, 1, 2, 1, 2)), "v")
# The distance between the markers of a curve, as a share of the panel's diagonal.
MARK_EVERY = 0.18
PAPER_LABEL = "paper"
PAPER_STYLE: Mapping[str, Any] = {
    "color": "white",
    "linestyle": "none",
    "marker": "X",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
    "markersize": 6.5,
    "zorder": 1.8,
}


def style() -> AbstractContextManager[None]:
    """A context manager that applies the style to figures that are drawn or saved inside it."""
    settings: Any = dict(STYLE)
    return matplotlib.rc_context(settings)


def figure(columns: int = 1, *, width_inches: float = COLUMN_INCHES, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Creates an empty figure with `columns` panels in each row. Returns the panels row by row."""
    drawing = Figure(figsize=(width_inches, rows * HEIGHT_INCHES), layout="constrained")
    axes = drawing.subplots(rows, columns, squeeze=False)
    return drawing, list(axes.flat)


@dataclass(frozen=True, slots=True)
class Bars:
    """A series of bars, one for each group.

    Attributes:
        label: the name in the legend.
        look: the style.
        heights: the height of each bar; `None` leaves a gap.
        errors: half of the width of each interval; `None` for no interval.
        paper: the paper's number for each group; `None` if it prints no number.
    """

    label: str
    look: Look
    heights: Sequence[float | None]
    errors: Sequence[float | None]
    paper: Sequence[float | None]

    @classmethod
    def of_rows(cls, label: str, look: Look, rows: Sequence[Row]) -> Bars:
        """Creates a bar for each row."""
        return cls(
            label, look, [row.value for row in rows], [row.interval for row in rows], [row.paper for row in rows]
        )

    def top(self, index: int) -> float:
        """The height of the highest element in a group."""
        return max((self.heights[index] or 0.0) + (self.errors[index] or 0.0), self.paper[index] or 0.0)


def grouped_bars(axes: Axes, groups: Sequence[str], series: Sequence[Bars]) -> None:
    """Draws bars side by side for each group, with intervals, and the paper's numbers as crosses."""
    width = 0.8 / len(series)
    marked = False
    for index, bars in enumerate(series):
        offset = (index - (len(series) - 1) / 2) * width
        places = [place + offset for place in range(len(groups))]
        heights = [height or 0.0 for height in bars.heights]
        axes.bar(
            places,
            heights,
            width * 0.94,
            label=bars.label,
            color=bars.look.colour,
            hatch=bars.look.hatch,
            edgecolor="black",
            linewidth=0.5,
        )
        # Bars without an interval have no error bar.
        known = [(p, h, e) for p, h, e in zip(places, heights, bars.errors, strict=True) if e is not None]
        if known:
            x, y, spread = zip(*known, strict=True)
            axes.errorbar(x, y, spread, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        crosses = [(place, value) for place, value in zip(places, bars.paper, strict=True) if value is not None]
        if crosses:
            # The legend has one entry for all crosses.
            label = None if marked else PAPER_LABEL
            axes.plot(*zip(*crosses, strict=True), label=label, **PAPER_STYLE)
            marked = True
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(bottom=0.0)
    axes.grid(visible=False, axis="x")


def grouped_points(axes: Axes, groups: Sequence[str], series: Sequence[Bars]) -> None:
    """Draws markers side by side for each group, for logarithmic axes, where bars have no base.

    Simulated values have filled markers, and the paper's values have hollow markers of the same shape.
    """
    width = 0.8 / len(series)
    for index, bars in enumerate(series):
        offset = (index - (len(series) - 1) / 2) * width
        known = [
            (place + offset, height, error or 0.0)
            for place, (height, error) in enumerate(zip(bars.heights, bars.errors, strict=True))
            if height is not None and height > 0.0
        ]
        if known:
            x, y, spread = zip(*known, strict=True)
            style: Mapping[str, Any] = {
                "fmt": bars.look.marker,
                "color": bars.look.ink,
                "capsize": 2,
                "elinewidth": 0.8,
            }
            axes.errorbar(x, y, spread, label=bars.label, markersize=5, **style)
        hollow(axes, bars.look, [place + offset for place in range(len(groups))], bars.paper)
    values = [value for bars in series for value in (*bars.heights, *bars.paper) if value is not None and value > 0.0]
    axes.set_yscale("log")
    if values:
        axes.set_ylim(min(values) / 2.0, max(values) * 2.0)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")


def hollow(axes: Axes, look: Look, x: Sequence[float], paper: Sequence[float | None]) -> None:
    """Draws the paper's numbers as hollow markers."""
    printed = [(place, value) for place, value in zip(x, paper, strict=True) if value is not None]
    if printed:
        marked: Mapping[str, Any] = {"marker": look.marker, "markerfacecolor": "white", "markersize": 6, "zorder": 1.9}
        axes.plot(*zip(*printed, strict=True), color=look.ink, linestyle="none", **marked)


def both_signs(axes: Axes) -> None:
    """Adds room below zero for negative bars, and draws the line at zero."""
    axes.relim()
    axes.autoscale(axis="y")
    axes.margins(y=0.1)
    axes.axhline(0.0, color="black", linewidth=0.6)


def reductions_above(axes: Axes, cuts: Sequence[float | None], series: Sequence[Bars]) -> None:
    """Writes a reduction in percent above each group of bars."""
    for place, cut in enumerate(cuts):
        if cut is not None:
            top = max(bars.top(place) for bars in series)
            sign = "" if round(cut) == 0 else "−" if cut > 0 else "+"
            axes.annotate(
                f"{sign}{abs(cut):.0f} %", (place, top), (0, 5), textcoords="offset points", ha="center", fontsize=6
            )
    axes.set_ylim(top=1.15 * axes.get_ylim()[1])


def line(axes: Axes, label: str, look: Look, x: Sequence[float], y: Sequence[float]) -> None:
    """Draws a curve of many points with a few markers."""
    marked: Mapping[str, Any] = {"marker": look.marker, "markerfacecolor": "white", "markevery": MARK_EVERY}
    axes.plot(x, y, label=label, color=look.ink, linestyle=look.line, **marked)


def points(axes: Axes, label: str, look: Look, x: Sequence[float], rows: Sequence[Row]) -> None:
    """Draws markers joined by a line, one for each row, with intervals. Rows without a number are omitted."""
    known = [
        (place, row.value, row.interval or 0.0) for place, row in zip(x, rows, strict=True) if row.value is not None
    ]
    if known:
        places, heights, spread = zip(*known, strict=True)
        marked: Mapping[str, Any] = {"marker": look.marker, "markerfacecolor": "white", "capsize": 2}
        axes.errorbar(places, heights, spread, label=label, color=look.ink, linestyle=look.line, **marked)


def filled_points(axes: Axes, label: str, look: Look, x: Sequence[float], rows: Sequence[Row]) -> None:
    """Draws simulated values as filled markers with intervals and a line, and the paper's values as hollow markers."""
    known = [
        (place, row.value, row.interval or 0.0) for place, row in zip(x, rows, strict=True) if row.value is not None
    ]
    if known:
        places, heights, spread = zip(*known, strict=True)
        style: Mapping[str, Any] = {"linestyle": look.line, "marker": look.marker, "capsize": 2, "elinewidth": 0.8}
        axes.errorbar(places, heights, spread, label=label, color=look.ink, **style)
    hollow(axes, look, x, [row.paper for row in rows])


def marks(axes: Axes, label: str, look: Look, x: Sequence[float], rows: Sequence[Row]) -> None:
    """Draws simulated values as markers with intervals and without a line, above crosses for the paper's values."""
    crosses(axes, x, rows)
    heights, spread = [row.value or 0.0 for row in rows], [row.interval or 0.0 for row in rows]
    style: Mapping[str, Any] = {"fmt": look.marker, "markersize": 3.5, "zorder": 6, "capsize": 2}
    axes.errorbar(x, heights, spread, label=label, color=look.ink, **style)


def crosses(axes: Axes, x: Sequence[float], rows: Sequence[Row], *, label: bool = True) -> None:
    """Draws the paper's numbers as crosses."""
    printed = [(place, row.paper) for place, row in zip(x, rows, strict=True) if row.paper is not None]
    if printed:
        axes.plot(*zip(*printed, strict=True), label=PAPER_LABEL if label else None, **PAPER_STYLE)


def legend_above(axes: Axes, columns: int) -> None:
    """Draws a legend above the panel, unless there are no labels."""
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, columnspacing=1.2, handlelength=1.6)


def say_effort(drawing: Figure, words: str) -> None:
    """Writes a text about the effort of the experiment above the figure, unless it is empty."""
    if words:
        drawing.suptitle(words, x=0.99, ha="right", fontsize=6, color="0.35")


def save(drawing: Figure, folder: Path, name: str = "figure") -> None:
    """Writes the figure as PNG and PDF, without dates, so that equal figures give equal files."""
    drawing.savefig(folder / f"{name}.png", metadata={"Software": None})
    drawing.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
