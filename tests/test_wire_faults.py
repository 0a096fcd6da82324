"""Tests of faults of networks and disks: the file is correct or the error is clear, and no file is partial."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S, wait_until
from sparelane import _native
from sparelane.wire import transfer
from wire_processes import Keys, call, running

# How many times each side is killed; WIRE_KILLS sets more.
KILLS = int(os.environ.get("WIRE_KILLS", "4"))


def receiving(keys: Keys, into: Path, *more: str, listen: str = "127.0.0.1:0") -> tuple[str, ...]:
    return ("recv", *keys.of("receiver"), "--listen", listen, "-o", str(into), *more)


def spawn_send(keys: Keys, *arguments: str) -> subprocess.Popen[str]:
    line = [*SPARELANE, "send", *keys.of("sender"), "--json", *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def free_port() -> int:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(part: Path, sender: subprocess.Popen[str]) -> None:
    """Waits until a file starts to arrive or its sender ends."""
    while not part.exists() and sender.poll() is None:
        time.sleep(0.005)


# A megabyte takes about 160 ms, so a transfer can be killed before its end.
SLOW = ("--cc", "constant", "--set", "pace=50Mbps")
# A megabyte takes two seconds, in which other commands start and end.
SLOWER = ("--cc", "constant", "--set", "pace=4Mbps")


@pytest.mark.slow
@pytest.mark.parametrize("killed", [pytest.param("sender", marks=pytest.mark.slow), "receiver"])
def test_a_side_that_is_killed_at_any_instant_leaves_no_partial_file(keys: Keys, tmp_path: Path, killed: str) -> None:
    rng = random.Random()
    seed = rng.randrange(1 << 32)
    rng.seed(int(os.environ.get("WIRE_SEED", seed)))
    into = tmp_path / "to"
    into.mkdir()
    file = tmp_path / "file"
    at = f"127.0.0.1:{free_port()}"
    resumed = 0
    for turn in range(KILLS):
        file.write_bytes(rng.randbytes(2_500_000))
        with running(*receiving(keys, into, "--force", listen=at)) as receiver:
            receiver.until("listening")
            before = (into / "file").read_bytes() if turn else None
            sender = spawn_send(keys, *SLOW, "--idle-timeout", "1", "--retry", "0", str(file), at)
            # Kills at any instant, mostly during the transfer.
            if rng.random() < 0.8:
                wait_for(into / ".file.sparelane-part", sender)
                time.sleep(rng.uniform(0, 0.5))
            else:
                time.sleep(rng.uniform(0, 0.8))
            (sender if killed == "sender" else receiver.process).kill()
            if killed == "sender":
                sender.communicate(timeout=HANG_S)
        if killed == "receiver":
            sender.communicate(timeout=HANG_S)
        after = (into / "file").read_bytes() if (into / "file").exists() else None
        assert after in (before, file.read_bytes()), f"seed {seed}, turn {turn}"
        with running(*receiving(keys, into, "--force", "--once", listen=at)) as receiver:
            receiver.until("listening")
            report = json.loads(call("send", *keys.of("sender"), "--json", str(file), at))
            receiver.rest()
        resumed += report["items"][0]["resumed_bytes"]
        assert (into / "file").read_bytes() == file.read_bytes(), f"seed {seed}, turn {turn}"
        assert [path.name for path in into.iterdir()] == ["file"], f"seed {seed}, turn {turn}"
    assert KILLS < 10 or resumed > 0


@contextmanager
def mounted(at: Path, *options: str) -> Iterator[None]:
    """Mounts a small file system in memory at this place."""
    at.mkdir(exist_ok=True)
    line = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(at)]
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None or subprocess.run(line, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount file systems, which tests of full and read-only disks need")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def test_a_full_disk_is_reported_by_both_sides(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(3_000_000))
    with mounted(tmp_path / "to", "size=1m"), running(*receiving(keys, tmp_path / "to", "--once")) as receiver:
        address = receiver.until("listening")["address"]
        error = call("send", *keys.of("sender"), str(file), address, code=3)
        assert "No space left on device" in error
        events, _ = receiver.rest()
        assert any("No space left" in (event.get("error") or "") for event in events)
        assert not (tmp_path / "to" / "file").exists()


def test_a_read_only_target_is_reported(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with mounted(tmp_path / "to", "size=1m", "ro"), running(*receiving(keys, tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        assert "Read-only file system" in call("send", *keys.of("sender"), str(file), address, code=3)


@pytest.mark.slow
def test_a_source_that_changes_during_the_transfer_is_reported(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    file = tmp_path / "file"
    file.write_bytes(os.urandom(40_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with running(*receiving(keys, tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        sender = spawn_send(keys, "--window", "1MB", *SLOW, str(file), address)
        wait_until(lambda: part.exists() and part.stat().st_size >= 200_000, sender)
        with file.open("r+b") as open_file:
            open_file.truncate(20_000_000)
        _, error = sender.communicate(timeout=HANG_S)
        assert sender.returncode == 3, error
        assert "it has changed since the transfer began" in error
    assert not (tmp_path / "to" / "file").exists()


def receiving_output(keys: Keys, at: str) -> subprocess.Popen[bytes]:
    line = [*SPARELANE, "recv", *keys.of("receiver"), "--listen", at, "--once", "-o", "-"]
    receiver = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert receiver.stderr is not None
    assert receiver.stderr.readline().startswith(b"listening")
    return receiver


def test_standard_input_arrives_with_its_name_and_is_written_to_standard_output(keys: Keys, tmp_path: Path) -> None:
    content = os.urandom(1_500_000)
    at = f"127.0.0.1:{free_port()}"
    with receiving_output(keys, at) as receiver:
        send = [*SPARELANE, "send", *keys.of("sender"), "--name", "backup.tar", "-", at]
        (tmp_path / "content").write_bytes(content)
        with (tmp_path / "content").open("rb") as file, subprocess.Popen(send, stdin=file) as sender:
            # Nothing is stored, so the sender ends after the reader has everything.
            out, report = receiver.communicate(timeout=HANG_S)
            assert sender.wait(HANG_S) == 0
    assert (receiver.returncode, out == content) == (0, True), report
    assert b"backup.tar: 1,500,000 bytes" in report
    for wrong in (["-", "-"], ["--name", "x", "file"], ["--name", "a/b", "-"]):
        call("send", *keys.of("sender"), *wrong, at, code=2)
    assert "add --once" in call("recv", *keys.of("receiver"), "--listen", at, "-o", "-", code=2)


def test_a_stream_arrives_while_its_input_is_still_open(keys: Keys) -> None:
    at = f"127.0.0.1:{free_port()}"
    with receiving_output(keys, at) as receiver:
        send = [*SPARELANE, "send", *keys.of("sender"), "-", at]
        with subprocess.Popen(send, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sender:
            assert sender.stdin is not None
            assert receiver.stdout is not None
            for part in (b"first\n", b"second\n"):
                sender.stdin.write(part)
                sender.stdin.flush()
                assert receiver.stdout.readline() == part, "nothing waits for the end"
            sender.stdin.close()
            assert sender.wait(HANG_S) == 0
        assert (receiver.wait(HANG_S), receiver.stdout.read()) == (0, b"")


def test_an_interrupted_stream_is_an_error_on_both_sides_and_leaves_no_file(keys: Keys, tmp_path: Path) -> None:
    with running(*receiving(keys, tmp_path / "to"), "--once") as receiver:
        address = receiver.until("listening")["address"]
        send = [*SPARELANE, "send", *keys.of("sender"), "--name", "x.tar", "-", address]
        with subprocess.Popen(send, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
            assert sender.stdin is not None
            sender.stdin.write("x" * 100_000)
            sender.stdin.flush()
            part = tmp_path / "to" / ".x.tar.sparelane-part"
            wait_until(lambda: part.exists() and part.stat().st_size > 0)
            sender.send_signal(signal.SIGTERM)
            assert sender.wait(HANG_S) not in {0, None}
        item = receiver.until("item")
        assert item["error"] == "the connection ended before the stream; the received part does not stay"
        assert receiver.process.wait(HANG_S) == 3
    assert list((tmp_path / "to").iterdir()) == []


def test_a_slow_reader_of_standard_output_delays_no_other_peer(keys: Keys, tmp_path: Path) -> None:
    at = f"127.0.0.1:{free_port()}"
    content = os.urandom(3_000_000)
    (tmp_path / "other").write_text("x")
    with receiving_output(keys, at) as receiver:
        send = [*SPARELANE, "send", *keys.of("sender"), "-", at]
        with subprocess.Popen(send, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as sender:
            assert sender.stdin is not None
            assert receiver.stdout is not None
            sender.stdin.write(content)
            sender.stdin.flush()
            first = receiver.stdout.read(1)
            # The pipe is full from here on, since its reader stops.
            time.sleep(0.5)
            other = [*SPARELANE, "send", *keys.of("sender"), str(tmp_path / "other"), at]
            began_s = time.monotonic()
            refused = subprocess.run(other, capture_output=True, text=True, timeout=HANG_S, check=False)
            assert refused.returncode == 3, refused
            assert time.monotonic() - began_s < HANG_S / 2
            sender.stdin.close()
            assert first + receiver.stdout.read() == content
            assert sender.wait(HANG_S) == 0
        receiver.wait(HANG_S)


def test_the_first_peer_is_trusted_only_with_the_option(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    into = tmp_path / "to"
    into.mkdir()
    own = {side: ("--keys", keys.folder[side]) for side in ("sender", "receiver")}
    listen = ("--listen", "127.0.0.1:0", "-o", str(into), "--force")
    assert "no peer is trusted" in call("recv", *own["receiver"], *listen, code=2)
    with running("recv", *own["receiver"], *listen, "--trust-on-first-contact") as receiver:
        address = receiver.until("listening")["address"]
        send = [*SPARELANE, "send", *own["sender"], "--trust-on-first-contact", str(file), address]
        first = subprocess.run(send, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert first.returncode == 0, first.stderr
        assert f"first contact: the peer's key is {keys.fingerprint['receiver']}" in first.stderr
        receiver.until("disconnected")
        for side, other in (("sender", "receiver"), ("receiver", "sender")):
            assert json.loads(call("keys", "show", "--keys", keys.folder[side], "--json"))["trusted"] == [
                keys.fingerprint[other]
            ]
        # Now each side trusts the other as if it had been named.
        stranger = call("keys", "new", "--keys", str(tmp_path / "other"), "--quiet").strip()
        refused = call(
            "send", "--keys", str(tmp_path / "other"), "--trust-on-first-contact", str(file), address, code=2
        )
        assert f"the peer does not trust this host's key, {stranger}" in refused
        call("send", *own["sender"], str(file), address)
        receiver.until("disconnected")
        receiver.process.send_signal(signal.SIGTERM)
        _, errors = receiver.rest()
        assert f"first contact: the peer's key is {keys.fingerprint['sender']}" in errors
        assert f"refused an untrusted peer with key {stranger}" in errors


def test_sigterm_finishes_a_transfer_and_refuses_others(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    file = tmp_path / "file"
    file.write_bytes(os.urandom(8_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with running(*receiving(keys, tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        sender = spawn_send(keys, *SLOW, str(file), address)
        wait_until(lambda: part.exists() and part.stat().st_size >= 100_000, sender)
        receiver.process.send_signal(signal.SIGTERM)
        receiver.until_logged("stopping")
        other = ("send", *keys.of("sender"), "--retry", "0", str(file), address)
        assert "the receiver is stopping" in call(*other, code=2)
        _, errors = receiver.rest()
        assert sender.wait(timeout=HANG_S) == 0
        assert "stopping; 1 still running" in errors
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()


def test_a_new_key_is_used_after_sighup(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    file = tmp_path / "file"
    file.write_text("x")
    with running(*receiving(keys, tmp_path / "to", "--force")) as receiver:
        address = receiver.until("listening")["address"]
        call("send", *keys.of("sender"), str(file), address)
        Path(keys.folder["receiver"], "key.pem").unlink()
        receiver.process.send_signal(signal.SIGHUP)
        receiver.until_logged("keys not reloaded")
        call("send", *keys.of("sender"), str(file), address)
        fresh = call("keys", "new", "--keys", keys.folder["receiver"], "--quiet").strip()
        receiver.process.send_signal(signal.SIGHUP)
        receiver.until_logged(f"this host is {fresh}, and trusts 1 peers")
        assert f"the peer's key is {fresh}" in call("send", *keys.of("sender"), str(file), address, code=2)
        call("send", "--keys", keys.folder["sender"], "--trust", fresh, str(file), address)
        receiver.process.send_signal(signal.SIGTERM)
        receiver.rest()


def test_once_ends_after_a_transfer_and_not_after_a_replaced_connection(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with running(*receiving(keys, tmp_path / "to", "--once")) as receiver:
        address = receiver.until("listening")["address"]
        # `path` offers no files.
        call("path", *keys.of("sender"), "--load", "0.1", address)
        assert receiver.until("disconnected")["offered"] == 0
        sender = spawn_send(keys, *SLOW, str(file), address)
        wait_until(lambda: part.exists() and part.stat().st_size >= 100_000, sender)
        sender.kill()
        sender.communicate(timeout=HANG_S)
        report = json.loads(call("send", *keys.of("sender"), "--json", str(file), address))
        events, _ = receiver.rest(code=(0,))
    assert report["items"][0]["error"] is None
    ends = [event["replaced"] for event in events if event["event"] == "disconnected"]
    assert ends == [True, False]
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()


@pytest.mark.slow
@pytest.mark.slow
def test_once_lets_concurrent_transfers_finish(keys: Keys, tmp_path: Path) -> None:
    for name, size in (("small", 1_000), ("large", 3_000_000)):
        (tmp_path / name).write_bytes(os.urandom(size))
    part = tmp_path / "to" / ".large.sparelane-part"
    with running(*receiving(keys, tmp_path / "to", "--once")) as receiver:
        address = receiver.until("listening")["address"]
        sender = spawn_send(keys, *SLOWER, str(tmp_path / "large"), address)
        wait_until(part.exists, sender)
        call("send", *keys.of("sender"), str(tmp_path / "small"), address)
        receiver.rest(code=(0,))
        assert sender.wait(timeout=HANG_S) == 0
    for name in ("small", "large"):
        assert (tmp_path / "to" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_listening_side_disconnects_a_silent_peer_after_its_own_idle_timeout(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4_000_000))
    with (
        running(*receiving(keys, tmp_path / "long", "--once", "--idle-timeout", "3600")) as patient,
        running(*receiving(keys, tmp_path / "short", "--once", "--idle-timeout", "2")) as receiver,
    ):
        for side, folder in ((patient, "long"), (receiver, "short")):
            sender = spawn_send(keys, *SLOW, str(file), side.until("listening")["address"])
            wait_until((tmp_path / folder / ".file.sparelane-part").exists, sender)
            sender.kill()
            sender.communicate(timeout=HANG_S)
        _, errors = receiver.rest(code=(3,))
        # The peer of the other receiver has been silent for longer.
        assert patient.process.poll() is None
    assert "the peer was silent for too long" in errors


def test_a_terminated_sender_informs_its_peer(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4_000_000))
    part = tmp_path / "to" / ".file.sparelane-part"
    with running(*receiving(keys, tmp_path / "to", "--once")) as receiver:
        address = receiver.until("listening")["address"]
        sender = spawn_send(keys, *SLOW, str(file), address)
        wait_until(part.exists, sender)
        sender.terminate()
        sender.communicate(timeout=HANG_S)
        assert sender.returncode == 130
        _, errors = receiver.rest(code=(3,))
    # A peer that falls silent without a word ends the transfer, too, with another reason.
    assert "the sender was stopped" in errors


@pytest.mark.slow
@pytest.mark.slow
def test_two_receivers_on_one_folder_never_mix_their_files(keys: Keys, tmp_path: Path) -> None:
    contents = [os.urandom(3_000_000) for _ in range(2)]
    for number, content in enumerate(contents):
        (tmp_path / f"from{number}").mkdir()
        (tmp_path / f"from{number}" / "file").write_bytes(content)
    part = tmp_path / "to" / ".file.sparelane-part"
    more = ("--force",)
    with (
        running(*receiving(keys, tmp_path / "to", *more)) as one,
        running(*receiving(keys, tmp_path / "to", *more)) as two,
    ):
        addresses = [receiver.until("listening")["address"] for receiver in (one, two)]
        sender = spawn_send(keys, *SLOWER, str(tmp_path / "from0" / "file"), addresses[0])
        wait_until(lambda: part.exists() and part.stat().st_size >= 50_000, sender)
        report = call("send", *keys.of("sender"), str(tmp_path / "from1" / "file"), addresses[1], code=3)
        assert "another receiver is writing it" in report
        sender.communicate(timeout=HANG_S)
        assert sender.returncode == 0
    assert (tmp_path / "to" / "file").read_bytes() == contents[0]


FORGED = "done\r\nsparelane: info: keys reloaded\x07\x1b]0;owned\x1b\\ \u202egpj.exe\u2066\u2028"


def test_a_peers_reason_cannot_forge_lines_of_the_log(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    file = tmp_path / "file"
    file.touch()
    os.truncate(file, 300_000_000)
    with running(*receiving(keys, tmp_path / "to", "--once")) as receiver:
        address = receiver.until("listening")["address"]
        settings = transfer.Options().native(keys.folder["sender"], [keys.fingerprint["receiver"]])
        sender = _native.FileSender(settings, [str(file)], [address])
        while not sender.progress()["connected"]:
            sender.step(0.1)
        part = tmp_path / "to" / ".file.sparelane-part"
        while not part.exists():
            sender.step(0.05)
        sender.close(FORGED)
        events, errors = receiver.rest()
    reasons = [event["error"] for event in events if event.get("error")]
    assert any("keys reloaded" in reason for reason in reasons), events
    for text in [*reasons, *errors.splitlines()]:
        assert text.isprintable(), ascii(text)
    assert not any(line.startswith("sparelane: info: keys") for line in errors.splitlines())


@pytest.mark.parametrize(
    ("options", "file_mode", "folder_mode"), [((), 0o700, 0o700), (("--chmod", "640"), 0o640, 0o750)]
)
def test_the_umask_or_chmod_limits_the_permissions_of_received_files(
    keys: Keys, tmp_path: Path, options: tuple[str, ...], file_mode: int, folder_mode: int
) -> None:
    (tmp_path / "to").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("x")
    for path in (folder, folder / "file"):
        path.chmod(0o777)
    previous = os.umask(0o077)
    try:
        with running(*receiving(keys, tmp_path / "to", "--once", *options)) as receiver:
            address = receiver.until("listening")["address"]
            call("send", *keys.of("sender"), str(folder), address)
            receiver.rest()
    finally:
        os.umask(previous)
    modes = [(tmp_path / "to" / name).stat().st_mode & 0o777 for name in ("folder", "folder/file")]
    assert modes == [folder_mode, file_mode]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-size", "1MB"), "it has 2000000 bytes; files of up to 1000000 are accepted (--max-size)"),
        (("--quota", "3MB"), "it has 2000000 bytes, and 2000000 of this key's 3000000 are used (--quota)"),
        (("--min-free", "1000000GB"), "No space left on device: 2000000 more bytes are to come"),
    ],
    ids=["size", "quota", "free space"],
)
def test_files_beyond_the_limits_of_a_receiver_are_refused(
    keys: Keys, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "to").mkdir()
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_bytes(os.urandom(2_000_000))
    with running(*receiving(keys, tmp_path / "to", "--once", *options)) as receiver:
        address = receiver.until("listening")["address"]
        assert message in call("send", *keys.of("sender"), *map(str, files), address, code=3)
        events, _ = receiver.rest()
    assert any(message in (event.get("error") or "") for event in events)
    left = {path.name for path in (tmp_path / "to").iterdir()}
    assert left == ({"one"} if "--quota" in options else set())
