"""Measures how much a transfer slows a concurrent TCP flow of the kernel.

In turns, the flow runs alone, with another TCP flow, with only the head of the transfer, and with the transfer. The
head takes a share of the path like any other flow, so the cost of the tail is the difference from the turn with only
the head. Throughput and round-trip times of the flow come from the kernel (`TCP_INFO`), sampled a hundred times a
second. The first second of each turn is a warm-up and does not count.
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
from sparelane.wire import addresses, transfer

# Offsets in struct tcp_info (linux/tcp.h): the smoothed RTT in microseconds, retransmitted segments, acked bytes.
RTT_AT, RETRANSMITS_AT, ACKED_AT, INFO_BYTES = 68, 100, 120, 128

SAMPLE_S = 0.01
WARM_UP_S = 1.0
CHUNK = bytes(1 << 16)


@dataclass(frozen=True, slots=True)
class FlowStatistics:
    """Statistics of a TCP flow over one or more turns.

    Attributes:
        bps: the rate of acknowledged bytes, bits per second.
        rtt_median_s, rtt_p99_s: the median and the 99th percentile of the smoothed round-trip time, seconds; the
            percentile is `None` for fewer than 100 samples.
        retransmitted: the number of retransmitted segments.
    """

    bps: float
    rtt_median_s: float
    rtt_p99_s: float | None
    retransmitted: int


@dataclass(frozen=True, slots=True)
class Harm:
    """A TCP flow in competition with others.

    Attributes:
        alone: the flow alone.
        beside_tcp: the flow with another TCP flow.
        beside_head: the flow with the transfer without its tail; `None` if the transfer has no tail.
        beside: the flow with the transfer.
        transfer_bps: the throughput of the transfer, bits per second.
    """

    alone: FlowStatistics
    beside_tcp: FlowStatistics
    beside_head: FlowStatistics | None
    beside: FlowStatistics
    transfer_bps: float

    @property
    def lost_share(self) -> float:
        """The fraction of its throughput that the flow loses."""
        return 1 - self.beside.bps / self.alone.bps

    @property
    def more_than_tcp(self) -> float:
        """The fraction of throughput lost relative to another TCP flow as competitor; negative for a gain."""
        return 1 - self.beside.bps / self.beside_tcp.bps

    @property
    def added_p99_s(self) -> float | None:
        """The increase of the 99th percentile of the round-trip time, seconds; `None` for too few samples."""
        return _growth(self.beside, self.alone)

    @property
    def tail_lost_share(self) -> float | None:
        """The fraction of its throughput that the flow loses to the tail, in addition to the head."""
        return None if self.beside_head is None else (self.beside_head.bps - self.beside.bps) / self.alone.bps

    @property
    def tail_added_p99_s(self) -> float | None:
        """The increase of the 99th percentile of the round-trip time by the tail, in addition to the head, seconds."""
        return None if self.beside_head is None else _growth(self.beside, self.beside_head)

    @property
    def judged(self) -> tuple[float, float | None]:
        """The lost fraction of throughput and the added delay, seconds: of the tail, or of a transfer without one."""
        lost = self.tail_lost_share
        return (self.lost_share, self.added_p99_s) if lost is None else (lost, self.tail_added_p99_s)


def _growth(later: FlowStatistics, earlier: FlowStatistics) -> float | None:
    if later.rtt_p99_s is None or earlier.rtt_p99_s is None:
        return None
    return later.rtt_p99_s - earlier.rtt_p99_s


def head_of(options: transfer.Options) -> transfer.Options | None:
    """The settings of a transfer without its tail: the inner controller of RC3, in class 0 only.

    `None` if there is no tail, since the controller is another one or there is only one class.
    """
    if options.controller != "rc3" or len(options.dscp) < 2:
        return None
    of_inner = {key.removeprefix("inner."): text for key, text in options.settings.items() if key.startswith("inner.")}
    inner = options.settings.get("inner", "cubic")
    return replace(options, controller=inner, settings=of_inner, dscp=options.dscp[:1])


def sink(address: str, ready: Callable[[str], object]) -> None:
    """Receives and discards TCP flows at `ADDR:PORT` until the process ends. Calls `ready` with the address."""
    host, _, port = addresses.resolve(address).rpartition(":")
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
    """Sums over turns of the same kind."""

    seconds: float = 0.0
    acked: int = 0
    retransmitted: int = 0
    rtts_us: list[int] | None = None

    def total(self) -> FlowStatistics:
        rtts_s = [one * 1e-6 for one in self.rtts_us or [0]]
        p99_s = percentiles.percentile(rtts_s, 0.99)
        return FlowStatistics(self.acked * 8 / max(self.seconds, 1e-9), median(rtts_s), p99_s, self.retransmitted)


def _tcp(to: str, controller: str, seconds: float, sums: _Turns) -> None:
    """Runs a TCP flow with unlimited data for a warm-up and `seconds`, and adds its statistics to `sums`."""
    host, _, port = addresses.resolve(to).rpartition(":")
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
                    # On a slow path, the send buffer stays full for longer than the timeout.
                    continue
                except OSError:
                    return

        # The timeout lets `fill` check `over` while the buffer is full.
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

    Permissions are not checked: `--local` needs root anyway, and otherwise the flow reports a missing permission.

    Raises:
        WireError: the kernel lacks one of them, or the system is not Linux.
    """
    if not sys.platform.startswith("linux"):
        raise WireError("harm reads Linux's TCP_INFO, and needs Linux")
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
        raise WireError("this kernel's TCP_INFO lacks acknowledged bytes; Linux 4.1 or newer is needed")
    rtt, retransmitted = struct.unpack_from("=I", info, RTT_AT)[0], struct.unpack_from("=I", info, RETRANSMITS_AT)[0]
    return rtt, retransmitted, struct.unpack_from("=Q", info, ACKED_AT)[0]


