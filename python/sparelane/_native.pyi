"""Bindings of the simulator, the wire, the emulation and the kernel's controllers, which are written in Rust."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str

Numbers = NDArray[np.generic]
# One of: numbers; numbers with a mask that is false for missing ones; codes of texts with their categories; or codes,
# categories and such a mask.
Column = (
    Numbers
    | tuple[Numbers, NDArray[np.bool_]]
    | tuple[NDArray[np.uint32], list[str]]
    | tuple[NDArray[np.uint32], list[str], NDArray[np.bool_]]
)
# Receives the share of simulated time that is done; returns false to stop the run.
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
    """A key of an entry of the catalogue."""

    name: str
    default: str
    allowed: str
    meaning: str
    source: str
    # Whether the key takes a list, and whether it takes a table.
    takes: tuple[bool, bool]

class CatalogueEntry(TypedDict):
    """A kind of controller, queue, topology or workload, or a table of scenarios."""

    kind: str
    name: str
    summary: str
    source: str
    params: list[CatalogueParameter]

class ScenarioError(ValueError):
    """A scenario is invalid; describes its first mistake. `line` is `None` if the mistake has no line."""

    file: str
    line: int | None
    key: str

class Alias(TypedDict):
    """Other names of an entry of the catalogue.

    `words` are in lower case without hyphens. `names` are the entries that they mean; if `is_here` is false, they are
    the nearest ones. `keys` are keys of a scenario, as "TABLE KEY".
    """

    words: list[str]
    names: list[str]
    keys: list[str]
    remark: str
    is_here: bool

class PhysicsError(RuntimeError):
    """A simulation violated a conservation law or a limit, which is a defect of the simulator."""

class Cancelled(RuntimeError):
    """A progress callback has stopped the simulation by returning false."""

class Round(TypedDict):
    """The segments that a transfer sends in one round; segments count from 0, `low` has pairs of segment and class."""

    normal: list[int]
    low: list[tuple[int, int]]
    dropped: list[int]

class Results:
    """All results of a run; each method returns a table."""

    @property
    def digest(self) -> str:
        """The digest of all results, in hexadecimal digits."""
    @property
    def seed(self) -> int:
        """The seed of all random draws."""
    @property
    def warnings(self) -> list[str]:
        """Warnings about the scenario."""
    @property
    def version(self) -> str:
        """The version of the simulator."""
    @property
    def scenario(self) -> str:
        """The scenario as it ran, as TOML."""
    @property
    def totals(self) -> Totals:
        """Totals of the run."""
    @property
    def traces(self) -> list[tuple[Path, int, OSError | None]]:
        """The files of traces: path, number of packets or events, and the error that ended it, if any."""
    @property
    def is_interrupted(self) -> bool:
        """True if the run was stopped before its end."""
    def flows(self) -> dict[str, Column]:
        """One row per flow, in order of start."""
    def links(self) -> dict[str, Column]:
        """One row per direction of a cable."""
    def drops(self) -> dict[str, Column]:
        """One row per direction of a cable and priority class."""
    def cross_traffic(self) -> dict[str, Column]:
        """One row per source of cross traffic."""
    def delays(self) -> dict[str, Column]:
        """One row per scheme, class of traffic and bin of one-way delays of packets."""
    def packets(self) -> dict[str, Column]:
        """One row per data packet of the logged flow, in order of sending."""
    def series(self) -> dict[str, Column]:
        """One row per sample of one quantity."""

class HostDescription(TypedDict):
    """A host, with the rate and the one-way delay of its cable to a neighbour."""

    name: str
    neighbour: str
    rate_bps: int
    delay_ns: int

class CableDescription(TypedDict):
    """A cable between two routers: its slower rate, its one-way delay, and the share of packets that it loses."""

    ends: list[str]
    rate_bps: int
    delay_ns: int
    loss: float

class TransportDescription(TypedDict):
    """The transport of a scheme: segments and batches; `ecn` is whether packets are ECN-capable."""

    mss_bytes: int
    header_bytes: int
    ecn: bool
    send_batch: int
    receive_batch: int
    receive_batch_timeout_ns: int

SchemeDescription = TypedDict(
    "SchemeDescription",
    {"controller": str, "class": int, "settings": dict[str, Any], "transport": TransportDescription},
)

class QueueDescription(TypedDict):
    """The output queues of routers; `settings` are those of the kind, in seconds and bytes."""

    kind: str
    limit_bytes: int
    mark_at_bytes: int | None
    push_out: bool
    settings: dict[str, Any]

DropDescription = TypedDict(
    "DropDescription", {"from": str, "to": str, "flow": int, "segments": list[int], "copies": int}
)

ChangeDescription = TypedDict(
    "ChangeDescription",
    {
        "at_ns": int,
        "from": str,
        "to": str,
        "quantity": Literal["rate_bps", "delay_ns", "loss", "down"],
        "value": int | float | bool,
    },
)
"""A change of one quantity of one direction of a cable."""

class SampleDescription(TypedDict):
    """Time series to record: numbers of flows, and pairs of nodes."""

    interval_ns: int
    flows: list[int]
    queues: list[list[str]]
    links: list[list[str]]

class Description(TypedDict):
    """A scenario with units, defaults and presets resolved.

    `given` has its tables as written, including overrides; `text` is the whole as TOML.
    """

    file: str
    text: str
    given: dict[str, Any]
    seed: int
    duration_ns: int
    routers: list[str]
    hosts: list[HostDescription]
    cables: list[CableDescription]
    schemes: dict[str, SchemeDescription]
    queue: QueueDescription
    drops: list[DropDescription]
    changes: list[ChangeDescription]
    sample: SampleDescription | None

class FlowDescription(TypedDict):
    """A flow; its size is `None` if it has no end, and its request, traffic class and pool if it has none.

    A pool numbers the connections that a flow may take, among those with its hosts and its scheme.
    """

    scheme: str
    src: str
    dst: str
    size_bytes: int | None
    start_ns: int
    request: int | None
    traffic_class: str | None
    pool: int | None

class Prepared:
    """A scenario that is parsed and built, but has not run yet. It can run once."""

    def describe(self) -> Description:
        """Returns the scenario with units, defaults and presets resolved, without its flows."""
    def division(self) -> tuple[int, int, int, str | None]:
        """Returns the numbers of domains, of threads and of threads asked for, and the reason for a single domain."""
    def resolved(self) -> str:
        """Returns the scenario as text. Equal texts give equal results in the same build."""
    def flows(self, max_flows: int) -> list[FlowDescription]:
        """Returns the first flows that start by the end of the run, with all random draws made."""
    def network_file(self, is_hpcc: bool) -> str:
        """Returns the network as the text of a `.topo` file, or of `topology.txt` of HPCC's simulator."""
    def flows_file(self, is_hpcc: bool, max_flows: int) -> str:
        """Returns the first planned flows as the text of a `.flows` file, or of `flow.txt` of HPCC's simulator."""
    def run(self, progress: Progress | None = None, keep: bool = False) -> Results:
        """Runs the simulation.

        Args:
            progress: called with the share of simulated time that is done; returns false to stop the run.
            keep: whether a stopped run returns the results until then.

        Raises:
            Cancelled: the run was stopped, and `keep` is false.
            PhysicsError: a defect of the simulator.
            RuntimeError: the scenario has run already.
        """

