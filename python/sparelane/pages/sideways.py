"""A panel whose places are rows, with their names before them: for names that are long, or many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from sparelane.charts.looks import look
from sparelane.charts.panel import Line, Panel
from sparelane.pages.axis import Scale, fitting, shown
from sparelane.pages.marks import marker, told

WIDTH = 960
TOP, RIGHT, BOTTOM = 8, 16, 46
ROW = 24
# How wide a character of a name is, about; names take no more room than this.
CHARACTER, MOST_LEFT = 6.4, 460
# How far apart the points of one row stand.
APART = 9.0


def drawing(panel: Panel, number: int) -> tuple[str, list[dict[str, object]]]:
    """The drawing, and where its points are, with their words."""
    left = min(MOST_LEFT, 16 + CHARACTER * max(map(len, panel.places)))
    floor = TOP + ROW * len(panel.places)
    values = [value for line in panel.lines for value in (*line.y, *line.low, *line.high)]
    along = fitting(values, left, WIDTH - RIGHT, is_log=panel.is_y_log, from_zero=panel.begins_at_zero)
    parts = [*_grid(panel, along, left, floor)]
    points: list[dict[str, object]] = []
    for place, line in enumerate(panel.lines):
        shift = (place - (len(panel.lines) - 1) / 2) * APART
        at = [(along.at(y), _row(x) + shift) for x, y in zip(line.x, line.y, strict=True)]
        parts.append(f'<g class="line" data-line="{place}">{"".join(_line(line, at, along))}</g>')
        texts = [told(panel, line, which) for which in range(len(line.x))]
        points.append({"label": line.label, "at": [[round(x, 1), round(y, 1)] for x, y in at], "texts": texts})
    label = escape(f"{panel.title}: {panel.y_label}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {floor + BOTTOM}" role="img" aria-label="{label}" data-figure="{number}">'
        f'{"".join(parts)}<circle class="here" r="6" hidden="hidden" visibility="hidden"/></svg>',
        points,
    )


def _row(place: float) -> float:
    """The middle of a row."""
    return TOP + ROW * (place + 0.5)


def _grid(panel: Panel, along: Scale, left: float, floor: float) -> Iterator[str]:
    """Axes, ticks, and the names of the rows."""
    for tick in along.ticks(8):
        x = along.at(tick)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{floor}"/>'
        yield f'<text x="{x:.1f}" y="{floor + 15}" text-anchor="middle">{shown(tick)}</text>'
    for place, name in enumerate(panel.places):
        y = _row(place)
        yield f'<path class="grid" d="M{left:.1f} {y + ROW / 2:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{left - 8:.1f}" y="{y + 3.5:.1f}" text-anchor="end">{escape(name)}</text>'
    yield f'<path class="axis" d="M{left:.1f} {TOP}V{floor}H{WIDTH - RIGHT}"/>'
    middle = (left + WIDTH - RIGHT) / 2
    yield f'<text class="name" x="{middle:.1f}" y="{floor + 37}" text-anchor="middle">{escape(panel.y_label)}</text>'


def _line(line: Line, at: list[tuple[float, float]], along: Scale) -> Iterator[str]:
    mine = look(line.look)
    for (_, y), low, high in zip(at, line.low, line.high, strict=False):
        if math.isfinite(low) and math.isfinite(high):
            begin, end = along.at(low), along.at(high)
            ends = f"M{begin:.1f} {y - 3:.1f}v6M{end:.1f} {y - 3:.1f}v6"
            yield f'<path d="M{begin:.1f} {y:.1f}H{end:.1f}{ends}" fill="none" stroke="{mine.colour}"/>'
    for x, y in at:
        if math.isfinite(x):
            yield marker(mine.marker, x, y, mine.colour)
