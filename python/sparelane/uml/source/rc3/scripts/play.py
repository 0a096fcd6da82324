"""Plays a script against the TCP of the kernel in which it runs as the first program.

One end of the connection is a socket of the kernel. The script is the other end: it sends segments, and states the
segments that must come back, through a packet socket at the far end of a virtual cable, in virtual time. Sequence
numbers count segments of 1000 bytes from the first byte of data in each direction. Each line is a command:

    set PATH VALUE [ERROR]      a setting below /proc/sys/net; commas separate the numbers of a list
    ask LEVELS [ERROR]          sets the option TCP_RC3
    levels LEVELS               checks the option TCP_RC3
    quickack 0|1                sets the option TCP_QUICKACK
    congestion NAME             sets the option TCP_CONGESTION
    connect [ecn] [window N] [mss BYTES]   with a round trip of 10 ms, and a window of N segments, at most 65
    write N                     writes N segments at once
    read N                      reads N segments
    batches N                   at most N segments leave the kernel as one
    hold                        from now on, packets at low priority wait in the kernel's own queue
    wait MS                     waits for MS milliseconds
    < LEVEL [ack N] [sack A-B]... [data N] [window N] [ece] [cwr] [ect] [ce]     a segment to the kernel
    > LEVEL A..B [ack N] [ece] [cwr] [ect]      the next segments of the kernel, up or down, each with 1000 bytes
    > LEVEL bytes A-B [...]     the next segment of the kernel, with these bytes
    > LEVEL ack N [sack A-B]... [ece] [cwr] [ect]    the next segment of the kernel, without data
    drain MS                    ignores all segments of the kernel for MS milliseconds
    quiet MS                    the kernel sends nothing for MS milliseconds
    count NAME N                checks a counter of the kernel under its name in /proc/net/netstat
    info FIELD N                checks a field of TCP_INFO

Flags that are not named must not be set. Usage: play.py PLACE, a folder on the host with the file "script". The file
"outcome" is written there; its first line is "as written", or the first difference.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

UNIT = 1000
KERNEL, PEER = ("10.0.0.1", 5000), ("10.0.0.2", 6000)
# The peer's first sequence number. The kernel chooses its own.
PEER_FIRST = 1_000_000
STATION = bytes.fromhex("020000000001")
TCP_RC3, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 64, 32, 33
CODE_POINTS = {0: 0} | {level: 8 * level - 5 for level in range(1, 8)}
SHIFT = 7
ROUND_TRIP_S, LONGEST_S = 0.01, 1.0
FLAGS = {"fin": 1, "syn": 2, "ack": 16, "ece": 64, "cwr": 128}
ECN_FIELD = {"ect": 2, "ce": 3}
# The offset and the type of fields of TCP_INFO.
INFO = {
    "ca_state": (1, "B"),
    "unacked": (24, "I"),
    "sacked": (28, "I"),
    "lost": (32, "I"),
    "rtt_us": (68, "I"),
    "ssthresh": (76, "I"),
    "cwnd": (80, "I"),
    "reordering": (88, "I"),
    "total_retrans": (100, "I"),
    "delivered": (192, "I"),
    "delivered_ce": (196, "I"),
    "dsack_dups": (216, "I"),
    "reord_seen": (220, "I"),
}


class OtherwiseError(Exception):
    """The kernel did something other than the script states."""


@dataclass
class Segment:
    """A segment in the terms of scripts. Its data starts at byte `start` and ends before `end`."""

    level: int
    start: int
    end: int
    acknowledges: int
    flags: set[str] = field(default_factory=set)
    blocks: list[tuple[int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"level {self.level}"]
        if self.end > self.start:
            parts.append(f"bytes {self.start}-{self.end}")
        parts.append(f"ack {self.acknowledges / UNIT:g}")
        parts += [f"sack {start / UNIT:g}-{end / UNIT:g}" for start, end in self.blocks]
        return " ".join([*parts, *sorted(self.flags)])


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Wire:
    """The far end of the cable, in the place of a peer."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self._socket.bind(("wire", 0x0800))
        self.kernel_first = 0
        self.kernel_port = 0
        self._identity = 0

    def send(
        self, sequence: int, acknowledges: int, flags: int, window: int, options: bytes, payload: int, service: int
    ) -> None:
        """A segment of the peer, with absolute numbers."""
        options += b"\1" * (-len(options) % 4)
        self._identity += 1
        length = 20 + len(options) + payload
        ends = socket.inet_aton(PEER[0]) + socket.inet_aton(KERNEL[0])
        offset = (5 + len(options) // 4) << 4
        head = struct.pack(
            ">HHIIBBHHH",
            PEER[1],
            self.kernel_port,
            sequence % 2**32,
            acknowledges % 2**32,
            offset,
            flags,
            window,
            0,
            0,
        )
        segment = head + options + b"\0" * payload
        summed = checksum(ends + struct.pack(">HH", socket.IPPROTO_TCP, length) + segment)
        segment = segment[:16] + struct.pack(">H", summed) + segment[18:]
        packet = struct.pack(">BBHHHBBH", 0x45, service, 20 + length, self._identity, 0x4000, 64, 6, 0) + ends
        packet = packet[:10] + struct.pack(">H", checksum(packet)) + packet[12:]
        self._socket.send(STATION + STATION + b"\x08\0" + packet + segment)

    def receive(self, longest_s: float) -> bytes | None:
        """The next packet of the kernel, if it comes in time."""
        until = time.monotonic() + longest_s
        while select.select([self._socket], [], [], max(until - time.monotonic(), 0.0))[0]:
            frame, (_, _, kind, *_) = self._socket.recvfrom(70_000)
            if kind != socket.PACKET_OUTGOING and frame[23] == socket.IPPROTO_TCP:
                return frame[14:]
        return None

    def next_segment(self, longest_s: float = LONGEST_S) -> Segment | None:
        """The next segment of the kernel."""
        packet = self.receive(longest_s)
        if packet is None:
            return None
        service, segment = packet[1], packet[20:]
        _, _, sequence, acknowledges, offset, flags = struct.unpack_from(">HHIIBB", segment)
        start = (sequence - self.kernel_first + 2**31) % 2**32 - 2**31
        names = {name for name, bit in FLAGS.items() if flags & bit and name != "ack"}
        names |= {name for name, value in ECN_FIELD.items() if service & 3 == value}
        points = {point: level for level, point in CODE_POINTS.items()}
        return Segment(
            level=points.get(service >> 2, -1),
            start=start,
            end=start + struct.unpack_from(">H", packet, 2)[0] - 20 - (offset >> 4) * 4,
            acknowledges=acknowledges - PEER_FIRST,
            flags=names,
            blocks=sack_blocks(segment[20 : (offset >> 4) * 4]),
        )


def sack_blocks(options: bytes) -> list[tuple[int, int]]:
    """The SACK blocks in the options of a segment of the kernel."""
    while options and options[0]:
        if options[0] == 1:
            options = options[1:]
            continue
        if options[0] == 5:
            edges = [edge - PEER_FIRST for edge in struct.unpack_from(f">{(options[1] - 2) // 4}I", options, 2)]
            return list(zip(edges[::2], edges[1::2], strict=True))
        options = options[options[1] :]
    return []


def span(text: str) -> tuple[int, int]:
    """Converts `A-B` in segments to bytes."""
    start, end = text.split("-")
    return int(start) * UNIT, int(end) * UNIT


def fails_with(name: str | None, what: Callable[[], object]) -> None:
    """Calls a function that must fail with the error of this name, or must succeed."""
    try:
        what()
    except OSError as error:
        if errno.errorcode.get(error.errno or 0) != name:
            raise OtherwiseError(f"it failed: {error}") from None
    else:
        if name is not None:
            raise OtherwiseError(f"it did not fail with {name}")


class Play:
    """A connection, and the commands of a script."""

    def __init__(self) -> None:
        self._wire = Wire()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._window = 65535 >> SHIFT
        # Bytes that the peer has acknowledged, and bytes that it has sent in class 0.
        self._acknowledged = 0
        self._sent = 0

    def line(self, words: list[str]) -> None:
        """Performs one line of the script."""
        name, *rest = words
        command = {"<": self._to_kernel, ">": self._from_kernel}.get(name) or getattr(self, f"_do_{name}", None)
        if command is None:
            raise OtherwiseError("there is no such command")
        command(*rest)

    def _do_set(self, path: str, value: str, error: str | None = None) -> None:
        fails_with(error, lambda: Path("/proc/sys/net", path).write_text(value.replace(",", " ")))
        if path.startswith("ipv4/tcp_rc3"):
            # The settings apply to new sockets.
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def _do_ask(self, levels: str, error: str | None = None) -> None:
        fails_with(error, lambda: self._socket.setsockopt(socket.IPPROTO_TCP, TCP_RC3, int(levels)))

    def _do_levels(self, levels: str) -> None:
        found = self._socket.getsockopt(socket.IPPROTO_TCP, TCP_RC3)
        if found != int(levels):
            raise OtherwiseError(f"there are {found}")

    def _do_quickack(self, value: str) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, int(value))

    def _do_congestion(self, name: str) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())

    def _do_connect(self, *words: str) -> None:
        numbers = {name: int(words[words.index(name) + 1]) for name in ("window", "mss") if name in words}
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 24)
        self._socket.bind(KERNEL)
        with contextlib.suppress(BlockingIOError):
            self._socket.connect(PEER)
        packet = self._wire.receive(LONGEST_S)
        if packet is None:
            raise OtherwiseError("no SYN came")
        self._wire.kernel_port, _, first = struct.unpack_from(">HHI", packet, 20)
        self._wire.kernel_first = (first + 1) % 2**32
        time.sleep(ROUND_TRIP_S)
        options = struct.pack(">BBHBBBBB", 2, 4, numbers.get("mss", UNIT), 4, 2, 3, 3, SHIFT)
        flags = FLAGS["syn"] | FLAGS["ack"] | FLAGS["ece"] * ("ecn" in words)
        window = numbers.get("window", 65) * UNIT
        self._window = window >> SHIFT
        self._wire.send(PEER_FIRST - 1, self._wire.kernel_first, flags, window, options, 0, 0)
        self._from_kernel("0", "ack", "0")

    def _do_write(self, count: str) -> None:
        if self._socket.send(b"\0" * (int(count) * UNIT)) != int(count) * UNIT:
            raise OtherwiseError("the send buffer is full")

    def _do_read(self, count: str) -> None:
        if len(self._socket.recv(int(count) * UNIT)) != int(count) * UNIT:
            raise OtherwiseError("there is less")

    def _do_batches(self, count: str) -> None:
        subprocess.run(["ip", "link", "set", "eth", "gso_max_segs", count], check=True)

    def _do_hold(self) -> None:
        bands = " ".join(["0", *"1" * 15])
        for words in (
            f"add dev eth root handle 1: prio bands 2 priomap {bands}",
            "add dev eth parent 1:2 netem slot 60s 60s",
        ):
            subprocess.run(["tc", "qdisc", *words.split()], check=True)

    def _do_drain(self, milliseconds: str) -> None:
        until = time.monotonic() + int(milliseconds) / 1e3
        while (left := until - time.monotonic()) > 0:
            self._wire.receive(left)

    def _do_wait(self, milliseconds: str) -> None:
        time.sleep(int(milliseconds) / 1e3)

    def _to_kernel(self, level: str, *words: str) -> None:
        left = list(words)
        flags, service, sequence, payload = FLAGS["ack"], CODE_POINTS[int(level)] << 2, self._sent, 0
        blocks: list[int] = []
        while left:
            word = left.pop(0)
            if word in ECN_FIELD:
                service |= ECN_FIELD[word]
            elif word in FLAGS and word != "ack":
                flags |= FLAGS[word]
            elif word == "ack":
                self._acknowledged = int(left.pop(0)) * UNIT
            elif word == "window":
                self._window = int(left.pop(0)) * UNIT >> SHIFT
            elif word == "data":
                sequence, payload = int(left.pop(0)) * UNIT, UNIT
            elif word == "sack":
                blocks += [(edge + self._wire.kernel_first) % 2**32 for edge in span(left.pop(0))]
            else:
                raise OtherwiseError(f"what is {word}?")
        options = struct.pack(f">BBBB{len(blocks)}I", 1, 1, 5, 2 + 4 * len(blocks), *blocks) if blocks else b""
        if payload and not int(level):
            self._sent = max(self._sent, sequence + payload)
        acknowledges = self._wire.kernel_first + self._acknowledged
        self._wire.send(PEER_FIRST + sequence, acknowledges, flags, self._window, options, payload, service)

    def _from_kernel(self, level: str, *words: str) -> None:
        left = list(words)
        borders = [(0, 0)]
        if ".." in left[0]:
            first, last = (int(number) for number in left.pop(0).split(".."))
            step = 1 if last >= first else -1
            borders = [(number * UNIT, (number + 1) * UNIT) for number in range(first, last + step, step)]
        elif left[0] == "bytes":
            edges = left[1].split("-")
            borders, left = [(int(edges[0]), int(edges[1]))], left[2:]
        asked: dict[str, list[str]] = {"ack": [], "sack": []}
        flags = set()
        while left:
            word = left.pop(0)
            if word in asked:
                asked[word].append(left.pop(0))
            else:
                flags.add(word)
        for start, end in borders:
            came = self._wire.next_segment()
            if came is None:
                raise OtherwiseError(f"nothing came in place of bytes {start}-{end}")
            is_same = came.level == int(level) and came.flags == flags and came.end - came.start == end - start
            is_same &= start == end or came.start == start
            is_same &= not asked["ack"] or came.acknowledges == int(asked["ack"][0]) * UNIT
            is_same &= not asked["sack"] or came.blocks == [span(block) for block in asked["sack"]]
            if not is_same:
                raise OtherwiseError(f"in place of bytes {start}-{end} came: {came}")

    def _do_quiet(self, milliseconds: str) -> None:
        came = self._wire.next_segment(int(milliseconds) / 1e3)
        if came is not None:
            raise OtherwiseError(f"this came: {came}")

    def _do_count(self, name: str, number: str) -> None:
        lines = Path("/proc/net/netstat").read_text().splitlines()
        counted: dict[str, int] = {}
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            counted |= dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
        if counted[name] != int(number):
            raise OtherwiseError(f"it is {counted[name]}")

    def _do_info(self, name: str, number: str) -> None:
        offset, kind = INFO[name]
        [found] = struct.unpack_from(kind, self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), offset)
        if found != int(number):
            raise OtherwiseError(f"it is {found}")


