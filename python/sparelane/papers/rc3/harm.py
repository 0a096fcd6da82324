"""What a flow loses to another one under RC3, beside what it loses to the same one under TCP, on the kernel."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.rows import Key, Metric, MissingNumberError, Row
from sparelane.papers.rc3.internet2 import RC3, TCP
from sparelane.papers.rc3.kernel import INNER, SCENARIO

HARM = Metric("harm to the flow beside it", "%")
BESIDE = Metric("throughput of the flow beside it", "Gb/s")
SCHEMES = {TCP: "tcp", RC3: "rc3"}
# Packets of the flow that starts second.
SIZES, QUICK_SIZES = (1000, 20_000), (1000,)
# It comes when the first flow has long filled the link, and the first one's bytes are counted from then on.
START_MS, END_MS = 1000, 1500


def _cell(inner: str, scheme: str, packets: int) -> Cell:
    # A packet under RC3, long after, makes hosts serve priorities in both.
    flows = ", ".join(
        f"{{ kind = 'bulk', scheme = '{under}', pairs = [['left{host}', 'right{host}']], size = '{size}', "
        f"start = '{start_ms}ms' }}"
        for host, under, size, start_ms in (
            (0, "tcp", "unlimited", 0),
            (1, SCHEMES[scheme], f"{packets}packets", START_MS),
            (1, "rc3", "1packets", END_MS - 100),
        )
    )
    return Cell(
        scenario=SCENARIO,
        settings=(
            "topology.pairs=2",
            "topology.access_rate=1Gbps",
            "topology.bottleneck_rate=1Gbps",
            "queue.limit=10000packets",
            f"scheme.tcp.controller={INNER[inner]}",
            f"scheme.rc3.inner={INNER[inner]}",
            f"workload=[{flows}]",
            f"duration={END_MS}ms",
            f"sample={{ interval = '{START_MS}ms', flows = [0] }}",
        ),
        on="linux",
        is_random=False,
        label=f"a flow beside {packets} packets under {scheme}, {inner}",
        cost=5.0,
    )


def _sizes(effort: Effort) -> tuple[int, ...]:
    return QUICK_SIZES if effort.name == "quick" else SIZES


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields each size next to each controller, under TCP and under RC3."""
    return (_cell(inner, scheme, size) for inner in INNER for size in _sizes(effort) for scheme in SCHEMES)


def rows(runs: Runs) -> Iterable[Row]:
    """What the first flow delivers beside each, and what it loses."""
    for inner in INNER:
        for packets in _sizes(runs.effort):
            delivered = {scheme: _delivered(runs.of(_cell(inner, scheme, packets))[0]) for scheme in SCHEMES}
            for scheme, count in delivered.items():
                rate_gbps = 8e-9 * count / ((END_MS - START_MS) / 1e3)
                yield Row(_key(inner, scheme, packets, BESIDE), None, rate_gbps)
            yield Row(_key(inner, RC3, packets, HARM), None, 100 * (1 - delivered[RC3] / delivered[TCP]))


def _delivered(outcome: Outcome) -> float:
    """Bytes of the first flow since the other one has begun."""
    chosen = (
        (pl.col("probe") == "flow 0")
        & (pl.col("quantity") == "delivered_bytes")
        & ((1e3 * pl.col("time_s")).round() == START_MS)
    )
    before = outcome.series.filter(chosen)["value"]
    if len(before) != 1:
        raise MissingNumberError(f"what flow 0 had delivered at {START_MS} ms")
    return float(outcome.flows["delivered_bytes"][0]) - float(before[0])


def _key(inner: str, scheme: str, packets: int, metric: Metric) -> Key:
    return Key("beside another flow", metric, scheme, traffic=f"{packets} packets", variant=inner)
