"""A kernel with the patches of RC3 and without their option, beside the stock one: the same packets, byte by byte.

`python -m sparelane.papers.linux.rc3_off FOLDER` builds both kernels, unless they are there, runs transfers on
each, compares what went over three cables, and writes a page.
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

from sparelane.terminal import console as terminal
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
# Packets that TCP hands over at once, with segmentation offload and without.
OFFLOADS = {"off": 1, "on": 44}
# Where packets are captured: as the sender's TCP lets them go, behind the queue, and before the receiver's TCP.
DEVICES = (("left0", "eth"), ("west", "east"), ("right0", "eth"))
NAMES = ("stock", "patched")


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer.

    Attributes:
        controller: the sender's.
        offload: whether TCP hands over many packets at once, a key of `OFFLOADS`.
        queue: that of the bottleneck, a key of `QUEUES`.
    """

    controller: str
    offload: str
    queue: str

    @property
    def settings(self) -> tuple[str, ...]:
        """What is set of the scenario."""
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
    """A transfer under two kernels.

    Attributes:
        packets: how many each kernel sent and received, over all devices.
        differing: packets of which bytes or time are not the same under both, or that only one of them has.
        counters: what the kernels have counted otherwise for a host; one that a kernel does not have is 0.
        digests: of all captures together, under each kernel.
        retransmitted: segments that the sender sent again, under the first kernel.
        marked: packets that came with a mark, under the first kernel.
    """

    packets: tuple[int, int]
    differing: int
    counters: int
    digests: tuple[str, str]
    retransmitted: int
    marked: int


def compare(case: Case, kernels: tuple[Kernel, Kernel]) -> Compared:
    """Runs the transfer under both kernels.

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
    """The packets of a pcap file, each with its time and its length."""
    at = 24
    while at < len(capture):
        (kept,) = struct.unpack_from("<I", capture, at + 8)
        yield capture[at : at + 16 + kept]
        at += 16 + kept


def _digest(captures: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(captures)).hexdigest()[:16]


def page(done: Sequence[tuple[Case, Compared]], kernels: tuple[Kernel, Kernel]) -> str:
    """What was found, as Markdown."""
    total, differing = sum(found.packets[0] for _, found in done), sum(found.differing for _, found in done)
    counters = sum(found.counters for _, found in done)
    lines = [
        "# RC3's patches without their option",
        "",
        "A kernel with the patches of RC3 (`docs/linux-rc3.md`) and without `CONFIG_TCP_RC3` sends what the",
        f"stock kernel sends: of {total} captured packets {differing} differ, by a byte or by a nanosecond. Of what",
        f"kernels count for each host {counters} numbers differ; the patched one has four counters more, which stay 0.",
        "",
        f"Linux {kernel.RELEASE}, the same configuration, and the same date and name of the build:",
        "",
        *(f"- {name}: {one.key}, SHA-256 {_fingerprint(one)}" for name, one in zip(NAMES, kernels, strict=True)),
        "",
        "Each transfer is one flow of 2000 packets over IPv4, in virtual time: 20 ms, hosts at 1 Gb/s, a bottleneck of",
        "400 Mb/s; with segmentation and receive offload, or without either. The bottleneck has a queue of 100 packets",
        "by priorities, or one that marks from 40 packets on what is ECN-capable. Captured is, both ways, what leaves",
        "the sender's TCP, the bottleneck's queue, and comes to the receiver's TCP. A packet is the same where its",
        "time, its length and its first 128 bytes are, which hold all headers.",
        "",
        "| controller | offload | queue | sent again | marked | packets, stock | packets, patched | that differ "
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
    """Builds, compares and writes; 1 where a packet differs."""
    with terminal.progress("the kernels") as meter:
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
