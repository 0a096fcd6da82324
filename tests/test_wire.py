"""Files between two processes, over the loopback interface."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sparelane as sl
from wire_processes import SPARELANE, call

@pytest.fixture
def keys(tmp_path: Path) -> dict[str, tuple[str, str]]:
    """Folder and fingerprint of each side's key."""
    folders = {side: str(tmp_path / side) for side in ("sender", "receiver")}
    return {side: (folder, call("keys", "new", "--dir", folder, "--quiet").strip()) for side, folder in folders.items()}


class Running:
    """A receiver in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def rest(self) -> list[dict[str, Any]]:
        """What it says until it ends."""
        said, errors = self.process.communicate(timeout=30)
        assert self.process.returncode in (0, 3), errors
        return [json.loads(line) for line in said.splitlines()]


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


def test_a_folder_arrives_whole(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "small").write_text("hello")
    (tree / "sub" / "large").write_bytes(os.urandom(5_000_000))
    with receiver(keys, tmp_path / "to", "--once") as running:
        told = json.loads(send(keys, "--cc", "rc3", "--set", "inner=bbr", str(tree), running.address))
        events = running.rest()
    assert told["sent_bytes"] == 5_000_005
    assert [item["error"] for item in told["items"]] == [None] * 4
    assert [event["event"] for event in events] == ["connected", *["item"] * 4, "disconnected"]
    for name in ("small", "sub/large"):
        assert (tmp_path / "to" / "tree" / name).read_bytes() == (tree / name).read_bytes()


def test_a_sender_that_is_killed_goes_on_where_it_stopped(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(30_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with receiver(keys, tmp_path / "to") as running:
        own, trusted = keys["sender"][0], keys["receiver"][1]
        # Slow enough to be killed on the way.
        slow = ["--cc", "constant", "--set", "pace=40Mbps", "--keys", own, "--trust", trusted]
        with subprocess.Popen([*SPARELANE, "send", *slow, str(file), running.address]) as sender:
            while not part.exists() or part.stat().st_size < 1_000_000:
                assert sender.poll() is None
            sender.kill()
        assert not (tmp_path / "to" / "file").exists()
        # The silence of the first one is not noticed yet.
        told = json.loads(send(keys, str(file), running.address))
    assert told["items"][0]["resumed_bytes"] >= 1_000_000
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()
    assert not part.exists()


def test_what_is_wrong_is_one_clear_error(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    nobody = "127.0.0.1:9"
    cases = [
        ((str(file), "nowhere"), '"nowhere" is no address: HOST:PORT is one'),
        ((str(file), "no.such.host.invalid:1"), '"no.such.host.invalid": '),
        ((str(tmp_path / "none"), nobody), "none: No such file or directory"),
        (("--cc", "rc4", str(file), nobody), 'there is no controller "rc4"'),
        (("--set", "levels=3,2", str(file), nobody), "levels"),
        (("--tail-rate", "0Mbps", str(file), nobody), 'the tail\'s rate "0Mbps": allowed is a rate'),
        (("--dscp", "0,0", str(file), nobody), "the code point 0 for two classes"),
        (("--connect-timeout", "0.3", str(file), nobody), "does not answer"),
    ]
    for arguments, message in cases:
        error = send(keys, *arguments, code=2)
        assert message in error, error
        assert error.count("\n") == 1, error
    Path(keys["sender"][0], "key.pem").chmod(0o644)
    assert "others have access to it (mode 644)" in send(keys, str(file), nobody, code=2)


def test_strangers_and_files_that_are_there_are_refused(keys: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("new")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "file").write_text("old")
    other = call("keys", "new", "--dir", str(tmp_path / "other"), "--quiet").strip()
    with receiver(keys, tmp_path / "to") as running:
        stranger = [
            "send",
            "--keys",
            str(tmp_path / "other"),
            "--trust",
            keys["receiver"][1],
            str(file),
            running.address,
        ]
        assert f"the peer does not trust this host's key, {other}" in call(*stranger, code=2)
        mistaken = ["send", "--keys", keys["sender"][0], "--trust", other, str(file), running.address]
        assert f"the peer's key is {keys['receiver'][1]}, which is not trusted" in call(*mistaken, code=2)
        assert "file: it is there already" in send(keys, str(file), running.address, code=3)
        taken = [
            "--keys",
            keys["receiver"][0],
            "--trust",
            other,
            "--listen",
            running.address,
            "-o",
            str(tmp_path / "to"),
        ]
        assert "in use" in call("recv", *taken, code=2)
    assert (tmp_path / "to" / "file").read_text() == "old"


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
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()


def test_keys_are_shown_and_trusted(keys: dict[str, tuple[str, str]]) -> None:
    folder, own = keys["sender"]
    other = keys["receiver"][1]
    call("keys", "trust", "--dir", folder, other, "--remark", "the archive")
    assert json.loads(call("keys", "show", "--dir", folder, "--json")) == {"fingerprint": own, "trusted": [other]}
    assert "there is a key already" in call("keys", "new", "--dir", folder, code=2)
    assert "is no fingerprint" in call("keys", "trust", "--dir", folder, "abc", code=2)
