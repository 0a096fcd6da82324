"""The paths of the comparison with Linux, the runs over them, and which segments are lost on the way."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sparelane.papers.engine.base import Simulation
from sparelane.papers.engine.rows import joined
from sparelane.uml.parameters import CONTROLLERS

SCENARIO = "linux-controllers"
# Controllers whose random numbers change anything: TCP-LP draws the beginnings of timestamps, CDG when it gives way. NV
# draws when it forgets the least round-trip time, after which it measures the same one again.
RANDOM = ("lp", "cdg")
# Samples at multiples of the round trip would be at the very instants at which windows grow. Long intervals would leave
# out what the last one of a flow holds, and see a queue that fills and drains at other times than on Linux, which has
# the path's delay before the queue.
SAMPLED_EVERY = "7307us"
# Payload of a full segment with timestamps, bytes.
MSS_BYTES = 1448

Side = Literal["simulator", "linux"]
SIDES: tuple[Side, ...] = ("simulator", "linux")
# Hosts of Linux acknowledge nearly every packet here, since the receiving program reads each at once.
OURS = ("transport.delayed_ack=false",)
# TCP-LP has other rules with exact clocks, and CDG begins with the first full packet unless it is Linux's. The clock of
# User-Mode Linux ticks every 10 ms (CONFIG_HZ=100), by which Westwood measures.
LIKE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(RANDOM, ("scheme.flow.like=linux",)),
    "westwood": ("scheme.flow.tick=10ms",),
}
# The receiver of DCTCP echoes every mark.
ASKS: Mapping[str, tuple[str, ...]] = {"dctcp": ("transport.ecn=dctcp",)}


@dataclass(frozen=True, slots=True)
class Path:
    """A dumbbell with one pair of hosts.

    Attributes:
        name: for people.
        rate: of the bottleneck.
        round_trip_ms: without any queue.
        loss: share of segments that are lost before the bottleneck.
        limit: of the bottleneck's queue.
        sizes: of the flows that each controller sends, one after the other.
    """

    name: str
    rate: str
    round_trip_ms: int
    loss: float
    limit: str
    sizes: tuple[str, str, str]

    @property
    def settings(self) -> tuple[str, ...]:
        """What is set of the scenario."""
        return (
            f"topology.access_delay={self.round_trip_ms / 20:g}ms",
            f"topology.bottleneck_rate={self.rate}",
            f"topology.bottleneck_delay={self.round_trip_ms * 0.4:g}ms",
            f"queue.limit={self.limit}",
            *(f"workload.{number}.size={size}" for number, size in enumerate(self.sizes)),
            f'sample={{ interval = "{SAMPLED_EVERY}", flows = [2], queues = [["west", "east"]], '
            'links = [["west", "east"]] }',
        )

    def lost(self, seed: int) -> tuple[tuple[int, ...], ...]:
        """The segments of each flow whose first transmission is lost under a seed: the same for all controllers."""
        return tuple(self._lost(size, seed) for size in self.sizes)

    def _lost(self, size: str, seed: int) -> tuple[int, ...]:
        draw = random.Random(f"{self.name}, {size}, {seed}")
        return tuple(number for number in range(segments(size)) if draw.random() < self.loss)


def segments(size: str) -> int:
    """How many segments a flow has."""
    unit = 1e6 if size.endswith("MB") else 1e3
    return math.ceil(float(size[:-2]) * unit / MSS_BYTES)


PATHS = (
    Path("10 Mb/s, 10 ms, deep", "10Mbps", 10, 0.0, "100packets", ("15kB", "150kB", "1.5MB")),
    Path("100 Mb/s, 50 ms", "100Mbps", 50, 0.0, "1bdp", ("15kB", "1.5MB", "6MB")),
    Path("1 Gb/s, 20 ms, shallow", "1Gbps", 20, 0.0, "0.2bdp", ("150kB", "1.5MB", "9MB")),
    Path("100 Mb/s, 200 ms", "100Mbps", 200, 0.0, "1bdp", ("15kB", "1.5MB", "6MB")),
    Path("10 Gb/s, 10 ms", "10Gbps", 10, 0.0, "1bdp", ("150kB", "1.5MB", "15MB")),
    Path("100 Mb/s, 100 ms, loss 1e-4", "100Mbps", 100, 1e-4, "1bdp", ("150kB", "1.5MB", "4MB")),
    Path("1 Gb/s, 10 ms, loss 1e-4, shallow", "1Gbps", 10, 1e-4, "0.2bdp", ("150kB", "1.5MB", "4MB")),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One controller's flows over a path.

    Attributes:
        path: where.
        controller: whose.
        variant: what is set of the controller, in words; empty where nothing is.
        overrides: the same, `key=value` each.
    """

    path: Path
    controller: str
    variant: str = ""
    overrides: tuple[str, ...] = ()

    def seeds(self, wanted: Sequence[int]) -> Sequence[int]:
        """Those under which anything differs: where nothing is drawn, the first is enough."""
        draws = self.controller in RANDOM and not self.variant
        return wanted if self.path.loss or draws else wanted[:1]

    def simulation(self, seed: int, side: Side) -> Simulation:
        """The run under a seed. Losses are lists, so that only what draws has need of the seed itself."""
        drops = ", ".join(
            f'{{ from = "west", to = "east", flow = {flow}, segments = {list(lost)} }}'
            for flow, lost in enumerate(self.path.lost(seed))
            if lost
        )
        own = (*OURS, *LIKE.get(self.controller, ())) if side == "simulator" else ()
        return Simulation(
            scenario=SCENARIO,
            settings=(
                f"scheme.flow.controller={self.controller}",
                *ASKS.get(self.controller, ()),
                *self.overrides,
                *self.path.settings,
                *([f"drop=[{drops}]"] if drops else []),
                *own,
            ),
            seed=seed if self.controller in RANDOM else 1,
            label=f"{self.path.name}, {joined(self.controller, self.variant)}, seed {seed}, {side}",
            cost=1.0 if side == "linux" else 0.01,
            on=side,
        )


# What draws, where nothing is drawn: CDG that never gives way to delays, and CDG that gives way to all but the smallest
# rises.
WITHOUT_DRAWING = "no backoff for delays"
AT_EACH_RISE = "a backoff for each rise of delays"
VARIED_RUNS = (
    *(Run(path, "cdg", WITHOUT_DRAWING, ("scheme.flow.backoff_factor=0",)) for path in PATHS if not path.loss),
    Run(PATHS[0], "cdg", AT_EACH_RISE, ("scheme.flow.backoff_factor=10000",)),
)
RUNS = (*(Run(path, controller) for path in PATHS for controller in CONTROLLERS), *VARIED_RUNS)
# What a quick run does: two paths, one of which loses.
QUICK_RUNS = tuple(run for run in RUNS if run.path in (PATHS[0], PATHS[-1]) and not run.variant)
