"""Measures a path: DSCP of each class, delays, losses, rate, packet size, and the service of lower classes.

```python
from sparelane.wire import path as wire_path

report = wire_path.measure("host.example:7777", keys="keys", trust=[fingerprint])
print(report.rate_bps, [row.served for row in report.classes])
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sparelane import _native
from sparelane.common import percentiles
from sparelane.wire.addresses import resolve, split
from sparelane.wire.transfer import Options

__all__ = ["ClassReport", "Delays", "PathReport", "measure"]


@dataclass(frozen=True, slots=True)
class Delays:
    """Round-trip times of small packets, which are answered in class 0.

    Attributes:
        sent: the number of packets sent.
        loss: the share of packets without an answer.
        min_s, median_s: the minimum and the median, seconds; `None` without answers.
        p90_s, p99_s: percentiles, seconds; `None` for fewer than 10 and 100 answers.
    """

    sent: int
    loss: float
    min_s: float | None
    median_s: float | None
    p90_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class ClassReport:
    """The treatment of one class by a path.

    Attributes:
        number: the number of the class.
        dscp: the DSCP of the class.
        mark: the fate of the DSCP on the path: `kept`, `changed` or `unknown`.
        arrives_as: the DSCP that arrives, if it was changed.
        served: the service under a load in class 1: `first` is not affected, `worse` is delayed or lost although class
            0 is not, `alike` has the same service as class 0, and `unknown` means that there was no load.
        idle: delays without other traffic.
        loaded: delays during the load.
    """

    number: int
    dscp: int
    mark: str
    arrives_as: int | None
    served: str
    idle: Delays
    loaded: Delays | None


@dataclass(frozen=True, slots=True)
class PathReport:
    """The measurements of a path.

    Attributes:
        classes: one report per class.
        rate_bps: the rate of the bottleneck, from trains of packets and the load.
        load_bps: the rate of the load in class 1.
        arrived_bps: the rate at which the load arrived.
        tail_bps: the initial rate of a tail.
        mtu_bytes: the largest IP packet that is known to arrive, up to this host's setting.
        gso: true if this host's kernel sends batches.
        gro: true if this host's kernel receives batches.
    """

    classes: tuple[ClassReport, ...]
    rate_bps: int | None
    load_bps: int | None
    arrived_bps: int | None
    tail_bps: int | None
    mtu_bytes: int
    gso: bool
    gro: bool

    @property
    def verdict(self) -> str:
        """The conclusion: `priorities`, `one queue`, `marks lost` or `unknown`."""
        lower = self.classes[1:]
        if any(row.served == "worse" for row in lower):
            return "priorities"
        if any(row.mark == "changed" for row in lower):
            return "marks lost"
        if lower and all(row.served == "alike" for row in lower):
            return "one queue"
        return "unknown"


def _delays(native: dict[str, Any] | None) -> Delays | None:
    if native is None:
        return None
    found = Delays(**native)
    answers = round(found.sent * (1 - found.loss))
    return replace(
        found,
        p90_s=percentiles.if_enough(found.p90_s, 0.9, answers),
        p99_s=percentiles.if_enough(found.p99_s, 0.99, answers),
    )


def measure(
    to: str,
    *,
    keys: Path | str | None = None,
    trust: Sequence[str] = (),
    peer: str | None = None,
    options: Options | None = None,
    load_s: float = 1.0,
    most_rate: str = "1Gbps",
) -> PathReport:
    """Measures the path to the receiver at `to`, `HOST:PORT`. Takes some seconds.

    `keys`, `trust` and `peer` are as for `send`.

    For `load_s` seconds, class 1 is loaded slightly above the path's rate, with at most `most_rate`. If the path has
    one queue for all classes, this load disturbs other traffic. With `load_s=0` there is no load, and the service of
    the classes remains unknown.

    Raises:
        WireError: there is no connection, or one host does not trust the other.
    """
    settings = (options or Options()).native(keys, trust, peer)
    split(to)
    found = _native.measure_path(settings, partial(resolve, to), load_s, most_rate)
    rows = []
    for row in found.pop("classes"):
        idle = _delays(row["idle"])
        assert idle is not None
        rows.append(
            ClassReport(
                number=row["class"],
                dscp=row["dscp"],
                mark=row["mark"],
                arrives_as=row["arrives_as"],
                served=row["served"],
                idle=idle,
                loaded=_delays(row["loaded"]),
            )
        )
    return PathReport(classes=tuple(rows), **found)
