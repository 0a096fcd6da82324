"""Panels of throughput against delay, with a point for each flow or seed, and an ellipse for each scheme.

The ellipse of a scheme is the one-sigma contour of the normal distribution with the mean and the covariance of its
points. It contains 39 % of a normal distribution. The delay decreases from left to right, so better schemes are at the
upper right.

Source: Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular
Networks" (NSDI 2013); and Pantheon (Yan et al., USENIX ATC 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparelane.common.units import scale
from sparelane.reports.charts.panel import Line, Numbers, Panel

# The smallest number of points with an ellipse. For two points, it would be a line.
LEAST_POINTS = 3
CORNERS = 72
# The smallest span of an axis, as a share of its largest value, so that small differences look small.
LEAST_SPAN = 0.3
# The largest number of drawn points of a scheme.
MOST_DRAWN = 150
# For runs without measured delays: the label of the axis, the name in the title, and the note.
UNMEASURED = (
    "queueing delay",
    "queueing delay",
    "The delay is the last smoothed round-trip time of a flow less its least one. `[measure]` with `delays = true` in "
    "the scenario measures the delay of every packet, and its 95th percentile.",
)
NOTE = "The delay falls to the right, so that better is to the upper right."
ELLIPSE = (
    "Ellipses are the one-sigma contours of normal distributions with the mean and the covariance of the points; "
    "markers in them are the means."
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """The points of one line.

    Attributes:
        label: the name in the legend.
        group: lines of one group have the same colour.
        variant: distinguishes the lines of a group.
        delay_s: the delay of each point, seconds.
        rate_bps: the throughput of each point, bits per second.
    """

    label: str
    group: str
    variant: str
    delay_s: Numbers
    rate_bps: Numbers


def panel(name: str, title: str, delay: str, rate: str, clouds: Sequence[Cloud], of_what: str, note: str) -> Panel:
    """A panel of points and ellipses.

    Args:
        name: the name of the panel.
        title: the title of the panel.
        delay: the quantity of the horizontal axis.
        rate: the quantity of the vertical axis.
        clouds: the points of each line.
        of_what: the kind of points, in the plural, such as "flows".
        note: a further note for readers.
    """
    known = list(_known(clouds))
    size_s, unit_s = scale(max((float(one.delay_s.max()) for one in known), default=0.0), "s")
    size_bps, unit_bps = scale(max((float(one.rate_bps.max()) for one in known), default=0.0), "bit/s")
    lines = [_line(one, size_s, size_bps) for one in known]
    drawn = [point for line in lines for point in (*zip(line.x, line.y, strict=True), *line.outline)]
    left_out = any(len(one.delay_s) > MOST_DRAWN for one in known)
    parts = [
        NOTE,
        ELLIPSE if any(line.outline for line in lines) else "",
        f"Points are {of_what}{f', of which {MOST_DRAWN} per scheme are drawn' if left_out else ''}.",
        note,
    ]
    return Panel(
        name,
        title,
        f"{delay} ({unit_s})",
        f"{rate} ({unit_bps})",
        lines,
        note=" ".join(part for part in parts if part),
        x_range=_around([x for x, _ in drawn]),
        y_range=_around([y for _, y in drawn]),
        is_x_inverted=True,
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis around non-negative values, with a margin on both sides."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = max(high - low, LEAST_SPAN * high) or 1.0
    room = (span - (high - low)) / 2 + 0.08 * span
    return max(0.0, low - room), high + room


def _known(clouds: Sequence[Cloud]) -> Iterator[Cloud]:
    for one in clouds:
        is_known = np.isfinite(one.delay_s) & np.isfinite(one.rate_bps)
        if is_known.any():
            yield Cloud(one.label, one.group, one.variant, one.delay_s[is_known], one.rate_bps[is_known])


def _line(cloud: Cloud, size_s: float, size_bps: float) -> Line:
    x, y = cloud.delay_s / size_s, cloud.rate_bps / size_bps
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_DRAWN)).round().astype(int))
    outline = ellipse(x, y) if len(x) >= LEAST_POINTS else []
    return Line(
        cloud.label,
        x[shown].tolist(),
        y[shown].tolist(),
        group=cloud.group,
        variant=cloud.variant,
        is_marked=True,
        is_joined=False,
        outline=outline,
        centre=(float(x.mean()), float(y.mean())) if outline else None,
    )


def ellipse(x: Numbers, y: Numbers) -> list[tuple[float, float]]:
    """The one-sigma contour of the normal distribution that fits the points, as a closed polygon.

    The points m + L (cos t, sin t), where m is the mean and L Lᵀ the covariance with divisor n - 1.
    """
    covariance = np.cov(x, y)
    # Points on a line have a covariance without a Cholesky factor; the square root by eigenvalues always exists.
    sizes, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(sizes, 0.0))
    turn = np.linspace(0.0, 2.0 * np.pi, CORNERS, endpoint=False)
    around = root @ np.stack((np.cos(turn), np.sin(turn)))
    return [(float(x.mean() + dx), float(y.mean() + dy)) for dx, dy in around.T]