def prepare(
    text: str,
    source_name: str,
    base_dir: str,
    overrides: list[str],
    seed: int | None = None,
    waiting: Callable[[float], object] | None = None,
    catalogue: Catalogue | None = None,
    traces: list[TraceRequest] | None = None,
    threads: int | None = None,
) -> Prepared:
    """Parses a scenario and builds its network and flows.

    Args:
        text: the scenario as TOML.
        source_name: the name of its file in messages.
        base_dir: the folder to which relative paths in the scenario refer.
        overrides: settings as "KEY=VALUE".
        seed: replaces the scenario's seed.
        waiting: called now and then with the seconds that have passed.
        catalogue: the names that the scenario can use; by default the built-in ones.
        traces: traces to write.
        threads: the number of threads; by default that of the scenario, and otherwise as many as the run gains from.

    Raises:
        ScenarioError: the scenario is invalid.
    """

class Size(TypedDict):
    """The size of a run: counts, the estimated memory of network and open flows in bytes, and warnings."""

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
) -> Size:
    """Returns the size of the run that `prepare` would build with the same arguments, but builds only the network."""

def catalogue(catalogue: Catalogue | None = None) -> list[CatalogueEntry]:
    """Returns all entries of a catalogue, or of the built-in one."""

def aliases(word: str | None = None) -> list[Alias]:
    """Returns the aliases of `word`, or all of them, including names of things that are not built in."""

