"""Times the simulator on neutral workloads, each a `.topo` file with a `.flows` file in the same folder."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparelane.common import memory
from sparelane.common.folders import OutputError
from sparelane.scenario.settings import toml_value
from sparelane.simulation import simulate

if TYPE_CHECKING:
    from sparelane._native import Totals

TEMPLATE = """\
title = {title}
duration = {duration}
routing = "ecmp"

[topology]
kind = "file"
path = {topology}

# Each cable of the file has queues of its own size; this one is never used.
[queue]
kind = "fifo"
limit = "1000packets"

[transport]
mss = "1460B"
sack = true
delayed_ack = false
min_rto = "200ms"
syn_timeout = "1s"

[scheme.tcp]
controller = "newreno"
initial_window = 4
{ssthresh}
[workload]
kind = "flows"
path = {flows}
scheme = "tcp"
"""


# A duration of zero is replaced by the shortest possible one, in which nothing happens.
NO_TIME = ("0", "0s", "0ms", "0us", "0ns", "0ps")
SHORTEST = "1ps"


@dataclass(frozen=True, slots=True)
class Standard:
    """The default settings of a workload; `None` for settings without a default."""

    duration: str | None
    ssthresh_segments: int | None


# The settings of the published comparison.
STANDARDS = {
    "dumbbell10": Standard("10s", 400),
    "abilene30": Standard("2s", None),
    "leafspine": Standard("50ms", None),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """The timing of one workload. It covers the simulation, without reading and building.

    Attributes:
        workload: the file's name without its suffix.
        events: the number of events that the engine handled.
        packet_hops: the number of packets that crossed a link, counted at each link; includes ACKs.
        cpu_s: CPU time of the whole process, seconds.
        wall_s: elapsed time, seconds.
        peak_rss_mb: peak resident memory, in units of 10^6 bytes.
    """

    workload: str
    events: int
    packet_hops: int
    cpu_s: float
    wall_s: float
    peak_rss_mb: float

    def to_json(self) -> dict[str, str | int | float]:
        """The timing as JSON values."""
        return asdict(self)


def scenario_text(topology: Path, duration: str, ssthresh_segments: int | None) -> str:
    """The scenario of a workload: NewReno with SACK, an ACK per packet, drop-tail queues."""
    ssthresh = "" if ssthresh_segments is None else f"initial_ssthresh = {ssthresh_segments}\n"
    return TEMPLATE.format(
        title=toml_value(topology.stem),
        duration=_duration_value(duration),
        topology=toml_value(str(topology.resolve())),
        flows=toml_value(str(topology.with_suffix(".flows").resolve())),
        ssthresh=ssthresh,
    )


def _duration_value(duration: str) -> str:
    return toml_value(SHORTEST if duration in NO_TIME else duration)


def measure(topology: Path, duration: str, ssthresh_segments: int | None) -> Timing:
    """Runs a workload once and times it.

    Raises:
        ScenarioError: the workload cannot be run.
    """
    memory.reset_peak()
    prepared = simulate.prepare(scenario_text(topology, duration, ssthresh_segments), threads=1)
    timing, _ = _timed_run(topology.stem, prepared)
    return timing


def _built(scenario: str) -> tuple[simulate.Prepared, float]:
    """A simulation that is ready to run on one thread, and the time to build it in seconds."""
    began_s = time.perf_counter()
    prepared = simulate.prepare(scenario, threads=1)
    return prepared, time.perf_counter() - began_s


def _timed_run(name: str, prepared: simulate.Prepared) -> tuple[Timing, Totals]:
    """The timing of a prepared simulation, and its totals. Peak memory counts from the last `memory.reset_peak`."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    result = prepared.run()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    totals = result.totals
    peak_mb = memory.peak_bytes() / 1e6
    return Timing(name, totals["events"], totals["packet_hops"], cpu_s, wall_s, peak_mb), totals


# The fat tree of the runs below.
FAT_TREE_TEMPLATE = """\
duration = {duration}
seed = 1
routing = "ecmp"

[topology]
kind = "fat-tree"
k = {k}
rate = "10Gbps"
delay = "1us"

[queue]
kind = "fifo"
limit = "100packets"

[scheme.tcp]
controller = "newreno"
"""

LADDER_TEMPLATE = f"""\
title = "fat tree of {{k}} ports"
{FAT_TREE_TEMPLATE}initial_window = 10

[workload]
kind = "poisson"
load = 0.3
sizes = {{{{ kind = "fixed", size = "20packets" }}}}
"""

