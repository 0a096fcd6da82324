"""Styles of lines. They differ in colour, dashes and markers, so they remain distinct in print and for all readers.

Source of the colours: Okabe and Ito, "Color Universal Design", 2008, without yellow, which is too pale on white.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """The style of a line.

    Attributes:
        colour: an HTML colour.
        dashes: lengths of strokes and gaps, in line widths; empty for a solid line.
        marker: Matplotlib's name of the marker.
    """

    colour: str
    dashes: tuple[float, ...]
    marker: str


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.6), (6, 2, 1.2, 2), (3, 1.5, 1.2, 1.5, 1.2, 1.5))
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")


def look(group: int, variant: int = 0, dashes: int | None = None) -> Look:
    """Returns the style of a line.

    Args:
        group: the number of the group, such as a scheme, which determines the colour. The first 56 groups differ in
            colour or marker.
        variant: the number of the line within its group, which changes the marker.
        dashes: the number of the dash pattern; by default that of the group.
    """
    stroke = group if dashes is None else dashes
    return Look(COLOURS[group % len(COLOURS)], DASHES[stroke % len(DASHES)], MARKERS[(group + variant) % len(MARKERS)])