class _Transfer:
    """A transfer in its own thread, until it is stopped."""

    def __init__(self, send: Callable[[Callable[[transfer.Progress], bool]], object]) -> None:
        self.send = send
        self.over, self.connected = threading.Event(), threading.Event()
        self.failure: WireError | None = None
        self.bytes, self.seconds = 0, 0.0
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.send(self._note)
            self.failure = WireError("the transfer ended before the TCP flow: it needs more megabytes")
        except WireError as error:
            if not self.over.is_set():
                self.failure = error
        finally:
            self.connected.set()

    def _note(self, progress: transfer.Progress) -> bool:
        self.bytes, self.seconds = progress.bytes, progress.elapsed_s
        if progress.bytes > 0:
            self.connected.set()
        return not self.over.is_set()

    def stop(self) -> None:
        """Ends the transfer.

        Raises:
            WireError: the transfer had ended already.
        """
        self.over.set()
        self.thread.join()
        if self.failure is not None:
            raise self.failure


def measure(
    to: str,
    tcp: str,
    *,
    keys: Path | str | None = None,
    trust: Sequence[str] = (),
    peer: str | None = None,
    options: transfer.Options | None = None,
    controller: str = "cubic",
    other: str | None = None,
    seconds: float = 5.0,
    rounds: int = 2,
    megabytes: int = 1000,
) -> Harm:
    """Measures how much a transfer to the receiver at `to` slows a TCP flow to the sink at `tcp`.

    Each round has turns of `seconds`: the flow alone, with another TCP flow, with the transfer without its tail (if it
    has one), and with the transfer. A transfer sends a sparse file, which the receiver discards. It is stopped early.

    Args:
        to: the receiver of the transfer, `HOST:PORT`.
        tcp: the sink of the TCP flow, `HOST:PORT`.
        keys: as for `send`.
        trust: as for `send`.
        peer: as for `send`.
        options: the settings of the transfer.
        controller: the kernel's congestion control of the TCP flow.
        other: the congestion control of the other TCP flow; by default the same.
        seconds: the duration of a turn.
        rounds: the number of rounds.
        megabytes: the size of the file, which must outlast a turn.

    Raises:
        WireError: there is no connection to the receiver or the sink, the transfer ends before the flow, or the flow
            moves no data.
    """
    options = options or transfer.Options()
    options.native(keys, trust, peer)
    for address in (to, tcp):
        addresses.split(address)
    check_controllers(controller, other or controller)
    head = head_of(options)
    alone, beside_tcp, beside_head, beside, moved, moving_s = _Turns(), _Turns(), _Turns(), _Turns(), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            _tcp(tcp, controller, seconds, alone)
            # The other flow starts first and ends last, so that it covers the whole turn.
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
                # A measurement with an interruption is worthless.
                once = replace(which, retry_s=0.0)
                send = partial(
                    transfer.send, [file], to, keys=keys, trust=trust, peer=peer, options=once, discards=True
                )
                running = _Transfer(partial(_sending, send))
                try:
                    # The turn starts when the transfer sends data.
                    if running.connected.wait(30) and running.failure is None:
                        _tcp(tcp, controller, seconds, sums)
                finally:
                    running.stop()
                if which is options:
                    moved, moving_s = moved + running.bytes, moving_s + running.seconds
    for turns, where in ((alone, "alone"), (beside_tcp, "with another TCP flow")):
        if turns.acked == 0:
            raise WireError(f"the TCP flow moved nothing {where}: turns of more seconds are needed")
    of_head = None if head is None else beside_head.total()
    return Harm(alone.total(), beside_tcp.total(), of_head, beside.total(), moved * 8 / max(moving_s, 1e-9))


def _sending(send: Callable[..., object], note: Callable[[transfer.Progress], bool]) -> object:
    return send(progress=note)
