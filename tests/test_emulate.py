"""Tests of `sparelane emulate` with real programs in network namespaces of this machine."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import SPARELANE
from hangs import HANG_S, wait_until
from sparelane import emulation
from sparelane._native import EmulationError
from sparelane.common.names import UnknownNameError
from sparelane.emulation import hosts as emulated_hosts

WHY_NOT = emulated_hosts.missing()

SCENARIO = """
duration = "10s"
[topology]
kind = "dumbbell"
pairs = 2
access_rate = "100Mbps"
access_delay = "1ms"
bottleneck_rate = "20Mbps"
bottleneck_delay = "18ms"
[queue]
kind = "priority"
limit = "1bdp"
[scheme.tcp]
controller = "cubic"
[workload]
kind = "bulk"
size = "1MB"
[emulate]
# Machines that test several things at once are late now and then.
delay_error = "100ms"
"""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test if this machine cannot emulate or one of these programs is missing."""
    absent = [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    why_not = WHY_NOT or (f"needs {', '.join(absent)}" if absent else None)
    return pytest.mark.skipif(why_not is not None, reason=f"emulation: {why_not}")


@pytest.fixture
def prefix() -> Iterator[str]:
    """A prefix for the namespaces of one test, which must not remain afterwards."""
    mine = f"sl{os.getpid()}-"
    yield mine
    wait_until(lambda: nothing_is_left(mine))


def nothing_is_left(prefix: str) -> bool:
    """Returns whether no namespace with this prefix and no device of an emulation remains."""
    spaces = any(emulated_hosts.NAMESPACES.glob(f"{prefix}*"))
    return not spaces and not any(name.startswith("slemu") for _, name in socket.if_nameindex())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def emulate(file: Path, prefix: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [*SPARELANE, "emulate", "--prefix", prefix, str(file), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)


def finished(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert report["event"] == "finished"
    return report


def late_ms(report: dict[str, Any]) -> float:
    """Returns twice the largest lateness of a packet, milliseconds: the most by which a round trip was late."""
    return float(2000 * report["counts"]["late_max_s"])


def link(report: dict[str, Any], near: str, far: str) -> dict[str, Any]:
    [row] = [row for row in report["links"] if (row["from"], row["to"]) == (near, far)]
    return dict(row)


def iperf(net: emulation.Network, near: str, far: str, port: int, *arguments: str) -> subprocess.Popen[str]:
    """Starts a server at `far` and, once it listens, a client at `near` that prints JSON."""
    server = net.start(far, ["iperf3", "-s", "-1", "--forceflush", "-p", str(port)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        assert server.poll() is None
    line = ["iperf3", "-c", net.address(far), "-p", str(port), "--json", *arguments]
    return net.start(near, line, stdout=subprocess.PIPE, text=True)


def report_of(client: subprocess.Popen[str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(client.communicate(timeout=HANG_S)[0])
    assert "error" not in report, report
    return dict(report["end"])


@needs("ping")
def test_ping_measures_the_round_trip_time_of_the_scenario(file: Path, prefix: str) -> None:
    done = emulate(file, prefix, "--json", "--host", "left0", "--", "ping", "-c", "20", "-i", "0.05", "{right0}")
    report = finished(done)
    fastest = float(done.stderr.split("rtt min/avg/max/mdev = ")[1].split("/")[0])
    # 40 ms of propagation, and 0.09 ms for 84 bytes on three cables in each direction. A busy machine is late.
    assert 40.09 <= fastest < 42 + late_ms(report), done.stderr
    assert link(report, "west", "east")["sent_packets"] == 20
    assert report["commands"][0]["exit"] == 0
    assert report["counts"]["packets_to_hosts"] == 40


@needs("iperf3")
def test_datagrams_arrive_at_the_rate_of_the_bottleneck(file: Path, prefix: str) -> None:
    with emulation.network(file, prefix=prefix) as net:
        end = report_of(iperf(net, "left0", "right0", 5301, "-u", "-b", "30M", "-t", "3", "-l", "1400"))
    links = net.outcome().links
    bottleneck = links.filter((links["from"] == "west") & (links["to"] == "east")).to_dicts()[0]
    # The wire has 20 Mb/s; 1400 of 1428 bytes are payload.
    goodput = end["sum"]["bits_per_second"] * (1 - end["sum"]["lost_percent"] / 100)
    assert goodput == pytest.approx(20e6 * 1400 / 1428, rel=0.05)
    assert bottleneck["dropped_packets"] > 1000
    assert bottleneck["peak_backlog_bytes"] <= 100_000 + 2 * 1500
    assert net.outcome().counts["dropped_packets"] == bottleneck["dropped_packets"]


@needs("iperf3")
def test_tcp_fills_the_bottleneck(file: Path, prefix: str) -> None:
    with emulation.network(file, prefix=prefix, set=["queue.kind=fifo"]) as net:
        end = report_of(iperf(net, "left0", "right0", 5302, "-t", "5", "-O", "1"))
    assert end["sum_received"]["bits_per_second"] == pytest.approx(20e6 * 1448 / 1500, rel=0.07)


@needs("iperf3")
def test_strict_priority_protects_the_high_class(file: Path, prefix: str) -> None:
    with emulation.network(file, prefix=prefix) as net:
        low = iperf(net, "left1", "right1", 5304, "-u", "-b", "40M", "-t", "4", "-l", "1400", "-S", str(3 << 2))
        time.sleep(0.5)
        high = report_of(iperf(net, "left0", "right0", 5303, "-u", "-b", "10M", "-t", "2", "-l", "1400"))
        low_end = report_of(low)
    classes = net.outcome().classes
    rows = classes.filter((classes["from"] == "west") & (classes["to"] == "east")).sort("class").to_dicts()
    assert [row["class"] for row in rows] == [0, 1]
    assert rows[0]["dropped_packets"] == 0 < rows[1]["dropped_packets"]
    assert high["sum"]["lost_packets"] == 0
    assert low_end["sum"]["lost_percent"] > 30


@needs("ping")
def test_packets_are_lost_with_the_probability_of_the_scenario(file: Path, prefix: str) -> None:
    lossy = ["--set", "link=[{ between = ['west', 'east'], loss = 0.1, loss_from = 'west' }]"]
    line = ["ping", "-q", "-c", "500", "-i", "0.002", "-W", "1", "{right0}"]
    row = link(finished(emulate(file, prefix, "--json", *lossy, "--host", "left0", "--", *line)), "west", "east")
    assert row["sent_packets"] == 500
    assert row["dropped_packets"] == 0
    # Five standard deviations of the binomial distribution.
    assert abs(row["lost_packets"] / 500 - 0.1) < 5 * (0.1 * 0.9 / 500) ** 0.5
    again = link(finished(emulate(file, prefix, "--json", *lossy, "--host", "left0", "--", *line)), "west", "east")
    assert again["lost_packets"] == row["lost_packets"]


@needs("iperf3", "nstat", "sysctl")
def test_marks_of_queues_reach_the_kernel_with_correct_checksums(file: Path, prefix: str) -> None:
    with emulation.network(
        file, prefix=prefix, set=["queue.kind=fifo", "queue.mark_at=20kB", "queue.limit=1MB"]
    ) as net:
        for host in ("left0", "right0"):
            assert net.start(host, ["sysctl", "-qw", "net.ipv4.tcp_ecn=1"]).wait(HANG_S) == 0
        end = report_of(iperf(net, "left0", "right0", 5306, "-t", "3"))
        report = net.start("right0", ["nstat", "-az"], stdout=subprocess.PIPE, text=True).communicate(timeout=HANG_S)[0]
    counts = {line.split()[0]: int(line.split()[1]) for line in report.splitlines() if not line.startswith("#")}
    links = net.outcome().links
    row = links.filter((links["from"] == "west") & (links["to"] == "east")).to_dicts()[0]
    assert counts["IpExtInCEPkts"] == row["marked_packets"] > 0
    assert counts["IpInHdrErrors"] == 0
    assert row["dropped_packets"] == 0
    assert end["sum_received"]["bits_per_second"] > 15e6


@needs("curl")
def test_curl_fetches_a_complete_file(file: Path, prefix: str, tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_bytes(content)
    server = (
        "--host",
        "right0",
        "--",
        sys.executable,
        "-m",
        "http.server",
        "8000",
        "--directory",
        str(tmp_path / "here"),
    )
    line = ("curl", "-s", "--retry", "20", "--retry-delay", "1", "--retry-connrefused", "--noproxy", "*")
    target = ("-o", str(tmp_path / "fetched"), "http://{right0}:8000/file")
    began = time.monotonic()
    finished(emulate(file, prefix, "--json", "--stagger", "1", *server, "--host", "left0", "--", *line, *target))
    assert hashlib.sha256((tmp_path / "fetched").read_bytes()).digest() == hashlib.sha256(content).digest()
    assert time.monotonic() - began > 2e6 * 8 / 20e6


@needs("ssh", "sshd", "ssh-keygen")
def test_ssh_runs_a_command_at_another_host(file: Path, prefix: str, tmp_path: Path) -> None:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "authorized").write_text((tmp_path / "user.pub").read_text())
    (tmp_path / "authorized").chmod(0o600)
    Path("/run/sshd").mkdir(exist_ok=True)
    (tmp_path / "sshd_config").write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/authorized\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n"
    )
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or "sshd"
    server = ["--host", "right0", "--", sshd, "-D", "-e", "-p", "2222", "-f", str(tmp_path / "sshd_config")]
    options = [
        "StrictHostKeyChecking=no",
        f"UserKnownHostsFile={tmp_path}/known",
        "IdentitiesOnly=yes",
        "BatchMode=yes",
    ]
    client = ["ssh", "-p", "2222", "-i", str(tmp_path / "user"), *(f"-o{option}" for option in options), "-F", "none"]
    run = ["root@{right0}", "cat /proc/net/fib_trie"]
    done = emulate(file, prefix, "--json", "--stagger", "1", *server, "--host", "left0", "--", *client, *run)
    finished(done)
    assert f"|-- {emulation_address(2)}" in done.stderr


def emulation_address(place: int) -> str:
    """Returns the address of a host by its position in the scenario."""
    return f"10.0.0.{place + 1}"


@needs("ping")
def test_scripted_changes_happen_at_their_time(file: Path, prefix: str) -> None:
    file.write_text(
        SCENARIO
        + '[[emulate.change]]\nat = "1s"\nbetween = ["west", "east"]\ndelay = "58ms"\n'
        + '[[emulate.change]]\nat = "2s"\nbetween = ["west", "east"]\ndown = true\n'
        + '[[emulate.change]]\nat = "3s"\nbetween = ["west", "east"]\ndown = false\n'
    )
    line = ["ping", "-D", "-c", "40", "-i", "0.1", "-W", "0.5", "{right0}"]
    done = emulate(file, prefix, "--json", "--host", "left0", "--", *line)
    late = late_ms(finished(done))
    replies = {
        int(text.split("icmp_seq=")[1].split()[0]): float(text.split("time=")[1].split()[0])
        for text in done.stderr.splitlines()
        if "icmp_seq=" in text
    }
    assert min(replies[number] for number in range(1, 8)) < 45 + late
    assert min(replies[number] for number in range(13, 18)) >= 120
    assert not any(number in replies for number in range(23, 29))
    assert all(number in replies for number in range(34, 40))


def is_running(number: int) -> bool:
    """Returns whether a process is running; a zombie has ended."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@needs("sleep")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_no_namespace_or_process_remains_after_a_signal(file: Path, prefix: str, number: signal.Signals) -> None:
    arguments = [
        "--json",
        "--host",
        "right0",
        "--",
        "sh",
        "-c",
        "trap '' TERM; sleep 1000 & wait",
        "--host",
        "left0",
        "--",
    ]
    line = [*SPARELANE, "emulate", "--prefix", prefix, "--stagger", "0", str(file), *arguments, "sleep", "1001"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        running: list[int] = []

        def has_started() -> bool:
            line = ["ip", "netns", "pids", f"{prefix}right0"]
            inside = subprocess.run(line, capture_output=True, text=True, check=True)
            running[:] = [int(number) for number in inside.stdout.split()]
            return len(running) >= 2

        # The shell and its child.
        wait_until(has_started, process)
        process.send_signal(number)
        process.wait(HANG_S)
        report = process.stdout.read()
    wait_until(lambda: nothing_is_left(prefix))
    wait_until(lambda: not any(is_running(number) for number in running))
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert json.loads(report.splitlines()[-1])["event"] == "finished"


@needs("sleep")
def test_a_network_without_commands_stays_until_a_signal(file: Path, prefix: str) -> None:
    line = [*SPARELANE, "emulate", "--prefix", prefix, str(file)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(6)]
        assert first[0].startswith("this machine sustains ")
        assert first[1] == f"left0: 10.0.0.1, ip netns exec {prefix}left0 COMMAND\n"
        enter = ["ip", "netns", "exec", f"{prefix}left0", "ip", "-brief", "address"]
        assert "10.0.0.1/24" in subprocess.run(enter, capture_output=True, text=True, check=True).stdout
        process.terminate()
        assert "packets came from hosts" in process.stdout.read()
        assert process.wait(HANG_S) == 0
    began = time.monotonic()
    finished(emulate(file, prefix, "--json", "--for", "1"))
    assert time.monotonic() - began > 1


@needs("sh")
def test_the_last_command_determines_the_exit_code(file: Path, prefix: str) -> None:
    killed = emulate(file, prefix, "--host", "left0", "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == 3
    assert killed.stderr.startswith('sparelane: the command at host "left0" ended with -9: sh -c')
    failed = emulate(file, prefix, "--host", "right0", "--", "false", "--host", "left0", "--", "sh", "-c", "exit 7")
    assert failed.returncode == 3
    assert 'at host "left0" ended with 7' in failed.stderr
    report = finished(
        emulate(file, prefix, "--json", "--host", "right0", "--", "false", "--host", "left0", "--", "true")
    )
    assert [command["exit"] for command in report["commands"]] == [1, 0]


@needs()
def test_a_transfer_crosses_the_network_and_path_measures_it(file: Path, prefix: str, tmp_path: Path) -> None:
    prints = {}
    for side in ("near", "far"):
        line = [*SPARELANE, "keys", "new", "--keys", str(tmp_path / side), "--quiet"]
        prints[side] = subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    (tmp_path / "to").mkdir()
    keys = ["--keys", str(tmp_path / "near"), "--trust", prints["far"]]
    trust = ["--keys", str(tmp_path / "far"), "--trust", prints["near"]]
    with emulation.network(file, prefix=prefix) as net:
        to = f"{net.address('right0')}:0"
        line = [*SPARELANE, "recv", *trust, "--listen", to, "-o", str(tmp_path / "to"), "--json"]
        receiver = net.start("right0", line, stdout=subprocess.PIPE, text=True)
        assert receiver.stdout is not None
        address = json.loads(receiver.stdout.readline())["address"]
        sent = net.start("left0", [*SPARELANE, "send", *keys, "--cc", "rc3", str(tmp_path / "file"), address])
        assert sent.wait(HANG_S) == 0
        line = [*SPARELANE, "path", *keys, "--json", address]
        report = json.loads(net.start("left0", line, stdout=subprocess.PIPE, text=True).communicate(timeout=HANG_S)[0])
    assert (tmp_path / "to" / "file").read_bytes() == (tmp_path / "file").read_bytes()
    assert [row["mark"] for row in report["classes"]] == ["kept"] * 4
    assert report["verdict"] == "priorities", report
    assert 15e6 < report["rate_bps"] < 25e6


@needs()
def test_two_networks_run_at_the_same_time_and_a_used_name_is_refused(file: Path, prefix: str) -> None:
    with emulation.network(file, prefix=prefix):
        again = emulate(file, prefix, "--for", "1")
        assert again.returncode == 2
        assert f'network namespace "{prefix}left0" already; allowed: another --prefix' in again.stderr
        with emulation.network(file, prefix=f"{prefix}b") as other:
            assert other.start("left0", ["true"]).wait(HANG_S) == 0
        assert (emulated_hosts.NAMESPACES / f"{prefix}left0").exists()


@needs()
@pytest.mark.parametrize(
    ("setting", "report"),
    [
        (
            "topology.access_rate=90Tbps",
            "a host can send 90000 Gb/s to another in this scenario; this machine can forward ",
        ),
        ("emulate.delay_error=1ns", "the delay error of this machine is now "),
    ],
)
def test_a_scenario_beyond_the_capacity_of_this_machine_is_refused(
    file: Path, prefix: str, setting: str, report: str
) -> None:
    refused = emulate(file, prefix, "--set", setting, "--for", "1")
    assert refused.returncode == 2
    assert report in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr


@pytest.mark.parametrize(
    ("arguments", "report"),
    [
        (["--host", "left9", "--", "true"], 'there is no host "left9"; did you mean "left'),
        (["--host", "left0", "--", "no-such-program"], 'there is no program "no-such-program" to run at a host'),
        (["--host", "left0", "true"], "--host is incomplete; allowed: --host NAME -- COMMAND ..."),
        (["--host", "left0", "--"], "--host left0 -- without a command"),
        (["--set", "topology.pairs=200"], "400 hosts; an emulation has 2 to 250"),
        (["--set", "transport.mss=400B"], "the largest packet has 440 bytes; an emulation needs 576 or more"),
        (["--set", "emulate.classes=[0, 0]"], "0 is listed twice; allowed: each code point once"),
        (["--for", "0"], "0.1<=x"),
    ],
)
def test_a_mistake_is_one_clear_error(file: Path, prefix: str, arguments: list[str], report: str) -> None:
    refused = emulate(file, prefix, *arguments)
    assert refused.returncode == 2
    assert report in refused.stderr, refused.stderr
    assert "Traceback" not in refused.stderr


def test_missing_requirements_are_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def report() -> str:
        with pytest.raises(EmulationError) as refused, emulation.network(file):
            pytest.fail("there is a network")
        return str(refused.value)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert report().endswith("needs root")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(emulated_hosts, "TUN", Path("/nonexistent/tun"))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert report() == 'an emulation needs the program "ip" of iproute2'
    monkeypatch.setattr(shutil, "which", lambda name: name)
    assert report().startswith("there is no /nonexistent/tun: the kernel's module tun is missing")


def test_names_of_namespaces_are_unique_file_names() -> None:
    names = emulated_hosts.namespaces(["a b", "a/b", "\u00fc", "x" * 100], "sl-")
    assert names == ["sl-a-b", "sl-a-b-2", "sl--", "sl-" + "x" * 64]


def test_hosts_are_found_by_name(file: Path) -> None:
    network = emulation.network(file)
    assert network.address("right1") == emulation_address(3)
    with pytest.raises(UnknownNameError):
        network.find("west")
