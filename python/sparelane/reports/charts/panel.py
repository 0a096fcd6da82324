"""The content of a figure, independent of the renderer: panels of lines."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparelane.reports.charts.looks import Look, look

Numbers = NDArray[np.float64]

# The most points of a line: more cannot be told apart.
MOST_POINTS = 1500
# The most values along an axis that become its ticks.
MOST_OWN_TICKS = 6
# The share of a place's width over which the markers of several lines are spread.
SPREAD = 0.64
FIRST_LOOK = look(0)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel.

    Attributes:
        label: the name in the legend.
        x: in the unit of the panel's axis.
        y: one value for each `x`; not a number if it is missing.
        low: lower ends of intervals; empty without intervals. A line that is not marked has them as a band.
        high: upper ends.
        group: lines of one group have one colour in all panels; empty means the label.
        variant: tells the lines of a group apart.
        is_marked: whether each point has a marker, because points are few and each is a measurement.
        is_step: whether a value holds until the next point.
        is_joined: whether a line joins the points; false for places without an order.
        is_level: whether the one value holds for every `x`, as that of a scheme that lacks the swept key; its `x` is
            not a number, and it is drawn as a horizontal line.
        outline: a closed curve around the points, such as an ellipse; empty without one.
        centre: the mean of the points, if it has a marker of its own.
        look: set by `with_looks`.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    group: str = ""
    variant: str = ""
    is_marked: bool = False
    is_step: bool = False
    is_joined: bool = True
    is_level: bool = False
    outline: Sequence[tuple[float, float]] = ()
    centre: tuple[float, float] | None = None
    look: Look = FIRST_LOOK


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        name: one word, by which `--only` selects the panel.
        title: what it shows.
        x_label: the quantity of the horizontal axis, with its unit.
        y_label: the quantity of the vertical axis, with its unit.
        lines: in the order of the legend.
        is_x_log: whether the horizontal axis is logarithmic.
        is_y_log: whether the vertical axis is logarithmic.
        places: names of the places 0, 1, ... of a horizontal axis without numbers.
        begins_at_zero: whether the vertical axis begins at 0.
        note: what a reader should know; may be empty.
        is_sideways: whether the places are rows and values run to the right, for names that are long or many.
        x_range: the ends of the horizontal axis; `None` takes those of the data.
        y_range: the ends of the vertical axis; `None` takes those of the data.
        is_x_inverted: whether values fall from left to right.
        is_over_time: whether the horizontal axis is the time of a run, which all such panels share.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    is_x_log: bool = False
    is_y_log: bool = False
    places: Sequence[str] = ()
    begins_at_zero: bool = True
    note: str = ""
    is_sideways: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    is_x_inverted: bool = False
    is_over_time: bool = False

    @property
    def needs_legend(self) -> bool:
        """True if a legend adds to the names of the places."""
        return [line.label for line in self.lines] != list(self.places)


def offsets(panel: Panel) -> list[float]:
    """The distance of each line's markers from their places, in widths of a place.

    Markers at one place of an axis without numbers stand side by side, within the place. Along an axis of numbers no
    marker is moved.
    """
    lines = [line for line in panel.lines if not line.is_level]
    taken = Counter(x for line in lines for x in set(line.x))
    if not panel.places or max(taken.values(), default=0) < 2:
        return [0.0] * len(panel.lines)
    step = SPREAD / len(lines)
    beside = iter((number - (len(lines) - 1) / 2) * step for number in range(len(lines)))
    return [0.0 if line.is_level else next(beside) for line in panel.lines]


def valued(panel: Panel) -> list[float]:
    """The numbers that the axis of values has to show.

    On an axis from zero, the parts of intervals below zero are left out if no value is below zero.
    """
    values = [y for line in panel.lines for y in line.y]
    ends = [end for line in panel.lines for end in (*line.low, *line.high)]
    is_above = panel.begins_at_zero and all(value >= 0 for value in values if not math.isnan(value))
    return [*values, *(max(0.0, end) if is_above else end for end in ends)]


def own_ticks(panel: Panel) -> list[float]:
    """The values along the horizontal axis, if they are few and far enough apart to be its ticks; else none."""
    lines = [line for line in panel.lines if not line.is_level]
    if panel.places or not lines or not all(line.is_marked and line.is_joined for line in lines):
        return []
    values = sorted({x for line in lines for x in line.x})
    if not 2 <= len(values) <= MOST_OWN_TICKS or (panel.is_x_log and values[0] <= 0):
        return []
    along = [math.log(value) if panel.is_x_log else value for value in values]
    gaps = [after - before for before, after in itertools.pairwise(along)]
    return values if min(gaps) >= (along[-1] - along[0]) / MOST_OWN_TICKS / 2 else []


def thinned(x: Numbers, y: Numbers) -> tuple[list[float], list[float]]:
    """The line with at most `MOST_POINTS` points: of each stretch, the lowest and the highest point."""
    kept = kept_points(y)
    return x[kept].tolist(), y[kept].tolist()


def kept_points(y: Numbers) -> NDArray[np.int64]:
    """The numbers of the points that are drawn: all, or of each stretch the lowest and the highest."""
    if len(y) <= MOST_POINTS:
        return np.arange(len(y))
    kept: list[int] = []
    for stretch in np.array_split(np.arange(len(y)), MOST_POINTS // 2):
        known = stretch[~np.isnan(y[stretch])]
        # A stretch without a value is a gap of the line.
        ends = {int(known[y[known].argmin()]), int(known[y[known].argmax()])} if len(known) else {int(stretch[0])}
        kept += sorted(ends)
    return np.asarray(kept, dtype=np.int64)


def with_looks(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with one colour for each group of lines.

    Dashes tell the variants within groups apart if a panel has several; otherwise they go by the place of the group in
    the first panel that has it.
    """
    variants = _numbered(line.variant for panel in panels for line in panel.lines)
    has_variants = any(len({_group(line) for line in panel.lines}) < len(panel.lines) for panel in panels)
    groups: dict[str, int] = {}
    dashes: dict[str, int] = {}
    for panel in panels:
        for place, group in enumerate(_numbered(map(_group, panel.lines))):
            groups.setdefault(group, len(groups))
            dashes.setdefault(group, place)

    def styled(line: Line) -> Line:
        group = _group(line)
        variant = variants[line.variant] if has_variants else 0
        return replace(line, look=look(groups[group], variant, variant if has_variants else dashes[group]))

    return [replace(panel, lines=[styled(line) for line in panel.lines]) for panel in panels]


def _group(line: Line) -> str:
    return line.group or line.label


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