def normalized(name: str) -> str:
    """Returns a name in lower case, without hyphens, underscores, spaces, periods, and `tcp` at either end."""

def name_advice(word: str, allowed: list[str]) -> str | None:
    """Returns advice for an alias or a misspelling of a name in `allowed`; it begins with `; `."""

def decoded(content: bytes, name: str) -> str:
    """Decodes the content of a file in UTF-8, without its byte-order mark.

    Args:
        content: the bytes of the file.
        name: the name of the file in messages.

    Raises:
        ScenarioError: the content is not UTF-8; the message names the format if it is known.
    """

def tables(text: str, source_name: str, overrides: list[str] | None = None) -> dict[str, Any]:
    """Returns the tables of a scenario or sweep as written, with overrides of the form `key=value`.

    Keys and values are not checked.

    Raises:
        ScenarioError: the text is not valid TOML, or an override is not valid.
    """

def key_path(key: str) -> list[str] | None:
    """Returns the parts of a dotted key, such as `queue.limit`; `None` if the text is not a key."""

def quantity(text: str) -> tuple[float, str] | None:
    """Returns a quantity in the unit of results, such as `(1e7, "bit/s")` for `10Mbps`; `None` for other text."""

def recognized(text: str) -> str | None:
    """Returns the format of a text that is not a scenario, with advice to the user; `None` if the format is unknown."""

def capture_hosts(path: str) -> int | None:
    """Returns the number of hosts that the flows of a packet capture need; `None` if the file is not a capture.

    Raises:
        ScenarioError: the capture is damaged.
    """

def identified(text: str, extension: str) -> tuple[str, str, int | None] | None:
    """Returns what a text is: its purpose, the name of its format, and the hosts that it needs; `None` if unknown.

    The purpose is `scenario`, `topology`, `flows`, `sizes` or `trace`. A list of flows whose hosts have numbers by
    position needs one host more than its highest number.
    """

def json_schema(catalogue: Catalogue | None = None, is_sweep: bool = False) -> str:
    """Returns the JSON Schema of scenarios, or of sweeps, as text."""

