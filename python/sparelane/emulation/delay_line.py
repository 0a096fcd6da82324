"""Adds delay and loss between two interfaces of this host, as the kernel's netem does if it is available.

A process reads packets from a TUN device, holds each packet for the same time, and writes it back to the device. Routes
of the host lead packets into the device and onwards. The process runs in its own network namespace
(`sparelane.emulation.namespaces`), behind the bottleneck of a path, whose queues remain those of the kernel. On
SIGTERM, it reports the number of packets and their lateness.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import json
import os
import random
import select
import signal
import struct
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sparelane.common import percentiles

DEVICE = "/dev/net/tun"

# From linux/if_tun.h: the request that attaches to a device, and the flags for a device of bare IP packets.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

# The largest packet, and the number of packets that are read before due packets are written.
PACKET_BYTES, MOST_READ = 65_535, 64


@dataclass(slots=True)
class DelayLineCounts:
    """The counters of a delay line.

    Attributes:
        packets: the number of delivered packets.
        lost: the number of packets dropped on purpose.
        refused: the number of packets that the kernel did not accept.
        late_median_s, late_p99_s: the median and 99th percentile of lateness, seconds; the percentile is `None` for
            fewer than 100 packets.
    """

    packets: int
    lost: int
    refused: int
    late_median_s: float
    late_p99_s: float | None


class Lateness:
    """A histogram of lateness with bins of 50 microseconds up to a second, which bounds its memory."""

    BIN_S = 50e-6

    def __init__(self) -> None:
        self._counts = [0] * 20_000

    def note(self, seconds: float) -> None:
        """Adds a packet that left this much late."""
        self._counts[min(int(seconds / self.BIN_S), len(self._counts) - 1)] += 1

    def percentile(self, share: float) -> float:
        """The percentile of lateness, as the upper end of its bin; 0 without packets."""
        left = share * sum(self._counts)
        if left == 0:
            return 0.0
        for number, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return (number + 1) * self.BIN_S
        return len(self._counts) * self.BIN_S


class DelayLine:
    """Delays packets of a file descriptor, and writes them back in order."""

    def __init__(self, fd: int, delay_s: float, loss: float, seed: int) -> None:
        self._fd, self._delay_s, self._loss = fd, delay_s, loss
        self._random = random.Random(seed)
        self._held: deque[tuple[float, bytes]] = deque()
        self._late = Lateness()
        self._packets = self._lost = self._refused = 0

    def turn(self, at_most_s: float) -> None:
        """Waits up to `at_most_s` until a packet arrives or is due, then reads new packets and writes due ones."""
        wait_s = at_most_s
        if self._held:
            wait_s = min(wait_s, max(0.0, self._held[0][0] - time.monotonic()))
        if select.select([self._fd], [], [], wait_s)[0]:
            self._read()
        self._write()

    def _read(self) -> None:
        for _ in range(MOST_READ):
            try:
                packet = os.read(self._fd, PACKET_BYTES)
            except BlockingIOError:
                return
            if self._loss and self._random.random() < self._loss:
                self._lost += 1
            else:
                self._held.append((time.monotonic() + self._delay_s, packet))

    def _write(self) -> None:
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            due, packet = self._held.popleft()
            self._late.note(now - due)
            try:
                os.write(self._fd, packet)
                self._packets += 1
            except OSError as error:
                # The kernel has no buffer space, or the interface is going down while the path is removed.
                if error.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.EIO):
                    raise
                self._refused += 1

    def counts(self) -> DelayLineCounts:
        """The counters so far."""
        median_s, p99_s = (self._late.percentile(share) for share in (0.5, 0.99))
        p99 = percentiles.if_enough(p99_s, 0.99, self._packets)
        return DelayLineCounts(self._packets, self._lost, self._refused, median_s, p99)


def missing() -> str | None:
    """The reason why this machine cannot run a delay line; `None` if it can."""
    return None if Path(DEVICE).exists() else f"needs {DEVICE}"


def attach(name: str) -> int:
    """Opens the TUN device of this name, and creates it if necessary. Returns a file descriptor."""
    fd = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def main() -> None:
    """Runs a delay line until SIGTERM. Prints a line when it is ready, and its counters at the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("delay_s", type=float)
    parser.add_argument("loss", type=float)
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    # Lateness would be an error of the path, so this process gets real-time priority if possible. It mostly sleeps.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    line = DelayLine(attach(arguments.device), arguments.delay_s, arguments.loss, arguments.seed)
    is_over = False

    def end(*_: object) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, end)
    sys.stdout.write('{"event": "ready"}\n')
    sys.stdout.flush()
    while not is_over:
        line.turn(0.1)
    sys.stdout.write(json.dumps(asdict(line.counts())) + "\n")


if __name__ == "__main__":
    main()
