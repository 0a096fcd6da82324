"""Tests that failures of peers and paths are noticed at once, and that transfers and tunnels go on afterwards.

The timeouts are an hour where a failure must be noticed in another way.
"""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S, wait_until
from sparelane.cli.commands.send import Connection, waiting_for
from sparelane.terminal import transfer_line
from sparelane.terminal.transfer_line import State
from sparelane.wire import transfer
from test_wire_tunnel import Echo, connect, serving
from wire_processes import Keys, call, running

PATIENT = ("--connect-timeout", "3600")
SLOW = ("--cc", "constant", "--set", "pace=20Mbps")


def free_port() -> int:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_closed_port_is_refused_before_the_connect_timeout(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    at = f"127.0.0.1:{free_port()}"
    refused = f"{at} refused the connection: no program receives at this port"
    assert refused in call("send", *keys.of("sender"), *PATIENT, str(tmp_path / "file"), at, code=2)
    assert refused in call("path", *keys.of("sender"), *PATIENT, at, code=2)
    dial = ("--forward", "127.0.0.1:0=127.0.0.1:22", at)
    with running("tunnel", *keys.of("sender"), *PATIENT, *dial) as client:
        assert client.until("disconnected")["error"] == refused


def test_a_transfer_continues_by_itself_after_the_receiver_was_killed(keys: Keys, tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "to"
    file.write_bytes(os.urandom(6_000_000))
    into.mkdir()
    at = f"127.0.0.1:{free_port()}"
    receive = ("recv", *keys.of("receiver"), "--listen", at, "-o", str(into))
    line = [*SPARELANE, "send", *keys.of("sender"), *SLOW, "--idle-timeout", "3600", "--json", str(file), at]
    with running(*receive) as receiver:
        receiver.until("listening")
        sender = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        part = into / ".file.sparelane-part"
        wait_until(lambda: part.exists() and part.stat().st_size > 200_000, sender)
        receiver.process.kill()
        receiver.process.wait(HANG_S)
    with running(*receive) as receiver:
        receiver.until("listening")
        out, errors = sender.communicate(timeout=HANG_S)
    assert sender.returncode == 0, errors
    assert "sparelane: the connection was lost: the peer has restarted" in errors
    assert "sparelane: connected again" in errors
    [item] = json.loads(out)["items"]
    assert item["resumed_bytes"] > 0
    assert (into / "file").read_bytes() == file.read_bytes()


def test_without_retry_a_restart_of_the_receiver_is_an_error(keys: Keys, tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "to"
    file.write_bytes(os.urandom(6_000_000))
    into.mkdir()
    at = f"127.0.0.1:{free_port()}"
    receive = ("recv", *keys.of("receiver"), "--listen", at, "-o", str(into))
    line = [*SPARELANE, "send", *keys.of("sender"), *SLOW, "--idle-timeout", "3600", "--retry", "0", str(file), at]
    with running(*receive) as receiver:
        receiver.until("listening")
        sender = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until((into / ".file.sparelane-part").exists, sender)
        receiver.process.kill()
        receiver.process.wait(HANG_S)
    with running(*receive) as receiver:
        receiver.until("listening")
        _, errors = sender.communicate(timeout=HANG_S)
    assert sender.returncode == 2
    assert "the peer has restarted, and does not know this connection any more" in errors


def test_a_tunnel_serves_new_connections_after_a_restart_of_the_serving_site(keys: Keys) -> None:
    at = f"127.0.0.1:{free_port()}"
    with serving(Echo()) as target:
        serve = ("tunnel", *keys.of("receiver"), "--listen", at, "--allow", target)
        dial = ("tunnel", *keys.of("sender"), "--idle-timeout", "3600", "--forward", f"127.0.0.1:0={target}", at)
        with running(*dial) as client:
            port = int(client.until("forwarding")["address"].rpartition(":")[2])
            with running(*serve) as server:
                client.until("connected")
                with connect(port) as stream:
                    stream.sendall(b"1")
                    assert stream.recv(1) == b"1"
                    server.process.kill()
                    server.process.wait(HANG_S)
                    # This connection has an answer, and only receives from now on. The next one has none.
                    with connect(port) as late:
                        late.sendall(b"2")
                        with running(*serve):
                            with pytest.raises(ConnectionResetError):
                                stream.recv(1)
                            assert late.recv(1) == b"2"
                            with connect(port) as new:
                                new.sendall(b"3")
                                assert new.recv(1) == b"3"


@contextmanager
def linked_namespaces() -> Iterator[tuple[list[str], list[str]]]:
    """Two namespaces on one link with link-local addresses fe80::1 and fe80::2. Yields the prefixes of commands."""
    ip = shutil.which("ip")
    if ip is None or os.geteuid() != 0:
        pytest.skip("network namespaces: needs root and iproute2")
    number = os.getpid() % 10000
    names = [f"slf{number}a", f"slf{number}b"]
    with ExitStack() as stack:
        for name in names:
            if subprocess.run([ip, "netns", "add", name], capture_output=True, check=False).returncode != 0:
                pytest.skip("network namespaces: this user may not make them")
            stack.callback(subprocess.run, [ip, "netns", "del", name], capture_output=True, check=False)
        pair = ["link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v0", "netns", names[1]]
        subprocess.run([ip, *pair], check=True)
        for at, name in enumerate(names):
            inside = [ip, "-n", name]
            subprocess.run([*inside, "link", "set", "v0", "addrgenmode", "none"], check=True)
            subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
            subprocess.run([*inside, "link", "set", "v0", "up"], check=True)
            subprocess.run([*inside, "address", "add", f"fe80::{at + 1}/64", "dev", "v0", "nodad"], check=True)
            subprocess.run([*inside, "address", "add", f"192.0.2.{at + 1}/24", "dev", "v0"], check=True)
        one, other = ([ip, "netns", "exec", name] for name in names)
        yield one, other


def test_link_local_addresses_and_obstacles_of_a_route(keys: Keys, tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "to"
    file.write_bytes(os.urandom(300_000))
    send = [*SPARELANE, "send", *keys.of("sender"), *PATIENT, str(file)]
    with linked_namespaces() as (near, far):
        receive = [*SPARELANE, "recv", *keys.of("receiver"), "--listen", "[fe80::2%v0]:0", "-o", str(into), "--json"]
        with subprocess.Popen([*far, *receive], stdout=subprocess.PIPE, text=True) as receiver:
            try:
                assert receiver.stdout is not None
                port = json.loads(receiver.stdout.readline())["address"].rpartition(":")[2]
                line = [*near, *send, f"[fe80::2%v0]:{port}"]
                done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
                assert done.returncode == 0, done.stderr
            finally:
                receiver.kill()
        assert (into / "file").read_bytes() == file.read_bytes()
        # Nobody has this address, so that the link does not answer; the kernel needs three seconds to notice.
        cases = {"192.0.2.9:7777": "is unreachable: 192.0.2.1 reports that the host does not answer"}
        for kind, message in (
            ("unreachable", "is unreachable: the network reports that the host does not answer"),
            ("prohibit", "this host's firewall forbids it"),
        ):
            subprocess.run([*near, "ip", "route", "add", kind, f"198.51.100.{len(kind)}/32"], check=True)
            cases[f"198.51.100.{len(kind)}:7777"] = message
        for to, message in cases.items():
            done = subprocess.run([*near, *send, to], capture_output=True, text=True, timeout=HANG_S, check=False)
            assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_files_that_cannot_be_sent_are_all_named(keys: Keys, tmp_path: Path) -> None:
    links = [tmp_path / f"link{number}" for number in range(20)]
    for link in links:
        link.symlink_to("/dev/null")
    # Named on the command line, where links are followed to the device.
    error = call("send", *keys.of("sender"), *map(str, links), "127.0.0.1:9", code=2)
    assert error.count("neither a file nor a folder") == 20
    missing = [str(tmp_path / f"none{number}") for number in range(20)]
    error = call("send", *keys.of("sender"), *missing, "127.0.0.1:9", code=2)
    assert all(f"{path}: No such file or directory" in error for path in missing)
    # In a folder.
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        folder = tmp_path / "folder"
        folder.mkdir()
        for link in links:
            link.rename(folder / link.name)
        error = call("send", *keys.of("sender"), str(folder), address, code=3)
    assert all(f"/{link.name}: neither a file nor a folder" in error for link in links)
    assert "20 of 21 items were not sent" in error


def test_a_source_that_has_changed_is_named_to_both_sides(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(20_000_000))
    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        line = [*SPARELANE, "send", *keys.of("sender"), *SLOW, "--window", "1MB", str(file), address]
        sender = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until((tmp_path / "to" / ".file.sparelane-part").exists, sender)
        file.write_bytes(b"changed")
        _, errors = sender.communicate(timeout=HANG_S)
        item = receiver.until("item")
        assert (sender.returncode, item["name"]) == (3, "file")
        assert "file: it has changed since the transfer began" in errors
        assert "it has changed since the transfer began" in item["error"]
        receiver.until_logged("file: it has changed since the transfer began")


def test_a_file_of_proc_is_an_error_and_not_an_empty_file(keys: Keys, tmp_path: Path) -> None:
    if not Path("/proc/version").exists():
        pytest.skip("/proc: not mounted")
    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        error = call("send", *keys.of("sender"), "/proc/version", address, code=3)
        assert "version: it has more content than its size says" in error
    assert not list((tmp_path / "to").iterdir())


def test_discarded_data_leaves_no_file_at_the_receiver(keys: Keys, tmp_path: Path) -> None:
    file, into = tmp_path / "file", tmp_path / "to"
    with file.open("wb") as sparse:
        sparse.truncate(1_000_000_000)
    into.mkdir()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(into)) as receiver:
        address = receiver.until("listening")["address"]
        trust = [keys.fingerprint["receiver"]]
        with pytest.raises(transfer.WireError, match="stopped"):
            transfer.send(
                [file],
                address,
                keys=keys.folder["sender"],
                trust=trust,
                progress=lambda progress: progress.bytes == 0,
                discards=True,
            )
        assert receiver.until("disconnected")["offered"] == 0
    assert not list(into.iterdir())


def test_the_far_end_of_harm_prints_json_only_with_the_option() -> None:
    for more, expected in (((), "listening at 127.0.0.1:"), (("--json",), '{"event": "listening", ')):
        line = [*SPARELANE, "harm", "--serve", "127.0.0.1:0", *more]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as far:
            try:
                assert far.stdout is not None
                assert far.stdout.readline().startswith(expected)
            finally:
                far.kill()


def progress_of(silence_s: float | None = None, losses: int = 0, is_lost: bool = False) -> transfer.Progress:
    of_path = (True, 1, 2, 1.0, (1,), (), None, 1452, None, (), 1, "set")
    last_loss = "it has gone" if losses else None
    return transfer.Progress(*of_path, silence_s=silence_s, losses=losses, last_loss=last_loss, is_lost=is_lost)


def test_a_transfer_without_answers_shows_no_time_of_arrival() -> None:
    for progress, expected in (
        (progress_of(), "50 B of 100 B (50 %), 8e-06 Mb/s, 50 s left, 1 of 2 files"),
        (progress_of(12.3), "50 B of 100 B (50 %), no answer for 12 s, 1 of 2 files"),
        (progress_of(losses=1, is_lost=True), "50 B of 100 B (50 %), connecting again, 1 of 2 files"),
    ):
        state = State(50, 100, 1, 2, 8.0, None, waiting_for(progress))
        assert transfer_line.text(state, 120) == expected


def test_a_lost_connection_is_reported_once_and_so_is_its_restoration() -> None:
    said: list[str] = []
    connection = Connection(said.append)
    for losses, is_lost in ((0, False), (1, True), (1, True), (1, False), (2, False)):
        connection.note(progress_of(losses=losses, is_lost=is_lost))
    assert said == ["the connection was lost: it has gone; connecting again", "connected again"] * 2
