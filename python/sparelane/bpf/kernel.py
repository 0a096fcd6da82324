"""Controllers inside the Linux kernel: loading, listing and watching them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparelane import _native

if TYPE_CHECKING:
    import polars as pl

    from sparelane._native import KernelSample

# How many samples one look fetches at most.
SAMPLES_AT_ONCE = 65_536

# How long between two looks: a program keeps 65536 samples until they are fetched, seconds.
LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """What to load, and for whom.

    Attributes:
        program: one of `programs()`.
        name: under which connections ask for it, 15 characters at most.
        settings: pairs of keys and texts; `line_rate` is the rate of the interface.
        routes: connections over these routes use it.
        interfaces: interfaces that it is for; the first tells `line_rate`.
        cgroups: connections of processes in these cgroups use it.
        is_default: whether connections that ask for no controller use it.
        is_pinned: whether it stays when the process that loads it ends.
    """

    program: str
    name: str
    settings: Sequence[tuple[str, str]] = ()
    routes: Sequence[str] = ()
    interfaces: Sequence[str] = ()
    cgroups: Sequence[str] = ()
    is_default: bool = False
    is_pinned: bool = True


@dataclass(frozen=True, slots=True)
class Loaded:
    """A controller in the kernel.

    Attributes:
        name: under which connections ask for it.
        program: which of ours it is; none for one of somebody else's.
        is_pinned: whether it outlives the process that loaded it.
        process: the process that holds it, where that is known.
        changed: what was changed for it, in words.
        is_registered: false where only what was changed is left, as after a kill.
        cost: nanoseconds and calls by operation, where the kernel counts them.
    """

    name: str
    program: str | None
    is_pinned: bool
    process: int | None
    changed: list[str]
    is_registered: bool
    cost: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that `examine` looked at: what, whether it is well, how it is, what mends it, whether all need it."""

    what: str
    is_well: bool
    state: str
    remedy: str
    is_needed: bool


def examine() -> list[Finding]:
    """What the kernel and its settings lack, and the commands that mend it."""
    return [Finding(*row) for row in _native.linux_examine()]


def loaded() -> list[Loaded]:
    """The controllers that BPF programs have registered."""
    rows = _native.linux_loaded()
    return [Loaded(*row[:6], {operation: (ns, calls) for operation, ns, calls in row[6]}) for row in rows]


def unload(name: str) -> list[str]:
    """Removes a controller of ours, and puts back what was changed for it; returns what is worth a word."""
    return _native.linux_unload(name)


def load(asked: Load) -> _native.LoadedController:
    """Loads a controller; it goes with what is returned, unless that is told to leave it."""
    return _native.LoadedController(
        {
            "program": asked.program,
            "name": asked.name,
            "settings": list(asked.settings),
            "routes": list(asked.routes),
            "interfaces": list(asked.interfaces),
            "cgroups": list(asked.cgroups),
            "is_default": asked.is_default,
            "is_pinned": asked.is_pinned,
        }
    )


@contextmanager
def stops() -> Iterator[Callable[[], signal.Signals | None]]:
    """Tells by which signal it was asked to stop, if it was, so that what has to be put back is.

    Those are SIGINT and SIGQUIT of the keyboard, SIGTERM, and SIGHUP, which comes when the terminal is closed. Whoever
    had one ignored, as `nohup` does, wants that.
    """
    asked: signal.Signals | None = None

    def ask(number: int, _: object) -> None:
        nonlocal asked
        # Ctrl-C asks for less than the others.
        if asked is None or number != signal.SIGINT:
            asked = signal.Signals(number)

    heard = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in heard if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(name: str, seconds: float | None, show: Callable[[Sequence[KernelSample]], bool]) -> list[KernelSample]:
    """Gathers the samples of a controller.

    Args:
        name: the controller.
        seconds: for how long; `None` until a signal.
        show: called with the new samples ten times a second; returns `False` to end.
    """
    gathered: list[KernelSample] = []
    watcher = _native.Watch(name)
    end_s = None if seconds is None else time.monotonic() + seconds
    with stops() as asked:
        while not asked() and (end_s is None or time.monotonic() < end_s):
            samples = watcher.poll(SAMPLES_AT_ONCE)
            gathered += samples
            if not show(samples):
                break
            time.sleep(LOOK_EVERY_S)
        gathered += watcher.poll(SAMPLES_AT_ONCE)
    return gathered


def to_frame(samples: Sequence[KernelSample]) -> pl.DataFrame:
    """Samples in the columns of the simulator's series: time_s (from the first sample), probe, quantity, value."""
    import polars as pl

    start_ns = min((sample[0] for sample in samples), default=0)
    times: list[float] = []
    probes: list[str] = []
    quantities: list[str] = []
    values: list[float] = []
    for time_ns, connection, local_port, remote_port, remote, _, cwnd, rtt_us, told in samples:
        probe = f"flow {connection}: {local_port} to {remote}:{remote_port}"
        row = [("cwnd_segments", float(cwnd)), *told]
        if rtt_us is not None:
            row.append(("rtt_ms", rtt_us / 1e3))
        for quantity, value in row:
            times.append((time_ns - start_ns) / 1e9)
            probes.append(probe)
            quantities.append(quantity)
            values.append(value)
    columns = {"time_s": times, "probe": probes, "quantity": quantities, "value": values}
    schema = {"time_s": pl.Float64, "probe": pl.Categorical, "quantity": pl.Categorical, "value": pl.Float64}
    return pl.DataFrame(columns, schema=schema)
