"""Real programs over a simulated network, in real time: namespaces, devices and programs around the native exchange.

Each host of the scenario is a network namespace with one TUN device, whose packets cross the simulator's own links and
queues. Needs Linux, root, `ip` of iproute2 and /dev/net/tun. What is made is taken down again in any case: by a small
shell that waits for the end of this process, so that nothing is left of one that is killed, either.
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
    Janitor,
    check,
    check_prefix,
    go_first,
    ip,
    missed,
    missing,
    namespaces,
    open_device,
    program_exists,
    ready_device,
)
from sparelane.scenario.settings import Settings, override_texts
from sparelane.simulation import simulate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Host", "Network", "Outcome", "SelfTest", "missing", "network"]

DEFAULT_PREFIX = "sl-"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What this machine can keep, and what the scenario asks for.

    Attributes:
        packets_per_s: packets that the exchange can carry.
        rate_bps: half of these, of the largest size: what one host may send to another, which acknowledges it.
        delay_error_median_s, delay_error_p99_s: by how much packets were late.
        asked_bps: the most that one host can send to another in the scenario.
        allowed_delay_error_s: by how much packets may be late, at the 99th percentile.
        refusal: why the scenario asks for too much, if it does.
        is_realtime: whether the kernel lets the exchange go before other programs.
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
    """What an emulation leaves behind.

    Attributes:
        links: one row per direction of a cable, with the columns of a simulation.
        classes: one row per direction of a cable and class that came to its queue, likewise.
        counts: packets from and to hosts, dropped in the network, and such as should not be: `foreign_packets`
            (no IPv4, or for nobody), `overflowed_packets` (no memory), `refused_packets` (not taken by the kernel),
            and `missed_packets` (lost before the network saw them); how late packets went to their hosts, and how
            long the exchange was at work.
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
    """The network of a scenario, to be entered by `with`.

    Args:
        scenario: as for `sparelane.run`.
        seed: as for `sparelane.run`.
        set: as for `sparelane.run`.
        prefix: what the names of namespaces begin with.

    Raises:
        ScenarioError: the scenario cannot be read.
        EmulationError: it cannot be emulated, or the prefix cannot begin a namespace's name.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    check_prefix(prefix)
    text, name, folder = simulate.read(scenario)
    if not sys.platform.startswith("linux"):
        # A scenario with a mistake is refused on any system.
        simulate.prepare(scenario, seed=seed, set=set)
        raise EmulationError("an emulation needs Linux")
    emulation = _native.Emulation(text, name, str(folder), override_texts(set), seed)
    return Network(emulation, prefix)


class Network:
    """Hosts as network namespaces, with the simulated network between them while in a `with`."""

    def __init__(self, emulation: _native.Emulation, prefix: str) -> None:
        self._native = emulation
        names = [name for name, _ in emulation.hosts]
        spaces = namespaces(names, prefix)
        self.hosts = [Host(name, space, at) for (name, at), space in zip(emulation.hosts, spaces, strict=True)]
        self.self_test: SelfTest | None = None
        self._janitor: Janitor | None = None
        self._thread: threading.Thread | None = None
        self._programs: list[subprocess.Popen[Any]] = []
        self._told = threading.Event()
        self._goes_on = threading.Event()
        self._runs = threading.Event()
        self._failure: BaseException | None = None
        self._missed = 0

    @property
    def warnings(self) -> list[str]:
        """What the author of the scenario should know."""
        return self._native.warnings

    def address(self, host: str) -> str:
        """The address of a host.

        Raises:
            UnknownNameError: there is no such host.
        """
        return self.find(host).address

    def find(self, host: str) -> Host:
        """The host of this name.

        Raises:
            UnknownNameError: there is none.
        """
        for one in self.hosts:
            if one.name == host:
                return one
        raise UnknownNameError("host", host, [one.name for one in self.hosts])

    def __enter__(self) -> Network:
        """Makes namespaces and devices, and tests the machine; the network runs from then on.

        Raises:
            EmulationError: a privilege, a program or a device is missing, or the scenario asks for more than the
                machine keeps.
        """
        if self._told.is_set() or self._failure is not None:
            raise EmulationError("a network runs once; allowed: another one")
        check(self.hosts)
        try:
            self._make()
            self._thread = threading.Thread(target=self._carry, name="exchange", daemon=True)
            self._thread.start()
            self._wait(self._told)
            if self.self_test is not None and self.self_test.refusal is not None:
                raise EmulationError(self.self_test.refusal)
            self._goes_on.set()
            self._wait(self._runs)
        except BaseException:
            self._take_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the network, and what runs in it, and takes everything down."""
        self._take_down()

    def start(self, host: str, words: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
        """Starts a program at a host; `more` is for `subprocess.Popen`.

        Raises:
            UnknownNameError: there is no such host.
            EmulationError: there is no such program.
        """
        place = self.find(host)
        program_exists(words)
        program = subprocess.Popen(["ip", "netns", "exec", place.namespace, *words], **more)
        self._programs.append(program)
        return program

    def check(self) -> None:
        """Raises what ended the network, if anything did.

        Raises:
            EmulationError: the network has ended.
        """
        if self._failure is not None:
            raise self._failure

    def outcome(self) -> Outcome:
        """What the links counted, and what became of packets, after the `with`.

        Raises:
            EmulationError: nothing has run.
        """
        links, classes = self._native.tables()
        counts = {**self._native.counts(), "missed_packets": self._missed}
        return Outcome(to_frame(links), to_frame(classes), counts)

    def _wait(self, event: threading.Event) -> None:
        """Waits for the exchange, which may fail first."""
        while not event.wait(0.05):
            self.check()
            if self._thread is not None and not self._thread.is_alive() and not event.is_set():
                self.check()
                raise EmulationError("the exchange has ended")

    def _make(self) -> None:
        """Makes the namespaces, and hands over their devices."""
        spaces = [host.namespace for host in self.hosts]
        self._janitor = Janitor(spaces)
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

    def _carry(self) -> None:
        """The exchange's thread: first the self-test, then the run."""
        try:
            is_realtime = go_first()
            near, far = (str(NAMESPACES / host.namespace) for host in self.hosts[:2])
            self.self_test = SelfTest(**self._native.self_test(near, far), is_realtime=is_realtime)
            self._told.set()
            self._goes_on.wait()
            self._native.run(self._runs.set)
        except BaseException as error:
            self._failure = error

    def _take_down(self) -> None:
        """Ends programs, exchange and namespaces; what has happened already is left out."""
        for program in self._programs:
            if program.poll() is None:
                program.terminate()
        if self._janitor is not None:
            self._missed = sum(missed(host.namespace) for host in self.hosts)
        self._native.stop()
        self._goes_on.set()
        if self._thread is not None:
            self._thread.join()
        if self._janitor is not None:
            self._janitor.clean()
        for program in self._programs:
            program.wait()
        self._programs.clear()
        self._janitor = self._thread = None
