"""Draws panels as SVG for pages. The drawings need no script; the page's script reads the numbers stored with them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from html import escape

from sparelane.reports.charts.panel import Line, Panel, offsets, own_ticks, valued
from sparelane.reports.pages import horizontal
from sparelane.reports.pages.axis import Scale, fitting, shown
from sparelane.reports.pages.marks import band, key, marker, stroke, text, where

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 46
# The height of panels over time, which are stacked with a common axis.
TIME_HEIGHT = 220
# Additional height for rotated names of places.
TURNED = 46
LONG_NAMES = 44
# The largest number of markers of a line that is not marked at each point.
MARKERS = 10
# A panel with at most this many points has a table of its numbers.
TABLE_POINTS = 120


def figure(panel: Panel, number: int) -> str:
    """A panel with its legend, its drawing, and its numbers."""
    drawing, points = horizontal.drawing(panel, number) if panel.is_horizontal else _drawing(panel, number)
    kind = ' class="horizontal"' if panel.is_horizontal and horizontal.is_wide(panel) else ""
    legend = "".join(
        f'<button type="button" class="key" data-line="{place}" aria-pressed="true">{key(line)}'
        f"<span>{escape(line.label)}</span></button>"
        for place, line in enumerate(panel.lines)
    )
    legend = f'<div class="legend">{legend}</div>' if panel.needs_legend else ""
    note = f'<p class="note">{escape(panel.note)}</p>' if panel.note else ""
    data = json.dumps(points, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure id="figure-{number}"{kind}><figcaption>{escape(panel.title)}</figcaption>'
        f"{legend}"
        f'<div class="plot" tabindex="0" role="group" aria-label="{escape(panel.title)}: arrow keys walk along it">'
        f'{drawing}<div class="tip" role="status" hidden></div></div>'
        f'<script type="application/json">{data}</script>{note}{_table(panel)}</figure>'
    )


def _drawing(panel: Panel, number: int) -> tuple[str, list[dict[str, object]]]:
    is_turned = sum(map(len, panel.places)) > LONG_NAMES
    bottom = BOTTOM + (TURNED if is_turned else 0)
    height = (TIME_HEIGHT if panel.is_over_time else HEIGHT) + (TURNED if is_turned else 0)
    across, up = _scales(panel, height - bottom)
    parts = [*_grid(panel, across, up, height, bottom, is_turned=is_turned)]
    points: list[dict[str, object]] = []
    for place, (line, beside) in enumerate(zip(panel.lines, offsets(panel), strict=True)):
        if line.is_level:
            at = [((LEFT + WIDTH - RIGHT) / 2, up.at(line.y[0]))]
            drawn = _level(line, up)
        else:
            at = [(across.at(x + beside), up.at(y)) for x, y in zip(line.x, line.y, strict=True)]
            drawn = _line(line, at, across, up)
        parts.append(f'<g class="line" data-line="{place}">{"".join(drawn)}</g>')
        texts = [text(panel, line, which) for which in range(len(line.x))]
        rounded = [[round(x, 1), round(y, 1) if math.isfinite(y) else None] for x, y in at]
        points.append({"label": line.label, "at": rounded, "texts": texts})
    label = escape(f"{panel.title}: {panel.y_label} by {panel.x_label}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}" data-figure="{number}">'
        f'{"".join(parts)}<circle class="here" r="6" hidden="hidden" visibility="hidden"/></svg>',
        points,
    )


def _scales(panel: Panel, floor: float) -> tuple[Scale, Scale]:
    left, right = (WIDTH - RIGHT, LEFT) if panel.is_x_inverted else (LEFT, WIDTH - RIGHT)
    outlines = [point for line in panel.lines for point in line.outline]
    if panel.places:
        across = Scale(-0.5, len(panel.places) - 0.5, left, right)
    elif panel.x_range is not None:
        across = Scale(*panel.x_range, left, right, is_log=panel.is_x_log)
    else:
        values = [x for line in panel.lines for x in line.x] + [x for x, _ in outlines]
        across = fitting(values, left, right, is_log=panel.is_x_log, from_zero=False, room=0.04)
    heights = [*valued(panel), *(y for _, y in outlines)]
    if panel.y_range is not None:
        return across, Scale(*panel.y_range, floor, TOP)
    return across, fitting(heights, floor, TOP, is_log=panel.is_y_log, from_zero=panel.begins_at_zero)


def _grid(panel: Panel, across: Scale, up: Scale, height: float, bottom: float, *, is_turned: bool) -> Iterator[str]:
    """The axes with ticks and labels."""
    floor, right = height - bottom, WIDTH - RIGHT
    for tick in up.ticks():
        y = up.at(tick)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{shown(tick)}</text>'
    if panel.places:
        for place, name in enumerate(panel.places):
            x = across.at(place)
            if is_turned:
                turned = f'transform="rotate(-28 {x:.1f} {floor + 14})" text-anchor="end"'
            else:
                turned = 'text-anchor="middle"'
            yield f'<text x="{x:.1f}" y="{floor + 15}" {turned}>{escape(name)}</text>'
    else:
        for tick in own_ticks(panel) or across.ticks():
            x = across.at(tick)
            yield f'<path class="grid" d="M{x:.1f} {TOP}V{floor}"/>'
            yield f'<text x="{x:.1f}" y="{floor + 15}" text-anchor="middle">{shown(tick)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{right}"/>'
    middle = (LEFT + right) / 2
    yield f'<text class="name" x="{middle}" y="{height - 8}" text-anchor="middle">{escape(panel.x_label)}</text>'
    y = (TOP + floor) / 2
    turned = f'transform="rotate(-90 14 {y})" text-anchor="middle"'
    yield f'<text class="name" x="14" y="{y}" {turned}>{escape(panel.y_label)}</text>'


def _level(line: Line, up: Scale) -> Iterator[str]:
    """A reference line for the only value of a line, with its interval as a band."""
    right = WIDTH - RIGHT
    if len(line.low):
        low, high = up.within(line.low[0]), up.within(line.high[0])
        yield f'<path d="M{LEFT} {low:.1f}H{right}V{high:.1f}H{LEFT}z" {band(line)}/>'
    yield f'<path d="M{LEFT} {up.at(line.y[0]):.1f}H{right}" {stroke(line)}/>'


def _line(line: Line, at: Sequence[tuple[float, float]], across: Scale, up: Scale) -> Iterator[str]:
    mine = line.look
    if line.outline:
        around = _path([(across.at(x), up.at(y)) for x, y in line.outline], is_step=False)
        yield f'<path d="{around}z" {band(line)}/><path d="{around}z" {stroke(line)}/>'
    if len(line.low) and not line.is_marked:
        yield from _band(line, at, up)
    if line.is_filled and len(at) > 1:
        yield f'<path d="{_area(at, up.at(0.0), is_step=line.is_step)}" {band(line)}/>'
    if line.is_joined and len(at) > 1:
        yield f'<path d="{_path(at, is_step=line.is_step)}" {stroke(line)}/>'
    for (x, _), low, high in zip(at, line.low, line.high, strict=False) if line.is_marked else ():
        if math.isfinite(low) and math.isfinite(high):
            below, above = up.within(low), up.within(high)
            # An interval that extends beyond the axis has no cap there.
            ends = "".join(
                f"M{x - 3:.1f} {end:.1f}h6" for end, value in ((below, low), (above, high)) if end == up.at(value)
            )
            yield f'<path d="M{x:.1f} {below:.1f}V{above:.1f}{ends}" fill="none" stroke="{mine.colour}"/>'
    every = 1 if line.is_marked else max(1, len(at) // MARKERS)
    for x, y in () if line.is_filled else at[::every]:
        if math.isfinite(y):
            yield marker(mine.marker, x, y, mine.colour, is_faint=bool(line.outline))
    if line.centre is not None:
        yield marker(mine.marker, across.at(line.centre[0]), up.at(line.centre[1]), mine.colour)


def _band(line: Line, at: Sequence[tuple[float, float]], up: Scale) -> Iterator[str]:
    """The area between the ends of the intervals."""
    ends = [
        (x, up.within(low), up.within(high))
        for (x, _), low, high in zip(at, line.low, line.high, strict=True)
        if math.isfinite(low) and math.isfinite(high)
    ]
    if len(ends) > 1:
        lower = _path([(x, low) for x, low, _ in ends], is_step=line.is_step)
        # The upper edge is drawn backwards, where a step moves vertically first.
        upper = "".join(
            f"V{high:.1f}H{x:.1f}" if line.is_step else f"L{x:.1f} {high:.1f}" for x, _, high in reversed(ends)
        )
        yield f'<path d="{lower}{upper}z" {band(line)}/>'


def _area(at: Sequence[tuple[float, float]], floor: float, *, is_step: bool) -> str:
    """The path around the area between a line and `floor`, in one piece for each stretch with values."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in at:
        if math.isfinite(y):
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return "".join(
        f"{_path(piece, is_step=is_step)}V{floor:.1f}H{piece[0][0]:.1f}z" for piece in pieces if len(piece) > 1
    )


