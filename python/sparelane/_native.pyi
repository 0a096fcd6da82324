"""The simulator. Everything here is done in Rust."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str

Numbers = NDArray[np.generic]
# Plain numbers; numbers with a mask that is false where there is none; or texts as codes into categories, with such a
# mask where some have none.
Column = (
    Numbers
    | tuple[Numbers, NDArray[np.bool_]]
    | tuple[NDArray[np.uint32], list[str]]
    | tuple[NDArray[np.uint32], list[str], NDArray[np.bool_]]
)
Progress = Callable[[float], object]

class Totals(TypedDict):
    """Totals of a run."""

    events: int
    packet_hops: int
    flows: int
    finished_flows: int
    end_s: float
    peak_open_flows: int

class CatalogueParameter(TypedDict):
    """One key of an entry."""

    name: str
    default: str
    allowed: str
    meaning: str
    source: str
    # Whether its values are lists, and whether they are tables.
    takes: tuple[bool, bool]

class CatalogueEntry(TypedDict):
    """One thing that a scenario can name, or one of its tables."""

    kind: str
    name: str
    summary: str
    source: str
    params: list[CatalogueParameter]

class ScenarioError(ValueError):
    """A scenario that cannot be run: the first mistake in it."""

    file: str
    line: int | None
    key: str

class Alias(TypedDict):
    """Other names of something.

    `words` are in lower case without hyphens. `names` are those of the catalogue that they mean, or what comes nearest
    if `is_here` is false. `keys` are keys of a scenario, as "TABLE KEY".
    """

    words: list[str]
    names: list[str]
    keys: list[str]
    remark: str
    is_here: bool

class PhysicsError(RuntimeError):
    """A simulation that broke a law of its own: a defect of the simulator."""

class Cancelled(RuntimeError):
    """A progress callback returned false."""

class Round(TypedDict):
    """What one round of a walk-through sends; segments count from 0."""

    normal: list[int]
    low: list[tuple[int, int]]
    dropped: list[int]

class Results:
    """All results of a run."""

    @property
    def digest(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def version(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def totals(self) -> Totals: ...
    @property
    def traces(self) -> list[tuple[Path, int, OSError | None]]: ...
    @property
    def is_interrupted(self) -> bool: ...
    def flows(self) -> dict[str, Column]: ...
    def links(self) -> dict[str, Column]: ...
    def drops(self) -> dict[str, Column]: ...
    def cross_traffic(self) -> dict[str, Column]: ...
    def delays(self) -> dict[str, Column]: ...
    def packets(self) -> dict[str, Column]: ...
    def series(self) -> dict[str, Column]: ...

class Prepared:
    """A scenario, parsed and built, that has not run yet. It runs once."""

    def run(self, progress: Progress | None = None, keep: bool = False) -> Results: ...

def prepare(
    text: str,
    source_name: str,
    base_dir: str,
    overrides: list[str],
    seed: int | None = None,
    waiting: Callable[[float], object] | None = None,
    catalogue: Catalogue | None = None,
    traces: list[AskedTrace] | None = None,
) -> Prepared: ...

class Size(TypedDict):
    """The size of a run: counts, the memory of network and open flows (an estimate), and the scenario's warnings."""

    nodes: int
    cables: int
    flows: float
    open_flows: float
    bytes: float
    warnings: list[str]

def size(
    text: str,
    source_name: str,
    base_dir: str,
    overrides: list[str],
    seed: int | None = None,
    waiting: Callable[[float], object] | None = None,
    catalogue: Catalogue | None = None,
) -> Size: ...
def catalogue(catalogue: Catalogue | None = None) -> list[CatalogueEntry]: ...
def aliases(word: str | None = None) -> list[Alias]:
    """Other names of what a scenario can name, and names of what is not built in: those for a word, or all."""

def normalized(name: str) -> str:
    """A name without case, hyphens, underscores, blanks and points, and without `tcp` before or behind it."""

def name_advice(word: str, allowed: list[str]) -> str | None:
    """What is told of another name or spelling of one of the allowed names: a text that begins with `; `."""

def decoded(content: bytes, name: str) -> str:
    """The text of a file's content in UTF-8, without a mark of byte order.

    Raises:
        ScenarioError: it is something else, which the message names if it is known.
    """

def recognized(text: str) -> str | None:
    """What a text is that is no scenario, and what to do about it; `None` if that is not known."""

def json_schema(catalogue: Catalogue | None = None, is_sweep: bool = False) -> str:
    """What scenarios, or sweeps, may say, as JSON Schema."""

