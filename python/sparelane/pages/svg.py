"""Panels as drawings in a page: SVG that needs no script, with the numbers beside it for the script and for readers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from html import escape

from sparelane.charts.looks import look
from sparelane.charts.panel import Line, Panel, own_ticks
from sparelane.pages import sideways
from sparelane.pages.axis import Scale, fitting, shown
from sparelane.pages.marks import key, marker, stroke, told

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 46
# Room below for names of places that are set aslant.
ASLANT = 40
LONG_NAMES = 44
# A line that is not marked point by point has so many markers, at the most.
MARKERS = 10
# A table of numbers is given where a panel has no more than this.
TABLE_POINTS = 120
# How far apart points at one place are drawn that have intervals.
APART = 4.0


def figure(panel: Panel, number: int) -> str:
    """A panel with its legend, its drawing, and its numbers."""
    drawing, points = sideways.drawing(panel, number) if panel.is_sideways else _drawing(panel, number)
    kind = ' class="sideways"' if panel.is_sideways else ""
    legend = "".join(
        f'<button type="button" class="key" data-line="{place}" aria-pressed="true">{key(line)}'
        f"<span>{escape(line.label)}</span></button>"
        for place, line in enumerate(panel.lines)
    )
    note = f'<p class="note">{escape(panel.note)}</p>' if panel.note else ""
    data = json.dumps(points, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure id="figure-{number}"{kind}><figcaption>{escape(panel.title)}</figcaption>'
        f'<div class="legend">{legend}</div>'
        f'<div class="plot" tabindex="0" role="group" aria-label="{escape(panel.title)}: arrow keys walk along it">'
        f'{drawing}<div class="tip" role="status" hidden></div></div>'
        f'<script type="application/json">{data}</script>{note}{_table(panel)}</figure>'
    )


def _drawing(panel: Panel, number: int) -> tuple[str, list[dict[str, object]]]:
    is_aslant = sum(map(len, panel.places)) > LONG_NAMES
    bottom = BOTTOM + (ASLANT if is_aslant else 0)
    height = HEIGHT + (ASLANT if is_aslant else 0)
    across, up = _scales(panel, height - bottom)
    parts = [*_grid(panel, across, up, height, bottom, is_aslant=is_aslant)]
    points: list[dict[str, object]] = []
    with_intervals = sum(len(line.low) > 0 for line in panel.lines)
    for place, line in enumerate(panel.lines):
        shift = (place - (len(panel.lines) - 1) / 2) * APART if with_intervals > 1 else 0.0
        at = [(across.at(x) + shift, up.at(y)) for x, y in zip(line.x, line.y, strict=True)]
        parts.append(f'<g class="line" data-line="{place}">{"".join(_line(line, at, up))}</g>')
        texts = [told(panel, line, which) for which in range(len(line.x))]
        points.append({"label": line.label, "at": [[round(x, 1), round(y, 1)] for x, y in at], "texts": texts})
    label = escape(f"{panel.title}: {panel.y_label} by {panel.x_label}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}" data-figure="{number}">'
        f'{"".join(parts)}<circle class="here" r="6" hidden="hidden" visibility="hidden"/></svg>',
        points,
    )


def _scales(panel: Panel, floor: float) -> tuple[Scale, Scale]:
    right = WIDTH - RIGHT
    if panel.places:
        across = Scale(-0.5, len(panel.places) - 0.5, LEFT, right)
    else:
        values = [x for line in panel.lines for x in line.x]
        across = fitting(values, LEFT, right, is_log=panel.is_x_log, from_zero=False, room=0.04)
    heights = [y for line in panel.lines for y in (*line.y, *line.low, *line.high)]
    return across, fitting(heights, floor, TOP, is_log=panel.is_y_log, from_zero=panel.begins_at_zero)


def _grid(panel: Panel, across: Scale, up: Scale, height: float, bottom: float, *, is_aslant: bool) -> Iterator[str]:
    """Axes, ticks, and what they are."""
    floor, right = height - bottom, WIDTH - RIGHT
    for tick in up.ticks():
        y = up.at(tick)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{shown(tick)}</text>'
    if panel.places:
        for place, name in enumerate(panel.places):
            x = across.at(place)
            if is_aslant:
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


def _line(line: Line, at: Sequence[tuple[float, float]], up: Scale) -> Iterator[str]:
    mine = look(line.look)
    if line.is_joined and len(at) > 1:
        yield f'<path d="{_path(at, is_step=line.is_step)}" {stroke(line)}/>'
    for (x, _), low, high in zip(at, line.low, line.high, strict=False):
        if math.isfinite(low) and math.isfinite(high):
            below, above = up.at(low), up.at(high)
            ends = f"M{x - 3:.1f} {below:.1f}h6M{x - 3:.1f} {above:.1f}h6"
            yield f'<path d="M{x:.1f} {below:.1f}V{above:.1f}{ends}" fill="none" stroke="{mine.colour}"/>'
    every = 1 if line.is_marked else max(1, len(at) // MARKERS)
    for x, y in at[::every]:
        if math.isfinite(y):
            yield marker(mine.marker, x, y, mine.colour)


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
    """The numbers of a panel, where they are few."""
    if not all(line.is_marked for line in panel.lines) or sum(len(line.x) for line in panel.lines) > TABLE_POINTS:
        return ""
    rows = "".join(
        f"<tr><td>{escape(line.label)}</td><td>{escape(panel.places[int(x)] if panel.places else shown(x))}</td>"
        f'<td class="number">{shown(line.y[which])}</td><td class="number">{_interval(line, which)}</td></tr>'
        for line in panel.lines
        for which, x in enumerate(line.x)
    )
    heads = "".join(f"<th>{escape(text)}</th>" for text in ("", panel.x_label, panel.y_label, "interval"))
    return f"<details><summary>numbers</summary><table><tr>{heads}</tr>{rows}</table></details>"


def _interval(line: Line, which: int) -> str:
    return f"{shown(line.low[which])} to {shown(line.high[which])}" if len(line.low) else ""
