"""What the paper states of its simulated datacentre, as numbers with bands: the objective of the search for a setting.

The paper leaves open routing, queues, clocks, timeouts, the receive window, the largest window and the units of alpha
and delta. A setting is good if many statements hold under it, all weighing the same. Ties are broken by how far RTCP's
own numbers of Tables I and II are from the printed ones (`distance`). Both were written down before the table of the
search was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparelane.papers.engine.base import Outcome
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import Printed, Run

HALF = ("topology.over_subscription=2",)

RANDOM_SENDING: Mapping[str, Printed] = {
    "NewReno": Printed(4300.38, 85.4),
    "DCTCP": Printed(3955.55, 40.8),
    "BBR": Printed(3936.28, 87.7),
    "TIMELY": Printed(4355.48, 107.9),
    "RTCP": Printed(4362.38, 14.6),
}
OVER_SUBSCRIPTION: Mapping[str, Printed] = {
    "NewReno": Printed(2753.2, 129.9),
    "DCTCP": Printed(2528.9, 56.6),
    "BBR": Printed(2418.56, 113.6),
    "TIMELY": Printed(2839.13, 156.8),
    "RTCP": Printed(2787.08, 23.4),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of Table II."""

    alpha: int
    delta: int
    printed: Printed

    @property
    def name(self) -> str:
        """How rows call it."""
        return f"alpha {self.alpha}, delta {self.delta}"

    @property
    def settings(self) -> tuple[str, ...]:
        """The overrides."""
        return (*HALF, f"scheme.rtcp.alpha={self.alpha}", f"scheme.rtcp.delta={self.delta}")


TABLE_2 = (
    Pair(300, 10_000, Printed(3180.16, 55.6)),
    Pair(600, 10_000, Printed(3208.76, 30.2)),
    Pair(1000, 10_000, OVER_SUBSCRIPTION["RTCP"]),
    Pair(1000, 6_000, Printed(3028.40, 24.6)),
    Pair(1000, 3_000, Printed(3073.12, 29.9)),
)

# Both flows start at random in a tenth of a millisecond, the urgent one after the other.
BOTH_FLOWS = (
    '[{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="high-volume", spread="100us"}, '
    '{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="urgent", start="200us", spread="100us"}]'
)
INCAST = '{kind="bulk", pairs="incast", scheme="SCHEME", spread="1ms"}'
INCAST_RTCP = ("scheme.rtcp.alpha=5000", "scheme.rtcp.initial_window=2")

# What is measured, by name: `RS RTCP mbps` and the like.
Numbers = Mapping[str, float]


def runs_of(scheme: str) -> Mapping[str, Run]:
    """The runs in which a scheme takes part, by the first word of its numbers' names."""
    found: dict[str, Run] = {}
    if scheme == "RTCP":
        found["RS"] = Run(scheme)
        found |= {f"OS {pair.name}": Run(scheme, pair.settings) for pair in TABLE_2}
    elif scheme in RANDOM_SENDING:
        found |= {"RS": Run(scheme), "OS": Run(scheme, HALF)}
    if scheme == "constant":
        found |= {"RS": Run(scheme), f"OS {TABLE_2[2].name}": Run(scheme, HALF)}
    if scheme in ("NewReno", "DCTCP", "RTCP", "constant"):
        found["preemption"] = Run(scheme, (), mix=BOTH_FLOWS)
    if scheme in ("LEDBAT", "Vegas", "TIMELY", "DCTCP", "RTCP", "constant"):
        found["incast"] = Run(scheme, INCAST_RTCP if scheme == "RTCP" else (), mix=INCAST)
    return found


def numbers_of(case: str, scheme: str, outcome: Outcome, stop_s: float) -> dict[str, float]:
    """Throughput, mean delay and 99th percentile of one run, by class where there are two."""
    found = {}
    classes = ("urgent", "high-volume") if case == "preemption" else (None,)
    for name in classes:
        prefix = f"{case} {scheme}" if name is None else f"{case} {scheme} {name}"
        found[f"{prefix} mbps"] = datacentre.throughput_mbps(outcome, stop_s, name)
        found[f"{prefix} us"] = datacentre.mean_us(outcome, name) or math.nan
        found[f"{prefix} p99"] = datacentre.quantile_us(outcome, 0.99, name) or math.nan
    return found


@dataclass(frozen=True, slots=True)
class Statement:
    """One of the paper's, as a number that must lie in a band.

    Attributes:
        text: what the number is.
        value: the number; infinite or not a number where it cannot be computed.
        low: the least that agrees.
        high: the most that agrees.
        group: which part of the paper makes it.
    """

    text: str
    value: Callable[[Numbers], float]
    low: float
    high: float
    group: str

    def holds(self, numbers: Numbers) -> bool:
        """Whether the number lies in the band."""
        return self.low <= self.value(numbers) <= self.high


def _quotient(numbers: Numbers, upper: str, lower: str) -> float:
    return numbers[upper] / numbers[lower] if numbers[lower] else math.nan


def _over(upper: str, lower: str) -> Callable[[Numbers], float]:
    return lambda numbers: _quotient(numbers, upper, lower)