class Ack:
    """One acknowledgment of data, after loss detection has run on it."""

    @property
    def now_s(self) -> float:
        """The simulated time in seconds."""
    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged in sequence."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes newly reported as received, in sequence or by SACK."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes still in flight."""
    @property
    def rtt_s(self) -> float | None:
        """The round-trip time in seconds of the segment that caused the acknowledgment; `None` if it is ambiguous."""
    @property
    def srtt_s(self) -> float | None:
        """The smoothed round-trip time in seconds (RFC 6298); `None` before the first sample."""
    @property
    def min_rtt_s(self) -> float | None:
        """The smallest round-trip time of the connection in seconds; `None` before the first sample."""
    @property
    def delivery_rate_bps(self) -> float | None:
        """The delivery rate in bits of payload per second, for controllers that need `delivery_rate`."""
    @property
    def one_way_delay_s(self) -> float | None:
        """The one-way delay of the segment in seconds, for controllers that need `one_way_delay`."""
    @property
    def cwnd_limited(self) -> bool:
        """True if the window limited the sender, as opposed to a lack of data."""
    @property
    def in_recovery(self) -> bool:
        """True while a loss is repaired for which the window was already cut."""
    @property
    def after_timeout(self) -> bool:
        """True while a timeout is repaired."""
    @property
    def ecn_echo(self) -> bool:
        """True if the receiver echoes a congestion mark (ECN)."""

class Congestion:
    """An event of congestion, reported once per episode."""

    @property
    def now_s(self) -> float:
        """The simulated time in seconds."""
    @property
    def kind(self) -> str:
        """`loss`, `timeout`, `mark`, `lost-syn`, or `spurious` if the last loss or timeout proved to be mistaken."""
    @property
    def flight_bytes(self) -> int:
        """Bytes that were sent and not cumulatively acknowledged; zero for `lost-syn` and `spurious`."""
    @property
    def is_repeated(self) -> bool:
        """True for a repeated timeout of the same data; false for other kinds."""
    @property
    def srtt_s(self) -> float | None:
        """The smoothed round-trip time in seconds (RFC 6298); `None` before the first sample."""
    @property
    def min_rtt_s(self) -> float | None:
        """The smallest round-trip time of the connection in seconds; `None` before the first sample."""

class Controller:
    """The base class of controllers in Python. Subclasses define `on_ack` and `on_congestion`.

    `cwnd_bytes` is the window. `pacing_bps` is the pace in bits per second, or `None` for no pacing.
    """

    cwnd_bytes: float
    pacing_bps: float | None
    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def flow_bytes(self) -> int | None:
        """Payload bytes of the flow; `None` for a flow without end."""
    @property
    def traffic_class(self) -> str | None:
        """The traffic class of the flow if its workload names one, otherwise `None`."""
    @property
    def line_rate_bps(self) -> float:
        """The rate of the sender's interface in bits per second."""
    @property
    def seed(self) -> int:
        """A seed for the controller's own random draws. Zero until the handshake is complete."""
    def on_ack(self, ack: Ack) -> None:
        """Called after each acknowledgment."""
    def on_congestion(self, event: Congestion) -> None:
        """Called once per episode of congestion."""
    def limits(self) -> tuple[float, float | None]:
        """Returns the window in bytes, and the pace in bits per second or `None`. Called after each event."""

class Run:
    """The properties of a run that a generator of flows can use."""

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, in the order of the topology."""
    @property
    def duration_s(self) -> float:
        """The simulated time at which the run ends, in seconds."""
    @property
    def bdp_bytes(self) -> int:
        """The bandwidth-delay product in bytes."""
    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def line_rate_bps(self) -> float:
        """The rate of the slowest interface of a host in bits per second."""
    @property
    def random(self) -> Random:
        """A generator of this workload's own, seeded from the scenario's seed."""

class AgentView:
    """The state of a flow as its agent sees it: totals since the connection began, and current values."""

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
    """A run that advances step by step, with flows whose limits are set by agents."""

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
        """Runs until the simulated time `until_s` in seconds; returns whether the run is over."""
    def view(self, flow: int) -> AgentView | None:
        """Returns the state of a flow, or `None` if it is not open."""
    def steer(self, flow: int, cwnd_bytes: int, pacing_bps: float | None) -> bool:
        """Sets window and pace of an agent's flow; returns whether it is open."""
    def finish(self) -> Results:
        """Ends the run and returns its results."""

class TraceRequest(TypedDict):
    """A requested trace.

    `kind` is `flow`, `port` or `qlog`, and `of` the number of a flow or the name of a port. A capture keeps
    `snap_bytes` of each packet. `most` limits the number of packets or events.
    """

    kind: str
    of: str
    path: str
    snap_bytes: int
    most: int

class ControllerKind:
    """A class of controllers that is registered under a name."""

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
    """A generator of flows that is registered under a name."""

    def __new__(
        cls, function: object, name: str, summary: str, source: str, declared: list[dict[str, object]]
    ) -> WorkloadKind: ...

class SizesKind:
    """A distribution of flow sizes that is registered under a name."""

    def __new__(
        cls, function: object, name: str, summary: str, source: str, declared: list[dict[str, object]]
    ) -> SizesKind: ...

class Catalogue:
    """The names that a scenario can use: the built-in ones and those of plugins."""

    def __new__(
        cls, controllers: list[ControllerKind], workloads: list[WorkloadKind], sizes: list[SizesKind]
    ) -> Catalogue: ...

