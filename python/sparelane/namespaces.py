"""Two hosts in network namespaces of this machine, with a narrow link between them: the kernel's own network.

Needs root and `ip` and `tc` of iproute2 with `htb`; whoever cannot have them is told why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparelane._native import WireError

RECEIVER = "10.91.2.2"


def run(*words: str) -> str:
    """What a command prints.

    Raises:
        WireError: it fails.
    """
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise WireError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Hosts:
    """The namespaces of sender and receiver, and of the router between them."""

    sender: str
    router: str
    receiver: str

    def command(self, namespace: str, *words: str) -> list[str]:
        """A command in one of them."""
        return ["ip", "netns", "exec", namespace, *words]


def missing() -> str | None:
    """Why there can be no namespaces here, if there cannot."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "needs ip and tc"
    name = f"sl{os.getpid() % 10000}p"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "cannot make network namespaces"
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], capture_output=True, check=False)
    htb = ["tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"]
    has_htb = subprocess.run(htb, capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None if has_htb else "needs the kernel's htb"


@contextmanager
def hosts(mbps: int, *, priorities: bool, packets: int = 200) -> Iterator[Hosts]:
    """Two hosts; what the sender sends crosses a link of this rate, by strict priority of the code points or in one line."""
    number = os.getpid() % 10000
    ends = Hosts(f"sl{number}s", f"sl{number}t", f"sl{number}r")
    everyone = (ends.sender, ends.router, ends.receiver)
    try:
        for namespace in everyone:
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        for near, far, one, other in ((ends.sender, ends.router, "a0", "r0"), (ends.router, ends.receiver, "r1", "b0")):
            run("ip", "link", "add", one, "netns", near, "type", "veth", "peer", "name", other, "netns", far)
        for namespace, device, address in (
            (ends.sender, "a0", "10.91.1.1"),
            (ends.router, "r0", "10.91.1.2"),
            (ends.router, "r1", "10.91.2.1"),
            (ends.receiver, "b0", RECEIVER),
        ):
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", namespace, "link", "set", device, "up", "gso_max_segs", "1")
        run("ip", "-n", ends.sender, "route", "add", "default", "via", "10.91.1.2")
        run("ip", "-n", ends.receiver, "route", "add", "default", "via", "10.91.2.1")
        run(*ends.command(ends.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"))
        link(ends, mbps, priorities=priorities, packets=packets)
        yield ends
    finally:
        for namespace in everyone:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def link(ends: Hosts, mbps: int, *, priorities: bool, packets: int) -> None:
    """Puts a narrow link behind the router; hosts send no batches, which its queues would see as one packet."""
    rate = f"{mbps}mbit"
    tc = ("tc", "-n", ends.router)
    run(*tc, "qdisc", "add", "dev", "r1", "root", "handle", "1:", "htb", "default", "10")
    whole: tuple[str, ...] = ("rate", rate, "ceil", rate, "quantum", "1514", "burst", "3k", "cburst", "3k")
    run(*tc, "class", "add", "dev", "r1", "parent", "1:", "classid", "1:1", "htb", *whole)
    classes = (10, 11, 12, 13) if priorities else (10,)
    for at, number in enumerate(classes):
        share: tuple[str, ...] = (
            "rate",
            "8kbit",
            "ceil",
            rate,
            "prio",
            str(at),
            "quantum",
            "1514",
            "burst",
            "1514",
            "cburst",
            "3k",
        )
        if not priorities:
            share = whole
        run(*tc, "class", "add", "dev", "r1", "parent", "1:1", "classid", f"1:{number}", "htb", *share)
        run(
            *tc,
            "qdisc",
            "add",
            "dev",
            "r1",
            "parent",
            f"1:{number}",
            "handle",
            f"{number}:",
            "pfifo",
            "limit",
            str(packets),
        )
    for tos, number in (("0x0c", 11), ("0x2c", 12), ("0x4c", 13)):
        if priorities:
            match = ("u32", "match", "ip", "tos", tos, "0xfc", "flowid", f"1:{number}")
            run(*tc, "filter", "add", "dev", "r1", "parent", "1:", "protocol", "ip", "prio", "1", *match)
