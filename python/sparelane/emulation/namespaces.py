"""Creates two hosts in network namespaces of this machine, with a bottleneck link of the kernel between them.

Needs root, `ip` and `tc` of iproute2, and the kernel's htb; errors name missing requirements. Delay and loss behind the
link, in both directions, come from a process that holds packets (`sparelane.emulation.delay_line`), since many kernels
have no netem.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache

from sparelane._native import WireError
from sparelane.emulation import delay_line

RECEIVER = "10.91.2.2"

# Time limit for the end of a delay line, seconds.
LINE_LIMIT_S = 20


def run(*words: str) -> str:
    """Runs a command, and returns its output.

    Raises:
        WireError: the command fails.
    """
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise WireError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Hosts:
    """The namespaces of the sender, the router, the delay line behind the router, and the receiver.

    After the hosts are removed, `counts` has the counters of the delay line.
    """

    sender: str
    router: str
    receiver: str
    line: str
    counts: list[delay_line.DelayLineCounts] = field(default_factory=list)

    def command(self, namespace: str, *words: str) -> list[str]:
        """The command line that runs a command in a namespace."""
        return ["ip", "netns", "exec", namespace, *words]

    def measured(self, namespace: str, *words: str) -> list[str]:
        """The same for a command whose timing matters, with real-time priority if possible."""
        return [*realtime_prefix(), *self.command(namespace, *words)]


@cache
def realtime_prefix() -> tuple[str, ...]:
    """The prefix of a command line that gives real-time priority; empty without permission.

    Without priority, delays by other processes would count as delays of the path.
    """
    words = ("chrt", "--fifo", "1")
    try:
        is_allowed = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_allowed = False
    return words if is_allowed else ()


def missing() -> str | None:
    """The reason why this machine cannot create such namespaces; `None` if it can."""
    if os.geteuid() != 0:
        return "needs root"
    if any(shutil.which(tool) is None for tool in ("ip", "tc", "sysctl")):
        return "needs ip, tc and sysctl"
    name = f"sl{os.getpid() % 10000}p"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "cannot create network namespaces"
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], capture_output=True, check=False)
    htb = ["tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"]
    has_htb = subprocess.run(htb, capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None if has_htb else "needs the kernel's htb"


@contextmanager
def hosts(
    mbps: int, *, priorities: bool, packets: int = 200, round_trip_s: float = 0.0, loss: float = 0.0, seed: int = 1
) -> Iterator[Hosts]:
    """Creates two hosts. Packets of the sender cross a link with strict priorities by DSCP, or with one queue.

    Args:
        mbps: the rate of the link, Mb/s.
        priorities: use a priority queue for each class; otherwise one FIFO queue.
        packets: the length of each queue.
        round_trip_s: an additional round-trip delay, half of it in each direction behind the link.
        loss: the fraction of packets that are lost behind the link.
        seed: the seed of the losses.
    """
    number = os.getpid() % 10000
    ends = Hosts(f"sl{number}s", f"sl{number}t", f"sl{number}r", f"sl{number}d")
    has_line = round_trip_s > 0 or loss > 0
    everyone = (ends.sender, ends.router, *((ends.line,) if has_line else ()), ends.receiver)
    with ExitStack() as stack:
        for namespace in everyone:
            stack.callback(subprocess.run, ["ip", "netns", "del", namespace], capture_output=True, check=False)
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
            # Linux must not start a flow with metrics of the flow before.
            run(*ends.command(namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.tcp_no_metrics_save=1"))
        join(ends.sender, "a0", "10.91.1.1", ends.router, "r0", "10.91.1.2")
        if has_line:
            join(ends.router, "r1", "10.91.3.1", ends.line, "d0", "10.91.3.2")
            join(ends.line, "d1", "10.91.2.1", ends.receiver, "b0", RECEIVER)
            run("ip", "-n", ends.router, "route", "add", "10.91.2.0/24", "via", "10.91.3.2")
            run("ip", "-n", ends.line, "route", "add", "default", "via", "10.91.3.1")
        else:
            join(ends.router, "r1", "10.91.2.1", ends.receiver, "b0", RECEIVER)
        run("ip", "-n", ends.sender, "route", "add", "default", "via", "10.91.1.2")
        run("ip", "-n", ends.receiver, "route", "add", "default", "via", "10.91.2.1")
        link(ends, mbps, priorities=priorities, packets=packets)
        if has_line:
            stack.enter_context(delayed(ends, round_trip_s / 2, loss, seed))
        yield ends


def join(near: str, one: str, near_address: str, far: str, other: str, far_address: str) -> None:
    """Creates a cable between two namespaces, with an interface and an address at each end."""
    run("ip", "link", "add", one, "netns", near, "type", "veth", "peer", "name", other, "netns", far)
    for namespace, device, address in ((near, one, near_address), (far, other, far_address)):
        run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
        run("ip", "-n", namespace, "link", "set", device, "up", "gso_max_segs", "1")


@contextmanager
def delayed(ends: Hosts, delay_s: float, loss: float, seed: int) -> Iterator[None]:
    """Delays every packet that crosses the namespace of the delay line by `delay_s`, or drops it."""
    at = ends.line
    why_not = delay_line.missing()
    if why_not is not None:
        raise WireError(f"a path with delay {why_not}")
    run("ip", "-n", at, "tuntap", "add", "dev", "held", "mode", "tun")
    run("ip", "-n", at, "link", "set", "held", "up", "txqueuelen", "10000")
    program = [sys.executable, "-m", "sparelane.emulation.delay_line", "held", repr(delay_s), repr(loss), str(seed)]
    with subprocess.Popen(ends.command(at, *program), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise WireError("the delay line did not start")
            # Packets from the cables are routed to the delay line; packets from the delay line use the normal routes.
            run("ip", "-n", at, "route", "add", "default", "dev", "held", "table", "100")
            for device in ("d0", "d1"):
                run("ip", "-n", at, "rule", "add", "iif", device, "lookup", "100")
            yield
        finally:
            process.terminate()
            try:
                output, _ = process.communicate(timeout=LINE_LIMIT_S)
                ends.counts.append(delay_line.DelayLineCounts(**json.loads(output)))
            except (subprocess.TimeoutExpired, ValueError):
                process.kill()


def link(ends: Hosts, mbps: int, *, priorities: bool, packets: int) -> None:
    """Limits the rate of the router's interface to the receiver, with a FIFO or priority queues."""
    # htb limits the rate. A small burst keeps queueing in its child queues instead of the device.
    rate = f"{mbps}mbit"
    tc = ("tc", "-n", ends.router)
    run(*tc, "qdisc", "add", "dev", "r1", "root", "handle", "1:", "htb", "default", "10")
    whole: tuple[str, ...] = ("rate", rate, "ceil", rate, "quantum", "1514", "burst", "3k", "cburst", "3k")
    run(*tc, "class", "add", "dev", "r1", "parent", "1:", "classid", "1:1", "htb", *whole)
    # With priorities, each class may use the whole rate, and a lower `prio` is served first.
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
    # The DSCPs 3, 11 and 19 of the lower classes, shifted by the two ECN bits. Other packets use class 10.
    for tos, number in (("0x0c", 11), ("0x2c", 12), ("0x4c", 13)):
        if priorities:
            match = ("u32", "match", "ip", "tos", tos, "0xfc", "flowid", f"1:{number}")
            run(*tc, "filter", "add", "dev", "r1", "parent", "1:", "protocol", "ip", "prio", "1", *match)
