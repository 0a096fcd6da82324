"""What service flows had: goodput and fairness, computed here alone, out of plain columns of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def floats(column: Any) -> Numbers:
    """A column of the simulator as floats; what is missing is not a number."""
    if not isinstance(column, tuple):
        return np.asarray(column, dtype=np.float64)
    values, mask = column
    return np.where(mask, values, np.nan)


def goodput_bps(start_s: Numbers, finish_s: Numbers, delivered_bytes: Numbers, end_s: float) -> float | None:
    """The payload that receivers held in sequence, in bits per second, from the first start to the last finish.

    Args:
        start_s: when each flow started.
        finish_s: when each finished; not a number for one that did not, which lasts to the run's end.
        delivered_bytes: the payload of each.
        end_s: when the run ended.

    Returns:
        `None` where no time has passed.
    """
    if not len(start_s):
        return None
    span_s = float(np.where(np.isnan(finish_s), end_s, finish_s).max() - start_s.min())
    return 8.0 * float(delivered_bytes.sum()) / span_s if span_s > 0 else None


def jain(rates: Numbers) -> float | None:
    """Jain's index of fairness; `None` for fewer than two rates, or where all are 0."""
    squares = float((rates * rates).sum())
    return float(rates.sum()) ** 2 / (len(rates) * squares) if len(rates) > 1 and squares > 0 else None


def open_rates_bps(start_s: Numbers, finish_s: Numbers, delivered_bytes: Numbers, end_s: float) -> Numbers:
    """The mean rates of the flows that were open at the run's end, bits per second."""
    lasted_s = end_s - start_s
    is_open = np.isnan(finish_s) & (lasted_s > 0)
    return 8.0 * delivered_bytes[is_open] / lasted_s[is_open]
