"""The metrics by which schemes are compared: their short names, which direction is better, and how changes are stated.

A short name is what `--metric` takes: `p99-completion`, `mean` being understood. Every number that a sweep keeps of all
flows, or of the network, has one; `HEADLINES` lists those that are compared unless the user chooses.
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

# The short name of what is measured.
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
# What comes before the stem for each average; "" where only one makes sense, or for the usual mean.
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
# Other words for stems.
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
# Parts of names that change nothing.
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
# Metrics that cover finished flows alone: they are biased if schemes leave different shares of the flows unfinished.
OF_FINISHED = frozenset(("completion time", "completion time of requests", "slowdown"))
WORDS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """A number by which schemes are compared.

    Attributes:
        metric: what is measured, as in the column `metric` of rows.
        average: how it is averaged over flows, packets or time, as in the column `average`.
        traffic: whose it is, as in the column `traffic`; `ALL` stands for numbers of the network, too.
    """

    metric: str
    average: str
    traffic: str = ALL

    @property
    def name(self) -> str:
        """The short name, as `--metric` takes it."""
        stem = STEMS.get(self.metric, self.metric.replace(" ", "-"))
        prefix = PREFIXES.get(self.average, self.average)
        return f"{prefix}-{stem}" if prefix else stem

    @property
    def unit(self) -> str:
        """The unit of the numbers."""
        return measure.unit(self.metric)

    @property
    def label(self) -> str:
        """The name in words: "p99 completion time"."""
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
        """The unit of changes: "%" of the baseline, "points", or "per flow" for a difference."""
        return {"%": "points", "per flow": "per flow"}.get(self.unit, "%")

    @property
    def is_difference(self) -> bool:
        """True if a change is a difference rather than a ratio, because numbers may well be 0."""
        return self.change_unit != "%"

    @property
    def better(self) -> int:
        """The sign of a change for the better; 0 if neither direction is better."""
        return (self.metric in MORE_IS_BETTER) - (self.metric in LESS_IS_BETTER)

    @property
    def covers_finished(self) -> bool:
        """True if only finished flows count."""
        return self.metric in OF_FINISHED


# The metrics of the usual comparison. The first one of which there are numbers is the main one.
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
    """Every metric of which the runs have numbers: the usual ones first, then the rest in the order of the rows."""
    of_all = runs.filter(pl.col("traffic").is_in((ALL, NETWORK)))
    found = [Metric(*one) for one in of_all.select("metric", "average").unique(maintain_order=True).rows()]
    return [*(one for one in HEADLINES if one in found), *(one for one in found if one not in HEADLINES)]


def find(name: str, metrics: Sequence[Metric]) -> Metric:
    """The metric that a name means; the order of its parts does not matter, and `fct` is `completion`.

    Raises:
        UnknownNameError: none of the metrics has this name.
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
    """The reason why a metric has no numbers; empty for names of no metric."""
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
