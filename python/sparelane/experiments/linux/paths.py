"""The paths of the comparison with Linux, and one run of all controllers over each, one flow after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparelane.linux.parameters import CONTROLLERS

# Controllers that draw random numbers: TCP-LP for the beginnings of timestamps, CDG for when it gives way.
RANDOM = ("lp", "cdg")
# Where anything is random it is not the same in the kernel as here: there are so many runs, whose means are compared.
SEEDS = 20


@dataclass(frozen=True, slots=True)
class Path:
    """A dumbbell with one pair of hosts.

    Attributes:
        name: for people.
        rate: of the bottleneck.
        round_trip_ms: without any queue.
        loss: share of packets that the bottleneck's cable loses.
        limit: of the bottleneck's queue.
        sizes: of the flows that each controller sends.
    """

    name: str
    rate: str
    round_trip_ms: int
    loss: float
    limit: str
    sizes: tuple[str, ...]

    def controllers(self, seed: int) -> Sequence[str]:
        """Those that run under a seed: where nothing else is random, the first seed is enough for most."""
        return tuple(CONTROLLERS) if self.loss or seed == 1 else RANDOM


PATHS = (
    Path("10 Mb/s, 10 ms, deep", "10Mbps", 10, 0.0, "100packets", ("15kB", "150kB", "1.5MB")),
    Path("100 Mb/s, 50 ms", "100Mbps", 50, 0.0, "1bdp", ("15kB", "1.5MB", "6MB")),
    Path("1 Gb/s, 20 ms, shallow", "1Gbps", 20, 0.0, "0.2bdp", ("150kB", "1.5MB", "9MB")),
    Path("100 Mb/s, 200 ms", "100Mbps", 200, 0.0, "1bdp", ("15kB", "1.5MB", "6MB")),
    Path("10 Gb/s, 10 ms", "10Gbps", 10, 0.0, "1bdp", ("150kB", "1.5MB", "15MB")),
    Path("100 Mb/s, 100 ms, loss 1e-4", "100Mbps", 100, 1e-4, "1bdp", ("150kB", "1.5MB", "4MB")),
    Path("1 Gb/s, 10 ms, loss 1e-4, shallow", "1Gbps", 10, 1e-4, "0.2bdp", ("150kB", "1.5MB", "4MB")),
)
# Time for each flow, seconds: each is alone.
TURN_S = 60
# Hosts of Linux acknowledge nearly every packet here, since the receiving program reads each at once; and TCP-LP reads
# its delays from timestamps.
HOSTS = 'preset = "linux"\nmss = "1448B"\nheader = "52B"\ndelayed_ack = false\necn = "dctcp"'
# TCP-LP has other rules as well, with exact clocks, and CDG begins with the first full packet unless it is Linux's.
LIKE = dict.fromkeys(RANDOM, '\nlike = "linux"')
ON_LINUX = 'mss = "1448B"\nheader = "52B"\necn = "dctcp"'


def turns(path: Path, seed: int = 1) -> Iterator[tuple[str, str, int]]:
    """Controller, size, and start in seconds of each flow under a seed, in order."""
    for number, (controller, size) in enumerate((name, size) for name in path.controllers(seed) for size in path.sizes):
        yield controller, size, number * TURN_S


def scenario(path: Path, seed: int = 1, *, on_linux: bool) -> str:
    """All of a path's flows under a seed as one scenario, for the kernel or for the simulator."""
    flows = list(turns(path, seed))
    last_of_each = [number for number in range(len(flows)) if (number + 1) % len(path.sizes) == 0]
    lines = [
        f'title = "{path.name}"',
        f'duration = "{len(flows) * TURN_S}s"',
        "[topology]",
        'kind = "dumbbell"',
        'access_rate = "40Gbps"',
        f'access_delay = "{path.round_trip_ms / 20}ms"',
        f'bottleneck_rate = "{path.rate}"',
        f'bottleneck_delay = "{path.round_trip_ms * 0.4}ms"',
        "[queue]",
        f'limit = "{path.limit}"',
        "[transport]",
        ON_LINUX if on_linux else HOSTS,
        "[sample]",
        'interval = "50ms"',
        f"flows = {last_of_each}",
        'queues = [["west", "east"]]',
        'links = [["west", "east"]]',
        *([f'[[link]]\nselect = "core"\nloss = {path.loss}'] if path.loss else []),
        *(f'[scheme.{name}]\ncontroller = "{name}"{LIKE.get(name, "")}' for name in path.controllers(seed)),
        *(
            f'[[workload]]\nkind = "bulk"\nscheme = "{controller}"\nsize = "{size}"\nstart = "{start_s}s"'
            for controller, size, start_s in flows
        ),
    ]
    return "\n".join(lines) + "\n"
