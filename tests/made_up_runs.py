"""Made-up rows of runs for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping

from sparelane.results.rows import ALL, AxisValue, TidyRow
from sparelane.sweeps.metrics import Metric


def row(scheme: str, metric: Metric, value: float, seed: int, axes: Mapping[str, AxisValue]) -> TidyRow:
    """Returns a row with the value of a metric for a scheme, a seed and values of the axes."""
    setting = ", ".join(f"{key} = {value}" for key, value in axes.items())
    return TidyRow(
        "x", setting, scheme, ALL, metric.metric, metric.average, float(value), metric.unit, [seed], axes=dict(axes)
    )
