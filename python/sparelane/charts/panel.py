"""What a figure shows, whoever draws it: panels of lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# A line has no more points than this: what lies between is not seen.
MOST_POINTS = 1500
# So many values along an axis can be its ticks.
MOST_OWN_TICKS = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel.

    Attributes:
        label: in the legend.
        x: in the unit of the panel's axis.
        y: as many; not a number where there is none.
        low: lower ends of intervals; empty where there are none.
        high: upper ends.
        is_marked: whether each point has a marker: where points are few, and stand for themselves.
        is_step: the value holds until the next point.
        is_joined: whether a line joins the points: it would say something where places have no order.
        look: which of the looks it has; lines of one label have one look in all panels.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    is_marked: bool = False
    is_step: bool = False
    is_joined: bool = True
    look: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        name: one word, by which it can be asked for.
        title: what it shows.
        x_label: what the horizontal axis is, with its unit.
        y_label: the same of the vertical one.
        lines: in the order of the legend.
        is_x_log: whether the horizontal axis is logarithmic.
        is_y_log: whether the vertical one is.
        places: names of the places 0, 1, ... of the horizontal axis, where it is none of numbers.
        begins_at_zero: whether the vertical axis begins at 0.
        note: what a reader should know; may be empty.
        is_sideways: whether, in a page, the places are rows, and values run along: for names that are long, or many.
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


def own_ticks(panel: Panel) -> list[float]:
    """The values along the horizontal axis, where they are few and far enough apart to be its ticks; else none."""
    if panel.places or panel.is_x_log or not all(line.is_marked for line in panel.lines):
        return []
    values = sorted({x for line in panel.lines for x in line.x})
    gaps = [after - before for before, after in itertools.pairwise(values)]
    if not 2 <= len(values) <= MOST_OWN_TICKS or min(gaps) < (values[-1] - values[0]) / MOST_OWN_TICKS / 2:
        return []
    return values


def thinned(x: Numbers, y: Numbers) -> tuple[list[float], list[float]]:
    """A line of many points with few: of each stretch, the lowest and the highest point."""
    if len(x) <= MOST_POINTS:
        return x.tolist(), y.tolist()
    kept: list[int] = []
    for stretch in np.array_split(np.arange(len(x)), MOST_POINTS // 2):
        known = stretch[~np.isnan(y[stretch])]
        if len(known):
            ends = {int(known[y[known].argmin()]), int(known[y[known].argmax()])}
            kept += sorted(ends)
    return x[kept].tolist(), y[kept].tolist()


def with_looks(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with one look for each label; a new label takes the first look that its panel has not used."""
    looks: dict[str, int] = {}
    found = []
    for panel in panels:
        used = {looks[line.label] for line in panel.lines if line.label in looks}
        for line in panel.lines:
            if line.label not in looks:
                looks[line.label] = next(number for number in range(len(used) + 1) if number not in used)
                used.add(looks[line.label])
        found.append(replace(panel, lines=[replace(line, look=looks[line.label]) for line in panel.lines]))
    return found
