"""Measures how exact RAPID's gaps are, and the processor time of controllers per acknowledgment.

Both measurements run in the running kernel, over a cable without delay between two network namespaces.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from linux_bpf_ends import COMMAND, RECEIVE, SEND

from sparelane import _native
from sparelane.bpf import kernel

SEND_FOR_S = 20.0
# The address of the receiver.
RECEIVER = "10.98.1.2"
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
# The rate at which perf samples each processor.
SAMPLES_HZ = 10_000
# Patterns of the kernel symbols that belong to each controller.
SYMBOLS = {
    "cubic": r"cubictcp_|bictcp_",
    "bbr": r" bbr_",
    "rtcp": r"rtcp_",
    "rapid": r"rapid_",
    "scavenger": r"scavenger_",
}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def _ends() -> Iterator[tuple[str, str]]:
    """Creates two namespaces with a cable between them, without segmentation offload, and a receiver in the second."""
    ends = tuple(f"sx{os.getpid()}{end}" for end in "ab")
    try:
        for end in ends:
            _ip("netns", "add", end)
        _ip("link", "add", "xa", "netns", ends[0], "type", "veth", "peer", "name", "xb", "netns", ends[1])
        for end, cable, address in zip(ends, ("xa", "xb"), ("10.98.1.1", RECEIVER), strict=True):
            _ip("-n", end, "address", "add", f"{address}/24", "dev", cable)
            _ip("-n", end, "link", "set", cable, "gso_max_segs", "1", "up")
            _ip("-n", end, "route", "change", "10.98.1.0/24", "dev", cable, "quickack", "1")
        receive = [*_inside(ends[1]), sys.executable, "-c", RECEIVE]
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout is not None
            receiver.stdout.readline()
            yield ends[0], ends[1]
            receiver.kill()
    finally:
        for end in ends:
            subprocess.run(["ip", "netns", "delete", end], capture_output=True, check=False)


def _inside(end: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{end}"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def _rapid(ends: Sequence[str], *sets: str) -> Iterator[str]:
    """Loads RAPID at both ends, with a route that enables its timestamps. Yields the name of the sender's program."""
    names = [f"xr{os.getpid()}{end}"[-14:] for end in "ab"]
    loaders = []
    try:
        for end, name in zip(ends, names, strict=True):
            command = [
                *_inside(end),
                *COMMAND,
                "load",
                "rapid",
                "--name",
                name,
                "--foreground",
                "--route",
                "10.98.1.0/24",
            ]
            command += [option for setting in sets for option in ("--set", setting)]
            loaders.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment()))
        for process in loaders:
            assert process.stderr is not None
            line = process.stderr.readline()
            if "is loaded" not in line:
                raise _native.LinuxError(line.strip())
        yield names[0]
    finally:
        for process in loaders:
            process.terminate()
            process.wait(20)


def accuracy(gaps_us: Sequence[float], packet_bytes: int) -> pl.DataFrame:
    """Measures, for each intended gap, the gaps that the sender kept by its own clock."""
    rows = []
    with _ends() as ends:
        for gap_us in gaps_us:
            rate = f"{round(packet_bytes * 8 / gap_us * 1e6)}bps"
            with _rapid(ends, f"line_rate={rate}", f"initial_rate={rate}", "spread=1.001") as name:
                watcher = _native.Watch(name)
                send = [*_inside(ends[0]), sys.executable, "-c", SEND, name, RECEIVER, "1.5"]
                samples = []
                with subprocess.Popen(send) as sender:
                    while sender.poll() is None:
                        samples += watcher.poll(65_536)
                        time.sleep(0.01)
                samples += watcher.poll(65_536)
            kept = np.array(
                [value for sample in samples for quantity, value in sample[8] if quantity == "kept_gap_us"]
            )[1:]
            # The first ten packets leave without a pace.
            kept = kept[10:]
            within = float(np.mean(np.abs(kept - gap_us) < 5))
            rows.append((gap_us, len(kept), float(np.median(kept)), float(np.percentile(kept, 90)), within))
    names = ("gap_us", "packets", "median_kept_us", "p90_kept_us", "share_within_5_us")
    return pl.DataFrame(rows, schema=names, orient="row")


def costs() -> pl.DataFrame:
    """Measures the nanoseconds of each controller's own code per acknowledgment, sampled and counted by the kernel."""
    rows = []
    with _ends() as ends:
        for name in ("cubic", "bbr"):
            rows.append(_cost(ends[0], name, name))
        for program in ("rtcp", "scavenger"):
            settings = [("line_rate", "10Gbps")] if program == "rtcp" else []
            name = f"x{program}"[:14]
            holding = kernel.load(kernel.Load(program, name, settings, is_pinned=False))
            try:
                rows.append(_cost(ends[0], name, program))
            finally:
                holding.unload()
        with _rapid(ends, "line_rate=400Mbps", "initial_rate=200Mbps") as name:
            rows.append(_cost(ends[0], name, "rapid"))
    names = ("controller", "acknowledgments", "ns_an_acknowledgment", "counted_by_kernel_ns", "samples")
    return pl.DataFrame(rows, schema=names, orient="row")


Cost = tuple[str, int, float | None, float | None, int]


def _cost(end: str, name: str, program: str) -> Cost:
    """Runs one transfer under a controller with sampling, and then one with the kernel's statistics."""
    acknowledgments, samples = _sampled(end, name, SYMBOLS[program])
    sampled = None if samples is None else samples / SAMPLES_HZ * 1e9 / max(1, acknowledgments)
    return program, acknowledgments, sampled, _counted(end, name, program), samples or 0


def _sampled(end: str, name: str, symbols: str) -> tuple[int, int | None]:
    """Runs a transfer. Returns the numbers of acknowledgments and of samples in these symbols; `None` without perf."""
    send = [*_inside(end), sys.executable, "-c", SEND, name, RECEIVER, str(SEND_FOR_S)]
    before = _received(end)
    if shutil.which("perf") is None:
        subprocess.run(send, check=True)
        return _received(end) - before, None
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", str(SAMPLES_HZ), "-o", data, "--", *send]
        subprocess.run(record, check=True, capture_output=True)
        received = _received(end) - before
        script = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym"], check=True, capture_output=True, text=True, errors="replace"
        ).stdout
    return received, sum(bool(re.search(symbols, line)) for line in script.splitlines())


def _received(end: str) -> int:
    """Returns the number of TCP segments that the namespace has received."""
    text = subprocess.run(
        [*_inside(end), "cat", "/proc/net/snmp"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    names, numbers = (line.split() for line in text if line.startswith("Tcp:"))
    return int(numbers[names.index("InSegs")])


def _counted(end: str, name: str, program: str) -> float | None:
    """Returns the kernel's count of nanoseconds in a program per acknowledgment, including the cost of its clock."""
    if program not in ("rtcp", "rapid", "scavenger"):
        return None
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        received = _received(end)
        subprocess.run([*_inside(end), sys.executable, "-c", SEND, name, RECEIVER, "1.5"], check=True)
        received = _received(end) - received
        cost = next(one.cost for one in kernel.loaded() if one.name == name)
    finally:
        STATISTICS.write_text(before)
    return sum(ns for ns, _ in cost.values()) / max(1, received)
