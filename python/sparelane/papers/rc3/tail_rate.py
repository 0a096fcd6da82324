"""Compares RC3's tail without a bound, as in the papers, with one that is bounded by arrivals; it is not in the papers.

A flow under RC3 shares a bottleneck of 100 Mb/s with a neighbour, a flow of 500 KB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import polars as pl

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Metric, Row

COMPLETION = Metric("completion", "s")
DROPPED = Metric("tail packets dropped")
NEIGHBOUR = Metric("neighbour's completion", "s")
METRICS = named(COMPLETION, NEIGHBOUR, DROPPED)

# The rates of the hosts' links, the sizes of the flow under RC3, and the schemes of its neighbour.
ACCESS = {"host as fast as the path": "100Mbps", "host twice as fast": "200Mbps", "host 10 times as fast": "1Gbps"}
SIZES = {"2 MB": "2MB", "20 MB": "20MB"}
NEIGHBOURS = {"TCP": "tcp", "RC3": "rc3"}
# The gains of a bounded tail, by the scheme in the keys of rows.
BOUNDS: Mapping[str, tuple[str, ...]] = {
    "tail unbounded": (),
    **{
        f"tail gain {gain:g}": ("scheme.rc3.tail_rate=delivered", f"scheme.rc3.tail_gain={gain:g}")
        for gain in (1.0, 1.25, 2.0)
    },
}
# The cells, each with the traffic in the keys of its rows.
CELLS: Mapping[Cell, str] = {
    Cell(
        "two-flows-priority",
        (
            f"topology.access_rate={ACCESS[access]}",
            f"workload.0.size={SIZES[size]}",
            f"workload.1.scheme={NEIGHBOURS[neighbour]}",
            "duration=8s",
            "sample.interval=100ms",
            *BOUNDS[bound],
        ),
        f"tail rate, {access}, {size} beside {neighbour}, {bound}",
        cost=0.02,
        most_seeds=1,
        setting=access,
        scheme=bound,
    ): f"{size} beside {neighbour}"
    for access, size, neighbour, bound in product(ACCESS, SIZES, NEIGHBOURS, BOUNDS)
}


def cells(effort: Effort) -> Iterable[Cell]:
    """Returns all cells; efforts do not differ."""
    del effort
    return CELLS


def evaluate(runs: Runs) -> Evaluation:
    """Returns both flows' completion times, and the number of dropped packets of low priority."""
    rows: list[Row] = []
    for cell, traffic in CELLS.items():
        [outcome] = runs.of(cell)
        own_s, neighbour_s = outcome.flows.sort("id")["completion_s"]
        low = int(outcome.drops.filter(pl.col("class") > 0)["dropped_packets"].sum())
        for metric, value in ((COMPLETION, own_s), (DROPPED, low), (NEIGHBOUR, neighbour_s)):
            rows.append(Row(cell.key(metric, traffic=traffic), None, value))
    return Evaluation(tuple(rows))