def lay_out() -> None:
    """A cable whose near end belongs to the kernel. Segments are not batched and carry no timestamps."""
    station = STATION.hex(":")
    for words in (
        "link set lo up",
        "link add eth type veth peer name wire",
        f"link set eth address {station} arp off gso_max_segs 1 up",
        f"link set wire address {station} arp off up",
        f"addr add {KERNEL[0]}/24 dev eth",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    for key, value in (("timestamps", "0"), ("no_metrics_save", "1"), ("congestion_control", "reno")):
        Path(f"/proc/sys/net/ipv4/tcp_{key}").write_text(value)


def outcome(text: str) -> str:
    """Plays a script to its end, or to the first line that does not hold."""
    play = Play()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            play.line(words)
        except OtherwiseError as why:
            return f"line {number}, {line.strip()}: {why}"
    return "as written"


def main(place: str) -> None:
    """Plays the script as the guest's only program, and then turns the kernel off."""
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    library = ctypes.CDLL(None, use_errno=True)
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        library.mount(kind.encode(), where.encode(), kind.encode(), 0, None)
    Path("/run/shared").mkdir()
    library.mount(b"none", b"/run/shared", b"hostfs", 0, place.encode())
    result = Path("/run/shared/outcome")
    try:
        # Waits of other programs may end late.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        lay_out()
        result.write_text(outcome(Path("/run/shared/script").read_text()) + "\n")
    except BaseException as error:
        result.write_text(f"{type(error).__name__}: {error}\n")
    os.sync()
    # LINUX_REBOOT_CMD_POWER_OFF
    library.reboot(0x4321FEDC)


if __name__ == "__main__":
    main(sys.argv[1])
