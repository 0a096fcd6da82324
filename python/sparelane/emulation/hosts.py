"""Creates and removes the hosts of an emulation: network namespaces with one TUN device each."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane._native import EmulationError

NAMESPACES = Path("/run/netns")
TUN = Path("/dev/net/tun")
DEVICE = "sim0"

# From linux/if_tun.h: an interface of bare IP packets, without a header before each packet.
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
INTERFACE_REQUEST = "16sH22x"

# The queue of a device, packets; longer than the number of packets that arrive while the exchange is late.
DEVICE_QUEUE = 2000

# Waits for the end of its standard input, which comes at the latest when its parent ends. Then ends the programs in the
# namespaces and removes the namespaces with their devices.
CLEANER = """
trap '' INT TERM HUP
cat > /dev/null
for name in "$@"; do
  [ -e "/run/netns/$name" ] || continue
  for signal in TERM KILL KILL; do
    running=$(ip netns pids "$name" 2> /dev/null)
    [ -n "$running" ] || break
    kill -$signal $running 2> /dev/null
    for pause in 1 2 3 4 5 6 7 8 9 10; do
      [ -n "$(ip netns pids "$name" 2> /dev/null)" ] || break
      sleep 0.1
    done
  done
  ip netns del "$name"
done
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the scenario: its name, its network namespace, and its address."""

    name: str
    namespace: str
    address: str


class NamespaceCleaner:
    """Removes namespaces on request, or when this process ends."""

    def __init__(self, spaces: Sequence[str]) -> None:
        line = ["sh", "-c", CLEANER, "sh", *spaces]
        self._shell = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)

    def clean(self) -> None:
        """Ends the programs in the namespaces, and removes the namespaces."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait()


def program_exists(words: Sequence[str]) -> None:
    """Checks that the program of a command exists, before the network is created.

    Raises:
        EmulationError: the command is empty, or its program does not exist.
    """
    if not words or shutil.which(words[0]) is None:
        raise EmulationError(f'there is no program "{words[0] if words else ""}" to run at a host')


def check_prefix(prefix: str) -> None:
    """Checks a prefix of names of namespaces.

    Raises:
        EmulationError: the prefix has other characters than allowed, or is too long.
    """
    if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,31}", prefix) is None:
        raise EmulationError(
            f'"{prefix}" cannot begin the name of a network namespace; allowed: 1 to 32 letters, digits and "_", "-" '
            'or "." (which is not the first)'
        )


def namespaces(names: Sequence[str], prefix: str) -> list[str]:
    """Unique names of namespaces, made from the names of hosts and limited to characters of file names."""
    spaces: list[str] = []
    for name in names:
        plain = prefix + (re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:64] or "host")
        space, copy = plain, 2
        while space in spaces:
            space, copy = f"{plain}-{copy}", copy + 1
        spaces.append(space)
    return spaces


def missing() -> str | None:
    """The reason why this machine cannot run an emulation; `None` if it can."""
    if not sys.platform.startswith("linux"):
        return "an emulation needs Linux"
    if os.geteuid() != 0:
        return "an emulation creates network namespaces and TUN devices, and needs root"
    if shutil.which("ip") is None:
        return 'an emulation needs the program "ip" of iproute2'
    if not TUN.exists():
        return f"there is no {TUN}: the kernel's module tun is missing, or the container has no such device"
    return None


def check(hosts: Sequence[Host]) -> None:
    """Checks the requirements of an emulation, and that the names of its namespaces are free.

    Raises:
        EmulationError: a requirement is missing, or a namespace exists already.
    """
    why_not = missing()
    if why_not is not None:
        raise EmulationError(why_not)
    for host in hosts:
        if (NAMESPACES / host.namespace).exists():
            raise EmulationError(
                f'there is a network namespace "{host.namespace}" already; allowed: another --prefix, '
                f'or "ip netns del {host.namespace}" if nothing uses it'
            )


def ip(lines: str, namespace: str | None = None) -> None:
    """Runs commands with `ip -batch`.

    Raises:
        EmulationError: a command fails.
    """
    inside = [] if namespace is None else ["-n", namespace]
    done = subprocess.run(["ip", *inside, "-batch", "-"], input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EmulationError(f"ip: {' '.join(done.stderr.split()) or f'ended with {done.returncode}'}")


def ready_device(host: Host, mtu_bytes: int) -> None:
    """Sets the address, MTU and queue of a host's device, and brings it up.

    Raises:
        EmulationError: a command fails.
    """
    ip(
        "link set dev lo up\n"
        f"link set dev {DEVICE} addrgenmode none mtu {mtu_bytes} txqueuelen {DEVICE_QUEUE}\n"
        f"address add {host.address}/24 dev {DEVICE}\n"
        f"link set dev {DEVICE} up\n",
        host.namespace,
    )


def open_device(host: Host) -> int:
    """Creates the TUN device of a host in its namespace. Returns the file descriptor for its packets.

    Raises:
        EmulationError: the device cannot be created.
    """
    try:
        device = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise EmulationError(f"{TUN}: {error.strerror}") from error
    try:
        # The kernel replaces %d by a free number and returns the name.
        reply = fcntl.ioctl(device, TUNSETIFF, struct.pack(INTERFACE_REQUEST, b"slemu%d", IFF_TUN | IFF_NO_PI))
        name = struct.unpack(INTERFACE_REQUEST, reply)[0].rstrip(b"\0").decode()
        ip(f"link set dev {name} netns {host.namespace} name {DEVICE}\n")
    except OSError as error:
        os.close(device)
        raise EmulationError(f"cannot create a TUN device: {error.strerror}") from error
    except EmulationError:
        os.close(device)
        raise
    return device


def use_realtime_priority() -> bool:
    """Gives this thread real-time priority. Returns `False` if the kernel refuses."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return False
    return True


def missed(namespace: str) -> int:
    """The number of packets that a host's device dropped, since its queue was full."""
    line = ["ip", "-n", namespace, "-statistics", "-oneline", "link", "show", "dev", DEVICE]
    output = subprocess.run(line, capture_output=True, text=True, check=False).stdout
    found = re.search(r"TX:\s+bytes\s+packets\s+errors\s+dropped[^\\]*\\\s+\d+\s+\d+\s+\d+\s+(\d+)", output)
    return int(found[1]) if found else 0
