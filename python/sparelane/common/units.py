"""Formats numbers with units, such as `12.3 ms`, and reads quantities of scenarios, such as `10Mbps`."""

from __future__ import annotations

import math
import re

_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# For each unit that the parser of scenarios accepts: the factor to the unit of results, and that unit.
_SIZES = {
    "ps": (1e-12, "s"),
    "ns": (1e-9, "s"),
    "us": (1e-6, "s"),
    "ms": (1e-3, "s"),
    "s": (1.0, "s"),
    "min": (60.0, "s"),
    **{f"{prefix}{end}": (size, "bit/s") for prefix, size in _PREFIXES.items() for end in ("bps", "b/s")},
    "B": (1.0, "B"),
    "kB": (1e3, "B"),
    "KB": (1e3, "B"),
    "MB": (1e6, "B"),
    "GB": (1e9, "B"),
    "KiB": (1024.0, "B"),
    "MiB": (1024.0**2, "B"),
    "GiB": (1024.0**3, "B"),
    "packets": (1.0, "packets"),
    "packet": (1.0, "packets"),
    "bdp": (1.0, "bdp"),
    "%": (0.01, ""),
}
_TEXT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*")


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


def read(text: str) -> tuple[float, str] | None:
    """Reads a quantity of a scenario in the unit of results: "10Mbps" is (1e7, "bit/s"). `None` if it is not one."""
    # Unicode has two characters for micro, which the parser of scenarios reads as u.
    match = _TEXT.fullmatch(text.replace("\u00b5", "u").replace("\u03bc", "u"))
    if match is None or (match[2] and match[2] not in _SIZES):
        return None
    try:
        number = float(match[1])
    except ValueError:
        return None
    factor, unit = _SIZES[match[2]] if match[2] else (1.0, "")
    return number * factor, unit
