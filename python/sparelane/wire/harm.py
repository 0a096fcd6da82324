"""What a transfer does to a TCP flow of the kernel beside it.

The flow runs alone, beside one more TCP flow, beside the head of the transfer alone, and beside the transfer, by
turns. The head is a flow like any other, and takes a share; what the tail costs is the difference to it. What the TCP
flow moved and how long its round trips were is what the kernel says of it (`TCP_INFO`), sampled a hundred times a
second; the first second of each turn, its start, does not count.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from sparelane._native import WireError
from sparelane.common import percentiles
from sparelane.wire import transfer as wire

# Of struct tcp_info (linux/tcp.h): the smoothed round trip in microseconds, segments sent again, bytes acknowledged.
RTT_AT, RETRANSMITS_AT, ACKED_AT, INFO_BYTES = 68, 100, 120, 128

SAMPLE_S = 0.01
WARM_UP_S = 1.0
CHUNK = bytes(1 << 16)


@dataclass(frozen=True, slots=True)
class Beside:
    """What a TCP flow did in some turns.

    Attributes:
        bps: bytes acknowledged, as a rate.
        rtt_median_s, rtt_p99_s: of its smoothed round trips; the percentile is `None` for fewer than 100 samples.
        retransmitted: segments sent again.
    """

    bps: float
    rtt_median_s: float
    rtt_p99_s: float | None
    retransmitted: int


@dataclass(frozen=True, slots=True)
class Harm:
    """A TCP flow beside others.

    Attributes:
        alone: the flow without any.
        beside_tcp: beside one more TCP flow.
        beside_head: beside the transfer without its tail; none where it has no tail.
        beside: beside the transfer.
        transfer_bps: what the transfer moved meanwhile.
    """

    alone: Beside
    beside_tcp: Beside
    beside_head: Beside | None
    beside: Beside
    transfer_bps: float

    @property
    def lost_share(self) -> float:
        """The share of its throughput that the flow loses."""
        return 1 - self.beside.bps / self.alone.bps

    @property
    def more_than_tcp(self) -> float:
        """By which share the flow has less than beside one more TCP flow; negative where it has more."""
        return 1 - self.beside.bps / self.beside_tcp.bps

    @property
    def added_p99_s(self) -> float | None:
        """The growth of the 99th percentile of its round trips; `None` if there were too few samples."""
        return _growth(self.beside, self.alone)

    @property
    def tail_lost_share(self) -> float | None:
        """The share of its throughput that the flow loses by the tail, beyond what the head takes."""
        return None if self.beside_head is None else (self.beside_head.bps - self.beside.bps) / self.alone.bps

    @property
    def tail_added_p99_s(self) -> float | None:
        """By how much the 99th percentile grows by the tail, beyond what it is beside the head."""
        return None if self.beside_head is None else _growth(self.beside, self.beside_head)

    @property
    def judged(self) -> tuple[float, float | None]:
        """The share of the throughput and the seconds that the tail costs, or the whole transfer without a tail."""
        lost = self.tail_lost_share
        return (self.lost_share, self.added_p99_s) if lost is None else (lost, self.tail_added_p99_s)


def _growth(later: Beside, earlier: Beside) -> float | None:
    if later.rtt_p99_s is None or earlier.rtt_p99_s is None:
        return None
    return later.rtt_p99_s - earlier.rtt_p99_s


def head_of(options: wire.Options) -> wire.Options | None:
    """The settings of a transfer without its tail: the controller inside of RC3, in class 0 alone.

    None where there is no tail, since the controller has none, or there is one class.
    """
    if options.controller != "rc3" or len(options.dscp) < 2:
        return None
    of_inner = {key.removeprefix("inner."): text for key, text in options.settings.items() if key.startswith("inner.")}
    inner = options.settings.get("inner", "cubic")
    return replace(options, controller=inner, settings=of_inner, dscp=options.dscp[:1])


def sink(address: str, ready: Callable[[str], object]) -> None:
    """Takes what TCP flows send at `ADDR:PORT`, until the process ends; `ready` is told the address."""
    host, _, port = wire.resolve(address).rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise WireError(f"{address}: {error.strerror}") from error
        listening.listen()
        ready(f"{host}:{listening.getsockname()[1]}")
        while True:
            flow, _ = listening.accept()
            threading.Thread(target=_drain, args=(flow,), daemon=True).start()


def _drain(flow: socket.socket) -> None:
    with flow:
        while flow.recv(1 << 18):
            pass


@dataclass(slots=True)
class _Turns:
    """Sums over turns."""

    seconds: float = 0.0
    acked: int = 0
    retransmitted: int = 0
    rtts_us: list[int] | None = None

    def total(self) -> Beside:
        rtts_s = [one * 1e-6 for one in self.rtts_us or [0]]
        p99_s = percentiles.percentile(rtts_s, 0.99)
        return Beside(self.acked * 8 / max(self.seconds, 1e-9), median(rtts_s), p99_s, self.retransmitted)


def _tcp(to: str, controller: str, seconds: float, sums: _Turns) -> None:
    """One TCP flow that always has something to send, for so long."""
    host, _, port = wire.resolve(to).rpartition(":")
    try:
        flow = socket.create_connection((host.strip("[]"), int(port)), timeout=5)
    except OSError as error:
        raise WireError(f"{to}: no TCP sink answers: {error}") from error
    with flow:
        _choose(flow, controller)
        over = threading.Event()

        def fill() -> None:
            while not over.is_set():
                try:
                    flow.send(CHUNK)
                except TimeoutError:
                    # The buffer is full, and is for longer than a round trip on a slow path: the flow goes on.
                    continue
                except OSError:
                    return

        flow.settimeout(0.2)
        filling = threading.Thread(target=fill, daemon=True)
        filling.start()
        time.sleep(WARM_UP_S)
        began, first = time.monotonic(), _info(flow)
        rtts = sums.rtts_us if sums.rtts_us is not None else []
        while time.monotonic() < began + seconds:
            time.sleep(SAMPLE_S)
            rtts.append(_info(flow)[0])
        last = _info(flow)
        sums.rtts_us = rtts
        sums.seconds += time.monotonic() - began
        sums.acked += last[2] - first[2]
        sums.retransmitted += last[1] - first[1]
        over.set()
        filling.join()


def check_controllers(*names: str) -> None:
    """Checks that this kernel has these congestion controls.

    Whether this user may use them is not checked: `--local` needs root in any case, and otherwise the flow reports it.

    Raises:
        WireError: it has not, or this is not Linux.
    """
    if not sys.platform.startswith("linux"):
        raise WireError("what a TCP flow loses is read from Linux's TCP_INFO: harm needs Linux")
    for name in dict.fromkeys(names):
        with socket.socket() as flow, suppress(PermissionError):
            _set_controller(flow, name)


def _choose(flow: socket.socket, controller: str) -> None:
    try:
        _set_controller(flow, controller)
    except PermissionError as error:
        raise WireError(
            f'this user may not use the congestion control "{controller}"; allowed: one that '
            "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists, or root"
        ) from error


def _set_controller(flow: socket.socket, controller: str) -> None:
    try:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    except PermissionError:
        raise
    except OSError as error:
        raise WireError(f'this kernel has no congestion control "{controller}": {error.strerror}') from error


def _info(flow: socket.socket) -> tuple[int, int, int]:
    info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    if len(info) < INFO_BYTES:
        raise WireError("this kernel's TCP_INFO has no acknowledged bytes; Linux 4.1 is the first that has")
    rtt, retransmitted = struct.unpack_from("=I", info, RTT_AT)[0], struct.unpack_from("=I", info, RETRANSMITS_AT)[0]
    return rtt, retransmitted, struct.unpack_from("=Q", info, ACKED_AT)[0]


class _Transfer:
    """A transfer in a thread of its own, until it is stopped."""

    def __init__(self, send: Callable[[Callable[[wire.Progress], bool]], object]) -> None:
        self.send = send
        self.over, self.connected = threading.Event(), threading.Event()
        self.failure: WireError | None = None
        self.bytes, self.seconds = 0, 0.0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.send(self._note)
            self.failure = WireError("all was sent before the TCP flow had ended: the transfer needs more megabytes")
        except WireError as error:
            if not self.over.is_set():
                self.failure = error
        finally:
            self.connected.set()

    def _note(self, progress: wire.Progress) -> bool:
        self.bytes, self.seconds = progress.bytes, progress.elapsed_s
        if progress.bytes > 0:
            self.connected.set()
        return not self.over.is_set()

    def stop(self) -> None:
        """Ends it.

        Raises:
            WireError: it had ended by itself.
        """
        self.over.set()
        self.thread.join()
        if self.failure is not None:
            raise self.failure


def measure(
    to: str,
    tcp: str,
    *,
    keys: Path | str,
    trust: Sequence[str] = (),
    options: wire.Options | None = None,
    controller: str = "cubic",
    other: str | None = None,
    seconds: float = 5.0,
    rounds: int = 2,
    megabytes: int = 1000,
) -> Harm:
    """Measures what a transfer to the receiver at `to` does to a TCP flow to the sink at `tcp`.

    The kernel's congestion control of the flow is `controller`, that of the other TCP flow `other`, or the same.
    Each of `rounds` has a turn of the flow alone, one beside another TCP flow, one beside the transfer without its
    tail, where it has one, and one beside the transfer, of `seconds` each. A transfer is a sparse file of so many
    megabytes, under a name of its own each time; it ends early, and the receiver keeps what came of it.

    Raises:
        WireError: there is no connection to either, the transfer ends before the flow does, or the flow moves nothing
            even without it.
    """
    options = options or wire.Options()
    options.native(keys, trust)
    for address in (to, tcp):
        wire.check_address(address)
    check_controllers(controller, other or controller)
    head = head_of(options)
    alone, beside_tcp, beside_head, beside, moved, moving_s = _Turns(), _Turns(), _Turns(), _Turns(), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            _tcp(tcp, controller, seconds, alone)
            line = (tcp, other or controller, seconds + WARM_UP_S, _Turns())
            one_more = threading.Thread(target=_tcp, args=line, daemon=True)
            one_more.start()
            time.sleep(WARM_UP_S / 2)
            _tcp(tcp, controller, seconds, beside_tcp)
            one_more.join()
            for which, sums in ((head, beside_head), (options, beside)):
                if which is None:
                    continue
                file = Path(folder, f"harm-{os.getpid()}-{number}{'-head' if which is head else ''}")
                with file.open("wb") as content:
                    content.truncate(megabytes * 1_000_000)
                send = partial(wire.send, [file], to, keys=keys, trust=trust, options=which)
                transfer = _Transfer(partial(_sending, send))
                try:
                    if transfer.connected.wait(30) and transfer.failure is None:
                        _tcp(tcp, controller, seconds, sums)
                finally:
                    transfer.stop()
                if which is options:
                    moved, moving_s = moved + transfer.bytes, moving_s + transfer.seconds
    for turns, where in ((alone, "alone"), (beside_tcp, "beside another one")):
        if turns.acked == 0:
            raise WireError(f"the TCP flow moved nothing {where}: turns of more seconds are needed")
    of_head = None if head is None else beside_head.total()
    return Harm(alone.total(), beside_tcp.total(), of_head, beside.total(), moved * 8 / max(moving_s, 1e-9))


def _sending(send: Callable[..., object], note: Callable[[wire.Progress], bool]) -> object:
    return send(progress=note)
