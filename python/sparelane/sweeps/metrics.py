"""The metrics for comparisons of schemes: short names, better directions, and units of changes.

Users give short names, such as `p99-completion`, to `--metric`. The mean has no prefix. Every number that a sweep
stores for all flows or for the network has a short name. `HEADLINES` lists the metrics that are compared by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sparelane.common import percentiles
from sparelane.common.names import UnknownNameError
from sparelane.results.rows import ALL, NETWORK
from sparelane.sweeps import measure

# The short names of measured quantities.
STEMS: Mapping[str, str] = {
    "flows": "flows",
    "finished flows": "finished",
    "completion time": "completion",
    "completion time of requests": "requests",
    "slowdown": "slowdown",
    "goodput": "goodput",
    "share of goodput": "share",
    "throughput of a flow": "throughput",
    "fairness": "fairness",
    "retransmissions": "retransmissions",
    "lost packets": "loss",
    "timeouts": "timeouts",
    "round trip": "rtt",
    "queueing delay": "queueing",
    "one-way delay": "delay",
    "use of the busiest link": "utilization",
    "dropped packets": "drops",
    "largest backlog": "backlog",
}
# The prefix of each average in short names; empty for the usual mean, or if only one average makes sense.
PREFIXES: Mapping[str, str] = {
    measure.MEAN: "",
    measure.REQUESTS: "",
    measure.TIME: "",
    measure.TOTAL: "",
    "Jain's index": "",
    measure.BYTES: "bytes",
    measure.MEDIAN: "median",
    "largest": "max",
    **{name: percentiles.short(share) for name, share in measure.TAILS},
}
# Alternative names of stems and prefixes.
SYNONYMS: Mapping[str, str] = {
    "fct": "completion",
    "completions": "completion",
    "jct": "requests",
    "jain": "fairness",
    "retransmission": "retransmissions",
    "latency": "delay",
    "queue": "queueing",
    "queuing": "queueing",
    "utilisation": "utilization",
    "p50": "median",
    "p999": "p99.9",
    "losses": "loss",
}
# Parts of names that are ignored.
FILLERS = frozenset(("mean", "average", "avg", "time", "of", "total", "index"))
LESS_IS_BETTER = frozenset(
    (
        "completion time",
        "completion time of requests",
        "slowdown",
        "retransmissions",
        "lost packets",
        "timeouts",
        "round trip",
        "queueing delay",
        "one-way delay",
        "dropped packets",
        "largest backlog",
    )
)
MORE_IS_BETTER = frozenset(("finished flows", "goodput", "throughput of a flow", "fairness", "use of the busiest link"))
# Metrics of finished flows only. They are biased if schemes leave different shares of flows unfinished.
OF_FINISHED = frozenset(("completion time", "completion time of requests", "slowdown"))
WORDS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric for comparisons.

    Attributes:
        metric: the measured quantity, as in the column `metric` of rows.
        average: the kind of average over flows, packets or time, as in the column `average`.
        traffic: the flows, as in the column `traffic`; `ALL` includes numbers of the network.
    """

    metric: str
    average: str
    traffic: str = ALL

    @property
    def name(self) -> str:
        """The short name for `--metric`."""
        stem = STEMS.get(self.metric, self.metric.replace(" ", "-"))
        prefix = PREFIXES.get(self.average, self.average)
        return f"{prefix}-{stem}" if prefix else stem

    @property
    def unit(self) -> str:
        """The unit of the numbers."""
        return measure.unit(self.metric)

    @property
    def label(self) -> str:
        """The full name, such as "p99 completion time"."""
        if self.average == measure.BYTES:
            words = f"byte-weighted mean {self.metric}"
        elif self.average in (measure.MEAN, measure.REQUESTS, measure.TIME):
            words = f"mean {self.metric}"
        elif self.average in (measure.TOTAL, "Jain's index"):
            words = {"fairness": "Jain's index", "finished flows": "share of finished flows"}.get(
                self.metric, self.metric
            )
        elif self.average == "largest":
            words = self.metric if self.metric.startswith("largest") else f"largest {self.metric}"
        else:
            words = f"{PREFIXES.get(self.average, self.average)} {self.metric}"
        return words if self.traffic == ALL else f"{words}, {self.traffic}"

    @property
    def change_unit(self) -> str:
        """The unit of changes: "%" for ratios, and "points" or "per flow" for differences."""
        return {"%": "points", "per flow": "per flow"}.get(self.unit, "%")

    @property
    def is_difference(self) -> bool:
        """True if changes are differences instead of ratios, since numbers may be 0."""
        return self.change_unit != "%"

    @property
    def better(self) -> int:
        """The sign of an improvement; 0 if neither direction is better."""
        return (self.metric in MORE_IS_BETTER) - (self.metric in LESS_IS_BETTER)

    @property
    def covers_finished(self) -> bool:
        """True if only finished flows count."""
        return self.metric in OF_FINISHED


