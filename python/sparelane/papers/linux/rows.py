"""The quantities that are compared with Linux, and the keys of their rows."""

from __future__ import annotations

from sparelane.papers.engine.rows import Key, Metric
from sparelane.papers.linux.paths import Path

FCT = Metric("completion time", "s")
FLIGHT = Metric("mean in flight", "kB")
QUEUE = Metric("mean queue", "kB")
USE = Metric("use of the link", "%")
# Each metric with its column in the measured table, and the factor from the column's unit to the metric's.
METRICS = (
    (FCT, "completion_s", 1.0),
    (FLIGHT, "mean_in_flight_bytes", 1e-3),
    (QUEUE, "mean_queue_bytes", 1e-3),
    (USE, "link_use", 100.0),
)


def fct(path: Path, controller: str, size: int) -> Key:
    """Returns the key of a completion time. Sizes are numbered from 0."""
    return Key(path.name, FCT, controller, traffic=path.sizes[size])
