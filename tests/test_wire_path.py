"""Tests of `sparelane path` between two network namespaces of this machine."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.emulation.namespaces import RECEIVER, Hosts, hosts, missing

WHY_NOT = missing()

needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str, Path, str]:
    """The folders and the fingerprints of the sender's and the receiver's keys."""
    report: list[Any] = []
    for side in ("sender", "receiver"):
        line = [*SPARELANE, "keys", "new", "--keys", str(tmp_path / side), "--quiet"]
        report += [tmp_path / side, subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()]
    return report[0], report[1], report[2], report[3]


@contextmanager
def receiver(ends: Hosts, keys: tuple[Path, str, Path, str], into: Path) -> Iterator[str]:
    into.mkdir()
    line = ["recv", "--keys", str(keys[2]), "--trust", keys[1], "--listen", f"{RECEIVER}:0", "-o", str(into), "--json"]
    with subprocess.Popen(ends.command(ends.receiver, *SPARELANE, *line), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.kill()


def measured(keys: tuple[Path, str, Path, str], into: Path, *, priorities: bool) -> dict[str, Any]:
    with hosts(20, priorities=priorities) as ends, receiver(ends, keys, into) as address:
        line = ["path", "--keys", str(keys[0]), "--trust", keys[3], "--json", address]
        done = subprocess.run(
            ends.command(ends.sender, *SPARELANE, *line), capture_output=True, text=True, timeout=HANG_S, check=False
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report


@needs_namespaces
def test_strict_priorities_of_the_kernel_are_recognised(keys: tuple[Path, str, Path, str], tmp_path: Path) -> None:
    report = measured(keys, tmp_path / "to", priorities=True)
    assert [row["mark"] for row in report["classes"]] == ["kept"] * 4
    if not 15e6 < report["rate_bps"] < 25e6:
        # A host that stalls for some tenths of a second measures a slower path.
        report = measured(keys, tmp_path / "again", priorities=True)
    assert report["verdict"] == "priorities", report
    assert 15e6 < report["rate_bps"] < 25e6, report
    assert report["classes"][0]["served"] == "first"
    assert report["mtu_bytes"] == 1480


@needs_namespaces
def test_a_sender_uses_the_rate_that_its_interface_reports(keys: tuple[Path, str, Path, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    with hosts(20, priorities=True) as ends, receiver(ends, keys, tmp_path / "to") as address:
        line = ["send", "--keys", str(keys[0]), "--trust", keys[3], "--json", str(tmp_path / "file"), address]
        command = ends.command(ends.sender, *SPARELANE, *line)
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        source, name = report["line_rate_source"].split()
        assert source == "interface", report
        command = ends.command(ends.sender, "cat", f"/sys/class/net/{name}/speed")
        speed_mbps = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert report["line_rate_bps"] == int(speed_mbps) * 1_000_000


@needs_namespaces
def test_one_queue_is_distinguished_from_priorities(keys: tuple[Path, str, Path, str], tmp_path: Path) -> None:
    report = measured(keys, tmp_path / "to", priorities=False)
    assert [row["mark"] for row in report["classes"]] == ["kept"] * 4
    if report["verdict"] != "one queue":
        # A host that stalls for some tenths of a second loses packets of one class and not of another.
        report = measured(keys, tmp_path / "again", priorities=False)
    assert report["verdict"] == "one queue", report


def test_a_receiver_for_both_families_keeps_the_marks_of_an_ipv4_sender(
    keys: tuple[Path, str, Path, str], tmp_path: Path
) -> None:
    (tmp_path / "to").mkdir()
    listen = ["--listen", "[::]:0", "-o", str(tmp_path / "to"), "--json"]
    line = ["recv", "--keys", str(keys[2]), "--trust", keys[1], *listen]
    with subprocess.Popen([*SPARELANE, *line], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            text = process.stdout.readline()
            if not text:
                pytest.skip("this machine has no IPv6")
            port = json.loads(text)["address"].rpartition(":")[2]
            for to in (f"127.0.0.1:{port}", f"[::ffff:127.0.0.1]:{port}"):
                line = ["path", "--keys", str(keys[0]), "--trust", keys[3], "--json", "--load", "0", to]
                done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=HANG_S, check=False)
                assert done.returncode == 0, done.stderr
                assert [row["mark"] for row in json.loads(done.stdout)["classes"]] == ["kept"] * 4, to
        finally:
            process.kill()


@needs_namespaces
def test_a_path_without_a_route_is_reported_at_once(keys: tuple[Path, str, Path, str]) -> None:
    line = ["path", "--keys", str(keys[0]), "--trust", keys[3], "--connect-timeout", "50", "192.0.2.1:7777"]
    alone = ["unshare", "-n", *SPARELANE, *line]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 2
    assert "192.0.2.1:7777: this host has no route to it" in done.stderr
