"""The paths of the comparison with Linux, the runs over them, and the segments that are lost."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sparelane.papers.engine.base import Simulation
from sparelane.papers.engine.rows import joined
from sparelane.uml.parameters import CONTROLLERS

SCENARIO = "linux-controllers"
# Controllers whose random numbers change results: TCP-LP draws the start of timestamps, CDG its backoffs. NV draws the
# times at which it discards its minimum round-trip time, but it then measures the same minimum again.
RANDOM = ("lp", "cdg")
# Not a divisor or multiple of the round trips: such samples would always fall on the instants at which windows grow.
# Longer intervals would miss the end of each flow. They would also sample a queue that fills and drains at different
# phases on both sides, because Linux has the path's delay before the queue.
SAMPLED_EVERY = "7307us"
# Payload of a full segment with timestamps, bytes.
MSS_BYTES = 1448

# Variants of CDG without randomness: it never backs off for delays, or backs off at each rise above the smallest.
WITHOUT_DRAWING = "no backoff for delays"
AT_EACH_RISE = "a backoff for each rise of delays"
UNDRAWN = (WITHOUT_DRAWING, AT_EACH_RISE)
# The variant of bursts in which idleness changes no window.
KEPT = "window kept"

Side = Literal["simulator", "linux"]
SIDES: tuple[Side, ...] = ("simulator", "linux")
# Linux acknowledges nearly every packet here, because the receiving program reads each at once.
OURS = ("transport.delayed_ack=false",)
# Settings that make our controllers follow Linux. By default, our TCP-LP has rules for exact clocks, and our CDG starts
# with the first full packet. Westwood measures by the clock of User-Mode Linux, with ticks of 10 ms (CONFIG_HZ=100).
LIKE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(RANDOM, ("scheme.flow.like=linux",)),
    "westwood": ("scheme.flow.tick=10ms",),
}
# Settings of both sides that a controller needs. DCTCP needs a receiver that echoes every mark.
NEEDS: Mapping[str, tuple[str, ...]] = {"dctcp": ("transport.ecn=dctcp",)}


@dataclass(frozen=True, slots=True)
class Path:
    """A dumbbell with one pair of hosts.

    Attributes:
        name: the name in tables.
        rate: the rate of the bottleneck.
        round_trip_ms: the round-trip time without queues.
        loss: the share of segments that are lost before the bottleneck.
        limit: the limit of the bottleneck's queue.
        sizes: the sizes of the flows that each controller sends one after the other.
    """

    #: The number of the flow with averages and time series.
    sampled: ClassVar[int] = 2

    name: str
    rate: str
    round_trip_ms: int
    loss: float
    limit: str
    sizes: tuple[str, ...]

    @property
    def settings(self) -> tuple[str, ...]:
        """The overrides of the scenario."""
        return (
            f"topology.access_delay={self.round_trip_ms / 20:g}ms",
            f"topology.bottleneck_rate={self.rate}",
            f"topology.bottleneck_delay={self.round_trip_ms * 0.4:g}ms",
            f"queue.limit={self.limit}",
            *self.flows,
            f'sample={{ interval = "{SAMPLED_EVERY}", flows = [{self.sampled}], queues = [["west", "east"]], '
            'links = [["west", "east"]] }',
        )

    @property
    def flows(self) -> tuple[str, ...]:
        """The overrides of the flows."""
        return tuple(f"workload.{number}.size={size}" for number, size in enumerate(self.sizes))

    def lost(self, seed: int) -> tuple[tuple[int, ...], ...]:
        """Returns the segments of each flow whose first transmission is lost with a seed, for all controllers."""
        return tuple(self._lost(size, seed) for size in self.sizes)

    def _lost(self, size: str, seed: int) -> tuple[int, ...]:
        draw = random.Random(f"{self.name}, {size}, {seed}")
        return tuple(number for number in range(segments(size)) if draw.random() < self.loss)


@dataclass(frozen=True, slots=True)
class Bursts(Path):
    """A dumbbell with one pair of hosts and one connection, which is idle between bursts of 1.5 MB.

    Attributes:
        gap: the time from the start of one burst to the next.
    """

    gap: str

    @property
    def flows(self) -> tuple[str, ...]:
        """The overrides of the flows."""
        workload = f'kind = "bulk", scheme = "flow", size = "1.5MB", flows = {len(self.sizes)}, gap = "{self.gap}"'
        return (f'workload=[{{ {workload}, connections = "reused" }}]',)

    def lost(self, seed: int) -> tuple[tuple[int, ...], ...]:
        """Returns nothing: no segment of these paths is lost."""
        return ()


@dataclass(frozen=True, slots=True)
class Changing(Path):
    """A dumbbell with one pair of hosts and one flow, whose bottleneck changes during the flow.

    Attributes:
        changes: the time of each change, and the key that changes with its value.
    """

    sampled: ClassVar[int] = 0
    changes: tuple[tuple[str, str], ...]

    @property
    def flows(self) -> tuple[str, ...]:
        """The overrides of the flow and of the link."""
        tables = ", ".join(f'{{ at = "{at}", between = ["west", "east"], {change} }}' for at, change in self.changes)
        workload = f'kind = "bulk", scheme = "flow", size = "{self.sizes[0]}"'
        return (f"workload=[{{ {workload} }}]", f"change=[{tables}]")

    def lost(self, seed: int) -> tuple[tuple[int, ...], ...]:
        """Returns nothing: no segment of these paths is lost by plan."""
        return ()


def segments(size: str) -> int:
    """Returns the number of segments of a flow."""
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


# A connection of 100 Mb/s and 50 ms, which is idle for about 0.7 or 9.7 seconds between bursts.
BURSTS = ("first burst", "second burst", "third burst")
IDLE_PATHS = tuple(
    Bursts(f"100 Mb/s, 50 ms, bursts every {words}", "100Mbps", 50, 0.0, "1bdp", BURSTS, gap)
    for words, gap in (("1 s", "1s"), ("10 s", "10s"))
)
# BBR's minimum round-trip time lasts ten seconds, so whether a burst after ten seconds renews it is a matter of
# microseconds. After twelve seconds, each burst renews it.
LONGER = Bursts("100 Mb/s, 50 ms, bursts every 12 s", "100Mbps", 50, 0.0, "1bdp", BURSTS, "12s")


def _changing(words: str, *changes: tuple[str, str]) -> Changing:
    return Changing(f"100 Mb/s, 50 ms; {words}", "100Mbps", 50, 0.0, "1bdp", ("30MB",), changes)


STEADY = _changing("no change")
FALLING = _changing("20 Mb/s from 1 s", ("1s", 'rate = "20Mbps"'))
RISING = _changing("400 Mb/s from 1 s", ("1s", 'rate = "400Mbps"'))
FALLING_AND_RISING = _changing("20 Mb/s from 1 s to 3 s", ("1s", 'rate = "20Mbps"'), ("3s", 'rate = "100Mbps"'))
STEPS = _changing(
    "another rate every 0.5 s",
    *(
        (f"{500 * (place + 1)}ms", f'rate = "{mbps}Mbps"')
        for place, mbps in enumerate((50, 20, 10, 30, 150, 60, 40, 200, 5, 100))
    ),
)
LENGTHENING = _changing("100 ms from 1 s", ("1s", 'delay = "45ms"'))
SHORTENING = _changing("20 ms from 1 s", ("1s", 'delay = "5ms"'))
OUTAGES = (
    _changing("down from 1 s to 1.5 s", ("1s", "down = true"), ("1500ms", "down = false")),
    _changing("down from 2 s to 2.5 s", ("2s", "down = true"), ("2500ms", "down = false")),
    # Acknowledgments are not lost.
    *(
        _changing(
            f"down one way from {start} s to {start + 0.5} s",
            (f"{start}s", 'from = "west", down = true'),
            (f"{1000 * start + 500}ms", 'from = "west", down = false'),
        )
        for start in (1, 2)
    ),
)
CHANGING_PATHS = (STEADY, FALLING, RISING, FALLING_AND_RISING, STEPS, LENGTHENING, SHORTENING, *OUTAGES)
# The controllers whose flows see changes.
CHANGING_CONTROLLERS = ("newreno", "cubic", "bbr")


@dataclass(frozen=True, slots=True)
class Run:
    """One controller's flows over a path.

    Attributes:
        path: the path.
        controller: the controller of all flows.
        variant: the controller's settings in words; empty for its defaults.
        overrides: the controller's settings, each `key=value`.
    """

    path: Path
    controller: str
    variant: str = ""
    overrides: tuple[str, ...] = ()

    def seeds(self, wanted: Sequence[int]) -> Sequence[int]:
        """Returns the seeds with different results: only the first if the run draws no random numbers."""
        draws = self.controller in RANDOM and self.variant not in UNDRAWN
        return wanted if self.path.loss or draws else wanted[:1]

    def simulation(self, seed: int, side: Side) -> Simulation:
        """Returns the run with a seed. Losses are listed in the settings, so only random controllers use the seed."""
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
                *NEEDS.get(self.controller, ()),
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


VARIED_RUNS = (
    *(Run(path, "cdg", WITHOUT_DRAWING, ("scheme.flow.backoff_factor=0",)) for path in PATHS if not path.loss),
    Run(PATHS[0], "cdg", AT_EACH_RISE, ("scheme.flow.backoff_factor=10000",)),
)
RUNS = (*(Run(path, controller) for path in PATHS for controller in CONTROLLERS), *VARIED_RUNS)
# The runs of the quick effort: two paths, one of them with losses.
QUICK_RUNS = tuple(run for run in RUNS if run.path in (PATHS[0], PATHS[-1]) and not run.variant)
# The runs with idle periods: with Linux's restart of windows, and without.
IDLE_RUNS = (
    *(
        Run(path, controller, *variant)
        for variant in ((), (KEPT, ("transport.restart_after_idle=no",)))
        for path in IDLE_PATHS
        for controller in CONTROLLERS
    ),
    *(Run(path, "cdg", WITHOUT_DRAWING, ("scheme.flow.backoff_factor=0",)) for path in IDLE_PATHS),
    Run(LONGER, "bbr"),
)
CHANGING_RUNS = tuple(Run(path, controller) for path in CHANGING_PATHS for controller in CHANGING_CONTROLLERS)
QUICK_CHANGING_RUNS = tuple(run for run in CHANGING_RUNS if run.path in (FALLING, RISING))
QUICK_IDLE_RUNS = tuple(run for run in IDLE_RUNS if run.path == IDLE_PATHS[0] and not run.variant)
