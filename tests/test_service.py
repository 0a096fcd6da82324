"""Tests of the examples for services: the units for systemd, the container file, and the reports to systemd."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from wire_processes import Keys

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "examples" / "service").glob("*.service"))

# The highest exposure that `systemd-analyze security` may report, in tenths.
MOST_EXPOSURE = 29


def has_analyze() -> bool:
    return shutil.which("systemd-analyze") is not None


@pytest.mark.skipif(not has_analyze(), reason="needs systemd-analyze (systemd)")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_valid_and_exposes_little(unit: Path, tmp_path: Path) -> None:
    line = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", str(unit)]
    rated = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert rated.returncode == 0, rated.stdout[-200:]
    # The program and its user do not exist on this machine.
    text = unit.read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program is not None
    copy = tmp_path / unit.name
    copy.write_text(text.replace(program[1], shutil.which("true") or "").replace("User=sparelane", "User=root"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    wrong = [said for said in verified.stderr.splitlines() if unit.name in said]
    assert wrong == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_waits_for_the_network_and_is_restarted(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    for needed in (
        "Type=notify",
        "Restart=on-failure",
        "RestartSec=10",
        "StartLimitIntervalSec=0",
        "Wants=network-online.target",
        "After=network-online.target nss-lookup.target",
    ):
        assert needed in lines
    # A late name or address is exit code 2, which must not end the service for good.
    assert not any(line.startswith("RestartPreventExitStatus") for line in lines)


def ignored(path: str) -> bool:
    """Whether `.dockerignore` leaves a path out. The last rule that matches it or a folder above it counts."""
    out = False
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        if rule and not rule.startswith("#"):
            pattern = rule.removeprefix("!")
            parts = path.split("/")
            above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
            deep = pattern.removeprefix("**/")
            if any(fnmatch(one, pattern) or (deep != pattern and fnmatch(one.split("/")[-1], deep)) for one in above):
                out = not rule.startswith("!")
    return out


def test_the_container_build_takes_the_sources_and_neither_keys_nor_outputs() -> None:
    for path in (".git/config", "target/release/x", "keys/key.pem", "crates/x/target/y", "python/a.pem", ".venv/x"):
        assert ignored(path), path
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    for path in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "python/sparelane/__init__.py"):
        assert not ignored(path), path
    for pattern in workspace["members"]:
        for member in ROOT.glob(pattern):
            assert not ignored(f"{member.relative_to(ROOT)}/Cargo.toml"), member


def test_the_container_runs_without_root_and_has_a_health_check() -> None:
    text = (ROOT / "examples" / "service" / "Containerfile").read_text()
    user = re.search(r"^USER (\d+)", text, re.MULTILINE)
    assert user is not None
    assert int(user[1]) > 0
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket on which systemd receives reports."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind(str(tmp_path / "notify"))
        receiving.settimeout(HANG_S)
        yield receiving


def test_recv_reports_to_systemd(keys: Keys, tmp_path: Path, manager: socket.socket) -> None:
    line = [*SPARELANE, "recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")]
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    environment.pop("WATCHDOG_PID", None)

    def until(state: str) -> list[str]:
        while state not in (states := manager.recv(4096).decode().split("\n")):
            assert states == ["WATCHDOG=1"]
        return states

    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as receiver:
        try:
            assert until("READY=1") == ["READY=1"]
            until("WATCHDOG=1")
            until("WATCHDOG=1")
            receiver.send_signal(signal.SIGHUP)
            assert until("RELOADING=1")[1].startswith("MONOTONIC_USEC=")
            until("READY=1")
            receiver.terminate()
            until("STOPPING=1")
            assert receiver.wait(HANG_S) == 0
        finally:
            receiver.kill()
