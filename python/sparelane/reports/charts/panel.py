"""The content of figures, independent of the renderer: panels of lines."""

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

# The largest number of points of a line; more are not visible.
MOST_POINTS = 1500
# The largest number of values along an axis that become its ticks.
MOST_OWN_TICKS = 6
# The share of a place's width over which the markers of several lines are spread.
SPREAD = 0.64
FIRST_LOOK = look(0)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel.

    Attributes:
        label: the name in the legend.
        x: values in the unit of the panel's axis.
        y: one value for each `x`; NaN if it is missing.
        low: lower ends of intervals; empty without intervals. They become bars at marked points, otherwise a band.
        high: upper ends of intervals.
        group: lines of one group have the same colour in all panels; by default the label.
        variant: distinguishes the lines of a group.
        is_marked: draw a marker at each point, for few points that are measurements.
        is_step: a value holds until the next point.
        is_joined: join the points by a line; false for places without an order.
        is_level: the only value holds for every `x`, as for a scheme without the swept key. `x` is NaN, and the value
            is drawn as a horizontal line.
        is_filled: fill the area between the line and zero.
        outline: a closed curve around the points, such as an ellipse; empty for no outline.
        centre: the mean of the points, if it has its own marker.
        look: the style, which `with_looks` sets.
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
    is_filled: bool = False
    outline: Sequence[tuple[float, float]] = ()
    centre: tuple[float, float] | None = None
    look: Look = FIRST_LOOK


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        name: the name for `--only`.
        title: the title.
        x_label: the quantity of the horizontal axis, with its unit.
        y_label: the quantity of the vertical axis, with its unit.
        lines: the lines, in the order of the legend.
        is_x_log: the horizontal axis is logarithmic.
        is_y_log: the vertical axis is logarithmic.
        places: names of the positions 0, 1, ... on a horizontal axis without numbers.
        begins_at_zero: the vertical axis begins at 0.
        note: a note for readers; may be empty.
        is_horizontal: places are rows and values increase to the right, for long or many names.
        x_range: the ends of the horizontal axis; `None` for those of the data.
        y_range: the ends of the vertical axis; `None` for those of the data.
        is_x_inverted: values decrease from left to right.
        is_over_time: the horizontal axis is the time of a run, which all such panels share.
        row: panels over time with the same text here are drawn side by side; without one, a panel has the full width.
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
    is_horizontal: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    is_x_inverted: bool = False
    is_over_time: bool = False
    row: str = ""

    @property
    def needs_legend(self) -> bool:
        """True if a legend shows more than the names of the places."""
        return [line.label for line in self.lines] != list(self.places)


def offsets(panel: Panel) -> list[float]:
    """The offset of each line's markers from their places, as a share of the width of a place.

    On an axis without numbers, markers at the same place are drawn side by side. On an axis of numbers, all offsets are
    zero.
    """
    lines = [line for line in panel.lines if not line.is_level]
    taken = Counter(x for line in lines for x in set(line.x))
    if not panel.places or max(taken.values(), default=0) < 2:
        return [0.0] * len(panel.lines)
    step = SPREAD / len(lines)
    beside = iter((number - (len(lines) - 1) / 2) * step for number in range(len(lines)))
    return [0.0 if line.is_level else next(beside) for line in panel.lines]


def valued(panel: Panel) -> list[float]:
    """The numbers that the axis of values must include.

    On an axis from zero, intervals are cut at zero if no value is negative.
    """
    values = [y for line in panel.lines for y in line.y]
    ends = [end for line in panel.lines for end in (*line.low, *line.high)]
    is_above = panel.begins_at_zero and all(value >= 0 for value in values if not math.isnan(value))
    return [*values, *(max(0.0, end) if is_above else end for end in ends)]


def own_ticks(panel: Panel) -> list[float]:
    """The values along the horizontal axis as ticks, if they are few and far enough apart; otherwise empty."""
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
    """Reduces a line to about `MOST_POINTS` points, with the lowest and the highest point of each stretch."""
    kept = kept_points(y)
    return x[kept].tolist(), y[kept].tolist()


def kept_points(y: Numbers) -> NDArray[np.int64]:
    """The indices of the points to draw: all of them, or the lowest and the highest of each stretch."""
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
    """Sets the style of each line, with one colour for each group.

    If a panel has several variants of a group, dashes distinguish the variants. Otherwise, dashes depend on the
    position of the group in the first panel that has it.
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
