"""Measures what a flow loses to another one on the kernel: the harm of RC3, compared with TCP."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.rows import Metric, MissingNumberError, Row
from sparelane.papers.rc3.internet2 import SCHEMES, Scheme
from sparelane.papers.rc3.kernel import INNER, SCENARIO, workload

HARM = Metric("harm to the flow beside it", "%")
BESIDE = Metric("throughput of the flow beside it", "Gb/s")
# The sizes in packets of the flow that starts second.
SIZES, QUICK_SIZES = (1000, 20_000), (1000,)
# The first flow has filled the link when the second one starts. Its bytes count from then on.
START_MS, END_MS = 1000, 1500


def _cell(inner: str, scheme: Scheme, packets: int) -> Cell:
    """Returns the first flow next to a second one under a scheme."""
    flows = (
        ("tcp", ("left0", "right0"), "unlimited", 0),
        (scheme, ("left1", "right1"), f"{packets}packets", START_MS),
        # Hosts serve priorities only if a flow uses RC3, so both runs have a packet under RC3 near the end.
        ("rc3", ("left1", "right1"), "1packets", END_MS - 100),
    )
    return Cell(
        SCENARIO,
        (
            "topology.pairs=2",
            "topology.access_rate=1Gbps",
            "topology.bottleneck_rate=1Gbps",
            "queue.limit=10000packets",
            f"scheme.tcp.controller={INNER[inner]}",
            f"scheme.rc3.inner={INNER[inner]}",
            workload(flows),
            f"duration={END_MS}ms",
            f"sample={{ interval = '{START_MS}ms', flows = [0] }}",
        ),
        f"a flow beside {packets} packets under {scheme}, {inner}",
        cost=5.0,
        on="linux",
        most_seeds=1,
        setting="beside another flow",
        scheme=SCHEMES[scheme],
        variant=inner,
    )


def _pairs(effort: Effort) -> Iterable[tuple[str, tuple[Cell, Cell]]]:
    """Yields the runs with each second flow under TCP and under RC3, with the traffic in the keys of their rows."""
    for inner in INNER:
        for packets in QUICK_SIZES if effort.name == "quick" else SIZES:
            yield f"{packets} packets", (_cell(inner, "tcp", packets), _cell(inner, "rc3", packets))


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields all runs."""
    return (cell for _, pair in _pairs(effort) for cell in pair)


def rows(runs: Runs) -> Iterable[Row]:
    """Yields the first flow's throughput next to each second flow, and its harm: the share that it loses under RC3."""
    for traffic, pair in _pairs(runs.effort):
        tcp, rc3 = (_delivered(runs.of(cell)[0]) for cell in pair)
        for cell, delivered in zip(pair, (tcp, rc3), strict=True):
            yield Row(cell.key(BESIDE, traffic=traffic), None, 8e-9 * delivered / ((END_MS - START_MS) / 1e3))
        yield Row(pair[1].key(HARM, traffic=traffic), None, 100 * (1 - rc3 / tcp))


def _delivered(outcome: Outcome) -> float:
    """Returns the bytes that the first flow delivers after the start of the second one."""
    chosen = (
        (pl.col("probe") == "flow 0")
        & (pl.col("quantity") == "delivered_bytes")
        & ((1e3 * pl.col("time_s")).round() == START_MS)
    )
    before = outcome.series.filter(chosen)["value"]
    if len(before) != 1:
        raise MissingNumberError(f"the bytes that flow 0 had delivered at {START_MS} ms")
    return float(outcome.flows["delivered_bytes"][0]) - float(before[0])
