"""Shows that RC3's patches change no packet if their option is off.

Usage: python benches/linux_rc3_off.py FOLDER

Builds a stock kernel and a patched one without the option, if they do not exist. Runs the same transfers on both,
compares the packets on three cables byte by byte, and writes a page.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path

from sparelane.terminal import console
from sparelane.uml import kernel, running
from sparelane.uml.kernel import Kernel

SCENARIO = """
title = "One flow of 2000 packets, whose first windows overflow the bottleneck's queue"
duration = "4s"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "1Gbps"
bottleneck_rate = "400Mbps"
access_delay = "1ms"
bottleneck_delay = "8ms"
[scheme.tcp]
controller = "newreno"
[workload]
kind = "bulk"
size = "2000packets"
"""
QUEUES = {
    "priorities": ("queue={kind='priority', push_out=false, limit='100packets'}",),
    "marks": ("transport.ecn=classic", "queue={kind='fifo', limit='100packets', mark_at='40packets'}"),
}
CONTROLLERS = ("newreno", "cubic")
# Packets that TCP passes to the interface at once, without segmentation offload and with it.
OFFLOADS = {"off": 1, "on": 44}
# The interfaces where packets are captured: below the sender's TCP, behind the queue, and below the receiver's TCP.
DEVICES = (("left0", "eth"), ("west", "east"), ("right0", "eth"))
NAMES = ("stock", "patched")


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer.

    Attributes:
        controller: the sender's controller.
        offload: the segmentation offload, a key of `OFFLOADS`.
        queue: the queue of the bottleneck, a key of `QUEUES`.
    """

    controller: str
    offload: str
    queue: str

    @property
    def settings(self) -> tuple[str, ...]:
        """The overrides of the scenario."""
        packets = OFFLOADS[self.offload]
        return (
            f"scheme.tcp.controller={self.controller}",
            *QUEUES[self.queue],
            f"transport.send_batch={packets}",
            f"transport.receive_batch={packets}",
        )


CASES = tuple(Case(*parts) for parts in product(CONTROLLERS, OFFLOADS, QUEUES))


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of a transfer on two kernels.

    Attributes:
        packets: the number of captured packets on all devices, for each kernel.
        differing: the number of packets whose bytes or times differ, or that only one kernel has.
        counters: the number of counters of hosts that differ. A counter that a kernel lacks counts as 0.
        digests: the digest of all captures, for each kernel.
        retransmitted: the number of retransmitted segments on the first kernel.
        marked: the number of packets that arrived with a mark on the first kernel.
    """

    packets: tuple[int, int]
    differing: int
    counters: int
    digests: tuple[str, str]
    retransmitted: int
    marked: int


def compare(case: Case, kernels: tuple[Kernel, Kernel]) -> Compared:
    """Runs the transfer on both kernels and compares them.

    Raises:
        LinuxError: a kernel failed.
    """
    first, second = (running.run(SCENARIO, set=case.settings, captures=DEVICES, on=one) for one in kernels)
    pairs = [
        pair
        for captures in zip(first.captures, second.captures, strict=True)
        for pair in zip_longest(*map(records, captures))
    ]
    return Compared(
        packets=(sum(one is not None for one, _ in pairs), sum(other is not None for _, other in pairs)),
        differing=sum(one != other for one, other in pairs),
        counters=sum(
            counted.get(name, 0) != second.counters[host].get(name, 0)
            for host, counted in first.counters.items()
            for name in {*counted, *second.counters[host]}
        ),
        digests=(_digest(first.captures), _digest(second.captures)),
        retransmitted=first.counters["left0"]["Tcp.RetransSegs"],
        marked=first.counters["right0"]["IpExt.InCEPkts"],
    )


def records(capture: bytes) -> Iterator[bytes]:
    """Yields the records of a pcap file: each packet with its time and its length."""
    # The file header has 24 bytes, the header of a record 16.
    at = 24
    while at < len(capture):
        (captured_bytes,) = struct.unpack_from("<I", capture, at + 8)
        yield capture[at : at + 16 + captured_bytes]
        at += 16 + captured_bytes


def _digest(captures: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(captures)).hexdigest()[:16]


def page(done: Sequence[tuple[Case, Compared]], kernels: tuple[Kernel, Kernel]) -> str:
    """Returns the results as a Markdown page."""
    total, differing = sum(found.packets[0] for _, found in done), sum(found.differing for _, found in done)
    counters = sum(found.counters for _, found in done)
    lines = [
        "# RC3's patches without their option",
        "",
        "A kernel with RC3's patches (`docs/linux-rc3.md`) but without `CONFIG_TCP_RC3` sends the same packets as the",
        f"stock kernel: of {total} captured packets {differing} differ by a byte or a nanosecond. Of the kernels'",
        f"counters for each host, {counters} differ. The patched kernel has four more counters, which stay 0.",
        "",
        f"Both are Linux {kernel.RELEASE} with the same configuration, build date and build name:",
        "",
        *(f"- {name}: {one.key}, SHA-256 {_fingerprint(one)}" for name, one in zip(NAMES, kernels, strict=True)),
        "",
        "Each transfer is one flow of 2000 packets over IPv4 in virtual time. The round trip is 20 ms, hosts have",
        "1 Gb/s, and the bottleneck has 400 Mb/s. Segmentation and receive offload are both on or both off. The",
        "bottleneck's queue has strict priorities and 100 packets, or marks ECN-capable packets from 40 packets on.",
        "Packets of both directions are captured below the sender's TCP, behind the bottleneck's queue, and below the",
        "receiver's TCP. Two packets are the same if their times, lengths and first 128 bytes, which include all",
        "headers, are equal.",
        "",
        "| controller | offload | queue | retransmitted | marked | packets, stock | packets, patched | differing "
        "| digest, stock | digest, patched |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, found in done:
        counts = (found.retransmitted, found.marked, *found.packets, found.differing, *found.digests)
        lines.append(f"| {case.controller} | {case.offload} | {case.queue} | {' | '.join(map(str, counts))} |")
    return "\n".join([*lines, "", "To repeat it: `make linux-rc3-off`.", ""])


def _fingerprint(one: Kernel) -> str:
    return hashlib.sha256(one.binary.read_bytes()).hexdigest()[:16]


def main(folder: Path) -> int:
    """Builds the kernels, compares them and writes the page. Returns 1 if a packet or a counter differs."""
    with console.progress("the kernels") as meter:
        kernels = (
            kernel.build(lambda share: meter(share / 2), os.cpu_count() or 1),
            kernel.build(lambda share: meter((1 + share) / 2), os.cpu_count() or 1, "off"),
        )
    done = [(case, compare(case, kernels)) for case in CASES]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(page(done, kernels), encoding="utf-8")
    return int(any(found.differing or found.counters for _, found in done))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/linux/rc3-off")))
