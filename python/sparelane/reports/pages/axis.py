"""Axes of drawings: positions of numbers, and ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Steps between ticks, times a power of ten.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# A logarithmic axis over fewer decades has three ticks per decade.
DECADES = 2.5


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis of a drawing.

    Attributes:
        low: the number at `begin`.
        high: the number at `end`.
        begin: the position of the first end, in the unit of the drawing.
        end: the position of the other end.
        is_log: true for a logarithmic axis.
    """

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The position of a number."""
        if self.is_log:
            share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def within(self, value: float) -> float:
        """The position of a number, limited to the ends of the axis."""
        low, high = sorted((self.begin, self.end))
        return min(max(self.at(value), low), high)

    def ticks(self, count: int = 5) -> list[float]:
        """About `count` round numbers along the axis."""
        if not self.is_log:
            step = _step((self.high - self.low) / count)
            first = math.ceil(self.low / step - 1e-9)
            return [place * step for place in range(first, int(self.high / step + 1e-9) + 1)]
        decades = math.log10(self.high / self.low)
        parts = (1, 2, 5) if decades < DECADES else (1,)
        every = max(1, round(decades / 7))
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [part * 10.0**power for power in powers if power % every == 0 for part in parts]
        return [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def fitting(
    values: Sequence[float], begin: float, end: float, *, is_log: bool, from_zero: bool, room: float = 0.06
) -> Scale:
    """An axis that covers all values, with a margin on both sides."""
    known = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)]
    if not known:
        return Scale(0.1, 1.0, begin, end, is_log) if is_log else Scale(0.0, 1.0, begin, end)
    low, high = min(known), max(known)
    if is_log:
        factor = max(1.05, (high / low) ** room)
        return Scale(low / factor, high * factor, begin, end, is_log=True)
    if from_zero and low >= 0:
        return Scale(0.0, high * (1 + room) or 1.0, begin, end)
    spread = (high - low) or abs(high) or 1.0
    return Scale(low - room * spread, high + room * spread, begin, end)


def shown(value: float) -> str:
    """Formats a number for an axis or a table, with four digits and a typographic minus sign."""
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        mantissa, _, power = f"{value:.3g}".partition("e")
        text = f"{mantissa}·10^{int(power)}" if power else mantissa
    else:
        text = f"{value:.4g}"
    return text.replace("-", "−")