# The number of ports of the routers in each fat tree, and its default duration.
LADDER = {8: "8ms", 16: "3ms", 24: "1ms", 32: "600us", 48: "300us", 64: "200us"}


@dataclass(frozen=True, slots=True)
class FatTreeTiming:
    """The timing of a fat tree. The load is the same for every size.

    The tree also runs for half of the time. The difference gives the time of a hop in the second half, which is free
    of start-up: memory that is touched for the first time, and the first routes between routers.

    Attributes:
        ports: the ports of each router, k; the tree has k^3 / 4 hosts.
        hosts: the number of hosts.
        links: the number of directions of cables.
        flows: the number of flows that started.
        build_s: the time from reading the scenario to the first event, seconds.
        timing: the timing of the simulation.
        further_hop_ns: the CPU time of a packet-hop in the second half, nanoseconds; `None` if there was none.
    """

    ports: int
    hosts: int
    links: int
    flows: int
    build_s: float
    timing: Timing
    further_hop_ns: float | None

    def to_json(self) -> dict[str, str | int | float | None]:
        """The timing as JSON values."""
        own = {"ports": self.ports, "hosts": self.hosts, "links": self.links, "flows": self.flows}
        return {**own, "build_s": self.build_s, **self.timing.to_json(), "further_hop_ns": self.further_hop_ns}


