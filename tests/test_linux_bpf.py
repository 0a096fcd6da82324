"""Tests of controllers in the running kernel, between two network namespaces.

They need root, a kernel with BTF and a build with libbpf, and are skipped otherwise. `make test-bpf` fails if all are
skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pytest
from linux_bpf_ends import COMMAND, RECEIVE

from hangs import HANG_S, wait_until

if TYPE_CHECKING:
    from sparelane._native import KernelSample

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

if sys.platform == "linux":
    from sparelane import _native
    from sparelane.bpf import kernel

# The file that lists the controllers of the kernel.
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

# The state TIME_WAIT in /proc/net/tcp.
TIME_WAIT = "06"

# The payload of a segment with timestamps and an MTU of 1500 bytes.
MSS = 1448

# Sends to port 5000 of the other namespace for some seconds, with a controller.
SEND = """\
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
s.connect(("10.98.0.2", 5000))
data, sent, end = bytes(65536), 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    sent += s.send(data)
print(sent, s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())
"""
# Prints the traffic class byte of the first packets to port 5000.
SNIFF = """\
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
s.bind(("va", 3))
print("ready", flush=True)
marks = []
while len(marks) < 60:
    packet = s.recv(64)
    to_peer = packet[0] == 0x45 and packet[9] == 6 and packet[22:24] == (5000).to_bytes(2, "big")
    # A reset that answers what comes to a closed connection has no controller.
    if to_peer and not packet[33] & 4:
        marks.append(packet[1])
print(*marks)
"""


def missing_requirements() -> str | None:
    """Returns the missing requirements for loading programs, or `None`."""
    if sys.platform != "linux":
        return "needs Linux"
    lacks = [
        f"{finding.what}: {finding.state}" for finding in kernel.examine() if finding.is_needed and not finding.is_well
    ]
    lacks += [f"no {tool} (iproute2, util-linux)" for tool in ("ip", "nsenter") if shutil.which(tool) is None]
    return "; ".join(lacks) or None


MISSING = missing_requirements()

# Whether the package was built with libbpf.
CAN_LOAD = sys.platform == "linux" and any(
    finding.what == "loader of programs (libbpf)" and finding.is_well for finding in kernel.examine()
)


def needs_kernel(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that loads a program; `-m kernel` selects these."""
    skips = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
    return cast("Callable[..., None]", pytest.mark.kernel(skips(test)))


def run(*arguments: str, inside: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of `sparelane kernel` in a namespace."""
    enter = ["nsenter", f"--net=/run/netns/{inside}"] if inside else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [*enter, *COMMAND, *arguments], capture_output=True, text=True, timeout=HANG_S, env=environment
    )


def kill_with_janitor(process: subprocess.Popen[str]) -> None:
    """Kills a command and the process that would restore its changes."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    for child in listed.stdout.split():
        os.kill(int(child), signal.SIGKILL)
    process.kill()


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[str, str]]:
    """Two namespaces that are connected by a cable without delay, with a receiver in the second."""
    here, there = (f"sl{os.getpid()}{end}" for end in "ab")
    try:
        for end in (here, there):
            ip("netns", "add", end)
        ip("link", "add", "va", "netns", here, "type", "veth", "peer", "name", "vb", "netns", there)
        for end, cable, address in ((here, "va", "10.98.0.1"), (there, "vb", "10.98.0.2")):
            ip("-n", end, "address", "add", f"{address}/24", "dev", cable)
            ip("-n", end, "link", "set", cable, "up")
        receive = ["nsenter", f"--net=/run/netns/{there}", sys.executable, "-c", RECEIVE]
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
            yield here, there
            receiver.kill()
    finally:
        for end in (here, there):
            subprocess.run(["ip", "netns", "delete", end], capture_output=True, check=False)


@pytest.fixture
def name() -> Iterator[str]:
    """An unused name for a controller, which is removed after the test."""
    name = f"t{os.getpid()}"
    yield name
    if any(one.name == name for one in kernel.loaded()):
        kernel.unload(name)


NOTES = Path("/run/sparelane/linux")