class Ack:
    """One acknowledgment of data, after loss detection has run on it."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""
    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged in sequence."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes newly known to have arrived, in sequence or by SACK."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes still in flight."""
    @property
    def rtt_s(self) -> float | None:
        """The round-trip time of the segment that caused the acknowledgment; none where that is ambiguous."""
    @property
    def srtt_s(self) -> float | None:
        """The smoothed round-trip time (RFC 6298), once there is a sample."""
    @property
    def min_rtt_s(self) -> float | None:
        """The least round-trip time of the connection, once there is a sample."""
    @property
    def delivery_rate_bps(self) -> float | None:
        """The rate of delivery, bits of payload per second, for controllers that need it."""
    @property
    def one_way_delay_s(self) -> float | None:
        """How long the segment was under way, for controllers that need it."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, and not a lack of data, was what last stopped the sender."""
    @property
    def in_recovery(self) -> bool:
        """Whether a loss is being repaired: the window was cut for it already."""
    @property
    def after_timeout(self) -> bool:
        """Whether a timeout is being repaired."""
    @property
    def ecn_echo(self) -> bool:
        """Whether the receiver echoes a congestion mark (ECN)."""

class Congestion:
    """News of congestion, once per episode."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""
    @property
    def kind(self) -> str:
        """`loss`, `timeout`, `mark`, `lost-syn`, or `spurious`: the last loss or timeout was mistaken."""
    @property
    def flight_bytes(self) -> int:
        """Sent and not cumulatively acknowledged; zero for `lost-syn` and `spurious`."""
    @property
    def is_repeated(self) -> bool:
        """Of a timeout: whether it is a repetition for the same data."""
    @property
    def srtt_s(self) -> float | None:
        """The smoothed round-trip time (RFC 6298), once there is a sample."""
    @property
    def min_rtt_s(self) -> float | None:
        """The least round-trip time of the connection, once there is a sample."""

class Controller:
    """The base of controllers in Python: subclasses define `on_ack` and `on_congestion`."""

    cwnd_bytes: float
    pacing_bps: float | None
    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def flow_bytes(self) -> int | None:
        """Payload bytes of the flow; none where it has no end."""
    @property
    def traffic_class(self) -> str | None:
        """The class of traffic that the flow belongs to, if its workload names one."""
    @property
    def line_rate_bps(self) -> float:
        """The rate of the sender's interface, bits per second."""
    @property
    def seed(self) -> int:
        """A number for the controller's own random draws, from the scenario's seed; drawn after the handshake."""
    def on_ack(self, ack: Ack) -> None:
        """News of an acknowledgment."""
    def on_congestion(self, event: Congestion) -> None:
        """News of congestion."""
    def limits(self) -> tuple[float, float | None]:
        """The window, bytes, and the pace, bits per second or none: read after all news."""

class Run:
    """What a workload in Python is told of the run."""

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, in the order of the topology."""
    @property
    def duration_s(self) -> float:
        """When the run ends."""
    @property
    def bdp_bytes(self) -> int:
        """What one bandwidth-delay product is."""
    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def line_rate_bps(self) -> float:
        """The rate of the slowest interface of a host, bits per second."""
    @property
    def random(self) -> Random:
        """Random draws of this workload's own, under the scenario's seed."""

class AgentView:
    """What an agent sees of its flow: sums since the connection began, and what holds now."""

    @property
    def delivered_bytes(self) -> int: ...
    @property
    def rtt_sum_s(self) -> float: ...
    @property
    def rtts(self) -> int: ...
    @property
    def last_rtt_s(self) -> float: ...
    @property
    def min_rtt_s(self) -> float: ...
    @property
    def losses(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def marks(self) -> int: ...
    @property
    def retransmissions(self) -> int: ...
    @property
    def cwnd_bytes(self) -> int: ...
    @property
    def pacing_bps(self) -> float | None: ...
    @property
    def in_flight_bytes(self) -> int: ...

class Stepper:
    """A run that is advanced step by step, with flows that are steered from outside."""

    def __new__(
        cls, text: str, source_name: str, base_dir: str, overrides: list[str], catalogue: Catalogue | None = None
    ) -> Stepper: ...
    @property
    def slowest_bps(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def mss_bytes(self) -> int: ...
    def advance(self, until_s: float) -> bool:
        """Runs on until then; returns whether the run is over."""
    def view(self, flow: int) -> AgentView | None:
        """What the agent of an open flow sees; none where the flow is not open."""
    def steer(self, flow: int, cwnd_bytes: int, pacing_bps: float | None) -> bool:
        """Sets window and pace of an agent's flow; returns whether it is open."""
    def finish(self) -> Results:
        """Ends the run and gives its results."""

class AskedTrace(TypedDict):
    """A trace that is asked for: `kind` is `flow`, `port` or `qlog`."""

    kind: str
    of: str
    path: str
    snap_bytes: int
    most: int

