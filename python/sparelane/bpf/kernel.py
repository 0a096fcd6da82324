"""Loads, lists and watches controllers inside the running Linux kernel."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparelane import _native

if TYPE_CHECKING:
    import polars as pl

    from sparelane._native import KernelSample

# The largest number of samples per poll.
SAMPLES_AT_ONCE = 65_536

# Interval between polls, seconds. Between polls, a program buffers up to 65536 samples.
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """A request to load a controller.

    Attributes:
        program: the name of a program.
        name: the name that connections select the controller by, at most 15 characters.
        settings: keys and values as texts; the default of `line_rate` is the speed of the first interface.
        routes: routes whose connections use the controller.
        interfaces: interfaces to prepare for the controller.
        cgroups: cgroups whose connections use the controller.
        is_default: use the controller for connections that select none.
        is_pinned: keep the controller after the loading process ends.
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
        name: the name that connections select the controller by.
        program: the name of the program; `None` if it is not from sparelane.
        is_pinned: true if it outlives the process that loaded it.
        process: the process that holds it, if it is known.
        changed: descriptions of changed routes and settings.
        is_registered: false if only these changes remain, as after its process was killed.
        cost: the time in nanoseconds and the number of calls of each operation, if the kernel counts them.
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
    """The result of one check of `examine`.

    Attributes:
        what: the requirement.
        is_well: true if it is met.
        state: the state that was found.
        remedy: the command that fixes it.
        is_needed: true if every program needs it.
    """

    what: str
    is_well: bool
    state: str
    remedy: str
    is_needed: bool


def examine() -> list[Finding]:
    """Checks the requirements of controllers in the kernel and its settings."""
    return [Finding(*row) for row in _native.linux_examine()]


def loaded() -> list[Loaded]:
    """The controllers in the kernel that BPF programs have registered."""
    rows = _native.linux_loaded()
    return [Loaded(*row[:6], {operation: (ns, calls) for operation, ns, calls in row[6]}) for row in rows]


def unload(name: str) -> list[str]:
    """Removes a controller of sparelane, and restores changed routes and settings. Returns remarks."""
    return _native.linux_unload(name)


def load(asked: Load) -> _native.LoadedController:
    """Loads a controller. It is unloaded with the returned object, unless `leave` is called on that object."""
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


# Waits for the end of its input, which comes when the other process ends, however it ends. If that process has not
# written a line before, the rest of the arguments is run as a command.
JANITOR = 'read -r line || exec "$@"'


@contextmanager
def janitor(command: Sequence[str]) -> Iterator[None]:
    """Runs a command if this process is killed inside the `with` block.

    A shell waits for that in a session of its own, so that a signal to this process's group does not reach it.
    """
    words = ["sh", "-c", JANITOR, "janitor", *command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as shell:
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                shell.communicate(b"done\n")


@contextmanager
def stop_signals() -> Iterator[Callable[[], signal.Signals | None]]:
    """Notes stop signals inside the `with` block, so that changes can be restored. Yields a function that returns one.

    The signals are SIGINT and SIGQUIT from the keyboard, SIGTERM, and SIGHUP from a closed terminal. Signals that were
    ignored before, as with `nohup`, stay ignored.
    """
    asked: signal.Signals | None = None

    def ask(number: int, _: object) -> None:
        nonlocal asked
        # SIGINT does not replace another signal, which asks for more.
        if asked is None or number != signal.SIGINT:
            asked = signal.Signals(number)

    handled = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in handled if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(name: str, seconds: float | None, show: Callable[[Sequence[KernelSample]], bool]) -> list[KernelSample]:
    """Collects the samples of a controller.

    Args:
        name: the name of the controller.
        seconds: the duration; `None` until a signal.
        show: called with new samples after each poll; returns `False` to stop.
    """
    gathered: list[KernelSample] = []
    watcher = _native.Watch(name)
    end_s = None if seconds is None else time.monotonic() + seconds
    with stop_signals() as asked:
        while not asked() and (end_s is None or time.monotonic() < end_s):
            samples = watcher.poll(SAMPLES_AT_ONCE)
            gathered += samples
            if not show(samples):
                break
            time.sleep(POLL_S)
        gathered += watcher.poll(SAMPLES_AT_ONCE)
    return gathered


def to_frame(samples: Sequence[KernelSample]) -> pl.DataFrame:
    """Converts samples to the columns of the simulator's series, with times relative to the first sample."""
    import polars as pl

    start_ns = min((sample[0] for sample in samples), default=0)
    times: list[float] = []
    probes: list[str] = []
    quantities: list[str] = []
    values: list[float] = []
    for time_ns, connection, local_port, remote_port, remote, _, cwnd, rtt_us, others in samples:
        probe = f"flow {connection}: {local_port} to {remote}:{remote_port}"
        row = [("cwnd_segments", float(cwnd)), *others]
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
