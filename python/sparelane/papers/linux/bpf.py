"""RTCP and RAPID in the kernel that runs: `python -m sparelane.papers.linux.bpf FOLDER`, as root.

One connection at a time between two network namespaces, over a path that the simulator carries in real time
(`emulation`), and the same scenario in virtual time. Windows, round trips and rates as each tells them; gaps between
packets beside those that were set; and what the programs cost for each acknowledgment.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sparelane import _native, emulation
from sparelane.bpf import kernel
from sparelane.papers.linux import bpf_cost, bpf_page
from sparelane.simulation import simulate as api

if TYPE_CHECKING:
    from sparelane._native import KernelSample

LASTS_S = 10.0
LINE = "12Mbps"
SCENARIO = f"""
title = "One connection over 10 Mb/s and 40 ms"
duration = "{LASTS_S:g}s"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "{LINE}"
access_delay = "1ms"
bottleneck_rate = "10Mbps"
bottleneck_delay = "18ms"
[queue]
limit = "400packets"
[transport]
preset = "linux"
delayed_ack = false
mss = "1448B"
header = "52B"
[workload]
kind = "bulk"
[sample]
interval = "20ms"
flows = [0]
[packets]
flow = 0
[emulate]
delay_error = "20ms"
"""
SCHEMES = {
    "rtcp": '[scheme.flow]\ncontroller = "rtcp"\ninterface = "delay"\nalpha = 500\ndelta = 1.5\nmin_window = 2\n',
    "rapid": '[scheme.flow]\ncontroller = "rapid"\ninitial_rate = "2Mbps"\ntau = "100ms"\n',
}
SETTINGS = {
    "rtcp": {"line_rate": LINE, "alpha": "500", "delta": "1.5", "min_window": "2"},
    "rapid": {"line_rate": LINE, "initial_rate": "2Mbps", "tau": "100ms"},
}
SEND = """\
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
s.connect((sys.argv[2], 5000))
data, end = bytes(65536), time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    s.send(data)
"""
RECEIVE = """\
import socket
l = socket.socket()
l.bind(("0.0.0.0", 5000))
l.listen()
print("ready", flush=True)
c, _ = l.accept()
while c.recv(1 << 20):
    pass
"""
# A mean of exponential times of which the median is 1.
MEAN_OVER_MEDIAN = 1 / math.log(2)
# What may differ between the two paths, one thing at a time, in virtual time.
SEEDS = range(1, 6)
BURST = """\
[scheme.burst]
controller = "constant"
window = 1000
[[workload]]
kind = "bulk"
scheme = "flow"
[[workload]]
kind = "bulk"
scheme = "burst"
size = "200packets"
start = "1s"
"""
Settings = dict[str, str]


def late_departures(late_us: float) -> tuple[str, Settings]:
    """Packets leave late, by so much on average."""
    return f"departures late by {late_us:.0f} us on average", {"host.timer_error": f"{late_us:.1f}us"}


def late_stamps(late_us: float) -> tuple[str, Settings]:
    """Packets are stamped late at the receiver, by so much on average, and their acknowledgments leave then."""
    what = f"acknowledgments late by {late_us:.0f} us on average, and stamped as they leave"
    return what, {"host.timestamp_at": "acknowledgment", "host.ack_cost": f"{late_us:.1f}us"}


VARIED: dict[str, Settings | None] = {
    "nothing": {},
    **dict(late_departures(late_us) for late_us in (50, 100, 200)),
    **dict(late_stamps(late_us) for late_us in (20, 50, 100)),
    "interrupts 200 us apart": {"host.interrupt_after": "200us"},
    "200 packets of another flow at 1 s": None,
}
COMMAND = [sys.executable, "-c", "from sparelane.cli.main import main; main()", "linux"]
# Gaps that are set one at a time over a cable without delay, microseconds.
GAPS_US = (386, 193, 77, 40, 20, 10)
# What a packet of 1448 bytes takes by RAPID's count, bytes.
GAP_BYTES = 1448 + 40


def in_kernel(program: str) -> tuple[pl.DataFrame, float]:
    """What the program tells of one connection, in the columns of the simulator's series; and how late the path was.

    The latter is the median over the packets that the path delivered, microseconds.
    """
    name = f"x{program}"
    with emulation.network(SCENARIO + SCHEMES[program]) as net, _loaded(net, program, name):
        receiver = net.start("right0", [sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
        assert receiver.stdout is not None
        receiver.stdout.readline()
        words = [sys.executable, "-c", SEND, name, net.address("right0"), str(LASTS_S)]
        samples = _watched(name, net.start("left0", words))
        receiver.kill()
    told = kernel.to_frame(samples).with_columns(pl.col("probe", "quantity").cast(pl.String))
    return told, 1e6 * net.outcome().counts["late_median_s"]


def _watched(name: str, sender: subprocess.Popen[str]) -> list[KernelSample]:
    watcher = _native.Watch(name)
    samples = []
    while sender.poll() is None:
        samples += watcher.poll(65_536)
        time.sleep(0.01)
    return samples + watcher.poll(65_536)


@contextmanager
def _loaded(net: emulation.Network, program: str, name: str) -> Iterator[None]:
    """The program at both ends, each with the route to the other where it wants one."""
    route = ["--route", "10.0.0.0/24"] if program == "rapid" else []
    held = []
    try:
        for host in ("left0", "right0") if route else ("left0",):
            own = name if host == "left0" else f"{name}b"
            held.append(_hold(net, host, program, own, SETTINGS[program], route))
        yield
    finally:
        for process in held:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def _hold(
    net: emulation.Network, host: str, program: str, name: str, settings: dict[str, str], route: Sequence[str]
) -> subprocess.Popen[str]:
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words = [*COMMAND, "load", program, "--name", name, "--foreground", *route, *sets]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = net.start(host, words, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    said = process.stderr.readline()
    if "is loaded" not in said:
        raise _native.LinuxError(said.strip())
    return process


def simulated(program: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The series of the same scenario in virtual time, and its packets."""
    result = api.run(SCENARIO + SCHEMES[program])
    series = result.series.with_columns(pl.col("probe", "quantity").cast(pl.String))
    return series, result.packets


