"""A flood of half-open handshakes from an independent QUIC client against `recv`, while a trusted peer sends a file."""

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hangs import HANG_S, wait_until
from wire_processes import Keys, call, running

pytest.importorskip("aioquic", reason="needs aioquic")

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.tls import CipherSuite

# The source addresses of the flood.
SOURCES = [f"127.0.0.{host}" for host in range(2, 8)]

# The handshakes per second, and their largest number, which ends the flood.
RATE = 1000
MAX_HANDSHAKES = 60_000

# The number of half-open handshakes that the receiver keeps.
TABLE = 1024

# TLS extensions for raw public keys (RFC 7250), which aioquic does not have: the types of the client's and the server's
# certificate, each with a list of one type.
RAW_PUBLIC_KEYS = [(19, b"\x01\x02"), (20, b"\x01\x02")]


class HalfOpen(QuicConnection):  # type: ignore[misc, unused-ignore]
    """A handshake that the receiver of this protocol accepts, as far as it goes."""

    def _initialize(self, peer_cid: bytes) -> None:
        super()._initialize(peer_cid)
        self.tls.handshake_extensions += RAW_PUBLIC_KEYS


class Flood:
    """Begins handshakes, answers the Retry of each, and then nothing."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in SOURCES]
        for source, one in zip(SOURCES, self._sockets, strict=True):
            one.bind((source, 0))
            one.setblocking(False)
        self._stops = threading.Event()
        self._waiting: dict[bytes, QuicConnection] = {}
        self._answered: set[bytes] = set()
        self.begun = 0
        # Handshakes that the receiver has answered with its own flight.
        self.half_open = 0

    def run(self) -> None:
        """Runs until it is stopped."""
        began = time.monotonic()
        while not self._stops.is_set() and self.begun < MAX_HANDSHAKES:
            # A slow machine floods more slowly, but without a pause.
            due = int((time.monotonic() - began) * RATE) - self.begun
            for _ in range(min(max(due, 0), 20)):
                self._begin()
            ready, _, _ = select.select(self._sockets, [], [], 0.0 if due > 0 else 0.001)
            for one in ready:
                self._receive(one)

    def stop(self) -> None:
        """Ends the flood."""
        self._stops.set()

    def close(self) -> None:
        """Closes the sockets."""
        for one in self._sockets:
            one.close()

    def _begin(self) -> None:
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=["sparelane/2"], cipher_suites=[CipherSuite.AES_128_GCM_SHA256]
        )
        connection = HalfOpen(configuration=configuration)
        connection.connect(self._to, now=0.0)
        self._waiting[connection.host_cid] = connection
        self._send(connection, self._sockets[self.begun % len(self._sockets)])
        self.begun += 1

    def _send(self, connection: QuicConnection, one: socket.socket) -> None:
        for datagram, to in connection.datagrams_to_send(now=0.0):
            try:
                one.sendto(datagram, to)
            except BlockingIOError:
                return

    def _receive(self, one: socket.socket) -> None:
        for _ in range(50):
            try:
                datagram = one.recv(2048)
            except BlockingIOError:
                return
            # Long headers have the receiver's connection ID after the version (RFC 9000 section 17.2).
            own = datagram[6 : 6 + datagram[5]]
            if datagram[0] & 0xF0 == 0xF0:
                connection = self._waiting.pop(own, None)
                if connection is not None:
                    connection.receive_datagram(datagram, self._to, now=0.0)
                    self._answered.add(own)
                    self._send(connection, one)
            # A flight is padded to the minimum of QUIC; a refusal is smaller.
            elif len(datagram) >= 1200 and own in self._answered:
                self._answered.discard(own)
                self.half_open += 1


@contextmanager
def flooding(to: tuple[str, int]) -> Iterator[Flood]:
    """Floods an address while the block runs."""
    flood = Flood(to)
    thread = threading.Thread(target=flood.run, daemon=True)
    thread.start()
    try:
        yield flood
    finally:
        flood.stop()
        thread.join(HANG_S)
        flood.close()


@pytest.mark.slow
@pytest.mark.skipif(os.uname().sysname != "Linux", reason="needs Linux, where all of 127.0.0.0/8 is local")
def test_a_trusted_peer_sends_during_a_flood_of_half_open_handshakes(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(200_000))
    arguments = ["--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")]
    with running("recv", *keys.of("receiver"), *arguments) as receiver:
        address = receiver.until("listening")["address"]
        host, port = address.rsplit(":", 1)
        with flooding((host, int(port))) as flood:
            began = time.monotonic()
            wait_until(lambda: flood.half_open > TABLE, receiver.process)
            rates = [count / (time.monotonic() - began) for count in (flood.begun, flood.half_open)]
            before, sent_at = flood.half_open, time.monotonic()
            call("send", *keys.of("sender"), "--json", str(file), address)
            took = time.monotonic() - sent_at
            wait_until(lambda: flood.half_open > before, receiver.process)
        print(f"{rates[0]:.0f} handshakes a second, {rates[1]:.0f} half-open; the file took {took:.2f} s")
        assert receiver.until("item")["error"] is None
    assert (tmp_path / "to" / "file").read_bytes() == file.read_bytes()
