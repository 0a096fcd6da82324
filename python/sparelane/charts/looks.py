"""How lines are told apart: by colour, by dashes and by markers at once, for paper and for all eyes.

The colours are those of Okabe and Ito ("Color Universal Design", 2008) without the yellow, which vanishes on white.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """How one line looks.

    Attributes:
        colour: as in HTML.
        dashes: lengths of strokes and gaps, in widths of the line; empty for a whole line.
        marker: as Matplotlib names it.
    """

    colour: str
    dashes: tuple[float, ...]
    marker: str


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.6), (6, 2, 1.2, 2), (3, 1.5, 1.2, 1.5, 1.2, 1.5))
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")


def look(number: int) -> Look:
    """The look of a line by its number; no two of the first 280 are alike."""
    return Look(COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)], MARKERS[number % len(MARKERS)])
