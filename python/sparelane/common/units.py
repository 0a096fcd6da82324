"""Formats numbers with units, such as `12.3 ms`."""

from __future__ import annotations

import math

_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


def scale(largest: float, unit: str) -> tuple[float, str]:
    """The divisor for numbers up to `largest`, and the scaled unit."""
    for size, name in _SCALES.get(unit, ()):
        if abs(largest) >= size:
            return size, name
    return _SCALES[unit][-1] if unit in _SCALES and largest else (1.0, unit)


def quantity(value: float, unit: str) -> str:
    """Formats a number with up to four digits and a scaled unit."""
    if not math.isfinite(value):
        return "–"
    size, name = scale(value, unit)
    text = f"{value / size:.4g}" if unit != "%" else f"{value:.2f}"
    return f"{text} {name}".rstrip().replace("-", "−")