def walk(controller: str, initial_window: int, segments: int, capacity: int, drops: list[int]) -> list[Round]:
    """Returns the segments that a transfer sends in each round.

    Args:
        controller: the name of the controller.
        initial_window: its initial window, or that of the controller that it wraps, in segments.
        segments: the length of the transfer.
        capacity: the number of segments that the path carries per round.
        drops: the segments whose first transmission is lost, from 0.
    """

def rapid_gaps(
    rates: int, packets_per_rate: int, spread: float, average_bps: int, wire_bytes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the gap before each packet of a p-stream in seconds, and the rate that it probes in bits per second."""

def bass(
    send_s: NDArray[np.float64],
    receive_s: NDArray[np.float64],
    passes: int,
    factor: float,
    floor_s: float,
    in_event: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Smooths gaps by BASS; returns send and receive gaps in seconds, and where an incomplete last event begins."""

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
    """Returns the estimates of consecutive p-streams in bits per second; `None` for a stream with a single gap."""

class WireError(RuntimeError):
    """A key, an address, a file, a setting or the peer is invalid, or a transfer failed."""

def wire_settings() -> list[dict[str, Any]]:
    """Returns the declared settings of the wire, in the order of help texts; `Setting` describes the keys."""

class WireSettings(TypedDict):
    """Settings of both sides of a transfer."""

    keys: str
    trust: list[str]
    # The only peer that is trusted apart from those in `trust`; `None` trusts those of the folder, too.
    peer: str | None
    controller: str
    set: list[tuple[str, str]]
    # Pairs of name and text of the declared settings.
    declared: list[tuple[str, str]]
    has_series: bool
    qlog: str | None

class TunnelSettings(TypedDict):
    """Settings of a tunnel."""

    max_connections: int
    waits: bool
    longest_pause_s: float

class WireProgress(TypedDict):
    """The progress of a sender; `sent` counts segments by class, `marks` has the fate of each class's code point."""

    connected: bool
    bytes: int
    total_bytes: int
    elapsed_s: float
    files: int
    total_files: int
    current: str | None
    resumed_bytes: int
    sent: list[int]
    marks: list[str]
    tail_bps: int | None
    udp_payload_bytes: int
    gaps: dict[str, Any] | None
    remarks: list[str]
    line_rate_bps: int
    line_rate_source: str
    silence_s: float | None
    losses: int
    last_loss: str | None
    is_lost: bool
    done: bool

class FileSender:
    """Sends files to one host."""

    def __new__(
        cls,
        settings: WireSettings,
        paths: list[str],
        to: list[str],
        include: list[str] = ...,
        exclude: list[str] = ...,
        discards: bool = ...,
        stdin: str | None = ...,
    ) -> FileSender: ...
    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Entries of folders that cannot be sent, as pairs of path and reason."""
    def step(self, seconds: float) -> list[tuple[str, int, int, bool, bool, str | None]]:
        """Continues until an item is finished or has failed, for at most `seconds`.

        Returns:
            Name, bytes, bytes that the receiver already had, whether it had an equal file, whether it is a folder,
            and the error if any, of each such item.
        """
    def progress(self) -> WireProgress:
        """Returns the progress of the transfer."""
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]:
        """Returns the samples since the last call, the number of dropped rows, and the error that ended the qlog.

        Without samples there are no columns.
        """
    def exposition(self) -> str:
        """Returns the metrics in Prometheus' text format."""
    @property
    def peer(self) -> str | None:
        """The fingerprint of the peer's key, once connected."""
    def close(self, reason: str) -> None:
        """Ends the transfer. The receiver keeps what it has received."""

class FileReceiver:
    """Receives files from any number of hosts."""

    def __new__(
        cls, settings: WireSettings, at: str, folder: str | None, replaces: bool, file_mode: int | None = None
    ) -> FileReceiver:
        """Without a folder, the files of one transfer at a time go to standard output."""
    @property
    def address(self) -> str:
        """The address and port on which it listens."""
    @property
    def received_bytes(self) -> int:
        """Bytes received so far in unfinished transfers."""
    def take_stranger(self) -> str | None:
        """Returns the fingerprint of an untrusted peer that was refused since the last call, or `None`."""
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]:
        """Returns the samples since the last call, the number of dropped rows, and the error that ended the qlog."""
    def exposition(self) -> str:
        """Returns the metrics in Prometheus' text format."""
    @property
    def running(self) -> int:
        """The number of connected peers that have offered files."""
    def step(self, seconds: float) -> list[dict[str, Any]]:
        """Continues until an event happens, for at most `seconds`; returns the events."""
    def reload(self, settings: WireSettings) -> tuple[str, int]:
        """Reloads key and trusted peers; returns the key's fingerprint and the number of trusted peers."""
    def stop(self) -> None:
        """Accepts no new transfers. Running ones continue."""
    def close(self, reason: str) -> None:
        """Ends all transfers. Received parts of files are kept."""

