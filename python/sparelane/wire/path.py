"""What a path does: marks, delays, losses, rate, packet size, and whether lower classes are served worse.

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
from sparelane.wire.transfer import Options, check_address, resolve

__all__ = ["ClassReport", "Delays", "PathReport", "measure"]


@dataclass(frozen=True, slots=True)
class Delays:
    """Round trips of small packets; answers come in class 0.

    Attributes:
        sent: so many were sent.
        loss: the share of these without an answer.
        min_s, median_s: the least round trip and the median; `None` without answers.
        p90_s, p99_s: percentiles; `None` for fewer than 10 and 100 answers.
    """

    sent: int
    loss: float
    min_s: float | None
    median_s: float | None
    p90_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class ClassReport:
    """What a path does with one class.

    Attributes:
        number: the class.
        dscp: its code point.
        mark: `kept`, `changed` or `unknown`.
        arrives_as: the code point that arrives, where it is changed.
        served: beside a load in class 1: `first` does not feel it, `worse` waits or is lost where class 0 is not,
            `alike` fares as class 0 does; `unknown` without a load.
        idle: while nothing else was sent.
        loaded: beside the load.
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
    """What a path does.

    Attributes:
        classes: by class.
        rate_bps: of the narrowest link, by trains of packets and by the load.
        load_bps: the load that was sent in class 1.
        arrived_bps: the rate at which it arrived.
        tail_bps: the rate at which a tail would begin.
        mtu_bytes: the largest IP packet that is known to arrive; none larger than this host's setting is tried.
        gso: whether this host's kernel sends batches.
        gro: whether it receives them.
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
        """The report in a word: `priorities`, `one queue`, `marks lost` or `unknown`."""
        lower = self.classes[1:]
        if any(row.served == "worse" for row in lower):
            return "priorities"
        if any(row.mark == "changed" for row in lower):
            return "marks lost"
        if lower and all(row.served == "alike" for row in lower):
            return "one queue"
        return "unknown"


def _delays(told: dict[str, Any] | None) -> Delays | None:
    if told is None:
        return None
    found = Delays(**told)
    answers = round(found.sent * (1 - found.loss))
    return replace(
        found,
        p90_s=percentiles.if_enough(found.p90_s, 0.9, answers),
        p99_s=percentiles.if_enough(found.p99_s, 0.99, answers),
    )


def measure(
    to: str,
    *,
    keys: Path | str,
    trust: Sequence[str] = (),
    options: Options | None = None,
    load_s: float = 1.0,
    most_rate: str = "1Gbps",
) -> PathReport:
    """Measures the path to the receiver at `to`, `HOST:PORT`; takes some seconds.

    For `load_s` seconds a load a little above the path's rate, of `most_rate` at most, goes in class 1, which is felt
    by others where the path has one queue for all. With 0 there is none, and nothing is known of how classes are
    served.

    Raises:
        WireError: there is no connection, or one host does not trust the other.
    """
    native = (options or Options()).native(keys, trust)
    check_address(to)
    told = _native.measure_path(native, partial(resolve, to), load_s, most_rate)
    rows = []
    for row in told.pop("classes"):
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
    return PathReport(classes=tuple(rows), **told)