def _beside(name: str, printed: float) -> Callable[[Numbers], float]:
    return lambda numbers: numbers[name] / printed


def _printed(case: str, scheme: str, printed: Printed, group: str) -> tuple[Statement, Statement]:
    name = f"{case} {scheme}"
    assert printed.mbps is not None
    assert printed.us is not None
    return (
        Statement(f"{name}: throughput, of the printed", _beside(f"{name} mbps", printed.mbps), 0.9, 1.1, group),
        Statement(f"{name}: mean delay, of the printed", _beside(f"{name} us", printed.us), 0.8, 1.2, group),
    )


def _tables() -> list[Statement]:
    found: list[Statement] = []
    for scheme in RANDOM_SENDING:
        found += _printed("RS", scheme, RANDOM_SENDING[scheme], "Table I" if scheme == "RTCP" else "baselines")
        if scheme != "RTCP":
            found += _printed("OS", scheme, OVER_SUBSCRIPTION[scheme], "baselines")
    for pair in TABLE_2:
        found += _printed(f"OS {pair.name}", "RTCP", pair.printed, "Table II")
    return found


def _apart(case: str) -> Callable[[Numbers], float]:
    """The larger of the factors by which RTCP's throughput and mean delay differ from those of a constant window."""

    def factor(numbers: Numbers) -> float:
        ratios = [_quotient(numbers, f"{case} RTCP {of}", f"{case} constant {of}") for of in ("mbps", "us")]
        return max(max(one, 1 / one) for one in ratios)

    return factor


_OS = f"OS {TABLE_2[2].name} RTCP"
_PREEMPTION = "preemption RTCP"

STATEMENTS: Sequence[Statement] = (
    *_tables(),
    Statement("RS: RTCP's throughput, of BBR's", _over("RS RTCP mbps", "RS BBR mbps"), 1.0, 1.2, "text"),
    Statement("RS: RTCP's mean delay, of DCTCP's", _over("RS RTCP us", "RS DCTCP us"), 0.0, 0.5, "text"),
    Statement("RS: RTCP's 99th, of NewReno's", _over("RS RTCP p99", "RS NewReno p99"), 0.0, 0.24, "text"),
    Statement("OS: RTCP's throughput, of TIMELY's", _over(f"{_OS} mbps", "OS TIMELY mbps"), 0.95, 1.05, "text"),
    Statement("OS: RTCP's mean delay, of TIMELY's", _over(f"{_OS} us", "OS TIMELY us"), 0.0, 0.3, "text"),
    *(
        Statement(
            f"preemption: RTCP's urgent throughput, of {other}'s",
            _over(f"{_PREEMPTION} urgent mbps", f"preemption {other} urgent mbps"),
            4.0,
            7.0,
            "preemption",
        )
        for other in ("NewReno", "DCTCP")
    ),
    Statement(
        "preemption: RTCP's high-volume throughput, of NewReno's",
        _over(f"{_PREEMPTION} high-volume mbps", "preemption NewReno high-volume mbps"),
        0.88,
        0.98,
        "preemption",
    ),
    *(
        Statement(
            f"preemption, {name}: RTCP's {what}, of {other}'s",
            _over(f"{_PREEMPTION} {name} {unit}", f"preemption {other} {name} {unit}"),
            share - 0.1,
            share + 0.1,
            "preemption",
        )
        for name, what, unit, other, share in (
            ("urgent", "mean delay", "us", "DCTCP", 0.315),
            ("high-volume", "mean delay", "us", "DCTCP", 0.356),
            ("urgent", "99th", "p99", "NewReno", 0.25),
            ("high-volume", "99th", "p99", "NewReno", 0.25),
            ("high-volume", "99th", "p99", "DCTCP", 0.5),
        )
    ),
    *(
        Statement(
            f"incast: RTCP's 99th, of {other}'s", _over("incast RTCP p99", f"incast {other} p99"), 0.0, 0.7, "incast"
        )
        for other in ("LEDBAT", "Vegas", "TIMELY")
    ),
    *(
        Statement(f"{case}: RTCP's throughput or delay, from a constant window's", _apart(case), 1.2, math.inf, "null")
        for case in ("RS", f"OS {TABLE_2[2].name}", "incast")
    ),
    Statement(
        "preemption: RTCP's urgent throughput, of a constant window's",
        _over(f"{_PREEMPTION} urgent mbps", "preemption constant urgent mbps"),
        1.2,
        math.inf,
        "null",
    ),
)
GROUPS = ("Table I", "Table II", "text", "preemption", "incast", "null", "baselines")


def holding(numbers: Numbers, group: str | None = None) -> int:
    """How many statements hold, of a group or of all."""
    return sum(one.holds(numbers) for one in STATEMENTS if group in (None, one.group))


def distance(numbers: Numbers) -> float:
    """The root of the mean square of the logarithms of RTCP's numbers over the printed ones, in Tables I and II."""
    own = [one.value(numbers) for one in STATEMENTS if one.group in ("Table I", "Table II")]
    return math.sqrt(math.fsum(math.log(value) ** 2 for value in own) / len(own))
