"""Tests of TCP connections through a tunnel of two processes over the loopback interface."""

import contextlib
import http.server
import os
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import sparelane as sl
from hangs import HANG_S
from wire_processes import Keys, Running, call, running


class Echo(socketserver.ThreadingTCPServer):
    """Sends received data back at once, and closes after the peer."""

    daemon_threads = True
    # Kernels reset connections when the listen queue is full.
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), EchoHandler)


class EchoHandler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while piece := self.request.recv(1 << 16):
            self.request.sendall(piece)


class Upper(socketserver.BaseRequestHandler):
    """Reads to the end and only then answers."""

    def handle(self) -> None:
        pieces = []
        while piece := self.request.recv(1 << 16):
            pieces.append(piece)
        self.request.sendall(b"".join(pieces).upper())


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    """Runs a server in a thread and yields its address."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def tunnel(
    keys: Keys, *targets: str, allow: tuple[str, ...] = (), more: tuple[str, ...] = ()
) -> Iterator[tuple[Running, Running, list[int]]]:
    """Yields the serving site, the dialing site, and the local port of each target."""
    allowed = [word for target in allow or targets for word in ("--allow", target)]
    forwards = [word for target in targets for word in ("--forward", f"127.0.0.1:0={target}")]
    with running("tunnel", *keys.of("receiver"), "--listen", "127.0.0.1:0", *allowed) as server:
        server.address = server.until("listening")["address"]
        with running("tunnel", *keys.of("sender"), *forwards, *more, server.address) as client:
            ports = [int(client.until("forwarding")["address"].rpartition(":")[2]) for _ in targets]
            yield server, client, ports


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=HANG_S)


def read_all(stream: socket.socket) -> bytes:
    pieces = []
    while piece := stream.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def test_web_pages_are_fetched_through_the_tunnel(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(os.urandom(300_000))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)) as target, tunnel(keys, target) as sites:
        for _ in range(5):
            with urllib.request.urlopen(f"http://127.0.0.1:{sites[2][0]}/page", timeout=HANG_S) as answer:
                assert answer.read() == (tmp_path / "page").read_bytes()


def test_many_connections_carry_both_directions_at_once(keys: Keys) -> None:
    content = os.urandom(4_000_000)
    wrong: list[str] = []

    def write(stream: socket.socket, bytes_: bytes) -> None:
        stream.sendall(bytes_)
        stream.shutdown(socket.SHUT_WR)

    def exchange(port: int, bytes_: bytes) -> None:
        with connect(port) as stream:
            sender = threading.Thread(target=write, args=(stream, bytes_))
            sender.start()
            if read_all(stream) != bytes_:
                wrong.append(f"{len(bytes_)} bytes")
            sender.join()

    with serving(Echo()) as target, tunnel(keys, target) as (_, client, ports):
        sizes = [4_000_000, 4_000_000, *range(0, 200_000, 10_000)]
        threads = [threading.Thread(target=exchange, args=(ports[0], content[:size])) for size in sizes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
            assert not thread.is_alive()
        closed = [client.until("closed") for _ in sizes]
    assert not wrong
    assert sorted(event["sent_bytes"] for event in closed) == sorted(sizes)
    assert [event["sent_bytes"] for event in closed] == [event["received_bytes"] for event in closed]


def test_a_half_close_reaches_the_target_and_its_answer_comes_back(keys: Keys) -> None:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    upper = Server(("127.0.0.1", 0), Upper)
    with serving(upper) as target, tunnel(keys, target) as (_, _, ports), connect(ports[0]) as stream:
        stream.sendall(b"abc" * 100_000)
        stream.shutdown(socket.SHUT_WR)
        assert read_all(stream) == b"ABC" * 100_000


def test_refused_and_forbidden_targets_are_reset_and_reported(keys: Keys) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{unused.getsockname()[1]}"
    with serving(Echo()) as target, tunnel(keys, closed, target, allow=(closed,)) as (server, client, ports):
        for port, reason in zip(ports, ("Connection refused", "is not allowed"), strict=True):
            with connect(port) as stream, pytest.raises(ConnectionResetError):
                stream.recv(1)
            assert reason in client.until("failed")["error"]
            assert reason in server.until("failed")["error"]


@pytest.mark.parametrize("breaks", ["client", "target"])
def test_a_reset_on_one_side_is_a_reset_on_the_other(keys: Keys, breaks: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with tunnel(keys, target) as (_, _, ports), connect(ports[0]) as near:
            near.sendall(b"x")
            listener.settimeout(HANG_S)
            far, _ = listener.accept()
            with far:
                far.settimeout(HANG_S)
                assert far.recv(1) == b"x"
                one, other = (near, far) if breaks == "client" else (far, near)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()
                with pytest.raises(ConnectionResetError):
                    other.recv(1)


def test_a_stalled_reader_stops_the_writer_in_bounded_memory(keys: Keys) -> None:
    def resident_bytes(process: subprocess.Popen[str]) -> int:
        return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with tunnel(keys, target) as (server, client, ports), connect(ports[0]) as near:
            near.sendall(b"x")
            far, _ = listener.accept()
            before = [resident_bytes(site.process) for site in (server, client)]
            near.settimeout(1.0)
            written = 0
            with far, suppress(TimeoutError):
                while written < 200_000_000:
                    written += near.send(bytes(1 << 16))
            grown = [resident_bytes(site.process) - was for site, was in zip((server, client), before, strict=True)]
    assert written < 60_000_000, written
    # Windows of 1 MiB, buffers of sockets, and memory that the allocator keeps.
    assert max(grown) < 16_000_000, grown


def test_the_tunnel_reconnects_when_the_other_site_returns(keys: Keys) -> None:
    with serving(Echo()) as target:
        quick = ("--idle-timeout", "2", "--retry-pause", "0.5", "--connect-timeout", "1")
        with tunnel(keys, target, more=quick) as (server, client, ports):
            at = server.address
            with connect(ports[0]) as stream:
                stream.sendall(b"1")
                assert stream.recv(1) == b"1"
                server.process.kill()
                with pytest.raises(ConnectionResetError):
                    stream.recv(1)
            assert client.until("disconnected")
            with connect(ports[0]) as waits:
                waits.sendall(b"2")
                with running("tunnel", *keys.of("receiver"), "--listen", at, "--allow", target) as again:
                    again.until("listening")
                    assert waits.recv(1) == b"2"


def test_connections_are_refused_while_the_other_site_is_away_with_the_option(keys: Keys) -> None:
    away = ("--connect-timeout", "0.5", "--while-down", "refuse", "127.0.0.1:9")
    with running("tunnel", *keys.of("sender"), "--forward", "127.0.0.1:0=h:1", *away) as client:
        port = int(client.until("forwarding")["address"].rpartition(":")[2])
        # The reset may come while the test still connects.
        with pytest.raises(ConnectionResetError), connect(port) as stream:
            stream.recv(1)
        assert client.until("failed")["error"] == "there is no connection to the other site"
        assert (
            client.until("disconnected")["error"]
            == "127.0.0.1:9 refused the connection: no program receives at this port"
        )


def test_sigterm_finishes_open_connections_and_a_second_one_ends_at_once(keys: Keys) -> None:
    with serving(Echo()) as target:
        for more, finishes in (((), True), (("--grace", "1"), False)):
            with tunnel(keys, target, more=more) as (_, client, ports), connect(ports[0]) as stream:
                stream.sendall(b"1")
                assert stream.recv(1) == b"1"
                client.process.send_signal(signal.SIGTERM)
                client.until_logged("stopping")
                with pytest.raises(ConnectionRefusedError):
                    connect(ports[0])
                stream.sendall(b"2")
                assert stream.recv(1) == b"2"
                if finishes:
                    stream.shutdown(socket.SHUT_WR)
                    assert stream.recv(1) == b""
                    assert "stopped with" not in client.rest((0,))[1]
                else:
                    with pytest.raises(ConnectionResetError):
                        stream.recv(1)
                    assert "stopped with 1 still running" in client.rest((0,))[1]
        more = ("--grace", "3600")
        with tunnel(keys, target, more=more) as (_, client, ports), connect(ports[0]) as stream:
            stream.sendall(b"1")
            assert stream.recv(1) == b"1"
            client.process.send_signal(signal.SIGTERM)
            client.until_logged("stopping")
            client.process.send_signal(signal.SIGTERM)
            assert "stopped with 1 still running" in client.rest((0,))[1]


def test_sighup_reads_the_trusted_peers_again(keys: Keys, tmp_path: Path) -> None:
    stranger = call("keys", "new", "--keys", str(tmp_path / "stranger"), "--quiet").strip()
    with serving(Echo()) as target:
        listen = ("--listen", "127.0.0.1:0", "--allow", target)
        with running("tunnel", *keys.of("receiver"), *listen) as server:
            address = server.until("listening")["address"]
            known = ["--keys", str(tmp_path / "stranger"), "--trust", keys.fingerprint["receiver"]]
            dial = ("tunnel", *known, "--forward", f"127.0.0.1:0={target}", address)
            assert "does not trust this host's key" in call(*dial, code=2)
            call("keys", "trust", "--keys", keys.folder["receiver"], stranger)
            server.process.send_signal(signal.SIGHUP)
            server.until_logged("trusts 2 peers")
            with running(*dial) as client:
                port = int(client.until("forwarding")["address"].rpartition(":")[2])
                with connect(port) as stream:
                    stream.sendall(b"1")
                    assert stream.recv(1) == b"1"


def ends(stream: socket.socket) -> bool:
    """Waits for data or the end of a connection, and returns true if it was the end."""
    try:
        return stream.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("revocation", ["end", "finish"])
def test_a_revoked_key_loses_its_tunnel(keys: Keys, tmp_path: Path, revocation: str) -> None:
    other = call("keys", "new", "--keys", str(tmp_path / "other"), "--quiet").strip()
    call("keys", "trust", "--keys", keys.folder["receiver"], other)
    with serving(Echo()) as target:
        listen = ("--listen", "127.0.0.1:0", "--allow", target, "--revocation", revocation)
        with running("tunnel", *keys.of("receiver"), *listen) as server:
            address = server.until("listening")["address"]
            own = ["--keys", str(tmp_path / "other"), "--trust", keys.fingerprint["receiver"]]
            with running("tunnel", *own, "--forward", f"127.0.0.1:0={target}", address) as client:
                port = int(client.until("forwarding")["address"].rpartition(":")[2])
                with connect(port) as stream:
                    stream.sendall(b"1")
                    assert stream.recv(1) == b"1"
                    call("keys", "untrust", "--keys", keys.folder["receiver"], other)
                    server.process.send_signal(signal.SIGHUP)
                    if revocation == "finish":
                        server.until_logged("trusts 1 peers")
                        stream.sendall(b"2")
                        assert stream.recv(1) == b"2"
                        # The reset may come while the connection is still being made.
                        with contextlib.suppress(ConnectionResetError), connect(port) as late:
                            assert ends(late)
                    else:
                        assert ends(stream)
                server.until_logged(f"the peer's key, {other}, is not trusted any more")


def test_a_tunnel_tries_all_addresses_of_a_name(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def found(host: str, port: int, *more: int, **named: int) -> list[Any]:
        if host != "name":
            return real(host, port, *more, **named)
        # No server listens on IPv6.
        v6 = (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("::1", port, 0, 0))
        return [v6, (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]

    with running("tunnel", *keys.of("receiver"), "--listen", "127.0.0.1:0", "--allow", "127.0.0.1:22") as server:
        port = server.until("listening")["address"].rpartition(":")[2]
        monkeypatch.setattr(socket, "getaddrinfo", found)
        options = sl.wire.Options(connect_timeout_s=2)
        trust = [keys.fingerprint["receiver"]]
        forwards = [("127.0.0.1:0", "127.0.0.1:22")]
        dialled = sl.wire.Tunnel.dial(
            f"name:{port}", forwards, keys=keys.folder["sender"], trust=trust, options=options
        )
        with dialled as tunnel:
            kinds = []
            for event in tunnel.events(for_s=HANG_S):
                kinds.append(event["event"])
                if event["event"] == "connected":
                    break
    assert kinds == ["disconnected", "connected"]


def test_a_tunnel_to_a_receiver_of_files_is_a_clear_error(keys: Keys, tmp_path: Path) -> None:
    recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path))
    forward = ("--forward", "127.0.0.1:0=127.0.0.1:22")
    with running(*recv) as receiver:
        address = receiver.until("listening")["address"]
        with running("tunnel", *keys.of("sender"), *forward, address) as client:
            assert "receives files (`sparelane recv`)" in client.until("disconnected")["error"]


@pytest.mark.slow
def test_a_listening_site_disconnects_a_silent_one_after_its_own_idle_timeout(keys: Keys) -> None:
    serve = (
        "tunnel",
        *keys.of("receiver"),
        "--listen",
        "127.0.0.1:0",
        "--allow",
        "127.0.0.1:22",
        "--idle-timeout",
        "2",
    )
    with running(*serve) as server:
        address = server.until("listening")["address"]
        # The other site would be silent for longer, but it is probed and stays connected.
        forward = ("--forward", "127.0.0.1:0=127.0.0.1:22", "--idle-timeout", "3600")
        with running("tunnel", *keys.of("sender"), *forward, address) as client:
            server.until("connected")
            time.sleep(4)
            client.process.kill()
            assert "silent for too long" in server.until("disconnected")["error"]


def test_each_mistake_of_a_tunnel_is_one_clear_error(keys: Keys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        cases = [
            (("--listen", "127.0.0.1:0"), "--listen needs at least one target"),
            (("--listen", "127.0.0.1:0", "--allow", "x:1", "h:1"), "allowed: one of the two"),
            (("h:1",), "allowed: either --listen with --allow, or --forward with HOST"),
            (("--forward", "1:2", "h:1"), '"1:2" is not a forward'),
            (("--forward", f"{at}=h:1", "127.0.0.1:9"), "in use"),
            (("--forward", "127.0.0.1:0=h", "127.0.0.1:9"), '"h" is not a target'),
            (("--listen", "127.0.0.1:0", "--allow", "h"), '"h" is not an address'),
            (("--listen", "127.0.0.1:0", "--allow", "no.such.host.invalid:1"), '"no.such.host.invalid": '),
            (("--max-connections", "0", "h:1"), "--max-connections"),
        ]
        for arguments, message in cases:
            assert message in call("tunnel", *keys.of("sender"), *arguments, code=2)