def _path(at: Sequence[tuple[float, float]], *, is_step: bool) -> str:
    parts = []
    is_broken = True
    for x, y in at:
        if not math.isfinite(y):
            is_broken = True
        elif is_broken:
            parts.append(f"M{x:.1f} {y:.1f}")
            is_broken = False
        else:
            parts.append(f"H{x:.1f}V{y:.1f}" if is_step else f"L{x:.1f} {y:.1f}")
    return "".join(parts)


def _table(panel: Panel) -> str:
    """A table of the numbers of a panel, if there are few."""
    if not all(line.is_marked for line in panel.lines) or sum(len(line.x) for line in panel.lines) > TABLE_POINTS:
        return ""
    rows = "".join(
        f"<tr><td>{escape(line.label)}</td><td>{escape(where(panel, line, which, has_label=False))}</td>"
        f'<td class="number">{shown(line.y[which])}</td><td class="number">{_interval(line, which)}</td></tr>'
        for line in panel.lines
        for which in range(len(line.x))
    )
    heads = "".join(f"<th>{escape(text)}</th>" for text in ("", panel.x_label, panel.y_label, "interval"))
    return f"<details><summary>numbers</summary><table><tr>{heads}</tr>{rows}</table></details>"


def _interval(line: Line, which: int) -> str:
    return f"{shown(line.low[which])} to {shown(line.high[which])}" if len(line.low) else ""
