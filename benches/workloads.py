"""Write the neutral workloads: networks and flow lists in a format for any packet simulator.

A workload consists of two text files with one record per line and fields separated by one space.

NAME.topo, the network; nodes are numbered from 0, hosts first:

    host ID
    router ID NAME
    link A B RATE DELAY QUEUE    between nodes A and B, equal in both directions: RATE in bits per second, one-way
                                 DELAY in nanoseconds, and QUEUE, the limit of each direction's output queue in
                                 full-size packets of 1500 bytes

NAME.flows, in order of start times:

    START SRC DST SIZE           START in nanoseconds, hosts SRC and DST, SIZE in payload bytes; 0 is unlimited

The workloads:

    dumbbell1, dumbbell10, dumbbell100   N unlimited flows through one bottleneck of 1 Gb/s, 40 ms round trip,
                                         with a queue of one bandwidth-delay product
    abilene30                            the Abilene backbone, 10 hosts per city, bounded-Pareto flows between cities
                                         for one second, at a mean load of 30 % of the core links
    leafspine                            96 hosts, 8 leaves, 3 spines; every host has an unlimited flow to another

The same seed gives identical files.
"""

import argparse
import heapq
import itertools
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GBPS = 1_000_000_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
FULL_PACKET_BYTES = 1500
DEFAULT_FOLDER = Path(__file__).resolve().parent / "work"


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes, equal in both directions."""

    a: int
    b: int
    rate_bps: int
    delay_ns: int
    queue_packets: int


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """A transfer from one host to another; `size_bytes` of 0 is unlimited."""

    start_ns: int
    src: int
    dst: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Workload:
    """A network and its flows. Hosts are nodes 0 to `hosts - 1`; the routers follow in order."""

    name: str
    hosts: int
    routers: tuple[str, ...]
    links: tuple[Link, ...]
    flows: tuple[Flow, ...]

    def topo_text(self) -> str:
        """Return the text of NAME.topo."""
        lines = [f"host {host}" for host in range(self.hosts)]
        lines += [f"router {self.hosts + index} {name}" for index, name in enumerate(self.routers)]
        lines += [f"link {k.a} {k.b} {k.rate_bps} {k.delay_ns} {k.queue_packets}" for k in self.links]
        return "".join(f"{line}\n" for line in lines)

    def flows_text(self) -> str:
        """Return the text of NAME.flows."""
        return "".join(f"{f.start_ns} {f.src} {f.dst} {f.size_bytes}\n" for f in self.flows)

    def write(self, folder: Path) -> None:
        """Write NAME.topo and NAME.flows into an existing folder."""
        (folder / f"{self.name}.topo").write_text(self.topo_text(), encoding="ascii", newline="\n")
        (folder / f"{self.name}.flows").write_text(self.flows_text(), encoding="ascii", newline="\n")


def dumbbell(pairs: int, seed: int) -> Workload:
    """Return a dumbbell of `pairs` senders and receivers; start times are spread over 0.1 s."""
    rng = random.Random(seed)
    hosts = 2 * pairs
    left, right = hosts, hosts + 1
    round_trip_ns = 2 * (1 + 18 + 1) * NS_PER_MS
    bdp_packets = GBPS * round_trip_ns // NS_PER_S // (8 * FULL_PACKET_BYTES)

    senders = [Link(pair, left, 10 * GBPS, 1 * NS_PER_MS, 20_000) for pair in range(pairs)]
    receivers = [Link(right, pairs + pair, 10 * GBPS, 1 * NS_PER_MS, 20_000) for pair in range(pairs)]
    bottleneck = Link(left, right, 1 * GBPS, 18 * NS_PER_MS, bdp_packets)

    flows = [Flow(int(rng.uniform(0, 0.1) * 1e9), pair, pairs + pair, 0) for pair in range(pairs)]
    return Workload(
        name=f"dumbbell{pairs}",
        hosts=hosts,
        routers=("L", "R"),
        links=(*senders, *receivers, bottleneck),
        flows=tuple(sorted(flows)),
    )


CITIES = ("SEA", "LAX", "SLC", "KSC", "HOU", "CHI", "ATL", "WDC", "NYC", "CLE")

# The core links of the Abilene backbone, with one-way delays in ms roughly proportional to the fibre lengths.
CORE_MS = (
    ("SEA", "LAX", 8.5),
    ("SEA", "SLC", 6.0),
    ("LAX", "SLC", 5.0),
    ("LAX", "HOU", 12.5),
    ("SLC", "KSC", 8.0),
    ("KSC", "HOU", 6.0),
    ("KSC", "CHI", 4.5),
    ("HOU", "ATL", 6.0),
    ("CHI", "CLE", 3.0),
    ("CHI", "ATL", 5.5),
    ("CLE", "NYC", 4.0),
    ("NYC", "WDC", 2.0),
    ("WDC", "ATL", 5.0),
)

HOSTS_PER_CITY = 10
ACCESS_ROUND_TRIP_MS = 0.04  # two access links, both ways
MEAN_ROUND_TRIP_MS = 40.0


@dataclass(frozen=True, slots=True)
class BoundedPareto:
    """A bounded Pareto distribution of flow sizes in bytes; `shape` must not be 1."""

    shape: float
    low: float
    high: float

    def mean(self) -> float:
        """Return the mean size in bytes."""
        a, low, high = self.shape, self.low, self.high
        moment = math.pow(low, 1 - a) - math.pow(high, 1 - a)
        return a / (a - 1) * moment / (math.pow(low, -a) - math.pow(high, -a))

    def draw(self, rng: random.Random) -> int:
        """Draw a size in whole bytes by inversion of the distribution function."""
        u = rng.random()
        low, high = math.pow(self.low, -self.shape), math.pow(self.high, -self.shape)
        return int(math.pow(low - u * (low - high), -1 / self.shape))


def abilene(load: float, seed: int, duration_s: float = 1.0) -> Workload:
    """Return Poisson arrivals between hosts of different cities; `load` is the mean over both directions of core links.

    The delays of the core are scaled so that the mean round trip over all pairs of cities is 40 ms.
    """
    rng = random.Random(seed)
    hosts = len(CITIES) * HOSTS_PER_CITY
    paths = [path for city in CITIES for path in _paths_from(city)]
    mean_hops_per_direction = sum(hops for _, hops in paths) / len(paths) / (2 * len(CORE_MS))
    mean_path_ms = math.fsum(2 * delay_ms + ACCESS_ROUND_TRIP_MS for delay_ms, _ in paths) / len(paths)
    stretch = MEAN_ROUND_TRIP_MS / mean_path_ms

    access = [Link(host, hosts + host // HOSTS_PER_CITY, 10 * GBPS, 10_000, 20_000) for host in range(hosts)]
    router = {city: hosts + index for index, city in enumerate(CITIES)}
    core = [Link(router[a], router[b], GBPS, int(ms * stretch * 1e6), 3333) for a, b, ms in CORE_MS]

    sizes = BoundedPareto(shape=1.1, low=7300, high=30e6)
    offered_bps = load * GBPS / mean_hops_per_direction
    arrivals_per_s = offered_bps / 8 / sizes.mean()
    return Workload(
        name=f"abilene{int(load * 100)}",
        hosts=hosts,
        routers=CITIES,
        links=(*access, *core),
        flows=tuple(_intercity_flows(rng, hosts, arrivals_per_s, sizes, duration_s)),
    )


def _paths_from(source: str) -> list[tuple[float, int]]:
    """Return the delay in ms and the number of core links of the shortest path to each other city, as in `CITIES`."""
    neighbours: dict[str, list[tuple[str, float]]] = {city: [] for city in CITIES}
    for a, b, ms in CORE_MS:
        neighbours[a].append((b, ms))
        neighbours[b].append((a, ms))

    settled: dict[str, tuple[float, int]] = {}
    frontier = [(0.0, 0, source)]
    while frontier:
        delay_ms, hops, city = heapq.heappop(frontier)
        if city in settled:
            continue
        settled[city] = (delay_ms, hops)
        for neighbour, ms in neighbours[city]:
            heapq.heappush(frontier, (delay_ms + ms, hops + 1, neighbour))
    return [settled[city] for city in CITIES if city != source]


def _intercity_flows(
    rng: random.Random, hosts: int, arrivals_per_s: float, sizes: BoundedPareto, duration_s: float
) -> Iterator[Flow]:
    """Yield Poisson arrivals until `duration_s`. The order of the random draws must not change."""
    start_s = 0.0
    while True:
        start_s += rng.expovariate(arrivals_per_s)
        if start_s > duration_s:
            return
        src = rng.randrange(hosts)
        dst = rng.randrange(hosts)
        while dst // HOSTS_PER_CITY == src // HOSTS_PER_CITY:
            dst = rng.randrange(hosts)
        yield Flow(int(start_s * 1e9), src, dst, sizes.draw(rng))


def leafspine(seed: int, leaves: int = 8, hosts_per_leaf: int = 12, spines: int = 3) -> Workload:
    """Return a random permutation in which each host sends to one host; start times are within 10 us."""
    rng = random.Random(seed)
    hosts = leaves * hosts_per_leaf
    edge = [Link(host, hosts + host // hosts_per_leaf, 10 * GBPS, 1_000, 200) for host in range(hosts)]
    fabric = [
        Link(hosts + leaf, hosts + leaves + spine, 40 * GBPS, 1_000, 200)
        for leaf, spine in itertools.product(range(leaves), range(spines))
    ]
    flows = [Flow(rng.randrange(10_000), src, dst, 0) for src, dst in enumerate(_derangement(rng, hosts))]
    return Workload(
        name="leafspine",
        hosts=hosts,
        routers=(*(f"leaf{leaf}" for leaf in range(leaves)), *(f"spine{spine}" for spine in range(spines))),
        links=(*edge, *fabric),
        flows=tuple(sorted(flows)),
    )


def _derangement(rng: random.Random, size: int) -> list[int]:
    """Return a random permutation of 0 to `size - 1` without fixed points."""
    while True:
        order = list(range(size))
        rng.shuffle(order)
        if all(place != item for place, item in enumerate(order)):
            return order


def neutral_workloads(seed: int) -> list[Workload]:
    """Return all workloads of the comparison, drawn with `seed`."""
    return [*(dumbbell(pairs, seed) for pairs in (1, 10, 100)), abilene(0.30, seed), leafspine(seed)]


def main() -> None:
    """Parse the command line and write the workloads."""
    parser = argparse.ArgumentParser(description="Write the neutral workloads as NAME.topo and NAME.flows.")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="folder to write to (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of every random draw (default: %(default)s)")
    arguments = parser.parse_args()
    folder: Path = arguments.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for workload in neutral_workloads(arguments.seed):
            workload.write(folder)
            print(f"{folder / workload.name}.topo: {len(workload.links)} links; .flows: {len(workload.flows)} flows")
    except OSError as error:
        sys.exit(f"workloads: cannot write to {folder}: {error.strerror}")


if __name__ == "__main__":
    main()
