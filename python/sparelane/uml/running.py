"""Runs a scenario in a Linux kernel of its own, in virtual time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane._native import LinuxError
from sparelane.scenario.settings import Settings
from sparelane.simulation import simulate
from sparelane.simulation.result import Result
from sparelane.uml import console, kernel, mapping, plan, tables
from sparelane.uml.network import Network

MEMORY = "2048M"
# The least memory of a kernel, which is a file on this host, bytes.
LEAST_ROOM_BYTES = 60_000_000
# The longest run by the wall clock, seconds. In virtual time, a program that spins stops the clock of the kernel.
LONGEST_S = 3600.0
# Keeps a kernel that has IPv6 from sending its packets in a scenario over IPv4. Other kernels ignore it.
WITHOUT_IPV6 = "ipv6.disable=1"
SEED_VARIABLE = "SPARELANE_SEED"
FILES = ("flows.csv", "samples.csv", "packets", "counts.csv", "queues.csv")
# The kernel's counters of each host, which are not part of the result.
HOSTS = "hosts"
# The first run of a new kernel: both directions of the bottleneck, a full queue with losses, and samples.
TRIAL = """
title = "One second of two flows"
duration = "1s"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "100Mbps"
bottleneck_delay = "3ms"

[queue]
limit = "50packets"

[scheme.cubic]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "cubic"
pairs = [["left0", "right0"], ["left1", "right1"]]

[sample]
interval = "50ms"
flows = [0, 1]
queues = [["west", "east"]]
"""
# The longest trial by the wall clock, seconds. A slow host takes about twenty.
LONGEST_TRIAL_S = 300.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to start.

    Attributes:
        network: the network that the kernel sets up.
        built: the kernel that runs it.
        captures: the devices whose packets to capture.
        seed: the seed of all random draws.
        scenario: the scenario as TOML, with overrides.
    """

    network: Network
    built: kernel.Kernel
    captures: tuple[tuple[str, str], ...]
    seed: int
    scenario: str

    @property
    def fingerprint(self) -> str:
        """A text that decides the outcome, for this version of the package."""
        return repr((self.built.key, self.built.guest.name, self.network, self.captures, self.seed))

    def run(self, waiting: Callable[[float], object] | None = None, longest_s: float = LONGEST_S) -> Outcome:
        """Runs the scenario. `run` describes the arguments.

        Raises:
            LinuxError: the kernel failed.
        """
        with tempfile.TemporaryDirectory(prefix="sparelane-") as folder:
            place = Path(folder)
            _require_room(place)
            (place / "plan").write_text("".join(f"{line}\n" for line in plan.lines(self.network, self.captures)))
            parameters = (*self.network.parameters, *(() if self.network.is_ipv6 else (WITHOUT_IPV6,)))
            _boot(self.built, place, parameters, self.seed, waiting or (lambda _: None), longest_s)
            texts = [(place / file).read_text() for file in FILES]
            counters = tables.counters((place / HOSTS).read_text())
            captured = tuple((place / f"capture{number}").read_bytes() for number in range(len(self.captures)))
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        packets, packet_digest = texts[2].split()
        stored = tables.stored(
            self.network,
            tables.Written(texts[0], texts[1], texts[3], texts[4]),
            digest=digest,
            seed=self.seed,
            scenario=self.scenario,
        )
        return Outcome(tables.result(stored), int(packets), packet_digest, counters, captured)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        result: the tables of the run.
        packets: the number of packets that crossed cables between routers, in both directions.
        packet_digest: a fingerprint of these packets and their times.
        counters: the counters of each host under their names in /proc/net/snmp and netstat, such as `Tcp.OutSegs`.
        captures: pcap files, in the order of the request.
    """

    result: Result
    packets: int
    packet_digest: str
    counters: Mapping[str, Mapping[str, int]]
    captures: tuple[bytes, ...] = ()


def prepare(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    captures: Sequence[tuple[str, str]] = (),
    on: kernel.Kernel | None = None,
) -> Prepared:
    """Maps a scenario to Linux and finds its kernel. `run` describes the arguments.

    Raises:
        ScenarioError: the scenario is not valid, or Linux cannot do it.
        LinuxError: there is no kernel.
    """
    simulation = simulate.prepare(scenario, seed=seed, set=set)
    described, network = simulation.describe(), mapping.network(simulation)
    # Without a socket that asks for RC3, the kernel with RC3 sends the same bytes as the other kernel.
    found = on or kernel.find("on" if network.needs_rc3_kernel else "none") or kernel.find("on")
    if found is None:
        asked = "sparelane linux build" + " --rc3" * network.needs_rc3_kernel
        raise LinuxError(f"there is no kernel to run it yet: {asked}")
    return Prepared(network, found, tuple(captures), described["seed"], described["text"])


def run(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    waiting: Callable[[float], object] | None = None,
    longest_s: float = LONGEST_S,
    captures: Sequence[tuple[str, str]] = (),
    on: kernel.Kernel | None = None,
) -> Outcome:
    """Runs a scenario on the TCP of Linux, in the kernel that `sparelane linux build` has built.

    Args:
        scenario: as for `sparelane.run`.
        seed: the seed of all random draws; `None` takes the scenario's.
        set: as for `sparelane.run`.
        waiting: called about twenty times a second with the seconds that the run has lasted.
        longest_s: the longest time that the run may take by the wall clock, seconds.
        captures: the devices whose packets to capture, each a pair of the node and the device: ("left0", "eth") for a
            host, ("west", "east") for a router.
        on: the kernel; `None` takes the one that the scenario needs.

    Raises:
        ScenarioError: the scenario is not valid, or Linux cannot do it.
        LinuxError: there is no kernel, or it failed.
    """
    return prepare(scenario, seed=seed, set=set, captures=captures, on=on).run(waiting, longest_s)


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a short run of a kernel.

    Attributes:
        packets: the number of packets that crossed the bottleneck, in both directions.
        seconds: the time that the run took by the wall clock, including the boot.
    """

    packets: int
    seconds: float


