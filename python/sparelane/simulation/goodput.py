"""Goodput and fairness of flows, from NumPy columns. Summaries, warnings and sweeps share these functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def floats(column: Any) -> Numbers:
    """A column of the simulator as floats. Missing values are NaN."""
    if not isinstance(column, tuple):
        return np.asarray(column, dtype=np.float64)
    values, mask = column
    return np.where(mask, values, np.nan)


def goodput_bps(start_s: Numbers, finish_s: Numbers, delivered_bytes: Numbers, end_s: float) -> float | None:
    """The goodput of flows together, from the first start to the last finish.

    Args:
        start_s: the start of each flow, seconds.
        finish_s: the finish of each flow, seconds; NaN for a flow that lasts to the end of the run.
        delivered_bytes: the payload that each receiver holds in sequence.
        end_s: the end of the run, seconds.

    Returns:
        Bits per second; `None` if the time span is zero.
    """
    if not len(start_s):
        return None
    span_s = float(np.where(np.isnan(finish_s), end_s, finish_s).max() - start_s.min())
    return 8.0 * float(delivered_bytes.sum()) / span_s if span_s > 0 else None


def jain(rates: Numbers) -> float | None:
    """Jain's fairness index; `None` for fewer than two rates, or if all rates are 0."""
    squares = float((rates * rates).sum())
    return float(rates.sum()) ** 2 / (len(rates) * squares) if len(rates) > 1 and squares > 0 else None


def open_rates_bps(start_s: Numbers, finish_s: Numbers, delivered_bytes: Numbers, end_s: float) -> Numbers:
    """The mean rates of the flows that were open at the end of the run, bits per second."""
    lasted_s = end_s - start_s
    is_open = np.isnan(finish_s) & (lasted_s > 0)
    return 8.0 * delivered_bytes[is_open] / lasted_s[is_open]
