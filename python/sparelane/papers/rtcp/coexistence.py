"""RTCP, section VI: RTCP next to schemes that fill queues."""

from __future__ import annotations

from collections.abc import Iterable

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Metric, measured
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, THROUGHPUT, Run

OTHERS = ("RTCP", "NewReno", "BBR")
# The measured flow, and the other one from the same server to the same receiver, which starts with it.
PAIR = (
    '[{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="first", spread="100us"}, '
    '{kind="bulk", pairs="next", scheme="OTHER", traffic_class="second", spread="100us"}]'
)
# Both classes of traffic have the same weight.
WEIGHTS = "scheme.rtcp.weights={ first = 24000, second = 24000 }"
OF_THE_OTHER = Metric("throughput of the other flow", "Mb/s")
SHARE = Metric("share of what both have", "%")
METRICS = named(THROUGHPUT, OF_THE_OTHER, SHARE)


def _beside(scheme: str, other: str) -> Run:
    mix = PAIR.replace("OTHER", datacentre.SCHEMES[other])
    return Run(scheme, (WEIGHTS,), f"beside {other}", mix=mix)


WITH_RTCP = [_beside("RTCP", other) for other in OTHERS]
RUNS = [*WITH_RTCP, *(_beside(scheme, scheme) for scheme in ("NewReno", "BBR"))]


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields RTCP next to each scheme, and the other schemes next to themselves."""
    return (run.cell(effort) for run in RUNS)


def evaluate(runs: Runs) -> Evaluation:
    """Returns the throughput of both flows, RTCP's share, and the delay of its packets."""
    rows = []
    for run in RUNS:
        first, second = (datacentre.values(runs, run, THROUGHPUT, traffic=name) for name in ("first", "second"))
        both = [(one or 0.0) + (other or 0.0) for one, other in zip(first, second, strict=True)]
        rows += [
            measured(run.key(THROUGHPUT), None, datacentre.known(first)),
            measured(run.key(OF_THE_OTHER), None, datacentre.known(second)),
            datacentre.ratio_row(run.key(SHARE), first, both),
            measured(run.key(DELAY, MEAN), None, datacentre.known(datacentre.values(runs, run, DELAY, MEAN, "first"))),
        ]
    return Evaluation(tuple(rows))