# The metrics of a comparison by default. The first one with numbers is the main metric.
HEADLINES = (
    Metric("completion time", measure.MEAN),
    Metric("completion time of requests", measure.REQUESTS),
    Metric("throughput of a flow", measure.MEAN),
    Metric("completion time", measure.BYTES),
    Metric("completion time", measure.P95),
    Metric("completion time", measure.P99),
    Metric("completion time", measure.P999),
    Metric("completion time of requests", measure.P99),
    Metric("slowdown", measure.MEAN),
    Metric("slowdown", measure.P99),
    Metric("finished flows", measure.TOTAL),
    Metric("goodput", measure.TOTAL),
    Metric("fairness", "Jain's index"),
    Metric("retransmissions", measure.TOTAL),
    Metric("timeouts", measure.MEAN),
    Metric("queueing delay", measure.MEAN),
    Metric("one-way delay", measure.MEAN),
)


def known(runs: pl.DataFrame) -> list[Metric]:
    """All metrics that runs have numbers for: first those of `HEADLINES`, then the others in the order of rows."""
    of_all = runs.filter(pl.col("traffic").is_in((ALL, NETWORK)))
    found = [Metric(*one) for one in of_all.select("metric", "average").unique(maintain_order=True).rows()]
    return [*(one for one in HEADLINES if one in found), *(one for one in found if one not in HEADLINES)]


def find(name: str, metrics: Sequence[Metric]) -> Metric:
    """Finds a metric by its short name. The order of parts does not matter, and synonyms such as `fct` are known.

    Raises:
        UnknownNameError: no metric has this name.
    """
    for one in metrics:
        if one.name.lower() == name.strip().lower():
            return one
    wanted = _parts(name)
    for one in metrics:
        if _parts(one.name) == wanted:
            return one
    listed = [one.name for one in metrics if one.metric in STEMS]
    raise UnknownNameError("metric", name, listed or [one.name for one in metrics], _why(wanted, metrics, listed))


def _why(wanted: frozenset[str], metrics: Sequence[Metric], listed: Sequence[str]) -> str:
    """The reason why a known metric has no numbers; empty for unknown names."""
    for short, share in ((percentiles.short(share), share) for share in percentiles.TAILS):
        stems = wanted - {short}
        if short in wanted and any(_parts(one.name) == stems for one in metrics):
            least = f"{percentiles.fewest(share):,}"
            return f" in these results: {short} needs at least {least} values in a run, and no run has as many"
    prefixes = {prefix for prefix in PREFIXES.values() if prefix}
    if wanted - prefixes in [frozenset((stem,)) for stem in STEMS.values()]:
        return f" in these results; there are: {', '.join(listed)}"
    return ""


def _parts(name: str) -> frozenset[str]:
    parts = (SYNONYMS.get(part, part) for part in WORDS.split(name.strip().lower()))
    return frozenset(part for part in parts if part not in FILLERS)