class Tunnel:
    """One site of a tunnel."""

    @staticmethod
    def serve(settings: WireSettings, tunnel: TunnelSettings, at: str, allowed: list[tuple[str, str]]) -> Tunnel:
        """Starts the site that serves targets; `allowed` are pairs of target and numeric address."""
    @staticmethod
    def dial(settings: WireSettings, tunnel: TunnelSettings, to: list[str], forwards: list[tuple[str, str]]) -> Tunnel:
        """Starts the site that connects to a serving site; `forwards` are pairs of local address and target."""
    @property
    def address(self) -> str:
        """The address and port of its UDP socket."""
    @property
    def forwarded(self) -> list[str]:
        """The addresses on which it accepts TCP connections."""
    def take_stranger(self) -> str | None:
        """Returns the fingerprint of an untrusted peer that was refused since the last call, or `None`."""
    def take_samples(self) -> tuple[dict[str, Column], int, str | None]:
        """Returns the samples since the last call, the number of dropped rows, and the error that ended the qlog."""
    def exposition(self) -> str:
        """Returns the metrics in Prometheus' text format."""
    @property
    def running(self) -> int:
        """The number of open connections."""
    def step(self, seconds: float) -> list[dict[str, Any]]:
        """Continues until an event happens, for at most `seconds`; returns the events."""
    def reload(self, settings: WireSettings) -> tuple[str, int]:
        """Reloads key and trusted peers; returns the key's fingerprint and the number of trusted peers."""
    def set_allowed(self, allowed: list[tuple[str, str]]) -> None:
        """Replaces the targets that are served."""
    def stop(self) -> None:
        """Accepts no new connections. Open ones continue."""
    def close(self, reason: str) -> None:
        """Ends all connections."""

def measure_path(settings: WireSettings, to: Callable[[], str], load_s: float, most_rate: str) -> dict[str, Any]:
    """Measures rate, delays, MTU and the treatment of classes on the path to a receiver.

    Args:
        settings: settings of the wire.
        to: returns the receiver's address; it is called after the settings are validated.
        load_s: the duration of the load in seconds.
        most_rate: the highest rate of the load.

    Raises:
        WireError: a setting is invalid, or the receiver does not answer.
    """

def check_wire(settings: WireSettings, has_keys: bool) -> None:
    """Validates settings, and the keys if `has_keys`. Opens no socket and resolves no name."""

def new_key(folder: str) -> str:
    """Creates a key pair in a folder; returns its fingerprint."""

