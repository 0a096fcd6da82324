"""Emulates the network of a scenario in real time, with namespaces, devices and programs around the native exchange.

Each host of the scenario is a network namespace with one TUN device, whose packets cross the simulator's links and
queues. Needs Linux, root, `ip` of iproute2, and /dev/net/tun. A small shell process waits for the end of this process
and removes the namespaces, even if this process is killed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sparelane import _native
from sparelane._native import EmulationError
from sparelane.common.frames import to_frame
from sparelane.common.names import UnknownNameError
from sparelane.emulation.hosts import (
    NAMESPACES,
    Host,
    NamespaceCleaner,
    check,
    check_prefix,
    ip,
    missed,
    missing,
    namespaces,
    open_device,
    program_exists,
    ready_device,
    use_realtime_priority,
)
from sparelane.scenario.settings import Settings, override_texts
from sparelane.simulation import simulate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Host", "Network", "Outcome", "SelfTest", "missing", "network"]

DEFAULT_PREFIX = "sl-"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The capacity of this machine, and the requirements of the scenario.

    Attributes:
        packets_per_s: packets per second that the exchange can forward.
        rate_bps: the rate between two hosts: half of these packets at the largest size, since the others are ACKs.
        delay_error_median_s, delay_error_p99_s: the lateness of packets, seconds.
        asked_bps: the highest rate between two hosts in the scenario.
        allowed_delay_error_s: the allowed lateness of packets at the 99th percentile, seconds.
        refusal: the reason if the scenario needs more than this machine sustains; otherwise `None`.
        is_realtime: true if the exchange has real-time priority.
    """

    packets_per_s: float
    rate_bps: int
    delay_error_median_s: float
    delay_error_p99_s: float
    asked_bps: int
    allowed_delay_error_s: float
    refusal: str | None
    is_realtime: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of an emulation.

    Attributes:
        links: one row per direction of a cable, with the columns of a simulation.
        classes: one row per direction of a cable and class with packets, with the columns of a simulation.
        counts: the number of packets from and to hosts, and of packets dropped in the network; unwanted losses:
            `foreign_packets` (not IPv4, or an unknown destination), `overflowed_packets` (no memory), `refused_packets`
            (not accepted by the kernel) and `missed_packets` (lost before they entered the network); the lateness of
            packets; and the busy time of the exchange.
    """

    links: pl.DataFrame
    classes: pl.DataFrame
    counts: Mapping[str, float]


def network(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    prefix: str = DEFAULT_PREFIX,
) -> Network:
    """The network of a scenario, as a context manager.

    Args:
        scenario: as for `sparelane.run`.
        seed: as for `sparelane.run`.
        set: as for `sparelane.run`.
        prefix: the prefix of the names of namespaces.

    Raises:
        ScenarioError: the scenario is not valid.
        EmulationError: the scenario cannot be emulated, or the prefix is not valid.
        FileNotFoundError: the file does not exist.
        UnknownNameError: no ready-made scenario has this name.
    """
    check_prefix(prefix)
    text, name, folder = simulate.read(scenario)
    if not sys.platform.startswith("linux"):
        # Errors in the scenario are reported first, on any system.
        simulate.prepare(scenario, seed=seed, set=set)
        raise EmulationError("an emulation needs Linux")
    emulation = _native.Emulation(text, name, str(folder), override_texts(set), seed)
    return Network(emulation, prefix)


class Network:
    """Hosts as network namespaces. The network between them runs inside a `with` block."""

    def __init__(self, emulation: _native.Emulation, prefix: str) -> None:
        self._native = emulation
        names = [name for name, _ in emulation.hosts]
        spaces = namespaces(names, prefix)
        self.hosts = [Host(name, space, at) for (name, at), space in zip(emulation.hosts, spaces, strict=True)]
        self.self_test: SelfTest | None = None
        self._cleaner: NamespaceCleaner | None = None
        self._thread: threading.Thread | None = None
        self._programs: list[subprocess.Popen[Any]] = []
        # The self-test is done; the run may start; the run has started.
        self._is_tested = threading.Event()
        self._may_run = threading.Event()
        self._runs = threading.Event()
        self._failure: BaseException | None = None
        self._missed = 0

    @property
    def warnings(self) -> list[str]:
        """Warnings about the scenario."""
        return self._native.warnings

    def address(self, host: str) -> str:
        """The address of a host.

        Raises:
            UnknownNameError: no host has this name.
        """
        return self.find(host).address

    def find(self, host: str) -> Host:
        """Finds a host by name.

        Raises:
            UnknownNameError: no host has this name.
        """
        for one in self.hosts:
            if one.name == host:
                return one
        raise UnknownNameError("host", host, [one.name for one in self.hosts])

    def __enter__(self) -> Network:
        """Creates namespaces and devices, tests the machine, and starts the network.

        Raises:
            EmulationError: a privilege, a program or a device is missing, or the scenario needs more than the machine
                sustains.
        """
        if self._is_tested.is_set() or self._failure is not None:
            raise EmulationError("a network can run only once; allowed: a new one")
        check(self.hosts)
        try:
            self._create()
            self._thread = threading.Thread(target=self._exchange, name="exchange", daemon=True)
            self._thread.start()
            self._wait(self._is_tested)
            if self.self_test is not None and self.self_test.refusal is not None:
                raise EmulationError(self.self_test.refusal)
            self._may_run.set()
            self._wait(self._runs)
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the network and its programs, and removes all namespaces."""
        self._take_down()

    def start(self, host: str, words: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
        """Starts a program at a host. `more` are arguments of `subprocess.Popen`.

        Raises:
            UnknownNameError: no host has this name.
            EmulationError: the program does not exist.
        """
        place = self.find(host)
        program_exists(words)
        program = subprocess.Popen(["ip", "netns", "exec", place.namespace, *words], **more)
        self._programs.append(program)
        return program

    def check(self) -> None:
        """Checks that the network is running.

        Raises:
            EmulationError: the network has failed.
        """
        if self._failure is not None:
            raise self._failure

    def outcome(self) -> Outcome:
        """The counters of links and packets, after the `with` block.

        Raises:
            EmulationError: the network has not run.
        """
        links, classes = self._native.tables()
        counts = {**self._native.counts(), "missed_packets": self._missed}
        return Outcome(to_frame(links), to_frame(classes), counts)

    def _wait(self, event: threading.Event) -> None:
        """Waits for an event of the exchange, or raises its failure."""
        while not event.wait(0.05):
            self.check()
            if self._thread is not None and not self._thread.is_alive() and not event.is_set():
                self.check()
                raise EmulationError("the exchange has ended")

    def _create(self) -> None:
        """Creates the namespaces, and passes their devices to the exchange."""
        spaces = [host.namespace for host in self.hosts]
        self._cleaner = NamespaceCleaner(spaces)
        ip("".join(f"netns add {space}\n" for space in spaces))
        with socket.socket(fileno=self._native.handover()) as handover:
            for host in self.hosts:
                device = open_device(host)
                try:
                    socket.send_fds(handover, [b"d"], [device])
                    self._native.take_device()
                finally:
                    os.close(device)
        for host in self.hosts:
            ready_device(host, self._native.mtu_bytes)

    def _exchange(self) -> None:
        """The thread of the exchange: the self-test, then the run."""
        try:
            is_realtime = use_realtime_priority()
            near, far = (str(NAMESPACES / host.namespace) for host in self.hosts[:2])
            self.self_test = SelfTest(**self._native.self_test(near, far), is_realtime=is_realtime)
            self._is_tested.set()
            self._may_run.wait()
            self._native.run(self._runs.set)
        except BaseException as error:
            self._failure = error

    def _take_down(self) -> None:
        """Ends programs and the exchange, and removes namespaces. Skips steps that are already done."""
        for program in self._programs:
            if program.poll() is None:
                program.terminate()
        if self._cleaner is not None:
            self._missed = sum(missed(host.namespace) for host in self.hosts)
        self._native.stop()
        self._may_run.set()
        if self._thread is not None:
            self._thread.join()
        if self._cleaner is not None:
            self._cleaner.clean()
        for program in self._programs:
            program.wait()
        self._programs.clear()
        self._cleaner = self._thread = None
