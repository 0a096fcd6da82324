"""Compares RTCP and RAPID in the running kernel with the simulator.

Usage, as root: python benches/linux_bpf.py FOLDER

One connection at a time runs between two network namespaces over a path that the simulator emulates in real time. The
same scenario runs in virtual time. Compared are windows, round trips and rates, the gaps between packets, and the
processor time per acknowledgment.
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

import linux_bpf_cost
import linux_bpf_page
import polars as pl
from linux_bpf_ends import COMMAND, RECEIVE, SEND

from sparelane import _native, emulation
from sparelane.bpf import kernel
from sparelane.simulation.simulate import run

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
# The mean of an exponential distribution over its median.
MEAN_OVER_MEDIAN = 1 / math.log(2)
# Seeds of each variation in virtual time.
SEEDS = range(1, 6)
# A second flow of 200 packets, which fills the queue at 1 s.
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
    """Returns a variation in which packets leave late, by this many microseconds on average."""
    return f"departures late by {late_us:.0f} us on average", {"host.timer_error": f"{late_us:.1f}us"}


def late_stamps(late_us: float) -> tuple[str, Settings]:
    """Returns a variation in which the receiver sends acknowledgments late, by this many microseconds on average.

    Packets get their receive timestamps at the same time.
    """
    what = f"acknowledgments late by {late_us:.0f} us on average, and stamped as they leave"
    return what, {"host.timestamp_at": "acknowledgment", "host.ack_cost": f"{late_us:.1f}us"}


# Differences between a real path and the simulated one, to be simulated one at a time. `None` adds the burst.
VARIED: dict[str, Settings | None] = {
    "nothing": {},
    **dict(late_departures(late_us) for late_us in (50, 100, 200)),
    **dict(late_stamps(late_us) for late_us in (20, 50, 100)),
    "interrupts 200 us apart": {"host.interrupt_after": "200us"},
    "200 packets of another flow at 1 s": None,
}
# Gaps to measure over a cable without delay, in microseconds.
GAPS_US = (386, 193, 77, 40, 20, 10)
# The size of a packet in RAPID's rate: the payload plus 40 bytes of headers.
GAP_BYTES = 1448 + 40


def in_kernel(program: str) -> tuple[pl.DataFrame, float]:
    """Runs one connection under a program in the kernel.

    Returns:
        The program's samples in the columns of the simulator's series, and the median lateness of the packets that the
        emulated path delivered, in microseconds.
    """
    name = f"x{program}"
    with emulation.network(SCENARIO + SCHEMES[program]) as net, _loaded(net, program, name):
        receiver = net.start("right0", [sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
        assert receiver.stdout is not None
        receiver.stdout.readline()
        command = [sys.executable, "-c", SEND, name, net.address("right0"), str(LASTS_S)]
        samples = _watched(name, net.start("left0", command))
        receiver.kill()
    series = kernel.to_frame(samples).with_columns(pl.col("probe", "quantity").cast(pl.String))
    return series, 1e6 * net.outcome().counts["late_median_s"]


def _watched(name: str, sender: subprocess.Popen[str]) -> list[KernelSample]:
    watcher = _native.Watch(name)
    samples = []
    while sender.poll() is None:
        samples += watcher.poll(65_536)
        time.sleep(0.01)
    return samples + watcher.poll(65_536)


@contextmanager
def _loaded(net: emulation.Network, program: str, name: str) -> Iterator[None]:
    """Loads the program at the sender, and RAPID also at the receiver with a route that enables its timestamps."""
    route = ["--route", "10.0.0.0/24"] if program == "rapid" else []
    loaders = []
    try:
        for host in ("left0", "right0") if route else ("left0",):
            own = name if host == "left0" else f"{name}b"
            loaders.append(_start_loader(net, host, program, own, SETTINGS[program], route))
        yield
    finally:
        for process in loaders:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def _start_loader(
    net: emulation.Network, host: str, program: str, name: str, settings: dict[str, str], route: Sequence[str]
) -> subprocess.Popen[str]:
    """Starts a command that keeps the program loaded until it is stopped, and waits until the program is loaded."""
    options = [option for key, value in settings.items() for option in ("--set", f"{key}={value}")]
    command = [*COMMAND, "load", program, "--name", name, "--foreground", *route, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = net.start(host, command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    line = process.stderr.readline()
    if "is loaded" not in line:
        raise _native.LinuxError(line.strip())
    return process


def simulated(program: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Runs the same scenario in virtual time, and returns its series and packets."""
    result = run(SCENARIO + SCHEMES[program])
    series = result.series.with_columns(pl.col("probe", "quantity").cast(pl.String))
    return series, result.packets


def as_measured(departures_us: float, path_us: float) -> dict[str, Settings | None]:
    """Returns variations with the measured lateness of the kernel's sender and of the path, alone and together."""
    (departures, first), (path, second) = late_departures(departures_us), late_stamps(path_us)
    return {
        f"as measured: {departures}": first,
        f"as measured: {path}": second,
        "as measured: both": first | second,
    }


def varied(cases: Mapping[str, Settings | None]) -> pl.DataFrame:
    """Runs RAPID in virtual time with each variation, and returns means over seeds."""
    rows = []
    for what, settings in cases.items():
        text = SCENARIO if settings is not None else SCENARIO.replace('[workload]\nkind = "bulk"\n', BURST)
        for seed in SEEDS:
            series = run(text + SCHEMES["rapid"], set=settings or {}, seed=seed).series
            series = series.with_columns(pl.col("probe", "quantity").cast(pl.String))
            kept = linux_bpf_page.kept("rapid", "simulator", series)
            rows.append(kept.with_columns(pl.lit(what).alias("what"), pl.lit(seed).alias("seed")))
    return linux_bpf_page.varied(pl.concat(rows))


def main(folder: Path) -> None:
    """Measures everything and writes the tables, the page and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    parts, gaps, measured = [], [], {}
    for program in SCHEMES:
        series, packets = simulated(program)
        reported, path_late_us = in_kernel(program)
        parts += [linux_bpf_page.kept(program, "simulator", series), linux_bpf_page.kept(program, "kernel", reported)]
        if program == "rapid":
            gaps = [linux_bpf_page.gaps_of_packets(packets), linux_bpf_page.gaps_in_kernel(reported)]
            measured = as_measured(linux_bpf_page.late_departures_us(reported), MEAN_OVER_MEDIAN * path_late_us)
    varied(VARIED | measured).write_csv(folder / "varied.csv", float_precision=4)
    pl.concat(parts).write_csv(folder / "series.csv", float_precision=6)
    pl.concat(gaps).write_csv(folder / "gaps.csv", float_precision=3)
    accuracy, costs = linux_bpf_cost.accuracy(GAPS_US, GAP_BYTES), linux_bpf_cost.costs()
    accuracy.write_csv(folder / "accuracy.csv", float_precision=3)
    costs.write_csv(folder / "costs.csv", float_precision=1)
    linux_bpf_page.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/linux/bpf"))