def trial(on: kernel.Kernel) -> Trial:
    """Runs one simulated second of two flows, to find out whether and how fast a kernel runs on this host.

    Raises:
        LinuxError: the kernel does not boot here, or its run failed.
    """
    begun = time.monotonic()
    outcome = run(TRIAL, on=on, longest_s=LONGEST_TRIAL_S)
    delivered = outcome.result.flows["delivered_bytes"].sum()
    if not delivered:
        raise LinuxError("the kernel ran one simulated second, in which its flows delivered no byte")
    return Trial(outcome.packets, time.monotonic() - begun)


def command(binary: Path, init: Path, *words: str, memory: str = MEMORY, parameters: Sequence[str] = ()) -> list[str]:
    """The command that boots a kernel in virtual time.

    Args:
        binary: the kernel.
        init: its first program, a file on this host.
        words: the arguments of this program.
        memory: the kernel's memory, as `mem=` takes it.
        parameters: parameters of the kernel in addition to those of every run.
    """
    return [
        str(binary),
        f"mem={memory}",
        "time-travel=inf-cpu",
        "time-travel-start=1000000000000000000",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "quiet",
        "con=null",
        "con0=fd:0,fd:1",
        *parameters,
        f"init={init}",
        "--",
        *words,
    ]


def environment(place: Path, seed: int) -> dict[str, str]:
    """The environment of a kernel. It is small and the same in each run, since it is part of the kernel's memory.

    Args:
        place: the folder of the run, which also holds the kernel's memory during the run.
        seed: the seed of all random draws.
    """
    return {"PATH": os.defpath, "HOME": str(place), "TMPDIR": str(place), SEED_VARIABLE: str(seed)}


def _require_room(place: Path) -> None:
    """Raises if the kernel's memory does not fit into this folder. The kernel would end without a message."""
    if (free := shutil.disk_usage(place).free) < LEAST_ROOM_BYTES:
        raise LinuxError(
            f"{place.parent}: {free / 1e6:.0f} MB are free, and the kernel's memory takes "
            f"{LEAST_ROOM_BYTES / 1e6:.0f} MB at least; TMPDIR=/a/larger/disk chooses another place"
        )


def _boot(
    found: kernel.Kernel,
    place: Path,
    parameters: Sequence[str],
    seed: int,
    waiting: Callable[[float], object],
    longest_s: float,
) -> None:
    # The folder of the run, as the kernel's process on the host sees it.
    words = command(found.binary, found.guest, "/proc/self/cwd", parameters=parameters)
    log = place / "console"
    with log.open("w") as written:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            env=environment(place, seed),
            cwd=place,
            start_new_session=True,
        )
        lasted_s, step_s = 0.0, 0.05
        try:
            while lasted_s < longest_s:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(step_s)
                    break
                lasted_s += step_s
                waiting(lasted_s)
            else:
                raise LinuxError(f"the kernel did not end within {longest_s:.0f} s; allowed: a shorter scenario")
        finally:
            # The kernel's processes form a group. This ends the remaining ones.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if (place / "error").exists():
        raise LinuxError(f"inside the kernel: {(place / 'error').read_text().strip()}")
    missing = [name for name in (*FILES, HOSTS) if not (place / name).exists()]
    if missing:
        raise LinuxError(console.explain(log.read_text(errors="replace"), process.returncode))
