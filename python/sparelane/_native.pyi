"""The simulator. Everything here is done in Rust."""

from collections.abc import Callable
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
    def notices(self) -> list[str]: ...
    @property
    def version(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def totals(self) -> Totals: ...
    def flows(self) -> dict[str, Column]: ...
    def links(self) -> dict[str, Column]: ...
    def drops(self) -> dict[str, Column]: ...
    def cross_traffic(self) -> dict[str, Column]: ...
    def delays(self) -> dict[str, Column]: ...
    def packets(self) -> dict[str, Column]: ...
    def series(self) -> dict[str, Column]: ...

class Prepared:
    """A scenario, parsed and built, that has not run yet. It runs once."""

    def run(self, progress: Progress | None = None) -> Results: ...

def prepare(
    text: str,
    source_name: str,
    base_dir: str,
    overrides: list[str],
    seed: int | None = None,
    waiting: Callable[[float], object] | None = None,
) -> Prepared: ...
def catalogue() -> list[CatalogueEntry]: ...
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
    window: str | None
    dscp: list[int]
    offload: bool
    connect_timeout_s: float

class WireProgress(TypedDict):
    """How far a sender is; `sent` counts segments by class."""

    connected: bool
    bytes: int
    total_bytes: int
    elapsed_s: float
    sent: list[int]
    done: bool

class FileSender:
    """Sends files to one host."""

    def __new__(cls, settings: WireSettings, paths: list[str], to: str) -> FileSender: ...
    def step(self, seconds: float) -> list[tuple[str, int, int, str | None]]:
        """What became of items: name, bytes, those that were there, and the error if there is one."""
    def progress(self) -> WireProgress: ...
    def close(self, reason: str) -> None: ...

class FileReceiver:
    """Receives files from any number of hosts."""

    def __new__(cls, settings: WireSettings, at: str, folder: str, replaces: bool) -> FileReceiver: ...
    @property
    def address(self) -> str: ...
    @property
    def received_bytes(self) -> int: ...
    def step(self, seconds: float) -> list[dict[str, Any]]: ...
    def set_trusted(self, peers: list[str]) -> None: ...
    def close(self, reason: str) -> None: ...

def new_key(folder: str) -> str:
    """Makes a key pair in a folder; returns its fingerprint."""

def show_keys(folder: str) -> tuple[str, list[str]]:
    """A key's fingerprint, and those of trusted peers."""

def trust(folder: str, fingerprint: str, remark: str) -> None:
    """Trusts a peer from now on."""

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

    def unload(self) -> None:
        """Removes the controller."""

class Watch:
    """Somebody who watches a controller."""

    def __init__(self, name: str) -> None: ...
    def poll(self, most: int) -> list[KernelSample]:
        """What was told since the last call, at most so many samples."""

def linux_examine() -> list[tuple[str, bool, str, str, bool]]:
    """What was looked at: what, whether it is well, how it is, what mends it, whether it is needed."""

def linux_programs() -> list[tuple[str, str, list[tuple[str, str, str, str]]]]:
    """The programs: name, summary, settings (name, default, what is allowed, what it means)."""

def linux_loaded() -> list[tuple[str, str | None, bool, int | None, list[str], bool, list[tuple[str, int, int]]]]:
    """What is loaded: name, program, whether pinned, process, changes, whether registered, cost by operation."""

def linux_unload(name: str) -> None:
    """Removes a controller of ours."""
