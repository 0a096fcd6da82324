"""The statements of the RTCP paper about its simulated datacentre, as numbers with bands.

The paper leaves open routing, queues, clocks, timeouts, the receive window, the largest window and the units of alpha
and delta. A setting is good if many statements hold under it; all have the same weight. Ties are broken by the distance
of RTCP's own numbers from those printed in Tables I and II (`distance`). Both criteria were chosen before the table of
the search was computed. Statements about printed numbers follow from the tables in the files of the experiments; the
others are in `setting.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane.papers.engine import declared
from sparelane.papers.engine.base import Outcome
from sparelane.papers.engine.rows import Key, joined
from sparelane.papers.rtcp import datacentre, schemes
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, MIXES, THROUGHPUT, Run

FOLDER = Path(__file__).parent
HALF = ("topology.over_subscription=2",)
INCAST_RTCP = ("scheme.rtcp.alpha=5000", "scheme.rtcp.initial_window=2")
BASELINES = ("NewReno", "DCTCP", "BBR", "TIMELY")
GROUPS = ("Table I", "Table II", "text", "preemption", "incast", "null", "baselines")

# Measured values by name: the case, the scheme and the unit, as in `RS RTCP mbps`.
Numbers = Mapping[str, float]


def _declaration(name: str) -> declared.Declaration:
    return declared.read(FOLDER / f"{name}.toml", schemes.METRICS, schemes.VALUES)


# The runs of Table II. The third one is RTCP's in Table I (OS), too.
TABLE_2: Sequence[Run] = schemes.compared_runs(_declaration("parameters").rest)[0]
PRINTED: Mapping[Key, float] = {
    key: number
    for name in ("random-sending", "over-subscription", "parameters")
    for key, number in _declaration(name).printed.items()
}


def runs_of(scheme: str) -> Mapping[str, Run]:
    """Returns the runs of a scheme by case, the first part of the names of its numbers."""
    found: dict[str, Run] = {}
    if scheme in (*BASELINES, "RTCP", "constant"):
        found["RS"] = Run(scheme)
    if scheme == "RTCP":
        found |= {f"OS {run.setting}": Run(scheme, run.settings) for run in TABLE_2}
    if scheme in BASELINES:
        found["OS"] = Run(scheme, HALF)
    if scheme == "constant":
        found[f"OS {TABLE_2[2].setting}"] = Run(scheme, HALF)
    if scheme in ("NewReno", "DCTCP", "RTCP", "constant"):
        found["preemption"] = Run(scheme, mix=MIXES["preemption"])
    if scheme in ("LEDBAT", "Vegas", "TIMELY", "DCTCP", "RTCP", "constant"):
        found["incast"] = Run(scheme, INCAST_RTCP if scheme == "RTCP" else (), mix=MIXES["incast"])
    return found


def numbers_of(case: str, scheme: str, outcome: Outcome, stop_s: float) -> dict[str, float]:
    """Returns throughput, mean delay and 99th percentile of a run, for each traffic class if there are two."""
    found = {}
    for name in ("urgent", "high-volume") if case == "preemption" else ("",):
        prefix = f"{case} {scheme} {name}".rstrip()
        found[f"{prefix} mbps"] = datacentre.throughput_mbps(outcome, stop_s, name)
        found[f"{prefix} us"] = datacentre.mean_us(outcome, name) or math.nan
        found[f"{prefix} p99"] = datacentre.tail_us(outcome, name) or math.nan
    return found


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the paper: a number that must lie in a band.

    Unlike a `Claim`, it is about the numbers of single runs, so that a search can check it without any rows.

    Attributes:
        text: the name of the number.
        value: computes the number; it is infinite or not a number if it cannot be computed.
        low: the smallest value that agrees with the paper.
        high: the largest value that agrees with the paper.
        group: the part of the paper that contains the statement.
    """

    text: str
    value: Callable[[Numbers], float]
    low: float
    high: float
    group: str

    def holds(self, numbers: Numbers) -> bool:
        """Returns true if the number is within the band."""
        return self.low <= self.value(numbers) <= self.high


def _quotient(numbers: Numbers, upper: str, lower: str) -> float:
    return numbers[upper] / numbers[lower] if numbers[lower] else math.nan


def _of_printed(case: str, scheme: str, setting: str, group: str) -> Iterator[Statement]:
    """Throughput and mean delay of a scheme over the printed numbers."""
    name = f"{case} {scheme}"
    for metric, average, unit, tolerated in ((THROUGHPUT, "", "mbps", 0.1), (DELAY, MEAN, "us", 0.2)):
        printed = PRINTED[Key(setting, metric, scheme, average)]
        text = f"{name}: {joined(average, metric.name, by=' ')}, of the printed"
        yield Statement(text, _over_number(f"{name} {unit}", printed), 1 - tolerated, 1 + tolerated, group)


def _over_number(name: str, printed: float) -> Callable[[Numbers], float]:
    return lambda numbers: numbers[name] / printed


def _tables() -> Iterator[Statement]:
    for scheme in BASELINES:
        yield from _of_printed("RS", scheme, "random sending", "baselines")
        yield from _of_printed("OS", scheme, "over-subscription", "baselines")
    yield from _of_printed("RS", "RTCP", "random sending", "Table I")
    for run in TABLE_2:
        yield from _of_printed(f"OS {run.setting}", "RTCP", run.setting, "Table II")


def _of_the_text() -> Iterator[Statement]:
    """The statements of `setting.toml`: quotients of two numbers, and factors between RTCP and a constant window."""
    for part in _declaration("setting").rest.sections("statements"):
        group = part.text("group")
        for text, *names, low, high in part.lists("rows"):
            value = _apart(*names) if len(names) == 1 else _over(*names)
            yield Statement(text, value, low, high, group)


def _over(upper: str, lower: str) -> Callable[[Numbers], float]:
    return lambda numbers: _quotient(numbers, upper, lower)


def _apart(case: str) -> Callable[[Numbers], float]:
    """The larger of the factors by which RTCP's throughput and mean delay differ from those of a constant window."""

    def factor(numbers: Numbers) -> float:
        ratios = [_quotient(numbers, f"{case} RTCP {unit}", f"{case} constant {unit}") for unit in ("mbps", "us")]
        return max(max(one, 1 / one) for one in ratios)

    return factor


STATEMENTS: Sequence[Statement] = (*_tables(), *_of_the_text())


def holding(numbers: Numbers, group: str | None = None) -> int:
    """Returns the number of statements that hold, in a group or in total."""
    return sum(one.holds(numbers) for one in STATEMENTS if group in (None, one.group))


def distance(numbers: Numbers) -> float:
    """Returns the distance of RTCP's numbers from the printed ones in Tables I and II.

    It is the root mean square of the logarithms of the ratios.
    """
    own = [one.value(numbers) for one in STATEMENTS if one.group in ("Table I", "Table II")]
    return math.sqrt(math.fsum(math.log(value) ** 2 for value in own) / len(own))
