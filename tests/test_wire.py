"""Tests of file transfers between two processes over the loopback interface."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sparelane as sl
from command_line import SPARELANE
from hangs import HANG_S
from sparelane import _native
from sparelane.cli.commands.send import believed_tail_bps
from sparelane.wire import addresses
from wire_processes import call


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, tuple[str, str]]:
    """The folder and the fingerprint of each side's key."""
    folders = {side: str(tmp_path / side) for side in ("sender", "receiver")}
    return {side: (folder, _native.new_key(folder)) for side, folder in folders.items()}


class Running:
    """A receiver in a separate process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def rest(self) -> list[dict[str, Any]]:
        """Waits for its end and returns the remaining events."""
        output, errors = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode in (0, 3), errors
        return [json.loads(line) for line in output.splitlines()]


@contextmanager
def receiver(keys: dict[str, tuple[str, str]], into: Path, *more: str) -> Iterator[Running]:
    into.mkdir(exist_ok=True)
    own, trusted = keys["receiver"][0], keys["sender"][1]
    line = ["recv", "--keys", own, "--trust", trusted, "--listen", "127.0.0.1:0", "-o", str(into), "--json", *more]
    with subprocess.Popen([*SPARELANE, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Running(process, json.loads(process.stdout.readline())["address"])
        finally:
            process.kill()


def send(keys: dict[str, tuple[str, str]], *arguments: str, code: int = 0) -> str:
    own, trusted = keys["sender"][0], keys["receiver"][1]
    return call("send", "--keys", own, "--trust", trusted, "--json", *arguments, code=code)


def test_a_folder_arrives_complete(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "small").write_text("hello")
    (tree / "sub" / "large").write_bytes(os.urandom(5_000_000))
    with receiver(keys, tmp_path / "to", "--once") as running:
        report = json.loads(send(keys, "--cc", "rc3", "--set", "inner=bbr", str(tree), running.address))
        events = running.rest()
    assert report["sent_bytes"] == 5_000_005
    assert [item["error"] for item in report["items"]] == [None] * 4
    assert [event["event"] for event in events] == ["connected", *["item"] * 4, "disconnected"]
    for name in ("small", "sub/large"):
        assert (tmp_path / "to" / "tree" / name).read_bytes() == (tree / name).read_bytes()


def test_a_killed_sender_continues_where_it_stopped(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(30_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with receiver(keys, tmp_path / "to") as running:
        own, trusted = keys["sender"][0], keys["receiver"][1]
        # Slow enough to be killed during the transfer.
        slow = ["--cc", "constant", "--set", "pace=40Mbps", "--keys", own, "--trust", trusted]
        with subprocess.Popen([*SPARELANE, "send", *slow, str(file), running.address]) as sender:
            while not part.exists() or part.stat().st_size < 1_000_000:
                assert sender.poll() is None
            sender.kill()
        assert not (tmp_path / "to" / "file").exists()
        # The receiver has not noticed the silence of the first sender yet.
        report = json.loads(send(keys, str(file), running.address))
    assert report["items"][0]["resumed_bytes"] >= 1_000_000
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()
    assert not part.exists()


def test_python_sends_and_receives(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(2_000_000))
    seen: list[sl.wire.Progress] = []
    with receiver(keys, tmp_path / "to", "--once") as running:
        own, trusted = keys["sender"][0], [keys["receiver"][1]]
        report = sl.wire.send([file], running.address, keys=own, trust=trusted, progress=seen.append)
        running.rest()
    assert [(item.name, item.bytes, item.error) for item in report.items] == [("file", 2_000_000, None)]
    assert report.progress.bytes == report.progress.total_bytes == 2_000_000
    assert seen
    assert sum(report.progress.sent) >= 2_000_000 // 1_500
    # A train that seems faster than the interface of the sender does not measure the path.
    measured = replace(report.progress, tail_bps=2_000_000_000, line_rate_bps=1_000_000_000)
    assert believed_tail_bps(replace(measured, line_rate_source="interface eth0")) is None
    assert believed_tail_bps(replace(measured, line_rate_source="assumed")) == 2_000_000_000
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()


def test_keys_are_shown_and_trusted(keys: dict[str, tuple[str, str]]) -> None:
    folder, own = keys["sender"]
    other = keys["receiver"][1]
    trusted = call("keys", "trust", "--keys", folder, other, "--remark", "the archive")
    assert trusted.startswith(f"{other} (the archive) is trusted from now on")
    again = call("keys", "trust", "--keys", folder, other, "--remark", "another")
    assert again.startswith(f"{other} was trusted already; its remark")
    assert json.loads(call("keys", "show", "--keys", folder, "--json")) == {
        "fingerprint": own,
        "trusted": [other],
        "remarks": {other: "the archive"},
    }
    # The former name of the option.
    assert call("keys", "show", "--dir", folder) == f"{own}\ntrusts {other} the archive\n"
    assert "there is a key already" in call("keys", "new", "--keys", folder, code=2)
    assert "is not a fingerprint" in call("keys", "trust", "--keys", folder, "abc", code=2)
    assert "is no longer trusted" in call("keys", "untrust", "--keys", folder, other)
    assert json.loads(call("keys", "show", "--keys", folder, "--json"))["trusted"] == []
    assert "does not trust" in call("keys", "untrust", "--keys", folder, other, code=2)


def test_all_addresses_of_a_name_are_tried(
    keys: dict[str, tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with socket.socket(type=socket.SOCK_DGRAM) as silent, receiver(keys, tmp_path / "to", "--once") as running:
        silent.bind(("127.0.0.1", 0))
        port = int(running.address.rpartition(":")[2])
        # A network without a route, an address without an answer, and the address of the receiver.
        found = [("203.0.113.1", port), silent.getsockname(), ("127.0.0.1", port)]
        answer = [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", at) for at in found]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
        assert addresses.resolve_all("name:1") == [f"{host}:{number}" for host, number in found]
        own, trusted = keys["sender"][0], [keys["receiver"][1]]
        options = sl.wire.Options(connect_timeout_s=3)
        report = sl.wire.send([file], "name:1", keys=own, trust=trusted, options=options)
        running.rest()
    assert [item.error for item in report.items] == [None]


def test_a_link_local_address_keeps_its_interface() -> None:
    loopback = socket.if_nametoindex("lo")
    assert addresses.resolve("[fe80::1%lo]:5") == f"[fe80::1%{loopback}]:5"
    assert addresses.resolve("[::1]:5") == "[::1]:5"
