"""Looks of lines, which differ by colour, dashes and markers at once, on paper and for colour-blind readers.

The colours are those of Okabe and Ito ("Color Universal Design", 2008) without yellow, which is too pale on white.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """The look of one line.

    Attributes:
        colour: as in HTML.
        dashes: lengths of strokes and gaps, in widths of the line; empty for a solid line.
        marker: Matplotlib's name of the marker.
    """

    colour: str
    dashes: tuple[float, ...]
    marker: str


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.6), (6, 2, 1.2, 2), (3, 1.5, 1.2, 1.5, 1.2, 1.5))
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")


def look(group: int, variant: int = 0, dashes: int | None = None) -> Look:
    """The look of a line.

    Args:
        group: the number of the group, such as a scheme, which sets the colour. The first 56 groups differ in colour or
            marker.
        variant: the number of the line within its group, which changes the marker.
        dashes: the number of the dashes; `None` takes that of the group.
    """
    stroke = group if dashes is None else dashes
    return Look(COLOURS[group % len(COLOURS)], DASHES[stroke % len(DASHES)], MARKERS[(group + variant) % len(MARKERS)])