def measure_fat_tree(ports: int, duration: str) -> FatTreeTiming:
    """Builds and simulates a fat tree with routers of `ports` ports, for half of the duration and for all of it.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    whole, build_s, totals = _timed_fat_tree(ports, duration)
    half, _, _ = _timed_fat_tree(ports, f"{max(1, round(5e11 * totals['end_s']))}ps")
    further_hops = whole.packet_hops - half.packet_hops
    further_hop_ns = 1e9 * (whole.cpu_s - half.cpu_s) / further_hops if further_hops > 0 else None
    links = 2 * (3 * ports**3 // 4)
    return FatTreeTiming(ports, ports**3 // 4, links, totals["flows"], build_s, whole, further_hop_ns)


def _timed_fat_tree(ports: int, duration: str) -> tuple[Timing, float, Totals]:
    """The timing of a fat tree, the time to build it in seconds, and the totals of its run."""
    memory.reset_peak()
    prepared, build_s = _built(LADDER_TEMPLATE.format(k=ports, duration=_duration_value(duration)))
    timing, totals = _timed_run(f"fat-tree-{ports}", prepared)
    return timing, build_s, totals


MILLION_TEMPLATE = f"""\
title = "many open flows"
{FAT_TREE_TEMPLATE}
[workload]
kind = "bulk"
flows = {{flows}}
pairs = "random"
"""


@dataclass(frozen=True, slots=True)
class Million:
    """The size of the run with a million open flows.

    Attributes:
        ports: the ports of each router of the fat tree.
        flows: the number of unlimited flows between random hosts, which start at once.
        duration: the simulated time.
    """

    ports: int
    flows: int
    duration: str


# Each flow has sent its SYN by then.
MILLION = Million(64, 1_000_000, "2us")


@dataclass(frozen=True, slots=True)
class OpenFlowsTiming:
    """The timing of a fat tree with many flows that are all open at the end.

    Attributes:
        ports: the ports of each router, k; the tree has k^3 / 4 hosts.
        hosts: the number of hosts.
        open_flows: the largest number of flows that were open at the same time.
        build_s: the time from reading the scenario to the first event, seconds.
        built_mb: peak resident memory of the process until the first event, in units of 10^6 bytes.
        timing: the timing of the simulation, with the peak memory of the whole run.
    """

    ports: int
    hosts: int
    open_flows: int
    build_s: float
    built_mb: float
    timing: Timing

    def to_json(self) -> dict[str, str | int | float]:
        """The timing as JSON values."""
        own = {"ports": self.ports, "hosts": self.hosts, "open_flows": self.open_flows}
        return {**own, "build_s": self.build_s, "built_mb": self.built_mb, **self.timing.to_json()}


def measure_open_flows(size: Million, duration: str | None = None) -> OpenFlowsTiming:
    """Builds and simulates a fat tree in which many flows are open at once; `duration` replaces that of `size`.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    memory.reset_peak()
    text = MILLION_TEMPLATE.format(
        k=size.ports, flows=size.flows, duration=_duration_value(size.duration if duration is None else duration)
    )
    prepared, build_s = _built(text)
    built_mb = memory.peak_bytes() / 1e6
    timing, totals = _timed_run(f"open-flows-{size.ports}", prepared)
    return OpenFlowsTiming(size.ports, size.ports**3 // 4, totals["peak_open_flows"], build_s, built_mb, timing)


@dataclass(frozen=True, slots=True)
class Speedup:
    """The times of one run on one thread and on several, in rounds of both.

    Each round also has separate runs at the same time, on one thread each. They share nothing but the machine: its
    memory, its caches and its clock. The ratio of a single run on several threads cannot be much higher than theirs.

    Attributes:
        workload: its name.
        domains: the domains of the run on several threads.
        alone_s: elapsed times on one thread, seconds.
        together_s: elapsed times on several threads, seconds.
        copies: the number of separate runs: one for each thread, but not more than there are cores.
        copies_s: elapsed times until all separate runs had ended, seconds.
        have_equal_digests: whether all runs gave the same results, as they must.
    """

    workload: str
    domains: int
    alone_s: list[float]
    together_s: list[float]
    copies: int
    copies_s: list[float]
    have_equal_digests: bool

    @property
    def ratio(self) -> float:
        """The median, over all rounds, of the time on one thread divided by that on several."""
        return statistics.median(
            alone / together for alone, together in zip(self.alone_s, self.together_s, strict=True)
        )

    @property
    def separate_ratio(self) -> float:
        """The same for separate runs at the same time: their number, times the time of one, divided by that of all."""
        return statistics.median(
            self.copies * alone / copies for alone, copies in zip(self.alone_s, self.copies_s, strict=True)
        )

    def to_json(self) -> dict[str, object]:
        """The times as JSON values."""
        return {**asdict(self), "ratio": self.ratio, "separate_ratio": self.separate_ratio}


def threaded_workloads(scratch: Path) -> dict[str, tuple[str, dict[str, object]]]:
    """Scenarios, with settings, that gain from several threads, by name.

    Raises:
        OutputError: the standard workloads can neither be found nor made.
    """
    leafspine = next(path for path in standard_workloads(scratch) if path.stem == "leafspine")
    return {
        "fat tree, k = 16": (LADDER_TEMPLATE.format(k=16, duration=toml_value("4ms")), {}),
        "fat tree, k = 32": (LADDER_TEMPLATE.format(k=32, duration=toml_value("1ms")), {}),
        "leafspine": (scenario_text(leafspine, "50ms", None), {}),
        "Internet-2, RC3": ("rc3-internet2", {"duration": "2s", "workload.scheme": "rc3"}),
    }


def speedup(name: str, scenario: str, settings: dict[str, object], threads: int, rounds: int) -> Speedup:
    """Runs a scenario on one thread, on several, and several times at once on one thread each, in turn.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    copies = min(threads, os.cpu_count() or 1)
    alone_s: list[float] = []
    together_s: list[float] = []
    copies_s: list[float] = []
    digests: set[str] = set()
    domains = 1
    with ThreadPoolExecutor(copies) as pool:
        for _ in range(rounds):
            for times_s, each, runs in ((alone_s, 1, 1), (together_s, threads, 1), (copies_s, 1, copies)):
                prepared = [simulate.prepare(scenario, set=settings, threads=each) for _ in range(runs)]
                domains = max(domains, prepared[0].division().domains)
                began_s = time.perf_counter()
                # One run is on this thread, which Ctrl-C reaches. A simulation lets other threads of Python run.
                others = [pool.submit(run.run) for run in prepared[1:]]
                results = [prepared[0].run(), *(other.result() for other in others)]
                times_s.append(time.perf_counter() - began_s)
                digests.update(result.digest for result in results)
    return Speedup(name, domains, alone_s, together_s, copies, copies_s, len(digests) == 1)


def standard_workloads(scratch: Path) -> list[Path]:
    """The three standard workloads in `benches/work`, or new ones in `scratch` from the source tree's generator.

    Raises:
        OutputError: neither the workloads nor the generator exist.
    """
    made = Path("benches") / "work"
    if not all((made / f"{name}.topo").is_file() for name in STANDARDS):
        made = _generate(scratch)
    return [made / f"{name}.topo" for name in STANDARDS]


def _generate(folder: Path) -> Path:
    trees = (Path.cwd(), Path(__file__).resolve().parents[3])
    generator = next((path for tree in trees if (path := tree / "benches" / "workloads.py").is_file()), None)
    if generator is None:
        raise OutputError("the standard workloads are missing: run this in the source tree, or give .topo files")
    done = subprocess.run(
        [sys.executable, str(generator), "--out", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise OutputError(f"{generator} failed: {done.stderr.strip()}")
    return folder