def show_keys(folder: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the fingerprint of a folder's key, and those of trusted peers with their remarks."""

def trust(folder: str, fingerprint: str, remark: str) -> bool:
    """Adds a peer to the trusted peers of a folder; returns false if it was trusted already."""

def untrust(folder: str, fingerprint: str) -> bool:
    """Removes a peer from the trusted peers of a folder; returns whether it was trusted."""

def read_config(path: str) -> str | None:
    """Reads a file of this user's configuration to which nobody else can write; `None` if it does not exist."""

def list_sources(
    paths: list[str], include: list[str], exclude: list[str]
) -> tuple[list[tuple[str, int | None]], list[tuple[str, str]]]:
    """Returns files with their bytes and folders with `None`, and path and reason of what cannot be sent."""

def list_partial(folder: str) -> list[tuple[str, int, float, bool]]:
    """Lists incomplete files: name, bytes, seconds since the last change, and whether a receiver is writing it."""

def clean_partial(folder: str, min_age_s: float) -> list[tuple[str, int, float, bool]]:
    """Removes incomplete files that have not changed for `min_age_s` and are not in use; returns them."""

class EmulationError(RuntimeError):
    """A scenario cannot be emulated on this machine, or an emulation failed."""

class Emulation:
    """An emulation of a scenario. It gets its devices after it is created, and then runs. Linux only."""

    def __init__(
        self, text: str, source_name: str, base_dir: str, overrides: list[str], seed: int | None = None
    ) -> None: ...
    @property
    def hosts(self) -> list[tuple[str, str]]:
        """Names and addresses of the hosts, in the order of their devices."""
    @property
    def mtu_bytes(self) -> int:
        """The MTU of devices in bytes."""
    @property
    def warnings(self) -> list[str]:
        """Warnings about the scenario."""
    @property
    def asked_bps(self) -> int:
        """The highest rate at which one host can send to another, in bits per second."""
    def handover(self) -> int:
        """Opens a socket over which devices are sent; returns its descriptor, which the caller must close."""

    def take_device(self) -> None:
        """Receives the device of the next host."""

    def self_test(self, near: str, far: str) -> dict[str, Any]:
        """Measures the packet rate and delay error of this machine, in this thread.

        Args:
            near: the network namespace of the first host.
            far: that of the second host.
        """

    def run(self, ready: Callable[[], object]) -> None:
        """Forwards packets in this thread until `stop` is called; `ready` is called when the network's time starts."""

    def stop(self) -> None:
        """Ends `run`. If it is not running, the next call of it ends at once."""

    def tables(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """Returns two tables after the run: one row per link, and one row per link and class."""

    def counts(self) -> dict[str, float]:
        """Returns counts of packets and statistics of their lateness in seconds after the run."""

class LinuxError(RuntimeError):
    """A controller could not be loaded into the kernel, found there, or removed."""

# Time in nanoseconds, connection, local port, remote port, remote address, event, window in segments, round trip in
# microseconds, and pairs of quantity and value.
KernelSample = tuple[int, int, int, int, str, str, int, int | None, list[tuple[str, float]]]

class KernelRequest(TypedDict):
    """A controller to load, and the connections that are to use it."""

    program: str
    name: str
    settings: list[tuple[str, str]]
    routes: list[str]
    interfaces: list[str]
    cgroups: list[str]
    is_default: bool
    is_pinned: bool

class LoadedController:
    """A controller that this process has loaded. Deleting the object unloads the controller."""

    def __init__(self, request: KernelRequest) -> None: ...
    def keep(self) -> None:
        """Keeps a pinned controller loaded when this object is deleted."""

    def warnings(self) -> list[str]:
        """Returns warnings about changes of an earlier controller of this name that could not be undone."""

    def is_registered(self) -> bool:
        """Returns whether the controller is still loaded; another process may have unloaded it."""

    def unload(self) -> list[str]:
        """Unloads the controller and undoes its changes; returns warnings."""

class Watch:
    """A watcher of a controller, which records samples as long as they are fetched at least every five seconds."""

    def __init__(self, name: str) -> None: ...
    def poll(self, most: int) -> list[KernelSample]:
        """Returns the samples since the last call, at most `most`."""

def linux_examine() -> list[tuple[str, bool, str, str, bool]]:
    """Checks the kernel; returns check, whether it passed, state, remedy, and whether it is required."""

def linux_programs() -> list[tuple[str, str, list[tuple[str, str, str, str]]]]:
    """Returns name, summary and settings (name, default, allowed values, meaning) of each program."""

def linux_constants(program: str, settings: list[tuple[str, str]], line_rate_bps: int) -> list[int]:
    """Returns the constants of a program with these settings, as the 64-bit numbers of its memory."""

def linux_loaded() -> list[tuple[str, str | None, bool, int | None, list[str], bool, list[tuple[str, int, int]]]]:
    """Returns the controllers that BPF programs have registered.

    Returns:
        Name, program, whether it is pinned, process ID, changed objects, whether it is registered, and costs.
    """

def linux_unload(name: str) -> list[str]:
    """Unloads a controller that any process has loaded with this package, and undoes its changes; returns warnings."""
