"""SVG markers and strokes, and the texts of points."""

from __future__ import annotations

import math

from sparelane.reports.charts.panel import Line, Panel
from sparelane.reports.pages.axis import shown


def key(line: Line) -> str:
    """The sample of a line in a legend, as SVG."""
    mine = line.look
    path = f'<path d="M1 7H31" {stroke(line)}/>' if line.is_joined else ""
    if line.is_filled:
        path = f'<rect x="1" y="2" width="30" height="10" {band(line)}/>' + path
    mark = "" if line.is_level or line.is_filled else marker(mine.marker, 16, 7, mine.colour)
    return f'<svg width="32" height="14" aria-hidden="true">{path}{mark}</svg>'


def stroke(line: Line) -> str:
    """The SVG attributes of a line's path."""
    mine = line.look
    dashes = f' stroke-dasharray="{" ".join(f"{1.8 * one:g}" for one in mine.dashes)}"' if mine.dashes else ""
    return f'fill="none" stroke="{mine.colour}" stroke-width="1.8"{dashes}'


def band(line: Line) -> str:
    """The SVG attributes of a filled area of a line."""
    return f'fill="{line.look.colour}" fill-opacity="0.14" stroke="none"'


def marker(name: str, x: float, y: float, colour: str, *, is_faint: bool = False) -> str:
    """An SVG marker by its Matplotlib name, about seven units wide. Faint markers are for many points."""
    style = f'fill="#fff" stroke="{colour}" stroke-width="1.4"' + (' opacity="0.5"' if is_faint else "")
    if name == "o":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" {style}/>'
    shapes = {
        "s": "m-3-3h6v6h-6z",
        "^": "m0-4l4 7h-8z",
        "v": "m0 4l4-7h-8z",
        "D": "m0-4.2l4 4.2l-4 4.2l-4-4.2z",
        "X": "m-3.4-3.4l6.8 6.8m0-6.8l-6.8 6.8",
        "P": "m-4 0h8m-4-4v8",
        "*": "m0-4.4l1.3 2.9 3.1.3-2.4 2 .8 3.1-2.8-1.7-2.8 1.7.8-3.1-2.4-2 3.1-.3z",
    }
    return f'<path d="M{x:.1f} {y:.1f}{shapes[name]}" {style}/>'


def text(panel: Panel, line: Line, which: int) -> str:
    """A point as text: its position, its value, and its interval."""
    interval = f" ({shown(line.low[which])} to {shown(line.high[which])})" if len(line.low) else ""
    return f"{where(panel, line, which)}; {panel.y_label}: {shown(line.y[which])}{interval}"


def where(panel: Panel, line: Line, which: int, *, has_label: bool = True) -> str:
    """The position of a point on the horizontal axis, as text."""
    x = line.x[which]
    if line.is_level or math.isnan(x):
        return f"any {panel.x_label}" if has_label else "any"
    if panel.places:
        return panel.places[int(x)]
    return f"{panel.x_label}: {shown(x)}" if has_label else shown(x)