def as_measured(departures_us: float, path_us: float) -> dict[str, Settings | None]:
    """What differs in the kernel's run, as far as it was measured: how late its sender was, and the path."""
    (departures, first), (path, second) = late_departures(departures_us), late_stamps(path_us)
    return {
        f"as measured: {departures}": first,
        f"as measured: {path}": second,
        "as measured: both": first | second,
    }


def varied(cases: Mapping[str, Settings | None]) -> pl.DataFrame:
    """RAPID in virtual time, with one thing after the other that may differ in the kernel's run; means of seeds."""
    rows = []
    for what, settings in cases.items():
        text = SCENARIO if settings is not None else SCENARIO.replace('[workload]\nkind = "bulk"\n', BURST)
        for seed in SEEDS:
            series = api.run(text + SCHEMES["rapid"], set=settings or {}, seed=seed).series
            kept = bpf_page.kept("rapid", "simulator", series.with_columns(pl.col("probe", "quantity").cast(pl.String)))
            rows.append(kept.with_columns(pl.lit(what).alias("what"), pl.lit(seed).alias("seed")))
    return bpf_page.varied(pl.concat(rows))


def main(folder: Path) -> None:
    """Measures everything and writes tables, page and figure."""
    folder.mkdir(parents=True, exist_ok=True)
    parts, gaps, measured = [], [], {}
    for program in SCHEMES:
        series, packets = simulated(program)
        told, path_late_us = in_kernel(program)
        parts += [bpf_page.kept(program, "simulator", series), bpf_page.kept(program, "kernel", told)]
        if program == "rapid":
            gaps = [bpf_page.gaps_of_packets(packets), bpf_page.gaps_told(told)]
            measured = as_measured(bpf_page.late_departures_us(told), MEAN_OVER_MEDIAN * path_late_us)
    varied(VARIED | measured).write_csv(folder / "varied.csv", float_precision=4)
    pl.concat(parts).write_csv(folder / "series.csv", float_precision=6)
    pl.concat(gaps).write_csv(folder / "gaps.csv", float_precision=3)
    accuracy, costs = bpf_cost.accuracy(GAPS_US, GAP_BYTES), bpf_cost.costs()
    accuracy.write_csv(folder / "accuracy.csv", float_precision=3)
    costs.write_csv(folder / "costs.csv", float_precision=1)
    bpf_page.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/linux/bpf"))