def settings_of(end: str) -> tuple[str, ...]:
    """Returns the settings of a namespace that loading may change: routes, interfaces, the default controller."""
    routes = [ip("-n", end, *family, "route", "show") for family in ([], ["-6"])]
    default = ["nsenter", f"--net=/run/netns/{end}", "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
    controller = subprocess.run(default, capture_output=True, text=True, check=True).stdout.strip()
    return (*routes, ip("-n", end, "-d", "link", "show", "va"), controller)


def set_default(end: str, controller: str) -> None:
    echo = f"echo {controller} > /proc/sys/net/ipv4/tcp_congestion_control"
    subprocess.run(["nsenter", f"--net=/run/netns/{end}", "sh", "-c", echo], check=True)


def remaining(*names: str) -> list[str]:
    """Returns what remains of controllers: names in the kernel, records of changes, and pins."""
    left = [name for name in names if name in available()]
    return left + [str(folder / name) for name in names for folder in (NOTES, PINS) if (folder / name).exists()]


@contextmanager
def foreground(*arguments: str, inside: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a command that has loaded a controller, and stops it at the end of the block if it still runs."""
    # If the tests run in the background, some signals may be ignored.
    load = ["env", "--default-signal", "nsenter", f"--net=/run/netns/{inside}", *COMMAND, "load", *arguments]
    with subprocess.Popen(load, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while "is loaded" not in (line := process.stderr.readline()):
                assert line, "the command ended"
            yield process
        finally:
            process.terminate()
            process.wait(HANG_S)


PINS = Path("/sys/fs/bpf/sparelane")


@pytest.fixture
def route(ends: tuple[str, str]) -> Iterator[str]:
    """A separate route in the first namespace, over the second one."""
    prefix = "10.66.0.0/16"
    ip("-n", ends[0], "route", "add", prefix, "via", "10.98.0.2", "dev", "va")
    yield prefix
    ip("-n", ends[0], "route", "delete", prefix)


def available() -> list[str]:
    return AVAILABLE.read_text(encoding="utf-8").split()


def load_program(program: str, name: str, **settings: object) -> _native.LoadedController:
    pairs = [(key, str(value)) for key, value in settings.items()]
    return kernel.load(kernel.Load(program, name, pairs, is_pinned=False))


def transfer(end: str, name: str, seconds: float) -> tuple[int, str, list[KernelSample]]:
    """Sends for some seconds, and returns the sent bytes, the controller that was used, and its samples."""
    send = ["nsenter", f"--net=/run/netns/{end}", sys.executable, "-c", SEND, name, str(seconds)]
    watcher = _native.Watch(name)
    samples = []
    with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
        while sender.poll() is None:
            samples += watcher.poll(65_536)
            time.sleep(0.01)
        samples += watcher.poll(65_536)
        sent, used = sender.communicate()[0].split()
    return int(sent), used, samples


def send_all(end: str, name: str) -> None:
    """Sends for a short time, and waits until the kernel has sent the rest after the end of the process."""
    enter = ["nsenter", f"--net=/run/netns/{end}"]
    subprocess.run([*enter, sys.executable, "-c", SEND, name, "0.2"], check=True, capture_output=True)

    def has_ended() -> bool:
        shown = subprocess.run([*enter, "cat", "/proc/net/tcp"], check=True, capture_output=True, text=True).stdout
        connections = [line.split()[2:4] for line in shown.splitlines()[1:]]
        return not any(remote.endswith(":1388") and state != TIME_WAIT for remote, state in connections)

    wait_until(has_ended)


def values(samples: list[KernelSample], quantity: str) -> list[float]:
    return [value for sample in samples for name, value in sample[8] if name == quantity]


@needs_kernel
def test_windows_of_rtcp_follow_equation_9(ends: tuple[str, str], name: str) -> None:
    holding = load_program("rtcp", name, line_rate="1Gbps", alpha=500, delta=125, x_max=100)
    sent, used, samples = transfer(ends[0], name, 1.0)
    holding.unload()
    assert used == name
    assert sent > 1_000_000
    assert set(values(samples, "weight_bytes")) == {24_000.0}
    assert max(values(samples, "counter_bytes")) <= 24_000
    halved = doubled = 0
    for before, now in pairwise(samples):
        if before[5] != "acknowledgment" or now[5] != "acknowledgment":
            # A loss in between reduces the window again.
            continue
        was, is_now = dict(before[8])["cwnd_bytes"], dict(now[8])
        is_congested = is_now["counter_bytes"] < 500 * is_now["congestion_kb"]
        halved += is_congested
        doubled += not is_congested
        # The bound is 100 Gb/s times the minimum round-trip time, and two segments at least.
        most = is_now["base_rtt_ms"] * 12.5e6
        expected = max(min(was // 2 if is_congested else was * 2, most), 2 * MSS)
        assert abs(is_now["cwnd_bytes"] - expected) <= 1, f"{before} and then {now}"
        assert now[6] == is_now["cwnd_bytes"] // MSS, "the window is not a whole number of segments"
    assert halved > 20
    assert doubled > 20


@needs_kernel
def test_watch_shows_connections_and_saves_the_columns_of_the_simulator(
    ends: tuple[str, str], name: str, tmp_path: Path
) -> None:
    holding = load_program("rtcp", name, line_rate="1Gbps")
    send = ["nsenter", f"--net=/run/netns/{ends[0]}", sys.executable, "-c", SEND, name, "20"]
    with subprocess.Popen(send, stdout=subprocess.DEVNULL) as sender:
        for file, read in (("samples.csv", pl.read_csv), ("samples.parquet", pl.read_parquet)):
            answer = run("watch", name, "--seconds", "0.4", "-o", str(tmp_path / file))
            assert "flow 1: counter_bytes" in answer.stdout
            frame = read(tmp_path / file)
            assert frame.columns == ["time_s", "probe", "quantity", "value"]
            quantities = set(frame["quantity"].cast(pl.String))
            assert {"cwnd_segments", "rtt_ms", "counter_bytes", "congestion_kb"} <= quantities
            assert frame["time_s"].is_between(0, 5).all()
        sender.kill()
    holding.unload()


@needs_kernel
def test_weights_of_flows_follow_size_and_port(ends: tuple[str, str], name: str) -> None:
    holding = load_program("rtcp", name, line_rate="1Gbps", classify="by-size")
    *_, samples = transfer(ends[0], name, 0.3)
    holding.unload()
    # The sender writes 64 KB at once, so the flow is large from its first acknowledgment.
    assert set(values(samples, "weight_bytes")) == {12_000.0}
    holding = load_program("rtcp", name, **{"line_rate": "1Gbps", "classify": "by-port", "weight.5000": 5000})
    *_, samples = transfer(ends[0], name, 0.3)
    holding.unload()
    assert set(values(samples, "weight_bytes")) == {5_000.0}


@needs_kernel
def test_rapid_keeps_a_gap_of_193_us_and_restores_route_and_interface(ends: tuple[str, str]) -> None:
    here, _ = ends
    before = [ip("-n", end, "route", "show") for end in ends], [ip("-n", end, "-d", "link", "show") for end in ends]
    bps = round((MSS + 40) * 8 / 193e-6)
    one_rate = [f"line_rate={bps}bps", f"initial_rate={bps}bps", "spread=1.001"]
    sets = [word for setting in one_rate for word in ("--set", setting)]
    names = [f"t{os.getpid()}{end}" for end in "ab"]
    held = []
    try:
        for end, name in zip(ends, names, strict=True):
            enter = ["nsenter", f"--net=/run/netns/{end}", *COMMAND]
            load = [*enter, "load", "rapid", "--name", name, "--foreground", "--route", "10.98.0.0/24", *sets]
            held.append(subprocess.Popen(load, stderr=subprocess.PIPE, text=True))
        for process in held:
            assert process.stderr is not None
            assert "is loaded" in process.stderr.readline()
        assert f"congctl {names[0]}" in ip("-n", here, "route", "show")
        assert "gso_max_segs 1 " in ip("-n", here, "-d", "link", "show", "va")
        sent, _, samples = transfer(here, names[0], 1.5)
    finally:
        for process in held:
            process.send_signal(signal.SIGTERM)
            process.wait(HANG_S)
    assert sent > 1_000_000
    # The gap that was set after a packet, and the actual gap before the next one.
    meant, kept = np.array(values(samples, "gap_us"))[:-1], np.array(values(samples, "kept_gap_us"))[1:]
    assert len(kept) > 2_000
    assert np.median(np.abs(kept - meant)) < 1
    assert abs(np.median(kept) - 193) < 5
    assert np.mean(np.abs(kept - 193) < 5) > 0.8, "too many gaps are late"
    assert max(values(samples, "streams_judged")) > 10, "no timestamps in microseconds came back"
    after = [ip("-n", end, "route", "show") for end in ends], [ip("-n", end, "-d", "link", "show") for end in ends]
    assert after == before
    assert not set(names) & set(available())


@needs_kernel
def test_without_timestamps_in_microseconds_the_rate_of_rapid_is_constant(ends: tuple[str, str], name: str) -> None:
    holding = load_program("rapid", name, line_rate="500Mbps", initial_rate="20Mbps")
    *_, samples = transfer(ends[0], name, 0.5)
    holding.unload()
    assert set(values(samples, "rate_bps")) == {20e6}


@needs_kernel
def test_rapid_follows_its_estimates(ends: tuple[str, str]) -> None:
    names = [f"t{os.getpid()}{end}" for end in "ab"]
    held = []
    try:
        for end, name in zip(ends, names, strict=True):
            enter = ["nsenter", f"--net=/run/netns/{end}", *COMMAND]
            load = [*enter, "load", "rapid", "--name", name, "--foreground", "--route", "10.98.0.0/24"]
            load += ["--set", "line_rate=200Mbps", "--set", "initial_rate=20Mbps"]
            held.append(subprocess.Popen(load, stderr=subprocess.PIPE, text=True))
        for process in held:
            assert process.stderr is not None
            assert "is loaded" in process.stderr.readline()
        _, _, samples = transfer(ends[0], names[0], 2.0)
    finally:
        for process in held:
            process.send_signal(signal.SIGTERM)
            process.wait(HANG_S)
    rates = values(samples, "rate_bps")
    # The cable is faster than all probed rates; only noise keeps the rate below the line's.
    assert rates[0] == 20e6
    assert max(rates) > 60e6
    assert max(rates) <= 200e6
    gaps = set(values(samples, "gap_us"))
    assert any(gap < 200 for gap in gaps)


@needs_kernel
def test_a_scavenger_marks_its_packets_le(ends: tuple[str, str], name: str) -> None:
    holding = load_program("scavenger", name)
    enter = ["nsenter", f"--net=/run/netns/{ends[0]}", sys.executable, "-c"]
    with subprocess.Popen([*enter, SNIFF], stdout=subprocess.PIPE, text=True) as sniffer:
        assert sniffer.stdout is not None
        assert sniffer.stdout.readline() == "ready\n"
        sent, used, _ = transfer(ends[0], name, 1.0)
        marks = [int(mark) for mark in sniffer.communicate()[0].split()]
    holding.unload()
    assert (used, sent > 1_000_000) == (name, True)
    # The handshake ends before a controller starts.
    assert marks[0] == 0
    assert set(marks[5:]) == {1 << 2}


@pytest.fixture
def cgroup() -> Iterator[str]:
    """The path of a cgroup of version 2 from the root."""
    mounts = [Path(mount) for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")]
    root = next((mount for mount in mounts if (mount / "cgroup.controllers").exists()), None)
    if root is None:
        pytest.skip("needs cgroups of version 2")
    folder = root / f"sl{os.getpid()}"
    folder.mkdir()
    yield str(folder)
    folder.rmdir()


@needs_kernel
def test_connections_of_a_cgroup_use_the_controller_with_its_weight(
    ends: tuple[str, str], name: str, cgroup: str
) -> None:
    path = f"/{Path(cgroup).name}"
    settings = [("line_rate", "1Gbps"), ("classify", "by-cgroup"), (f"weight.{path}", "777")]
    holding = kernel.load(kernel.Load("rtcp", name, settings, cgroups=[path], is_pinned=False))
    watcher = _native.Watch(name)
    enter = ["nsenter", f"--net=/run/netns/{ends[0]}"]
    # These sockets select no controller.
    plain = SEND.replace("s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())\n", "")
    join = f"import os; open('{cgroup}/cgroup.procs', 'w').write(str(os.getpid()))\n"
    used = [
        subprocess.run([*enter, sys.executable, "-c", code, "-", "0.3"], capture_output=True, text=True, check=True)
        for code in (join + plain, plain)
    ]
    samples = watcher.poll(65_536)
    holding.unload()
    assert used[0].stdout.split()[1] == name
    assert used[1].stdout.split()[1] != name
    assert set(values(samples, "weight_bytes")) == {777.0}


@needs_kernel
def test_the_default_of_a_namespace_is_the_controller_until_it_is_unloaded(ends: tuple[str, str], name: str) -> None:
    default = ["nsenter", f"--net=/run/netns/{ends[0]}", "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]

    def read() -> str:
        return subprocess.run(default, capture_output=True, text=True, check=True).stdout.strip()

    before = read()
    load = ["load", "rtcp", "--name", name, "--default", "--set", "line_rate=1Gbps", "--"]
    assert run(*load, *default[2:], inside=ends[0]).stdout.strip() == name
    assert read() == before


@needs_kernel
def test_a_killed_command_leaves_the_default_as_it_was(ends: tuple[str, str], name: str) -> None:
    inside = ["nsenter", f"--net=/run/netns/{ends[0]}"]

    def default() -> str:
        read = [*inside, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
        return subprocess.run(read, capture_output=True, text=True, check=True).stdout.strip()

    before = default()
    load = ["load", "rtcp", "--name", name, "--default", "--set", "line_rate=1Gbps", "--foreground"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([*inside, *COMMAND, *load], stderr=subprocess.PIPE, text=True, env=environment) as loading:
        assert loading.stderr is not None
        assert "is loaded" in loading.stderr.readline()
        assert default() == name
        loading.kill()
        loading.wait(HANG_S)
        wait_until(lambda: default() == before and name not in available())
    # The record disappears after the default is restored.
    wait_until(lambda: not Path("/run/sparelane/linux", name).exists())


def test_a_janitor_acts_if_its_process_is_killed_and_not_otherwise(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with kernel.janitor(["touch", str(done)]):
        pass
    assert not done.exists()
    code = (
        "import os, signal, sys\n"
        "from sparelane.bpf import kernel\n"
        "with kernel.janitor(['touch', sys.argv[1]]):\n"
        "    os.killpg(0, signal.SIGKILL)\n"
    )
    line = [sys.executable, "-c", code, str(done)]
    killed = subprocess.run(line, check=False, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL
    wait_until(done.exists)


@needs_kernel
def test_a_pinned_controller_stays_after_its_command_until_unload(name: str) -> None:
    if not any(finding.what == "/sys/fs/bpf" and finding.is_well for finding in kernel.examine()):
        answer = run("load", "rtcp", "--name", name, "--set", "line_rate=1Gbps")
        assert "mount -t bpf bpf /sys/fs/bpf" in answer.stderr
        assert name not in available()
        pytest.skip("needs /sys/fs/bpf, which is not mounted; its absence was reported")
    assert run("load", "rtcp", "--name", name, "--set", "line_rate=1Gbps").returncode == 0
    assert name in available()
    assert Path("/sys/fs/bpf/sparelane", name).exists()
    assert run("unload", name).returncode == 0
    assert name not in available()
    assert not Path("/sys/fs/bpf/sparelane").exists()
    assert not Path("/run/sparelane/linux", name).exists()


@needs_kernel
def test_two_versions_are_loaded_at_the_same_time_and_both_are_removed(ends: tuple[str, str], name: str) -> None:
    other = f"{name}b"
    first, second = (
        load_program("rtcp", name, line_rate="1Gbps"),
        load_program("rtcp", other, line_rate="1Gbps", weight=500),
    )
    assert {name, other} <= set(available())
    assert {one.name for one in kernel.loaded() if one.program == "rtcp"} >= {name, other}
    *_, samples = transfer(ends[0], other, 0.2)
    assert set(values(samples, "weight_bytes")) == {500.0}
    with pytest.raises(_native.LinuxError, match=f"a controller named {name} is already loaded .the program rtcp."):
        load_program("rtcp", name, line_rate="1Gbps")
    first.unload()
    assert name not in available()
    assert other in available()
    second.unload()
    assert other not in available()


@needs_kernel
@pytest.mark.parametrize("goes_first", [0, 1])
def test_two_controllers_on_one_route_are_unloaded_in_any_order_without_remains(
    ends: tuple[str, str], name: str, route: str, goes_first: int
) -> None:
    here, names = ends[0], [name, f"{name}b"]
    before = settings_of(here)
    options = ["--route", route, "--default", "--set", "line_rate=1Gbps", "--foreground"]
    with (
        foreground("rapid", "--name", names[0], *options, inside=here) as first,
        foreground("rapid", "--name", names[1], *options, inside=here) as second,
    ):
        gone, left = ((first, second), (second, first))[goes_first]
        gone.terminate()
        assert gone.wait(HANG_S) == 0
        routes, _, link, default = settings_of(here)
        stays = names[1 - goes_first]
        assert f"congctl {stays}" in routes, "the loaded controller is not used any more"
        assert ("quickack 1" in routes, "gso_max_segs 1 " in link, default) == (True, True, stays)
        assert remaining(names[goes_first]) == []
        left.terminate()
        assert left.wait(HANG_S) == 0
    assert settings_of(here) == before
    assert remaining(*names) == []


@needs_kernel
def test_unloading_after_another_was_killed_restores_the_state_before_both(
    ends: tuple[str, str], name: str, route: str
) -> None:
    here, above = ends[0], f"{name}b"
    before = settings_of(here)
    options = ["--route", route, "--default", "--set", "line_rate=1Gbps", "--foreground"]
    with (
        foreground("rtcp", "--name", name, *options, inside=here) as below,
        foreground("rtcp", "--name", above, *options, inside=here) as process,
    ):
        kill_with_janitor(below)
        below.wait(HANG_S)
        process.terminate()
        assert process.wait(HANG_S) == 0
    assert settings_of(here) == before
    assert remaining(name, above) == [str(NOTES / name)], "the record of the killed process is missing"
    assert run("unload", name, inside=here).returncode == 0
    assert settings_of(here) == before
    assert remaining(name, above) == []


@needs_kernel
def test_later_changes_by_the_administrator_stay(ends: tuple[str, str], name: str, route: str) -> None:
    here = ends[0]
    *_, default = settings_of(here)
    options = ["--route", route, "--default", "--set", "line_rate=1Gbps", "--foreground"]
    with foreground("rapid", "--name", name, *options, inside=here):
        ip("-n", here, "route", "replace", route, "via", "10.98.0.9", "dev", "va", "mtu", "1300")
        ip("-n", here, "link", "set", "va", "gso_max_segs", "9")
        set_default(here, "reno")
        changed = settings_of(here)
    assert settings_of(here) == changed
    set_default(here, default)
    ip("-n", here, "link", "set", "va", "gso_max_segs", "65535")
    with foreground("rapid", "--name", name, *options[:2], *options[3:], inside=here):
        # The controller stays on the route; its other settings were changed.
        again = ["congctl", name, "quickack", "1", "mtu", "1200"]
        ip("-n", here, "route", "replace", route, "via", "10.98.0.8", "dev", "va", *again)
    assert f"{route} via 10.98.0.8 dev va mtu 1200 \n" in settings_of(here)[0]
    ip("-n", here, "route", "replace", route, "via", "10.98.0.2", "dev", "va")
    assert remaining(name) == []


def lifetime_s(end: str, destination: str) -> int:
    shown = ip("-n", end, "-6", "route", "show", destination)
    return int(shown.split(" expires ")[1].split("sec")[0])


@needs_kernel
def test_routes_of_ipv6_keep_their_lifetime_and_the_default_route_is_supported(
    ends: tuple[str, str], name: str
) -> None:
    here = ends[0]
    ip("-n", here, "-6", "address", "add", "fd00:98::1/64", "dev", "va", "nodad")
    try:
        for destination in ("fd00:66::/48", "default"):
            ip("-n", here, "-6", "route", "add", destination, "via", "fd00:98::2", "dev", "va", "expires", "600")
        options = ["--route", "fd00:66::/48", "--route", "::/0", "--set", "line_rate=1Gbps", "--foreground"]
        with foreground("rapid", "--name", name, *options, inside=here):
            shown = ip("-n", here, "-6", "route", "show")
            assert shown.count(f"congctl {name}") == 2
            assert 500 < lifetime_s(here, "fd00:66::/48") <= 600
            assert 500 < lifetime_s(here, "default") <= 600
        assert 500 < lifetime_s(here, "fd00:66::/48") <= 600
        assert "congctl" not in ip("-n", here, "-6", "route", "show")
        assert "quickack" not in ip("-n", here, "-6", "route", "show")
    finally:
        for destination in ("fd00:66::/48", "default"):
            ip("-n", here, "-6", "route", "delete", destination)
        ip("-n", here, "-6", "address", "flush", "dev", "va", "scope", "global")


@needs_kernel
def test_a_route_without_a_destination_is_refused(ends: tuple[str, str], name: str) -> None:
    here = ends[0]
    ip("-n", here, "route", "add", "unreachable", "10.67.0.0/16")
    answer = run("load", "rtcp", "--name", name, "--route", "10.67.0.0/16", "--set", "line_rate=1Gbps", inside=here)
    ip("-n", here, "route", "delete", "unreachable", "10.67.0.0/16")
    assert (answer.returncode, "the route to 10.67.0.0/16 is unreachable; allowed:" in answer.stderr) == (2, True)
    assert remaining(name) == []


@needs_kernel
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_a_closed_terminal_leaves_no_changes(
    ends: tuple[str, str], name: str, route: str, number: signal.Signals
) -> None:
    before = settings_of(ends[0])
    options = ["--name", name, "--route", route, "--set", "line_rate=1Gbps", "--foreground"]
    with foreground("rtcp", *options, inside=ends[0]) as process:
        assert settings_of(ends[0]) != before
        process.send_signal(number)
        assert process.wait(HANG_S) == 0
    assert settings_of(ends[0]) == before
    assert remaining(name) == []


@pytest.fixture
def temporary_namespace(ends: tuple[str, str]) -> Iterator[str]:
    """A namespace that the test may delete."""
    end = f"sl{os.getpid()}c"
    ip("netns", "add", end)
    yield end
    subprocess.run(["ip", "netns", "delete", end], capture_output=True, check=False)


@needs_kernel
def test_the_record_of_a_deleted_namespace_is_removed_with_a_message(temporary_namespace: str, name: str) -> None:
    load = ["rtcp", "--name", name, "--default", "--set", "line_rate=1Gbps"]
    for again in (["unload", name], ["load", *load, "--", "true"]):
        with foreground(*load, "--foreground", inside=temporary_namespace) as process:
            kill_with_janitor(process)
        assert "in another network namespace" in run(*again).stderr, (
            "the namespace exists, so its settings can be restored there"
        )
        assert remaining(name) == [str(NOTES / name)]
        ip("netns", "delete", temporary_namespace)
        answer = run(*again)
        assert answer.returncode == 0
        assert f"in which {name} had changed the default controller" in answer.stderr
        assert "is gone" in answer.stderr
        assert remaining(name) == []
        ip("netns", "add", temporary_namespace)


@needs_kernel
def test_a_foreground_command_reports_that_another_process_unloaded_its_controller(
    ends: tuple[str, str], name: str
) -> None:
    options = ["--name", name, "--set", "line_rate=1Gbps", "--foreground"]
    with foreground("rtcp", *options, inside=ends[0]) as process:
        assert run("unload", name).returncode == 0
        assert process.wait(HANG_S) == 0
        assert process.stderr is not None
        assert f"{name} was unloaded by another process" in process.stderr.read()
    assert remaining(name) == []


@needs_kernel
def test_signals_do_not_interrupt_the_loading_of_a_program(name: str) -> None:
    received = []
    before = signal.signal(signal.SIGUSR1, lambda *_: received.append(time.monotonic()))
    send = f"for turn in 1 2 3 4 5 6 7 8 9 10; do kill -USR1 {os.getpid()}; sleep 0.03; done"
    try:
        with subprocess.Popen(["sh", "-c", send]) as sender:
            holding = load_program("rapid", name, line_rate="1Gbps")
            assert name in available()
            holding.unload()
            assert sender.wait(HANG_S) == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert received, "no signal arrived"


@needs_kernel
def test_a_watcher_that_stops_reading_gets_no_more_samples(ends: tuple[str, str], name: str) -> None:
    holding = load_program("rtcp", name, line_rate="1Gbps")
    watcher = _native.Watch(name)
    time.sleep(5.5)
    send_all(ends[0], name)
    assert watcher.poll(65_536) == []
    # A call of `poll` starts the watcher again.
    send_all(ends[0], name)
    assert watcher.poll(65_536) != []
    holding.unload()


@needs_kernel
def test_samples_end_at_once_when_a_watcher_closes(ends: tuple[str, str], name: str) -> None:
    holding = load_program("rtcp", name, line_rate="1Gbps")
    watcher, other = _native.Watch(name), _native.Watch(name)
    del other
    time.sleep(0.3)
    send_all(ends[0], name)
    assert watcher.poll(65_536) == []
    holding.unload()


@needs_kernel
def test_changes_of_a_killed_process_are_restored(ends: tuple[str, str], name: str) -> None:
    before = ip("-n", ends[0], "route", "show")
    enter = ["nsenter", f"--net=/run/netns/{ends[0]}", *COMMAND]
    load = [
        *enter,
        "load",
        "rtcp",
        "--name",
        name,
        "--foreground",
        "--route",
        "10.98.0.0/24",
        "--set",
        "line_rate=1Gbps",
    ]
    with subprocess.Popen(load, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "is loaded" in process.stderr.readline()
        kill_with_janitor(process)
    assert name not in available(), "the controller stayed after its process"
    left = next(one for one in json.loads(run("list", "--json").stdout)["loaded"] if one["name"] == name)
    assert not left["is_registered"]
    remedies = [finding["remedy"] for finding in json.loads(run("doctor", "--json").stdout)]
    assert f"sparelane kernel unload {name}" in remedies
    assert "network namespace" in run("unload", name).stderr, "a route can only be restored in its namespace"
    assert run("unload", name, inside=ends[0]).returncode == 0
    assert ip("-n", ends[0], "route", "show") == before
    assert not Path("/run/sparelane/linux", name).exists()


@needs_kernel
def test_a_command_runs_with_its_controller_and_returns_its_exit_code(name: str) -> None:
    load = ["load", "rtcp", "--name", name, "--set", "line_rate=1Gbps", "--"]
    check = f"import sys; sys.exit(40 + (sys.argv[1] in open({str(AVAILABLE)!r}).read().split()))"
    assert run(*load, sys.executable, "-c", check, name).returncode == 41
    assert name not in available()
    answer = run(*load, "no-such-command-here")
    assert (answer.returncode, "no-such-command-here" in answer.stderr) == (2, True)
    answer = run(*load, "/etc/passwd")
    assert (answer.returncode, 'cannot run "/etc/passwd": permission denied' in answer.stderr) == (2, True)
    assert run(*load, "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    assert name not in available()


@needs_kernel
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_the_command_and_unloads_its_controller(
    ends: tuple[str, str], name: str, number: signal.Signals
) -> None:
    before = settings_of(ends[0])
    options = ["rtcp", "--name", name, "--default", "--set", "line_rate=1Gbps", "--"]
    with foreground(*options, "sh", "-c", "echo it is loaded >&2; exec sleep 60", inside=ends[0]) as process:
        assert name in available()
        process.send_signal(number)
        # The signal ends the command; this command then exits with 128 plus the signal, as shells do.
        assert process.wait(HANG_S) == 128 + number
    assert settings_of(ends[0]) == before
    assert remaining(name) == []


@needs_kernel
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "vegas"], 'there is no program "vegas"; available: rtcp, rapid, scavenger'),
        (
            ["load", "rtcp", "--interface", "lo"],
            "as in `sparelane kernel load rtcp --interface lo --set line_rate=1Gbps`",
        ),
        (["load", "rtcp", "--interface", "nosuch0"], 'there is no interface "nosuch0"'),
        (["load", "rtcp", "--route", "203.0.113.0/24"], "there is no route to 203.0.113.0/24"),
        (["load", "rtcp", "--name", "much-too-long-a-name"], "is not a controller name"),
        (["load", "rtcp", "--set", "alpha"], "allowed: KEY=VALUE"),
        (["load", "rtcp", "--set", "line_rate=1Gbps", "--set", "alfa=1"], 'rtcp has no setting "alfa"'),
        (["load", "rtcp", "--set", "line_rate=1Gbps", "--set", "alpha=-1"], "`alpha` is -1; allowed: a number from 0"),
        (["load", "rtcp", "--set", "line_rate=1Gbps", "--set", "weight.443=1"], "`classify` is no"),
        (["load", "rapid", "--set", "line_rate=1Gbps", "--set", "rates=32"], "allowed in the kernel: 2 to 16 rates"),
        (["load", "cubic", "--name", "cubic"], 'there is no program "cubic"'),
        (
            ["load", "rtcp", "--name", "cubic", "--set", "line_rate=1Gbps", "--foreground"],
            "already loaded by someone else",
        ),
        (["unload", "nosuch"], "no controller named nosuch is loaded; loaded: none"),
        (["unload", "cubic"], "cubic was not loaded by sparelane"),
        (["watch", "nosuch"], "no controller named nosuch is loaded"),
        (["watch", "nosuch", "-o", "x.txt"], "a name that ends in .parquet or .csv"),
        (["watch", "nosuch", "-o", "/no/such/folder/x.csv"], 'cannot write the file "/no/such/folder/x.csv"'),
    ],
)
def test_each_mistake_is_one_clear_error(arguments: list[str], message: str) -> None:
    before = available()
    answer = run(*arguments)
    assert message in answer.stderr
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert available() == before


@pytest.mark.skipif(CAN_LOAD, reason="needs a build without libbpf")
def test_a_build_without_libbpf_names_what_is_missing_in_one_line() -> None:
    answer = run("load", "rtcp", "--set", "line_rate=1Gbps")
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "built without libbpf" in answer.stderr
    assert "install libelf-dev, zlib1g-dev and pkg-config, then rebuild with `make build`" in answer.stderr
    doctor = run("doctor")
    assert (doctor.returncode, "loader of programs (libbpf)" in doctor.stderr) == (3, True)
    assert "built without libbpf" in run("list").stderr


@pytest.mark.skipif(CAN_LOAD, reason="needs a build without libbpf")
@pytest.mark.parametrize("command", ["unload", "watch"])
def test_a_build_without_libbpf_names_a_controller_that_is_not_loaded(command: str) -> None:
    answer = run(command, "rtcp")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "no controller named rtcp is loaded" in answer.stderr


@pytest.mark.skipif(not CAN_LOAD, reason="needs a build with libbpf")
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, to do without it")
def test_without_privileges_the_error_names_the_required_ones() -> None:
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *COMMAND, "load", "rtcp", "--foreground"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    load = [*without, "--set", "line_rate=1Gbps"]
    answer = subprocess.run(load, capture_output=True, text=True, timeout=HANG_S, env=environment)
    assert "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" in answer.stderr
    assert answer.returncode == 2
    # Missing support for pins is the less important requirement.
    unmounted = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/bpf; exec "$@"', "sh"]
    pinned = [word for word in load if word != "--foreground"]
    answer = subprocess.run([*unmounted, *pinned], capture_output=True, text=True, timeout=HANG_S, env=environment)
    assert "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" in answer.stderr
    doctor = subprocess.run([*without[:-3], "doctor"], capture_output=True, text=True, timeout=HANG_S, env=environment)
    assert "privileges" in doctor.stderr
    assert doctor.returncode == 3


def test_the_doctor_lists_every_requirement() -> None:
    findings = json.loads(run("doctor", "--json").stdout)
    assert {"kernel", "privileges"} <= {finding["what"] for finding in findings}
    assert all(finding["is_well"] or finding["remedy"] for finding in findings)


def test_samples_have_the_columns_of_the_simulators_series() -> None:
    state = [("counter_bytes", 5.0)]
    samples = [
        (2_000, 1, 40000, 5000, "10.0.0.2", "acknowledgment", 10, 200, state),
        (1_000, 2, 40001, 5000, "::1", "departure", 12, None, []),
    ]
    frame = kernel.to_frame(samples)
    assert frame.columns == ["time_s", "probe", "quantity", "value"]
    assert frame.sort("time_s")["quantity"].to_list() == ["cwnd_segments", "cwnd_segments", "counter_bytes", "rtt_ms"]
    assert frame.filter(pl.col("quantity") == "rtt_ms")["value"].to_list() == [0.2]
    assert frame["time_s"].min() == 0