class ControllerKind:
    """A class of controllers under a name."""

    def __new__(
        cls,
        class_: type[Controller],
        name: str,
        summary: str,
        source: str,
        params: list[dict[str, object]],
        needs: list[str],
        traced: list[str],
    ) -> ControllerKind: ...

class WorkloadKind:
    """A generator of flows under a name."""

    def __new__(
        cls, function: object, name: str, summary: str, source: str, declared: list[dict[str, object]]
    ) -> WorkloadKind: ...

class SizesKind:
    """A distribution of flow sizes under a name."""

    def __new__(
        cls, function: object, name: str, summary: str, source: str, declared: list[dict[str, object]]
    ) -> SizesKind: ...

class Catalogue:
    """What a scenario can name: what is built in, and these."""

    def __new__(
        cls, controllers: list[ControllerKind], workloads: list[WorkloadKind], sizes: list[SizesKind]
    ) -> Catalogue: ...

def walk(controller: str, initial_window: int, segments: int, capacity: int, drops: list[int]) -> list[Round]: ...
def rapid_gaps(
    rates: int, packets_per_rate: int, spread: float, average_bps: int, wire_bytes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The gap before each packet of a p-stream, seconds, and the rate that it probes, bits per second."""

def bass(
    send_s: NDArray[np.float64],
    receive_s: NDArray[np.float64],
    passes: int,
    factor: float,
    floor_s: float,
    in_event: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Send and receive gaps after BASS, seconds, and where the incomplete event at the end begins."""

def rapid_estimates(
    send_s: NDArray[np.float64],
    receive_s: NDArray[np.float64],
    rate_bps: NDArray[np.float64],
    lengths: list[int],
    passes: int,
    factor: float,
    floor_s: float,
    excursion_share: float,
    persistence: float,
    samples: int,
) -> list[float | None]:
    """The estimates of p-streams that follow one another, bits per second; none for one with a single gap."""

class WireError(RuntimeError):
    """Files could not be sent or received: a key, an address, a file, or the peer is wrong."""

class WireSettings(TypedDict):
    """What both sides can set."""

    keys: str
    trust: list[str]
    controller: str
    set: list[tuple[str, str]]
    tail_rate: str | None
    tail_rate_cap: str | None
    unmarked: str
    mtu: int | None
    window: str | None
    dscp: list[int]
    busy_wait: bool
    line_rate: str | None
    offload: bool
    gso: str
    connect_timeout_s: float
    idle_timeout_s: float
    stall_timeout_s: float
    first_contact: bool
    sample_s: float | None
    qlog: str | None
    qlog_events: int

class TunnelSettings(TypedDict):
    """What can be set about a tunnel."""

    max_connections: int
    waits: bool
    longest_pause_s: float

class WireProgress(TypedDict):
    """How far a sender is; `sent` counts segments by class, `marks` says what became of their code points."""

    connected: bool
    bytes: int
    total_bytes: int
    elapsed_s: float
    sent: list[int]
    marks: list[str]
    tail_bps: int | None
    udp_payload_bytes: int
    gaps: dict[str, Any] | None
    remarks: list[str]
    line_rate_bps: int
    line_rate_source: str
    done: bool

class FileSender:
    """Sends files to one host."""

    def __new__(cls, settings: WireSettings, paths: list[str], to: list[str]) -> FileSender: ...
    @property
    def left_out(self) -> list[tuple[str, str]]:
        """What lies in a folder that is sent, and cannot be sent: its path, and why."""
    def step(self, seconds: float) -> list[tuple[str, int, int, str | None]]:
        """What became of items: name, bytes, those that were there, and the error if there is one."""
    def progress(self) -> WireProgress: ...
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]: ...
    def exposition(self) -> str: ...
    @property
    def peer(self) -> str | None: ...
    def close(self, reason: str) -> None: ...

class FileReceiver:
    """Receives files from any number of hosts."""

    def __new__(cls, settings: WireSettings, at: str, folder: str, replaces: bool) -> FileReceiver: ...
    @property
    def address(self) -> str: ...
    @property
    def received_bytes(self) -> int: ...
    def take_stranger(self) -> str | None: ...
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]: ...
    def exposition(self) -> str: ...
    @property
    def running(self) -> int: ...
    def step(self, seconds: float) -> list[dict[str, Any]]: ...
    def reload(self, folder: str, trust: list[str]) -> tuple[str, int]: ...
    def stop(self) -> None: ...
    def close(self, reason: str) -> None: ...

