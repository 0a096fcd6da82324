"""Delay and loss between two interfaces of this host, packet by packet: what the kernel's netem does where it is there.

A process reads packets from a TUN device, holds each packet for the same time, and writes it back to the device. The
host's routes lead packets into the device and on from there. The process runs in its own network namespace
(`sparelane.emulation.namespaces`), behind the queues of a path, so that the queues stay the kernel's. On a request to
end, it reports how many packets it carried and how late they left.
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

# Of linux/if_tun.h: the request that attaches to a device, and a device of bare IP packets.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

# The largest packet that is read, and how many are read before those that are due are written.
PACKET_BYTES, MOST_READ = 65_535, 64


@dataclass(slots=True)
class Carried:
    """What a delay line did.

    Attributes:
        packets: how many went through.
        lost: how many were dropped on purpose.
        refused: how many the kernel did not take back.
        late_median_s, late_p99_s: by how much packets left late; the percentile is `None` for fewer than 100 packets.
    """

    packets: int
    lost: int
    refused: int
    late_median_s: float
    late_p99_s: float | None


class Lateness:
    """How late packets left, in bins of 50 microseconds up to a second, so that memory is bounded."""

    BIN_S = 50e-6

    def __init__(self) -> None:
        self._counts = [0] * 20_000

    def note(self, seconds: float) -> None:
        """One packet left so late."""
        self._counts[min(int(seconds / self.BIN_S), len(self._counts) - 1)] += 1

    def percentile(self, share: float) -> float:
        """The upper end of the bin in which this share of the packets is reached; 0 without packets."""
        left = share * sum(self._counts)
        if left == 0:
            return 0.0
        for number, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return (number + 1) * self.BIN_S
        return len(self._counts) * self.BIN_S


class DelayLine:
    """Packets of a file descriptor, held and written back in their order."""

    def __init__(self, fd: int, delay_s: float, loss: float, seed: int) -> None:
        self._fd, self._delay_s, self._loss = fd, delay_s, loss
        self._random = random.Random(seed)
        self._held: deque[tuple[float, bytes]] = deque()
        self._late = Lateness()
        self._packets = self._lost = self._refused = 0

    def turn(self, at_most_s: float) -> None:
        """Waits for a packet that comes or is due, for so long at most; takes what has come, writes what is due."""
        wait_s = at_most_s
        if self._held:
            wait_s = min(wait_s, max(0.0, self._held[0][0] - time.monotonic()))
        if select.select([self._fd], [], [], wait_s)[0]:
            self._take()
        self._put()

    def _take(self) -> None:
        for _ in range(MOST_READ):
            try:
                packet = os.read(self._fd, PACKET_BYTES)
            except BlockingIOError:
                return
            if self._loss and self._random.random() < self._loss:
                self._lost += 1
            else:
                self._held.append((time.monotonic() + self._delay_s, packet))

    def _put(self) -> None:
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            due, packet = self._held.popleft()
            self._late.note(now - due)
            try:
                os.write(self._fd, packet)
                self._packets += 1
            except OSError as error:
                # No room in the kernel, or an interface that goes down while the path is taken apart.
                if error.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.EIO):
                    raise
                self._refused += 1

    def carried(self) -> Carried:
        """What was done so far."""
        median_s, p99_s = (self._late.percentile(share) for share in (0.5, 0.99))
        p99 = percentiles.if_enough(p99_s, 0.99, self._packets)
        return Carried(self._packets, self._lost, self._refused, median_s, p99)


def missing() -> str | None:
    """Why there can be no delay line here, if there cannot."""
    return None if Path(DEVICE).exists() else f"needs {DEVICE}"


def attach(name: str) -> int:
    """A file descriptor of the TUN device of this name, which must be there or may be made."""
    fd = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def main() -> None:
    """Runs a delay line until SIGTERM; says on standard output when it is ready, and in the end what it carried."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("delay_s", type=float)
    parser.add_argument("loss", type=float)
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    # What is late here is error of the path: this process goes before others, where it may. It sleeps most of the time.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    line = DelayLine(attach(given.device), given.delay_s, given.loss, given.seed)
    is_over = False

    def end(*_: object) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, end)
    sys.stdout.write('{"event": "ready"}\n')
    sys.stdout.flush()
    while not is_over:
        line.turn(0.1)
    sys.stdout.write(json.dumps(asdict(line.carried())) + "\n")


if __name__ == "__main__":
    main()
