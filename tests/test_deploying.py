"""Runs the commands of the page about deploying RC3 in network namespaces."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hangs import HANG_S
from sparelane.emulation.namespaces import join, missing, run

PAGE = Path(__file__).parents[1] / "docs" / "deploying-rc3.md"
WHY_NOT = missing()
needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")

# Type of service of each class, and the seconds for which all classes are sent.
CLASSES = {0: 0x00, 1: 0x0C, 2: 0x2C, 3: 0x4C}
SPAN_S = 1.5

# Counts what arrives: the class in the first byte, and the type of service. Ends SPAN_S after the first packet.
COUNT = f"""
import collections, socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("0.0.0.0", 5000))
end.setsockopt(socket.SOL_IP, socket.IP_RECVTOS, 1)
end.settimeout(10)
print("ready", flush=True)
counts, until = collections.Counter(), None
while until is None or time.monotonic() < until:
    data, extra, _, _ = end.recvmsg(2000, 100)
    until = until or time.monotonic() + {SPAN_S}
    counts[data[0], extra[0][2][0]] += 1
    end.settimeout(max(0.01, until - time.monotonic()))
"""


def commands(start: str) -> list[str]:
    """Returns the commands of the page's block that starts with `start`, one per line."""
    blocks = re.findall(r"^ *```bash\n(.*?)^ *```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (found,) = (block for block in map(textwrap.dedent, blocks) if block.startswith(start))
    return found.splitlines()


# Sends 3 Mb/s in each class.
SEND = f"""
import socket, time
ends = []
for service in {tuple(CLASSES.values())}:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_IP, socket.IP_TOS, service)
    ends.append(end)
start, sent = time.monotonic(), 0
while (now_s := time.monotonic() - start) < {SPAN_S + 0.5}:
    while sent < now_s * 3e6 / 8 / 1228:
        sent += 1
        for number, end in enumerate(ends):
            end.sendto(bytes([number]) * 1200, ("10.92.2.2", 5000))
    time.sleep(0.002)
"""


@contextmanager
def router() -> Iterator[tuple[str, str, str]]:
    """Creates a sender, a router with the interfaces `eth0` and `eth1`, and a receiver; yields their namespaces."""
    number = os.getpid() % 10000
    sender, middle, receiver = names = (f"sd{number}s", f"sd{number}t", f"sd{number}r")
    with ExitStack() as stack:
        for name in names:
            stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True, check=False)
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        join(sender, "a0", "10.92.1.1", middle, "eth0", "10.92.1.2")
        join(middle, "eth1", "10.92.2.1", receiver, "b0", "10.92.2.2")
        run("ip", "-n", sender, "route", "add", "default", "via", "10.92.1.2")
        run("ip", "-n", receiver, "route", "add", "default", "via", "10.92.2.1")
        yield names


def received(names: tuple[str, str, str], lines: list[str]) -> dict[tuple[int, int], int]:
    """Runs the commands at the router and returns the packets that arrive, by class and type of service."""
    sender, middle, receiver = names
    subprocess.run(["ip", "netns", "exec", middle, "sh", "-ec", "\n".join(lines)], check=True, timeout=HANG_S)
    program = [sys.executable, "-c", COUNT + "print(dict(counts))"]
    with subprocess.Popen(["ip", "netns", "exec", receiver, *program], stdout=subprocess.PIPE, text=True) as count:
        assert count.stdout is not None
        assert count.stdout.readline() == "ready\n"
        subprocess.run(["ip", "netns", "exec", sender, sys.executable, "-c", SEND], check=True, timeout=HANG_S)
        found: dict[tuple[int, int], int] = eval(count.communicate(timeout=HANG_S)[0])
    return found


@needs_namespaces
def test_the_shaper_of_the_page_serves_the_tail_last() -> None:
    lines = [
        line.replace("950mbit", "4500kbit").replace("940mbit", "4mbit").replace("limit 1000", "limit 20")
        for line in commands("tc qdisc replace dev eth1")
    ]
    with router() as names:
        found = received(names, lines)
    counts = [found.get((number, service), 0) for number, service in CLASSES.items()]
    offered = 3e6 / 8 / 1228 * SPAN_S
    # All of class 0 arrives, class 1 has what is left, and the others have nothing.
    assert counts[0] > 0.9 * offered
    assert 0.2 * offered < counts[1] < 0.7 * offered
    assert sum(counts[2:]) < 0.1 * offered


@needs_namespaces
@pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed")
def test_the_border_of_the_page_rewrites_the_code_points_of_the_tail() -> None:
    with router() as names:
        found = received(names, commands("nft add table"))
    # Lower effort is DSCP 1, which is the type of service 4.
    assert set(found) == {(0, 0x00), (1, 0x04), (2, 0x04), (3, 0x04)}


@needs_namespaces
def test_the_queue_of_the_page_serves_the_tail_last() -> None:
    lines = commands("tc qdisc replace dev eth0")
    with router() as names:
        alone = subprocess.run(["tc", "-n", names[1], *lines[0].split()[1:]], capture_output=True, check=False)
        if alone.returncode != 0:
            pytest.skip("the kernel has no prio")
        bottleneck = "tc qdisc replace dev eth1 root handle 9: tbf rate 4500kbit burst 3000 limit 300000"
        below = [line.replace("eth0", "eth1").replace("root", "parent 9:1") for line in lines]
        limited = [re.sub(r"limit \d+", "limit 20", line) for line in below]
        found = received(names, [bottleneck, *limited])
    counts = [found.get((number, service), 0) for number, service in CLASSES.items()]
    assert counts[0] > 0.9 * 3e6 / 8 / 1228 * SPAN_S
    assert counts[1] > 2 * sum(counts[2:])
