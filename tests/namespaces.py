"""Two hosts in network namespaces, with a narrow link between them: for tests that need the kernel's own network.

Needs root and `ip` and `tc` of iproute2 with `htb`; whoever cannot have them is told why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

RECEIVER = "10.91.0.2"


def run(*words: str) -> str:
    """What a command prints; an error is one of the test."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@dataclass(frozen=True)
class Hosts:
    """The namespaces of sender and receiver."""

    sender: str
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
    ends = Hosts(f"sl{os.getpid() % 10000}s", f"sl{os.getpid() % 10000}r")
    try:
        run("ip", "netns", "add", ends.sender)
        run("ip", "netns", "add", ends.receiver)
        run(
            "ip",
            "link",
            "add",
            "a0",
            "netns",
            ends.sender,
            "type",
            "veth",
            "peer",
            "name",
            "b0",
            "netns",
            ends.receiver,
        )
        for namespace, device, address in ((ends.sender, "a0", "10.91.0.1"), (ends.receiver, "b0", RECEIVER)):
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
            run("ip", "-n", namespace, "link", "set", device, "up")
        link(ends, mbps, priorities=priorities, packets=packets)
        yield ends
    finally:
        for namespace in (ends.sender, ends.receiver):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def link(ends: Hosts, mbps: int, *, priorities: bool, packets: int) -> None:
    """Puts a narrow link behind the sender's interface; segments do not leave in batches, which one queue would see as one."""
    rate = f"{mbps}mbit"
    run("ip", "-n", ends.sender, "link", "set", "a0", "gso_max_segs", "1")
    tc = ("tc", "-n", ends.sender)
    run(*tc, "qdisc", "add", "dev", "a0", "root", "handle", "1:", "htb", "default", "10")
    whole = ("rate", rate, "ceil", rate, "quantum", "1514", "burst", "3k", "cburst", "3k")
    run(*tc, "class", "add", "dev", "a0", "parent", "1:", "classid", "1:1", "htb", *whole)
    classes = (10, 11, 12, 13) if priorities else (10,)
    for at, number in enumerate(classes):
        share = ("rate", "8kbit", "ceil", rate, "prio", str(at), "quantum", "1514", "burst", "1514", "cburst", "3k")
        if not priorities:
            share = whole
        run(*tc, "class", "add", "dev", "a0", "parent", "1:1", "classid", f"1:{number}", "htb", *share)
        run(
            *tc,
            "qdisc",
            "add",
            "dev",
            "a0",
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
            run(*tc, "filter", "add", "dev", "a0", "parent", "1:", "protocol", "ip", "prio", "1", *match)
