"""Draws horizontal panels as SVG, whose places are rows with names at the left, for long or many names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from sparelane.reports.charts.panel import Line, Panel, offsets, valued
from sparelane.reports.pages.axis import Scale, fitting, shown
from sparelane.reports.pages.marks import band, marker, stroke, text

# The widths of a full drawing and of a narrow one with short names; two narrow ones fit side by side.
WIDTH, NARROW = 960, 460
SHORT_NAME = 18
TOP, RIGHT, BOTTOM = 8, 16, 46
# The smallest height of a row, and the height that each line adds.
ROW, APART = 24, 14.0
# The approximate width of a character of a name, and the largest width of the column of names.
CHARACTER, MOST_LEFT = 7.4, 460


def drawing(panel: Panel, number: int) -> tuple[str, list[dict[str, object]]]:
    """The drawing, and its points with positions and texts for the script."""
    left = min(MOST_LEFT, 16 + CHARACTER * max(map(len, panel.places)))
    beside = offsets(panel)
    row = max(ROW, APART * (sum(map(bool, beside)) or 1))
    floor = TOP + row * len(panel.places)
    right = (WIDTH if is_wide(panel) else NARROW) - RIGHT
    along = fitting(valued(panel), left, right, is_log=panel.is_y_log, from_zero=panel.begins_at_zero)
    parts = [*_grid(panel, along, left, floor, row)]
    points: list[dict[str, object]] = []
    for place, (line, shift) in enumerate(zip(panel.lines, beside, strict=True)):
        if line.is_level:
            at = [(along.at(line.y[0]), (TOP + floor) / 2)]
            drawn = _level(line, along, floor)
        else:
            at = [(along.at(y), _middle(x + shift, row)) for x, y in zip(line.x, line.y, strict=True)]
            drawn = _line(line, at, along)
        parts.append(f'<g class="line" data-line="{place}">{"".join(drawn)}</g>')
        texts = [text(panel, line, which) for which in range(len(line.x))]
        points.append({"label": line.label, "at": [[round(x, 1), round(y, 1)] for x, y in at], "texts": texts})
    label = escape(f"{panel.title}: {panel.y_label}")
    return (
        f'<svg viewBox="0 0 {right + RIGHT} {floor + BOTTOM}" role="img" aria-label="{label}" data-figure="{number}">'
        f'{"".join(parts)}<circle class="here" r="6" hidden="hidden" visibility="hidden"/></svg>',
        points,
    )


def is_wide(panel: Panel) -> bool:
    """True if long names of rows require the full width of the page."""
    return max(map(len, panel.places)) > SHORT_NAME


def _middle(place: float, row: float) -> float:
    """The middle of a row."""
    return TOP + row * (place + 0.5)


def _level(line: Line, along: Scale, floor: float) -> Iterator[str]:
    """A reference line for the only value of a line, with its interval as a band."""
    if len(line.low):
        low, high = along.within(line.low[0]), along.within(line.high[0])
        yield f'<path d="M{low:.1f} {TOP}V{floor}H{high:.1f}V{TOP}z" {band(line)}/>'
    yield f'<path d="M{along.at(line.y[0]):.1f} {TOP}V{floor}" {stroke(line)}/>'


def _grid(panel: Panel, along: Scale, left: float, floor: float, row: float) -> Iterator[str]:
    """Axes, ticks, and the names of the rows."""
    for tick in along.ticks(round((along.end - along.begin) / 100)):
        x = along.at(tick)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{floor}"/>'
        yield f'<text x="{x:.1f}" y="{floor + 15}" text-anchor="middle">{shown(tick)}</text>'
    for place, name in enumerate(panel.places):
        y = _middle(place, row)
        yield f'<path class="grid" d="M{left:.1f} {y + row / 2:.1f}H{along.end}"/>'
        yield f'<text x="{left - 8:.1f}" y="{y + 3.5:.1f}" text-anchor="end">{escape(name)}</text>'
    yield f'<path class="axis" d="M{left:.1f} {TOP}V{floor}H{along.end}"/>'
    middle = (left + along.end) / 2
    yield f'<text class="name" x="{middle:.1f}" y="{floor + 37}" text-anchor="middle">{escape(panel.y_label)}</text>'


def _line(line: Line, at: list[tuple[float, float]], along: Scale) -> Iterator[str]:
    mine = line.look
    for (_, y), low, high in zip(at, line.low, line.high, strict=False):
        if math.isfinite(low) and math.isfinite(high):
            begin, end = along.within(low), along.within(high)
            # An interval that extends beyond the axis has no cap there.
            ends = "".join(
                f"M{at:.1f} {y - 3:.1f}v6" for at, value in ((begin, low), (end, high)) if at == along.at(value)
            )
            yield f'<path d="M{begin:.1f} {y:.1f}H{end:.1f}{ends}" fill="none" stroke="{mine.colour}"/>'
    for x, y in at:
        if math.isfinite(x):
            yield marker(mine.marker, x, y, mine.colour)