class Tunnel:
    """One site of a tunnel."""

    @staticmethod
    def serve(settings: WireSettings, tunnel: TunnelSettings, at: str, allowed: list[tuple[str, str]]) -> Tunnel: ...
    @staticmethod
    def dial(
        settings: WireSettings, tunnel: TunnelSettings, to: list[str], forwards: list[tuple[str, str]]
    ) -> Tunnel: ...
    @property
    def address(self) -> str: ...
    @property
    def forwarded(self) -> list[str]: ...
    def take_stranger(self) -> str | None: ...
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]: ...
    def exposition(self) -> str: ...
    @property
    def running(self) -> int: ...
    def step(self, seconds: float) -> list[dict[str, Any]]: ...
    def reload(self, folder: str, trust: list[str]) -> tuple[str, int]: ...
    def set_allowed(self, allowed: list[tuple[str, str]]) -> None: ...
    def stop(self) -> None: ...
    def close(self, reason: str) -> None: ...

def measure_path(settings: WireSettings, to: Callable[[], str], load_s: float, most_rate: str) -> dict[str, Any]:
    """What the path to a receiver does."""

def check_wire(settings: WireSettings, has_keys: bool) -> None:
    """Checks settings, and the keys if `has_keys`. Opens no socket and resolves no name."""

def new_key(folder: str) -> str:
    """Makes a key pair in a folder; returns its fingerprint."""

def show_keys(folder: str) -> tuple[str, list[str]]:
    """A key's fingerprint, and those of trusted peers."""

def trust(folder: str, fingerprint: str, remark: str) -> None:
    """Trusts a peer from now on."""

def untrust(folder: str, fingerprint: str) -> bool:
    """Trusts a peer no more; returns whether it was trusted."""

class EmulationError(RuntimeError):
    """A scenario that cannot be emulated here, or an emulation that had to end."""

class Emulation:
    """An emulation: planned, then given its devices, then run. Linux only."""

    def __init__(
        self, text: str, source_name: str, base_dir: str, overrides: list[str], seed: int | None = None
    ) -> None: ...
    @property
    def hosts(self) -> list[tuple[str, str]]: ...
    @property
    def mtu_bytes(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def asked_bps(self) -> int: ...
    def handover(self) -> int:
        """A socket, by its descriptor, through which devices are handed over; the caller closes it."""

    def take_device(self) -> None:
        """Takes the device of the next host, which has been sent."""

    def self_test(self, near: str, far: str) -> dict[str, Any]:
        """Tests what this machine can keep, with the namespaces of the first two hosts, in this thread."""

    def run(self, ready: Callable[[], object]) -> None:
        """Carries packets, in this thread, until `stop` is called; `ready` is called at the beginning."""

    def stop(self) -> None:
        """Ends `run`, or the next one."""

    def tables(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """What links counted, and what they did with each class, once the run has ended."""

    def counts(self) -> dict[str, float]:
        """What became of packets, and how late they were, once the run has ended."""

class LinuxError(RuntimeError):
    """A controller could not be loaded into the kernel, found in it or removed from it."""

# Nanoseconds of the kernel's clock, connection, port, remote port, remote address, event, window in segments, round
# trip in microseconds, and the program's own quantities.
KernelSample = tuple[int, int, int, int, str, str, int, int | None, list[tuple[str, float]]]

class KernelRequest(TypedDict):
    """What to load."""

    program: str
    name: str
    settings: list[tuple[str, str]]
    routes: list[str]
    interfaces: list[str]
    cgroups: list[str]
    is_default: bool
    is_pinned: bool

class Holding:
    """A controller that this process has loaded; removed with it, unless it is left."""

    def __init__(self, asked: KernelRequest) -> None: ...
    def leave(self) -> None:
        """Leaves a pinned controller to itself."""

    def remarks(self) -> list[str]:
        """What is worth a word about what an earlier one of that name had left."""

    def is_registered(self) -> bool:
        """Whether it is loaded still: another process may have unloaded it."""

    def unload(self) -> list[str]:
        """Removes the controller; returns what is worth a word."""

class Watch:
    """Somebody who watches a controller."""

    def __init__(self, name: str) -> None: ...
    def poll(self, most: int) -> list[KernelSample]:
        """What was told since the last call, at most so many samples."""

def linux_examine() -> list[tuple[str, bool, str, str, bool]]:
    """What was looked at: what, whether it is well, how it is, what mends it, whether it is needed."""

def linux_programs() -> list[tuple[str, str, list[tuple[str, str, str, str]]]]:
    """The programs: name, summary, settings (name, default, what is allowed, what it means)."""

def linux_constants(program: str, settings: list[tuple[str, str]], line_rate_bps: int) -> list[int]:
    """The constants of a program with these settings, for an interface of that rate, as the program holds them."""

def linux_loaded() -> list[tuple[str, str | None, bool, int | None, list[str], bool, list[tuple[str, int, int]]]]:
    """What is loaded: name, program, whether pinned, process, changes, whether registered, cost by operation."""

def linux_unload(name: str) -> list[str]:
    """Removes a controller of ours; returns what is worth a word."""
