"""What the testbed on Linux is held to: the paper's words of RTCP's place, and how close the simulator is to Linux."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparelane.papers.engine.base import Claim
from sparelane.papers.engine.claims import FACTOR, Value, at_least, at_most
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, MissingNumberError
from sparelane.papers.rtcp.testbed_runs import FIG_7, SETTINGS, Run, Setting

# What is said to be below or above something is neither where it is the same.
BELOW, ABOVE = at_most(0.9999), at_least(1.0001)


def of_the_paper(reasons: Mapping[tuple[Setting, str], str]) -> Iterator[Claim]:
    """The paper's words of RTCP, for Linux.

    Args:
        reasons: why they do not hold there, by setting and class of traffic.
    """
    for setting in SETTINGS:
        what, order, band = ("requests", "faster", BELOW) if setting is FIG_7 else ("flows", "slower", ABOVE)
        others = [scheme for scheme in setting.schemes if scheme != "RTCP"]
        yield Claim(
            f"{setting.name}, on Linux: RTCP's urgent {what} are the fastest: their 99th percentile over the least "
            "other's",
            on_linux(setting, "urgent", others),
            full=BELOW,
            reason=reasons.get((setting, "urgent"), NOT_EXPLAINED),
        )
        yield Claim(
            f"{setting.name}, on Linux: RTCP's high-volume {what} are {order} than Cubic's: their 99th percentile over "
            "Cubic's",
            on_linux(setting, "high-volume", ["Cubic"]),
            full=band,
            reason=reasons.get((setting, "high-volume"), NOT_EXPLAINED),
        )


def on_linux(setting: Setting, traffic: str, others: Sequence[str]) -> Value:
    """RTCP's 99th percentile over the least of others', on Linux."""

    def number(evaluation: Evaluation, scheme: str) -> float:
        key: Key = Run(setting, scheme).percentile(traffic, 99)
        return evaluation.paper(key)

    def value(evaluation: Evaluation) -> float:
        return number(evaluation, "RTCP") / min(number(evaluation, scheme) for scheme in others)

    value.unit = FACTOR  # type: ignore[attr-defined]
    return value


def median(evaluation: Evaluation) -> float:
    """The median difference from Linux, in percent and without signs."""
    shares = [abs(row.value / row.paper - 1) for row in evaluation.rows if row.counts and row.value and row.paper]
    if not shares:
        raise MissingNumberError("a number on both sides")
    return 100 * float(np.median(shares))


def unexplained(evaluation: Evaluation) -> float:
    """How many numbers differ by more than 10 % and have no reason."""
    off = [row for row in evaluation.rows if row.counts and row.deviates]
    return float(sum(not row.is_explained for row in off))


OF_THE_SIMULATOR = (
    Claim("The median difference from Linux, in percent, is under 3", median, full=at_most(3.0)),
    Claim("No number differs by more than 10 % without a reason: how many do", unexplained, full=at_most(0.0)),
)
